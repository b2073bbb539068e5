"""Squared error, for regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from grbb_ext.losses._base import Floats, Loss


@dataclass(frozen=True)
class SquaredErrorLoss(Loss):
    r"""Half the squared error: :math:`\ell(H, t) = (H - t)^2 / 2`, gradient :math:`H - t`, curvature 1.

    Examples
    --------
    >>> gradient, curvature = SquaredErrorLoss().derivatives(np.array([3.0]), np.array([1.0]))
    >>> gradient.tolist(), curvature.tolist()
    ([2.0], [1.0])
    """

    name: ClassVar[str] = "squared_error"

    def value(self, H: Floats, T: Floats) -> Floats:
        """Return the loss of every row."""
        return np.asarray(0.5 * (H - T) ** 2)

    def derivatives(self, H: Floats, T: Floats) -> tuple[Floats, Floats]:
        """Return gradient and curvature."""
        return np.asarray(H - T), np.ones_like(H)

    def mean(self, H: Floats) -> Floats:
        """Return H itself."""
        return H
