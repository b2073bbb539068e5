"""The paper's rule made self-correcting."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grbb_ext.losses._base import Floats
from grbb_ext.rules._labeled_gradient import LabeledGradient
from grbb_ext.rules._product import propagate


@dataclass(frozen=True)
class CorrectedRule:
    r"""Propagated gradients plus the distance of the unlabelled scores from the propagated ones.

    .. math:: g = \bar P g_l + \rho\, h\, (H - \bar P H_l), \qquad h = \bar P h_l \text{ (Newton) or } 1.

    Eq. 6 never looks at the unlabelled scores, so once the labelled rows are fitted a wrong score is never
    repaired. The second term is the gradient of the paper's Laplacian penalty with respect to H_u,
    :math:`\lambda L_{uu}(H_u - P H_l)`, preconditioned by :math:`L_{uu}^{-1}`.

    Attributes
    ----------
    labeled_gradient : LabeledGradient
        Eq. 5.
    P_bar : ndarray of float32 of shape (N, n), row-major
        The operator; the identity on labelled rows, where the correction vanishes.
    correction : float
        :math:`\rho`.
    newton : bool
        Whether the curvature is propagated; needs a row-stochastic P.
    unreachable : ndarray of int
        Rows that no label reaches.
    """

    labeled_gradient: LabeledGradient
    P_bar: NDArray[np.float32]
    correction: float
    newton: bool
    unreachable: NDArray[np.intp]

    def __call__(self, H: Floats) -> tuple[Floats, Floats]:
        """Return gradient and hessian of all rows."""
        g_l, h_l = self.labeled_gradient(H)
        H_l = H[self.labeled_gradient.rows]
        parts = [g_l, H_l, h_l] if self.newton else [g_l, H_l]
        # One pass over P_bar serves all right-hand sides: reading it is what a round costs.
        extended = propagate(self.P_bar, np.stack(parts, axis=1).reshape(g_l.shape[0], -1))
        extended = extended.reshape(-1, len(parts), *H.shape[1:])
        hessian = np.ascontiguousarray(extended[:, 2]) if self.newton else np.ones(H.shape, dtype=np.float32)
        gradient = H - extended[:, 1]
        gradient *= hessian
        gradient *= self.correction
        gradient += extended[:, 0]
        # Where no label reaches, the row of P_bar is 0 and the correction would pull the score to 0.
        gradient[self.unreachable] = 0.0
        return gradient.astype(H.dtype, copy=False), hessian.astype(H.dtype, copy=False)
