"""The symmetric nearest-neighbour graph, made from neighbour lists of the distinct rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext._options import Spec, one_of, positive_int, positive_number
from grbb_ext._progress import n_threads
from grbb_ext.graph._affinity import Weights, edge_weights
from grbb_ext.graph._neighbors import Index, Method, nearest_neighbors
from grbb_ext.table import DistanceSpace, Matrix, Scale, Table, read_table, row_keys


def distinct_rows(X: Matrix) -> tuple[Index, Index]:
    """Find the distinct rows of X.

    Returns
    -------
    first : ndarray of shape (U,)
        Where each distinct row stands first, ascending.
    inverse : ndarray of shape (N,)
        ``X[first[inverse]]`` equals X.

    Examples
    --------
    >>> first, inverse = distinct_rows(np.array([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0], [-0.0, 0.0]]))
    >>> first.tolist(), inverse.tolist()
    ([0, 1], [0, 1, 0, 1])
    """
    return _first_and_inverse(np.array(row_keys(Table(X))))


def _first_and_inverse(keys: NDArray[Any]) -> tuple[Index, Index]:
    """Return where distinct keys stand first, and the number of each key in that order: see :func:`distinct_rows`."""
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return np.sort(first), np.argsort(np.argsort(first))[inverse]


def spread_edges(
    edges: tuple[Index, Index, NDArray[np.float64]], inverse: Index, n_neighbors: int
) -> tuple[Index, Index, NDArray[np.float64]]:
    """Turn edges between distinct rows into edges between all rows.

    Copy r of row u is joined to copy r (modulo their numbers) of its neighbour v, so every copy keeps u's neighbours
    and the number of edges grows with the rows, not with their squares. The copies themselves form a ring in
    which each is joined, at distance 0, to the next ``n_neighbors / 2``: up to ``n_neighbors + 1`` copies a clique.
    Copies count in a random order.

    Parameters
    ----------
    edges : tuple of (rows, columns, distances)
        Directed edges between distinct rows.
    inverse : ndarray of shape (N,)
        The distinct row that each row equals.
    n_neighbors : int
        Neighbours per row.

    Returns
    -------
    tuple of (rows, columns, distances)
        Directed edges between the N rows.

    Examples
    --------
    >>> one_edge = np.array([0]), np.array([1]), np.array([2.0])
    >>> rows, columns, distances = spread_edges(one_edge, np.array([0, 0, 1]), n_neighbors=2)
    >>> list(zip(rows.tolist(), columns.tolist(), distances.tolist()))
    [(0, 2, 2.0), (1, 2, 2.0), (0, 1, 0.0), (1, 0, 0.0)]
    """
    u, v, distance = edges
    # In a random order: rows often stand sorted by class, and equal ones would say so by who is next to whom.
    shuffled = np.random.default_rng(0).permutation(inverse.size)
    members = shuffled[np.argsort(inverse[shuffled], kind="stable")]
    copies = np.bincount(inverse)
    start = np.cumsum(copies) - copies

    repeats = np.maximum(copies[u], copies[v])
    edge = np.repeat(np.arange(u.size), repeats)
    copy = np.arange(edge.size) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    rows = members[start[u[edge]] + copy % copies[u[edge]]]
    columns = members[start[v[edge]] + copy % copies[v[edge]]]

    several = members[copies[inverse[members]] > 1]
    group = inverse[several]
    position = np.arange(several.size) - np.searchsorted(group, group)
    steps = np.arange(1, (n_neighbors + 1) // 2 + 1)[:, None]
    following = members[start[group] + (position + steps) % copies[group]]
    step, place = np.nonzero(following != several)
    rows = np.concatenate([rows, several[place]])
    columns = np.concatenate([columns, following[step, place]])
    return rows, columns, np.concatenate([distance[edge], np.zeros(place.size)])


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
    >>> lists = KNNGraph(n_neighbors=2).search(np.array([[0.0], [1.0], [3.0], [0.0]]))
    >>> lists.neighbors.tolist(), lists.squared.tolist(), lists.inverse.tolist()
    ([[1, 2], [0, 2], [1, 0]], [[1.0, 9.0], [1.0, 4.0], [4.0, 9.0]], [0, 1, 2, 0])
    >>> part = lists.subset(np.array([2, 3]))
    >>> part.neighbors.tolist(), part.squared.tolist(), part.inverse.tolist()
    ([[1, -1], [0, -1]], [[9.0, inf], [9.0, inf]], [0, 1])
    """

    neighbors: Index
    squared: NDArray[np.float64]
    inverse: Index
    recall: float = 1.0

    def subset(self, rows: Index) -> NeighborLists:
        """Cut the lists to some of the rows, which are numbered anew in the order given."""
        first, inverse = _first_and_inverse(self.inverse[rows])
        kept = self.inverse[rows[first]]
        # The last entry is the target of -1.
        renumbered = np.full(self.neighbors.shape[0] + 1, -1, dtype=np.intp)
        renumbered[kept] = np.arange(kept.size)
        neighbors = renumbered[self.neighbors[kept]]
        squared = np.where(neighbors >= 0, self.squared[kept], np.inf)
        return NeighborLists(neighbors, squared, inverse, self.recall).sorted_by(neighbors < 0)

    def sorted_by(self, keys: NDArray[Any]) -> NeighborLists:
        """Sort each list by keys of shape (U, k); equal ones keep their order."""
        order = np.argsort(keys, axis=1, kind="stable")
        neighbors = np.take_along_axis(self.neighbors, order, axis=1)
        return replace(self, neighbors=neighbors, squared=np.take_along_axis(self.squared, order, axis=1))

    def radius(self, n_neighbors: int) -> NDArray[np.float64]:
        """Return the distance of every row, of shape (N,), to the last of its first `n_neighbors`."""
        squared = self.squared[:, :n_neighbors]
        radius = np.sqrt(np.where(np.isfinite(squared), squared, 0.0).max(axis=1, initial=0.0))
        return np.asarray(radius[self.inverse])


