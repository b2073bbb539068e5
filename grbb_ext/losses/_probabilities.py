"""From raw scores to probabilities of classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grbb_ext.losses._logistic import LogisticLoss
from grbb_ext.losses._softmax import SoftmaxLoss


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
    if H.ndim == 1:
        probability = LogisticLoss().mean(H)
        return np.column_stack([1.0 - probability, probability])
    return SoftmaxLoss().mean(H).astype(np.float64, copy=False)
