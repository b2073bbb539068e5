"""What the labels tell about the scores (curvature), and the scores about the predictions (slope)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from grbb_ext.losses import Loss, SquaredErrorLoss
from grbb_ext.variance._prior import Array, Index

Curvature = Literal["logistic", "paper"]

# A score of 28 or more: the label has nothing more to tell, and the information must stay positive.
_SMALLEST = 1e-12


@dataclass(frozen=True)
class Curvatures:
    """Curvatures and slopes, one column per output.

    Attributes
    ----------
    delta : ndarray of shape (n, K)
        Curvature of the weighted loss on labelled rows, the diagonal of Delta.
    middle : ndarray of shape (n, K)
        Variance of the labelled gradient, the diagonal between the slices of the sandwich. Equal to delta where all
        weights are 1.
    slope : ndarray of shape (N, K)
        Derivative of the prediction with respect to the score.
    """

    delta: Array
    middle: Array
    slope: Array


def curvatures(
    H: NDArray[np.floating[Any]], labeled: Index, weight: Array, loss: Loss, curvature: Curvature
) -> Curvatures:
    r"""Evaluate curvatures and slopes at the raw scores.

    .. math:: \Delta_i = w_i\, p_i (1 - p_i) \text{ (logistic) or } w_i\, p_i^2 (1 - p_i) \text{ (paper)}, \qquad
       \frac{\partial p}{\partial H} = p (1 - p).

    The second is printed below eq. 14 of the paper. It is not the curvature of the logistic loss: it changes when the
    two classes swap names. With K classes each is taken against the rest, :math:`p_k (1 - p_k)`; for squared error
    :math:`\Delta_i = w_i` and the slope is 1.

    Parameters
    ----------
    H : ndarray of shape (N,) or (N, K)
        Raw scores.
    labeled : ndarray of int of shape (n,)
        The labelled rows.
    weight : ndarray of shape (n,)
        The weights of their losses.
    loss : Loss
        The loss.
    curvature : {"logistic", "paper"}
        The formula.

    Returns
    -------
    Curvatures
        With K columns, 1 for a single score per row.

    Examples
    --------
    >>> from grbb_ext.losses import LogisticLoss
    >>> found = curvatures(np.zeros(2), np.array([0]), np.ones(1), LogisticLoss(), "paper")
    >>> found.delta.tolist(), found.slope.tolist()
    ([[0.125]], [[0.25], [0.25]])
    """
    scores = np.asarray(H, dtype=np.float64)
    if isinstance(loss, SquaredErrorLoss):
        ones = np.ones((labeled.size, 1))
        return Curvatures(
            np.maximum(weight[:, None], _SMALLEST), weight[:, None] ** 2 * ones, np.ones((scores.size, 1))
        )
    p = np.asarray(loss.mean(scores)).reshape(scores.shape[0], -1)
    slope = p * (1.0 - p)
    unweighted = slope[labeled] * (p[labeled] if curvature == "paper" else 1.0)
    w = weight[:, None]
    return Curvatures(np.maximum(w * unweighted, _SMALLEST), w**2 * unweighted, slope)
