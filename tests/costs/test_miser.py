"""Decisions of the miser, with trees grown by a slow exact loop on plain arrays."""

import itertools

import numpy as np
import pytest

from grbb_ext.costs import (
    FeatureCosts,
    Growth,
    Judge,
    Ledger,
    Schedule,
    choose_by_interaction,
    choose_by_levels,
    gain_bound,
    stop_reason,
)
from grbb_ext.costs._strategies import path_groups, price_levels


def grow(X, target, depth, mask, groups=None):
    """Grow a greedy least-squares tree on some columns; each path stays within one group."""
    used, gain = np.zeros(X.shape[1], dtype=bool), np.zeros(X.shape[1])

    def split(rows, depth, path):
        columns = np.flatnonzero(mask)
        if groups is not None and path:
            together = [set(group) for group in groups if path <= set(group)]
            columns = [c for c in columns if any(c in group for group in together)]
        best, chosen = 1e-12, None
        for column in columns if depth else ():
            for limit in np.unique(X[rows, column])[1:]:
                left = X[rows, column] < limit
                parts = target[rows[left]], target[rows[~left]]
                g = sum(part.sum() ** 2 / part.size for part in parts) - target[rows].sum() ** 2 / rows.size
                if g > best * (1 + 1e-9):
                    best, chosen = g, (column, left)
        if chosen is not None:
            column, left = chosen
            used[column] = True
            gain[column] += best
            split(rows[left], depth - 1, path | {int(column)})
            split(rows[~left], depth - 1, path | {int(column)})

    split(np.arange(target.size), depth, frozenset())
    return Growth(used, gain)


def judge(costs, X, target, mu, budget=None, depth=1, paid=(), usable=None):
    ledger = Ledger(costs, budget)
    ledger.buy(list(paid))
    return Judge(ledger, mu, lambda mask, groups: grow(X, target, depth, mask, groups), usable)


# A stump on column 0 gains 6, on column 1 gains 3: hand-computed from (sum left)^2 / n + (sum right)^2 / n - 0.
X_PAIR = np.array([[0, 0], [0, 0], [0, 1], [1, 1], [1, 1], [1, 1]])
TARGET = np.array([-1.0, -1.0, -1.0, 1.0, 1.0, 1.0])


def test_stumps_gain_what_was_computed_by_hand():
    for column, expected in ((0, 6.0), (1, 4 / 2 + 4 / 4)):
        mask = np.arange(2) == column
        assert grow(X_PAIR, TARGET, 1, mask).total == pytest.approx(expected)


@pytest.mark.parametrize("choose", [choose_by_levels, choose_by_interaction])
@pytest.mark.parametrize(
    ("mu", "bought"),
    [
        (0.0, [0]),
        (0.9999, [0]),  # 6 - mu * 4 > 3 - mu * 1  below mu = 1
        (1.0001, [1]),
        (2.9999, [1]),  # 3 - mu > 0  below mu = 3
        (3.0001, []),
    ],
)
def test_the_feature_switches_where_mu_times_price_is_the_difference_in_gain(choose, mu, bought):
    choice = choose(judge(FeatureCosts([4.0, 1.0]), X_PAIR, TARGET, mu))
    assert np.flatnonzero(choice.new).tolist() == bought
    assert choice.buys == bool(bought)
    assert choice.value == pytest.approx(max(6 - 4 * mu, 3 - mu, 0))


def test_at_equality_the_cheaper_tree_is_chosen():
    # 6 - 4 mu = 3 - mu at mu = 1 in floating point, too: all numbers are small integers.
    choice = choose_by_levels(judge(FeatureCosts([4.0, 1.0]), X_PAIR, TARGET, 1.0))
    assert np.flatnonzero(choice.new).tolist() == [1]
    assert not choose_by_levels(judge(FeatureCosts([6.0, 9.0]), X_PAIR, TARGET, 1.0)).buys


def test_a_paid_source_makes_its_features_free():
    costs = FeatureCosts(needs=[["draw"], ["draw"]], prices={"draw": 100.0})
    decision = judge(costs, X_PAIR, TARGET, 1.0, paid=[1])
    assert decision.free.tolist() == [True, True]
    assert not decision.candidates.any()
    choice = choose_by_levels(decision)
    assert choice.gain == pytest.approx(6)
    assert choice.price == 0


