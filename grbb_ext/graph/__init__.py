"""Neighbour graphs: the affinity W, its Laplacian L = D - W and its connected components."""

from grbb_ext.graph._affinity import (
    Weights,
    check_graph,
    check_weights,
    edge_weights,
    laplacian,
    normalized_laplacian,
    reachable_rows,
)
from grbb_ext.graph._knn import NeighborLists, check_neighbors, knn_graph, search_lists
from grbb_ext.graph._neighbors import Method, NodeIndex, nearest_neighbors
from grbb_ext.graph._shared import SharedGraph

__all__ = [
    "Method",
    "NeighborLists",
    "NodeIndex",
    "SharedGraph",
    "Weights",
    "check_graph",
    "check_neighbors",
    "check_weights",
    "edge_weights",
    "knn_graph",
    "laplacian",
    "nearest_neighbors",
    "normalized_laplacian",
    "reachable_rows",
    "search_lists",
]
