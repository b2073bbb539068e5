"""Objectives on extreme graphs, hard budgets, and fits to odd tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
import xgboost as xgb
from numpy.typing import NDArray

from benchmarks.attack import Attack, Case
from grbb_ext import FeatureCosts, Forest, GRBBClassifier, GRBBRegressor, grbb_objective
from grbb_ext.adapters.lightgbm import train
from grbb_ext.adapters.xgboost import GreedyMiser
from grbb_ext.propagation import SolverError

_RULES = ("targets", "paper", "corrected", "laplacian", "labeled")
_KINDS = ("harmonic", "nonlocal", "smooth", "poisson")


def objectives(folder: Path) -> Case:
    """Check that gradients are finite on graphs with weights from 1e-300 to 1e300, or the graph is refused."""

    def case(random: np.random.Generator) -> tuple[str, str]:
        n = int(random.integers(3, 40))
        exponent = random.uniform(-300, 300) + random.choice([0.0, 1.0, 20.0, 600.0]) * random.uniform(-0.5, 0.5, 3 * n)
        W = np.zeros((n, n))
        W[random.integers(0, n, 3 * n), random.integers(0, n, 3 * n)] = 10.0 ** np.clip(exponent, -300, 300)
        W[random.random(n) < 0.1] = 0.0
        W = np.maximum(W, W.T)
        labels = np.full(n, -1)
        labels[random.permutation(n)[:3]] = [0, 1, int(random.integers(0, 3))]
        rule, kind = str(random.choice(_RULES)), str(random.choice(_KINDS))
        lam = float(random.choice([0.0, 1e-6, 1.0, 1e6]))
        if rule == "corrected" and kind in ("smooth", "poisson"):
            kind = "nonlocal"
        weight = 10.0 ** random.uniform(-30, 30, n) if random.random() < 0.3 else None
        try:
            obj = grbb_objective(
                None,
                labels,
                graph=W,
                rule=rule,
                propagation=kind,
                lam=lam or (1.0 if rule == "laplacian" else 0.0),
                sample_weight=weight,
                verbose=False,
            )
            shape = (n, obj.n_outputs_) if obj.n_outputs_ > 1 else n
            gradients = obj(10.0 ** random.uniform(-3, 3) * random.normal(size=shape))
        except (ValueError, SolverError) as error:
            return "refused", str(error)
        return ("equal" if all(np.isfinite(part).all() for part in gradients) else "different"), f"{rule} {kind} {lam}"

    return case


def _rows(random: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    n, d = int(random.integers(30, 120)), int(random.integers(1, 8))
    X = random.normal(size=(n, d)) * 10.0 ** random.integers(-3, 4, d)
    for j in range(d):
        kind = random.integers(0, 8)
        if kind == 0:
            X[:, j] = 3.0
        elif kind == 1:
            X[:, j] = np.round(X[:, j])
        elif kind == 2:
            X[random.random(n) < 0.5, j] = np.nan
        elif kind == 3:
            X[:, j] = np.nan
    truth = (np.nan_to_num(X).sum(axis=1) + random.normal(size=n) > 0).astype(np.intp)
    return X, truth


def budgets(folder: Path) -> Case:
    """Check that a hard budget holds after every round, and that the ledger has what the model uses."""

    def case(random: np.random.Generator) -> tuple[str, str]:
        X, truth = _rows(random)
        X[:, 0] = random.normal(size=truth.size)  # LightGBM itself fails where it can split no column
        d = X.shape[1]
        sources = [f"s{i}" for i in range(int(random.integers(1, 5)))]
        needs = {j: [str(s) for s in random.permutation(sources)[: random.integers(0, 3)]] for j in range(d)}
        used = sorted({s for listed in needs.values() for s in listed})
        if not used:
            needs, used = {**needs, 0: ["s0"]}, ["s0"]
        costs = FeatureCosts(needs=needs, prices={s: float(np.round(random.exponential(3), 2)) for s in used})
        budget = float(np.round(random.uniform(0, costs.total(range(d)) + 1), 2))
        mu = float(random.choice([0.0, 0.1, 10.0]))
        label = truth.astype(float)
        if random.random() < 0.5:
            params: dict[str, Any] = {"objective": "binary", "num_leaves": 7, "verbosity": -1, "num_threads": 1}
            model: Any = train(
                {**params, "min_data_in_leaf": 3}, lgb.Dataset(X, label), 8, costs=costs, mu=mu, budget=budget
            )
        else:
            data = xgb.DMatrix(X, label)
            miser = GreedyMiser(costs, "binary:logistic", data, mu=mu, budget=budget)
            settings = {"objective": "binary:logistic", "max_depth": 3, "nthread": 1, "verbosity": 0}
            model = xgb.train(settings, data, 8, callbacks=[miser])
        ledger = model.ledger_
        held = all(purchase.spent <= budget + 1e-9 for purchase in ledger.history)
        same = set(np.flatnonzero(ledger.used)) == set(Forest.from_booster(model).features_used())
        return ("equal" if held and same else "different"), f"budget {budget}, spent {ledger.spent}"

    return case


def fits(folder: Path) -> Case:
    """Fit estimators to constant, missing and tiny columns: they refuse them, or predict finite numbers."""

    def case(random: np.random.Generator) -> tuple[str, str]:
        X, truth = _rows(random)
        keep = random.random(truth.size) < random.choice([0.1, 0.5])
        library = random.choice(["lightgbm", "xgboost"])
        small = {"n_estimators": 5, "n_jobs": 1, **({"verbosity": -1} if library == "lightgbm" else {})}
        try:
            if random.random() < 0.7:
                booster: Any = lgb.LGBMClassifier if library == "lightgbm" else xgb.XGBClassifier
                model: Any = GRBBClassifier(booster(**small)).fit(X, np.where(keep, truth, -1))
                predicted = model.predict_proba(X)
            else:
                booster = lgb.LGBMRegressor if library == "lightgbm" else xgb.XGBRegressor
                model = GRBBRegressor(booster(**small)).fit(X, np.where(keep, truth * 1.5, np.nan))
                predicted = model.predict(X)
        except ValueError as error:
            return "refused", str(error)
        return ("equal" if np.isfinite(predicted).all() else "different"), library

    return case


ATTACKS = {
    "objectives on extreme graphs": Attack(objectives, 25, 200),
    "hard budgets": Attack(budgets, 4, 100),
    "fits to odd tables": Attack(fits, 10, 50),
}
