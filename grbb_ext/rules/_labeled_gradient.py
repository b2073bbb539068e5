"""The gradient of the labelled rows (paper, eq. 5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grbb_ext.losses import Loss
from grbb_ext.losses._base import Floats
from grbb_ext.rules._laplacian_term import LaplacianTerm


@dataclass(frozen=True)
class LabeledGradient:
    r"""Derivatives of the regularised loss with respect to the labelled scores (paper, eq. 5).

    .. math:: g_l = w \,\frac{\partial \ell}{\partial H_l} + \lambda (L H)_l, \qquad
       h_l = w \,\frac{\partial^2 \ell}{\partial H_l^2} + \lambda L_{ll}.

    Only labelled scores pass through the loss, so a round costs n sigmoids whatever N is.

    Attributes
    ----------
    loss : Loss
        The loss.
    rows : ndarray of int of shape (n,)
        The labelled rows.
    targets : ndarray of shape (n,) or (n, K)
        Their targets.
    weights : ndarray of shape (n,)
        Their weights w.
    penalty : LaplacianTerm or None
        The term in lam; None where it is 0.

    Examples
    --------
    >>> from grbb_ext.losses import LogisticLoss
    >>> gradient = LabeledGradient(LogisticLoss(), np.array([2]), np.array([1.0]), np.array([2.0]), None)
    >>> [values.tolist() for values in gradient(np.zeros(3))]
    [[-1.0], [0.5]]
    """

    loss: Loss
    rows: NDArray[np.intp]
    targets: NDArray[np.float64]
    weights: NDArray[np.float64]
    penalty: LaplacianTerm | None

    def __call__(self, H: Floats) -> tuple[Floats, Floats]:
        """Return g_l and h_l, in float64: n rows are few, and what is made of them is many."""
        weights = self.weights if H.ndim == 1 else self.weights[:, None]
        gradient, curvature = self.loss.derivatives(H[self.rows].astype(np.float64), self.targets)
        gradient, curvature = weights * gradient, weights * curvature
        if self.penalty is not None:
            gradient += self.penalty.gradient(H)
            curvature += self.penalty.curvature(H)
        return gradient, curvature
