"""The interface of a loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]


class Loss(ABC):
    """A loss without state: functions of raw scores H and targets T of equal shape, row by row.

    The arithmetic keeps the precision of H: float32 from a booster, float64 in a finite-difference check.
    """

    name: ClassVar[str]

    @abstractmethod
    def value(self, H: Floats, T: Floats) -> Floats:
        """Return the loss of every row, shape (N,)."""

    @abstractmethod
    def derivatives(self, H: Floats, T: Floats) -> tuple[Floats, Floats]:
        """Return gradient and curvature with respect to H, each of H's shape."""

    @abstractmethod
    def mean(self, H: Floats) -> Floats:
        """Return the prediction in the units of T: a probability, or H itself."""
