"""A smooth operator on some of the rows, the nodes, with every other row hung on its nearest nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from grbb_ext.propagation._base import Propagation
from grbb_ext.propagation._smooth import SmoothPropagation, _Kernel


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
