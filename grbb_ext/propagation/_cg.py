"""Conjugate gradients with a Jacobi preconditioner, for many right-hand sides at once."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext.propagation._ordering import local_order


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
        target = self._tol**2 * np.einsum("ij,ij->j", B, B)
        squared_residual = np.einsum("ij,ij->j", R, R)
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
            f"(wanted {self._tol:.1e}). Pass a larger tol, or solver='direct'; edge weights that differ by many orders "
            "of magnitude are the usual cause."
        )


def _ratio(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)
