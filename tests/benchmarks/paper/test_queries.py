from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from benchmarks.paper.queries import draw_queries
from benchmarks.ranking import RankingSet


def ranking(n_queries: int = 12, n_documents: int = 5) -> RankingSet:
    """Return queries of which every third has no relevant document; the last four are for testing."""
    qid = np.repeat(np.arange(n_queries) + 100, n_documents)
    relevance = np.where(np.arange(qid.size) % n_documents < 2, 2, 0)
    relevance[qid % 3 == 0] = 0
    X = np.arange(qid.size, dtype=np.float32)[:, None]
    return RankingSet(X, relevance, qid, qid >= 100 + n_queries - 4)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("n_labeled", [1, 2])
def test_queries_stay_whole_and_labels_have_both_classes(seed: int, n_labeled: int) -> None:
    data = ranking()
    split = draw_queries(data, seed, n_labeled, n_queries=6)
    queries, counts = np.unique(split.qid, return_counts=True)
    assert queries.size == 6
    assert set(counts) == {5}
    labeled = split.qid[split.y >= 0]
    assert_array_equal(np.unique(labeled, return_counts=True)[1], [5] * n_labeled)
    assert set(split.y[split.y >= 0]) == {0, 1}
    rows = split.X[:, 0].astype(int)
    assert not data.is_test[rows].any()
    assert_array_equal(split.qid, data.qid[rows])
    known = split.y >= 0
    assert_array_equal(split.y[known], data.relevance[rows][known] > 0)


def test_test_queries_are_all_that_have_a_relevant_document() -> None:
    data = ranking()
    split = draw_queries(data, seed=0, n_labeled=2)
    rows = split.X_test[:, 0].astype(int)
    assert_array_equal(np.unique(split.qid_test), [109, 110])  # 108 and 111 are divisible by three
    assert data.is_test[rows].all()
    assert_array_equal(split.relevant, data.relevance[rows] > 0)
    assert np.unique(split.qid).size == 8  # all there are, as 60 were asked for


def test_rows_depend_on_the_seed_alone() -> None:
    data = ranking()
    one, two, other = draw_queries(data, 0, 1, 4), draw_queries(data, 0, 2, 4), draw_queries(data, 1, 1, 4)
    assert_array_equal(one.X, two.X)
    assert one.qid.tolist() != other.qid.tolist()


def test_labels_that_cannot_be_drawn_are_refused() -> None:
    data = ranking()
    with pytest.raises(ValueError, match="9 labelled queries"):
        draw_queries(data, 0, 9)
    useless = RankingSet(data.X, np.zeros_like(data.relevance), data.qid, data.is_test)
    with pytest.raises(ValueError, match="both classes cannot be drawn"):
        draw_queries(useless, 0, 2)
