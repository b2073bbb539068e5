"""The booster that all methods share: XGBoost, depth 4, learning rate .3, one thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xgboost as xgb
from numpy.typing import NDArray

from benchmarks.rivals._problem import Problem
from grbb_ext.adapters.xgboost import GreedyMiser

TREES = (10, 50)
DEPTH, LEARNING_RATE = 4, 0.3
LOGISTIC: dict[str, Any] = {"objective": "binary:logistic", "base_score": 0.5}


def parameters(max_bin: int) -> dict[str, Any]:
    """Return XGBoost's parameters; leaves of a single row are allowed, because a class may have one label."""
    return {
        "max_depth": DEPTH,
        "eta": LEARNING_RATE,
        "min_child_weight": 0,
        "tree_method": "hist",
        "max_bin": max_bin,
        "nthread": 1,
    }


class Fitted:
    """Predictions of the test rows by the first trees of a model, and the columns that these trees ask for.

    `details` goes into the CSV: what a method chose, and why.
    """

    def __init__(
        self, predict: Callable[[int], NDArray[Any]], features: Callable[[int], list[int]] | None = None
    ) -> None:
        self._predict, self._features = predict, features
        self.details: dict[str, Any] = {}

    def classes(self, trees: int) -> NDArray[np.int64]:
        """Return the predicted class, 0 or 1, of every test row."""
        return np.asarray(self._predict(trees), dtype=np.int64)

    def features(self, trees: int) -> list[int] | None:
        """Return the columns used; None where the model has no trees."""
        return None if self._features is None else self._features(trees)


def of_booster(booster: xgb.Booster, problem: Problem) -> Fitted:
    """Wrap a booster of scores above 0 for class 1."""

    def features(trees: int) -> list[int]:
        names = booster.feature_names
        used = booster[: min(trees, booster.num_boosted_rounds())].get_score(importance_type="weight")
        return sorted(names.index(name) if names else int(name[1:]) for name in used)

    def predict(trees: int) -> NDArray[Any]:
        last = min(trees, booster.num_boosted_rounds())  # a budget may end training early
        return booster.predict(problem.test_rows, output_margin=True, iteration_range=(0, last)) > 0

    return Fitted(predict, features)


def fit_targets(problem: Problem, q: NDArray[Any]) -> Fitted:
    """Train on propagated labels with the booster's own logistic loss.

    Parameters
    ----------
    problem : Problem
        The rows.
    q : ndarray of shape (N,)
        The probability of class 1 of every training row; NaN leaves a row out.

    Returns
    -------
    Fitted
        The model.
    """
    known = np.isfinite(q)
    data = problem.binned
    data.set_info(label=np.where(known, q, 0.5), weight=known.astype(np.float32))
    return _train(problem, data)


def fit_objective(problem: Problem, obj: Any) -> Fitted:
    """Train with an objective of the package."""
    data = problem.binned
    data.set_info(label=np.zeros(problem.split.y.size), weight=np.empty(0))
    return _train(problem, data, obj)


def fit_labeled(problem: Problem) -> Fitted:
    """Train on the labelled rows and nothing else, as a user without this package would."""
    rows = problem.labeled
    X, y = problem.split.X[rows], problem.split.y[rows]
    return _train(problem, xgb.QuantileDMatrix(X, label=y, max_bin=problem.max_bin, nthread=1))


def _train(problem: Problem, data: xgb.DMatrix, obj: Any = None) -> Fitted:
    """Train with an objective, or with the built-in logistic loss, and pay for columns where there is a limit."""
    settings = parameters(problem.max_bin) | (LOGISTIC if obj is None else {"base_score": 0})
    callbacks = []
    if problem.limit is not None:
        settings["verbosity"] = 0  # that the budget is used up is no news
        miser = GreedyMiser(problem.limit.costs, obj or LOGISTIC["objective"], data, budget=problem.limit.budget)
        callbacks.append(miser)
    return of_booster(xgb.train(settings, data, max(TREES), obj=obj, callbacks=callbacks), problem)
