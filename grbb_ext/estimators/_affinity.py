"""The graph of a fit: built, cached, shared, or the user's own."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_memory

from grbb_ext.frames import Table
from grbb_ext.graph import SharedGraph, check_graph, graph_columns, knn_graph


def graph_of_fit(table: Table, graph: Any, *, memory: Any, needed: bool, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of :func:`grbb_ext.grbb_objective` that say what the graph is.

    Parameters
    ----------
    table : Table
        All rows of the fit.
    graph : "knn", SharedGraph, sparse matrix, array-like, or anything else
        What the user asked for. What is neither ``"knn"`` nor a matrix is passed on, with the rows that it needs.
    memory : None, str, path or joblib.Memory
        Where graphs are kept.
    needed : bool
        Whether the rule looks at the graph at all.
    settings : dict
        Arguments of :func:`grbb_ext.knn_graph`. There are at most N - 1 neighbours.

    Returns
    -------
    dict
        X, graph, and settings where the graph is still to be built.
    """
    k = settings["n_neighbors"]
    if isinstance(k, Integral):
        settings = {**settings, "n_neighbors": min(k, table.n_rows - 1)}
    if isinstance(graph, SharedGraph):
        return {"X": None, "graph": graph.affinity(table)}
    if graph is None or (isinstance(graph, str) and graph == "knn"):
        return {"X": None, "graph": _knn(table, memory, settings) if needed else None}
    if not (hasattr(graph, "shape") or isinstance(graph, (list, tuple))):
        passed_on = {name: settings[name] for name in ("n_neighbors", "weights", "metric", "scale")}
        return {"X": _columns_as_given(table), "graph": graph, **passed_on}
    n_rows = np.shape(graph)[0] if np.ndim(graph) else 0
    if n_rows != table.n_rows:
        raise ValueError(
            f"graph has {n_rows} rows but fit got {table.n_rows}. In a cross-validation pass "
            "graph=SharedGraph(X, affinity=...), which is cut to the rows of each fold."
        )
    return {"X": None, "graph": check_graph(graph, table.n_rows)}


def _knn(table: Table, memory: Any, settings: dict[str, Any]) -> sp.csr_array:
    matrix, scale = graph_columns(table, settings["scale"])
    build = check_memory(memory).cache(knn_graph, ignore=["n_jobs", "verbose"])
    return build(matrix, **{**settings, "scale": scale})


def _columns_as_given(table: Table) -> Any:
    """Return the rows with categories told from numbers: as text, in an array of objects."""
    if not table.schema.categorical:
        return table.values
    columns = table.values.astype(object)
    for j in table.schema.categorical:
        codes = table.values[:, j]
        columns[:, j] = [None if np.isnan(code) else f"category {code:.0f}" for code in codes]
    return columns
