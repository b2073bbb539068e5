"""The price engine against loops over sets, for one set of paid sources and for one set per row."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from grbb_ext import FeatureCosts


@given(
    cents=st.lists(st.integers(0, 300), min_size=6, max_size=6),
    needs=st.lists(st.lists(st.integers(0, 5), unique=True, max_size=4), min_size=5, max_size=5),
    paid=st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=1, max_size=4),
    budgets=st.lists(st.integers(0, 1500), min_size=4, max_size=4),
)
def test_every_method_is_that_of_a_loop_over_sets(cents, needs, paid, budgets) -> None:
    sources = sorted({source for row in needs for source in row})
    costs = FeatureCosts(needs=needs, prices={s: cents[s] / 100 for s in sources})
    z = np.array(paid)[:, sources]
    limit = np.array(budgets[: len(z)]) / 100
    wanted = [{sources.index(s) for s in row} for row in needs]
    union, covered, marginals = costs.union(np.eye(5, dtype=bool)), costs.covered(z), costs.marginals(z)
    affordable, spent = costs.affordable(z, limit), costs.spent(z)
    price = [cents[s] for s in sources]
    for j, need in enumerate(wanted):
        assert set(np.flatnonzero(union[j])) == need
    for i, row in enumerate(z):
        owned = set(np.flatnonzero(row))
        assert costs.exact(row) == sum((Decimal(price[s]) / 100 for s in owned), Decimal(0))
        assert spent[i] == float(costs.exact(row))
        for j, need in enumerate(wanted):
            assert covered[i, j] == (need <= owned)
            np.testing.assert_allclose(marginals[i, j], sum(price[s] for s in need - owned) / 100, atol=1e-12)
            assert affordable[i, j] == (sum(price[s] for s in need | owned) <= budgets[i])
        # One set gives the same bits as the row of a matrix.
        np.testing.assert_array_equal(costs.marginals(row), marginals[i])
        np.testing.assert_array_equal(costs.affordable(row, limit[i]), affordable[i])
        np.testing.assert_array_equal(costs.covered(row), covered[i])


def test_sums_near_the_budget_are_decimal() -> None:
    costs = FeatureCosts([0.1, 0.2, 0.3])
    paid = np.array([[True, True, False], [True, False, False], [False, False, False]])
    assert 0.1 + 0.2 + 0.3 > 0.6
    assert costs.affordable(paid, [0.6, 0.3, 0.2]).tolist() == [[True] * 3, [True, True, False], [True, True, False]]
    assert costs.affordable(paid[0], 0.6).tolist() == [True] * 3
    assert costs.affordable(paid, np.inf).all()


def test_what_is_spent_is_within_the_budget_and_the_total() -> None:
    costs = FeatureCosts([0.1, 0.2, 0.3])
    paid = np.array([[True, True, False], [True, True, True]])
    assert costs.spent(paid).tolist() == [0.3, 0.6] == [costs.total([0, 1]), costs.total([0, 1, 2])]
    assert costs.spent(paid[0]) == 0.3
    many_digits = FeatureCosts([1 / 3, 1e300, 1e-300])
    np.testing.assert_allclose(many_digits.spent([True, False, True]), 1 / 3)


def test_there_may_be_no_rows() -> None:
    costs = FeatureCosts([1.0, 2.0])
    none = np.zeros((0, 2), dtype=bool)
    assert costs.affordable(none, np.zeros(0)).shape == costs.marginals(none).shape == (0, 2)
    assert costs.union(none).shape == costs.covered(none).shape == (0, 2)
