"""Losses as functions of raw scores and targets: value, gradient and curvature."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
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

    name = "logistic"

    def value(self, H: Floats, T: Floats) -> Floats:
        """Return the loss of every row."""
        return np.asarray(np.logaddexp(0.0, H) - T * H)

    def derivatives(self, H: Floats, T: Floats) -> tuple[Floats, Floats]:
        """Return gradient and curvature."""
        P = self.mean(H)
        curvature = P - P * P
        P -= T
        return P, curvature

    def mean(self, H: Floats) -> Floats:
        """Return the probability of the second class."""
        return np.asarray(expit(H))


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

    name = "softmax"

    def value(self, H: Floats, T: Floats) -> Floats:
        """Return the loss of every row."""
        return np.asarray(np.logaddexp.reduce(H, axis=1) - (T * H).sum(axis=1))

    def derivatives(self, H: Floats, T: Floats) -> tuple[Floats, Floats]:
        """Return gradient and curvature."""
        P = self.mean(H)
        curvature = P - P * P
        curvature *= 2
        P -= T
        return P, curvature

    def mean(self, H: Floats) -> Floats:
        """Return the probability of each class."""
        return np.asarray(softmax(H, axis=1))


class SquaredErrorLoss(Loss):
    r"""Half the squared error: :math:`\ell(H, t) = (H - t)^2 / 2`, gradient :math:`H - t`, curvature 1.

    Examples
    --------
    >>> gradient, curvature = SquaredErrorLoss().derivatives(np.array([3.0]), np.array([1.0]))
    >>> gradient.tolist(), curvature.tolist()
    ([2.0], [1.0])
    """

    name = "squared_error"

    def value(self, H: Floats, T: Floats) -> Floats:
        """Return the loss of every row."""
        return np.asarray(0.5 * (H - T) ** 2)

    def derivatives(self, H: Floats, T: Floats) -> tuple[Floats, Floats]:
        """Return gradient and curvature."""
        return np.asarray(H - T), np.ones_like(H)

    def mean(self, H: Floats) -> Floats:
        """Return H itself."""
        return H


def per_class(probability: NDArray[Any]) -> NDArray[Any]:
    """Return a column for each class, also of two.

    Examples
    --------
    >>> per_class(np.array([0.0, 1.0])).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return np.column_stack([1.0 - probability, probability]) if probability.ndim == 1 else probability


def class_probabilities(raw_scores: ArrayLike) -> NDArray[np.float64]:
    """Return the probability of each class.

    Parameters
    ----------
    raw_scores : array-like of shape (N,) or (N, K)
        Of the second of two classes (logistic loss), or of each of K (softmax loss).

    Returns
    -------
    ndarray of shape (N, 2) or (N, K)

    Examples
    --------
    >>> class_probabilities([0.0]).tolist(), class_probabilities(np.zeros((1, 4))).tolist()
    ([[0.5, 0.5]], [[0.25, 0.25, 0.25, 0.25]])
    """
    H = np.asarray(raw_scores, dtype=np.float64)
    return per_class((LogisticLoss() if H.ndim == 1 else SoftmaxLoss()).mean(H))
