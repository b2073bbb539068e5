"""Sums of prices as a person adds them: in decimals, so that 0.1 + 0.2 fits a budget of 0.3."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Context, Decimal

_CONTEXT = Context(prec=60)


def decimal(price: float) -> Decimal:
    """Return the shortest decimal number that is stored as `price`.

    Examples
    --------
    >>> decimal(0.1)
    Decimal('0.1')
    """
    return Decimal(repr(float(price)))


def exact_sum(prices: Iterable[float]) -> Decimal:
    """Add prices in decimals, without binary rounding.

    Examples
    --------
    >>> 0.1 + 0.2 <= 0.3, exact_sum([0.1, 0.2]) <= decimal(0.3)
    (False, True)
    """
    total = Decimal(0)
    for price in prices:
        total = _CONTEXT.add(total, decimal(price))
    return total


def exact_add(a: Decimal, b: Decimal) -> Decimal:
    """Add two sums."""
    return _CONTEXT.add(a, b)
