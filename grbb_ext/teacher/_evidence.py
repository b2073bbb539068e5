"""How far to trust the graph: what held-out labels, and smoothness, say of each expert."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext._reporting import warn_caller
from grbb_ext.losses import Loss, SquaredErrorLoss


def smoothness(W: sp.csr_array, values: NDArray[np.float64]) -> float:
    r"""Return the share of the variance of a function that its means over neighbours explain.

    .. math:: R^2 = \max\bigl(0, \mathrm{corr}(D^{-1} W v, v)\bigr)^2

    over the rows with neighbours. What trees on the labelled rows say is such a function. Where it varies within
    neighbourhoods, the columns that matter are not those that make rows neighbours.

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


# A held-out probability counts as at least this: one surprise is no proof.
_FLOOR = 0.01
# Odds of more than a hundred before the labels are asked would leave them no say.
_SMOOTHEST = 0.99
# Below this weight of the graph the user is told.
_DOUBTFUL = 0.25


class GraphEvidenceWarning(UserWarning):
    """The labels speak against the graph: trees on the labelled rows alone predict them better."""


@dataclass(frozen=True)
class Evidence:
    """How well two experts predict labels they have not seen.

    Attributes
    ----------
    graph_log_likelihood : float
        Mean log-likelihood of a label under the graph, each label left out of the propagation in turn. A refined
        graph has been shaped by all of them, which flatters it a little.
    forest_log_likelihood : float
        The same under a forest on the labelled rows, out of bag.
    graph_weight : float
        Weight of the graph in the targets; the forest has the rest.
    n_labels : int
        Labels that were looked at.
    smoothness : float
        Share of the variance of what the forest says that means over neighbours explain, over all rows.

    Examples
    --------
    >>> print(Evidence(-0.6, -0.3, graph_weight=0.1, n_labels=20, smoothness=0.5))
    20 labels, each held out: log-likelihood -0.60 under the graph, -0.30 under trees on the labelled rows alone; \
neighbours explain 50 % of what the trees say; the graph has 10 % of the weight
    """

    graph_log_likelihood: float
    forest_log_likelihood: float
    graph_weight: float
    n_labels: int
    smoothness: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.n_labels} labels, each held out: log-likelihood {self.graph_log_likelihood:.2f} under the graph, "
            f"{self.forest_log_likelihood:.2f} under trees on the labelled rows alone; "
            f"neighbours explain {100 * self.smoothness:.0f} % of what the trees say; "
            f"the graph has {100 * self.graph_weight:.0f} % of the weight"
        )

    def warn_if_doubtful(self) -> None:
        """Warn where the graph has less than a quarter of the weight."""
        if self.graph_weight < _DOUBTFUL:
            warn_caller(
                f"The labels speak against the graph ({self}). The unlabelled rows may add little here: compare with "
                "rule='labeled'. guard=False trusts the graph all the same.",
                GraphEvidenceWarning,
            )


def weigh(
    graph: NDArray[np.float64],
    forest: NDArray[np.float64],
    targets: NDArray[np.float64],
    loss: Loss,
    smoothness: float = 0.0,
) -> Evidence:
    r"""Weigh two experts by their predictions of held-out labels.

    Before any label is held out the odds for the graph are :math:`1 / (1 - R^2)`, the variance of what the forest says
    over that which neighbours leave unexplained (:func:`smoothness`): even, where they explain nothing. The weight of
    the graph is then its posterior probability

    .. math:: w = \frac{e^{\ell_G}}{e^{\ell_G} + (1 - R^2)\, e^{\ell_F}}, \qquad
       \ell = \sum_{i \in l} \log \hat p_i(y_i) \quad \text{or} \quad
       \ell = -\frac{n}{2} \log \frac{2 \pi e}{n} \sum_{i \in l} (y_i - \hat y_i)^2

    for classes and for regression, where the variance is each expert's own.

    Parameters
    ----------
    graph, forest : ndarray of shape (n,) or (n, K)
        Predicted targets of the labelled rows, each without its own label.
    targets : ndarray of shape (n,) or (n, K)
        Their targets: 0/1, one-hot, or values.
    loss : Loss
        The loss.
    smoothness : float, default=0
        :math:`R^2`; more than .99 counts as .99.

    Returns
    -------
    Evidence
        Both likelihoods, and w.

    Examples
    --------
    >>> from grbb_ext.losses import LogisticLoss
    >>> y = np.array([0.0, 1.0])
    >>> round(weigh(np.array([0.2, 0.8]), np.array([0.5, 0.5]), y, LogisticLoss()).graph_weight, 3)
    0.719
    """
    n = targets.shape[0]
    means = [_log_likelihood(expert, targets, loss) for expert in (graph, forest)]
    against = n * (means[1] - means[0]) + np.log(1.0 - min(smoothness, _SMOOTHEST))
    weight = 1.0 / (1.0 + np.exp(np.clip(against, -700.0, 700.0)))
    return Evidence(float(means[0]), float(means[1]), float(weight), n, smoothness)


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
