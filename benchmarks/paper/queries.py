"""Training and test queries of a ranking trial: queries stay whole, and only a few of them are labelled."""

from __future__ import annotations

from dataclasses import dataclass

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
