"""Shares of the classes among all rows: given, or estimated where labels were drawn by class."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.metrics import pairwise_distances

from grbb_ext.labels import Labels
from grbb_ext.losses import per_class
from grbb_ext.table import DistanceSpace, Table

Floats = NDArray[np.float64]

# With fewer labels of a class than this its shape is not known well enough to find its share unasked.
_FEWEST_LABELS = 5
# Strength by which estimated shares are held to those of the labels, times the squared number of labels of a class.
_HELD = 6.0
# More rows change the mean distances little.
_MOST_ROWS = 2_000


def class_shares(class_prior: Any, table: Table | None, labels: Labels) -> Floats | None:
    """Return the shares of the classes among all rows; None where they are taken to be those of the labels.

    Parameters
    ----------
    class_prior : "auto", "unlabeled", dict, array-like or None
        What was asked for, see :class:`Committee`.
    table : Table or None
        All rows.
    labels : Labels
        The labels.

    Examples
    --------
    >>> from grbb_ext.labels import read_labels
    >>> labels = read_labels(["no", "no", "yes", "yes", None])
    >>> class_shares({"yes": 0.1, "no": 0.9}, None, labels).tolist()
    [0.9, 0.1]
    >>> class_shares("auto", None, labels) is None
    True
    """
    if class_prior is None or (isinstance(class_prior, str) and class_prior == "auto" and not _by_class(table, labels)):
        return None
    if labels.classes is None:
        raise ValueError("class_prior is for classes: leave it out for regression.")
    if isinstance(class_prior, str):
        if table is None:
            raise ValueError("class_prior='unlabeled' compares rows of X: pass X, or the share of each class.")
        return matched_shares(table, labels)
    classes = labels.classes.tolist()
    if hasattr(class_prior, "items"):  # a dict or a pandas Series
        class_prior = dict(class_prior.items())
        if set(class_prior) != set(classes):
            raise ValueError(
                f"class_prior names {sorted(class_prior, key=str)}; the classes are {classes}. Name each once."
            )
        class_prior = [class_prior[label] for label in classes]
    shares = np.asarray(class_prior, dtype=np.float64)
    if shares.shape != (len(classes),) or not (shares > 0).all() or abs(shares.sum() - 1.0) > 1e-6:
        raise ValueError(
            f"class_prior must hold a positive share of each of the classes {classes}, with sum 1; got {class_prior!r}."
        )
    return shares


def shares_of_labels(labels: Labels) -> Floats:
    """Return the shares of the classes among the labels; next to nothing for a class without one.

    Examples
    --------
    >>> from grbb_ext.labels import read_labels
    >>> shares_of_labels(read_labels([0, 1, 1, 1, -1])).tolist()
    [0.25, 0.75]
    """
    return np.asarray(np.maximum(per_class(labels.targets).mean(axis=0), 1e-6))


def ratio_to_labels(shares: Floats, labels: Labels) -> Floats:
    """Return by how much each class is more frequent than among the labels.

    It is 1 for a class without a label, whatever its share: what no label has taught would be the next to nothing that
    experts give it, times a million.

    Examples
    --------
    >>> from grbb_ext.labels import read_labels
    >>> ratio_to_labels(np.array([0.2, 0.3, 0.5]), read_labels([0, 1, 1, 1], classes=[0, 1, 2])).round(6).tolist()
    [0.8, 0.4, 1.0]
    """
    return np.where(per_class(labels.targets).any(axis=0), shares / shares_of_labels(labels), 1.0)


def matched_shares(table: Table, labels: Labels) -> Floats:
    r"""Estimate the shares of the classes among the unlabelled rows: those with which the labelled rows resemble them.

    The energy distance between the unlabelled rows and a mixture of the labelled classes with shares :math:`\pi` is
    least,

    .. math:: \min_\pi\; 2 \sum_k \pi_k b_k - \sum_{kl} \pi_k \pi_l A_{kl}
        - \frac{6}{\bar n^2} \sum_k \pi^l_k \log \pi_k,

    with :math:`b_k` the mean distance from a label of class k to an unlabelled row and :math:`A_{kl}` to another label
    of class l, both over the mean of b (Kawakubo, du Plessis and Sugiyama, 2016). The last term holds the shares to
    those of the labels, :math:`\pi^l`, where a class has few, :math:`\bar n` on average.

    Parameters
    ----------
    table : Table
        All rows. Distances are taken of the columns and normal scores that the linear expert uses.
    labels : Labels
        The labels.

    Returns
    -------
    ndarray of shape (K,)
        Positive shares; a class without a label keeps next to none. Those of the labels where no row is unlabelled.

    Examples
    --------
    >>> from grbb_ext.labels import read_labels
    >>> from grbb_ext.table import read_table
    >>> x = np.r_[np.linspace(0, 1, 90), np.linspace(5, 6, 30)]
    >>> y = np.where(np.arange(120) % 9 == 0, x > 3, -1)  # ten of one class, three of the other
    >>> y[[92, 94, 96, 98, 100, 102, 104]] = 1
    >>> matched_shares(read_table(x[:, None]), read_labels(y)).round(2).tolist()
    [0.79, 0.21]
    """
    is_class, own = per_class(labels.targets), shares_of_labels(labels)
    seen = np.flatnonzero(is_class.any(axis=0))
    others = np.setdiff1d(np.arange(table.n_rows), labels.labeled)
    if not others.size:
        return own
    space = DistanceSpace.fit(table.sampled(), scale="standard", normal_scores=True, warn_missing=False)
    chosen = _some(np.arange(labels.labeled.size))
    points, of_others = (space(table.take(rows), 1) for rows in (labels.labeled[chosen], _some(others)))
    if not sp.issparse(points):  # distances are differences of squares: far from 0 nothing is left of them
        center = points.mean(axis=0)
        points, of_others = points - center, of_others - center
    of_class = is_class[chosen][:, seen]
    mean_of = of_class / np.maximum(of_class.sum(axis=0), 1.0)
    to_others = pairwise_distances(points, of_others)
    b = mean_of.T @ to_others.mean(axis=1)
    A = mean_of.T @ pairwise_distances(points) @ mean_of
    # A label has no distance to itself; the only one of its class is as far from others as those of all classes are.
    n = of_class.sum(axis=0)
    within = np.diag(A) * n / np.maximum(n - 1.0, 1.0)
    if not (n > 1).any() or not b.mean() > 0:
        return own
    np.fill_diagonal(A, np.where(n > 1, within, within[n > 1].mean()))
    A, b, held, start = A / b.mean(), b / b.mean(), _HELD / n.mean() ** 2, own[seen]

    def loss_and_gradient(score: Floats) -> tuple[float, Floats]:
        share = softmax(score)
        loss = 2.0 * share @ b - share @ A @ share - held * start @ np.log(share)
        slope = 2.0 * (b - A @ share)
        return float(loss), share * (slope - share @ slope) - held * (start - start.sum() * share)

    found = minimize(loss_and_gradient, np.log(start), jac=True, method="L-BFGS-B")
    shares = own.copy()
    shares[seen] = np.maximum(softmax(found.x), 1e-6)
    return np.asarray(shares / shares.sum())


def _by_class(table: Table | None, labels: Labels) -> bool:
    """Tell whether labels look drawn by class: as many of each, and enough to say what a class looks like."""
    if table is None or labels.classes is None or labels.labeled.size == labels.n_rows:
        return False
    n_labels = per_class(labels.targets).sum(axis=0)
    return bool(n_labels.min() >= _FEWEST_LABELS and n_labels.min() == n_labels.max())


def _some(rows: NDArray[np.intp]) -> NDArray[np.intp]:
    return rows if rows.size <= _MOST_ROWS else np.random.default_rng(0).choice(rows, _MOST_ROWS, replace=False)
