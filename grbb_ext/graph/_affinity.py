"""The affinity W: checked, weighed, and its Laplacians L = D - W."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from grbb_ext._progress import warn_caller
from grbb_ext.table import GraphWarning

_ASYMMETRY_ALLOWED = 1e-8
# Given weights are taken as they are while the largest lies in this range.
_SMALLEST_UNIT, _LARGEST_UNIT = 1e-30, 1e30
_VISIBLE = 1e-12


def check_graph(graph: Any, n_rows: int | None = None) -> sp.csr_array:
    """Return `graph` as a CSR affinity, or say what is wrong with it.

    Parameters
    ----------
    graph : sparse matrix or array-like of shape (N, N)
        Symmetric, non-negative and finite. The diagonal is dropped: self-loops do not change the Laplacian. Extreme
        weights are divided by the largest, and edges that double precision cannot see are dropped, each with a
        :class:`GraphWarning`.
    n_rows : int or None, default=None
        N, where it is known.

    Returns
    -------
    scipy.sparse.csr_array of shape (N, N)
        float64, sorted, without explicit zeros.

    Examples
    --------
    >>> check_graph([[5.0, 1.0], [1.0, 0.0]]).toarray().tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    >>> check_graph([[0.0, 1.0], [0.0, 0.0]])
    Traceback (most recent call last):
        ...
    ValueError: graph is not symmetric (largest |W - W.T| is 1). Pass W.maximum(W.T) or (W + W.T) / 2.
    """
    try:
        W = sp.csr_array(graph if sp.issparse(graph) else np.asarray(graph, dtype=np.float64)).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"graph must be a two-dimensional matrix of numbers, sparse or dense ({error}). See knn_graph."
        ) from error
    if W.ndim != 2 or W.shape[0] != W.shape[1]:
        raise ValueError(f"graph must be square (rows x rows), got shape {W.shape}.")
    if n_rows is not None and W.shape[0] != n_rows:
        raise ValueError(
            f"graph has {W.shape[0]} rows but y has {n_rows}: it must hold labelled and unlabelled rows, in y's order. "
            "SharedGraph(X, graph) is cut to the rows of each fit."
        )
    if not np.isfinite(W.data).all():
        raise ValueError("graph holds NaN or infinite weights. Every weight must be a finite number.")
    if W.nnz and W.data.min() < 0:
        raise ValueError(
            f"graph has a negative weight ({W.data.min():g}). Weights are affinities: pass similarities, not distances "
            "or correlations (W.maximum(0) drops the negative ones)."
        )
    W.setdiag(0)
    W.eliminate_zeros()
    W.sum_duplicates()
    if W.nnz:
        asymmetry = float(np.abs(W - W.T).max())
        if asymmetry > _ASYMMETRY_ALLOWED * W.data.max():
            raise ValueError(
                f"graph is not symmetric (largest |W - W.T| is {asymmetry:g}). Pass W.maximum(W.T) or (W + W.T) / 2."
            )
        _scale(W)
        W = _without_invisible(W)
    return W


def _scale(W: sp.csr_array) -> None:
    """Divide extreme weights by the largest, in place, since squares and sums of them would overflow or vanish."""
    largest = float(W.data.max())
    if not _SMALLEST_UNIT <= largest <= _LARGEST_UNIT:
        W.data /= largest
        warn_caller(
            f"The largest weight of the graph is {largest:.3g}; all weights were divided by it. Propagation does not "
            "depend on their unit; lam counts in the new one.",
            GraphWarning,
        )


def _without_invisible(W: sp.csr_array) -> sp.csr_array:
    r"""Drop edges with :math:`w_{ij} < 10^{-12} \sqrt{d_i d_j}`, which solves in double precision do not see."""
    degree = np.asarray(W.sum(axis=1)).ravel()
    edges = W.tocoo()
    invisible = edges.data < _VISIBLE * np.sqrt(degree[edges.row]) * np.sqrt(degree[edges.col])
    if not invisible.any():
        return W
    warn_caller(
        f"{int(invisible.sum()) // 2} edges of the graph are lighter than 1e-12 of the edges next to them and were "
        "dropped: solves in double precision do not see them. Rows that hang on them alone are out of reach.",
        GraphWarning,
    )
    kept = ~invisible
    return sp.csr_array((edges.data[kept], (edges.row[kept], edges.col[kept])), shape=W.shape)


def laplacian(W: sp.csr_array) -> sp.csr_array:
    """Return L = D - W, D the diagonal matrix of degrees.

    Examples
    --------
    >>> laplacian(sp.csr_array([[0.0, 2.0], [2.0, 0.0]])).toarray().tolist()
    [[2.0, -2.0], [-2.0, 2.0]]
    """
    degree = np.asarray(W.sum(axis=1)).ravel()
    return sp.csr_array(sp.diags_array(degree) - W)


def normalized_laplacian(W: sp.csr_array) -> sp.csr_array:
    r"""Return :math:`L_n = I - D^{-1/2} W D^{-1/2}`, with eigenvalues in [0, 2].

    Examples
    --------
    >>> normalized_laplacian(sp.csr_array([[0.0, 4.0], [4.0, 0.0]])).toarray().tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    degree = np.asarray(W.sum(axis=1)).ravel()
    root = np.zeros_like(degree)
    np.divide(1.0, np.sqrt(degree), out=root, where=degree > 0)
    scaling = sp.diags_array(root)
    return sp.csr_array(sp.eye_array(W.shape[0], format="csr") - scaling @ W @ scaling)


