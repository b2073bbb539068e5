"""Operators on a few nodes, with every other row a weighted mean of its nearest nodes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.cluster import MiniBatchKMeans
from sklearn.neighbors import NearestNeighbors

from grbb_ext.graph import edge_weights, nearest_neighbors
from grbb_ext.propagation._base import Propagation
from grbb_ext.propagation._make import PropagationKind, make_propagation
from grbb_ext.propagation._smooth import SmoothPropagation, _Kernel
from grbb_ext.table import Scale, column_factors


class HungPropagation(SmoothPropagation):
    r"""The operator :math:`P = Z P_S`: kernel regression on M nodes, and means of them for all other rows.

    :math:`P_S` is a :class:`SmoothPropagation` on a graph of nodes, among them the labelled rows. A row of the sparse Z
    sums to 1: it is a unit vector for a node, and weighs the nearest nodes of any other row. The kernel of all
    rows is :math:`Z K_S Z^\top`. The work is that of M rows, and one product with Z.

    Parameters
    ----------
    on_nodes : SmoothPropagation
        The operator on the nodes.
    Z : csr_array of shape (N, M)
        The weights. Rows without any are out of the labels' reach.
    nodes : ndarray of int of shape (M,)
        The rows that are nodes, ascending.

    Attributes
    ----------
    W : csr_array of shape (N, N)
        The affinity of the nodes, in the numbering of all rows; other rows have no edges.
    on_nodes, Z, nodes
        As given.

    Examples
    --------
    >>> path = np.diag([1.0, 1.0], 1) + np.diag([1.0, 1.0], -1)
    >>> Z = sp.csr_array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0.5, 0.5]])
    >>> P = HungPropagation(SmoothPropagation(path, [0, 2]), Z, np.array([0, 1, 2]))
    >>> P.extend([-1.0, 1.0]).round(3).tolist()
    [-1.0, 0.0, 1.0, 0.5]
    """

    def __init__(self, on_nodes: SmoothPropagation, Z: sp.csr_array, nodes: NDArray[np.intp]) -> None:
        self.on_nodes, self.nodes = on_nodes, nodes
        settings = on_nodes.params
        self.tau, self.power, self.noise = settings["tau"], settings["power"], settings["noise"]
        self.solver, self.tol, self.memory_limit = settings["solver"], settings["tol"], settings["memory_limit"]
        self.n_jobs, self.verbose = settings["n_jobs"], settings["verbose"]
        self.n_rows = Z.shape[0]
        self.W = among_all(on_nodes.W, nodes, self.n_rows)
        self.labeled = nodes[on_nodes.labeled]
        self.Z = _to_reachable(Z, on_nodes.reachable)
        self.reachable = np.diff(self.Z.indptr) > 0
        # The component of any of its nodes: where a row hangs on several components, that of the first.
        self.component = np.full(self.n_rows, -1, dtype=np.intp)
        self.component[self.reachable] = on_nodes.component[self.Z.indices[self.Z.indptr[:-1][self.reachable]]]
        unlabeled = self.reachable.copy()
        unlabeled[self.labeled] = False
        self.free = np.flatnonzero(unlabeled)

    def on(self, graph: Any, labeled: ArrayLike) -> Propagation:
        """Build the smooth operator on a graph whose nodes are all rows."""
        return SmoothPropagation(graph, labeled, **self.params)

    @property
    def _kernel(self) -> _Kernel:
        return self.on_nodes._kernel

    @property
    def _direct(self) -> bool:
        return self.on_nodes._direct

    def kernel_product(self, values: NDArray[np.floating[Any]], *, rough: bool = False) -> NDArray[np.floating[Any]]:
        r"""Return K times values on all rows, :math:`K = Z K_S Z^\top`; see :class:`SmoothPropagation`."""
        gathered = np.asarray(self.Z.T @ values, dtype=values.dtype)
        return np.asarray(self.Z @ self.on_nodes.kernel_product(gathered, rough=rough), dtype=values.dtype)

    def _extend_free(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self.Z @ self.on_nodes.extend(values))[self.free]


def among_all(W: sp.csr_array, nodes: NDArray[np.intp], n_rows: int) -> sp.csr_array:
    """Return the affinity of some rows in the numbering of all.

    Examples
    --------
    >>> among_all(sp.csr_array([[0.0, 2.0], [2.0, 0.0]]), np.array([0, 2]), 3).toarray().tolist()
    [[0.0, 0.0, 2.0], [0.0, 0.0, 0.0], [2.0, 0.0, 0.0]]
    """
    degrees = np.zeros(n_rows, dtype=W.indptr.dtype)
    degrees[nodes] = np.diff(W.indptr)
    start = np.concatenate([[0], np.cumsum(degrees)]).astype(W.indptr.dtype)
    return sp.csr_array((W.data, nodes[W.indices].astype(W.indices.dtype), start), shape=(n_rows, n_rows))


def _to_reachable(Z: sp.csr_array, reachable: NDArray[np.bool_]) -> sp.csr_array:
    """Leave out nodes that no label reaches; the weights of the others sum to 1 again."""
    if reachable.all():
        return Z
    Z = Z.copy()
    Z.data *= reachable[Z.indices]
    Z.eliminate_zeros()
    total = np.asarray(Z.sum(axis=1)).ravel()
    Z.data /= np.repeat(total, np.diff(Z.indptr))
    return Z


_ROWS_PER_BLOCK = 65_536


class AnchorPropagation:
    r"""The factored operator :math:`P = Z P_A`, after Liu, He and Chang [1]_.

    Anchors are k-means centres of a sample of the rows. They carry a neighbour graph, on which each labelled row hangs
    by its nearest anchors. One of the operators of :func:`grbb_ext.make_propagation` on that graph extends values from
    the n labelled rows to the A anchors, :math:`P_A` (A x n). Every other row, seen before or not, is a weighted mean
    of its s nearest anchors: the rows of the sparse Z sum to 1,

    .. math:: Z_{ia} \propto \exp\bigl(-d(x_i, c_a)^2 / r_i^2\bigr), \qquad r_i = \text{distance to the s-th anchor}.

    Z is made from a row's own features and the anchors alone, so that many machines can make it, each for its own
    rows, and nothing but the sample and the labelled rows has to be in one place.

    Parameters
    ----------
    sample : array-like of shape (M, d)
        Rows from which the anchors are made; a few dozen for each anchor will do. NaN is replaced by the column's
        median in the sample.
    labeled : array-like of shape (n, d)
        The labelled rows; values are given in this order.
    kind : {"smooth", "nonlocal", "harmonic", "poisson"}, default="smooth"
        The operator on the anchors.
    n_anchors : int, default=1000
        A, at most M. More anchors follow finer structure.
    n_neighbors : int, default=9
        Neighbours of an anchor in the graph of anchors.
    n_nearest : int, default=5
        s, the anchors of a row.
    scale : {"auto", "standard"} or None, default="auto"
        Scaling of columns as in :func:`grbb_ext.knn_graph`, estimated on the sample.
    random_state : int, default=0
        Seed of k-means.
    **settings
        Of the operator: `solver`, `tol`, `memory_limit`, `n_jobs`, `verbose`, and for ``"smooth"`` `tau`, `power`,
        `noise`.

    Attributes
    ----------
    kind : str
        The operator on the anchors.
    stochastic : bool
        Whether P is non-negative with rows that sum to 1.
    anchors : ndarray of shape (A, d)
        The centres, in scaled columns.
    operator : Propagation
        On A + n nodes: first the anchors, then the labelled rows.

    References
    ----------
    .. [1] W. Liu, J. He and S.-F. Chang, "Large graph construction for scalable semi-supervised learning", ICML 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> X, truth = make_moons(2000, noise=0.1, random_state=0)
    >>> P = AnchorPropagation(X, X[:10], n_anchors=100)
    >>> P.Z(X).shape, P.P_A.shape
    ((2000, 100), (100, 10))
    >>> float(np.mean((P.extend(X, 2.0 * truth[:10] - 1.0) > 0) == truth)) > 0.98
    True
    """

    def __init__(
        self,
        sample: ArrayLike,
        labeled: ArrayLike,
        *,
        kind: PropagationKind = "smooth",
        n_anchors: int = 1000,
        n_neighbors: int = 9,
        n_nearest: int = 5,
        scale: Scale = "auto",
        random_state: int = 0,
        **settings: Any,
    ) -> None:
        rows, hung = _floats(sample, "sample"), _floats(labeled, "labeled")
        if rows.shape[1] != hung.shape[1]:
            raise ValueError(f"sample has {rows.shape[1]} columns but the labelled rows have {hung.shape[1]}.")
        for name, value in (("n_anchors", n_anchors), ("n_neighbors", n_neighbors), ("n_nearest", n_nearest)):
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise ValueError(f"{name} must be a positive integer, got {value!r}.")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a column without any value has no median
            median = np.nanmedian(rows, axis=0)
        self._median = np.where(np.isnan(median), 0.0, median)
        self._factor = column_factors(np.where(np.isnan(rows), self._median, rows), scale)
        self.anchors = _centers(self._columns(rows), int(n_anchors), random_state)
        n_centers = self.anchors.shape[0]
        if n_centers <= max(n_neighbors, n_nearest):
            raise ValueError(
                f"{n_centers} anchors are too few for n_neighbors={n_neighbors} and n_nearest={n_nearest}: give a "
                "larger sample of different rows, or more anchors."
            )
        self._n_nearest = int(n_nearest)
        self._index = NearestNeighbors(n_neighbors=self._n_nearest, algorithm="brute").fit(self.anchors)
        W = self._graph(self._columns(hung), int(n_neighbors))
        self.operator = make_propagation(kind, W, np.arange(n_centers, W.shape[0]), **settings)
        self.kind, self.stochastic = kind, self.operator.stochastic
        self._reachable = self.operator.reachable[:n_centers]

    @property
    def P_A(self) -> NDArray[np.float32]:
        """The dense factor on the anchors, of shape (A, n)."""
        return np.asarray(self.operator.dense()[: self.anchors.shape[0]])

    def extend_to_anchors(self, values: ArrayLike) -> NDArray[np.float64]:
        """Extend values of shape (n,) or (n, K) from the labelled rows to the anchors, without forming P_A."""
        return self.operator.extend(values)[: self.anchors.shape[0]]

    def nearest(self, X: ArrayLike) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Find the anchors of any rows.

        Parameters
        ----------
        X : array-like of shape (M, d)
            Rows, with the columns of the sample.

        Returns
        -------
        index : ndarray of int32 of shape (M, s)
            Numbers of the nearest anchors.
        share : ndarray of float32 of shape (M, s)
            The non-zero entries of Z; they sum to 1. Anchors that no label reaches take no part, and where there are no
            others all are 0.
        """
        columns = self._columns(_floats(X, "X"))
        index = np.empty((columns.shape[0], self._n_nearest), dtype=np.int32)
        share = np.empty(index.shape, dtype=np.float32)
        for start in range(0, columns.shape[0], _ROWS_PER_BLOCK):
            rows = slice(start, start + _ROWS_PER_BLOCK)
            distance, index[rows] = self._index.kneighbors(columns[rows])
            weight = np.exp(-((distance / np.maximum(distance[:, -1:], np.finfo(np.float64).tiny)) ** 2))
            weight *= self._reachable[index[rows]]
            total = weight.sum(axis=1, keepdims=True)
            share[rows] = weight / np.where(total > 0, total, 1.0)
        return index, share

    def Z(self, X: ArrayLike) -> sp.csr_array:
        """Return the sparse factor of any rows, of shape (M, A)."""
        return anchor_matrix(*self.nearest(X), self.anchors.shape[0])

    def extend(self, X: ArrayLike, values: ArrayLike) -> NDArray[np.float64]:
        """Extend values from the labelled rows to any rows.

        Parameters
        ----------
        X : array-like of shape (M, d)
            Rows. A labelled row among them gets the mean of its anchors like any other.
        values : array-like of shape (n,) or (n, K)
            Values on the labelled rows.

        Returns
        -------
        ndarray of shape (M,) or (M, K)
            Z P_A values.
        """
        return np.asarray(self.Z(X) @ self.extend_to_anchors(values))

    def _columns(self, rows: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
        if rows.shape[1] != self._median.size:
            raise ValueError(f"X must have the {self._median.size} columns of the sample, got {rows.shape[1]}.")
        missing = np.isnan(rows)
        if missing.any():
            rows = np.where(missing, self._median, rows).astype(rows.dtype)
        return rows if self._factor is None else np.asarray(rows * self._factor.astype(rows.dtype))

    def _graph(self, labeled: NDArray[np.floating[Any]], n_neighbors: int) -> sp.csr_array:
        """Join anchors to their nearest anchors, and each labelled row to its own, with self-tuning weights."""
        A = self.anchors.shape[0]
        neighbors, distances, _ = nearest_neighbors(self.anchors, n_neighbors, "euclidean", "brute", None, False)
        radius = distances[:, -1]
        source, target, distance = np.repeat(np.arange(A), n_neighbors), neighbors.ravel(), distances.ravel()
        among = edge_weights("self-tuning", distance**2, radius[source], radius[target], None)
        reach, hooks = self._index.kneighbors(labeled)
        n, s = hooks.shape
        hung = edge_weights("self-tuning", reach.ravel() ** 2, np.repeat(reach[:, -1], s), radius[hooks.ravel()], None)
        i = np.concatenate([source, A + np.repeat(np.arange(n), s)])
        j = np.concatenate([target, hooks.ravel()])
        directed = sp.csr_array((np.concatenate([among, hung]), (i, j)), shape=(A + n, A + n))
        return sp.csr_array(directed.maximum(directed.T))


def anchor_matrix(index: NDArray[np.int32], share: NDArray[np.float32], n_anchors: int) -> sp.csr_array:
    """Return Z from what :meth:`AnchorPropagation.nearest` found.

    Examples
    --------
    >>> index, share = np.array([[0, 2]], dtype=np.int32), np.array([[0.25, 0.75]], dtype=np.float32)
    >>> anchor_matrix(index, share, 3).toarray().tolist()
    [[0.25, 0.0, 0.75]]
    """
    kind = np.int32 if index.size <= np.iinfo(np.int32).max else np.int64
    start = np.arange(0, index.size + 1, index.shape[1], dtype=kind)
    columns = index.ravel().astype(kind, copy=False)
    return sp.csr_array((share.ravel(), columns, start), shape=(index.shape[0], n_anchors))


def _floats(X: ArrayLike, name: str) -> NDArray[np.floating[Any]]:
    rows = np.asarray(X)
    if rows.dtype not in (np.float32, np.float64):
        try:
            rows = rows.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} has columns that are not numbers ({error}). Encode them first.") from error
    if rows.ndim != 2:
        raise ValueError(f"{name} must be two-dimensional (rows x columns), got shape {rows.shape}.")
    if np.isinf(rows).any():
        raise ValueError(f"{name} holds infinite values. Replace them by NaN (missing) or by a finite number.")
    return rows


def _centers(rows: NDArray[np.floating[Any]], n_anchors: int, seed: int) -> NDArray[np.floating[Any]]:
    """Return k-means centres, or the distinct rows themselves where there are no more than asked for."""
    distinct = np.unique(rows, axis=0)
    if distinct.shape[0] <= n_anchors:
        return distinct
    start = distinct[np.random.default_rng(seed).choice(distinct.shape[0], n_anchors, replace=False)]
    # Careful seeding (k-means++) takes longer than k-means itself here, and moves the result by less than its noise.
    means = MiniBatchKMeans(
        n_anchors, init=start, n_init=1, batch_size=max(4096, n_anchors), max_iter=20, random_state=seed
    )
    return np.asarray(np.unique(means.fit(rows).cluster_centers_, axis=0))
