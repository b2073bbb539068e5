r"""Early exit (Cambazoglu et al., 2010): rows leave a boosted ensemble between stages, and later features are not paid.

The stages are prefixes of one ensemble, ten trees apart in the paper. For classification a row leaves once it is
decided. For ranking, where most documents are irrelevant, documents leave once they look unpromising.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Array = NDArray[np.float64]


class Exits(NamedTuple):
    """What each row got.

    Attributes
    ----------
    scores : ndarray of shape (n,)
        Margins for :func:`early_exit`, places for :func:`exit_unpromising`.
    costs : ndarray of shape (n,)
        Price of the features of all trees that the row has seen. Their mean is the cost of the method.
    stages : ndarray of int of shape (n,)
        The stage after which the row left, from 0; the last one for rows that stayed to the end.
    """

    scores: Array
    costs: Array
    stages: NDArray[np.intp]


def early_exit(
    stages: Any, features: Sequence[Sequence[int]], price: Callable[[list[int]], float], threshold: float
) -> Exits:
    r"""Let rows leave at the first stage t with :math:`\max(\sigma(H_t), 1 - \sigma(H_t)) > \text{threshold}`.

    Parameters
    ----------
    stages : array of shape (T, n)
        Margins H_t of all rows after each stage.
    features : sequence of T sequences of int
        Columns used by the trees up to and with each stage, so that each holds the one before.
    price : callable
        Price of a list of columns, such as ``FeatureCosts.total``, which counts what columns share once.
    threshold : float
        From .5 (all leave after the first stage, unless their margin is 0 exactly) to 1 (none leaves early).

    Returns
    -------
    Exits
        Scores are the margins of the stage of exit.

    Examples
    --------
    The first row is 88 % sure after stage 0 and does not pay for feature 1.

    >>> stages = [[2.0, 0.5, -0.1], [2.5, 1.5, 0.1]]
    >>> found = early_exit(stages, [[0], [0, 1]], lambda used: 3.0 * len(used), threshold=0.8)
    >>> found.scores.tolist(), found.costs.tolist(), found.stages.tolist()
    ([2.0, 1.5, 0.1], [3.0, 6.0, 6.0], [0, 1, 1])
    """
    H = _margins(stages)
    if not 0.5 <= threshold <= 1:
        raise ValueError(f"threshold={threshold} must be between 0.5 and 1.")
    prices = _prices(features, price, len(H))
    sure = expit(np.abs(H)) > threshold
    sure[-1] = True
    left = np.argmax(sure, axis=0)
    return Exits(H[left, np.arange(H.shape[1])], prices[left], left)


def exit_unpromising(
    stages: Any,
    features: Sequence[Sequence[int]],
    price: Callable[[list[int]], float],
    keep: float,
    qid: Any,
    at_least: int = 5,
) -> Exits:
    r"""Let all but the best documents of each query leave after each stage.

    Of m documents still there, :math:`\max(\lceil \text{keep} \cdot m \rceil, \text{at\_least})` go on, and those that
    score the same as the last of them: nothing tells them apart.

    Parameters
    ----------
    stages : array of shape (T, n)
        Margins of all documents after each stage.
    features : sequence of T sequences of int
        Columns used by the trees up to and with each stage, so that each holds the one before.
    price : callable
        Price of a list of columns.
    keep : float
        Share of a query's documents that go on, above 0; with 1 all of them stay to the end.
    qid : array of shape (n,)
        The query of each document.
    at_least : int, default=5
        So many go on in any case, because Precision@5 looks at five.

    Returns
    -------
    Exits
        Scores are places from 0 (worst) among the documents of all queries, by stage of exit and then by margin at that
        stage: who left later ranks above who left earlier. Equal documents have equal places.

    Examples
    --------
    >>> stages = [[0.1, 0.4, 0.3, 0.2], [0.9, 0.5, 0.7, 0.9]]
    >>> found = exit_unpromising(stages, [[0], [0, 1]], lambda used: 1.0 * len(used), 0.5, [7, 7, 7, 7], at_least=1)
    >>> found.scores.tolist(), found.costs.tolist()
    ([0.0, 2.0, 3.0, 1.0], [1.0, 2.0, 2.0, 1.0])
    """
    H = _margins(stages)
    query = np.unique(np.asarray(qid), return_inverse=True)[1]
    if query.shape != H.shape[1:]:
        raise ValueError(f"qid {query.shape} must have one query for each of the {H.shape[1]} documents.")
    if not 0 < keep <= 1 or at_least < 1:
        raise ValueError(f"keep={keep} must be above 0 and at most 1, and at_least={at_least} at least 1.")
    prices = _prices(features, price, len(H))
    left = np.full(H.shape[1], len(H) - 1)
    there = np.arange(H.shape[1])
    for stage, margins in enumerate(H[:-1]):
        stays = _goes_on(margins[there], query[there], keep, at_least)
        left[there[~stays]] = stage
        there = there[stays]
    final = H[left, np.arange(H.shape[1])]
    # Not margins plus an offset for each stage: sums would round close margins to ties.
    places = np.unique(np.column_stack([left, final]), axis=0, return_inverse=True)[1]
    return Exits(places.ravel().astype(np.float64), prices[left], left)


def _goes_on(margins: Array, query: NDArray[np.intp], keep: float, at_least: int) -> NDArray[np.bool_]:
    """Return which documents are among the best of their query."""
    order = np.lexsort((-margins, query))
    found, first, counts = np.unique(query[order], return_index=True, return_counts=True)
    # A share such as 0.7 is not exact: 0.7 * 10 may be a little above 7.
    wanted = np.maximum(np.ceil(keep * counts - 1e-9).astype(np.intp), at_least)
    last = margins[order][first + np.minimum(wanted, counts) - 1]
    return np.asarray(margins >= last[np.searchsorted(found, query)])


def _margins(stages: Any) -> Array:
    H = np.asarray(stages, dtype=np.float64)
    if H.ndim != 2 or len(H) == 0 or np.isnan(H).any():
        raise ValueError(f"stages {H.shape} must have the margins of all rows, none of them NaN, for each stage.")
    return H


def _prices(features: Sequence[Sequence[int]], price: Callable[[list[int]], float], n_stages: int) -> Array:
    """Return the price of each stage."""
    if len(features) != n_stages:
        raise ValueError(f"features has {len(features)} lists for {n_stages} stages.")
    for stage in range(1, n_stages):
        if not set(features[stage - 1]) <= set(features[stage]):
            raise ValueError(
                f"features[{stage}] must hold all of features[{stage - 1}]: list those of all trees so far."
            )
    return np.array([price(list(used)) for used in features], dtype=np.float64)
