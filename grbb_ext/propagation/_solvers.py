"""Solvers of sparse symmetric systems: LU, conjugate gradients, and powers by Chebyshev interpolation."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.fft import dct
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import splu

ILL_CONDITIONED = (
    "Some rows hang on edges that are lighter than the others by many orders of magnitude: drop such edges, or use "
    "propagation='smooth', which any graph suits."
)


class SolverError(RuntimeError):
    """A linear system could not be solved to the tolerance asked for."""


class ConjugateGradientSolver:
    r"""Solve A X = B for a symmetric positive semi-definite sparse A, column by column in one sweep.

    The columns share the products with A and nothing else: each has its own step lengths, and is
    finished when :math:`\|b - A x\| \le tol \|b\|`. A singular A is fine where B lies in its range.

    Parameters
    ----------
    A : csr_array of shape (M, M)
        The matrix; its diagonal is the preconditioner.
    tol : float
        Relative residual.
    max_iter : int, default=10000
        Iterations before :class:`SolverError`.

    Examples
    --------
    >>> solve = ConjugateGradientSolver(sp.csr_array([[2.0, -1.0], [-1.0, 2.0]]), tol=1e-12)
    >>> solve(np.array([[1.0], [1.0]])).round(9).ravel().tolist()
    [1.0, 1.0]
    """

    def __init__(self, A: sp.csr_array, tol: float, max_iter: int = 10_000) -> None:
        self._A, self._order = local_order(A)
        self._tol, self._max_iter = tol, max_iter
        diagonal = self._A.diagonal()
        self._inverse_diagonal = 1.0 / np.where(diagonal > 0, diagonal, 1.0)[:, None]

    def __call__(self, B: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the solution for each column of `B`."""
        X = np.empty_like(B)
        X[self._order] = self._solve(B[self._order])
        return X

    def improved(self, X: NDArray[np.float64], B: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return X plus the solution for what it leaves of B: one step of iterative refinement."""
        left = np.empty_like(B)
        left[self._order] = B[self._order] - self._A @ X[self._order]
        return X + self(left)

    def _solve(self, B: NDArray[np.float64]) -> NDArray[np.float64]:
        X = np.zeros_like(B)
        R = B.copy()
        squared_residual = np.einsum("ij,ij->j", R, R)
        target = self._tol**2 * squared_residual
        direction = self._inverse_diagonal * R
        slope = np.einsum("ij,ij->j", R, direction)
        for _ in range(self._max_iter):
            if (squared_residual <= target).all():
                return X
            image = self._A @ direction
            # A finished column has slope 0 or nearly so; it stays where it is.
            step = _ratio(slope, np.einsum("ij,ij->j", direction, image))
            X += step * direction
            image *= step
            R -= image
            squared_residual = np.einsum("ij,ij->j", R, R)
            Z = np.multiply(self._inverse_diagonal, R, out=image)
            slope, previous = np.einsum("ij,ij->j", R, Z), slope
            direction *= _ratio(slope, previous)
            direction += Z
        worst = float(np.sqrt((squared_residual / np.maximum(target, np.finfo(float).tiny)).max())) * self._tol
        raise SolverError(
            f"Conjugate gradients stopped after {self._max_iter} iterations at a relative residual of {worst:.1e} "
            f"(wanted {self._tol:.1e}). Pass a larger tol, or solver='direct'. {ILL_CONDITIONED}"
        )


def _ratio(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)


class DirectSolver:
    """Solve A X = B for a symmetric positive definite sparse A.

    Parameters
    ----------
    A : csr_array of shape (M, M)
        The matrix.

    Examples
    --------
    >>> DirectSolver(sp.csr_array([[2.0, -1.0], [-1.0, 2.0]]))(np.array([[1.0], [1.0]])).ravel().tolist()
    [1.0, 1.0]
    """

    def __init__(self, A: sp.csr_array) -> None:
        # The minimum-degree ordering of A + A^T with diagonal pivots is the right one for a symmetric positive A.
        try:
            self._factor = splu(
                sp.csc_array(A), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
            )
        except RuntimeError as error:  # "Factor is exactly singular"
            raise SolverError(f"The graph cannot be solved directly ({error}). {ILL_CONDITIONED}") from error

    def __call__(self, B: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the solution for each column of `B`."""
        return np.asarray(self._factor.solve(B))


def local_order(A: sp.csr_array) -> tuple[sp.csr_array, NDArray[np.intp]]:
    """Reorder a symmetric matrix so that its entries lie near the diagonal (reverse Cuthill-McKee).

    A product with many vectors reads scattered rows of them; at 100,000 rows the order makes it about 3 times faster
    and takes .03 s to find.

    Parameters
    ----------
    A : csr_array of shape (M, M)
        Symmetric.

    Returns
    -------
    B : csr_array of shape (M, M)
        ``A[order][:, order]``.
    order : ndarray of int of shape (M,)
        The rows of A in their new order.

    Examples
    --------
    >>> path = sp.csr_array([[0, 0, 1, 0], [0, 0, 1, 1], [1, 1, 0, 0], [0, 1, 0, 0]])
    >>> B, order = local_order(path)
    >>> order.tolist(), int(np.abs(np.subtract(*B.nonzero())).max())
    ([3, 1, 2, 0], 1)
    """
    order = reverse_cuthill_mckee(sp.csr_array(A), symmetric_mode=True).astype(np.intp)
    return sp.csr_array(A[order][:, order]), order


# The smallest tau that is tried by itself needs about 16,000 with the default power and tol.
_LARGEST_DEGREE = 32_768


class ChebyshevPower:
    r"""Apply :math:`(A + \tau I)^{-p}`, A symmetric with spectrum in [0, 2], to vectors that are 0 but in a few rows.

    The function :math:`(x + \tau)^{-p}` is replaced on [0, 2] by its Chebyshev interpolant, whose degree is chosen so
    that the coefficients left out add up to less than `tol` times the largest value :math:`\tau^{-p}`; a degree
    beyond 32,768 is refused with :class:`SolverError`. One
    product with A per degree does all p powers at once, without inner products: for :math:`\tau = .05`,
    p = 3 and tol = 1e-8 the degree is 76, where three conjugate-gradient solves take about 150 products. Clenshaw's
    recurrence touches the few non-zero rows of the right-hand side only, so a step is a product and a difference.

    Parameters
    ----------
    A : csr_array of shape (M, M)
        Symmetric, with eigenvalues in [0, 2]: a normalised Laplacian. The products are made in its precision.
    rows : ndarray of int of shape (n,)
        Where the right-hand sides are not 0.
    shift : float
        :math:`\tau > 0`.
    power : int
        p.
    tol : float
        Largest error relative to :math:`\tau^{-p}`, in the spectral norm.

    Examples
    --------
    >>> A = sp.csr_array([[1.0, -1.0], [-1.0, 1.0]])
    >>> ChebyshevPower(A, np.array([0, 1]), shift=0.5, power=2, tol=1e-12)(np.eye(2)).round(6).tolist()
    [[2.08, 1.92], [1.92, 2.08]]
    """

    def __init__(self, A: sp.csr_array, rows: NDArray[np.intp], shift: float, power: int, tol: float) -> None:
        # The recurrence runs on A - I, with eigenvalues in [-1, 1], and always with twice that matrix.
        local, self._order = local_order(A)
        identity = sp.eye_array(A.shape[0], format="csr", dtype=A.dtype)
        self._doubled = sp.csr_array(2.0 * (local - identity)).astype(A.dtype)
        self._rows = np.argsort(self._order)[rows]
        self._coefficients = _coefficients(shift, power, tol)

    def __call__(self, values: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
        """Return the power applied to the vectors with these values, of shape (n, k), in the given rows."""
        n_rows = self._doubled.shape[0]
        rows: Any = self._rows
        if rows.size == n_rows:
            # A slice is added to in a third of the time that an index takes.
            in_order = np.empty_like(values)
            in_order[rows] = values
            rows, values = slice(None), in_order
        values = values.astype(self._doubled.dtype, copy=False)
        coefficients = self._coefficients.astype(self._doubled.dtype)
        current = np.zeros((n_rows, values.shape[1]), dtype=self._doubled.dtype)
        current[rows] = coefficients[-1] * values
        previous = np.zeros_like(current)
        for degree in range(coefficients.size - 2, -1, -1):
            following = self._doubled @ current
            if degree == 0:
                following *= 0.5
            following -= previous
            following[rows] += coefficients[degree] * values
            previous, current = current, following
        previous[self._order] = current
        return previous


def _coefficients(shift: float, power: int, tol: float) -> NDArray[np.float64]:
    """Return the Chebyshev coefficients of (x + 1 + shift)^-power on [-1, 1] that `tol` asks for."""
    degree = _degree(shift, power, tol)
    if degree > _LARGEST_DEGREE:
        raise SolverError(
            f"tau={shift:.3g}, power={power} and tol={tol:.3g} need a polynomial of degree {degree:,}; at most "
            f"{_LARGEST_DEGREE:,} is computed. Pass a larger tau or tol, or a smaller power."
        )
    angle = np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1)
    # 1 + cos(angle), without cancellation where it is smaller than the shift; 1 is the largest value.
    values = (2.0 * np.cos(0.5 * angle) ** 2 / shift + 1.0) ** -power
    coefficients = dct(values, type=2) / (degree + 1)
    coefficients[0] *= 0.5
    tail = np.abs(coefficients[::-1]).cumsum()[::-1]
    small = np.flatnonzero(tail <= 0.5 * tol)  # none where tol is below the rounding error
    needed = int(small[0]) if small.size else coefficients.size
    with np.errstate(over="ignore"):  # whoever uses them looks at what comes out
        return np.asarray(coefficients[: max(2, needed)] * np.float64(shift) ** -power)


def _degree(shift: float, power: int, tol: float) -> int:
    r"""Return a degree at which the interpolant of (x + 1 + shift)^-power is off by less than tol / 4, relatively.

    Trying degrees until the last coefficients are small does not do: nodes that miss the peak at -1 have small values
    only. On the ellipse with foci -1, 1 that meets the axis at :math:`-(1 + s \tau)`, the function is at most
    :math:`M = (1 - s)^{-p}` times its largest value on [-1, 1], and the error is at most
    :math:`4 M \rho^{-d} / (\rho - 1)`, with :math:`\rho` the sum of the half axes; s is chosen here.

    Examples
    --------
    >>> _degree(0.05, 3, 1e-8), _degree(5e-6, 3, 1e-8)
    (97, 11224)
    """
    s = np.linspace(0.01, 0.99, 99)
    rho = 1.0 + s * shift + np.sqrt((s * shift) ** 2 + 2.0 * s * shift)
    degree = (np.log(16.0 / (tol * (rho - 1.0))) - power * np.log1p(-s)) / np.log(rho)
    return max(1, int(np.ceil(degree.min())))
