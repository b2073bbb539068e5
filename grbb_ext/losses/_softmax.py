"""Softmax loss, for K classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import softmax

from grbb_ext.losses._base import Floats, Loss


@dataclass(frozen=True)
class SoftmaxLoss(Loss):
    r"""Cross-entropy of a target distribution t over K classes: :math:`\ell(H, t) = \log\sum_k e^{H_k} - t \cdot H`.

    .. math:: \frac{\partial \ell}{\partial H_k} = p_k - t_k, \qquad h_k = 2\, p_k (1 - p_k).

    The Hessian :math:`\mathrm{diag}(p) - p p^T` is replaced by the diagonal matrix h, which bounds it from above, since
    a booster takes its K steps at once. XGBoost uses the same factor 2 (LightGBM K / (K - 1)).

    Examples
    --------
    >>> gradient, curvature = SoftmaxLoss().derivatives(np.zeros((1, 4)), np.array([[1.0, 0.0, 0.0, 0.0]]))
    >>> gradient.tolist(), curvature.tolist()
    ([[-0.75, 0.25, 0.25, 0.25]], [[0.375, 0.375, 0.375, 0.375]])
    """

    name: ClassVar[str] = "softmax"

    def value(self, H: Floats, T: Floats) -> Floats:
        """Return the loss of every row."""
        return np.asarray(np.logaddexp.reduce(H, axis=1) - (T * H).sum(axis=1))

    def derivatives(self, H: Floats, T: Floats) -> tuple[Floats, Floats]:
        """Return gradient and curvature."""
        P = np.asarray(softmax(H, axis=1))
        curvature = P - P * P
        curvature *= 2
        P -= T
        return P, curvature

    def mean(self, H: Floats) -> Floats:
        """Return the probability of each class."""
        return np.asarray(softmax(H, axis=1))
