"""Precision at 5, the paper's metric for ranking."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np


def precision_at(
    scores: Any, relevant: Any, qid: Any, k: int = 5, without_relevant: Literal["skip", "zero"] = "skip"
) -> float:
    r"""Return the mean over queries of the relevant documents among the best k, divided by k.

    Documents with equal scores come in any order with the same probability, and the expectation over these orders is
    returned (McSherry and Najork, 2008): of a tie of m documents, r of them relevant, of which s are within the best k,
    it counts :math:`s \, r / m`. Few trees tie many documents, and neither luck nor the order of the file should count.

    Parameters
    ----------
    scores : array of shape (n,)
        Higher is better.
    relevant : array of shape (n,)
        Whether each document is relevant: bool, or 0 and 1.
    qid : array of shape (n,)
        The query of each document, in any order.
    k : int, default=5
        The length of the list that is looked at. It stays the denominator for queries with fewer documents.
    without_relevant : {"skip", "zero"}, default="skip"
        Queries without a relevant document are the same for any ranking. They are left out, or count as 0.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    Query 1 has its relevant document first; in query 2 it is one of two for the last place.

    >>> precision_at([3.0, 2.0, 1.0, 5.0, 4.0, 4.0], [1, 0, 0, 0, 1, 0], [1, 1, 1, 2, 2, 2], k=2)
    0.375
    """
    values, hits = np.asarray(scores, dtype=np.float64), np.asarray(relevant)
    query = np.unique(np.asarray(qid), return_inverse=True)[1]
    if values.ndim != 1 or hits.shape != values.shape or query.shape != values.shape:
        raise ValueError(
            f"scores {values.shape}, relevant {hits.shape} and qid {query.shape} must have an entry for each document."
        )
    if np.isnan(values).any() or not np.isin(hits, (0, 1)).all() or k < 1:
        raise ValueError("scores must not be NaN, relevant must be 0 or 1 (compare grades first), and k at least 1.")
    order = np.lexsort((-values, query))
    values, hits, query = values[order], hits[order].astype(np.float64), query[order]
    starts = np.flatnonzero(np.diff(query, prepend=-1))
    position = np.arange(values.size) - starts[query]
    new_tie = np.diff(query, prepend=-1) != 0
    new_tie[1:] |= values[1:] != values[:-1]
    tie = np.cumsum(new_tie) - 1
    size, above = np.bincount(tie), position[new_tie]
    # Each document of a tie has the same probability to be within the best k.
    inside = np.clip(k - above, 0, size) / size
    found = np.bincount(query, hits * inside[tie]) / k
    if without_relevant == "skip":
        found = found[np.bincount(query, hits) > 0]
    elif without_relevant != "zero":
        raise ValueError(f"without_relevant must be 'skip' or 'zero', got {without_relevant!r}.")
    if found.size == 0:
        raise ValueError("No query has a relevant document: Precision@k says nothing.")
    return float(found.mean())
