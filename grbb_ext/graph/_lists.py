"""Neighbour lists: one search, from which graphs of any smaller number of neighbours are made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext.graph._columns import Matrix
from grbb_ext.graph._duplicates import distinct_rows, spread_edges
from grbb_ext.graph._neighbors import Index, Method, nearest_neighbors
from grbb_ext.graph._weights import Weights, edge_weights


@dataclass(frozen=True)
class NeighborLists:
    """The nearest rows of every distinct row.

    Attributes
    ----------
    neighbors : ndarray of shape (U, k)
        Distinct rows, nearest first; -1 where there are fewer than k.
    squared : ndarray of shape (U, k)
        Squared distances; infinite where there is no neighbour.
    inverse : ndarray of shape (N,)
        The distinct row that each row equals.
    recall : float
        Share of the true neighbours that were found, estimated on a sample; 1 where the search was exact.

    Examples
    --------
    >>> lists = search_lists(np.array([[0.0], [1.0], [3.0], [0.0]]), 2, "euclidean", "brute", None, False)
    >>> lists.neighbors.tolist(), lists.squared.tolist(), lists.inverse.tolist()
    ([[1, 2], [0, 2], [1, 0]], [[1.0, 9.0], [1.0, 4.0], [4.0, 9.0]], [0, 1, 2, 0])
    >>> part = lists.subset(np.array([2, 3]))
    >>> part.neighbors.tolist(), part.squared.tolist(), part.inverse.tolist()
    ([[1, -1], [0, -1]], [[9.0, inf], [9.0, inf]], [1, 0])
    """

    neighbors: Index
    squared: NDArray[np.float64]
    inverse: Index
    recall: float = 1.0

    def subset(self, rows: Index) -> NeighborLists:
        """Cut the lists to some of the rows, which are numbered anew in the order given."""
        kept, inverse = np.unique(self.inverse[rows], return_inverse=True)
        # The last entry is the target of -1.
        renumbered = np.full(self.neighbors.shape[0] + 1, -1, dtype=np.intp)
        renumbered[kept] = np.arange(kept.size)
        neighbors = renumbered[self.neighbors[kept]]
        squared = np.where(neighbors >= 0, self.squared[kept], np.inf)
        order = np.argsort(neighbors < 0, axis=1, kind="stable")
        return NeighborLists(
            np.take_along_axis(neighbors, order, axis=1),
            np.take_along_axis(squared, order, axis=1),
            inverse,
            self.recall,
        )

    def graph(self, n_neighbors: int, weights: Weights = "self-tuning", bandwidth: float | None = None) -> sp.csr_array:
        """Join two rows if either is among the other's first `n_neighbors`.

        Returns
        -------
        scipy.sparse.csr_array of shape (N, N)
            Symmetric, non-negative, zero diagonal.
        """
        n_distinct, n_rows = self.neighbors.shape[0], self.inverse.size
        k = min(n_neighbors, self.neighbors.shape[1])
        present = self.neighbors[:, :k] >= 0
        source = np.repeat(np.arange(n_distinct), present.sum(axis=1))
        target, squared = self.neighbors[:, :k][present], self.squared[:, :k][present]
        distance = np.sqrt(squared)
        radius = self._radius_of_distinct(k)
        if n_distinct < n_rows:
            source, target, distance = spread_edges((source, target, distance), self.inverse, n_neighbors)
            radius = radius[self.inverse]
        value = edge_weights(weights, distance**2, radius[source], radius[target], bandwidth)
        directed = sp.csr_array(sp.coo_array((value, (source, target)), shape=(n_rows, n_rows)))
        # Two copies can meet along several edges, which the conversion adds up; the largest single weight is 1.
        directed.data = np.minimum(directed.data, 1.0)
        W = sp.csr_array(directed.maximum(directed.T))
        W.sort_indices()
        return W

    def radius(self, n_neighbors: int) -> NDArray[np.float64]:
        """Return the distance of every row, of shape (N,), to the last of its first `n_neighbors`."""
        return self._radius_of_distinct(min(n_neighbors, self.neighbors.shape[1]))[self.inverse]

    def _radius_of_distinct(self, k: int) -> NDArray[np.float64]:
        squared = self.squared[:, :k]
        return np.asarray(np.sqrt(np.where(np.isfinite(squared), squared, 0.0).max(axis=1, initial=0.0)))


def search_lists(
    columns: Matrix, n_neighbors: int, metric: str, method: Method, n_jobs: int | None, verbose: bool
) -> NeighborLists:
    """Find the nearest neighbours among the distinct rows.

    Parameters
    ----------
    columns : ndarray or csr_array of shape (N, d)
        Finite columns, as :func:`prepare_columns` makes them.
    n_neighbors : int
        k; fewer where there are not as many distinct rows.
    metric, method, n_jobs, verbose
        As in :func:`knn_graph`.

    Returns
    -------
    NeighborLists
        Lists of up to k neighbours.
    """
    first, inverse = distinct_rows(columns)
    k = min(n_neighbors, first.size - 1)
    if k == 0:  # all rows are equal
        return NeighborLists(np.empty((1, 0), dtype=np.intp), np.empty((1, 0)), inverse)
    # A copy of all rows is made only where some of them are equal.
    distinct = columns if first.size == columns.shape[0] else columns[first]
    neighbors, distances, recall = nearest_neighbors(distinct, k, metric, method, n_jobs, verbose)
    return NeighborLists(neighbors, distances**2, inverse, recall)


def check_neighbors(n_neighbors: int, columns: Matrix) -> None:
    """Raise unless every row can have so many neighbours."""
    n_rows = columns.shape[0]
    if isinstance(n_neighbors, bool) or not isinstance(n_neighbors, int | np.integer) or n_neighbors < 1:
        raise ValueError(f"n_neighbors must be a positive integer, got {n_neighbors!r}.")
    if n_neighbors >= n_rows:
        raise ValueError(f"n_neighbors={n_neighbors} needs at least {n_neighbors + 1} rows, X has {n_rows}.")
    if columns.shape[1] == 0:
        raise ValueError("X has no columns, so rows have no neighbours. Pass at least one column, or graph=.")
