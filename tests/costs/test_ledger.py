from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grbb_ext.costs import BudgetError, FeatureCosts, Ledger


def blood(budget: float | None = None) -> Ledger:
    costs = FeatureCosts(
        needs=[["draw", "chol"], ["draw", "fbs"], "age"], prices={"draw": 2.10, "chol": 5.17, "fbs": 3.10, "age": 1.0}
    )
    return Ledger(costs, budget)


def test_by_hand() -> None:
    ledger = blood(budget=11.37)
    first = ledger.buy([0], round=3)
    assert (first.price, first.sources, first.round) == (7.27, ("draw", "chol"), 3)
    assert ledger.marginals().tolist() == [0.0, 3.1, 1.0]
    assert ledger.price([1, 2]) == 4.1
    assert ledger.fits([1, 2])
    assert ledger.buy([0, 1, 2], round=5).spent == 11.37
    assert ledger.remaining == 0.0
    assert ledger.buy([1]) is None
    assert [line.round for line in ledger.history] == [3, 5]
    assert ledger.before(5).features == (0,)
    assert ledger.before(3).spent == 0.0


def test_a_purchase_over_the_budget_is_refused_whole() -> None:
    ledger = blood(budget=8.0)
    with pytest.raises(BudgetError, match=r"Buying 0, 1 costs 10\.37, but 8 of the budget of 8 is left"):
        ledger.buy([0, 1])
    assert ledger.spent == 0.0
    assert not ledger.used.any()
    assert not ledger.history


def test_a_budget_met_to_the_cent_is_met() -> None:
    ledger = Ledger(FeatureCosts([0.1, 0.2, 0.3]), budget=0.6)
    assert 0.1 + 0.2 + 0.3 > 0.6
    assert ledger.fits([0, 1, 2])
    ledger.buy([0, 1])
    assert ledger.affordable().tolist() == [True, True, True]
    ledger.buy([2])
    assert ledger.remaining == 0.0
    assert ledger.spent == 0.6


@given(
    prices=st.lists(st.integers(0, 300).map(lambda cents: cents / 100), min_size=6, max_size=6),
    needs=st.lists(st.lists(st.integers(0, 5), unique=True, max_size=3), min_size=5, max_size=5),
    wishes=st.lists(st.sets(st.integers(0, 4), min_size=1, max_size=3), max_size=8),
    budget=st.none() | st.integers(0, 1500).map(lambda cents: cents / 100),
)
def test_invariants(prices, needs, wishes, budget) -> None:
    used = {source for row in needs for source in row}
    costs = FeatureCosts(needs=needs, prices={s: p for s, p in enumerate(prices) if s in used})
    ledger = Ledger(costs, budget)
    for round, wish in enumerate(wishes):
        np.testing.assert_array_equal(ledger.affordable(), [ledger.fits(feature) for feature in range(5)])
        if ledger.fits(wish):
            ledger.buy(wish, round)
        else:
            with pytest.raises(BudgetError):
                ledger.buy(wish, round)
        assert ledger.spent == costs.total(ledger.features)
        assert budget is None or ledger.spent <= budget
        assert ledger.sources == costs.paid_sources(ledger.features)
        np.testing.assert_allclose(
            ledger.marginals(), [costs.marginal(feature, ledger.features) for feature in range(5)], atol=1e-12
        )
    assert Ledger.from_dict(json.loads(json.dumps(ledger.to_dict()))) == ledger
    assert ledger.copy() == ledger
    assert ledger.before(len(wishes)) == ledger


def test_a_copy_goes_its_own_way() -> None:
    ledger = blood()
    other = ledger.copy()
    other.buy([0])
    assert ledger.spent == 0.0
    assert ledger != other
    assert ledger.remaining == float("inf")


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="bind"):
        Ledger(FeatureCosts({"a": 1.0}))
    with pytest.raises(ValueError, match="budget must be a finite number"):
        Ledger(FeatureCosts([1.0]), budget=-1.0)
    with pytest.raises(TypeError, match="budget must be a number"):
        Ledger(FeatureCosts([1.0]), budget="40")
