"""Operators on a few nodes: every other row is a weighted mean of its nearest nodes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.cluster import MiniBatchKMeans

from grbb_ext._options import positive_int
from grbb_ext._progress import row_blocks
from grbb_ext.graph import KNNGraph, NodeIndex, edge_weights
from grbb_ext.propagation._base import Propagation, PropagationSpec
from grbb_ext.propagation._smooth import Kernel, Smooth, SmoothPropagation
from grbb_ext.table import DistanceSpace, Table

Index = NDArray[np.integer[Any]]

_ROWS_PER_BLOCK = 65_536


class Nodes(ABC):
    r"""An operator on M nodes, and the weights by which any row hangs on them: :math:`P = Z P_M`.

    :math:`P_M` extends values from the n labelled rows, which are nodes, to all nodes. A row of the sparse Z weighs
    the nearest nodes of a row of a table. It depends on the row's own columns and on the nodes alone. So it can be
    made for any rows, by any machine, and nothing but the nodes has to be in one place.

    Attributes
    ----------
    operator : Propagation
        On the nodes.
    """

    operator: Propagation

    @abstractmethod
    def nearest(self, table: Table) -> tuple[Index, NDArray[np.floating[Any]]]:
        """Find the nodes of any rows.

        Parameters
        ----------
        table : Table
            R rows.

        Returns
        -------
        index : ndarray of int of shape (R, s)
            Numbers of the nodes.
        share : ndarray of float of shape (R, s)
            Their weights, with sum 1 in each row. Nodes that no label reaches have weight 0, and where there are no
            others all are 0.
        """

    def Z(self, table: Table) -> sp.csr_array:
        """Return the weights of the nodes for any rows, of shape (R, M)."""
        return node_matrix(*self.nearest(table), self.operator.n_rows)

    def extend(self, table: Table, values: ArrayLike) -> NDArray[np.float64]:
        """Extend values of shape (n,) or (n, K) from the labelled rows to any rows."""
        return np.asarray(self.Z(table) @ self.operator.extend(values))


def node_matrix(index: Index, share: NDArray[np.floating[Any]], n_nodes: int) -> sp.csr_array:
    """Return Z from what :meth:`Nodes.nearest` found.

    Examples
    --------
    >>> index, share = np.array([[0, 2]], dtype=np.int32), np.array([[0.25, 0.75]], dtype=np.float32)
    >>> node_matrix(index, share, 3).toarray().tolist()
    [[0.25, 0.0, 0.75]]
    """
    kind = np.int32 if index.size <= np.iinfo(np.int32).max else np.int64
    start = np.arange(0, index.size + 1, index.shape[1], dtype=kind)
    columns = index.ravel().astype(kind, copy=False)
    return sp.csr_array((share.ravel(), columns, start), shape=(index.shape[0], n_nodes))


def reachable_shares(
    index: Index, share: NDArray[np.floating[Any]], reachable: NDArray[np.bool_]
) -> NDArray[np.floating[Any]]:
    """Leave out nodes that no label reaches; the weights of the others sum to 1 again.

    Examples
    --------
    >>> share = np.array([[0.5, 0.5], [0.7, 0.3]])
    >>> reachable_shares(np.array([[0, 1], [1, 1]]), share, np.array([True, False])).tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    if reachable.all():
        return share
    kept = share * reachable[index]
    total = kept.sum(axis=1, keepdims=True)
    return np.asarray(kept / np.where(total > 0, total, 1.0))


class NodePropagation(SmoothPropagation):
    r"""Kernel regression on M nodes, and means of them for all other of N rows: :math:`P = Z P_M`.

    :math:`P_M` is a :class:`SmoothPropagation` on a graph of nodes, among them the labelled rows. A row of the sparse Z
    sums to 1: it is a unit vector for a node, and weighs the nearest nodes of any other row. The kernel of all
    rows is :math:`Z K_M Z^\top`. The work is that of M rows, and one product with Z.

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
    >>> P = NodePropagation(Smooth().on(path, [0, 2]), Z, np.array([0, 1, 2]))
    >>> P.extend([-1.0, 1.0]).round(3).tolist()
    [-1.0, 0.0, 1.0, 0.5]
    """

    def __init__(self, on_nodes: SmoothPropagation, Z: sp.csr_array, nodes: NDArray[np.intp]) -> None:
        self.on_nodes, self.nodes, self.spec = on_nodes, nodes, on_nodes.spec
        self.n_jobs, self.verbose = on_nodes.n_jobs, on_nodes.verbose
        self.n_rows = Z.shape[0]
        self.W = among_all(on_nodes.W, nodes, self.n_rows)
        self.labeled = nodes[on_nodes.labeled]
        self.Z = _to_reachable(Z, on_nodes.reachable)
        self.reachable = np.diff(self.Z.indptr) > 0
        # The component of any of its nodes: where a row hangs on several components, that of the first.
        self.component = np.full(self.n_rows, -1, dtype=np.intp)
        self.component[self.reachable] = on_nodes.component[self.Z.indices[self.Z.indptr[:-1][self.reachable]]]

    @property
    def _kernel(self) -> Kernel:
        return self.on_nodes._kernel

    @property
    def _direct(self) -> bool:
        return self.on_nodes._direct

    def kernel_product(self, values: NDArray[np.floating[Any]], *, rough: bool = False) -> NDArray[np.floating[Any]]:
        r"""Return K times values on all rows, :math:`K = Z K_M Z^\top`; see :class:`SmoothPropagation`."""
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
    edges = W.tocoo()
    return sp.csr_array((edges.data, (nodes[edges.row], nodes[edges.col])), shape=(n_rows, n_rows))


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


