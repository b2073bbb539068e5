"""The boosted methods of the paper's figures: GBRT, LapGBRT and GRBB, on XGBoost, with or without prices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import lightgbm as lgb
import numpy as np
import scipy.sparse as sp
import xgboost as xgb
from numpy.typing import NDArray

from grbb_ext import Corrected, FeatureCosts, Forest, TableGraph, grbb_objective, knn_graph
from grbb_ext.adapters.lightgbm import train as train_lightgbm
from grbb_ext.adapters.xgboost import GreedyMiser

Library = Literal["xgboost", "lightgbm"]


@dataclass(frozen=True)
class Settings:
    """The hyper-parameters that are searched; a method uses those of its `space`."""

    eta: float = 0.1
    depth: int = 4
    n_neighbors: int = 9
    lam: float = 0.01
    correction: float = 1.0


class Rows:
    """Rows to learn from (y = -1 where there is no label), with graphs and objectives made once.

    Parameters
    ----------
    X : ndarray of shape (N, d)
        All rows.
    y : ndarray of shape (N,)
        0, 1, or -1.
    max_bin : int, default=256
        Of the boosters.
    """

    def __init__(self, X: NDArray[Any], y: NDArray[Any], max_bin: int = 256) -> None:
        self.X, self.y, self.max_bin = X, y, max_bin
        self._made: dict[Any, Any] = {}

    def hide(self, rows: NDArray[np.intp]) -> Rows:
        """Return the same rows without the labels of some. The graphs are shared, as they do not depend on labels."""
        y = self.y.copy()
        y[rows] = -1
        other = Rows(self.X, y, self.max_bin)
        other._made = _GraphsOf(self._made)
        return other

    def graph(self, n_neighbors: int) -> sp.csr_array:
        """Return the paper's graph: binary weights."""
        return self._once(
            ("graph", n_neighbors),
            lambda: knn_graph(self.X, n_neighbors, weights="binary", verbose=False, n_jobs=1),
        )

    def objective(self, method: Method, settings: Settings) -> Any:
        """Return the objective of a method, None for the booster's own loss on the labelled rows."""
        if method.objective is None:
            return None
        make = method.objective
        used = tuple(getattr(settings, name) for name in method.space if name not in ("eta", "depth"))
        return self._once((method.name, used), lambda: make(self, settings))

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]


