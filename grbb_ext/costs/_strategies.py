"""Strategies of the miser: which trees to grow and judge before a purchase, in which rounds, and why training ended."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grbb_ext.costs._judge import Choice, Groups, Judge, Mask
from grbb_ext.costs._ledger import Ledger


def price_levels(prices: ArrayLike, most: int) -> NDArray[np.float64]:
    """Return price limits, ascending; the last is the highest price.

    Parameters
    ----------
    prices : array-like
        Prices of the columns that could be bought.
    most : int
        Largest number of levels. Beyond it neighbouring prices share a level, each level with about as many prices.

    Returns
    -------
    ndarray
        At most `most` of the prices.

    Examples
    --------
    >>> price_levels([5.2, 1.0, 1.0, 7.27], most=8).tolist()
    [1.0, 5.2, 7.27]
    >>> price_levels(range(1, 101), most=4).tolist()
    [25.0, 50.0, 75.0, 100.0]
    """
    distinct = np.unique(np.asarray(prices, dtype=np.float64))
    if distinct.size <= most:
        return distinct
    last = np.ceil(np.arange(1, most + 1) * distinct.size / most).astype(np.intp) - 1
    return np.asarray(distinct[last])


def choose_by_levels(judge: Judge, most: int = 8) -> Choice:
    """Choose what to buy among trees on nested sets of columns.

    The first tree may use every affordable column, the second only what is free. Between them the highest price that
    the last tree paid is the limit for the next: levels that would grow the same tree again are passed over. Fewer
    columns gain less, so the descent ends where even a tree of this gain at the lowest price would not be the best.
    From the first and the best tree unworthy columns are then dropped.

    Parameters
    ----------
    judge : Judge
        Grows and judges trees.
    most : int, default=8
        Largest number of price levels.

    Returns
    -------
    Choice
    """
    prices = judge.prices
    top = judge.judge(judge.candidates)
    if (judge.mu == 0 and judge.best is not None) or not judge.new(top).any():
        return judge.choose()
    judge.baseline()
    levels = price_levels(prices[judge.candidates], most)
    growth, growths = top, [top]
    while True:
        below = levels[levels < prices[judge.new(growth)].max()]
        if not below.size or growth.total - judge.mu * levels[0] <= judge.choose().value:
            break
        growth = judge.judge(judge.candidates & (prices <= below[-1]))
        if not judge.new(growth).any():
            break
        growths.append(growth)
    best = max(growths, key=lambda one: one.total - judge.mu * judge.ledger.price(judge.new(one)))
    judge.refine(top)
    if best is not top:
        judge.refine(best)
    return judge.choose()


def path_groups(ledger: Ledger, allowed: Mask) -> Groups:
    """Return groups of columns such that a path within a group buys no more than one feature needs.

    The group of a column holds every column whose unpaid sources are among its own: those that are free, and those
    that come with it.

    Parameters
    ----------
    ledger : Ledger
        What is paid.
    allowed : ndarray of bool
        Columns to be put into groups.

    Returns
    -------
    tuple of tuple of int
        One group for each distinct set of unpaid sources that is not a part of another; each allowed column is in
        one at least.

    Examples
    --------
    >>> from grbb_ext.costs import FeatureCosts
    >>> ledger = Ledger(FeatureCosts([1.0, 5.0, 7.0, 0.0]))
    >>> path_groups(ledger, np.array([True, True, False, True]))
    ((0, 3), (1, 3))
    """
    columns = np.flatnonzero(allowed)
    owed = ~ledger.paid & (ledger.costs.prices > 0)
    unpaid = [frozenset(s for s in ledger.costs._row(column).tolist() if owed[s]) for column in columns.tolist()]
    distinct = list(dict.fromkeys(unpaid))
    largest = [one for one in distinct if not any(one < other for other in distinct)]
    return tuple(tuple(columns[[part <= one for part in unpaid]].tolist()) for one in largest)


def choose_by_interaction(judge: Judge, most: int = 8) -> Choice:
    """Choose what to buy among trees whose paths buy one feature at most.

    The first tree may use every affordable column, the second only what is free. Then, step by step, columns whose
    splits gain less than mu times their price are closed, or where there are none the most expensive of the last tree,
    so that cheaper columns are tried. As with levels, this ends where a tree of the last gain at the lowest price would
    not be the best.

    Parameters
    ----------
    judge : Judge
        Grows and judges trees.
    most : int, default=8
        Largest number of steps.

    Returns
    -------
    Choice
        With the groups under which its tree was grown.
    """
    candidates, lowest = judge.candidates.copy(), judge.prices[judge.candidates].min(initial=np.inf)
    for step in range(most + 1):
        groups = path_groups(judge.ledger, judge.free | candidates) if candidates.any() else None
        growth = judge.judge(candidates, groups)
        if step == 0:
            if judge.mu == 0 and judge.best is not None:
                break
            judge.baseline()
        new = judge.new(growth)
        if not new.any() or growth.total - judge.mu * lowest <= judge.choose().value:
            break
        closed = new & ~judge.worthy(growth)
        if not closed.any():
            closed = new & (judge.prices == judge.prices[new].max())
        candidates &= ~closed
    return judge.choose()


_LONGEST_WAIT = 8
# Trees grown in search of purchases: so many at first, and so many for each round. Below 1, since reading and masking
# take time, too.
_ADVANCE, _PER_ROUND = 8, 0.75


class Schedule:
    """Decide in which rounds to search for a purchase.

    Parameters
    ----------
    every : int or None
        Search in every so-many-th round. None applies two rules: wait 1, 2, 4, then 8 rounds while nothing is found to
        be worth its price, and grow no more than three trees for searching in four rounds, with an advance of 8.

    Examples
    --------
    >>> schedule = Schedule(None)
    >>> looked = []
    >>> for round in range(20):
    ...     if schedule.due(round):
    ...         looked.append(round)
    ...         schedule.looked(round, bought=False, n_trees=2)
    >>> looked
    [0, 1, 3, 7, 15]
    """

    def __init__(self, every: int | None) -> None:
        self._every = every
        self._wait = 1
        self._next: int | None = None
        self._first: int | None = None
        self._n_trees = 0

    def due(self, round: int) -> bool:
        """Return whether to search in this round."""
        if self._next is None:
            return True
        if round < self._next:
            return False
        return self._every is not None or self._n_trees < _ADVANCE + _PER_ROUND * (round - (self._first or 0))

    def looked(self, round: int, *, bought: bool, n_trees: int) -> None:
        """Plan the next search.

        Parameters
        ----------
        round : int
            The round.
        bought : bool
            Whether something was found to be worth its price.
        n_trees : int
            Trees grown in this search.
        """
        self._first = round if self._first is None else self._first
        self._n_trees += n_trees
        if self._every is not None:
            self._next = round + self._every
        elif bought:
            self._wait = 1
            self._next = round + 1
        else:
            self._next = round + self._wait
            self._wait = min(2 * self._wait, _LONGEST_WAIT)

    def hurry(self) -> None:
        """Search in the next round: the last one found no split."""
        self._next = None


def stop_reason(ledger: Ledger, mu: float, n_rounds: int) -> str:
    """Return one sentence that says why training ended.

    Parameters
    ----------
    ledger : Ledger
        What is paid.
    mu : float
        Trade-off of eq. 1.
    n_rounds : int
        Rounds of the model.

    Examples
    --------
    >>> from grbb_ext.costs import FeatureCosts
    >>> print(stop_reason(Ledger(FeatureCosts([1.0, 5.0]), budget=0.5), 0.0, 3))
    Training with costs ended after 3 rounds: no split on the 0 features bought helps, and the cheapest of the 2 others
    costs 1 while 0.5 of the budget of 0.5 is left.
    """
    prices = ledger.marginals()
    unpaid = prices > 0
    n_bought = int(ledger.used.sum())
    rounds, bought = f"{n_rounds} round{'s' * (n_rounds != 1)}", f"{n_bought} feature{'s' * (n_bought != 1)}"
    start = f"Training with costs ended after {rounds}: no split on the {bought} bought helps, "
    if not unpaid.any():
        return start + "and all features are paid."
    if not (ledger.affordable() & unpaid).any():
        return start + (
            f"and the cheapest of the {unpaid.sum()} others costs {prices[unpaid].min():g} while "
            f"{ledger.remaining:g} of the budget of {ledger.budget:g} is left."
        )
    if mu > 0:
        return start + f"and no other feature that is affordable is worth its price at mu={mu:g}."
    return start + "and no other feature that is affordable does."
