"""Sparse LU: one factorisation, then any number of right-hand sides."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import splu


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
        self._factor = splu(
            sp.csc_array(A), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
        )

    def __call__(self, B: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the solution for each column of `B`."""
        return np.asarray(self._factor.solve(B))
