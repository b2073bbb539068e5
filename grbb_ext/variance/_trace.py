"""Traces from a few products with random vectors, with their errors."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grbb_ext._progress import row_blocks
from grbb_ext.variance._prior import Array, GraphPrior, Product

Kind = Literal["sandwich", "fisher"]


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
    for block in row_blocks(prior.n_rows):
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


class TraceEstimate(NamedTuple):
    """An unbiased estimate, its standard error, and the degrees of freedom that error was estimated with."""

    value: float
    standard_error: float
    degrees_of_freedom: int


def hutchpp(product: Product, size: int, n_probes: int, random: np.random.Generator) -> TraceEstimate:
    r"""Estimate the trace of a symmetric matrix A from products with it (Hutch++ [1]_).

    A third of the vectors finds an orthonormal basis Q of what A is largest on; there the trace is exact,

    .. math:: \mathrm{tr} A = \mathrm{tr}(Q^T A Q) + \mathrm{tr}\bigl((I - Q Q^T) A (I - Q Q^T)\bigr),

    and random signs estimate the second term. The standard error is that of their mean.

    Parameters
    ----------
    product : callable
        Z -> A Z for float32 Z of shape (size, k).
    size : int
        Rows of A.
    n_probes : int
        Random signs k for the second term, at least 2; half as many for the basis.
    random : numpy.random.Generator
        The source of the signs.

    Returns
    -------
    TraceEstimate
        With k - 1 degrees of freedom.

    References
    ----------
    .. [1] R. A. Meyer, C. Musco, C. Musco and D. P. Woodruff, "Hutch++: optimal stochastic trace estimation", SOSA
       2021.

    Examples
    --------
    A matrix of rank 1 is within the basis, so the result is exact:

    >>> found = hutchpp(lambda Z: np.ones((4, 4)) @ Z, 4, 2, np.random.default_rng(0))
    >>> round(found.value, 5), round(found.standard_error, 5)
    (4.0, 0.0)
    """
    half = max(1, n_probes // 2)
    Q, _ = np.linalg.qr(product(_signs(random, size, half)))
    Q = Q.astype(np.float32)
    G = _signs(random, size, n_probes)
    G -= Q @ (Q.T @ G)
    probes = np.hstack([Q, G])
    each = np.einsum("ij,ij->j", probes, product(probes), dtype=np.float64)
    known, each = float(each[:half].sum()), each[half:]
    spread = float(each.std(ddof=1) / np.sqrt(n_probes))
    return TraceEstimate(known + float(each.mean()), spread, n_probes - 1)


def squared_norm(
    product: Product, leading: NDArray[np.float64], n_probes: int, random: np.random.Generator
) -> TraceEstimate:
    r"""Estimate :math:`\|G\|_F^2 = \mathrm{tr}(G^T G)` from products of G with orthonormal vectors.

    The norm is exact along r given directions U, where G is expected to be largest. The other k vectors Q are a
    uniformly random frame of what is left, of dimension n - r, so

    .. math:: \|G U\|_F^2 + \frac{n - r}{k} \|G Q\|_F^2

    is unbiased, is exact for k = n - r, and has variance :math:`s^2 (1 - \frac{k}{n - r}) (n-r)^2 / k`, with s the
    standard deviation of the squared norms of the single columns.

    Parameters
    ----------
    product : callable
        z -> G z for z of shape (n, r + k).
    leading : ndarray of shape (n, r)
        U, orthonormal; r may be 0.
    n_probes : int
        k, at least 2; more than n - r is n - r.
    random : numpy.random.Generator
        The source of the frame.

    Returns
    -------
    TraceEstimate
        With k - 1 degrees of freedom.

    Examples
    --------
    >>> G = np.arange(6.0).reshape(2, 3)
    >>> round(squared_norm(lambda z: G @ z, np.empty((3, 0)), 3, np.random.default_rng(0)).value, 5)
    55.0
    """
    n, r = leading.shape
    k = min(n_probes, n - r)
    frame, _ = np.linalg.qr(np.hstack([leading, random.normal(size=(n, k))]))
    image = product(frame)
    each = np.einsum("ij,ij->j", image, image, dtype=np.float64)
    known, rest = float(each[:r].sum()), (n - r) * each[r:]
    if k == n - r:
        return TraceEstimate(known + (float(rest.mean()) if k else 0.0), 0.0, max(1, k - 1))
    error = float(rest.std(ddof=1) * np.sqrt((1 - k / (n - r)) / k))
    return TraceEstimate(known + float(rest.mean()), error, k - 1)


def _signs(random: np.random.Generator, size: int, k: int) -> NDArray[np.float32]:
    return (2.0 * random.integers(0, 2, size=(size, k)) - 1.0).astype(np.float32)
