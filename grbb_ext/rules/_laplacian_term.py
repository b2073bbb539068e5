"""The Laplacian term of the labelled gradient (paper, second half of eq. 5)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext.losses._base import Floats


@dataclass(frozen=True)
class LaplacianTerm:
    r"""Gradient and curvature of :math:`\frac{\lambda}{2} H^T L H` with respect to the labelled scores.

    Attributes
    ----------
    lam : float
        The trade-off of eq. 2.
    labeled : ndarray of int of shape (n,)
        The labelled rows.
    L_l : csr_array of shape (n, N)
        Their rows of the Laplacian.
    """

    lam: float
    labeled: NDArray[np.intp]
    L_l: sp.csr_array

    def gradient(self, H: Floats) -> Floats:
        """Return lam (L H)_l."""
        return np.asarray(self.lam * (self.L_l @ H))

    @cached_property
    def _degree(self) -> NDArray[np.float64]:
        return np.asarray(self.L_l[np.arange(self.labeled.size), self.labeled]).ravel()

    def curvature(self, H: Floats) -> Floats:
        """Return the diagonal of lam L on labelled rows, ready to be added to a curvature of H's dimension."""
        return self.lam * (self._degree if H.ndim == 1 else self._degree[:, None])
