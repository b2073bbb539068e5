"""The set of paid sources during training: what was bought, what is left of the budget, what fits into it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grbb_ext._show import Shown
from grbb_ext.costs._engine import decimal, exact_sum
from grbb_ext.costs._feature_costs import FeatureCosts
from grbb_ext.costs._reading import Name, check_budget, shorten


class BudgetError(ValueError):
    """A purchase would exceed the budget."""


@dataclass(frozen=True)
class Purchase:
    """One line of a ledger: what a round bought.

    Attributes
    ----------
    round : int
        The boosting round, from 0; -1 for what was paid before training.
    features : tuple of str or int
        Features that the model uses from this round on.
    sources : tuple of str or int
        Sources paid for them; empty where all were paid already.
    price : float
        Their price.
    spent : float
        Total after the purchase.
    """

    round: int
    features: tuple[Name, ...]
    sources: tuple[Name, ...]
    price: float
    spent: float


class Ledger(Shown):
    """Features and sources that a model has bought, under a budget.

    Parameters
    ----------
    costs : FeatureCosts
        Bound to the columns of the data set (:meth:`FeatureCosts.bind`).
    budget : float or None, default=None
        The most that may be spent; None and infinity are no limit.

    Attributes
    ----------
    costs : FeatureCosts
        The prices.
    budget : float or None
        The limit.
    used : ndarray of bool of shape (n_features,)
        Features bought. Do not modify it.
    paid : ndarray of bool of shape (n_sources,)
        Sources paid. Do not modify it.
    history : list of Purchase
        What was bought, in which round.
    stop_reason : str or None
        Why training ended before its last round, where costs are the cause.

    Examples
    --------
    >>> costs = FeatureCosts(needs=[["draw", "chol"], ["draw", "fbs"], "age"],
    ...                      prices={"draw": 2.10, "chol": 5.17, "fbs": 3.10, "age": 1.0})
    >>> ledger = Ledger(costs, budget=9.0)
    >>> ledger.buy([0]).price
    7.27
    >>> ledger.spent, ledger.remaining
    (7.27, 1.73)
    >>> ledger.marginals().tolist()
    [0.0, 3.1, 1.0]
    >>> ledger.affordable().tolist()
    [True, False, True]
    >>> print(ledger)
    round   features  sources paid  price  total
    before  0         draw, chol     7.27   7.27
    1 of 3 features bought for 7.27, 1.73 left of the budget of 9.
    """

    def __init__(self, costs: FeatureCosts, budget: float | None = None) -> None:
        if not costs.bound:
            raise ValueError("A ledger needs costs in the order of the columns: use costs.bind(columns).")
        self.costs = costs
        self.budget = check_budget(budget)
        self.used: NDArray[np.bool_] = np.zeros(costs.n_features, dtype=bool)
        self.paid: NDArray[np.bool_] = np.zeros(len(costs.sources), dtype=bool)
        self.history: list[Purchase] = []
        self.stop_reason: str | None = None
        self._spent = exact_sum([])

    @property
    def spent(self) -> float:
        """Price of all sources paid."""
        return float(self._spent)

    @property
    def remaining(self) -> float:
        """What is left of the budget; infinite without one."""
        return float("inf") if self.budget is None else float(decimal(self.budget) - self._spent)

    @property
    def features(self) -> tuple[Name, ...]:
        """Names of the features bought."""
        return tuple(compress(self.costs.features, self.used))

    @property
    def sources(self) -> tuple[Name, ...]:
        """Names of the sources paid."""
        return tuple(compress(self.costs.sources, self.paid))

    def marginals(self) -> NDArray[np.float64]:
        """Return what each feature would add to the total now, shape (n_features,)."""
        return self.costs.marginals(self.paid)

    def price(self, features: Any) -> float:
        """Return what some features would add to the total together (a shared source counts once)."""
        return float(self.costs.exact(self._new_sources(features)))

    def fits(self, features: Any) -> bool:
        """Return whether buying some features together stays within the budget."""
        if self.budget is None:
            return True
        return exact_sum([self._spent, self.costs.exact(self._new_sources(features))]) <= decimal(self.budget)

    def affordable(self) -> NDArray[np.bool_]:
        """Return which features could be bought now, each by itself; those paid already are among them."""
        return self.costs.affordable(self.paid, np.inf if self.budget is None else self.budget)

    def buy(self, features: Any, round: int = -1) -> Purchase | None:
        """Pay the sources of some features.

        Parameters
        ----------
        features : iterable of names or indices, or boolean mask
            What the model uses now; features bought before may be among them.
        round : int, default=-1
            The boosting round, for ``history``.

        Returns
        -------
        Purchase or None
            The new line of ``history``; None where all features had been bought.

        Raises
        ------
        BudgetError
            If the budget does not allow it. Nothing is bought then.
        """
        new = self.costs._mask(features)[1] & ~self.used
        if not new.any():
            return None
        names, sources = tuple(compress(self.costs.features, new)), self._new_sources(new)
        price = self.costs.exact(sources)
        if not self.fits(new):
            left = f"{self.remaining:g} of the budget of {self.budget:g} is left"
            raise BudgetError(f"Buying {shorten(names)} costs {float(price):g}, but {left}.")
        self.used, self.paid = self.used | new, self.paid | sources
        self._spent = exact_sum([self._spent, price])
        bought = tuple(compress(self.costs.sources, sources))
        self.history.append(Purchase(int(round), names, bought, float(price), self.spent))
        return self.history[-1]

    def before(self, round: float) -> Ledger:
        """Return the ledger as it was before a round: what a model cut to its first `round` rounds needs.

        Examples
        --------
        >>> ledger = Ledger(FeatureCosts([1.0, 2.0]))
        >>> _ = ledger.buy([0], round=0), ledger.buy([1], round=5)
        >>> ledger.before(5).spent, ledger.spent
        (1.0, 3.0)
        """
        other = Ledger(self.costs, self.budget)
        for purchase in self.history:
            if purchase.round < round:
                other.buy(purchase.features, purchase.round)
        other.stop_reason = self.stop_reason
        return other

    def copy(self) -> Ledger:
        """Return an independent copy."""
        return self.before(float("inf"))

    def to_dict(self) -> dict[str, Any]:
        """Return the ledger as plain lists and numbers, for JSON."""
        return {
            "costs": self.costs.to_dict(),
            "budget": self.budget,
            "history": [asdict(purchase) for purchase in self.history],
            "stop_reason": self.stop_reason,
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Ledger:
        """Make the object from the output of :meth:`to_dict`."""
        ledger = cls(FeatureCosts.from_dict(state["costs"]), state["budget"])
        for line in state["history"]:
            ledger.buy(line["features"], line["round"])
        ledger.stop_reason = state["stop_reason"]
        return ledger

    def __getstate__(self) -> dict[str, Any]:
        return self.to_dict()

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(vars(Ledger.from_dict(state)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ledger):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]  # a ledger changes

    def __repr__(self) -> str:
        limit = "" if self.budget is None else f" of {self.budget:g}"
        return f"Ledger({self.used.sum()} of {self.used.size} features, {self.spent:g}{limit} spent)"

    def _table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]], str]:
        lines: list[tuple[str, ...]] = [
            (
                "before" if line.round < 0 else str(line.round + 1),
                shorten(line.features, write=str),
                shorten(line.sources, write=str) if line.sources else "paid before",
                f"{line.price:g}",
                f"{line.spent:g}",
            )
            for line in self.history
        ]
        limit = "." if self.budget is None else f", {self.remaining:g} left of the budget of {self.budget:g}."
        below = f"{self.used.sum()} of {self.used.size} features bought for {self.spent:g}{limit}"
        return ("round", "features", "sources paid", "price", "total"), lines, below

    def _new_sources(self, features: Any) -> NDArray[np.bool_]:
        return self.costs.union(self.costs._mask(features)[1]) & ~self.paid
