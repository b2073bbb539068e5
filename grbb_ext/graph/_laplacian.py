"""The graph Laplacian, its normalised form, and which rows a label can reach."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components


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
    n_components, component = connected_components(W, directed=False)
    holds_label = np.zeros(n_components, dtype=bool)
    holds_label[component[labeled]] = True
    return holds_label[component], component.astype(np.intp)