class _GraphsOf(dict[Any, Any]):
    """Things made for some rows, that share the graphs with another dictionary."""

    def __init__(self, graphs: dict[Any, Any]) -> None:
        super().__init__()
        self._graphs = graphs

    def __contains__(self, key: Any) -> bool:
        return key in self._graphs if key[0] == "graph" else super().__contains__(key)

    def __getitem__(self, key: Any) -> Any:
        return self._graphs[key] if key[0] == "graph" else super().__getitem__(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if key[0] == "graph":
            self._graphs[key] = value
        else:
            super().__setitem__(key, value)


class Method(NamedTuple):
    """A boosted method.

    `space` names the hyper-parameters that are searched for it, and `objective` makes its objective; None trains on the
    labelled rows alone, with the booster's own loss.
    """

    name: str
    space: tuple[str, ...]
    objective: Callable[[Rows, Settings], Any] | None = None


def _laplacian(rows: Rows, settings: Settings) -> Any:
    return grbb_objective(
        None, rows.y, graph=rows.graph(settings.n_neighbors), rule="laplacian", lam=settings.lam, verbose=False
    )


def _paper(rows: Rows, settings: Settings) -> Any:
    graph = rows.graph(settings.n_neighbors)
    return grbb_objective(None, rows.y, graph=graph, preset="paper", lam=settings.lam, verbose=False)


def _corrected(rows: Rows, settings: Settings) -> Any:
    rule = Corrected(lam=settings.lam, correction=settings.correction)
    return grbb_objective(None, rows.y, graph=rows.graph(settings.n_neighbors), rule=rule, verbose=False)


def _default(rows: Rows, settings: Settings) -> Any:
    return grbb_objective(rows.X, rows.y, graph=TableGraph(settings.n_neighbors), verbose=False, n_jobs=1)


_TREES, _GRAPH = ("eta", "depth"), ("n_neighbors",)
GBRT = Method("GBRT", _TREES)
LAP_GBRT = Method("LapGBRT", (*_TREES, *_GRAPH, "lam"), _laplacian)
PAPER = Method("GRBB (paper)", (*_TREES, *_GRAPH, "lam"), _paper)
CORRECTED = Method("GRBB (corrected)", (*_TREES, *_GRAPH, "lam", "correction"), _corrected)
DEFAULT = Method("GRBB (default)", (*_TREES, *_GRAPH), _default)
METHODS = {method.name: method for method in (GBRT, LAP_GBRT, PAPER, CORRECTED, DEFAULT)}


class Boosted:
    """A trained booster, read by its first trees."""

    def __init__(self, booster: xgb.Booster | lgb.Booster) -> None:
        self._forest = Forest.from_booster(booster)

    @property
    def n_trees(self) -> int:
        """Trees that were grown; prices may end training early."""
        return self._forest.n_trees

    def margins(self, X: NDArray[Any], trees: Sequence[int]) -> NDArray[np.float64]:
        """Return the scores of rows after so many trees each, shape (len(trees), rows); above 0 is class 1."""
        scores = np.empty((len(trees), len(X)))
        done, total = 0, np.zeros(len(X))
        base = float(self._forest.base[0])
        for step, wanted in enumerate(trees):
            last = min(wanted, self.n_trees)
            if last > done:
                total = total + self._forest.predict(X, start_tree=done, stop_tree=last) - base
                done = last
            scores[step] = base + total
        return scores

    def features(self, trees: int) -> list[int]:
        """Return the columns that the first trees ask for."""
        forest = self._forest
        read = forest.feature[: forest.tree_start[min(trees, self.n_trees)]]
        return [int(column) for column in np.unique(read[read >= 0])]


def fit(
    rows: Rows,
    method: Method,
    settings: Settings,
    n_trees: int,
    *,
    costs: FeatureCosts | None = None,
    mu: float = 0.0,
    budget: float | None = None,
    library: Library = "xgboost",
) -> Boosted:
    """Train a method.

    Parameters
    ----------
    rows : Rows
        What to learn from.
    method : Method
        One of `METHODS`.
    settings : Settings
        Hyper-parameters.
    n_trees : int
        Trees.
    costs : FeatureCosts or None, default=None
        Prices by column number; needed for `mu` and `budget`.
    mu : float, default=0
        Trade-off between gain and price: with the labelled rows alone this is the Greedy Miser (Xu et al. 2012).
    budget : float or None, default=None
        The most that the model may cost.
    library : {"xgboost", "lightgbm"}, default="xgboost"
        XGBoost with :class:`GreedyMiser`, or LightGBM with CEGB.

    Returns
    -------
    Boosted
        The model.
    """
    obj = rows.objective(method, settings)
    known = rows.y >= 0
    X, y = (rows.X[known], rows.y[known]) if obj is None else (rows.X, None)
    if library == "lightgbm":
        return Boosted(_lightgbm(X, y, obj, settings, n_trees, rows.max_bin, costs, mu, budget))
    data = xgb.QuantileDMatrix(X, label=y, max_bin=rows.max_bin, nthread=1)
    params: dict[str, Any] = {
        "max_depth": settings.depth,
        "eta": settings.eta,
        "min_child_weight": 0,  # a class may have one label
        "max_bin": rows.max_bin,
        "nthread": 1,
        "base_score": 0.5 if obj is None else 0,
        "verbosity": 0,  # that nothing is worth its price any more is no news
    }
    if obj is None:
        params["objective"] = "binary:logistic"
    callbacks = []
    if mu > 0 or budget is not None:
        assert costs is not None
        callbacks.append(GreedyMiser(costs, obj or params["objective"], data, mu=mu, budget=budget))
    return Boosted(xgb.train(params, data, n_trees, obj=obj, callbacks=callbacks))


def _lightgbm(
    X: NDArray[Any],
    y: NDArray[Any] | None,
    obj: Any,
    settings: Settings,
    n_trees: int,
    max_bin: int,
    costs: FeatureCosts | None,
    mu: float,
    budget: float | None,
) -> lgb.Booster:
    params = {
        "objective": "binary" if obj is None else obj,
        "boost_from_average": False,
        "num_leaves": 2**settings.depth,
        "max_depth": settings.depth,
        "learning_rate": settings.eta,
        "min_data_in_leaf": 1,
        "min_data_in_bin": 1,
        "max_bin": max_bin,
        "num_threads": 1,
        "verbosity": -1,
    }
    booster: lgb.Booster = train_lightgbm(params, lgb.Dataset(X, y), n_trees, costs=costs, mu=mu, budget=budget)
    return booster
