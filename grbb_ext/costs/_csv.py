"""Read a cost table: one line for each feature, tests of a group sharing part of their price."""

from __future__ import annotations

import csv
from decimal import Decimal, InvalidOperation
from os import PathLike
from typing import TextIO

from grbb_ext.costs._prices import shorten, unknown_name

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
