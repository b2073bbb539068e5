"""Names, prices and needs: read, checked, added up as decimals, and put in the order of columns."""

from __future__ import annotations

import difflib
import math
import numbers
import operator
from collections.abc import Iterable, Mapping, Sequence
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp

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


def needs_matrix(needed: list[list[int]], n_sources: int) -> sp.csr_array:
    """Return the boolean matrix of features by sources.

    Examples
    --------
    >>> needs_matrix([[0, 1], [1]], 2).toarray().astype(int).tolist()
    [[1, 1], [0, 1]]
    """
    indptr = np.cumsum([0, *map(len, needed)])
    indices = np.array([s for row in needed for s in row], dtype=np.intp)
    return sp.csr_array((np.ones(indices.size, dtype=bool), indices, indptr), shape=(len(needed), n_sources))


if TYPE_CHECKING:
    from grbb_ext.costs._feature_costs import FeatureCosts


def bound_fields(costs: FeatureCosts, columns: Any) -> dict[str, Any]:
    """Return features, sources, prices and needs with one feature for each column; see :meth:`FeatureCosts.bind`."""
    if isinstance(columns, (str, bytes)):
        raise TypeError(f"columns must be a list of names or a number of columns, got {columns!r}.")
    named = isinstance(columns, Iterable)
    names = check_names(columns, "column") if named else tuple(range(operator.index(columns)))
    if costs.bound and not named and len(names) == costs.n_features:
        names = costs.features  # the columns are known, by name too
    by_position = isinstance(costs.features[0], int)
    if not by_position and names and isinstance(names[0], int):
        raise ValueError(
            f"The costs are by name ({shorten(costs.features, 3)}) but the {len(names)} columns have no names. Name "
            "the columns of the data set, or give the costs by index."
        )
    if by_position and costs.bound and len(names) != costs.n_features:
        raise ValueError(f"The costs have {costs.n_features} entries but there are {len(names)} columns.")
    keys: tuple[Name, ...] = tuple(range(len(names))) if by_position else names
    known = set(keys)
    extra = [feature for feature in costs.features if feature not in known]
    if extra:
        raise ValueError(
            f"The costs name {shorten(extra)}, but there is no such column; the {len(names)} columns are "
            f"{shorten(names)}. Correct the names, or keep part of the costs with costs.select(columns)."
        )
    missing = [i for i, key in enumerate(keys) if key not in costs._index]
    if missing and costs.default is None:
        raise ValueError(
            f"No price for {shorten(names[i] for i in missing)}. Give one (0 if it is free), or "
            "FeatureCosts(default=...) for all such columns."
        )
    taken = set(costs.sources)
    for i in missing:
        if keys[i] in taken:
            raise ValueError(f"The column {names[i]!r} has no price, and a source has its name. Say what it needs.")
    n_old, n_new = len(costs.sources), len(costs.sources) + len(missing)
    own = dict(zip(missing, range(n_old, n_new), strict=True))
    needed = [[own[i]] if i in own else costs._row(costs._index[key]).tolist() for i, key in enumerate(keys)]
    prices = np.concatenate([costs.prices, np.full(len(missing), costs.default or 0.0)])
    return {
        "features": names,
        "sources": (*costs.sources, *(keys[i] for i in missing)),
        "prices": prices,
        "needs": needs_matrix(needed, n_new),
    }
