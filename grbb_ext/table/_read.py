"""Containers of rows read into a table, column by column; the only reader of frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, time, timedelta
from numbers import Complex, Integral, Number, Real
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext.table._table import NO_SPARSE_CATEGORIES, Index, Matrix, Schema, Table

Unseen = Literal["error", "missing"]

_LARGEST = float(np.finfo(np.float32).max)
# Codes are exact in single precision below.
_CODES = 2**24


def read_table(
    X: Any,
    *,
    categorical: Any = "from_dtype",
    schema: Schema | None = None,
    unseen: Unseen = "missing",
    missing: float = np.nan,
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
    missing : float, default=nan
        A number that stands for a missing value, besides NaN.
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
        If a column holds dates, durations, complex or infinite numbers, numbers beyond single precision, or categories
        where numbers belong; if names are repeated, or columns are not those of the schema.

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

    if source.matrix is None:
        values, found = _read_columns(source, listed, schema, unseen, where)
    else:
        values = _floats(source.matrix, where)
        found = schema or Schema(tuple(sorted(listed)), {}, None, values.shape[1])
    if not np.isnan(missing):
        values = values.copy()
        numbers: Any = values.data if sp.issparse(values) else values
        numbers[numbers == missing] = np.nan
    _check_numbers(values, where)
    if found.categorical and sp.issparse(values):
        raise ValueError(NO_SPARSE_CATEGORIES)
    for j in found.categorical if source.matrix is not None else set(found.categorical) - set(found.categories):
        values = _check_codes(values, j, found.categories.get(j), unseen, where(j))
    return Table(values, found)


@dataclass(frozen=True)
class _Source:
    """An opened container: a matrix of numbers, or its columns one by one."""

    shape: tuple[int, int]
    matrix: Matrix | None = None
    columns: Sequence[Any] = ()
    labels: Sequence[str] = ()
    names: tuple[str, ...] | None = None

    @property
    def is_frame(self) -> bool:
        return bool(self.labels)


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
        return _Source(X.shape, sp.csr_array(X))
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
    if isinstance(categorical, str) and categorical == "from_dtype":
        return set()
    names = [label.strip("'\"") for label in source.labels] if source.names is None else list(source.names)
    return column_positions([] if categorical is None else categorical, names or None, source.shape[1])


def column_positions(listed: Any, names: Sequence[str] | None, n_columns: int) -> set[int]:
    """Return the positions of columns that are listed by name, by position or by a truth value for each.

    Examples
    --------
    >>> sorted(column_positions(["b", 0], ["a", "b"], 2)), sorted(column_positions([True, False], None, 2))
    ([0, 1], [0])
    """
    if isinstance(listed, (str, bytes)) or np.ndim(listed) != 1:
        raise (ValueError if isinstance(listed, str) else TypeError)(
            f"categorical_features must be 'from_dtype' or a list of columns, got {listed!r}. Put it in a list."
        )
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


def _floats(matrix: Matrix, where: Callable[[int], str]) -> Matrix:
    if matrix.dtype in (np.float32, np.float64):
        return matrix
    _check_kind(matrix.dtype.kind, where(0))
    return matrix.astype(np.float64)


def _read_columns(
    source: _Source, listed: set[int], schema: Schema | None, unseen: Unseen, where: Callable[[int], str]
) -> tuple[NDArray[np.float64], Schema]:
    values = np.empty(source.shape, order="F")
    categories: dict[int, tuple[Any, ...]] = {}
    for j, column in enumerate(source.columns):
        known = None if schema is None else schema.categories.get(j)
        read = _read_column(column, known is not None or (source.is_frame and j in listed), where(j))
        if isinstance(read, np.ndarray):
            values[:, j] = read
            continue
        if known is None and schema is not None:
            raise ValueError(_held_numbers(where(j)))
        if known is None and not read.present:
            raise ValueError(f"{where(j)} is categorical and has no category. Drop it.")
        categories[j] = tuple(read.present) if known is None else known
        values[:, j] = _known_codes(read, categories[j], unseen, where(j))
    positions = tuple(sorted(set(categories) | listed))
    found = schema or Schema(positions, categories, source.names, source.shape[1])
    return np.ascontiguousarray(values), found


@dataclass(frozen=True)
class _Categories:
    """A categorical column: positions among the categories that are present, -1 where missing."""

    codes: Index
    present: list[Any]


def _read_column(column: Any, as_categories: bool, where: str) -> NDArray[Any] | _Categories:
    """Read one column as numbers or, if its type or the caller says so, as categories."""
    kind = str(getattr(column, "dtype", getattr(column, "type", "")))
    if hasattr(column, "cat") and hasattr(column.cat, "codes"):  # pandas: no value is looked at
        return _Categories(np.asarray(column.cat.codes, dtype=np.intp), column.cat.categories.to_list())
    as_categories = as_categories or kind.startswith(("Categorical", "Enum", "dictionary<"))
    values = _as_array(column, kind, where)
    read = _read_objects(values, where) if values.dtype.kind == "O" else _read_plain(values, where)
    if isinstance(read, np.ndarray) and as_categories:
        read = _read_plain_categories(read)
    if kind.startswith("Enum") and isinstance(read, _Categories):
        listed = column.dtype.categories.to_list()
        place = {category: code for code, category in enumerate(listed)}
        codes = np.array([place[category] for category in read.present] + [-1], dtype=np.intp)
        return _Categories(codes[read.codes], listed)
    return read


def _as_array(column: Any, kind: str, where: str) -> NDArray[Any]:
    if isinstance(column, np.ndarray):
        values = column
    elif hasattr(column, "to_pylist"):  # pyarrow
        if kind.startswith("dictionary<"):
            values = np.fromiter(column.to_pylist(), dtype=object, count=len(column))
        else:
            values = column.to_numpy(zero_copy_only=False)
    else:
        of_type = getattr(column.dtype, "kind", "")  # of pandas
        _check_kind(of_type, where)
        nullable = of_type in tuple("biuf") and not isinstance(column.dtype, np.dtype)
        values = column.to_numpy(dtype=np.float64, na_value=np.nan) if nullable else column.to_numpy()
    if values.ndim != 1:
        raise TypeError(f"{where} holds several values in each row: argument must be a string or a number.")
    return values.astype(object) if values.dtype.kind in "TV" else values


def _check_kind(kind: str, where: str) -> None:
    if kind in ("m", "M"):
        raise ValueError(
            f"{where} holds dates or durations. Turn them into numbers, such as days since a date of your choice, or "
            "drop it."
        )
    if kind == "c":
        raise ValueError(f"{where} holds complex numbers. Complex data not supported: take real and imaginary parts.")


def _read_plain(values: NDArray[Any], where: str) -> NDArray[Any] | _Categories:
    _check_kind(values.dtype.kind, where)
    return _read_plain_categories(values) if values.dtype.kind in "US" else values


def _read_plain_categories(values: NDArray[Any]) -> _Categories:
    codes = np.full(values.size, -1, dtype=np.intp)
    there = ~np.isnan(values) if values.dtype.kind == "f" else np.ones(values.size, dtype=bool)
    present, codes[there] = np.unique(values[there], return_inverse=True)
    if values.dtype.kind == "f" and (present == np.floor(present)).all():
        # Whole numbers beside a missing value have become floats: they are the categories that they were.
        return _Categories(codes, [int(value) for value in present])
    return _Categories(codes, present.tolist())


_EMPTY = ("NoneType", "NAType", "NaTType")


def _read_objects(values: NDArray[Any], where: str) -> NDArray[np.float64] | _Categories:
    entries = values.tolist()
    kinds = {kind for kind in set(map(type, entries)) if kind.__name__ not in _EMPTY}
    for kind in sorted(kinds, key=lambda kind: kind.__name__):
        if issubclass(kind, (date, time, timedelta, np.datetime64, np.timedelta64)):
            _check_kind("M", where)
        elif issubclass(kind, Complex) and not issubclass(kind, Real):
            _check_kind("c", where)
        elif not issubclass(kind, (str, bytes, Number, np.bool_)):
            raise TypeError(
                f"{where} holds objects of type {kind.__name__}: argument must be a string or a number. Turn them into "
                "columns of numbers or text, or drop it."
            )
    empty = [type(entry).__name__ in _EMPTY or entry != entry for entry in entries]
    text = [kind for kind in kinds if issubclass(kind, (str, bytes))]
    if not text:
        try:
            return np.array([np.nan if gone else entry for entry, gone in zip(entries, empty, strict=True)], np.float64)
        except OverflowError as error:  # an integer of more than 308 digits
            raise ValueError(_too_large(where, np.inf)) from error
    present = dict.fromkeys(entry for entry, gone in zip(entries, empty, strict=True) if not gone)
    # Text is what values of different types have in common, and it sorts.
    order = sorted(present) if len(kinds) == 1 else sorted(present, key=lambda entry: (str(entry), str(type(entry))))
    place = {entry: code for code, entry in enumerate(order)}
    codes = [-1 if gone else place[entry] for entry, gone in zip(entries, empty, strict=True)]
    return _Categories(np.array(codes, dtype=np.intp), order)


def _known_codes(read: _Categories, known: tuple[Any, ...], unseen: Unseen, where: str) -> NDArray[np.float64]:
    """Return codes of the categories of a schema."""
    code_of = {category: float(code) for code, category in enumerate(known)}
    strange = [
        read.present[i] for i in np.unique(read.codes[read.codes >= 0]).tolist() if read.present[i] not in code_of
    ]
    if strange and unseen == "error":
        raise ValueError(_unseen(where, strange))
    table = np.array([code_of.get(category, np.nan) for category in read.present] + [np.nan])
    return np.asarray(table[read.codes])


def _held_numbers(where: str) -> str:
    return (
        f"{where} holds text or categories, but it held numbers when the model was trained. Turn it into numbers, or "
        "into the codes that the model was trained on."
    )


def _unseen(where: str, strange: Sequence[Any]) -> str:
    return (
        f"{where} has categories that the model never saw, and XGBoost does not support them: {list(strange[:5])}. "
        "Make them missing (NaN), or give the column a type that lists all categories (pandas CategoricalDtype, polars "
        "Enum) before fit."
    )


def _check_codes(values: Matrix, j: int, known: tuple[Any, ...] | None, unseen: Unseen, where: str) -> Matrix:
    """Refuse a categorical column of an array that does not hold codes."""
    codes = values[:, j]
    there = codes[~np.isnan(codes)]
    if (there < 0).any() or (there != np.floor(there)).any() or (there >= _CODES).any():
        raise ValueError(
            f"{where} is categorical and must hold codes 0, 1, 2, ... (NaN where missing). Encode it, or pass a "
            "frame with a categorical column."
        )
    if known is not None and (there >= len(known)).any():
        if unseen == "error":
            raise ValueError(_unseen(where, np.unique(there[there >= len(known)]).tolist()))
        values = values.copy()
        values[codes >= len(known), j] = np.nan
    return values


def _check_numbers(values: Matrix, where: Callable[[int], str]) -> None:
    if _largest(values) <= _LARGEST:
        return
    columns = sp.csc_array(values) if sp.issparse(values) else values
    j = next(j for j in range(columns.shape[1]) if _largest(columns[:, [j]]) > _LARGEST)
    if np.isinf(_largest(columns[:, [j]])):
        raise ValueError(
            f"{where(j)} holds infinite values: infinity is no number. Replace it by NaN (missing) or by a finite one."
        )
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
    if largest > _LARGEST:
        raise ValueError(_too_large(what, largest))


def read_column(
    values: Any, label: str, categories: tuple[Any, ...] | None = None, unseen: Unseen = "missing"
) -> NDArray[np.float64]:
    """Read one column as :func:`read_table` does.

    Parameters
    ----------
    values : array-like of shape (N,)
        Of numpy, pandas, polars or pyarrow, or a list.
    label : str
        For messages.
    categories : tuple or None, default=None
        Categories that the column had in training. Numbers are codes then.
    unseen : {"error", "missing"}, default="missing"
        What to do with other categories.

    Returns
    -------
    ndarray of shape (N,)
        Numbers, or codes; NaN where missing.

    Examples
    --------
    >>> read_column(["red", None, "blue"], "Column 'color'", ("blue", "red")).tolist()
    [1.0, nan, 0.0]
    """
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{label} is masked, and masks are not read. Use .filled(np.nan): NaN is a missing value.")
    if not (hasattr(values, "to_numpy") or hasattr(values, "to_pylist")):
        array = np.asarray(values)
        values = np.asarray(values, dtype=object) if array.dtype.kind in "US" else array
    read = _read_column(values, False, label)
    if isinstance(read, _Categories):
        if categories is None:
            raise ValueError(_held_numbers(label))
        return _known_codes(read, categories, unseen, label)
    numbers = read.astype(np.float64)[:, None]
    _check_numbers(numbers, lambda j: label)
    return np.asarray(
        numbers[:, 0] if categories is None else _check_codes(numbers, 0, categories, unseen, label)[:, 0]
    )


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


def column_names(X: Any) -> tuple[str, ...] | None:
    """Return the names of the columns of a frame, if they are all text; else None.

    Examples
    --------
    >>> import pandas as pd
    >>> column_names(pd.DataFrame({"a": [1.0]})), column_names([[1.0]])
    (('a',), None)
    """
    return _open(X, "X").names if is_frame(X) else None


def read_frame(X: Any, categorical: Sequence[int], schema: Schema | None = None, unseen: Unseen = "error") -> Table:
    """Read a frame: the old name of :func:`read_table`."""
    return read_table(X, categorical=list(categorical), schema=schema, unseen=unseen)


def check_container(X: Any) -> None:
    """Refuse containers that are not read."""
    _open(X, "X")