@pytest.mark.parametrize("choose", [choose_by_levels, choose_by_interaction])
def test_a_shared_source_is_charged_once(choose):
    """Two columns of one source of price 5, each gaining 4 in a tree of depth 2: 8 - 5 mu, and 0 without them."""
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    target = np.array([-2.0, 0.0, 0.0, 2.0])
    costs = FeatureCosts(needs=["bank", "bank"], prices={"bank": 5.0})
    for mu, buys in ((1.59, True), (1.61, False)):
        choice = choose(judge(costs, X, target, mu, depth=2))
        assert choice.buys == buys
    assert choose(judge(costs, X, target, 1.0, depth=2)).price == 5.0


def test_a_tree_beyond_the_budget_is_replaced_by_one_that_fits():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (200, 5)).astype(float)
    target = X @ [5.0, 4.0, 3.6, 2.0, 1.0]
    target -= target.mean()
    decision = judge(FeatureCosts([3.0] * 5), X, target, 0.0, budget=6.5, depth=4)
    choice = choose_by_levels(decision)
    assert np.flatnonzero(choice.new).tolist() == [0, 1]
    # By gain for the money the two cheap columns are better than the dear one.
    decision = judge(FeatureCosts([6.0, 3.0, 3.0, 9.0, 9.0]), X, target, 0.0, budget=6.0, depth=4)
    assert choose_by_levels(decision).new.tolist() == [False, True, True, False, False]


def test_unworthy_columns_are_dropped():
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, (64, 3)).astype(float)
    target = 4 * X[:, 0] + 0.5 * X[:, 1]
    target -= target.mean()
    costs = FeatureCosts([1.0, 1.0, 1.0])  # one level: only dropping can tell them apart
    both = grow(X, target, 2, np.array([True, True, False]))
    mu = float(both.gain[1]) * 2
    decision = judge(costs, X, target, mu, depth=2)
    choice = choose_by_levels(decision)
    assert np.flatnonzero(choice.new).tolist() == [0]


def test_columns_that_are_not_usable_are_never_chosen():
    decision = judge(FeatureCosts([4.0, 1.0]), X_PAIR, TARGET, 0.0, usable=np.array([False, True]))
    assert choose_by_levels(decision).new.tolist() == [False, True]


@pytest.mark.parametrize("choose", [choose_by_levels, choose_by_interaction])
@pytest.mark.parametrize("seed", range(25))
def test_random_decisions_fit_and_are_at_least_as_good_as_buying_nothing(choose, seed):
    rng = np.random.default_rng(seed)
    d, n_sources = 6, 5
    needs = [sorted(set(rng.choice(n_sources, rng.integers(0, 3)).tolist())) for _ in range(d)]
    used = sorted(set(itertools.chain(*needs)))
    costs = FeatureCosts(needs=needs, prices={s: float(rng.integers(0, 6)) for s in used} or {})
    X = rng.integers(0, 3, (40, d)).astype(float)
    target = X @ rng.normal(size=d) + rng.normal(size=40)
    target -= target.mean()
    mu, budget = float(rng.choice([0.0, 0.5, 5.0])), rng.choice([None, 2.0, 5.0, 8.0])
    decision = judge(costs, X, target, mu, budget, depth=2)
    choice = choose(decision)
    assert decision.ledger.fits(choice.new)
    assert not (choice.new & decision.free).any()
    nothing = grow(X, target, 2, decision.free).total if decision.free.any() else 0.0
    assert choice.value >= nothing - 1e-9 or mu == 0
    # The tree on the chosen columns is the tree that was judged.
    again = grow(X, target, 2, decision.free | choice.new, choice.groups)
    assert again.total == pytest.approx(choice.gain)
    assert choice.gain <= gain_bound(-target, np.ones(40)) + 1e-9


