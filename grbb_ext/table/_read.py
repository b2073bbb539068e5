"""Containers of rows read into a table, column by column; the only reader of frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext.table._columns import (
    Unseen,
    as_numbers_or_categories,
    check_codes,
    check_kind,
    check_numbers,
    known_codes,
)
from grbb_ext.table._table import NO_SPARSE_CATEGORIES, Matrix, Schema, Table


def read_table(
    X: Any,
    *,
    categorical: Any = "from_dtype",
    schema: Schema | None = None,
    unseen: Unseen = "missing",
    missing: float | None = None,
    name: str = "X",
    min_rows: int = 1,
) -> Table:
    """Read rows of any container as numbers and category codes.

    Columns of text and of categorical types (pandas ``category``, polars ``Categorical`` and ``Enum``, Arrow
    dictionaries) are categorical. Their codes count the categories of the type in its order, where the type lists them
    (pandas, ``Enum``), else the sorted values of the column. Booleans, nullable numbers and objects that are all
    numbers become floats, missing values NaN.

    Parameters
    ----------
    X : array-like, sparse matrix, frame of pandas, polars or pyarrow, or Table
        Rows. A Table is returned as it is.
    categorical : "from_dtype" or sequence, default="from_dtype"
        Further categorical columns, by name, by position or by a truth value for each. Such a column of an array must
        hold codes 0, 1, ...
    schema : Schema or None, default=None
        Of the data set that a model was trained on: its categories keep their codes, and X must have its columns.
        Numeric arrays hold the codes themselves.
    unseen : {"error", "missing"}, default="missing"
        What to do with a category that the schema does not have.
    missing : float or None, default=None
        A number that stands for a missing value, beside NaN; None is that of the schema, if there is one.
    name : str, default="X"
        For messages.
    min_rows : int, default=1
        Fewer rows are refused.

    Returns
    -------
    Table
        float64; float32 for arrays and sparse matrices of this type.

    Raises
    ------
    TypeError
        If X is a masked array or a LazyFrame, or a column holds objects that are neither numbers nor text.
    ValueError
        If a column holds dates, durations, complex or infinite numbers, numbers beyond single precision, categories
        where numbers belong, or, in a frame, numbers where text belongs; if names are repeated, or columns are not
        those of the schema.

    Examples
    --------
    >>> import pandas as pd
    >>> table = read_table(pd.DataFrame({"size": [1, None], "color": ["red", "blue"]}))
    >>> table.values.tolist(), dict(table.schema.categories)
    ([[1.0, 1.0], [nan, 0.0]], {1: ('blue', 'red')})
    >>> read_table([[0.5, "blue"], [1.5, "green"]], schema=table.schema).values.tolist()
    [[0.5, 0.0], [1.5, nan]]
    >>> read_table(pd.DataFrame({"when": pd.to_datetime(["2026-01-01"])}))
    Traceback (most recent call last):
    ...
    ValueError: Column 'when' of X holds dates or durations. Turn them into numbers, such as days since ..., or drop it.
    """
    if isinstance(X, Table):
        return X
    source = _open(X, name)
    _check_size(source, name, min_rows)
    if schema is not None:
        _check_columns(source, schema, name)
    listed = _listed(categorical, source) if schema is None else set()

    def where(j: int) -> str:
        return f"Column {source.labels[j] if source.labels else j} of {name}"

    categories: dict[int, tuple[Any, ...]] = {}
    if source.matrix is None:
        values, categories = _read_columns(source, listed, schema, unseen, where)
    else:
        check_kind(source.matrix.dtype.kind, where(0))
        values = source.matrix if source.matrix.dtype in (np.float32, np.float64) else source.matrix.astype(np.float64)
    found = schema or Schema(tuple(sorted(listed | set(categories))), categories, source.names, source.shape[1])
    if missing is not None:
        found = replace(found, missing=missing)
    if not np.isnan(found.missing):
        values = values.copy()
        numbers: Any = values.data if sp.issparse(values) else values
        numbers[numbers == found.missing] = np.nan
    check_numbers(values, where)
    if found.categorical and sp.issparse(values):
        raise ValueError(NO_SPARSE_CATEGORIES)
    for j in found.categorical if source.matrix is not None else set(found.categorical) - set(found.categories):
        values = check_codes(values, j, found.categories.get(j), unseen, where(j))
    return Table(values, found)


@dataclass(frozen=True)
class _Source:
    """An opened container: a matrix of numbers, or its columns one by one."""

    shape: tuple[int, int]
    matrix: Matrix | None = None
    columns: Sequence[Any] = ()
    labels: Sequence[str] = ()
    names: tuple[str, ...] | None = None


def _open(X: Any, name: str) -> _Source:
    if isinstance(X, np.ma.MaskedArray):
        raise TypeError(
            f"{name} is a masked array, and masks are not read. Pass {name}.filled(np.nan): NaN is a missing value."
        )
    if is_frame(X, name):
        given = list(X.column_names) if hasattr(X, "column_names") else list(X.columns)
        names = [str(given_name) for given_name in given]
        if len(set(names)) < len(names):
            twice = min(n for n in names if names.count(n) > 1)
            raise ValueError(f"{name} has several columns called {twice!r}. Give each column a name of its own.")
        if hasattr(X, "iloc"):
            columns: Sequence[Any] = [X.iloc[:, j] for j in range(len(names))]
        else:
            columns = X.get_columns() if hasattr(X, "get_columns") else X.columns
        all_text = all(isinstance(given_name, str) for given_name in given)
        labels = [repr(given_name) for given_name in given]
        return _Source((int(X.shape[0]), len(names)), None, columns, labels, tuple(names) if all_text else None)
    if sp.issparse(X):
        if X.ndim != 2:
            raise ValueError(_not_flat(name, X.shape))
        matrix = sp.csr_array(X)
        if not matrix.has_canonical_format:  # entries of one place add up, in a copy: X is the caller's
            matrix = matrix.copy()
            matrix.sum_duplicates()
        return _Source(X.shape, matrix)
    if isinstance(X, np.matrix):
        raise TypeError(f"{name} is an np.matrix, whose products are not those of arrays. Pass np.asarray({name}).")
    if isinstance(X, (str, bytes, dict)) or hasattr(X, "__next__"):
        raise (ValueError if isinstance(X, str) else TypeError)(
            f"{name} must be an array, a sparse matrix or a frame: could not convert {type(X).__name__}."
        )
    try:
        array = np.asarray(X)
        if array.dtype.kind in "USO" and not isinstance(X, np.ndarray):
            array = np.asarray(X, dtype=object)  # numpy makes text of all columns where one of them is
    except ValueError as error:
        raise ValueError(f"{name} must have rows of the same length ({error}).") from error
    if array.ndim != 2:
        raise ValueError(_not_flat(name, array.shape, hasattr(X, "to_frame")))
    if array.dtype.kind in "biufcmM":
        return _Source(array.shape, array)
    return _Source(array.shape, None, list(array.T))


def _not_flat(name: str, shape: tuple[int, ...], is_series: bool = False) -> str:
    found = f"Expected 2D array: {name} must be two-dimensional (rows x columns), got shape {shape} (dim {len(shape)})."
    if is_series:
        return f"{found} Pass a DataFrame, such as {name}.to_frame()."
    if len(shape) > 1:
        return f"{found} Reshape your data, such as {name}.reshape({shape[0]}, -1)."
    return (
        f"{found} Reshape your data: {name}.reshape(-1, 1) if it is one column, {name}.reshape(1, -1) if it is one row."
    )


def is_frame(X: Any, name: str = "X") -> bool:
    """Tell whether X is a frame of pandas, polars or pyarrow.

    Examples
    --------
    >>> is_frame(np.zeros((2, 2)))
    False
    """
    if hasattr(X, "collect_schema") and hasattr(X, "collect") and not hasattr(X, "get_columns"):
        raise TypeError(f"{name} is a LazyFrame, whose rows are not there yet. Pass {name}.collect().")
    return hasattr(X, "columns") and any(hasattr(X, mark) for mark in ("iloc", "get_columns", "column_names"))


def _check_size(source: _Source, name: str, min_rows: int) -> None:
    n_rows, n_columns = source.shape
    if n_rows < min_rows:
        raise ValueError(
            f"Found array with {n_rows} sample(s) (shape={source.shape}) while a minimum of {min_rows} is required: "
            f"{name} has too few rows."
        )
    if n_columns == 0:
        raise ValueError(
            f"Found array with 0 feature(s) (shape={source.shape}) while a minimum of 1 is required: {name} has no "
            "columns."
        )


def _check_columns(source: _Source, schema: Schema, name: str) -> None:
    """Refuse other columns than those of the schema, in scikit-learn's words."""
    if source.names is not None and schema.names is not None and source.names != schema.names:
        lines = ["The feature names should match those that were passed during fit."]
        for heading, these in (
            ("Feature names unseen at fit time:", set(source.names) - set(schema.names)),
            ("Feature names seen at fit time, yet now missing:", set(schema.names) - set(source.names)),
        ):
            if these:
                lines += [heading, *(f"- {these_name}" for these_name in sorted(these)[:5])]
        if len(lines) == 1:
            lines += [
                "Feature names must be in the same order as they were in fit.",
                f"The columns of {name} are in another order: pass {name}[{list(schema.names[:4])}...].",
            ]
        raise ValueError("\n".join(lines) + "\n")
    expected = schema.n_columns if schema.names is None else len(schema.names)
    if expected is not None and source.shape[1] != expected:
        raise ValueError(
            f"{name} has {source.shape[1]} features, but model is expecting {expected} features as input: pass the "
            f"{expected} columns of the model."
        )


