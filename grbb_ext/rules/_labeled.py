"""GBRT, the paper's other baseline: boosting on the labelled rows alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grbb_ext.losses._base import Floats
from grbb_ext.rules._labeled_gradient import LabeledGradient


@dataclass(frozen=True)
class LabeledRule:
    """Labelled rows follow the loss; unlabelled rows have gradient 0 and hessian 0, as if they were not there.

    Attributes
    ----------
    labeled_gradient : LabeledGradient
        Eq. 5.
    newton : bool
        Curvature of the loss, or 1, on labelled rows.
    """

    labeled_gradient: LabeledGradient
    newton: bool

    def __call__(self, H: Floats) -> tuple[Floats, Floats]:
        """Return gradient and hessian of all rows."""
        gradient, hessian = np.zeros_like(H), np.zeros_like(H)
        g_l, h_l = self.labeled_gradient(H)
        gradient[self.labeled_gradient.rows] = g_l
        hessian[self.labeled_gradient.rows] = h_l if self.newton else 1.0
        return gradient, hessian
