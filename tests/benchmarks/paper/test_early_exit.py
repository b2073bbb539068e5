from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from benchmarks.paper.early_exit import early_exit, exit_unpromising
from grbb_ext import FeatureCosts

FEATURES = [[0], [0, 2], [0, 1, 2]]
STAGES = [[0.2, -1.0, 0.0, 3.0], [0.4, -2.0, -0.1, 3.5], [-0.3, -2.5, 0.2, 2.0]]


def price(used: list[int]) -> float:
    """Return 1 for column 0, 10 for column 1, and 100 for column 2."""
    return float(sum(10**j for j in used))


def random_stages(seed: int, n: int = 30) -> NDArray[np.float64]:
    """Return margins on a grid, so that there are ties."""
    return np.random.default_rng(seed).normal(size=(3, n)).round(1)


def test_rows_leave_when_they_are_sure() -> None:
    # sigma(1) = .73, sigma(2) = .88, sigma(3) = .95, either side.
    found = early_exit(STAGES, FEATURES, price, 0.85)
    assert found.stages.tolist() == [2, 1, 2, 0]
    assert found.scores.tolist() == [-0.3, -2.0, 0.2, 3.0]
    assert found.costs.tolist() == [111.0, 101.0, 111.0, 1.0]


def test_thresholds_at_both_ends() -> None:
    everyone_late = early_exit([[900.0, 1.0], [1.0, 900.0], [0.0, 2.0]], FEATURES, price, 1.0)
    assert everyone_late.stages.tolist() == [2, 2]
    assert everyone_late.scores.tolist() == [0.0, 2.0]
    early = early_exit(STAGES, FEATURES, price, 0.5)
    assert early.stages.tolist() == [0, 0, 1, 0]  # a margin of 0 is no decision
    assert early.scores.tolist() == [0.2, -1.0, -0.1, 3.0]


def test_what_columns_share_is_paid_once() -> None:
    costs = FeatureCosts(needs=[["blood"], ["blood"], ["scan"]], prices={"blood": 2.0, "scan": 50.0})
    found = early_exit([[3.0, 0.1, 0.1], [3.0, 3.0, 0.1], [3.0, 3.0, 3.0]], [[0], [0, 1], [0, 1, 2]], costs.total, 0.9)
    assert found.costs.tolist() == [2.0, 2.0, 52.0]


@settings(max_examples=50)
@given(st.integers(0, 10_000), st.floats(0.5, 1.0), st.floats(0.5, 1.0))
def test_a_higher_threshold_costs_no_row_less(seed: int, a: float, b: float) -> None:
    H = random_stages(seed)
    low, high = (early_exit(H, FEATURES, price, threshold) for threshold in sorted((a, b)))
    assert np.all(low.costs <= high.costs)
    assert np.all(low.stages <= high.stages)
    for found in (low, high):
        assert np.array_equal(found.scores, H[found.stages, np.arange(H.shape[1])])
        assert np.array_equal(found.costs, np.array([1.0, 101.0, 111.0])[found.stages])


def test_unpromising_documents_leave_their_query() -> None:
    # Query 1 has six documents, query 2 two, in turn. Half of six and half of three (rounded up) go on; at least two.
    qid = [1, 2, 1, 1, 1, 2, 1, 1]
    stages = [
        [6.0, 9.0, 5.0, 4.0, 3.0, 8.0, 2.0, 1.0],
        [1.0, 0.0, 3.0, 2.0, 9.0, 1.0, 9.0, 9.0],
        [0.5, 0.0, 0.3, 0.4, 9.0, 7.0, 9.0, 9.0],
    ]
    found = exit_unpromising(stages, FEATURES, price, 0.5, qid, at_least=2)
    assert found.stages.tolist() == [1, 2, 2, 2, 0, 2, 0, 0]
    assert found.costs.tolist() == [101.0, 111.0, 111.0, 111.0, 1.0, 111.0, 1.0, 1.0]
    # By stage, then by margin there: 1, 2, 3 left first; then 1.0; then 0.0, 0.3, 0.4, 7.0.
    assert found.scores.tolist() == [3.0, 4.0, 5.0, 6.0, 2.0, 7.0, 1.0, 0.0]


