"""One column read as numbers or as categories, and what is refused of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, time, timedelta
from numbers import Complex, Number, Real
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext.table._table import Index, Matrix

Unseen = Literal["error", "missing"]

_LARGEST = float(np.finfo(np.float32).max)
# Codes are exact in single precision below.
_CODES = 2**24


@dataclass(frozen=True)
class Categories:
    """A categorical column: positions among the categories that are present, -1 where missing."""

    codes: Index
    present: list[Any]


def as_numbers_or_categories(column: Any, as_categories: bool, where: str) -> NDArray[Any] | Categories:
    """Read one column as numbers or, if its type or the caller says so, as categories."""
    if type(column) is np.ndarray and column.dtype.kind in "biuf" and column.ndim == 1 and not as_categories:
        return column
    kind = str(getattr(column, "dtype", getattr(column, "type", "")))
    if hasattr(column, "cat") and hasattr(column.cat, "codes"):  # pandas: no value is looked at
        return Categories(np.asarray(column.cat.codes, dtype=np.intp), column.cat.categories.to_list())
    if kind.startswith("Enum"):  # polars
        codes = column.to_physical().cast(int).fill_null(-1).to_numpy()
        return Categories(codes.astype(np.intp), column.dtype.categories.to_list())
    values = _as_array(column, kind, where)
    check_kind(values.dtype.kind, where)
    read = _read_objects(values, where) if values.dtype.kind == "O" else values
    as_categories = as_categories or values.dtype.kind in "US" or kind.startswith(("Categorical", "dictionary<"))
    return _categories(read) if as_categories and isinstance(read, np.ndarray) else read


def _as_array(column: Any, kind: str, where: str) -> NDArray[Any]:
    if isinstance(column, np.ndarray):
        values = column
    elif hasattr(column, "to_pylist"):  # pyarrow
        named = kind.startswith("dictionary<")
        values = np.array(column.to_pylist(), dtype=object) if named else column.to_numpy(zero_copy_only=False)
    else:
        of_type = getattr(column.dtype, "kind", "")  # of pandas
        check_kind(of_type, where)
        nullable = of_type in tuple("biuf") and not isinstance(column.dtype, np.dtype)
        values = column.to_numpy(dtype=np.float64, na_value=np.nan) if nullable else column.to_numpy()
    if values.ndim != 1:
        raise TypeError(f"{where} holds several values in each row: argument must be a string or a number.")
    return values.astype(object) if values.dtype.kind in "TV" else values


def check_kind(kind: str, where: str) -> None:
    if kind in ("m", "M"):
        raise ValueError(
            f"{where} holds dates or durations. Turn them into numbers, such as days since a date of your choice, or "
            "drop it."
        )
    if kind == "c":
        raise ValueError(f"{where} holds complex numbers. Complex data not supported: take real and imaginary parts.")


def _categories(values: NDArray[Any]) -> Categories:
    codes = np.full(values.size, -1, dtype=np.intp)
    there = ~np.isnan(values) if values.dtype.kind == "f" else np.ones(values.size, dtype=bool)
    present, codes[there] = np.unique(values[there], return_inverse=True)
    if values.dtype.kind == "f" and (present == np.floor(present)).all():
        # Whole numbers beside a missing value have become floats: they are the categories that they were.
        return Categories(codes, [int(value) for value in present])
    return Categories(codes, present.tolist())


_EMPTY = ("NoneType", "NAType", "NaTType")


def _read_objects(values: NDArray[Any], where: str) -> NDArray[np.float64] | Categories:
    entries = values.tolist()
    kinds = {kind for kind in set(map(type, entries)) if kind.__name__ not in _EMPTY}
    for kind in sorted(kinds, key=lambda kind: kind.__name__):
        if issubclass(kind, (date, time, timedelta, np.datetime64, np.timedelta64)):
            check_kind("M", where)
        elif issubclass(kind, Complex) and not issubclass(kind, Real):
            check_kind("c", where)
        elif not issubclass(kind, (str, bytes, Number, np.bool_)):
            raise TypeError(
                f"{where} holds objects of type {kind.__name__}: argument must be a string or a number. Turn them into "
                "columns of numbers or text, or drop it."
            )
    entries = [None if type(entry).__name__ in _EMPTY or entry != entry else entry for entry in entries]
    if not any(issubclass(kind, (str, bytes)) for kind in kinds):
        try:
            return np.array([np.nan if entry is None else entry for entry in entries], np.float64)
        except OverflowError as error:  # an integer of more than 308 digits
            raise ValueError(_too_large(where, np.inf)) from error
    present = set(entries) - {None}
    # Text is what values of different types have in common, and it sorts.
    order = sorted(present) if len(kinds) == 1 else sorted(present, key=lambda entry: (str(entry), str(type(entry))))
    place = {entry: code for code, entry in enumerate(order)} | {None: -1}
    return Categories(np.array([place[entry] for entry in entries], dtype=np.intp), order)


def known_codes(read: Categories, known: tuple[Any, ...] | None, unseen: Unseen, where: str) -> NDArray[np.float64]:
    """Return codes of the categories of a schema, which is None where that has numbers."""
    if known is None:
        raise ValueError(
            f"{where} holds text or categories, but it held numbers when the model was trained. Turn it into numbers, "
            "or into the codes that the model was trained on."
        )
    code_of = {category: float(code) for code, category in enumerate(known)}
    here = [read.present[code] for code in np.unique(read.codes[read.codes >= 0]).tolist()]
    if here and any(map(_is_text, known)) and not any(map(_is_text, here)):
        raise ValueError(
            f"{where} is categorical, and numbers came. Pass its categories by name, such as {known[0]!r}: codes that "
            "were counted elsewhere may have another order."
        )
    if here and known and all(map(_is_text, here)) and not any(map(_is_text, known)):
        raise ValueError(
            f"{where} holds text, but its categories are numbers, such as {known[0]!r}: none would be known. Turn them "
            "into numbers, as they were when the model was trained."
        )
    _check_unseen([category for category in here if category not in code_of], unseen, where)
    table = np.array([code_of.get(category, np.nan) for category in read.present] + [np.nan])
    return np.asarray(table[read.codes])


def _is_text(category: Any) -> bool:
    return isinstance(category, str | bytes)


def _check_unseen(strange: list[Any], unseen: Unseen, where: str) -> None:
    if strange and unseen == "error":
        raise ValueError(
            f"{where} has categories that the model never saw, and XGBoost does not support them: {strange[:5]}. "
            "Make them missing (NaN), or give the column a type that lists all categories (pandas CategoricalDtype, "
            "polars Enum) before fit."
        )


def check_codes(values: Matrix, j: int, known: tuple[Any, ...] | None, unseen: Unseen, where: str) -> Matrix:
    """Refuse a categorical column of an array that does not hold codes."""
    codes = values[:, j]
    there = codes[~np.isnan(codes)]
    if (there < 0).any() or (there != np.floor(there)).any() or (there >= _CODES).any():
        raise ValueError(
            f"{where} is categorical and must hold codes 0, 1, 2, ... (NaN where missing). Encode it, or pass a "
            "frame with a categorical column."
        )
    if known is not None and (there >= len(known)).any():
        _check_unseen(np.unique(there[there >= len(known)]).tolist(), unseen, where)
        values = values.copy()
        values[codes >= len(known), j] = np.nan
    return values


def check_numbers(values: Matrix, where: Callable[[int], str]) -> None:
    """Refuse infinite and too large numbers, and name their column."""
    if _largest(values) > _LARGEST:
        columns = sp.csc_array(values) if sp.issparse(values) else values
        for j in range(columns.shape[1]):
            check_magnitude(columns[:, [j]], where(j))


def _largest(values: Matrix) -> float:
    numbers = values.data if sp.issparse(values) else values
    # fmax and fmin pass over NaN.
    return float(max(np.fmax.reduce(numbers, axis=None, initial=0.0), -np.fmin.reduce(numbers, axis=None, initial=0.0)))


def _too_large(what: str, largest: float) -> str:
    return (
        f"{what} holds numbers as large as {largest:.3g}; boosters compute in single precision, up to {_LARGEST:.2g}. "
        "Scale them, or make them missing."
    )


def check_magnitude(values: Any, what: str) -> None:
    """Refuse numbers that single precision, in which boosters compute, takes for infinite.

    Examples
    --------
    >>> check_magnitude(np.array([1.0, np.nan, 1e300]), "X")
    Traceback (most recent call last):
    ...
    ValueError: X holds numbers as large as 1e+300; boosters compute in single precision, up to 3.4e+38. ...
    """
    largest = _largest(values)
    if np.isinf(largest):
        raise ValueError(
            f"{what} holds infinite values: infinity is no number. Replace it by NaN (missing) or by a finite one."
        )
    if largest > _LARGEST:
        raise ValueError(_too_large(what, largest))


def read_column(
    values: Any, label: str, categories: tuple[Any, ...] | None = None, unseen: Unseen = "missing"
) -> NDArray[np.float64]:
    """Read one column as :func:`read_table` does with the columns of a frame.

    Parameters
    ----------
    values : array-like of shape (N,)
        Of numpy, pandas, polars or pyarrow, or a list.
    label : str
        For messages.
    categories : tuple or None, default=None
        Categories that the column had in training. Values are categories then, never codes.
    unseen : {"error", "missing"}, default="missing"
        What to do with other categories.

    Returns
    -------
    ndarray of shape (N,)
        Numbers, or codes; NaN where missing.

    Raises
    ------
    ValueError
        If the column held text and numbers come, which may be codes of another order.

    Examples
    --------
    >>> read_column(["red", None, "blue"], "Column 'color'", ("blue", "red")).tolist()
    [1.0, nan, 0.0]
    >>> read_column([30, 10], "Column 'district'", (10, 20, 30)).tolist()
    [2.0, 0.0]
    """
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{label} is masked, and masks are not read. Use .filled(np.nan): NaN is a missing value.")
    if not (hasattr(values, "to_numpy") or hasattr(values, "to_pylist")):
        array = np.asarray(values)
        values = np.asarray(values, dtype=object) if array.dtype.kind in "US" else array
    read = as_numbers_or_categories(values, categories is not None, label)
    if isinstance(read, Categories):
        return known_codes(read, categories, unseen, label)
    numbers = read.astype(np.float64)
    check_magnitude(numbers, label)
    return numbers
