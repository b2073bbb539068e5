"""Rows that are no nodes: each hangs on the nodes that would be its neighbours."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext._progress import progress
from grbb_ext.graph._columns import Matrix
from grbb_ext.graph._lists import NeighborLists
from grbb_ext.graph._neighbors import NodeIndex
from grbb_ext.graph._weights import Weights, edge_weights
from grbb_ext.refinement._trees import TargetTrees, closer_where_shared, n_threads, shares

_ROWS_PER_BLOCK = 16_384
Index = NDArray[np.intp]


class Hangers:
    r"""Weights of the nodes for any row, as if the row were joined to the refined graph.

    A row finds its candidates among the nodes by distance, and weighs k of them as the plain graph would and k as the
    re-ranked one would (:func:`grbb_ext.graph._weights.edge_weights`); the mean of both, divided by its sum, is its
    row of Z.

    Parameters
    ----------
    index : NodeIndex
        Finds candidates.
    plain, ranked : NeighborLists
        Lists of the nodes, by distance and re-ranked: they tell the radius of each node.
    trees : TargetTrees
        The trees of the refinement.
    node_leaves : ndarray of int of shape (T, M)
        The leaves of the nodes.
    n_neighbors : int
        k.
    weights : {"self-tuning", "binary", "heat"}
        The formula of the weights.
    """

    def __init__(
        self,
        index: NodeIndex,
        plain: NeighborLists,
        ranked: NeighborLists,
        trees: TargetTrees,
        node_leaves: NDArray[np.integer],
        n_neighbors: int,
        weights: Weights,
    ) -> None:
        self._index, self._trees, self._node_leaves = index, trees, node_leaves
        self._k, self._weights = n_neighbors, weights
        self._radii = [lists.radius(n_neighbors) for lists in (plain, ranked)]
        self._bandwidths = [float(np.median(radius)) if weights == "heat" else None for radius in self._radii]

    def weigh(self, points: Matrix, X: Matrix) -> tuple[Index, NDArray[np.float64]]:
        """Return the candidates of some rows, of shape (R, C), and their weights, with sum 1 in each row.

        Parameters
        ----------
        points : ndarray or csr_array of shape (R, d)
            Columns for the distances.
        X : ndarray or csr_array of shape (R, c)
            Columns for the trees.
        """
        nodes, distance = self._index.search(points)
        squared = distance**2
        leaves = self._trees.leaves(X)
        ranked = closer_where_shared(squared, shares(leaves, self._node_leaves, nodes))
        weight = np.zeros(nodes.shape)
        for lengths, radius, bandwidth in zip((squared, ranked), self._radii, self._bandwidths, strict=True):
            chosen = np.argsort(lengths, axis=1, kind="stable")[:, : self._k]
            length = np.take_along_axis(lengths, chosen, axis=1)
            own = np.broadcast_to(np.sqrt(length[:, -1:]), length.shape)
            theirs = radius[np.take_along_axis(nodes, chosen, axis=1)]
            part = edge_weights(self._weights, length, own, theirs, bandwidth)
            np.put_along_axis(weight, chosen, np.take_along_axis(weight, chosen, axis=1) + part, axis=1)
        return nodes, weight / weight.sum(axis=1, keepdims=True)


def hang(
    hangers: Hangers, points: Matrix, X: Matrix, nodes: Index, n_jobs: int | None = None, verbose: bool = False
) -> sp.csr_array:
    """Return Z of all rows, block by block: a node has weight 1 on itself.

    Parameters
    ----------
    hangers : Hangers
        The nodes.
    points, X : ndarray or csr_array
        Columns of all N rows, for the distances and for the trees.
    nodes : ndarray of int of shape (M,)
        The rows that are nodes.
    n_jobs : int or None, default=None
        Threads; None takes all cores.
    verbose : bool, default=False
        Draw a progress bar if it takes more than a few seconds.

    Returns
    -------
    csr_array of float32 of shape (N, M)
        The weights.
    """
    n_rows = points.shape[0]
    number = np.full(n_rows, -1, dtype=np.int32)
    number[nodes] = np.arange(nodes.size)

    def block_of(start: int) -> tuple[Index, NDArray[np.int32], NDArray[np.float32]]:
        block = slice(start, start + _ROWS_PER_BLOCK)
        found, weight = hangers.weigh(points[block], X[block])
        own = number[block]
        is_node = own >= 0
        found[is_node, 0] = own[is_node]
        weight[is_node] = 0.0
        weight[is_node, 0] = 1.0
        kept = weight > 0
        return kept.sum(axis=1), found[kept].astype(np.int32), weight[kept].astype(np.float32)

    starts = range(0, n_rows, _ROWS_PER_BLOCK)
    with ThreadPoolExecutor(n_threads(n_jobs)) as pool:
        blocks = list(progress(pool.map(block_of, starts), len(starts), "rows on nodes", verbose))
    counts, indices, data = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    start_of = np.concatenate([[0], np.cumsum(counts)])
    kind = np.int32 if start_of[-1] <= np.iinfo(np.int32).max else np.int64
    return sp.csr_array((data, indices.astype(kind, copy=False), start_of.astype(kind)), shape=(n_rows, nodes.size))
