"""How far to trust each expert, and all of them together: their predictions of held-out labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from grbb_ext._show import Shown
from grbb_ext.losses import Loss, SquaredErrorLoss, per_class
from grbb_ext.teacher._targets import sharpened

Floats = NDArray[np.float64]

_MOST_SHOWN = 10  # shares of classes

# A held-out probability counts as at least this: one surprise is no proof.
_FLOOR = 0.01
# A held-out label counts so often: weights then follow the labels a little faster than a uniform prior lets them.
_COUNTS = 2.0
# Weights that are tried: multiples of 1/20 for up to three experts, coarser for more.
_FINEST, _MOST_POINTS = 20, 500
# Powers that are tried, and the spread of their logarithms before a label is seen.
_POWERS = tuple(float(power) for power in np.exp(np.linspace(-1.2, 1.2, 9)))
_SPREAD = 0.5
# Powers with a smaller share change no target by as much.
_LEAST_SHARE = 0.01


@dataclass(frozen=True)
class Evidence(Shown):
    """How well each expert predicts labels that were held out, and what follows from it.

    It prints as a small table; :class:`grbb_ext.EvidenceDisplay` draws it.

    Attributes
    ----------
    experts : tuple of str
        Their names.
    log_likelihood : tuple of float
        Mean log-likelihood of a held-out label under each; None where no label could be held out.
    weight : tuple of float
        Weight of each in the targets; they sum to 1.
    n_labels : int
        Labels that were held out. A label that is the only one of its class cannot be.
    powers : tuple of float
        Powers by which the averaged probabilities are sharpened (above 1) or softened.
    shares : tuple of float
        Share of each power in the targets; they sum to 1.
    class_shares : tuple of float or None
        Shares of the classes, given or estimated, to which the targets were moved; None where they are those of the
        labels.

    Examples
    --------
    >>> print(Evidence(("graph", "forest"), (-0.6, -0.3), (0.1, 0.9), n_labels=20))
    expert    log-likelihood  weight
    graph              -0.60     10 %
    forest             -0.30     90 %
    20 labels held out; probabilities to the power 1.00.
    """

    experts: tuple[str, ...]
    log_likelihood: tuple[float | None, ...]
    weight: tuple[float, ...]
    n_labels: int
    powers: tuple[float, ...] = (1.0,)
    shares: tuple[float, ...] = (1.0,)
    class_shares: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        for field in fields(self):  # lists, where a saved model is read
            value = getattr(self, field.name)
            object.__setattr__(self, field.name, tuple(value) if isinstance(value, list) else value)

    @property
    def weights(self) -> dict[str, float]:
        """Weight by expert."""
        return dict(zip(self.experts, self.weight, strict=True))

    @property
    def power(self) -> float:
        """The mean power, geometrically."""
        return float(np.exp(np.dot(self.shares, np.log(self.powers))))

    def _table(self) -> tuple[Sequence[str], Iterable[Sequence[object]], str]:
        rows = [
            (name, "-" if value is None else f"{value:.2f}", f"{100 * weight:.0f} %")
            for name, value, weight in zip(self.experts, self.log_likelihood, self.weight, strict=True)
        ]
        below = f"{self.n_labels} labels held out; probabilities to the power {self.power:.2f}."
        if self.class_shares is not None:
            listed = ", ".join(f"{share:.2f}" for share in self.class_shares[:_MOST_SHOWN])
            below += f" Classes moved to the shares {listed}{', ...' * (len(self.class_shares) > _MOST_SHOWN)}."
        return ("expert", "log-likelihood", "weight"), rows, below


def weigh(held_out: Mapping[str, Floats], targets: Floats, loss: Loss, *, sharpen: float | str = "auto") -> Evidence:
    r"""Weigh experts by their predictions of held-out labels, and find the power that suits their average.

    Weights w are averaged over their posterior, from a uniform prior on the simplex:

    .. math:: \bar w = \mathrm{E}[w \mid y], \qquad
       p(y \mid w) = \prod_i \Bigl( \sum_e w_e\, \hat p_{e,i}(y_i) \Bigr)^2 \quad \text{or} \quad
       \Bigl( \sum_i \bigl(y_i - \sum_e w_e\, \hat y_{e,i}\bigr)^2 \Bigr)^{-n/2}

    for classes, each label counted twice, and for regression. So a few labels move the weights little, and many find
    the best mixture. Where no label can be held out, the graph, which alone has seen all rows, has three quarters. Then
    probabilities q of the average may be too timid or too sure: :math:`q_k^s / \sum_j q_j^s` is averaged over the
    posterior of s, from a prior with :math:`\log s \sim N(0, 0.5^2)`.

    Parameters
    ----------
    held_out : mapping of str to ndarray of shape (n,) or (n, K)
        Predicted targets of the labelled rows, each without its own label, by expert. Rows with NaN do not count.
    targets : ndarray of shape (n,) or (n, K)
        Their targets: 0/1, one-hot, or values.
    loss : Loss
        The loss.
    sharpen : "auto" or float, default="auto"
        A number is taken as s.

    Returns
    -------
    Evidence
        Likelihoods, weights and powers.

    Examples
    --------
    >>> from grbb_ext.losses import LogisticLoss
    >>> y = np.array([0.0, 1.0, 1.0, 0.0])
    >>> experts = {"graph": np.array([0.1, 0.9, 0.8, 0.2]), "forest": np.full(4, 0.5)}
    >>> evidence = weigh(experts, y, LogisticLoss())
    >>> round(evidence.weights["graph"], 2), evidence.power > 1
    (0.78, True)
    """
    predicted = np.stack([np.asarray(one, dtype=np.float64) for one in held_out.values()])
    known = np.isfinite(predicted.reshape(*predicted.shape[:2], -1)).all(axis=(0, 2)) & _held(targets, loss)
    predicted, targets = predicted[:, known], targets[known]
    n, names = int(known.sum()), tuple(held_out)
    fixed = 1.0 if isinstance(sharpen, str) else float(sharpen)
    if not n:
        return Evidence(names, (None,) * len(names), _prior(names), 0, (fixed,))
    points = simplex(len(names))
    if isinstance(loss, SquaredErrorLoss):
        fitted = np.einsum("pe,en->pn", points, predicted)
        log_posterior = n * _gaussian(((targets - fitted) ** 2).mean(axis=1))
        means = _gaussian(((targets - predicted) ** 2).mean(axis=1))
        weight = _normalized(log_posterior) @ points
        return Evidence(names, tuple(means.tolist()), tuple(weight.tolist()), n)
    of_label = np.clip(_of_label(predicted, targets), _FLOOR, 1.0 - _FLOOR)
    weight = _normalized(_COUNTS * np.log(points @ of_label).sum(axis=1)) @ points
    means = np.log(of_label).mean(axis=1)
    evidence = Evidence(names, tuple(means.tolist()), tuple(weight.tolist()), n, (fixed,))
    if not isinstance(sharpen, str):
        return evidence
    mixed = np.clip(np.tensordot(weight, predicted, axes=1), 0.0, 1.0)  # 1 but for rounding has no power
    powers, shares = _posterior_powers(mixed, targets)
    return replace(evidence, powers=powers, shares=shares)


def _prior(names: tuple[str, ...]) -> tuple[float, ...]:
    """Return weights without any evidence: three quarters for the graph, which alone has seen all rows."""
    if "graph" not in names or len(names) == 1:
        return (1.0 / len(names),) * len(names)
    return tuple(0.75 if name == "graph" else 0.25 / (len(names) - 1) for name in names)


def simplex(n_experts: int) -> Floats:
    """Return weights that sum to 1, evenly over the simplex.

    Examples
    --------
    >>> simplex(2)[:3].tolist(), simplex(3).shape, simplex(4).shape
    ([[0.0, 1.0], [0.05, 0.95], [0.1, 0.9]], (231, 3), (455, 4))
    """
    steps = _FINEST
    while steps > 2 and comb(steps + n_experts - 1, n_experts - 1) > _MOST_POINTS:
        steps -= 1
    # So many bars between so many stars: the stars between two bars are one weight.
    n_places = steps + n_experts - 1
    ends = np.array([(-1, *bars, n_places) for bars in combinations(range(n_places), n_experts - 1)])
    return np.asarray((np.diff(ends, axis=1) - 1) / steps)


def _held(targets: Floats, loss: Loss) -> NDArray[np.bool_]:
    """Tell which labels can be held out: not the only one of its class, which nothing else could have taught."""
    if isinstance(loss, SquaredErrorLoss):
        return np.ones(targets.shape[0], dtype=bool)
    is_class = per_class(targets)
    return np.asarray((is_class * is_class.sum(axis=0)).sum(axis=1) > 1)


def _posterior_powers(mixed: Floats, targets: Floats) -> tuple[tuple[float, ...], tuple[float, ...]]:
    log_posterior = np.array(
        [
            np.log(np.clip(_of_label(sharpened(mixed, power), targets), _FLOOR, 1.0)).sum()
            - 0.5 * (np.log(power) / _SPREAD) ** 2
            for power in _POWERS
        ]
    )
    share = _normalized(log_posterior)
    kept = share >= min(_LEAST_SHARE, share.max())
    share = share[kept] / share[kept].sum()
    return tuple(np.array(_POWERS)[kept].tolist()), tuple(share.tolist())


def _of_label(predicted: Floats, targets: Floats) -> Floats:
    """Return the probability that was given to each label."""
    if targets.ndim == 1:
        return np.asarray(np.where(targets > 0.5, predicted, 1.0 - predicted))
    return np.asarray((targets * predicted).sum(axis=-1))


def _gaussian(mean_squared_error: Floats) -> Floats:
    """Return the mean log-likelihood of errors under the normal distribution that suits them best."""
    return np.asarray(-0.5 * np.log(2 * np.pi * np.e * np.maximum(mean_squared_error, np.finfo(np.float64).tiny)))


def _normalized(log_weight: Floats) -> Floats:
    weight = np.exp(np.clip(log_weight - log_weight.max(), -700.0, 0.0))
    return np.asarray(weight / weight.sum())