@dataclass(frozen=True)
class KNNGraph(Spec):
    """Options of the nearest-neighbour graph: ``grbb_objective(X, y, graph=KNNGraph(n_neighbors=15))``.

    ``graph="knn"`` is short for ``graph=KNNGraph()``.

    Parameters
    ----------
    n_neighbors : int, default=9
        Neighbours per row (the paper's synthetic experiment uses 9).
    weights : {"self-tuning", "binary", "heat"}, default="self-tuning"
        exp(-d^2 / (r_i r_j)) with r the distance to the k-th neighbour; 1; or exp(-d^2 / bandwidth^2).
    metric : str, default="euclidean"
        A metric of :class:`sklearn.neighbors.NearestNeighbors`.
    method : {"auto", "brute", "tree", "faiss"}, default="auto"
        Search. ``"auto"`` is exact up to 8,000 rows, then approximate if faiss is installed
        (``pip install 'grbb_ext[ann]'``), else still exact, in quadratic time.
    scale : {"auto", "standard"} or None, default="auto"
        ``"standard"`` divides each column by its standard deviation, None leaves columns unchanged; ``"auto"`` divides
        unless the columns share a unit, as pixels do (the widest range is at most 4 times the lower quartile).
    bandwidth : float or None, default=None
        Length of ``weights="heat"``; None takes the median distance to the k-th neighbour.

    Examples
    --------
    >>> KNNGraph(n_neighbors=5).replace(weights="binary")
    KNNGraph(n_neighbors=5, weights='binary', metric='euclidean', method='auto', scale='auto', bandwidth=None)
    """

    n_neighbors: int = 9
    weights: Weights = "self-tuning"
    metric: str = "euclidean"
    method: Method = "auto"
    scale: Scale = "auto"
    bandwidth: float | None = None

    def __post_init__(self) -> None:
        positive_int(self.n_neighbors, "n_neighbors")
        one_of(self.weights, get_args(Weights), "weights")
        one_of(self.method, get_args(Method), "method")
        one_of(self.scale, ("auto", "standard", None), "scale")
        if self.bandwidth is not None:
            positive_number(self.bandwidth, "bandwidth")

    @property
    def n_found(self) -> int:
        """How many neighbours of each row are searched."""
        return int(self.n_neighbors)

    def search(self, points: Matrix, *, n_jobs: int | None = None, verbose: bool = False) -> NeighborLists:
        """Find the nearest neighbours of every row among the distinct ones; fewer where there are not as many.

        Parameters
        ----------
        points : ndarray or csr_array of shape (N, d)
            Finite columns, as :class:`~grbb_ext.table.DistanceSpace` makes them.
        n_jobs, verbose
            As in :func:`knn_graph`.
        """
        first, inverse = distinct_rows(points)
        k = min(self.n_found, first.size - 1)
        if k == 0:  # all rows are equal
            return NeighborLists(np.empty((1, 0), dtype=np.intp), np.empty((1, 0)), inverse)
        # A copy of all rows is made only where some of them are equal.
        distinct = points if first.size == points.shape[0] else points[first]
        neighbors, distances, recall = nearest_neighbors(distinct, k, self.metric, self.method, n_jobs, verbose)
        return NeighborLists(neighbors, distances**2, inverse, recall)

    def affinity(self, lists: NeighborLists) -> sp.csr_array:
        """Join two rows if either is among the other's first `n_neighbors`.

        Returns
        -------
        scipy.sparse.csr_array of shape (N, N)
            Symmetric, non-negative, zero diagonal.
        """
        n_rows, neighbors = lists.inverse.size, lists.neighbors[:, : self.n_neighbors]
        present = neighbors >= 0
        source = np.repeat(np.arange(neighbors.shape[0]), present.sum(axis=1))
        target, distance = neighbors[present], np.sqrt(lists.squared[:, : self.n_neighbors][present])
        if neighbors.shape[0] < n_rows:
            source, target, distance = spread_edges((source, target, distance), lists.inverse, int(self.n_neighbors))
        radius = lists.radius(self.n_neighbors)
        value = edge_weights(self.weights, distance**2, radius[source], radius[target], self.bandwidth)
        directed = sp.csr_array(sp.coo_array((value, (source, target)), shape=(n_rows, n_rows)))
        # Two copies can meet along several edges, which the conversion adds up; the largest single weight is 1.
        directed.data = np.minimum(directed.data, 1.0)
        W = sp.csr_array(directed.maximum(directed.T))
        W.sort_indices()
        return W


