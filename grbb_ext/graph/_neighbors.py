"""The k nearest neighbours of every row: exact by scikit-learn, approximate by faiss."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from grbb_ext._progress import n_threads, progress, row_blocks
from grbb_ext.table import Matrix

Index = NDArray[np.intp]

_RECALL_SAMPLE = 200
# k-means of the cells: so many rows for each, of which more would not move the recall.
_ROWS_PER_CELL = 64
# Cells need not be the best: the number that is probed makes up for it.
_KMEANS_STEPS = 4

_log = logging.getLogger("grbb_ext.graph")


@contextmanager
def _faiss_threads(n_jobs: int | None) -> Iterator[Any]:
    """Give faiss its threads: it takes them from OpenMP, where a limit of BLAS counts too; others have theirs after."""
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(n_threads(n_jobs))
    try:
        yield faiss
    finally:
        faiss.omp_set_num_threads(before)


class FaissIndex:
    """Rows in cells around k-means centres; a search looks into the cells nearest to the query.

    Parameters
    ----------
    X : ndarray of shape (M, d)
        Rows to be found.
    k : int
        Neighbours that a query will ask for.
    metric : {"euclidean", "cosine"}
        The distance.
    recall_wanted : float
        The number of cells probed grows by a quarter until the recall is at least this.
    n_jobs : int or None, default=None
        Threads; None takes all cores.

    Attributes
    ----------
    recall : float
        Share of the true k nearest that are found, estimated on 200 of the rows. It is also logged, at level INFO, as
        ``grbb_ext.graph``.
    n_cells, n_probed : int
        Cells, and how many of them a search looks into.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(2000, 3)).astype(np.float32)
    >>> index = FaissIndex(X, k=2, metric="euclidean", recall_wanted=0.98)
    >>> index.search(X[:3])[0][:, 0].tolist(), index.recall > 0.97
    ([0, 1, 2], True)
    """

    def __init__(
        self, X: NDArray[np.floating[Any]], k: int, metric: str, recall_wanted: float, n_jobs: int | None = None
    ) -> None:
        self._k, self._cosine, self._n_jobs = k, metric == "cosine", n_jobs
        # A power of 2, so that nothing is rounded: squares of very large or small numbers leave single precision.
        self._unit = 2.0 ** (int(np.frexp(np.abs(X).max())[1]) - 1)
        with _faiss_threads(n_jobs) as faiss:
            rows = self._single(X)
            n_rows, n_columns = rows.shape
            # Twice the root: fewer rows are looked at for the same recall, and k-means is still cheap.
            self.n_cells = max(1, min(int(2 * np.sqrt(n_rows)), n_rows // _ROWS_PER_CELL))
            self._index = faiss.IndexIVFFlat(faiss.IndexFlatL2(n_columns), n_columns, self.n_cells)
            self._index.cp.niter = _KMEANS_STEPS
            random = np.random.default_rng(0)
            self._index.train(rows[random.choice(n_rows, min(n_rows, _ROWS_PER_CELL * self.n_cells), replace=False)])
            self._index.add(rows)

            sample = rows[random.choice(n_rows, min(n_rows, _RECALL_SAMPLE), replace=False)]
            _, truth = faiss.knn(sample, rows, k)
            self.n_probed = 1
            while True:
                self._index.nprobe = self.n_probed
                found = self._index.search(sample, k)[1]
                self.recall = float((found[:, :, None] == truth[:, None, :]).any(axis=1).mean())
                if self.n_probed == self.n_cells or self.recall >= recall_wanted:
                    break
                self.n_probed = min(max(self.n_probed + 1, 5 * self.n_probed // 4), self.n_cells)
        _log.info(
            "%d neighbours among %d rows by faiss: recall %.3f on %d of them, %d of %d cells probed.",
            *(k, n_rows, self.recall, sample.shape[0], self.n_probed, self.n_cells),
        )

    def search(self, X: NDArray[np.floating[Any]], k: int | None = None) -> tuple[Index, NDArray[np.float64]]:
        """Return the k nearest rows of each query, nearest first, and their distances; -1 where there are fewer."""
        with _faiss_threads(self._n_jobs):
            squared, found = self._index.search(self._single(X), k or self._k)
        squared = squared.astype(np.float64)
        distances = squared / 2 if self._cosine else self._unit * np.sqrt(np.maximum(squared, 0))
        return found.astype(np.intp, copy=False), distances

    def _single(self, X: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
        rows = np.ascontiguousarray(X / self._unit, dtype=np.float32)
        if self._cosine:
            import faiss

            faiss.normalize_L2(rows)
        return rows


Method = Literal["auto", "brute", "tree", "faiss"]

# Brute force is quadratic. Here it takes a quarter of a second on two cores, as faiss does with its import; at 20,000
# rows four times as long as faiss, and half a minute at 100,000.
_EXACT_UP_TO = 8_000
_CANDIDATES_PER_BLOCK = 2**20
_RECALL = 0.98
# A row takes the mean of nodes: whether a few of them are the next best makes no difference, and half of the time.
_RECALL_OF_NODES = 0.8


def choose_method(X: Matrix, metric: str, method: Method) -> Literal["brute", "tree", "faiss"]:
    """Pick the search: brute force to 8,000 rows, faiss beyond where it is installed and applies.

    Examples
    --------
    >>> choose_method(np.zeros((100, 2)), "euclidean", "auto")
    'brute'
    """
    suits_faiss = metric in ("euclidean", "cosine") and not sp.issparse(X)
    if method == "faiss":
        if not suits_faiss:
            raise ValueError("method='faiss' needs a dense X and metric 'euclidean' or 'cosine'; use method='brute'.")
        if importlib.util.find_spec("faiss") is None:
            raise ImportError("method='faiss' needs faiss: pip install 'grbb_ext[ann]'.")
    if method != "auto":
        return method
    large = X.shape[0] > _EXACT_UP_TO
    return "faiss" if large and suits_faiss and importlib.util.find_spec("faiss") is not None else "brute"


def nearest_neighbors(
    X: Matrix, n_neighbors: int, metric: str, method: Method, n_jobs: int | None, verbose: bool
) -> tuple[Index, NDArray[np.float64], float]:
    """Find the `n_neighbors` nearest other rows of every row.

    Parameters
    ----------
    X : ndarray or csr_array of shape (N, d)
        Distinct, finite rows.
    n_neighbors : int
        k, below N.
    metric : str
        A metric of :class:`sklearn.neighbors.NearestNeighbors`.
    method : {"auto", "brute", "tree", "faiss"}
        The search.
    n_jobs : int or None
        Threads.
    verbose : bool
        Whether a long search draws a progress bar.

    Returns
    -------
    neighbors : ndarray of shape (N, k)
        Row numbers, nearest first; a row is never its own neighbour.
    distances : ndarray of shape (N, k)
        Their distances.
    recall : float
        Share of the true neighbours that were found, estimated on a sample; 1 where the search is exact.

    Examples
    --------
    >>> rows = np.array([[0.0], [1.0], [3.0]])
    >>> nearest_neighbors(rows, 1, "euclidean", "brute", None, False)[0].ravel().tolist()
    [1, 0, 1]
    """
    index = NodeIndex(X, min(n_neighbors + 2, X.shape[0]), metric, method, n_jobs, _RECALL)
    todo = row_blocks(X.shape[0], index.rows_per_block)
    blocks = [
        _first_by_distance(index, X, np.arange(rows.start, rows.stop), n_neighbors, n_neighbors + 2)
        for rows in progress(todo, len(todo), "nearest neighbours", verbose)
    ]
    neighbors, distances = (np.vstack(parts) for parts in zip(*blocks, strict=True))
    return neighbors, distances, index.recall


def _first_by_distance(
    index: NodeIndex, X: Matrix, rows: Index, n_neighbors: int, n_candidates: int
) -> tuple[Index, NDArray[np.float64]]:
    """Return the first neighbours of some nodes by distance and, where distances are equal, by number.

    Which of several nodes at the same distance a search finds depends on threads and blocks. The candidates hold the
    answer for certain if the search puts one more node, and so all it left out, farther away than the k-th neighbour by
    more than its rounding. Rows for which it does not are searched again with more candidates.
    """
    n_nodes, n_columns = index.nodes.shape
    n_candidates = min(n_candidates, n_nodes)
    found, distances = index.search(X[rows], n_candidates)
    left_out, margin = distances[:, -1] ** 2, np.zeros(rows.size)
    settled = (found[:, -1] < 0) | (n_candidates == n_nodes)
    if index.mean is not None:
        # What centring leaves of the error of expanding |a - b|^2, a difference per neighbour removes.
        distances = _exact_distances(index.nodes, rows, found)
    distances[(found == rows[:, None]) | (found < 0)] = np.inf  # a row is not its own neighbour
    order = np.lexsort((found, distances), axis=1)[:, :n_neighbors]
    neighbors, distances = np.take_along_axis(found, order, axis=1), np.take_along_axis(distances, order, axis=1)
    if index.mean is not None:
        # Let b be a node left out though |a - b| is at most the k-th distance r, so that |b| <= |a| + r. The search
        # adds products in double precision, for single rows too, which errs by at most (d + 2) eps (|a| + |b|)^2 in
        # the square. Its roots and the differences above are rounded to the precision of the rows: 2 eps r^2. Twice
        # that leaves room for terms of second order. Cells of faiss promise no more than their recall.
        norm, radius = np.linalg.norm(index.nodes[rows].astype(np.float64), axis=1), distances[:, -1]
        double = np.finfo(np.float64)
        sums = (n_columns + 2) * (float(double.eps) * (2 * norm + radius) ** 2 + float(double.tiny))
        margin = 2 * (sums + 2 * index.precision * radius**2)
    tied = np.flatnonzero((left_out - margin <= distances[:, -1] ** 2) & ~settled)
    for block in row_blocks(tied.size, max(1, _CANDIDATES_PER_BLOCK // n_candidates)):
        more = _first_by_distance(index, X, rows[tied[block]], n_neighbors, 4 * n_candidates)
        neighbors[tied[block]], distances[tied[block]] = more
    return neighbors, distances


class NodeIndex:
    """A few rows, the nodes of a graph, among which any other rows find their nearest.

    Parameters
    ----------
    nodes : ndarray or csr_array of shape (M, d)
        Finite rows.
    n_neighbors : int
        k, at most M.
    metric, method, n_jobs
        As in :func:`nearest_neighbors`.
    recall_wanted : float, default=0.8
        As in :class:`FaissIndex`, where that is the search.

    Attributes
    ----------
    mean : ndarray of shape (d,) or None
        What rows are centred by: both searches expand |a - b|^2, which loses the distance of close rows that lie far
        from the origin. None for sparse rows and other metrics than the Euclidean one.
    nodes : ndarray or csr_array of shape (M, d)
        The nodes, centred.
    precision : float
        Relative rounding of the distances that are handed out.
    recall : float
        Share of the true neighbours that are found; 1 where the search is exact.
    rows_per_block : int
        A good number of rows for one search.

    Examples
    --------
    >>> index = NodeIndex(np.array([[0.0], [1.0], [3.0]]), 2, "euclidean", "brute", None)
    >>> found, distances = index.search(np.array([[2.5], [0.0]]))
    >>> found.tolist(), distances.round(6).tolist()
    ([[2, 1], [0, 1]], [[0.5, 1.5], [0.0, 1.0]])
    """

    recall = 1.0
    rows_per_block = 4096

    def __init__(
        self,
        nodes: Matrix,
        n_neighbors: int,
        metric: str,
        method: Method,
        n_jobs: int | None,
        recall_wanted: float = _RECALL_OF_NODES,
    ) -> None:
        chosen = choose_method(nodes, metric, method)
        self.mean = nodes.mean(axis=0) if metric == "euclidean" and not sp.issparse(nodes) else None
        self.nodes = self._centered(nodes)
        self._faiss = FaissIndex(self.nodes, n_neighbors, metric, recall_wanted, n_jobs) if chosen == "faiss" else None
        self.precision = float(np.finfo(np.float32 if self._faiss is not None else self.nodes.dtype).eps)
        if self._faiss is not None:
            self.recall = self._faiss.recall
            self.rows_per_block *= 16
        else:
            algorithm = "auto" if chosen == "tree" else "brute"
            self._exact = NearestNeighbors(
                n_neighbors=n_neighbors, metric=metric, algorithm=algorithm, n_jobs=n_jobs
            ).fit(self.nodes)

    def search(self, X: Matrix, n_neighbors: int | None = None) -> tuple[Index, NDArray[np.float64]]:
        """Return the numbers of the k nearest nodes of each row, nearest first, and their distances."""
        if self._faiss is not None:
            return self._faiss.search(self._centered(X), n_neighbors)
        distances, found = self._exact.kneighbors(self._centered(X), n_neighbors)
        return found, distances.astype(np.float64)

    def _centered(self, X: Matrix) -> Matrix:
        return X if self.mean is None else X - self.mean


def _exact_distances(X: Matrix, rows: Index, neighbors: Index) -> NDArray[np.float64]:
    distances = np.empty(neighbors.shape)
    for block in row_blocks(rows.size, max(1, 2**22 // max(1, X.shape[1]) // neighbors.shape[1])):
        difference = X[rows[block], None, :] - X[neighbors[block]]
        distances[block] = np.sqrt(np.einsum("ijk,ijk->ij", difference, difference, dtype=np.float64))
    return distances
