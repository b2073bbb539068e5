"""When to look for a purchase: trees grown only to decide cost as much as those that stay."""

from __future__ import annotations

_LONGEST_WAIT = 8


class Schedule:
    """Say in which rounds to look for a purchase.

    Parameters
    ----------
    every : int or None
        Look in every so-many-th round; None waits 1, 2, 4, then 8 rounds while nothing is found to be worth its
        price, and looks again in the next round after a purchase.

    Examples
    --------
    >>> schedule = Schedule(None)
    >>> looked = []
    >>> for round in range(20):
    ...     if schedule.due(round):
    ...         looked.append(round)
    ...         schedule.looked(round, bought=False)
    >>> looked
    [0, 1, 3, 7, 15]
    """

    def __init__(self, every: int | None) -> None:
        self._every = every
        self._wait = 1
        self._next: int | None = None

    def due(self, round: int) -> bool:
        """Return whether to look in this round."""
        return self._next is None or round >= self._next

    def looked(self, round: int, bought: bool) -> None:
        """Plan the next look."""
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
