"""The posterior covariance of the scores: its diagonal, its trace, and how labels that are added change it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grbb_ext._progress import row_blocks
from grbb_ext.variance._prior import Array, GraphPrior, Index, Product

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
    at_labels = covariance[:, np.searchsorted(reach, prior.labeled)]
    variance = np.zeros(prior.n_rows)
    variance[reach] = covariance.diagonal() if kind == "fisher" else at_labels**2 @ middle
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


_EXACT_UP_TO = 3_000
_COLUMNS_AT_ONCE = 64


class FrozenPosterior:
    r"""Covariance :math:`I^{-1}` of the scores, updated as rows are labelled.

    A label at row j adds :math:`\Delta_j e_j e_j^T` to the information. With c the column :math:`I^{-1} e_j`,

    .. math:: I_{new}^{-1} = I^{-1} - \alpha\, c c^T, \qquad \alpha = \frac{\Delta_j}{1 + \Delta_j c_j},

    so the weighted trace :math:`\frac1N \mathrm{tr}(V I^{-1})`, V the squared slopes, drops by :math:`\frac{\alpha}{N}
    c^T V c` (a mean over outputs where there are several). No more than one column per label is kept, and no N x N
    matrix.

    Parameters
    ----------
    prior : GraphPrior
        The prior.
    delta : ndarray of shape (n, K)
        Curvatures of the labelled rows.
    slope : ndarray of shape (N, K)
        Slopes of all rows.
    curvature : ndarray of shape (N, K)
        Curvature that a label would add at each row.
    lam : float
        Weight of the prior.
    candidates : ndarray of int of shape (c,)
        Rows that may be labelled by :meth:`label`; each takes a solve at once. Empty where only
        :meth:`drops_in_order` is wanted.
    """

    def __init__(
        self, prior: GraphPrior, delta: Array, slope: Array, curvature: Array, lam: float, candidates: Index
    ) -> None:
        self._prior, self._lam = prior, lam
        self._curvature = curvature
        self._squared_slope = np.where(prior.reachable[:, None], slope, 0.0) ** 2
        self._outputs = range(delta.shape[1])
        # Beyond a few thousand rows six digits are enough: a column is then two products with the graph.
        self._exact = prior.n_rows <= _EXACT_UP_TO
        if self._exact:
            self._core = [prior.inner(delta[:, k], lam).core for k in self._outputs]
        else:
            self._rough = [prior.posterior_product(delta[:, k], lam) for k in self._outputs]
        self._updates: list[list[tuple[float, Array]]] = [[] for _ in self._outputs]
        self._total = float(prior.reachable.sum()) * len(self._outputs)
        self.candidates = candidates
        self._at = np.empty((candidates.size, len(self._outputs)))
        self._squared = np.empty_like(self._at)
        # [inverse(I)]_jj and the weighted squared norm of column j for every candidate j.
        for block in row_blocks(candidates.size, _COLUMNS_AT_ONCE):
            for k, columns in enumerate(self._columns(candidates[block])):
                self._at[block, k] = columns[candidates[block]].diagonal()
                self._squared[block, k] = self._squared_slope[:, k] @ columns**2

    def _columns(self, rows: Index) -> Iterator[Array]:
        """Yield these columns of the current covariance, of shape (N, k), for each output."""
        Z = self._prior.scatter(np.eye(rows.size), rows)
        # R does not depend on the output.
        residual = self._prior.residual_product(Z) if self._exact else None
        return (self.product(Z, k, residual) for k in self._outputs)

    def product(self, Z: Array, output: int, residual: Array | None = None) -> Array:
        """Return the current covariance of one output's scores times Z; `residual` is R Z, if it is there already."""
        if self._exact:
            F = np.asarray(self._prior.columns, dtype=np.float64)
            residual = self._prior.residual_product(Z) if residual is None else residual
            image = residual / self._lam + F @ (self._core[output] @ (F.T @ Z))
        else:
            image = np.asarray(self._rough[output](Z.astype(np.float32)), dtype=np.float64)
        for alpha, column in self._updates[output]:
            image -= alpha * np.outer(column, column @ Z)
        return image

    @property
    def drop(self) -> Array:
        """By how much the mean variance falls if a candidate is labelled next, of shape (c,)."""
        added = self._curvature[self.candidates]
        return np.asarray((added * self._squared / (1.0 + added * self._at)).sum(axis=1) / self._total)

    def drops_in_order(self, rows: Index) -> Array:
        r"""Return the drops of given rows, labelled one after the other, from one block of columns.

        With C the columns of these rows, everything that the updates need is in the k x k matrices C[rows] and
        :math:`C^T V C`.

        Parameters
        ----------
        rows : ndarray of int of shape (k,)
            The rows, in order.

        Returns
        -------
        ndarray of shape (k,)
            By how much each lowers the mean variance.
        """
        drops = np.zeros(rows.size)
        for k, C in enumerate(self._columns(rows)):
            between, squared = C[rows], C.T @ (self._squared_slope[:, k, None] * C)
            for i, row in enumerate(rows):
                added = self._curvature[row, k]
                alpha = added / (1.0 + added * between[i, i])
                drops[i] += alpha * squared[i, i]
                pull = alpha * between[:, i]
                # C becomes C - C[:, i] pull^T.
                squared = squared - np.outer(pull, squared[i])
                squared = squared - np.outer(squared[:, i], pull)
                between = between - np.outer(pull, between[i])
        return drops / self._total

    def label(self, position: int) -> float:
        """Label a candidate and return the drop.

        Parameters
        ----------
        position : int
            Its position among the candidates.

        Returns
        -------
        float
            By how much the mean variance fell.
        """
        row = self.candidates[position]
        dropped = float(self.drop[position])
        for k, columns in enumerate(self._columns(self.candidates[[position]])):
            column = columns[:, 0]
            added = self._curvature[row, k]
            alpha = float(added / (1.0 + added * column[row]))
            weighted = self._squared_slope[:, k] * column
            pulled = self.product(weighted[:, None], k)[self.candidates, 0]
            shared = column[self.candidates]
            self._squared[:, k] += -2.0 * alpha * shared * pulled + (alpha * shared) ** 2 * float(weighted @ column)
            self._at[:, k] -= alpha * shared**2
            self._updates[k].append((alpha, column))
        return dropped
