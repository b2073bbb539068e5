"""Names, prices and needs as users give them, as objects or as a CSV table: read and checked."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from os import PathLike
from typing import Any, TextIO, TypeAlias

import numpy as np

from grbb_ext._options import finite_number, is_number
from grbb_ext.costs._engine import needs_matrix

Name: TypeAlias = str | int


def check_price(value: Any, what: str) -> float:
    """Return a price as a float, or raise an error that names it.

    Examples
    --------
    >>> check_price(2, "The price of 'draw'"), check_price(np.float32(0.1), "budget")
    (2.0, 0.1)
    >>> check_price(-1, "The price of 'draw'")
    Traceback (most recent call last):
    ...
    ValueError: The price of 'draw' must be a finite number of at least 0, got -1.
    """
    number = finite_number(value, what)
    # Of single precision the decimal number that it shows: 0.1, not 0.10000000149.
    return (float(str(value)) if isinstance(value, np.floating) else number) + 0.0  # -0.0 becomes 0.0


def check_budget(value: Any) -> float | None:
    """Return a budget as a float, and None where there is no limit, which infinity says too."""
    return None if value is None or (is_number(value) and value == np.inf) else check_price(value, "budget")


def check_names(values: Iterable[Any], what: str) -> tuple[Name, ...]:
    """Return names (text) and indices (non-negative integers) as Python objects, or refuse them; none may repeat.

    Examples
    --------
    >>> check_names(["age", "sex"], "feature")
    ('age', 'sex')
    >>> check_names(["age", "age"], "feature")
    Traceback (most recent call last):
    ...
    ValueError: The feature 'age' is named twice: name each feature once.
    """
    names: dict[Name, None] = {}
    for value in values:
        if not isinstance(value, (str, int, np.integer)) or isinstance(value, bool):
            raise TypeError(f"A {what} must be a name (str) or an index (int), got {value!r}.")
        name = str(value) if isinstance(value, str) else int(value)
        if isinstance(name, int) and name < 0:
            raise ValueError(f"A {what} must be a name or an index from 0, got {value!r}.")
        if name in names:
            raise ValueError(f"The {what} {name!r} is named twice: name each {what} once.")
        names[name] = None
    return tuple(names)


def unknown_name(name: Any, known: Sequence[Name], what: str) -> str:
    """Text for a name that is not there, with the nearest ones that are.

    Examples
    --------
    >>> print(unknown_name("chl", ["age", "chol"], "feature"))
    Unknown feature 'chl'. Did you mean 'chol'?
    """
    texts = [str(other) for other in known]
    near = difflib.get_close_matches(str(name), texts, n=1)
    hint = f"Did you mean {known[texts.index(near[0])]!r}?" if near else f"The {what}s are {shorten(known)}."
    return f"Unknown {what} {name!r}. {hint}"


def shorten(names: Iterable[Name], most: int = 6, write: Callable[[Name], str] = repr) -> str:
    """Join names for a message or a table, the first few of them.

    Examples
    --------
    >>> shorten(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    listed = list(map(write, names))
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def read_costs(costs: Any, needs: Any, prices: Any) -> dict[str, Any]:
    """Return features, sources, prices, needs and whether these are columns in order, of all forms of costs.

    Examples
    --------
    >>> read = read_costs(None, {"chol": ["draw", "chol"], "age": []}, {"draw": 2.1, "chol": 5.2})
    >>> read["features"], read["sources"], read["needs"].toarray().astype(int).tolist(), read["bound"]
    (('chol', 'age'), ('draw', 'chol'), [[1, 1], [0, 0]], False)
    """
    if (costs is None) == (needs is None and prices is None):
        raise ValueError("Pass either one price for each feature, or needs= and prices= together.")
    if costs is None and (needs is None or prices is None):
        raise ValueError("needs= and prices= go together: the sources of each feature, and their prices.")
    table = _pairs(needs, "needs") if costs is None else _pairs(costs, "Costs")
    features = check_names((key for key, _ in table), "feature")
    if costs is None and not hasattr(prices, "items"):
        raise TypeError(f"prices must be a dict from source to price, got {prices!r}.")
    priced = list(prices.items()) if costs is None else table
    sources = check_names((key for key, _ in priced), "source")
    values = [check_price(value, f"The price of {key!r}") for key, value in priced]
    needed = [[i] for i in range(len(features))] if needs is None else _read_needs(features, table, sources)
    if not features:
        raise ValueError("Costs are empty: give at least one feature.")
    if len({type(name) for name in features}) > 1:
        raise TypeError(f"Features must be all names or all indices, got both: {list(features)[:6]!r}.")
    return {
        "features": features,
        "sources": sources,
        "prices": np.array(values, dtype=np.float64),
        "needs": needs_matrix(needed, len(sources)),
        "bound": not hasattr(needs if costs is None else costs, "items"),
    }


def _pairs(table: Any, what: str) -> list[tuple[Any, Any]]:
    """Return (key, value) pairs of a mapping, a pandas Series, or a sequence (keys 0, 1, ...)."""
    if isinstance(table, Mapping) or (hasattr(table, "items") and hasattr(table, "index")):
        return list(table.items())
    if isinstance(table, (str, bytes)) or not hasattr(table, "__len__"):
        raise TypeError(f"{what} must be a dict or a sequence with one entry per column, got {table!r}.")
    if isinstance(table, np.ndarray) and table.ndim != 1:
        raise ValueError(f"{what} must have one dimension, got shape {table.shape}.")
    return list(enumerate(table))


def _read_needs(features: tuple[Name, ...], needs: list[tuple[Any, Any]], sources: tuple[Name, ...]) -> list[list[int]]:
    """Return the positions of each feature's sources; a source without a price or a price without a use is refused."""
    position = {source: i for i, source in enumerate(sources)}
    needed: list[list[int]] = []
    for feature, (_, wanted) in zip(features, needs, strict=True):
        listed = [wanted] if isinstance(wanted, (str, int, np.integer)) else wanted
        if not isinstance(listed, Iterable):
            raise TypeError(f"needs of {feature!r} must be a list of sources, got {wanted!r}.")
        names = check_names(listed, "source")
        for name in names:
            if name not in position:
                raise ValueError(f"{feature!r} needs {name!r}, which has no price. Add it to prices=.")
        needed.append(sorted(position[name] for name in names))
    used = {i for row in needed for i in row}
    unused = [source for source, i in position.items() if i not in used]
    if unused:
        raise ValueError(f"No feature needs {shorten(unused)}. Take the price out, or correct the names in needs=.")
    return needed


_DERIVED = "derived:"


def read_csv(path_or_buffer: str | PathLike[str] | TextIO) -> tuple[dict[str, list[str]], dict[str, float]]:
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
        with open(path_or_buffer, newline="", encoding="utf-8") as file:
            return read_csv(file)
    rest = iter(path_or_buffer)
    lines = chain([next(rest, "").removeprefix("\ufeff")], rest)  # spreadsheets begin with a mark of byte order
    names = [name.strip() for name in next(csv.reader(lines), [])]
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise ValueError(f"The cost table has several columns called {twice[0]!r}. Keep one.")
    rows = list(csv.DictReader(lines, names, restval=""))
    if not rows:
        raise ValueError("The cost table has no rows: it needs a header 'feature,cost' and a line for each feature.")
    for line, row in enumerate(rows, start=2):
        if any(cell.strip() for cell in row.pop(None, ())):  # what has no column
            raise ValueError(
                f"Line {line} of the cost table has more entries than the header. Write prices with a point, as 7.27, "
                "and put text with a comma in quotes."
            )
    for column in ("feature", "cost"):
        if column not in names:
            raise ValueError(f"The cost table has no column {column!r}; its columns are {shorten(names)}.")
    return _needs_and_prices([{name: cell.strip() for name, cell in row.items()} for row in rows])


def _needs_and_prices(rows: list[dict[str, str]]) -> tuple[dict[str, list[str]], dict[str, float]]:
    needs: dict[str, list[str]] = {}
    parts: dict[str, list[str]] = {}
    own: dict[str, float] = {}
    shared: dict[str, tuple[Decimal, str]] = {}
    for line, row in enumerate(rows, start=2):
        feature = row["feature"]
        if not feature:
            raise ValueError(f"Line {line} of the cost table has no feature name.")
        if feature in needs:
            raise ValueError(f"The feature {feature!r} is named twice in the cost table: keep one line.")
        price = _number(row, "cost", feature)
        group, derived = row.get("group", ""), row.get("needs", "")
        if group.startswith(_DERIVED):
            group, derived = "", "+".join(filter(None, [derived, group.removeprefix(_DERIVED)]))
        needs[feature] = [group] if group else []
        parts[feature] = [part.strip() for part in derived.split("+")] if derived else []
        if group and not row.get("discount_cost", ""):
            raise ValueError(
                f"{feature!r} is in group {group!r} but has no discount_cost, the price of a later test of the group. "
                "Give it: 0 where the first price buys the whole group, cost where nothing is shared."
            )
        if not (group or derived) and row.get("discount_cost", "") and _number(row, "discount_cost", feature) != price:
            raise ValueError(
                f"{feature!r} has a discount_cost other than its cost, but is in no group. Name the group in a column "
                "'group', or leave discount_cost empty."
            )
        if group:
            cost, price = price, _number(row, "discount_cost", feature)
            saved = cost - price
            if saved < 0:
                raise ValueError(f"{feature!r}: discount_cost {price} is above cost {cost}.")
            before, first = shared.setdefault(group, (saved, feature))
            if before != saved:
                raise ValueError(
                    f"Group {group!r} has no one shared price: cost - discount_cost is {before} for {first!r} and "
                    f"{saved} for {feature!r}. Make them equal, or give FeatureCosts needs= and prices=."
                )
        # An own source at price 0 beside others would only be one more thing to fetch.
        if price > 0 or not (group or parts[feature]):
            needs[feature].append(feature)
            own[feature] = float(price)
    for group in shared:
        if group in needs:
            raise ValueError(f"{group!r} is the name of a group and of a feature: rename the group.")
    _add_parts(needs, parts)
    return needs, {group: float(saved) for group, (saved, _) in shared.items()} | own


def _add_parts(needs: dict[str, list[str]], parts: dict[str, list[str]]) -> None:
    """Give derived features the sources of their parts, which may be derived themselves."""
    for feature, names in parts.items():
        for part in names:
            if part not in needs:
                raise ValueError(f"{feature!r} is derived from {part!r}. " + unknown_name(part, list(needs), "feature"))
    try:
        order = list(TopologicalSorter(parts).static_order())
    except CycleError as error:
        raise ValueError(
            f"Derived features need each other in a circle: {' -> '.join(reversed(error.args[1]))}."
        ) from None
    for feature in order:
        for part in parts[feature]:
            needs[feature].extend(source for source in needs[part] if source not in needs[feature])


def _number(row: dict[str, str], column: str, feature: str) -> Decimal:
    try:
        value = Decimal(row[column])
    except InvalidOperation:
        raise ValueError(f"{column} of {feature!r} must be a number, got {row[column]!r}.") from None
    if not value.is_finite() or value < 0:
        raise ValueError(f"{column} of {feature!r} must be a finite number of at least 0, got {row[column]!r}.")
    return value
