"""Checks that many doors share."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any


def positive_int(value: Any, name: str, least: int = 1) -> int:
    """Return `value` as an int, or raise a ValueError that names it.

    Examples
    --------
    >>> positive_int(3, "n_trees")
    3
    >>> positive_int(True, "n_trees")
    Traceback (most recent call last):
    ...
    ValueError: n_trees must be a positive integer, got True.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        wanted = "a positive integer" if least == 1 else f"an integer of at least {least}"
        raise ValueError(f"{name} must be {wanted}, got {value!r}.")
    return int(value)


def finite_number(value: Any, name: str, least: float = 0.0) -> float:
    """Return `value` as a float, or raise an error that names it.

    Examples
    --------
    >>> finite_number(-1, "lam")
    Traceback (most recent call last):
    ...
    ValueError: lam must be a finite number of at least 0, got -1.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {value!r}.")
    number = float(value)
    if not (math.isfinite(number) and number >= least):
        raise ValueError(f"{name} must be a finite number of at least {least:g}, got {value!r}.")
    return number


def one_of(value: Any, allowed: tuple[Any, ...], name: str) -> None:
    """Raise a ValueError that names a parameter unless its value is one of those allowed.

    Examples
    --------
    >>> one_of("cubic", ("auto", "standard", None), "scale")
    Traceback (most recent call last):
    ...
    ValueError: scale must be 'auto', 'standard' or None, got 'cubic'.
    """
    if not (isinstance(value, str | None) and value in allowed):
        *most, last = (repr(one) for one in allowed)
        raise ValueError(f"{name} must be {', '.join(most)} or {last}, got {value!r}.")
