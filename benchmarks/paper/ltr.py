"""The paper's Figure 4: Precision@5 against feature cost, with 4, 8, 16 and 32 labelled queries.

MQ2008 stands in for the Yahoo! data, which need a licence. No prices are published for its features, so ours follow the
scale of the Yahoo! prices (1 to 200): a text has to be read once, the longer the dearer, and each family of scores that
is computed has a price, too. The unlabelled rows are the documents of other training queries.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import DATA, is_available
from benchmarks.options import Options
from benchmarks.paper import curves
from benchmarks.paper.curve_methods import KEEPS, Plan, Problem
from benchmarks.ranking import RankingSet, load_mq2008
from benchmarks.runner import Row
from grbb_ext import FeatureCosts

MAX_DOCUMENTS = 2000
QUERIES = (4, 8, 16, 32)
TEXTS = {"url": 1.0, "title": 1.0, "anchor": 5.0, "body": 20.0}
FAMILIES = {"IDF": 1.0, "DL": 1.0, "url_shape": 1.0, "TF": 5.0, "TFIDF": 5.0, "BM25": 20.0}
FAMILIES |= {"LMIR.ABS": 50.0, "LMIR.DIR": 50.0, "LMIR.JM": 50.0, "link": 50.0}


def letor_prices(names: list[str], families: list[str]) -> FeatureCosts:
    """Return our prices: a feature needs its text, "whole" needs all four, and its family.

    Examples
    --------
    >>> costs = letor_prices(["TF_title", "TF_whole", "PageRank"], ["TF", "TF", "link"])
    >>> costs.total([0]), costs.total([0, 1]), costs.total([2])
    (6.0, 32.0, 50.0)
    """
    needs = []
    for name, family in zip(names, families, strict=True):
        text = name.rpartition("_")[2] if "_" in name else ""
        texts = list(TEXTS) if text == "whole" else [text] if text in TEXTS else []
        needs.append([*texts, family])
    wanted = {source for sources in needs for source in sources}
    prices = {source: price for source, price in (TEXTS | FAMILIES).items() if source in wanted}
    return FeatureCosts(needs=needs, prices=prices)


def choose_queries(
    relevant: NDArray[np.int64], qid: NDArray[np.int64], n_labels: int, seed: int, most: int = MAX_DOCUMENTS
) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Return the documents to learn from, and y with the labels of the first queries.

    Queries come in the order of the seed, labelled ones first, so that more labels hold fewer ones; queries are drawn
    again until relevant documents are labelled. The others are added up to `most` documents.
    """
    random = np.random.default_rng(seed)
    while True:
        order = random.permutation(np.unique(qid))
        # The smallest number of all, so that every number of labels has the same order.
        if np.unique(relevant[np.isin(qid, order[: QUERIES[0]])]).size == 2:
            break
    sizes = np.array([np.sum(qid == query) for query in order])
    n_queries = max(n_labels, int(np.searchsorted(np.cumsum(sizes), most, side="right")))
    chosen = np.flatnonzero(np.isin(qid, order[:n_queries]))
    y = np.where(np.isin(qid[chosen], order[:n_labels]), relevant[chosen], -1)
    return chosen, y


def problem(data: str, n_labels: int, seed: int) -> Problem:
    """Draw queries to learn from; the test queries are those of the set."""
    documents, costs = _documents(data)
    relevant = (documents.relevance > 0).astype(np.int64)
    train, test = np.flatnonzero(~documents.is_test), np.flatnonzero(documents.is_test)
    chosen, y = choose_queries(relevant[train], documents.qid[train], n_labels, seed)
    rows = train[chosen]
    return Problem(
        documents.X[rows],
        y,
        documents.X[test],
        relevant[test],
        costs,
        documents.qid[rows],
        documents.qid[test],
    )


@cache
def _documents(data: str) -> tuple[RankingSet, FeatureCosts]:
    if data == "synthetic":
        return synthetic()
    with np.load(DATA / "mq2008.npz") as file:
        names, families = ([str(word) for word in file[field]] for field in ("feature_names", "groups"))
    return load_mq2008(), letor_prices(names, families)


def synthetic(n_queries: int = 40, n_documents: int = 12) -> tuple[RankingSet, FeatureCosts]:
    """Return a ranking set for quick runs: dear columns say more about the relevance than cheap ones."""
    random = np.random.default_rng(0)
    qid = np.repeat(np.arange(n_queries), n_documents)
    worth = random.normal(size=qid.size)
    noise = np.array([2.0, 1.5, 1.0, 0.5, 3.0, 3.0])
    X = (worth[:, None] + noise * random.normal(size=(qid.size, noise.size))).astype(np.float32)
    documents = RankingSet(X, (worth > 0.8).astype(np.int64), qid, qid >= n_queries // 2)
    return documents, FeatureCosts([1.0, 2.0, 5.0, 10.0, 1.0, 1.0])


PLAN = Plan(exits=KEEPS, is_ranking=True)
QUICK = Plan(n_trees=30, mus=(0.0, 0.25, 4.0), exits=(0.5, 0.8, 1.0), is_ranking=True, n_trials=2, n_penalties=8)
QUESTION = curves.Question(
    name="ltr",
    problem=problem,
    cases=tuple(curves.Case("mq2008", n_labels, PLAN) for n_labels in QUERIES),
    quick_cases=(curves.Case("synthetic", 4, QUICK),),
    metrics=("precision@5",),
    n_seeds=10,
    budgets={"mq2008": (7.0, 15.0, 30.0, 60.0, 120.0, 260.0), "synthetic": (2.0, 8.0, 20.0)},
    what="labelled queries",
    can_read=lambda data: data == "synthetic" or is_available(data),
)


def work(task: curves.Task) -> list[Row]:
    """Run the methods of a split."""
    return curves.work(QUESTION, task)


def run(options: Options) -> int:
    """Run what is missing and write ``ltr.csv``, ``.md`` and ``.png``."""
    return curves.run(QUESTION, work, options)
