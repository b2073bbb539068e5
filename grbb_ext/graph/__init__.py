"""Neighbour graphs: the affinity W, its Laplacian L = D - W, and what is found of it before any label is looked at."""

from grbb_ext.graph._affinity import check_graph, edge_weights, laplacian, normalized_laplacian, reachable_rows
from grbb_ext.graph._knn import KNNGraph, NeighborLists, knn_graph
from grbb_ext.graph._neighbors import NodeIndex, choose_method
from grbb_ext.graph._prepared import GRAPHS, PreparedGraph, RefinedGraph, SharedGraph, TableGraph, prepare_graph

__all__ = [
    "GRAPHS",
    "KNNGraph",
    "NeighborLists",
    "NodeIndex",
    "PreparedGraph",
    "RefinedGraph",
    "SharedGraph",
    "TableGraph",
    "check_graph",
    "choose_method",
    "edge_weights",
    "knn_graph",
    "laplacian",
    "normalized_laplacian",
    "prepare_graph",
    "reachable_rows",
]
