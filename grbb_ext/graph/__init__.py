"""Neighbour graphs: the affinity W, its Laplacian L = D - W and its connected components."""

from grbb_ext.graph._check import check_graph
from grbb_ext.graph._columns import GraphWarning
from grbb_ext.graph._knn import knn_graph
from grbb_ext.graph._laplacian import laplacian, normalized_laplacian, reachable_rows
from grbb_ext.graph._shared import SharedGraph
from grbb_ext.graph._table_columns import graph_columns

__all__ = [
    "GraphWarning",
    "SharedGraph",
    "check_graph",
    "graph_columns",
    "knn_graph",
    "laplacian",
    "normalized_laplacian",
    "reachable_rows",
]
