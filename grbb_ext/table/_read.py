"""Frames, arrays and sparse matrices, read into a table."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext.table._table import Schema, Table

Unseen = Literal["error", "missing"]


def is_frame(X: Any) -> bool:
    """Tell whether X is a frame of pandas or polars.

    Examples
    --------
    >>> is_frame(np.zeros((2, 2)))
    False
    """
    if hasattr(X, "collect_schema") and hasattr(X, "collect") and not hasattr(X, "get_columns"):
        raise TypeError("X is a LazyFrame, whose rows are not there yet. Pass X.collect().")
    return hasattr(X, "columns") and (hasattr(X, "iloc") or hasattr(X, "get_columns"))


def read_frame(X: Any, categorical: Sequence[int], schema: Schema | None = None, unseen: Unseen = "error") -> Table:
    """Turn a frame into numbers; categorical columns become codes.

    Columns of a categorical type (pandas ``category``, polars ``Categorical`` and ``Enum``) are categorical, and so are
    the columns that are named. Their codes count the categories of the type in its order, where the type has them
    (pandas, ``Enum``), else the sorted values of the column. Booleans and nullable numbers become floats, missing
    values NaN.

    Parameters
    ----------
    X : pandas.DataFrame or polars.DataFrame
        Rows.
    categorical : sequence of int
        Further columns to treat as categorical.
    schema : Schema or None, default=None
        Of the data set that a model was trained on: its categories keep their codes.
    unseen : {"error", "missing"}, default="error"
        What to do with a category that the schema does not know.

    Returns
    -------
    Table
        float64.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"size": [1, None], "color": pd.Categorical(["red", "blue"])})
    >>> table = read_frame(frame, [])
    >>> table.values.tolist(), dict(table.schema.categories)
    ([[1.0, 1.0], [nan, 0.0]], {1: ('blue', 'red')})
    """
    names = [str(name) for name in X.columns]
    columns = X.get_columns() if hasattr(X, "get_columns") else [X.iloc[:, j] for j in range(X.shape[1])]
    values = np.empty((int(X.shape[0]), len(columns)), order="F")
    categories: dict[int, tuple[Any, ...]] = {}
    for j, column in enumerate(columns):
        known = None if schema is None else schema.categories.get(j)
        if schema is None and (is_categorical(column) or j in categorical):
            known = _categories(column)
        if known is None:
            values[:, j] = _numbers(column, names[j])
        else:
            categories[j] = known
            values[:, j] = _codes(column, known, names[j], unseen)
    found = Schema(tuple(sorted(categories)), categories) if schema is None else schema
    return Table(np.ascontiguousarray(values), found)


def is_categorical(column: Any) -> bool:
    """Tell whether a column has a categorical type."""
    return hasattr(column.dtype, "categories") or str(column.dtype).startswith(("Categorical", "Enum"))


def _categories(column: Any) -> tuple[Any, ...]:
    of_type = getattr(column.dtype, "categories", None)
    listed = None
    if of_type is not None and not str(column.dtype).startswith("Categorical"):
        # A polars Categorical may share its categories with other columns: those in use are counted instead.
        listed = of_type.to_list() if hasattr(of_type, "to_list") else list(of_type)
    if listed is None:
        listed = sorted({value for value in column.to_list() if not _is_missing(value)})
    if not listed:
        raise ValueError(f"Column {column.name!r} of X is categorical and has no category. Drop it.")
    return tuple(listed)


def _is_missing(value: Any) -> bool:
    # Only a value that is not a number, or pandas' NA, is neither equal nor unequal to itself in the plain way.
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def _codes(column: Any, known: tuple[Any, ...], name: str, unseen: Unseen) -> NDArray[np.float64]:
    code_of = {category: float(code) for code, category in enumerate(known)}
    if hasattr(column, "cat") and hasattr(column.cat, "codes"):  # pandas: one look-up for each category
        present = list(column.cat.categories)
        codes = np.asarray(column.cat.codes)
    else:
        values = column.to_list()
        present = list(dict.fromkeys(value for value in values if not _is_missing(value)))
        position = {value: i for i, value in enumerate(present)}
        codes = np.array([-1 if _is_missing(value) else position[value] for value in values], dtype=np.intp)
    table = np.array([code_of.get(category, np.nan) for category in present] + [np.nan])
    in_use = np.unique(codes[codes >= 0])
    strangers = [present[i] for i in in_use if present[i] not in code_of]
    if strangers and unseen == "error":
        raise ValueError(
            f"Column {name!r} of X has categories that the model never saw, and XGBoost knows no way for them: "
            f"{strangers[:5]}. Make them missing (NaN), or give the column a type that lists all categories (pandas "
            "CategoricalDtype, polars Enum) before fit."
        )
    return np.asarray(table[codes])


def _numbers(column: Any, name: str) -> NDArray[np.float64]:
    kind = str(column.dtype)
    try:
        if hasattr(column, "null_count"):  # polars
            plain = column.null_count() == 0
            values = column.to_numpy() if plain else np.array(column.to_list(), dtype=np.float64)
        else:
            values = column.to_numpy()
            if values.dtype.kind == "O":
                values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        if values.dtype.kind not in "biuf":
            raise TypeError(f"its type is {kind}")
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Column {name!r} of X is not numeric ({error}). Make it categorical (pandas: X.astype({{{name!r}: "
            "'category'}), polars: cast to Categorical or Enum), turn it into numbers, or drop it."
        ) from error


_LARGEST = float(np.finfo(np.float32).max)


def check_container(X: Any) -> None:
    """Refuse rows whose values numpy would turn into numbers without a word.

    Examples
    --------
    >>> check_container(np.array([["2026-01-01"]], dtype="datetime64[D]"))
    Traceback (most recent call last):
    ...
    ValueError: X holds dates or durations. Turn them into numbers, such as days since a date of your choice.
    """
    if isinstance(X, np.ma.MaskedArray):
        raise TypeError("X is a masked array, and masks are not read. Pass X.filled(np.nan): NaN is a missing value.")
    if is_frame(X):
        names = [str(name) for name in X.columns]
        twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
        if twice:
            raise ValueError(f"X has several columns called {twice[0]!r}. Give each column a name of its own.")
    elif getattr(getattr(X, "dtype", None), "kind", None) in ("m", "M"):
        raise ValueError(
            "X holds dates or durations. Turn them into numbers, such as days since a date of your choice."
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
    numbers = values.data if sp.issparse(values) else values
    # fmax and fmin pass over NaN.
    largest = max(np.fmax.reduce(numbers, axis=None, initial=0.0), -np.fmin.reduce(numbers, axis=None, initial=0.0))
    if largest > _LARGEST:
        raise ValueError(
            f"{what} holds numbers as large as {largest:.3g}; boosters compute in single precision, up to "
            f"{_LARGEST:.2g}. Scale them, or make them missing."
        )


def column_positions(listed: Any, names: Sequence[str] | None, n_columns: int) -> set[int]:
    """Return the positions of columns that are listed by name, by position or by a truth value for each.

    Examples
    --------
    >>> sorted(column_positions(["b", 0], ["a", "b"], 2)), sorted(column_positions([True, False], None, 2))
    ([0, 1], [0])
    """
    if isinstance(listed, (str, bytes)) or np.ndim(listed) != 1:
        raise TypeError(f"categorical_features must be 'from_dtype' or a list of columns, got {listed!r}.")
    entries = list(listed)
    if entries and all(isinstance(entry, (bool, np.bool_)) for entry in entries):
        if len(entries) != n_columns:
            raise ValueError(
                f"categorical_features has {len(entries)} truth values, but X has {n_columns} columns. Give one for "
                "each, or list the columns."
            )
        return set(np.flatnonzero(entries).tolist())
    positions = set()
    for entry in entries:
        if isinstance(entry, str):
            known = names is not None and entry in names
        else:
            known = isinstance(entry, Integral) and 0 <= int(entry) < n_columns
        if not known:
            raise ValueError(f"categorical_features names column {entry!r}, but X has no such column.")
        positions.add(names.index(entry) if names is not None and isinstance(entry, str) else int(entry))
    return positions