def _listed(categorical: Any, source: _Source) -> set[int]:
    """Return the positions of columns that are listed by name, by position or by a truth value for each.

    Examples
    --------
    >>> source = _Source((3, 2), labels=["'a'", "'b'"], names=("a", "b"))
    >>> sorted(_listed(["b", 0], source)), sorted(_listed([True, False], source))
    ([0, 1], [0])
    """
    if categorical is None or (isinstance(categorical, str) and categorical == "from_dtype"):
        return set()
    if isinstance(categorical, (str, bytes)) or np.ndim(categorical) != 1:
        raise (ValueError if isinstance(categorical, str) else TypeError)(
            f"categorical_features must be 'from_dtype' or a list of columns, got {categorical!r}. Put it in a list."
        )
    entries, n_columns = list(categorical), source.shape[1]
    if entries and all(isinstance(entry, (bool, np.bool_)) for entry in entries):
        if len(entries) != n_columns:
            raise ValueError(
                f"categorical_features has {len(entries)} truth values, but X has {n_columns} columns. Give one for "
                "each, or list the columns."
            )
        return set(np.flatnonzero(entries).tolist())
    names = source.names or [label.strip("'\"") for label in source.labels]
    place: dict[Any, int] = {name: j for j, name in enumerate(names)} | {j: j for j in range(n_columns)}
    for entry in entries:
        if not isinstance(entry, (str, Integral)) or entry not in place:
            raise ValueError(f"categorical_features names column {entry!r}, but X has no such column.")
    return {place[entry] for entry in entries}


