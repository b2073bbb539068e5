"""Exact variances of the scores: by the n x n form, or by a dense inverse."""

from __future__ import annotations

from typing import Literal

import numpy as np

from grbb_ext.variance._prior import Array, GraphPrior

Kind = Literal["sandwich", "fisher"]

_ROWS_AT_ONCE = 16_384


def schur_diagonal(prior: GraphPrior, delta: Array, middle: Array, lam: float, kind: Kind) -> Array:
    r"""Return the variance of every score through F, n x n matrices and, for ``"fisher"``, the diagonal of R.

    .. math:: \mathrm{diag}(I^{-1} J I^{-1}) = (C \circ C)\, \mathrm{diag}(J),\; C = F M, \qquad
       \mathrm{diag}(I^{-1}) = \mathrm{diag}(R) / \lambda + \mathrm{rowsum}(F A \circ F).

    Parameters
    ----------
    prior : GraphPrior
        F, R, A and M.
    delta, middle : ndarray of shape (n,)
        The diagonals of Delta and J.
    lam : float
        The weight of the prior.
    kind : {"sandwich", "fisher"}
        Which of the two.

    Returns
    -------
    ndarray of shape (N,)
        The variances; 0 where no label reaches.
    """
    inner = prior.inner(delta, lam)
    F = prior.columns
    variance = np.empty(prior.n_rows)
    for start in range(0, prior.n_rows, _ROWS_AT_ONCE):
        block = slice(start, start + _ROWS_AT_ONCE)
        rows = np.asarray(F[block], dtype=np.float64)
        if kind == "sandwich":
            variance[block] = (rows @ inner.to_columns) ** 2 @ middle
        else:
            variance[block] = np.einsum("ij,ij->i", rows @ inner.core, rows)
    if kind == "fisher":
        variance += prior.residual_diagonal / lam
    return variance


def dense_diagonal(prior: GraphPrior, delta: Array, middle: Array, lam: float, kind: Kind) -> Array:
    """Return the same from the dense inverse of the information, N x N."""
    reach = np.flatnonzero(prior.reachable)
    covariance = prior.dense_covariance(delta, lam)
    variance = np.zeros(prior.n_rows)
    if kind == "fisher":
        variance[reach] = covariance.diagonal()
    else:
        variance[reach] = covariance[:, np.searchsorted(reach, prior.labeled)] ** 2 @ middle
    return variance
