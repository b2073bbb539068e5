"""One trial's rows, with what several methods need made once."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
import xgboost as xgb
from numpy.typing import NDArray

from benchmarks.splits import Split
from grbb_ext import FeatureCosts, knn_graph
from grbb_ext.table import DistanceSpace, read_table

Made = TypeVar("Made")
N_NEIGHBORS = 9
#: XGBoost's default number of bins, and a number that is four times faster on wide sets (docs/benchmarks.md).
BINS, BINS_WIDE, WIDE = 256, 64, 128


def bins(n_columns: int) -> int:
    """Return the number of bins for a set with so many columns, not counting irrelevant ones."""
    return BINS if n_columns <= WIDE else BINS_WIDE


@dataclass(frozen=True)
class Limit:
    """Prices of the columns, and the most that a model may spend on them."""

    costs: FeatureCosts
    budget: float


class Problem:
    """A split, and its graph, scaled columns and binned rows, each made when first asked for.

    With `limit`, boosters pay for columns; the graph is a thing of training and uses all of them.

    What is shared is timed, and its time is charged to every method that uses it (see :meth:`timed`).
    """

    def __init__(self, split: Split, max_bin: int = BINS, limit: Limit | None = None) -> None:
        self.split, self.max_bin, self.limit = split, max_bin, limit
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
            scaled = np.asarray(DistanceSpace.fit_transform(read_table(X))[1])
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