class AnchorNodes(Nodes):
    r"""Anchors as nodes: k-means centres of a sample of the rows, after Liu, He and Chang [1]_.

    The anchors carry a neighbour graph, on which each labelled row hangs by its nearest anchors. Every other row, seen
    before or not, is a weighted mean of its s nearest anchors,

    .. math:: Z_{ia} \propto \exp\bigl(-d(x_i, c_a)^2 / r_i^2\bigr), \qquad r_i = \text{distance to the s-th anchor}.

    Parameters
    ----------
    sample : Table
        Rows from which the anchors are made; a few dozen for each anchor will do.
    labeled : Table
        The labelled rows; values are given in this order.
    propagation : PropagationSpec, default=Smooth()
        The operator on the anchors.
    n_anchors : int, default=1000
        A, at most the number of distinct rows of the sample. More anchors follow finer structure.
    n_neighbors : int, default=9
        Neighbours of an anchor in the graph of anchors.
    n_nearest : int, default=5
        s, the anchors of a row.
    scale : {"auto", "standard"} or None, default="auto"
        Scaling of columns as in :func:`grbb_ext.knn_graph`, estimated on the sample.
    random_state : int, default=0
        Seed of k-means.
    n_jobs, verbose
        As in :meth:`PropagationSpec.on`.

    Attributes
    ----------
    anchors : ndarray of shape (A, d)
        The centres, in the columns of ``space``.
    space : DistanceSpace
        The columns that distances are taken of.
    operator : Propagation
        On A + n nodes: first the anchors, then the labelled rows.

    References
    ----------
    .. [1] W. Liu, J. He and S.-F. Chang, "Large graph construction for scalable semi-supervised learning", ICML 2010.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from grbb_ext.table import read_table
    >>> X, truth = make_moons(2000, noise=0.1, random_state=0)
    >>> table = read_table(X)
    >>> P = AnchorNodes(table, table.take(np.arange(10)), n_anchors=100)
    >>> P.Z(table).shape, P.operator.dense().shape
    ((2000, 110), (110, 10))
    >>> float(np.mean((P.extend(table, 2.0 * truth[:10] - 1.0) > 0) == truth)) > 0.98
    True
    """

    def __init__(
        self,
        sample: Table,
        labeled: Table,
        propagation: PropagationSpec | None = None,
        *,
        n_anchors: int = 1000,
        n_neighbors: int = 9,
        n_nearest: int = 5,
        scale: Any = "auto",
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        for name, value in (("n_anchors", n_anchors), ("n_neighbors", n_neighbors), ("n_nearest", n_nearest)):
            positive_int(value, name)
        self.space = DistanceSpace.fit(sample, scale=scale, warn_missing=False)
        self.anchors = _centers(self.space(sample), int(n_anchors), random_state)
        n_centers = self.anchors.shape[0]
        if n_centers <= max(n_neighbors, n_nearest):
            raise ValueError(
                f"{n_centers} anchors are too few for n_neighbors={n_neighbors} and n_nearest={n_nearest}: give a "
                "larger sample of different rows, or more anchors."
            )
        if labeled.n_columns != sample.n_columns:
            raise ValueError(
                f"The sample has {sample.n_columns} columns but the labelled rows have {labeled.n_columns}."
            )
        self._n_nearest = int(n_nearest)
        self._index = NodeIndex(self.anchors, self._n_nearest, "euclidean", "brute", n_jobs)
        W = self._graph(self.space(labeled), int(n_neighbors))
        nodes = np.arange(n_centers, W.shape[0])
        self.operator = (propagation or Smooth()).operator(W, nodes, n_jobs=n_jobs, verbose=verbose)

    def nearest(self, table: Table) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Find the anchors of any rows; see :meth:`Nodes.nearest`."""
        index = np.empty((table.n_rows, self._n_nearest), dtype=np.int32)
        share = np.empty(index.shape, dtype=np.float32)
        for rows in row_blocks(table.n_rows, _ROWS_PER_BLOCK):
            index[rows], distance = self._index.search(self.space(table.take(rows)))
            weight = np.exp(-((distance / np.maximum(distance[:, -1:], np.finfo(np.float64).tiny)) ** 2))
            weight /= weight.sum(axis=1, keepdims=True)
            share[rows] = reachable_shares(index[rows], weight, self.operator.reachable)
        return index, share

    def _graph(self, labeled: NDArray[np.floating[Any]], n_neighbors: int) -> sp.csr_array:
        """Join anchors to their nearest anchors, and each labelled row to its own, with self-tuning weights."""
        spec = KNNGraph(n_neighbors, method="brute")
        lists = spec.search(self.anchors)
        hooks, reach = self._index.search(labeled)
        weight = edge_weights(spec.weights, reach**2, reach[:, -1:], lists.radius(n_neighbors)[hooks], None)
        hung = node_matrix(hooks, weight, self.anchors.shape[0])
        return sp.csr_array(sp.block_array([[spec.affinity(lists), hung.T], [hung, None]], format="csr"))


def _centers(rows: Any, n_anchors: int, seed: int) -> NDArray[np.floating[Any]]:
    """Return k-means centres, or the distinct rows themselves where there are no more than asked for."""
    rows = rows.toarray() if sp.issparse(rows) else rows
    distinct = np.unique(rows, axis=0)
    if distinct.shape[0] <= n_anchors:
        return distinct
    start = distinct[np.random.default_rng(seed).choice(distinct.shape[0], n_anchors, replace=False)]
    # Careful seeding (k-means++) takes longer than k-means itself here, and moves the result by less than its noise.
    means = MiniBatchKMeans(
        n_anchors, init=start, n_init=1, batch_size=max(4096, n_anchors), max_iter=20, random_state=seed
    )
    return np.asarray(np.unique(means.fit(rows).cluster_centers_, axis=0))
