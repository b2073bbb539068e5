"""The fault of LightGBM's CEGB, and that it does not reach models trained with costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import lightgbm as lgb
import numpy as np
import pytest

from grbb_ext import FeatureCosts
from grbb_ext.adapters.lightgbm._train import train

# Squared error with hessian 1, no shrinkage, every value a bin: gains are decreases of squared error.
EXACT = {
    "objective": "regression",
    "boost_from_average": False,
    "learning_rate": 1.0,
    "lambda_l2": 0.0,
    "min_data_in_leaf": 1,
    "min_sum_hessian_in_leaf": 0.0,
    "min_data_in_bin": 1,
    "feature_pre_filter": False,
    "verbosity": -1,
    "num_threads": 1,
}


class Split(NamedTuple):
    order: int
    column: int
    threshold: float
    gain: float
    rows: np.ndarray


def splits(tree: dict[str, Any], X: np.ndarray) -> list[Split]:
    """Splits of a dumped tree in growth order, with the rows that reach them."""

    def walk(node: dict[str, Any], rows: np.ndarray) -> Iterator[Split]:
        if "split_index" in node:
            column, threshold = node["split_feature"], node["threshold"]
            yield Split(node["split_index"], column, threshold, node["split_gain"], rows)
            left = X[rows, column] <= threshold
            yield from walk(node["left_child"], rows[left])
            yield from walk(node["right_child"], rows[~left])

    return sorted(walk(tree["tree_structure"], np.arange(len(X))), key=lambda split: split.order)


def gain_of(residual: np.ndarray, left: np.ndarray) -> float:
    """Decrease of squared error when rows are cut in two and each part gets its mean."""
    parts = residual[left], residual[~left]
    if min(map(len, parts)) == 0:
        return 0.0
    return sum(part.sum() ** 2 / len(part) for part in parts) - residual.sum() ** 2 / len(residual)


def best_gain(residual: np.ndarray, values: np.ndarray) -> float:
    return max((gain_of(residual, values <= cut) for cut in np.unique(values)[:-1]), default=0.0)


def sixteen_rows() -> tuple[np.ndarray, np.ndarray]:
    """Column 0 halves the rows; 1 (to be paid) is good on the left, 2 better than it on the right."""
    i = np.arange(16)
    a, f, b = (i >= 8).astype(float), (i % 8 >= 4).astype(float), (i % 4 >= 2).astype(float)
    return np.column_stack([a, f, b]), 10 * a + (1 - a) * 6 * f + a * (f + 2 * b)


def test_sixteen_rows_bare_cegb_takes_the_wrong_split() -> None:
    """Feature 1 costs 30 and is bought on the left (72 - 30). On the right it gains 2, feature 2 gains 8."""
    X, y = sixteen_rows()
    bare = {**EXACT, "num_leaves": 4, **FeatureCosts([0.0, 30.0, 0.0]).lightgbm_params(mu=1.0)}
    tree = lgb.train(bare, lgb.Dataset(X, y), 1).dump_model()["tree_info"][0]
    # If this fails, LightGBM has mended CEGB: see what of `read_growth` is still needed.
    assert [(split.column, split.gain) for split in splits(tree, X)] == [(0, 289.0), (1, 42.0), (1, 2.0 + 30.0)]


@pytest.mark.parametrize("mu", [0.0, 1.0, 2.3])
def test_sixteen_rows_with_costs_the_right_split_is_taken(mu: float) -> None:
    X, y = sixteen_rows()
    booster = train({**EXACT, "num_leaves": 4}, lgb.Dataset(X, y), 1, costs=FeatureCosts([0.0, 30.0, 0.0]), mu=mu)
    grown = splits(booster.dump_model()["tree_info"][0], X)
    assert sorted(split.column for split in grown) == [0, 1, 2]
    assert booster.ledger_.spent == 30.0
    assert next(split.gain for split in grown if split.column == 2) == 8.0


def test_sixteen_rows_too_dear_to_buy() -> None:
    X, y = sixteen_rows()
    booster = train({**EXACT, "num_leaves": 4}, lgb.Dataset(X, y), 1, costs=FeatureCosts([0.0, 30.0, 0.0]), mu=2.5)
    assert 2.5 * 30.0 > 72.0
    assert booster.ledger_.features == (0, 2)


def refunds(booster: lgb.Booster, X: np.ndarray, y: np.ndarray, prices: np.ndarray, mu: float) -> list[float]:
    """By how much each split's recorded gain is above the true one, and by how much a paid column would beat it.

    Both are at most 0, up to rounding, if no gain is credited with a refund.
    """
    excess: list[float] = []
    residual = y.astype(np.float64).copy()
    paid = prices == 0
    for i, tree in enumerate(booster.dump_model()["tree_info"]):
        grown = splits(tree, X)
        for split in grown:
            here = residual[split.rows]
            true = gain_of(here, X[split.rows, split.column] <= split.threshold)
            scale = max(true, 1.0)
            excess.append((split.gain - true) / scale)
            best_paid = max((best_gain(here, X[split.rows, column]) for column in np.flatnonzero(paid)), default=0.0)
            excess.append((best_paid - true) / scale)
        paid[[split.column for split in grown]] = True
        residual = y - booster.predict(X, num_iteration=i + 1)
    return excess


def random_problem(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, dict[str, Any]]:
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 12, size=(60, 6)).astype(float)
    y = X @ rng.normal(size=6) + 0.3 * X[:, 0] * X[:, 1] + rng.normal(size=60)
    prices = rng.choice([0.0, 1.0, 3.0], size=6)
    mu = float(rng.choice([3.0, 10.0, 30.0, 100.0]))
    return X, y, prices, mu, {**EXACT, "num_leaves": int(rng.integers(3, 9)), "learning_rate": 0.5}


def test_random_trees_have_no_refund() -> None:
    """The same check finds the fault in bare CEGB, so it can fail."""
    n_bare_wrong = 0
    for seed in range(40):
        X, y, prices, mu, params = random_problem(seed)
        costs = FeatureCosts(prices)
        booster = train(params, lgb.Dataset(X, y), 5, costs=costs, mu=mu)
        assert max(refunds(booster, X, y, prices, mu)) < 1e-5, seed
        bare = lgb.train({**params, **costs.lightgbm_params(mu)}, lgb.Dataset(X, y), 5)
        n_bare_wrong += max(refunds(bare, X, y, prices, mu)) > 1e-3
    assert n_bare_wrong > 10


def test_bare_cegb_breaks_interaction_constraints_and_training_with_costs_does_not() -> None:
    groups = [[0, 1, 2], [2, 3, 4, 5]]

    def broken(booster: lgb.Booster) -> bool:
        def walk(node: dict[str, Any], path: frozenset[int]) -> bool:
            if "split_feature" not in node:
                return not any(path <= set(group) for group in groups)
            longer = path | {node["split_feature"]}
            return walk(node["left_child"], longer) or walk(node["right_child"], longer)

        return any(walk(tree["tree_structure"], frozenset()) for tree in booster.dump_model()["tree_info"])

    n_bare_broken = 0
    for seed in range(40):
        X, y, prices, mu, params = random_problem(seed)
        y = y + 5 * X[:, 2]  # the root splits on the column that both groups share
        params = {**params, "num_leaves": 12, "interaction_constraints": groups}
        costs = FeatureCosts(prices)
        booster = train(params, lgb.Dataset(X, y), 4, costs=costs, mu=mu)
        assert not broken(booster), seed
        n_bare_broken += broken(lgb.train({**params, **costs.lightgbm_params(mu)}, lgb.Dataset(X, y), 4))
    assert n_bare_broken > 5


@pytest.mark.parametrize(
    ("penalty", "charged"),
    [
        ({}, [0.0, 0.0, 0.0]),
        ({"cegb_penalty_feature_coupled": [1.0, 1.0, 1.0]}, [1.0, 1.0, 1.0]),
        ({"cegb_penalty_feature_lazy": [1.0, 1.0, 1.0]}, [16.0, 8.0, 8.0]),
        ({"cegb_penalty_split": 1.0}, [16.0, 8.0, 8.0]),
    ],
)
@pytest.mark.parametrize("tradeoff", [0.25, 0.5])
def test_what_the_three_penalties_charge(penalty: dict[str, Any], charged: list[float], tradeoff: float) -> None:
    """Coupled once, lazy for each row that has not paid, split for each row: the table of the docs."""
    X, y = sixteen_rows()
    params = {**EXACT, "num_leaves": 4, "cegb_tradeoff": tradeoff, **penalty}
    tree = lgb.train(params, lgb.Dataset(X, y), 1).dump_model()["tree_info"][0]
    gains = [split.gain for split in splits(tree, X)]
    np.testing.assert_allclose(gains, np.array([289.0, 72.0, 8.0]) - tradeoff * np.array(charged))


def test_with_newton_weights_a_gain_is_twice_the_decrease_of_the_quadratic_loss() -> None:
    X, y = np.array([[0.0], [0.0], [0.0], [1.0], [1.0]]), np.array([0.0, 0.0, 1.0, 1.0, 1.0])
    params = {**EXACT, "objective": "binary", "num_leaves": 2}
    booster = lgb.train(params, lgb.Dataset(X, y), 1)
    gradient, hessian = 0.5 - y, np.full(5, 0.25)

    def quadratic(step: np.ndarray) -> float:
        return float(np.sum(gradient * step + hessian * step**2 / 2))

    constant = np.full(5, -gradient.sum() / hessian.sum())
    decrease = quadratic(constant) - quadratic(booster.predict(X, raw_score=True))
    assert booster.dump_model()["tree_info"][0]["tree_structure"]["split_gain"] == pytest.approx(2 * decrease, rel=1e-5)
