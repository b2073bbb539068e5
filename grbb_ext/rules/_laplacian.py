"""LapGBRT, the paper's baseline: the plain gradient of the Laplacian-regularised loss (eq. 2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext.losses._base import Floats
from grbb_ext.rules._labeled_gradient import LabeledGradient


@dataclass(frozen=True)
class LaplacianRule:
    r"""Gradient of eq. 2: :math:`g_l` as in eq. 5, :math:`g_u = \lambda (L H)_u`, hessian 1.

    Attributes
    ----------
    labeled_gradient : LabeledGradient
        Eq. 5 without its Laplacian term, which is added here for all rows at once.
    L : csr_array of shape (N, N)
        The Laplacian; rows that no label reaches are empty.
    lam : float
        The trade-off of eq. 2.
    """

    labeled_gradient: LabeledGradient
    L: sp.csr_array
    lam: float

    def __call__(self, H: Floats) -> tuple[Floats, Floats]:
        """Return gradient and hessian of all rows."""
        gradient = (self.lam * (self.L @ H)).astype(H.dtype)
        g_l, _ = self.labeled_gradient(H)
        rows: NDArray[np.intp] = self.labeled_gradient.rows
        gradient[rows] += g_l
        return gradient, np.ones_like(gradient)
