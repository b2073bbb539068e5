"""Propagated labels as targets in probability space."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from grbb_ext.losses import Loss, SquaredErrorLoss, per_class
from grbb_ext.propagation import Propagation

_LARGE_POWER = 50.0


def soft_targets(
    propagation: Propagation, targets: NDArray[np.float64], loss: Loss, *, sharpen: float = 1.0, hard: bool = False
) -> NDArray[np.float64]:
    r"""Propagate the labels and turn them into targets q for every row.

    Labels are coded as :math:`t = 2y - 1 \in \{-1, 1\}`, one column per class, and

    .. math:: f = \mathrm{clip}(m + P (t - m), -1, 1), \qquad q = (1 + f) / 2, \qquad
       m = \bar t \max\bigl(0, 1 - 4 / (n \bar t^2)\bigr):

    the mean of the labels, shrunk to 0 as far as n labels cannot tell it from 0. Where the rows of P sum to 1
    (harmonic, nonlocal, Poisson) m cancels and, for the first two, :math:`q = P y`. Sharpening by s gives
    :math:`q_k^s / \sum_j q_j^s`, the limit of large s is `hard`. For regression :math:`q = \bar y + P (y - \bar y)`.

    Parameters
    ----------
    propagation : Propagation
        The operator.
    targets : ndarray of shape (n,) or (n, K)
        Targets of the labelled rows: 0/1, one-hot, or values.
    loss : Loss
        The loss.
    sharpen : float, default=1
        s; 1 leaves q alone.
    hard : bool, default=False
        Round q to the most probable class.

    Returns
    -------
    ndarray of shape (N,) or (N, K)
        Targets of all rows; the labelled ones are as given.

    Examples
    --------
    >>> from grbb_ext.losses import LogisticLoss
    >>> from grbb_ext.propagation import Harmonic
    >>> path = np.diag([1.0, 1.0, 1.0], 1) + np.diag([1.0, 1.0, 1.0], -1)
    >>> P = Harmonic().on(path, [0, 3])
    >>> soft_targets(P, np.array([0.0, 1.0]), LogisticLoss()).round(3).tolist()
    [0.0, 0.333, 0.667, 1.0]
    >>> soft_targets(P, np.array([0.0, 1.0]), LogisticLoss(), sharpen=3).round(3).tolist()
    [0.0, 0.111, 0.889, 1.0]
    """
    values, mean = centered_labels(targets, loss)
    q = finish_targets(propagation.extend(values), mean, loss, sharpen=sharpen, hard=hard)
    q[propagation.labeled] = targets
    return q


def centered_labels(
    targets: NDArray[np.float64], loss: Loss
) -> tuple[NDArray[np.float64], np.float64 | NDArray[np.float64]]:
    """Return what is propagated, t - m of :func:`soft_targets` (y less its mean for regression), and m.

    Examples
    --------
    >>> from grbb_ext.losses import LogisticLoss
    >>> values, mean = centered_labels(np.array([0.0, 1.0, 1.0]), LogisticLoss())
    >>> values.tolist(), float(mean)  # three labels do not tell the mean from 0
    ([-1.0, 1.0, 1.0], 0.0)
    """
    if isinstance(loss, SquaredErrorLoss):
        mean = targets.mean(axis=0)
        return targets - mean, mean
    coded = 2.0 * targets - 1.0
    mean = coded.mean(axis=0)
    with np.errstate(divide="ignore"):
        mean = mean * np.maximum(0.0, 1.0 - 4.0 / (coded.shape[0] * mean**2))
    return coded - mean, mean


def finish_targets(
    extended: NDArray[np.float64],
    mean: np.float64 | NDArray[np.float64],
    loss: Loss,
    *,
    sharpen: float = 1.0,
    hard: bool = False,
) -> NDArray[np.float64]:
    """Turn P (t - m) of any rows into targets q, row by row; the rest of :func:`soft_targets`.

    Examples
    --------
    >>> from grbb_ext.losses import LogisticLoss
    >>> finish_targets(np.array([-1.0, 0.5]), np.float64(0.0), LogisticLoss(), sharpen=2).tolist()
    [0.0, 0.9]
    """
    if isinstance(loss, SquaredErrorLoss):
        return np.asarray(mean + extended)
    return sharpened(0.5 * (1.0 + np.clip(mean + extended, -1.0, 1.0)), sharpen, hard)


def sharpened(q: NDArray[np.float64], sharpen: float, hard: bool = False) -> NDArray[np.float64]:
    r"""Return :math:`q_k^s / \sum_j q_j^s`, or the most probable class.

    Examples
    --------
    >>> sharpened(np.array([0.5, 0.75]), 2).tolist(), sharpened(np.array([[0.2, 0.4, 0.4]]), 1).tolist()
    ([0.5, 0.9], [[0.2, 0.4, 0.4]])
    """
    if q.ndim == 1:
        if hard:
            return np.asarray(np.sign(q - 0.5) * 0.5 + 0.5)  # an exact tie stays at one half
        if sharpen > _LARGE_POWER:  # where powers vanish, their ratio does not
            return np.asarray(expit(sharpen * logit(q)))
        return np.asarray(q**sharpen / (q**sharpen + (1.0 - q) ** sharpen))
    if hard:
        return np.asarray(np.eye(q.shape[1])[q.argmax(axis=1)])
    # Where every class is clipped to 0 nothing is known: the uniform distribution.
    q = np.where(q.max(axis=1, keepdims=True) > 0, q, 1.0)
    q = (q / q.max(axis=1, keepdims=True)) ** sharpen
    return np.asarray(q / q.sum(axis=1, keepdims=True))


def tempered(q: NDArray[np.float64], powers: Sequence[float], shares: Sequence[float]) -> NDArray[np.float64]:
    """Average :func:`sharpened` over powers, with these shares.

    Examples
    --------
    >>> tempered(np.array([0.0, 0.5, 0.75, 1.0]), (1.0, 2.0), (0.5, 0.5)).round(3).tolist()
    [0.0, 0.5, 0.825, 1.0]
    """
    if q.ndim == 2:
        return np.asarray(sum(share * sharpened(q, power) for power, share in zip(powers, shares, strict=True)))
    # For two classes a power is a factor of the logit, which is taken once.
    with np.errstate(divide="ignore"):
        score, mean = logit(q), np.zeros_like(q)
    for power, share in zip(powers, shares, strict=True):
        mean += share * expit(power * score)
    return mean


def shifted(q: NDArray[np.float64], ratio: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Return :math:`q_k r_k / \sum_j q_j r_j`: probabilities where classes are r times as frequent, or weigh as much.

    Examples
    --------
    >>> shifted(np.array([0.5, 0.0, 1.0]), np.array([1.0, 3.0])).tolist()
    [0.75, 0.0, 1.0]
    """
    if q.ndim == 1:
        return shifted(per_class(q), ratio)[:, 1]
    weighted = q * ratio
    total = weighted.sum(axis=1, keepdims=True)
    # A row of classes that do not count at all weighs nothing; its probabilities stay.
    return np.where(total > 0, weighted / np.where(total > 0, total, 1.0), q)
