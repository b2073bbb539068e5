"""One trial's rows, with what several methods need made once, and the booster that all methods share."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
import xgboost as xgb
from numpy.typing import NDArray

from benchmarks.splits import Split
from grbb_ext import knn_graph
from grbb_ext.table import DistanceSpace, read_table

Made = TypeVar("Made")
N_NEIGHBORS = 9
#: XGBoost's default number of bins, and a number that is four times faster on wide sets (docs/benchmarks.md).
BINS, BINS_WIDE, WIDE = 256, 64, 128


def bins(n_columns: int) -> int:
    """Return the number of bins for a set with so many columns, not counting irrelevant ones."""
    return BINS if n_columns <= WIDE else BINS_WIDE


class Problem:
    """A split, and its graph, scaled columns and binned rows, each made when first asked for.

    What is shared is timed, and its time is charged to every method that uses it (see :meth:`timed`).
    """

    def __init__(self, split: Split, max_bin: int = BINS) -> None:
        self.split, self.max_bin = split, max_bin
        self._made: dict[str, Any] = {}
        self._seconds: dict[str, float] = {}
        self._used: set[str] = set()
        self._building = 0.0

    @property
    def labeled(self) -> NDArray[np.intp]:
        """The labelled rows."""
        return np.flatnonzero(self.split.y >= 0)

    @property
    def graph(self) -> sp.csr_array:
        """The plain graph: 9 nearest neighbours in the columns as :func:`knn_graph` scales them."""
        return self._shared("graph", lambda: knn_graph(self.split.X, N_NEIGHBORS, verbose=False, n_jobs=1))

    @property
    def columns(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Training and test rows without missing values, on the scale of the plain graph."""

        def make() -> tuple[NDArray[Any], NDArray[Any]]:
            medians = np.nan_to_num(np.nanmedian(self.split.X, axis=0))
            X, test = (np.where(np.isnan(rows), medians, rows) for rows in (self.split.X, self.split.X_test))
            table = read_table(X)
            scaled = np.asarray(DistanceSpace.fit(table)(table))
            if np.array_equal(scaled, X):
                return X, test
            deviation = X.std(axis=0, dtype=np.float64)
            return scaled, test / np.where(deviation > 0, deviation, 1.0)

        return self._shared("columns", make)

    @property
    def binned(self) -> xgb.QuantileDMatrix:
        """All training rows in XGBoost's bins, without labels."""
        return self._shared("binned", lambda: xgb.QuantileDMatrix(self.split.X, max_bin=self.max_bin, nthread=1))

    @property
    def test_rows(self) -> xgb.DMatrix:
        """The test rows for XGBoost."""
        return self._shared("test rows", lambda: xgb.DMatrix(self.split.X_test, nthread=1))

    def timed(self, method: Callable[[Problem], Made]) -> tuple[Made, float]:
        """Run a method and return its result and the seconds that it would take alone."""
        self._used, self._building = set(), 0.0
        start = time.perf_counter()
        result = method(self)
        seconds = time.perf_counter() - start
        return result, seconds - self._building + sum(self._seconds[name] for name in self._used)

    def _shared(self, name: str, make: Callable[[], Made]) -> Made:
        if name not in self._made:
            start = time.perf_counter()
            self._made[name] = make()
            self._seconds[name] = time.perf_counter() - start
            self._building += self._seconds[name]
        self._used.add(name)
        made: Made = self._made[name]
        return made


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
        used = booster[:trees].get_score(importance_type="weight")
        return sorted(names.index(name) if names else int(name[1:]) for name in used)

    def predict(trees: int) -> NDArray[Any]:
        return booster.predict(problem.test_rows, output_margin=True, iteration_range=(0, trees)) > 0

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
    """Train with an objective, or with the built-in logistic loss."""
    settings = parameters(problem.max_bin) | (LOGISTIC if obj is None else {"base_score": 0})
    return of_booster(xgb.train(settings, data, max(TREES), obj=obj), problem)
