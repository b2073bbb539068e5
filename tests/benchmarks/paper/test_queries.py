from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from benchmarks.paper.queries import draw_queries, precision_at
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


def test_two_queries_by_hand() -> None:
    # Query 4: three of its best five are relevant. Query 9 has three documents, two relevant: 2 / 5.
    scores = [7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 0.1, 0.2, 0.3]
    relevant = [1, 0, 1, 0, 1, 1, 1, 0, 1]
    qid = [4, 4, 4, 4, 4, 4, 9, 9, 9]
    assert precision_at(scores, relevant, qid) == pytest.approx((3 / 5 + 2 / 5) / 2)
    assert precision_at(scores, relevant, qid, k=1) == 1.0
    assert precision_at(scores, relevant, qid, k=2) == pytest.approx((1 / 2 + 1 / 2) / 2)


def test_a_tie_counts_by_expectation() -> None:
    # Places 2 and 3 are shared by three documents, one of them relevant: 2/3 of it is within the best three.
    assert precision_at([9, 5, 5, 5], [1, 1, 0, 0], [0] * 4, k=3) == pytest.approx((1 + 2 / 3) / 3)
    assert precision_at(np.zeros(10), [True] * 3 + [False] * 7, np.zeros(10)) == pytest.approx(0.3)


def test_queries_without_a_relevant_document() -> None:
    scores, relevant, qid = [2.0, 1.0, 2.0, 1.0], [0, 1, 0, 0], [0, 0, 1, 1]
    assert precision_at(scores, relevant, qid, k=2) == 0.5
    assert precision_at(scores, relevant, qid, k=2, without_relevant="zero") == 0.25
    with pytest.raises(ValueError, match="No query"):
        precision_at([1.0], [0], [0])


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=6),
    st.integers(1, 7),
)
def test_ties_are_the_mean_over_all_orders(documents: list[tuple[int, bool]], k: int) -> None:
    scores, relevant = (np.array(column) for column in zip(*documents, strict=True))
    orders = [sorted(order, key=lambda i: -scores[i]) for order in permutations(range(len(documents)))]
    expected = np.mean([relevant[order][:k].sum() / k for order in orders])
    found = precision_at(scores, relevant, np.zeros(len(documents)), k, without_relevant="zero")
    assert found == pytest.approx(expected)


@settings(max_examples=50)
@given(st.integers(0, 10_000))
def test_order_of_rows_and_scale_of_scores_play_no_part(seed: int) -> None:
    random = np.random.default_rng(seed)
    scores, relevant, qid = random.normal(size=40).round(1), random.random(40) < 0.4, random.integers(5, 9, 40)
    relevant[0] = True
    order = random.permutation(40)
    value = precision_at(scores, relevant, qid)
    assert precision_at(np.exp(scores)[order], relevant[order], qid[order]) == pytest.approx(value)
    best = precision_at(relevant, relevant, qid)
    assert 0 <= value <= best <= 1
    every = [precision_at(scores[qid == q], relevant[qid == q], qid[qid == q]) for q in set(qid[relevant].tolist())]
    assert np.mean(every) == pytest.approx(value)


@pytest.mark.parametrize(
    "change", [{"scores": [1.0, np.nan]}, {"relevant": [0, 2]}, {"qid": [1]}, {"k": 0}, {"without_relevant": "all"}]
)
def test_errors(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(change))):
        precision_at(**({"scores": [1.0, 2.0], "relevant": [0, 1], "qid": [1, 1]} | change))
