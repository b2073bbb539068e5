"""Checks that many doors share."""

from __future__ import annotations

from numbers import Integral
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