def knn_graph(
    X: Any,
    n_neighbors: int = KNNGraph.n_neighbors,
    *,
    weights: Weights = KNNGraph.weights,
    metric: str = KNNGraph.metric,
    method: Method = KNNGraph.method,
    scale: Scale = KNNGraph.scale,
    bandwidth: float | None = KNNGraph.bandwidth,
    n_jobs: int | None = None,
    verbose: bool = True,
) -> sp.csr_array:
    """Build the affinity W of the rows of X: two rows are joined if either is among the other's nearest.

    Parameters
    ----------
    X : array-like, sparse matrix or frame of shape (N, d)
        Rows, labelled and unlabelled together. NaN is replaced by the column's median, for the graph only, with a
        :class:`GraphWarning`. Categories count as one-hot columns. Equal rows are searched once and joined to each
        other.
    n_neighbors, weights, metric, method, scale, bandwidth
        As in :class:`KNNGraph`.
    n_jobs : int or None, default=None
        Threads of the exact search; None takes all cores.
    verbose : bool, default=True
        Draw a progress bar if the search takes more than two seconds.

    Returns
    -------
    scipy.sparse.csr_array of shape (N, N)
        Symmetric, non-negative, zero diagonal, deterministic.

    Examples
    --------
    >>> W = knn_graph([[0.0], [1.0], [1.5], [10.0]], n_neighbors=1, weights="binary")
    >>> W.toarray().astype(int).tolist()
    [[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]]
    """
    spec = KNNGraph(n_neighbors, weights, metric, method, scale, bandwidth)
    n_threads(n_jobs)  # refuses what is no number of them
    table = read_table(X)
    if n_neighbors >= table.n_rows:
        raise ValueError(f"n_neighbors={n_neighbors} needs at least {n_neighbors + 1} rows, X has {table.n_rows}.")
    points = DistanceSpace.fit(table, scale=spec.scale)(table, n_jobs)
    return spec.affinity(spec.search(points, n_jobs=n_jobs, verbose=verbose))