def _read_columns(
    source: _Source, listed: set[int], schema: Schema | None, unseen: Unseen, where: Callable[[int], str]
) -> tuple[NDArray[np.float64], dict[int, tuple[Any, ...]]]:
    values = np.empty(source.shape, order="F")
    categories: dict[int, tuple[Any, ...]] = {}
    for j, column in enumerate(source.columns):
        known = None if schema is None else schema.categories.get(j)
        read = as_numbers_or_categories(column, known is not None or (bool(source.labels) and j in listed), where(j))
        if isinstance(read, np.ndarray):
            values[:, j] = read
            continue
        if schema is None:
            known = categories[j] = tuple(read.present)
            if not known:
                raise ValueError(f"{where(j)} is categorical and has no category. Drop it.")
        values[:, j] = known_codes(read, known, unseen, where(j))
    return np.ascontiguousarray(values), categories


def listed_categories(X: Any) -> dict[int, tuple[Any, ...]]:
    """Return the categories of the columns of a frame whose type lists them (pandas category, polars Enum).

    Examples
    --------
    >>> import pandas as pd
    >>> listed_categories(pd.DataFrame({"a": pd.Categorical(["x", "y"]), "b": [1.0, 2.0]}))
    {0: ('x', 'y')}
    """
    columns = _open(X, "X").columns if is_frame(X) else ()
    types = {j: column.dtype for j, column in enumerate(columns) if hasattr(column, "dtype")}
    return {
        j: tuple(kind.categories.to_list())
        for j, kind in types.items()
        if getattr(kind, "categories", None) is not None and not str(kind).startswith("Categorical")
    }


def column_names(X: Any, name: str = "X") -> tuple[str, ...] | None:
    """Return the names of the columns of a frame, if they are all text; else None. Repeated ones are refused.

    Examples
    --------
    >>> import pandas as pd
    >>> column_names(pd.DataFrame({"a": [1.0]})), column_names([[1.0]])
    (('a',), None)
    """
    return _open(X, name).names if is_frame(X, name) else None
