"""Names, prices and needs as users give them, as objects or as a CSV table: read and checked."""

from __future__ import annotations

import csv
import difflib
import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from os import PathLike
from typing import Any, TextIO, TypeAlias

import numpy as np

Name: TypeAlias = str | int


def check_price(value: Any, what: str) -> float:
    """Return a price as a float, or raise an error that names it.

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


def read_prices(prices: Any) -> tuple[tuple[Name, ...], list[float]]:
    """Return names and prices of the sources."""
    if not hasattr(prices, "items"):
        raise TypeError(f"prices must be a dict from source to price, got {prices!r}.")
    table = list(prices.items())
    sources = check_names((key for key, _ in table), "source")
    return sources, [check_price(value, f"The price of {key!r}") for key, value in table]


def read_needs(features: tuple[Name, ...], needs: list[Any], sources: tuple[Name, ...]) -> list[list[int]]:
    """Return the positions of each feature's sources; a source without a price or a price without a use is refused."""
    position = {source: i for i, source in enumerate(sources)}
    used: set[Name] = set()
    needed: list[list[int]] = []
    for feature, wanted in zip(features, needs, strict=True):
        listed = [wanted] if isinstance(wanted, (str, int, np.integer)) else wanted
        if not isinstance(listed, Iterable):
            raise TypeError(f"needs of {feature!r} must be a list of sources, got {wanted!r}.")
        names = check_names(listed, "source")
        for name in names:
            if name not in position:
                raise ValueError(f"{feature!r} needs {name!r}, which has no price. Add it to prices=.")
        used.update(names)
        needed.append(sorted(position[name] for name in names))
    unused = [source for source in sources if source not in used]
    if unused:
        raise ValueError(f"No feature needs {shorten(unused)}. Take the price out, or correct the names in needs=.")
    return needed


_DERIVED = "derived:"


def read_csv(
    path_or_buffer: str | PathLike[str] | TextIO,
) -> tuple[dict[str, list[str]], dict[str, float]]:
    r"""Read needs and prices from a table with the columns feature, cost[, discount_cost, group, needs].

    Parameters
    ----------
    path_or_buffer : path or text file
        The table.

    Returns
    -------
    needs : dict of str to list of str
        The sources of each feature.
    prices : dict of str to float
        The price of each source.

    Examples
    --------
    >>> import io
    >>> needs, prices = read_csv(io.StringIO("feature,cost,discount_cost,group\nchol,7.27,5.17,A\nfbs,5.2,3.1,A\n"))
    >>> needs
    {'chol': ['A', 'chol'], 'fbs': ['A', 'fbs']}
    >>> prices
    {'A': 2.1, 'chol': 5.17, 'fbs': 3.1}
    """
    if isinstance(path_or_buffer, (str, PathLike)):
        with open(path_or_buffer, newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
    else:
        rows = list(csv.DictReader(path_or_buffer))
    if not rows:
        raise ValueError("The cost table has no rows: it needs a header 'feature,cost' and a line for each feature.")
    header = [name for name in rows[0] if name is not None]
    for column in ("feature", "cost"):
        if column not in header:
            raise ValueError(f"The cost table has no column {column!r}; its columns are {shorten(header)}.")
    return _needs_and_prices([{k: (v or "").strip() for k, v in row.items() if isinstance(k, str)} for row in rows])


def _needs_and_prices(rows: list[dict[str, str]]) -> tuple[dict[str, list[str]], dict[str, float]]:
    shared: dict[str, tuple[Decimal, str]] = {}
    needs: dict[str, list[str]] = {}
    prices: dict[str, Decimal] = {}
    derived: dict[str, list[str]] = {}
    own: dict[str, Decimal] = {}
    for line, row in enumerate(rows, start=2):
        feature = row["feature"]
        if not feature:
            raise ValueError(f"Line {line} of the cost table has no feature name.")
        if feature in needs:
            raise ValueError(f"The feature {feature!r} is named twice in the cost table: keep one line.")
        cost = _number(row, "cost", feature)
        group, parts = row.get("group", ""), row.get("needs", "")
        if group.startswith(_DERIVED):
            group, parts = "", "+".join(filter(None, [parts, group.removeprefix(_DERIVED)]))
        needs[feature] = []
        if parts:
            derived[feature] = [part.strip() for part in parts.split("+")]
        if not group:
            own[feature] = cost
            continue
        if not row.get("discount_cost", ""):
            raise ValueError(
                f"{feature!r} is in group {group!r} but has no discount_cost, the price of a later test of the group. "
                "Give it: 0 where the first price buys the whole group, cost where nothing is shared."
            )
        discount = _number(row, "discount_cost", feature)
        saved = cost - discount
        if saved < 0:
            raise ValueError(f"{feature!r}: discount_cost {discount} is above cost {cost}.")
        if group in shared and shared[group][0] != saved:
            raise ValueError(
                f"Group {group!r} has no one shared price: cost - discount_cost is {shared[group][0]} for "
                f"{shared[group][1]!r} and {saved} for {feature!r}. Make them equal, or give FeatureCosts needs= and "
                "prices=."
            )
        shared.setdefault(group, (saved, feature))
        needs[feature].append(group)
        own[feature] = discount
    for group, (price, _) in shared.items():
        if group in needs:
            raise ValueError(f"{group!r} is the name of a group and of a feature: rename the group.")
        prices[group] = price
    for feature, price in own.items():
        # An own source at price 0 beside others would only be one more thing to fetch.
        if price > 0 or not (needs[feature] or feature in derived):
            needs[feature].append(feature)
            prices[feature] = price
    _add_derived(needs, derived)
    return needs, {source: float(price) for source, price in prices.items()}


def _add_derived(needs: dict[str, list[str]], derived: dict[str, list[str]]) -> None:
    """Give derived features the sources of their parts, which may be derived themselves."""
    done: set[str] = set()

    def resolve(feature: str, above: tuple[str, ...]) -> None:
        if feature in above:
            raise ValueError(f"Derived features need each other in a circle: {' -> '.join([*above, feature])}.")
        for part in () if feature in done else derived.get(feature, ()):
            if part not in needs:
                raise ValueError(f"{feature!r} is derived from {part!r}. " + unknown_name(part, list(needs), "feature"))
            resolve(part, (*above, feature))
            needs[feature].extend(source for source in needs[part] if source not in needs[feature])
        done.add(feature)

    for feature in derived:
        resolve(feature, ())


def _number(row: dict[str, str], column: str, feature: str) -> Decimal:
    try:
        value = Decimal(row[column])
    except InvalidOperation:
        raise ValueError(f"{column} of {feature!r} must be a number, got {row[column]!r}.") from None
    if not value.is_finite() or value < 0:
        raise ValueError(f"{column} of {feature!r} must be a finite number of at least 0, got {row[column]!r}.")
    return value
