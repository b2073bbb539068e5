"""How far to trust each expert: its predictions of held-out labels, and how smooth the forest is on the graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext._progress import warn_caller
from grbb_ext.losses import Loss, SquaredErrorLoss

# A held-out probability counts as at least this: one surprise is no proof.
_FLOOR = 0.01
# Odds of more than a hundred before the labels are used would leave them no influence.
_SMOOTHEST = 0.99
# Below this weight of the graph the user is warned.
_DOUBTFUL = 0.25


class GraphEvidenceWarning(UserWarning):
    """Held-out labels are predicted better by trees on the labelled rows than by the graph."""


@dataclass(frozen=True)
class Evidence:
    """How well each expert predicts labels that were held out, and the weight that follows.

    Attributes
    ----------
    experts : tuple of str
        Their names.
    log_likelihood : tuple of float
        Mean log-likelihood of a held-out label under each. For the graph each label is left out of the propagation in
        turn; a refined graph has been shaped by all of them, which flatters it a little. For the forest it is out of
        bag.
    weight : tuple of float
        Weight of each in the targets; they sum to 1.
    n_labels : int
        Labels that were used.
    smoothness : float
        Share of the variance of the forest's predictions that means over neighbours explain, over all rows.

    Examples
    --------
    >>> print(Evidence(("graph", "forest"), (-0.6, -0.3), (0.1, 0.9), n_labels=20, smoothness=0.5))
    Mean log-likelihood of 20 held-out labels: graph -0.60 (weight 10 %), forest -0.30 (weight 90 %). Means over \
neighbours explain 50 % of the forest's variance.
    """

    experts: tuple[str, ...]
    log_likelihood: tuple[float, ...]
    weight: tuple[float, ...]
    n_labels: int
    smoothness: float = 0.0

    def __post_init__(self) -> None:
        for name in ("experts", "log_likelihood", "weight"):  # lists, where a saved model is read
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @property
    def weights(self) -> dict[str, float]:
        """Weight by expert."""
        return dict(zip(self.experts, self.weight, strict=True))

    def __str__(self) -> str:
        listed = ", ".join(
            f"{name} {value:.2f} (weight {100 * weight:.0f} %)"
            for name, value, weight in zip(self.experts, self.log_likelihood, self.weight, strict=True)
        )
        return (
            f"Mean log-likelihood of {self.n_labels} held-out labels: {listed}. Means over neighbours explain "
            f"{100 * self.smoothness:.0f} % of the forest's variance."
        )

    def warn_if_doubtful(self) -> None:
        """Warn where the graph has less than a quarter of the weight."""
        if self.weights.get("graph", 1.0) < _DOUBTFUL:
            warn_caller(
                f"The graph predicts held-out labels worse than trees on the labelled rows do. {self} The unlabelled "
                "rows may add little here: compare with rule='labeled'. teacher='graph' uses the graph alone all the "
                "same.",
                GraphEvidenceWarning,
            )


def weigh(
    held_out: Mapping[str, NDArray[np.float64]], targets: NDArray[np.float64], loss: Loss, smoothness: float = 0.0
) -> Evidence:
    r"""Weigh experts by their predictions of held-out labels.

    The weight of an expert is its posterior probability

    .. math:: w_e \propto \pi_e\, e^{\ell_e}, \qquad
       \ell = \sum_{i \in l} \log \hat p_i(y_i) \quad \text{or} \quad
       \ell = -\frac{n}{2} \log \frac{2 \pi e}{n} \sum_{i \in l} (y_i - \hat y_i)^2

    for classes and for regression, where the variance is each expert's own. The prior odds :math:`\pi` of the graph
    are :math:`1 / (1 - R^2)`, the variance of the forest's predictions over the part that neighbours leave
    unexplained (:func:`smoothness`): 1, where they explain nothing.

    Parameters
    ----------
    held_out : mapping of str to ndarray of shape (n,) or (n, K)
        Predicted targets of the labelled rows, each without its own label, by expert.
    targets : ndarray of shape (n,) or (n, K)
        Their targets: 0/1, one-hot, or values.
    loss : Loss
        The loss.
    smoothness : float, default=0
        :math:`R^2`; more than 0.99 counts as 0.99.

    Returns
    -------
    Evidence
        Likelihoods and weights.

    Examples
    --------
    >>> from grbb_ext.losses import LogisticLoss
    >>> y = np.array([0.0, 1.0])
    >>> experts = {"graph": np.array([0.2, 0.8]), "forest": np.array([0.5, 0.5])}
    >>> round(weigh(experts, y, LogisticLoss()).weights["graph"], 3)
    0.719
    """
    n = targets.shape[0]
    means = np.array([_log_likelihood(predicted, targets, loss) for predicted in held_out.values()])
    prior = np.log(1.0 - min(smoothness, _SMOOTHEST))
    log_odds = n * means - np.array([prior if name == "graph" else 0.0 for name in held_out])
    weight = np.exp(np.clip(log_odds - log_odds.max(), -700.0, 0.0))
    weight /= weight.sum()
    return Evidence(tuple(held_out), tuple(means.tolist()), tuple(weight.tolist()), n, smoothness)


def _log_likelihood(predicted: NDArray[np.float64], targets: NDArray[np.float64], loss: Loss) -> float:
    if isinstance(loss, SquaredErrorLoss):
        error = float(np.mean((targets - predicted) ** 2))
        smallest = np.finfo(np.float64).tiny
        return -0.5 * float(np.log(2 * np.pi * np.e * max(error, smallest)))
    if targets.ndim == 1:
        of_label = np.where(targets > 0.5, predicted, 1.0 - predicted)
    else:
        of_label = (targets * predicted).sum(axis=1)
    return float(np.log(np.clip(of_label, _FLOOR, 1.0 - _FLOOR)).mean())


def smoothness(W: sp.csr_array, values: NDArray[np.float64]) -> float:
    r"""Return the share of the variance of a function that its means over neighbours explain.

    .. math:: R^2 = \max\bigl(0, \mathrm{corr}(D^{-1} W v, v)\bigr)^2

    over the rows with neighbours. The predictions of a forest on the labelled rows are such a function. Where it
    varies within neighbourhoods, the columns that matter are not those that make rows neighbours.

    Parameters
    ----------
    W : csr_array of shape (N, N)
        Affinity.
    values : ndarray of shape (N,) or (N, K)
        The function; columns are centred and taken together.

    Returns
    -------
    float
        Between 0 and 1; 0 for a constant, and where neighbours are rather unlike.

    Examples
    --------
    >>> path = sp.csr_array(np.diag(np.ones(5), 1) + np.diag(np.ones(5), -1))
    >>> round(smoothness(path, np.arange(6.0)), 2), round(smoothness(path, np.array([0.0, 1, 0, 1, 0, 1])), 2)
    (0.94, 0.0)
    """
    degree = np.asarray(W.sum(axis=1)).ravel()
    joined = degree > 0
    v = values.reshape(values.shape[0], -1)
    means = (W @ v)[joined] / degree[joined, None]
    own = v[joined] - v[joined].mean(axis=0)
    means = means - means.mean(axis=0)
    spread = float((own**2).sum() * (means**2).sum())
    return max(0.0, float((own * means).sum())) ** 2 / spread if spread > 0 else 0.0
