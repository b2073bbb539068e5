"""Logistic loss, for two classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit

from grbb_ext.losses._base import Floats, Loss


@dataclass(frozen=True)
class LogisticLoss(Loss):
    r"""Cross-entropy of a target t in [0, 1]: :math:`\ell(H, t) = \log(1 + e^H) - t H`.

    .. math:: \frac{\partial \ell}{\partial H} = \sigma(H) - t, \qquad
       \frac{\partial^2 \ell}{\partial H^2} = \sigma(H) (1 - \sigma(H)).

    Examples
    --------
    >>> gradient, curvature = LogisticLoss().derivatives(np.array([0.0]), np.array([1.0]))
    >>> gradient.tolist(), curvature.tolist()
    ([-0.5], [0.25])
    """

    name: ClassVar[str] = "logistic"

    def value(self, H: Floats, T: Floats) -> Floats:
        """Return the loss of every row."""
        return np.asarray(np.logaddexp(0.0, H) - T * H)

    def derivatives(self, H: Floats, T: Floats) -> tuple[Floats, Floats]:
        """Return gradient and curvature."""
        P = np.asarray(expit(H))
        curvature = P - P * P
        P -= T
        return P, curvature

    def mean(self, H: Floats) -> Floats:
        """Return the probability of the second class."""
        return np.asarray(expit(H))