def test_five_of_each_query_stay_by_default() -> None:
    H, qid = random_stages(0, n=26) + 1e-3 * np.arange(26), np.repeat([3, 1, 2], [20, 4, 2])
    found = exit_unpromising(H, FEATURES, price, 0.01, qid)
    assert [int(np.sum(found.stages[qid == query] == 2)) for query in (3, 1, 2)] == [5, 4, 2]
    assert not np.any(found.stages == 1)  # five were left after the first stage


def test_a_share_of_all_keeps_all() -> None:
    H = random_stages(1)
    found = exit_unpromising(H, FEATURES, price, 1.0, np.arange(30) % 3, at_least=1)
    assert found.stages.tolist() == [2] * 30
    assert np.array_equal(np.argsort(found.scores, kind="stable"), np.argsort(H[-1], kind="stable"))


def test_the_share_is_not_rounded_up_by_its_last_bit() -> None:
    H = [np.arange(100.0), np.arange(100.0)]
    assert 0.29 * 100 != 29
    for keep, n in ((0.29, 29), (0.07, 7), (0.291, 30)):
        found = exit_unpromising(H, [[0], [0]], price, keep, np.zeros(100), at_least=1)
        assert int(np.sum(found.stages == 1)) == n


def test_documents_that_nothing_tells_apart_stay_together() -> None:
    found = exit_unpromising([[2.0, 1.0, 1.0, 0.0], [0.0] * 4], [[0], [1, 0]], price, 0.5, [0] * 4, at_least=1)
    assert found.stages.tolist() == [1, 1, 1, 0]
    assert found.scores.tolist() == [1.0, 1.0, 1.0, 0.0]


@settings(max_examples=50)
@given(st.integers(0, 10_000), st.floats(0.01, 1.0), st.integers(1, 6))
def test_later_exits_rank_above_earlier_ones_and_queries_do_not_meet(seed: int, keep: float, at_least: int) -> None:
    H, qid = random_stages(seed), np.random.default_rng(seed).integers(0, 4, 30)
    found = exit_unpromising(H, FEATURES, price, keep, qid, at_least)
    final = H[found.stages, np.arange(30)]
    later = found.stages[:, None] > found.stages[None, :]
    same = found.stages[:, None] == found.stages[None, :]
    higher = final[:, None] > final[None, :]
    assert np.array_equal(found.scores[:, None] > found.scores[None, :], later | (same & higher))
    for query in np.unique(qid):
        alone = exit_unpromising(H[:, qid == query], FEATURES, price, keep, qid[qid == query], at_least)
        assert np.array_equal(alone.stages, found.stages[qid == query])
        assert np.sum(alone.stages == 2) >= min(at_least, alone.stages.size)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"threshold": 0.4}, "threshold"),
        ({"stages": [1.0, 2.0]}, "stages"),
        ({"stages": [[np.nan], [1.0], [1.0]]}, "NaN"),
        ({"features": [[0], [0, 1]]}, "2 lists for 3 stages"),
        ({"features": [[0], [1], [0, 1]]}, r"features\[1\] must hold"),
    ],
)
def test_errors_of_early_exit(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        early_exit(**({"stages": STAGES, "features": FEATURES, "price": price, "threshold": 0.9} | change))


@pytest.mark.parametrize("change", [{"keep": 0.0}, {"keep": 1.1}, {"qid": [1, 2]}, {"at_least": 0}])
def test_errors_of_exit_unpromising(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(change))):
        exit_unpromising(
            **({"stages": STAGES, "features": FEATURES, "price": price, "keep": 0.5, "qid": [0] * 4} | change)
        )
