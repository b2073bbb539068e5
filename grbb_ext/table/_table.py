"""A data set as numbers, with what its columns mean; its categories for trees; and a key for each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext._progress import ROWS_PER_BLOCK

# A dense float array or a csr_array, which has no types upstream.
Matrix: TypeAlias = Any
Index: TypeAlias = NDArray[np.intp]


NO_SPARSE_CATEGORIES = "Categorical columns of a sparse matrix are not supported. Pass a frame or a dense array."


#: Ranks, directions and means of more rows are those of a random sample of so many.
MOST_ROWS = 20_000


def sampled(X: Any, most: int) -> Any:
    """Return all rows, or a random sample of `most` rows.

    Examples
    --------
    >>> sampled(np.zeros((6, 1)), 5).shape
    (5, 1)
    """
    if X.shape[0] <= most:
        return X
    return X[np.random.default_rng(0).choice(X.shape[0], most, replace=False)]


@dataclass(frozen=True)
class Schema:
    """What the columns of a data set mean.

    Attributes
    ----------
    categorical : tuple of int
        Positions of the categorical columns.
    categories : mapping of int to tuple
        Their categories by position, in the order of their codes. A column of codes, of a numeric array, has none.
    names : tuple of str or None
        Names of the columns, if the data set is a frame and they are all text.
    n_columns : int or None
        Number of columns; None is not checked.
    missing : float
        A number that stands for a missing value, beside NaN.
    """

    categorical: tuple[int, ...] = ()
    categories: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)
    names: tuple[str, ...] | None = None
    n_columns: int | None = None
    missing: float = field(default=np.nan, compare=False)  # NaN equals nothing


@dataclass(frozen=True)
class Table:
    """A data set as numbers; :func:`read_table` makes it of any container.

    Attributes
    ----------
    values : ndarray or csr_array of shape (N, d)
        float32 or float64. NaN is a missing value. A categorical column holds codes 0, 1, ...
    schema : Schema
        What the columns mean.

    Examples
    --------
    >>> table = Table(np.array([[0.0, 1.5], [1.0, np.nan], [np.nan, 2.5]]), Schema(categorical=(0,)))
    >>> table.numbers.ravel().tolist(), table.codes.ravel().tolist()
    ([1.5, nan, 2.5], [0, 1, -1])
    >>> table.coded().tolist()
    [[1.5, 0.0], [nan, 1.0], [2.5, nan]]
    """

    values: Matrix
    schema: Schema = field(default_factory=Schema)

    @cached_property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.values.shape[0])

    @cached_property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.values.shape[1])

    def take(self, rows: Any) -> Table:
        """Return some of the rows, given by position or by a truth value for each."""
        return Table(self.values[rows], self.schema)

    def sampled(self) -> Table:
        """Return at most 20,000 of the rows, at random: enough for ranks, directions and means."""
        return Table(sampled(self.values, MOST_ROWS), self.schema)

    @cached_property
    def numeric(self) -> Index:
        """Positions of the columns of numbers."""
        return np.setdiff1d(np.arange(self.n_columns), self.schema.categorical)

    @cached_property
    def numbers(self) -> Matrix:
        """Columns of numbers as trees take them, shape (N, d - c): NaN where missing, 0 in a sparse matrix."""
        if sp.issparse(self.values):
            return without_missing(self.values)
        if not self.schema.categorical:
            return self.values
        return np.ascontiguousarray(self.values[:, self.numeric], dtype=np.float64)

    @cached_property
    def codes(self) -> Index:
        """Codes of the categorical columns, shape (N, c); -1 where missing."""
        if not self.schema.categorical:
            return np.empty((self.n_rows, 0), dtype=np.intp)
        if sp.issparse(self.values):
            raise ValueError(NO_SPARSE_CATEGORIES)
        codes = self.values[:, list(self.schema.categorical)]
        return np.where(np.isnan(codes), -1, codes).astype(np.intp)

    def coded(self) -> Matrix:
        """Return all columns as numbers: first the numbers, then the codes, NaN where missing."""
        if not self.schema.categorical:
            return self.numbers
        return np.hstack([self.numbers, np.where(self.codes < 0, np.nan, self.codes)])

    def native(self) -> Any:
        """Return the rows as estimators of scikit-learn take them.

        An array stays an array; a frame is a pandas frame with its names and categories again.

        Examples
        --------
        >>> table = Table(np.array([[0.5, 1.0], [1.5, np.nan]]), Schema((1,), {1: ("blue", "red")}, ("size", "color")))
        >>> table.native()["color"].tolist(), Table(np.eye(2)).native().tolist()
        (['red', nan], [[1.0, 0.0], [0.0, 1.0]])
        """
        schema = self.schema
        if schema.names is None and not schema.categories:
            return self.values
        import pandas as pd

        columns = {}
        codes = dict(zip(schema.categorical, self.codes.T, strict=True))
        for j, name in enumerate(schema.names or range(self.n_columns)):
            if j in schema.categories:
                columns[name] = pd.Categorical.from_codes(codes[j], list(schema.categories[j]))
            else:
                columns[name] = self.values[:, j]
        return pd.DataFrame(columns)


# A category counts as if so many rows at the overall mean were added to it.
_PRIOR_ROWS = 10.0


@dataclass(frozen=True)
class CategoryOrder:
    r"""Replace categories by mean targets, so that a split may part any two sets of them.

    Category a of a column, with n_a rows whose targets add up to s_a, becomes :math:`(s_a + 10 m) / (n_a + 10)`, m the
    mean of all targets. A category without rows is m; a missing one stays missing.

    Attributes
    ----------
    mean : float
        m.
    means : tuple of ndarray
        For each categorical column the number of each code.

    Examples
    --------
    >>> from grbb_ext.table import read_table
    >>> table = read_table(np.array([[1.0, "red"], [2.0, "blue"], [None, "red"]], dtype=object))
    >>> order = CategoryOrder.fit(table, np.array([0.0, 1.0, 0.0]), np.arange(3))
    >>> order(table).round(2).tolist()
    [[1.0, 0.28], [2.0, 0.39], [nan, 0.28]]
    """

    mean: float
    means: tuple[NDArray[np.float64], ...]

    @classmethod
    def fit(cls, table: Table, target: NDArray[np.float64], rows: NDArray[np.intp]) -> CategoryOrder:
        """Take the mean targets of categories.

        Parameters
        ----------
        table : Table
            Rows.
        target : ndarray of shape (R,) or (R, K)
            What trees will be fitted to; of several columns the direction of largest variance counts.
        rows : ndarray of int of shape (R,)
            The rows that they will be fitted to.

        Returns
        -------
        CategoryOrder
        """
        if not table.schema.categorical:
            return cls(0.0, ())
        along = _leading_direction(target)
        mean = along.mean()
        means = []
        for codes in table.codes.T:
            # Code -1 becomes the last entry, a category like any other here, and NaN afterwards.
            size = int(codes.max(initial=-1)) + 2
            seen = codes[rows] % size
            total = np.bincount(seen, weights=along, minlength=size) + _PRIOR_ROWS * mean
            means.append((total / (np.bincount(seen, minlength=size) + _PRIOR_ROWS))[:-1])
        return cls(float(mean), tuple(means))

    def __call__(self, table: Table) -> Any:
        """Return all columns as numbers, shape (N, d): first the numbers, then the categories; NaN where missing."""
        if not table.schema.categorical:
            return table.numbers
        encoded = np.empty(table.codes.shape)
        for column, (codes, means) in enumerate(zip(table.codes.T, self.means, strict=True)):
            known = np.append(means, [self.mean, np.nan])
            encoded[:, column] = known[np.where(codes < 0, means.size + 1, np.minimum(codes, means.size))]
        return np.hstack([table.numbers, encoded])


def _leading_direction(target: NDArray[np.float64]) -> NDArray[np.float64]:
    if target.ndim == 1:
        return target
    centered = target - target.mean(axis=0)
    _, vectors = np.linalg.eigh(centered.T @ centered)
    axis = vectors[:, -1]
    return np.asarray(centered @ (axis * np.sign(axis[np.abs(axis).argmax()])))


def join_schemas(schemas: Sequence[Schema]) -> Schema:
    """Return one schema for parts of a data set that were read apart: the categories of a column are those of all.

    Examples
    --------
    >>> parts = [Schema((1,), {1: ("b", "c")}, n_columns=2), Schema((1,), {1: ("a", "b")}, n_columns=2)]
    >>> join_schemas(parts).categories
    {1: ('a', 'b', 'c')}
    """
    categories = {}
    for j in sorted({j for schema in schemas for j in schema.categories}):
        listed = [schema.categories[j] for schema in schemas if j in schema.categories]
        together = {category for some in listed for category in some}
        categories[j] = listed[0] if len(set(listed)) == 1 else tuple(sorted(together, key=lambda c: (str(type(c)), c)))
    categorical = {j for schema in schemas for j in schema.categorical}
    return replace(schemas[0], categorical=tuple(sorted(categorical)), categories=categories)


def stack_tables(tables: Sequence[Table]) -> Table:
    """Return the rows of tables with one schema below each other.

    Examples
    --------
    >>> stack_tables([Table(np.zeros((2, 3))), Table(np.ones((1, 3)))]).values[:, 0].tolist()
    [0.0, 0.0, 1.0]
    """
    sparse = sp.issparse(tables[0].values)
    parts = [table.values for table in tables]
    return Table(sp.csr_array(sp.vstack(parts)) if sparse else np.concatenate(parts), tables[0].schema)


def without_missing(values: Matrix) -> Matrix:
    """Return a sparse matrix with 0, the implicit value, in place of NaN.

    Examples
    --------
    >>> without_missing(sp.csr_array([[np.nan, 2.0]])).toarray().tolist()
    [[0.0, 2.0]]
    """
    if not np.isnan(values.data).any():
        return values
    filled = values.copy()
    filled.data[np.isnan(filled.data)] = 0.0
    filled.eliminate_zeros()
    return filled


_SIZE = 16


def row_keys(table: Table) -> list[bytes]:
    """Return a 128-bit key of each row.

    Categories count by name, not by code, so that a subset that counts its categories anew has the same keys. Two
    different rows have the same key with a probability of about N^2 / 2^129, i.e. never.

    Examples
    --------
    >>> rows = np.array([[1.0, 0.0], [2.0, np.nan], [1.0, -0.0]])
    >>> first, second, third = row_keys(Table(rows))
    >>> first == third, first == second, row_keys(Table(rows[1:]))[0] == second
    (True, False, True)
    """
    if sp.issparse(table.values):
        return _sparse_keys(table.values)
    keys: list[bytes] = []
    for start in range(0, table.n_rows, ROWS_PER_BLOCK):
        values = table.values[start : start + ROWS_PER_BLOCK]
        bits = _bits(values)
        for j, categories in table.schema.categories.items():
            digests = [blake2b(repr(category).encode(), digest_size=8).digest() for category in categories]
            names = np.append(np.frombuffer(b"".join(digests), dtype="<u8"), np.uint64(0))
            bits[:, j] = names[np.where(np.isnan(values[:, j]), -1, values[:, j]).astype(np.intp)]
        keys += [blake2b(row.tobytes(), digest_size=_SIZE).digest() for row in bits]
    return keys


def _bits(values: NDArray[Any]) -> NDArray[np.uint64]:
    # -0.0 + 0.0 is 0.0, and all NaN are made the same: numbers that are equal have equal bits.
    numbers = np.ascontiguousarray(values, dtype=np.float64) + 0.0
    numbers[np.isnan(numbers)] = np.nan
    return numbers.view(np.uint64)


def _sparse_keys(values: Any) -> list[bytes]:
    matrix = sp.csr_array(values, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    indices, bits = matrix.indices.astype(np.int64), _bits(matrix.data)
    return [
        blake2b(indices[a:b].tobytes() + bits[a:b].tobytes(), digest_size=_SIZE).digest()
        for a, b in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)
    ]
