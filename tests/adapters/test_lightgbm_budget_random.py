"""Random costs, sources, budgets, trade-offs, data and settings: what has to hold in every one of them."""

from __future__ import annotations

from typing import Any

import lightgbm as lgb
import numpy as np
import pytest

from grbb_ext import FeatureCosts
from grbb_ext.adapters.lightgbm._train import train


def features_of(trees: list[dict[str, Any]]) -> set[int]:
    found: set[int] = set()
    stack = [tree["tree_structure"] for tree in trees]
    while stack:
        node = stack.pop()
        if "split_feature" in node:
            found.add(node["split_feature"])
            stack += [node["left_child"], node["right_child"]]
    return found


def draw_costs(rng: np.random.Generator, n_columns: int) -> FeatureCosts:
    n_sources = int(rng.integers(1, 2 * n_columns))
    needs = [
        [int(s) for s in rng.choice(n_sources, size=min(n_sources, int(rng.integers(0, 3))), replace=False)]
        for _ in range(n_columns)
    ]
    used = sorted({source for row in needs for source in row})
    return FeatureCosts(needs=needs, prices={s: float(rng.choice([0, 1, 2.5, 0.1, rng.exponential(3)])) for s in used})


def draw_data(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(int(rng.integers(30, 150)), int(rng.integers(2, 9))))
    score = X @ rng.normal(size=X.shape[1]) + X[:, 0] * X[:, -1] + rng.normal(size=len(X))
    if rng.random() < 0.3:
        X = np.round(X)
    if rng.random() < 0.3:
        X[rng.random(X.shape) < 0.1] = np.nan
    return X, score


def draw_params(rng: np.random.Generator, score: np.ndarray, n_columns: int) -> tuple[dict[str, Any], np.ndarray]:
    params: dict[str, Any] = {
        "num_leaves": int(rng.integers(2, 9)),
        "learning_rate": float(rng.choice([0.1, 0.3, 1.0])),
        "min_data_in_leaf": int(rng.integers(1, 10)),
        "verbosity": -1,
        "num_threads": 1,
        "seed": int(rng.integers(1000)),
    }
    y = score
    match rng.choice(["regression", "binary", "multiclass", "custom"]):
        case "binary":
            params["objective"], y = "binary", score > 0
        case "multiclass":
            params["objective"], params["num_class"], y = "multiclass", 3, np.digitize(score, [-1, 1])
        case "custom":
            params["objective"] = lambda raw_scores, data: (raw_scores - score, np.ones_like(raw_scores))
    sampling = [
        {"bagging_fraction": 0.6, "bagging_freq": 1},
        {"data_sample_strategy": "goss"},
        {"feature_fraction": 0.6},
        {"feature_fraction_bynode": 0.6},
        {"extra_trees": True},
        {"interaction_constraints": [[0, 1], list(range(1, n_columns))]},
    ]
    if rng.random() < 0.5:
        params |= sampling[rng.integers(len(sampling))]
    return params, np.asarray(y, dtype=float)


@pytest.mark.parametrize("block", range(10))
def test_two_hundred_draws(block: int) -> None:
    for seed in range(20 * block, 20 * block + 20):
        rng = np.random.default_rng(seed)
        X, score = draw_data(rng)
        params, y = draw_params(rng, score, X.shape[1])
        costs = draw_costs(rng, X.shape[1])
        budget = None if rng.random() < 0.25 else float(rng.uniform(0, 1.1) * costs.total(range(X.shape[1])))
        mu = 0.0 if rng.random() < 0.25 else float(10 ** rng.uniform(-2, 2))
        seen: list[set[int]] = []

        def after(env: Any, seen: list[set[int]] = seen) -> None:
            seen.append(features_of(env.model.dump_model()["tree_info"]))

        booster = train(params, lgb.Dataset(X, y), 7, costs=costs, mu=mu, budget=budget, callbacks=[after])
        for features in seen:
            assert budget is None or costs.total(features) <= budget, seed
        trees = booster.dump_model()["tree_info"]
        per_round = params.get("num_class", 1)
        for n_rounds in range(booster.current_iteration() + 1):
            ledger = booster.ledger_.before(n_rounds)
            features = features_of(trees[: n_rounds * per_round])
            assert set(np.flatnonzero(ledger.used)) == features, seed
            assert ledger.spent == costs.total(features), seed
        assert features_of(trees) == seen[-1], seed
