"""The graph of a fit: built, cached, shared, or the user's own."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.validation import check_memory

from grbb_ext.graph import SharedGraph, check_graph, knn_graph
from grbb_ext.table import Table, graph_columns
from grbb_ext.teacher import RefinedGraph, make_basis


def graph_of_fit(
    table: Table, graph: Any, *, memory: Any, needed: bool, random_state: int, settings: dict[str, Any]
) -> dict[str, Any]:
    """Return the arguments of :func:`grbb_ext.grbb_objective` that say what the graph is.

    Parameters
    ----------
    table : Table
        All rows of the fit.
    graph : "knn", RefinedGraph, SharedGraph, sparse matrix or array-like
        What the user asked for.
    memory : None, str, path or joblib.Memory
        Where neighbours are kept.
    needed : bool
        Whether the rule looks at the graph at all.
    random_state : int
        Seed of the trees of a refined graph.
    settings : dict
        Arguments of :func:`grbb_ext.knn_graph`. There are at most N - 1 neighbours.

    Returns
    -------
    dict
        X, for the guard, and graph.
    """
    if not needed and isinstance(graph, str):
        return {"X": None, "graph": None}
    X = _columns_as_given(table)
    k = settings["n_neighbors"]
    if isinstance(k, Integral):
        settings = {**settings, "n_neighbors": min(k, table.n_rows - 1)}
    if isinstance(graph, SharedGraph):
        return {"X": X, "graph": graph.affinity(table)}
    keep = check_memory(memory).cache
    if isinstance(graph, str):
        matrix, scale = graph_columns(table, settings["scale"])
        build = keep(knn_graph, ignore=["n_jobs", "verbose"])
        return {"X": X, "graph": build(matrix, **{**settings, "scale": scale})}
    if isinstance(graph, RefinedGraph):
        search = keep(make_basis, ignore=["n_jobs", "verbose"])
        return {"X": X, "graph": search(X, graph, **settings, random_state=random_state, warn_missing=False)}
    n_rows = np.shape(graph)[0] if np.ndim(graph) else 0
    if n_rows != table.n_rows:
        raise ValueError(
            f"graph has {n_rows} rows but fit got {table.n_rows}. In a cross-validation pass "
            "graph=SharedGraph(X, affinity=...), which is cut to the rows of each fold."
        )
    return {"X": X, "graph": check_graph(graph, table.n_rows)}


def _columns_as_given(table: Table) -> Any:
    """Return the rows with categories told from numbers: as text, in an array of objects."""
    if not table.schema.categorical:
        return table.values
    columns = table.values.astype(object)
    for j in table.schema.categorical:
        codes = table.values[:, j]
        columns[:, j] = [None if np.isnan(code) else f"category {code:.0f}" for code in codes]
    return columns