def test_levels_are_at_least_as_good_as_every_single_level():
    rng = np.random.default_rng(3)
    X = rng.integers(0, 4, (60, 6)).astype(float)
    target = X[:, 0] * X[:, 5] + X[:, 1] + rng.normal(size=60)
    target -= target.mean()
    costs = FeatureCosts([5.0, 1.0, 2.0, 3.0, 4.0, 6.0])
    for mu in (0.1, 1.0, 3.0, 10.0, 30.0):
        choice = choose_by_levels(judge(costs, X, target, mu, depth=2))
        for limit in range(7):
            level = grow(X, target, 2, costs.marginals() <= limit)
            assert choice.value >= level.total - mu * costs.total(level.used) - 1e-9


def test_path_groups_hold_what_comes_with_a_feature():
    costs = FeatureCosts(
        needs={"age": [], "draw_only": ["draw"], "chol": ["draw", "chol"], "fbs": ["draw", "fbs"], "ecg": ["ecg"]},
        prices={"draw": 2.0, "chol": 5.0, "fbs": 3.0, "ecg": 1.0},
    ).bind(["age", "draw_only", "chol", "fbs", "ecg"])
    ledger = Ledger(costs)
    everything = np.ones(5, dtype=bool)
    assert path_groups(ledger, everything) == ((0, 1, 2), (0, 1, 3), (0, 4))
    ledger.buy(["chol"])
    assert path_groups(ledger, everything) == ((0, 1, 2, 3), (0, 1, 2, 4))
    ledger.buy(["fbs", "ecg"])
    assert path_groups(ledger, everything) == ((0, 1, 2, 3, 4),)


def test_price_levels_are_prices_and_end_at_the_highest():
    prices = np.random.default_rng(0).uniform(1, 9, 50)
    for most in (1, 3, 8, 50, 60):
        levels = price_levels(prices, most)
        assert levels.size == min(most, 50)
        assert np.isin(levels, prices).all()
        assert levels[-1] == prices.max()
        assert (np.diff(levels) > 0).all()


def test_no_tree_gains_more_than_the_bound():
    rng = np.random.default_rng(0)
    X, g, h = rng.normal(size=(30, 2)), rng.normal(size=30), rng.uniform(0.1, 2, 30)
    bound = gain_bound(g, h)
    for column, limit, l2 in itertools.product((0, 1), (-0.5, 0.0, 0.5), (0.0, 1.0)):
        left = X[:, column] < limit
        gain = sum(g[part].sum() ** 2 / (h[part].sum() + l2) for part in (left, ~left))
        assert gain <= bound
    assert gain_bound(np.array([1.0]), np.array([0.0])) == np.inf
    assert gain_bound(g, np.ones(30)) == pytest.approx((g**2).sum())


def looks(schedule, n_rounds, n_trees, buys=()):
    looked = []
    for round in range(n_rounds):
        if schedule.due(round):
            looked.append(round)
            schedule.looked(round, bought=round in buys, n_trees=n_trees)
    return looked


def test_the_schedule_waits_longer_and_starts_over_after_a_purchase():
    schedule = Schedule(None)
    assert looks(schedule, 40, 1, buys=[15]) == [0, 1, 3, 7, 15, 16, 17, 19, 23, 31, 39]
    schedule.hurry()
    assert schedule.due(40)
    assert looks(Schedule(3), 10, 100, buys=range(10)) == [0, 3, 6, 9]


def test_no_more_trees_are_grown_to_look_than_rounds_pay_for():
    for n_trees in (1, 3, 8, 20):
        looked = looks(Schedule(None), 200, n_trees, buys=range(200))
        # 8 at first and .75 for each round, and the last look may overdraw.
        assert 0.75 * 200 - 1 <= len(looked) * n_trees < 0.75 * 200 + 8 + n_trees


def test_the_reason_to_stop_names_the_cause():
    ledger = Ledger(FeatureCosts([1.0, 5.0]), budget=4.0)
    assert "is worth its price at mu=2" in stop_reason(ledger, 2.0, 1)
    assert stop_reason(ledger, 0.0, 1).endswith("and no other feature that is affordable does.")
    ledger.buy([0])
    assert "the cheapest of the 1 others costs 5 while 3 of the budget of 4 is left" in stop_reason(ledger, 2.0, 1)
    assert stop_reason(Ledger(FeatureCosts([0.0])), 2.0, 1).endswith("all features are paid.")
