"""The graph of a fit: built, cached, shared, or the user's own."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import scipy.sparse as sp
from sklearn.utils.validation import check_memory

from grbb_ext.frames import Table
from grbb_ext.graph import SharedGraph, check_graph, graph_columns, knn_graph


def graph_of_fit(
    table: Table, graph: Any, *, n_neighbors: Any, memory: Any, needed: bool, settings: dict[str, Any]
) -> tuple[Any, Any]:
    """Return what :func:`grbb_ext.grbb_objective` gets as X and graph.

    Parameters
    ----------
    table : Table
        All rows of the fit.
    graph : "knn", other str, SharedGraph, sparse matrix or array-like
        What the user asked for. A name other than ``"knn"`` is passed on.
    n_neighbors : int
        Neighbours; at most one less than there are rows.
    memory : None, str, path or joblib.Memory
        Where graphs are kept.
    needed : bool
        Whether the rule looks at the graph at all.
    settings : dict
        Of :func:`grbb_ext.knn_graph`.

    Returns
    -------
    X, graph
        One of them None.
    """
    if isinstance(graph, SharedGraph):
        return None, graph.affinity(table)
    if graph is None or (isinstance(graph, str) and graph == "knn"):
        return None, _knn(table, n_neighbors, memory, settings) if needed else None
    if isinstance(graph, str):
        return graph_columns(table, settings["scale"])[0], graph
    shape = getattr(graph, "shape", None)
    if shape is not None and tuple(shape) != (table.n_rows, table.n_rows):
        raise ValueError(
            f"graph has shape {tuple(shape)} but fit got {table.n_rows} rows. In a cross-validation pass "
            "graph=SharedGraph(X, affinity=...), which is cut to the rows of each fold."
        )
    return None, check_graph(graph, table.n_rows)


def _knn(table: Table, n_neighbors: Any, memory: Any, settings: dict[str, Any]) -> sp.csr_array:
    matrix, scale = graph_columns(table, settings["scale"])
    k = min(n_neighbors, table.n_rows - 1) if isinstance(n_neighbors, Integral) else n_neighbors
    build = check_memory(memory).cache(knn_graph, ignore=["n_jobs", "verbose"])
    return build(matrix, k, **{**settings, "scale": scale})
