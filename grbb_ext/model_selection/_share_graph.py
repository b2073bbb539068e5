"""The graph of all rows, for an estimator that will be fitted to parts of them."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from grbb_ext.graph import SharedGraph
from grbb_ext.objective import Recipe


def share_graph(estimator: Any, X: Any) -> Any:
    """Return a copy of an estimator whose graph is built now, over all rows, and cut to the rows of each fit.

    A search of 20 settings in 5 folds fits 100 models; each would build the same neighbour graph again. The settings of
    the graph are the estimator's.

    Parameters
    ----------
    estimator : GRBBClassifier or GRBBRegressor
        What to fit; it is not changed. A refined graph is refined in each fit, from its own labels alone.
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
    >>> from grbb_ext import GRBBClassifier, KNNGraph
    >>> share_graph(GRBBClassifier(graph=KNNGraph(n_neighbors=2)), np.arange(12.0).reshape(6, 2)).graph
    SharedGraph(6 rows, 14 edges)
    """
    if isinstance(estimator, type) or not all(hasattr(estimator, name) for name in ("graph", "teacher", "rule")):
        raise TypeError(f"estimator must be GRBBClassifier(...) or GRBBRegressor(...), got {estimator!r}.")
    model = clone(estimator)
    recipe = Recipe.read(graph=model.graph, teacher=model.teacher, propagation=model.propagation, rule=model.rule)
    if not recipe.needs_graph or isinstance(recipe.graph, SharedGraph):
        return model
    graph = SharedGraph(
        X,
        recipe.graph,
        categorical_features=model.categorical_features,
        n_jobs=model.n_jobs,
        verbose=bool(model.verbose),
    )
    return model.set_params(graph=graph)
