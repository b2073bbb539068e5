"""Training and test queries of a ranking trial, of which a few are labelled, and Precision at 5, the paper's metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import Labels
from benchmarks.ranking import RankingSet

N_QUERIES = 60


@dataclass(frozen=True)
class QuerySplit:
    """Documents to train on, of which those of a few queries are labelled (the others have y = -1), and to test on."""

    X: NDArray[np.float32]
    y: Labels
    qid: Labels
    X_test: NDArray[np.float32]
    relevant: Labels
    qid_test: Labels


def draw_queries(data: RankingSet, seed: int, n_labeled: int, n_queries: int = N_QUERIES) -> QuerySplit:
    """Draw queries to train on, and label all documents of some.

    A document is relevant if its grade is above 0. Queries depend on the seed alone; labels are drawn until both
    classes occur. All test queries with a relevant document are kept: the others say nothing about a ranking.

    Parameters
    ----------
    data : RankingSet
        Documents.
    seed : int
        The trial.
    n_labeled : int
        Labelled queries.
    n_queries : int, default=60
        Training queries, labelled or not.

    Returns
    -------
    QuerySplit
        Documents of a query are contiguous, as in the data.

    Examples
    --------
    >>> X = np.arange(8, dtype=np.float32)[:, None]
    >>> qid = np.array([1, 1, 2, 2, 3, 3, 4, 4])
    >>> data = RankingSet(X, np.array([0, 2, 0, 0, 1, 0, 0, 0]), qid, qid > 2)
    >>> split = draw_queries(data, seed=0, n_labeled=1, n_queries=2)
    >>> split.y.tolist(), split.relevant.tolist()
    ([0, 1, -1, -1], [1, 0])
    """
    relevant = (data.relevance > 0).astype(np.int64)
    known = np.unique(data.qid[~data.is_test])
    queries = np.random.default_rng(seed).permutation(known)[:n_queries]
    train = np.flatnonzero(np.isin(data.qid, queries) & ~data.is_test)
    truth, qid = relevant[train], data.qid[train]
    if not 1 <= n_labeled <= queries.size or np.unique(truth).size < 2:
        raise ValueError(f"{n_labeled} labelled queries of both classes cannot be drawn from {queries.size} queries.")
    random = np.random.default_rng([seed, n_labeled])
    y = np.full(train.size, -1)
    while np.unique(y[y >= 0]).size < 2:
        y = np.where(np.isin(qid, random.choice(queries, n_labeled, replace=False)), truth, -1)
    with_relevant = np.unique(data.qid[data.is_test & (relevant == 1)])
    test = np.flatnonzero(data.is_test & np.isin(data.qid, with_relevant))
    return QuerySplit(data.X[train], y, qid, data.X[test], relevant[test], data.qid[test])


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
