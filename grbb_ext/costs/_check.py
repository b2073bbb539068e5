"""Checks of prices and names, with messages that say what to do."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

Name: TypeAlias = str | int


def check_price(value: Any, what: str) -> float:
    """Return a price as a float, or say which one is wrong.

    Examples
    --------
    >>> check_price(2, "The price of 'draw'")
    2.0
    >>> check_price(-1, "The price of 'draw'")
    Traceback (most recent call last):
    ...
    ValueError: The price of 'draw' must be a finite number of at least 0, got -1.
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise TypeError(f"{what} must be a number, got {value!r}.")
    price = float(value)
    if not (math.isfinite(price) and price >= 0):
        raise ValueError(f"{what} must be a finite number of at least 0, got {value!r}.")
    return price + 0.0  # -0.0 becomes 0.0


def check_name(value: Any, what: str) -> Name:
    """Return a name (text) or an index (a non-negative integer) as a Python object."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        if value < 0:
            raise ValueError(f"{what} must be a name or an index from 0, got {value!r}.")
        return int(value)
    raise TypeError(f"{what} must be a name (str) or an index (int), got {value!r}.")


def check_names(values: Iterable[Any], what: str) -> tuple[Name, ...]:
    """Return names without repetition, either all text or all indices.

    Examples
    --------
    >>> check_names(["age", "sex"], "feature")
    ('age', 'sex')
    >>> check_names(["age", "age"], "feature")
    Traceback (most recent call last):
    ...
    ValueError: The feature 'age' is named twice: name each feature once.
    """
    names = tuple(check_name(value, f"A {what}") for value in values)
    seen: set[Name] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"The {what} {name!r} is named twice: name each {what} once.")
        seen.add(name)
    return names


def one_kind(names: Sequence[Name], what: str) -> None:
    """Refuse a mixture of names and indices."""
    if len({type(name) for name in names}) > 1:
        raise TypeError(f"{what} must be all names or all indices, got both: {list(names)[:6]!r}.")


def pairs(table: Any, what: str) -> list[tuple[Any, Any]]:
    """Return (key, value) pairs of a mapping, a pandas Series, or a sequence (keys 0, 1, ...)."""
    if isinstance(table, Mapping) or (hasattr(table, "items") and hasattr(table, "index")):
        return list(table.items())
    if isinstance(table, (str, bytes)) or not hasattr(table, "__len__"):
        raise TypeError(f"{what} must be a dict or a sequence with one entry per column, got {table!r}.")
    array = np.asarray(table) if isinstance(table, np.ndarray) else None
    if array is not None and array.ndim != 1:
        raise ValueError(f"{what} must have one dimension, got shape {array.shape}.")
    return list(enumerate(table))


def unknown_name(name: Any, known: Sequence[Name], what: str) -> str:
    """Text for a name that is not there, with the nearest ones that are.

    Examples
    --------
    >>> print(unknown_name("chl", ["age", "chol"], "feature"))
    Unknown feature 'chl'. Did you mean 'chol'?
    """
    near = difflib.get_close_matches(str(name), [str(other) for other in known], n=1)
    hint = f"Did you mean {near[0]!r}?" if near else f"The {what}s are {shorten(known)}."
    return f"Unknown {what} {name!r}. {hint}"


def shorten(names: Iterable[Name], most: int = 6) -> str:
    """Join names for a message, the first few of them.

    Examples
    --------
    >>> shorten(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    listed = [repr(name) for name in names]
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more