def reachable_rows(W: sp.csr_array, labeled: NDArray[np.intp]) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Tell which rows share a connected component with a labelled row.

    Returns
    -------
    reachable : ndarray of bool of shape (N,)
        True where some label can be propagated to.
    component : ndarray of int of shape (N,)
        The component of each row.

    Examples
    --------
    >>> W = sp.csr_array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> reachable_rows(W, np.array([0]))[0].tolist()
    [True, True, False]
    """
    component = connected_components(W, directed=False)[1].astype(np.intp)
    return np.isin(component, component[labeled]), component


Weights = Literal["self-tuning", "binary", "heat"]

# exp(-20) = 2e-9: a far row keeps its edges, and stays attached to the graph, however far it is.
_LARGEST_EXPONENT = 20.0


def edge_weights(
    kind: Weights,
    squared_distance: NDArray[np.float64],
    radius_from: NDArray[np.float64],
    radius_to: NDArray[np.float64],
    bandwidth: float | None,
) -> NDArray[np.float64]:
    r"""Weigh edges by their length.

    ``"binary"``: :math:`w_{ij} = 1` (the paper's :math:`k_{ij}`).
    ``"heat"``: :math:`w_{ij} = \exp(-d_{ij}^2 / b^2)`, with b the `bandwidth`, by default the median radius.
    ``"self-tuning"`` [1]_: :math:`w_{ij} = \exp(-d_{ij}^2 / (r_i r_j))`.

    Parameters
    ----------
    kind : {"self-tuning", "binary", "heat"}
        The formula.
    squared_distance : ndarray of shape (E,)
        Squared edge lengths.
    radius_from, radius_to : ndarray of shape (E,)
        Distance r of each end to its own k-th neighbour.
    bandwidth : float or None
        b of ``"heat"``.

    Returns
    -------
    ndarray of shape (E,)
        Weights in [2e-9, 1].

    References
    ----------
    .. [1] L. Zelnik-Manor and P. Perona, "Self-tuning spectral clustering", NIPS 2004.

    Examples
    --------
    >>> edge_weights("self-tuning", np.array([2.0]), np.array([1.0]), np.array([4.0]), None).round(4).tolist()
    [0.6065]
    """
    if kind == "binary":
        return np.ones_like(squared_distance)
    scale: Any = radius_from * radius_to
    if kind == "heat":
        scale = np.median(radius_from) ** 2 if bandwidth is None else bandwidth**2
    exponent = squared_distance / np.maximum(scale, np.finfo(np.float64).tiny)
    return np.asarray(np.exp(-np.minimum(exponent, _LARGEST_EXPONENT)))
