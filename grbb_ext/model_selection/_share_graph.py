"""The graph of all rows, for an estimator that will be fitted to parts of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from grbb_ext.graph import SharedGraph
from grbb_ext.objective import choose_graph, choose_rule


def share_graph(estimator: Any, X: Any) -> Any:
    """Return a copy of an estimator whose graph is built now, over all rows, and cut to the rows of each fit.

    A search of 20 settings in 5 folds fits 100 models; each would build the same neighbour graph again. The settings of
    the graph are the estimator's.

    Parameters
    ----------
    estimator : GRBBClassifier or GRBBRegressor
        With ``graph="knn"``, or with none and a rule or preset that takes it; with any other graph its copy has the
        same, and a refined one is refined in each fit from its own labels. It is not changed.
    X : array-like, sparse matrix or frame of shape (N, d)
        All rows that will be given to fit, in whole or in part.

    Returns
    -------
    estimator
        With ``graph=SharedGraph(...)``.

    Notes
    -----
    In a fold, the shared graph is not the graph that would be built from the fold alone. Its edges are those of the
    graph of all rows between rows of the fold: the held-out rows have had a say in who is whose neighbour, and a row
    loses the neighbours that are held out. No label has had a say. This is the graph of the model that is deployed in
    the end, cut, and in transduction the rows to predict are there from the start. With
    :class:`SemiSupervisedSplit` only labelled rows are held out, a few of very many. A fit to all rows is equal with
    and without sharing.

    Examples
    --------
    >>> import numpy as np
    >>> from grbb_ext import GRBBClassifier
    >>> share_graph(GRBBClassifier(graph="knn", n_neighbors=2), np.arange(12.0).reshape(6, 2)).graph
    SharedGraph(6 rows, 14 edges)
    """
    missing = [name for name in ("graph", "n_neighbors", "preset", "rule") if not hasattr(estimator, name)]
    if missing or isinstance(estimator, type):
        raise TypeError(f"estimator must be GRBBClassifier(...) or GRBBRegressor(...), got {estimator!r}.")
    model = clone(estimator)
    rule, *_ = choose_rule(model.preset, model.rule, model.propagation, model.hessian)
    asked = choose_graph(model.graph, model.preset, rule)
    if not (isinstance(asked, str) and asked == "knn"):
        return model
    graph = SharedGraph(
        X,
        model.n_neighbors,
        weights=model.weights or ("binary" if model.preset == "paper" else "self-tuning"),
        metric=model.metric,
        scale=model.scale,
        categorical_features=_positions(model.categorical_features, X),
        n_jobs=model.n_jobs,
        verbose=bool(model.verbose),
    )
    return model.set_params(graph=graph)


def _positions(columns: Any, X: Any) -> list[int] | None:
    """Return the positions of columns that are listed by name, by position or by a mask."""
    if columns is None or isinstance(columns, str):  # "from_dtype"
        return None
    listed = np.asarray(columns)
    if listed.dtype.kind == "b":
        return [int(j) for j in np.flatnonzero(listed)]
    names = [str(name) for name in getattr(X, "columns", ())]
    unknown = [name for name in listed.tolist() if isinstance(name, str) and name not in names]
    if unknown:
        raise ValueError(f"categorical_features names {unknown}, but X has no such columns.")
    return [names.index(entry) if isinstance(entry, str) else int(entry) for entry in listed.tolist()]
