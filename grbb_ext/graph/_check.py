"""A user's own affinity, checked at the door."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

_ASYMMETRY_ALLOWED = 1e-8


def check_graph(graph: Any, n_rows: int | None = None) -> sp.csr_array:
    """Return `graph` as a CSR affinity, or say what is wrong with it.

    Parameters
    ----------
    graph : sparse matrix or array-like of shape (N, N)
        Symmetric, non-negative and finite. The diagonal is dropped: self-loops do not change the Laplacian.
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
            f"graph has {W.shape[0]} rows but y has {n_rows}: it must hold labelled and unlabelled rows, in y's order."
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
    W.sort_indices()
    if W.nnz:
        asymmetry = float(np.abs(W - W.T).max())
        if asymmetry > _ASYMMETRY_ALLOWED * W.data.max():
            raise ValueError(
                f"graph is not symmetric (largest |W - W.T| is {asymmetry:g}). Pass W.maximum(W.T) or (W + W.T) / 2."
            )
    return W
