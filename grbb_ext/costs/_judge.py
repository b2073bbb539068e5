"""Compare trees by eq. 7: their gain, minus mu times the price of what they would have to buy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grbb_ext.costs._ledger import Ledger


def gain_bound(gradient: ArrayLike, hessian: ArrayLike) -> float:
    r"""Return an upper bound on the gain of every tree.

    A tree that gives each row a leaf of its own gains most. By Cauchy's inequality, for any leaves,

    .. math:: \sum_{leaves} \frac{(\sum g_i)^2}{\sum h_i + \lambda} \le \sum_i \frac{g_i^2}{h_i},

    and with hessian 1 the right-hand side is the squared error that is left. Regularisation only lowers gains.

    Parameters
    ----------
    gradient, hessian : array-like of shape (N,) or (N, K)
        Of the round.

    Returns
    -------
    float
        Infinite where a row has a gradient but no curvature.

    Examples
    --------
    >>> gain_bound([1.0, -2.0, 0.0], [1.0, 1.0, 0.0])
    5.0
    """
    g, h = np.asarray(gradient, dtype=np.float64), np.asarray(hessian, dtype=np.float64)
    pulled = g != 0
    with np.errstate(divide="ignore"):
        return float(np.sum(g[pulled] ** 2 / h[pulled]))


Mask: TypeAlias = NDArray[np.bool_]
Groups: TypeAlias = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Growth:
    """What a round grew, or would grow.

    Attributes
    ----------
    used : ndarray of bool of shape (d,)
        Columns that its trees read.
    gain : ndarray of shape (d,)
        Sum of the gains of the splits on each column. With hessian 1 and no L2 this is decrease in squared error.
    """

    used: Mask
    gain: NDArray[np.float64]

    @property
    def total(self) -> float:
        """Gain of all splits."""
        return float(self.gain.sum())


@dataclass(frozen=True)
class Choice:
    """What a round should buy.

    Attributes
    ----------
    new : ndarray of bool of shape (d,)
        Columns to buy; together they fit into the budget.
    groups : tuple of tuple of int, or None
        Columns that may share a path; None where any may.
    gain, price, value : float
        Gain of the tree, price of its new sources, and gain - mu * price.
    """

    new: Mask
    groups: Groups | None
    gain: float
    price: float
    value: float

    @property
    def buys(self) -> bool:
        """Whether there is anything to buy."""
        return bool(self.new.any())


class Judge:
    r"""Grow trees, and keep the one with the least squared error + mu * new cost.

    Since a tree's squared error is that of a single leaf minus its gain, the tree that minimises eq. 7,

    .. math:: \sum_i (-g_i - h_t(x_i))^2 + \mu \sum_\alpha c_\alpha [\alpha \text{ new}],

    is the one of largest value, gain - mu * price. A tree whose purchases do not fit into the budget together is
    replaced with trees on those of its columns that do.

    Parameters
    ----------
    ledger : Ledger
        What is paid.
    mu : float
        Trade-off of eq. 1.
    probe : callable
        ``probe(mask, groups)`` grows a round on the open columns; with groups, each path stays within one of them.
    usable : ndarray of bool, default=None
        Columns that may be bought at all; None is all.

    Attributes
    ----------
    free : ndarray of bool
        Columns that cost nothing now.
    prices : ndarray
        What each column would add to the total.
    candidates : ndarray of bool
        Columns that cost something and are affordable, each by itself.
    best : Choice or None
        The best tree so far; among equals the first.
    n_probes : int
        Trees grown.
    """

    def __init__(
        self, ledger: Ledger, mu: float, probe: Callable[[Mask, Groups | None], Growth], usable: Mask | None = None
    ) -> None:
        self.ledger, self.mu, self._probe = ledger, mu, probe
        self.prices = ledger.marginals()
        self.free: Mask = self.prices == 0
        self.candidates: Mask = ledger.affordable() & ~self.free
        if usable is not None:
            self.free, self.candidates = self.free & usable, self.candidates & usable
        self.best: Choice | None = None
        self.n_probes = 0

    def baseline(self) -> Growth:
        """Judge the tree that buys nothing."""
        return self.judge(np.zeros_like(self.free))

    def judge(self, new: Mask, groups: Groups | None = None) -> Growth:
        """Grow a tree on the free and some new columns, judge it, and return it."""
        growth = self._grow(self.free | new, groups)
        if not self._take(growth, groups):
            for chosen in self._that_fit(growth):
                self._take(self._grow(self.free | chosen, groups), groups)
        return growth

    def new(self, growth: Growth) -> Mask:
        """Return the columns that a tree would have to buy."""
        return growth.used & ~self.free

    def worthy(self, growth: Growth) -> Mask:
        """Return the new columns of a tree without those of sources whose splits gain less than mu * price.

        The gain of a column inside a tree is what its splits gained, not what the tree would lose without it, so this
        is a guess at a better set, to be judged.
        """
        new, costs = self.new(growth), self.ledger.costs
        owed = np.where(self.ledger.paid, 0.0, costs.prices)
        gain_of_source = costs.needs.T @ np.where(new, growth.gain, 0.0)
        return new & costs.covered(~((owed > 0) & (gain_of_source <= self.mu * owed)))

    def refine(self, growth: Growth) -> None:
        """Drop unworthy columns from a tree, and judge what is left, as long as there are any."""
        while (kept := self.worthy(growth)).any() and (kept != self.new(growth)).any():
            growth = self.judge(kept)

    def choose(self) -> Choice:
        """Return the best tree judged."""
        assert self.best is not None
        return self.best

    def _grow(self, mask: Mask, groups: Groups | None) -> Growth:
        if not mask.any():
            return Growth(np.zeros_like(mask), np.zeros(mask.size))
        self.n_probes += 1
        return self._probe(mask, groups)

    def _take(self, growth: Growth, groups: Groups | None) -> bool:
        """Keep a tree if it is the best; return whether it fits into the budget."""
        new = self.new(growth)
        if not self.ledger.fits(new):
            return False
        best, price = self.best, self.ledger.price(new)
        value = growth.total - self.mu * price
        # Among equals the cheaper one: at mu * c = gain difference exactly nothing is bought.
        if best is None or value > best.value or (self.mu > 0 and value == best.value and price < best.price):
            self.best = Choice(new, groups, growth.total, price, value)
        return True

    def _that_fit(self, growth: Growth) -> list[Mask]:
        """Return sets of a tree's new columns that fit into the budget: by gain, and by gain for the money."""
        new = np.flatnonzero(self.new(growth))
        sets: list[Mask] = []
        for worth in (growth.gain[new], growth.gain[new] / self.prices[new]):
            chosen = np.zeros_like(self.free)
            for column in new[np.argsort(-worth, kind="stable")]:
                chosen[column] = True
                chosen[column] = self.ledger.fits(chosen)
            if chosen.any() and not any(np.array_equal(chosen, other) for other in sets):
                sets.append(chosen)
        return sets
