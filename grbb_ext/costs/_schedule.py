"""When to look for a purchase, and why training ended."""

from __future__ import annotations

from grbb_ext.costs._ledger import Ledger

_LONGEST_WAIT = 8
# Trees for looking: so many at first, and so many for each round. Below 1, since reading and masking take time, too.
_ADVANCE, _PER_ROUND = 8, 0.75


class Schedule:
    """Say in which rounds to look for a purchase.

    Parameters
    ----------
    every : int or None
        Look in every so-many-th round. None keeps two rules: wait 1, 2, 4, then 8 rounds while nothing is found to be
        worth its price, and grow no more than three trees for looking in four rounds, with an advance of 8.

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
        """Return whether to look in this round."""
        if self._next is None:
            return True
        if round < self._next:
            return False
        return self._every is not None or self._n_trees < _ADVANCE + _PER_ROUND * (round - (self._first or 0))

    def looked(self, round: int, *, bought: bool, n_trees: int) -> None:
        """Plan the next look.

        Parameters
        ----------
        round : int
            The round.
        bought : bool
            Whether something was found to be worth its price.
        n_trees : int
            Trees grown for looking.
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
        """Look in the next round: the last one found no split."""
        self._next = None


def stop_reason(ledger: Ledger, mu: float, n_rounds: int) -> str:
    """Return one sentence that says why nothing more can be learned.

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
    bought = f"the {ledger.used.sum()} features bought"
    start = f"Training with costs ended after {n_rounds} rounds: no split on {bought} helps, "
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
