"""The default rule: propagated labels as soft targets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grbb_ext.losses import Loss
from grbb_ext.losses._base import Floats
from grbb_ext.rules._laplacian_term import LaplacianTerm


@dataclass(frozen=True)
class TargetsRule:
    r"""Every row has a target: its label, or the propagated one.

    .. math:: g = w\,(\sigma(H) - q), \qquad h = w\,\sigma(H)(1 - \sigma(H)) \text{ (Newton) or } w,

    which is the correction in probability space: :math:`P g_l + \sigma(H_u) - P \sigma(H_l) = \sigma(H_u) - P y`.
    The operator is applied once, before the first round. `penalty` adds :math:`\lambda (L H)_l` on labelled rows.

    Attributes
    ----------
    loss : Loss
        The loss.
    targets : ndarray of float32 of shape (N,) or (N, K)
        q.
    weights : ndarray of float32 of shape (N,) or None
        w; 0 where no label reaches, None if it is 1 everywhere.
    newton : bool
        Curvature of the loss, or 1.
    penalty : LaplacianTerm or None
        The term in lam; None where it is 0.
    """

    loss: Loss
    targets: NDArray[np.float32]
    weights: NDArray[np.float32] | None
    newton: bool
    penalty: LaplacianTerm | None

    def __call__(self, H: Floats) -> tuple[Floats, Floats]:
        """Return gradient and hessian of all rows."""
        gradient, hessian = self.loss.derivatives(H, self.targets)
        if not self.newton:
            hessian = np.ones_like(gradient)
        if self.weights is not None:
            weights = self.weights if H.ndim == 1 else self.weights[:, None]
            gradient *= weights
            hessian *= weights
        if self.penalty is not None:
            gradient[self.penalty.labeled] += self.penalty.gradient(H)
            if self.newton:
                hessian[self.penalty.labeled] += self.penalty.curvature(H)
        return gradient, hessian
