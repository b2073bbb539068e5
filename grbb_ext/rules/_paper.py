"""The paper's rule: propagated gradients (eq. 6), hessian 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grbb_ext.losses._base import Floats
from grbb_ext.rules._labeled_gradient import LabeledGradient
from grbb_ext.rules._product import propagate


@dataclass(frozen=True)
class PaperRule:
    r"""Eq. 6 of the paper, exactly: :math:`g = \bar P g_l`, :math:`h = 1`, so a leaf is the mean of -g.

    Attributes
    ----------
    labeled_gradient : LabeledGradient
        Eq. 5.
    P_bar : ndarray of float32 of shape (N, n), row-major
        The operator; the identity on labelled rows.
    """

    labeled_gradient: LabeledGradient
    P_bar: NDArray[np.float32]

    def __call__(self, H: Floats) -> tuple[Floats, Floats]:
        """Return gradient and hessian of all rows."""
        g_l, _ = self.labeled_gradient(H)
        gradient = propagate(self.P_bar, g_l).astype(H.dtype, copy=False)
        return gradient, np.ones_like(gradient)
