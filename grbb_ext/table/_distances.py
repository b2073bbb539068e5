"""Columns made ready for distances: numeric, finite, on one scale. Only the graph sees the result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext._progress import ROWS_PER_BLOCK, over_rows, row_blocks, warn_caller
from grbb_ext.table._components import NormalScores, PrincipalComponents
from grbb_ext.table._table import Index, Matrix, Table, sampled, without_missing

Scale = Literal["auto", "standard"] | None

# Columns are taken to share a unit (pixels, spectra, word counts) while the widest is within this factor of the lower
# quartile of all that vary.
_COMMENSURATE = 4.0
_ROWS_PER_BLOCK = 65_536
# Squares of smaller standard deviations are 0, or nearly.
_FAINT = 1e-140
# A column that is constant, and so many times as large as the widest range, is left out.
_HUGE = 1e12
# One-hot columns beyond which the matrix is kept sparse.
_DENSE_UP_TO = 256
# Rows that medians are taken of where no row of the fit needs them.
_ROWS_FOR_MEDIANS = 5_000


class GraphWarning(UserWarning):
    """Something about X was changed for the graph alone; the booster still sees the original."""


@dataclass(frozen=True)
class DistanceSpace:
    """A fitted map from the rows of a table to points, between which distances are taken.

    1. A missing number becomes the median of its column, or 0 in a sparse matrix.
    2. Columns are divided by their standard deviation, as `scale` says. A huge constant, such as 1e20, becomes 0.
    3. Categories become one-hot columns, as `categories` says. Two different categories are at squared distance 2,
       which is that of two rows drawn at random in a scaled column. Categories without a row in the fit are all zeros.
    4. Normal scores and principal components follow, where they are asked for and the points are dense.

    It can be pickled, and serves any table with the same schema.

    Attributes
    ----------
    medians : ndarray or None
        Of the columns of numbers; None where the table is sparse.
    factors : ndarray or None
        What the columns, before step 4, are multiplied by; None leaves them alone.
    levels : tuple of ndarray of int
        Codes of each categorical column that have a one-hot column; -1 is a missing value.
    components : PrincipalComponents
        Step 4.
    beside : bool
        Whether one-hot columns are beside the numbers; else they count only where there are no numbers.

    Examples
    --------
    >>> from grbb_ext.table import read_table
    >>> table = read_table([[1.0, "red"], [3.0, "blue"], [None, None]])
    >>> space = DistanceSpace.fit(table, scale=None, warn_missing=False)
    >>> space(table).tolist()
    [[1.0, 0.0, 1.0], [3.0, 1.0, 0.0], [2.0, 0.0, 0.0]]
    >>> space(read_table([[None, "green"]], schema=table.schema)).tolist()
    [[2.0, 0.0, 0.0]]
    """

    medians: NDArray[np.floating] | None
    factors: NDArray[np.floating] | None
    levels: tuple[Index, ...]
    components: PrincipalComponents
    beside: bool

    @classmethod
    def fit(
        cls,
        table: Table,
        *,
        scale: Scale = "auto",
        categories: Literal["always", "only without numbers"] = "always",
        normal_scores: bool = False,
        n_components: int | None = None,
        warn_missing: bool = True,
    ) -> DistanceSpace:
        """Take medians and scales of the rows, and ranks and directions of at most 20,000 of them.

        Parameters
        ----------
        table : Table
            Rows.
        scale : {"auto", "standard"} or None, default="auto"
            ``"standard"`` divides by the standard deviation, None leaves the columns alone, ``"auto"`` divides unless
            the columns share a unit: the widest range is at most 4 times the lower quartile of the ranges. Numbers
            beside one-hot columns are divided unless it is None.
        categories : {"always", "only without numbers"}, default="always"
            When categories count: one-hot beside the numbers, or only where there are no numbers. In the latter case
            a missing value is a category like the others.
        normal_scores : bool, default=False
            Put :class:`NormalScores` beside the columns; not with ``scale=None``.
        n_components : int or None, default=None
            Replace more columns than this by so many :class:`PrincipalComponents`.
        warn_missing : bool, default=True
            Whether a :class:`GraphWarning` counts the missing values that are replaced.

        Returns
        -------
        DistanceSpace
        """
        if scale not in ("auto", "standard", None):
            raise ValueError(f"scale must be 'auto', 'standard' or None, got {scale!r}.")
        if categories not in ("always", "only without numbers"):
            raise ValueError(f"categories must be 'always' or 'only without numbers', got {categories!r}.")
        beside = categories == "always"
        numbers = _numbers(table, beside)
        if warn_missing:
            _warn_missing(numbers)
        counted = beside or not numbers.shape[1]
        levels = [np.unique(codes[codes >= 0] if beside else codes) for codes in table.codes.T if counted]
        if beside and levels and scale is not None:
            scale = "standard"
        medians = None if sp.issparse(numbers) else _medians(numbers)
        space = cls(medians, None, tuple(levels), PrincipalComponents(), beside)
        space = replace(space, factors=_column_factors(space._columns(table), scale))
        few = table.sampled()
        matrix = space._joined(space._columns(few), few)
        scores = NormalScores(matrix) if normal_scores and scale is not None and not sp.issparse(matrix) else None
        return replace(space, components=PrincipalComponents.fit(matrix, n_components, scores))

    def __call__(self, table: Table, n_jobs: int | None = None, verbose: bool = False) -> Matrix:
        """Return the points of the rows of a table with the schema of the fit: finite, float32 or float64.

        Parameters
        ----------
        table : Table
            Rows.
        n_jobs : int or None, default=None
            Threads; None takes all cores.
        verbose : bool, default=False
            Draw a progress bar if it takes more than two seconds.

        Returns
        -------
        ndarray or csr_array of shape (N, number of columns)
        """
        if table.n_rows <= ROWS_PER_BLOCK or (self.components.scores is None and self.components.mean is None):
            return self._points(table)
        # Block by block: scaled columns of all rows, with scores beside them, would be the largest thing in memory.
        settings: dict[str, Any] = {"n_jobs": n_jobs, "description": "columns for distances", "verbose": verbose}
        return over_rows(lambda block: self._points(table.take(block)), table.n_rows, **settings)

    def _points(self, table: Table) -> Matrix:
        return self.components(self._joined(self._columns(table), table))

    def _columns(self, table: Table) -> Matrix:
        """Return the columns that are scaled: numbers without holes, or one-hot columns where there are no numbers."""
        if self.levels and not self.beside:
            return np.hstack([block.toarray() for block in self._one_hot(table)])
        numbers = _numbers(table, self.beside)
        if self.medians is None:
            return without_missing(sp.csr_array(numbers))
        if sp.issparse(numbers):
            return without_missing(numbers).toarray()
        missing = np.isnan(numbers)
        return np.where(missing, self.medians.astype(numbers.dtype), numbers) if missing.any() else numbers

    def _joined(self, columns: Matrix, table: Table) -> Matrix:
        """Scale columns, and put the one-hot ones beside them."""
        if self.factors is not None:
            factors = self.factors.astype(columns.dtype)
            sparse = sp.issparse(columns)
            columns = sp.csr_array(columns.multiply(factors[None, :])) if sparse else np.asarray(columns * factors)
        if not self.levels or not self.beside:
            return columns
        blocks = self._one_hot(table)
        if sp.issparse(columns) or sum(block.shape[1] for block in blocks) > _DENSE_UP_TO:
            return sp.csr_array(sp.hstack([sp.csr_array(columns), *blocks]))
        return np.hstack([columns, *(block.toarray() for block in blocks)])

    def _one_hot(self, table: Table) -> list[sp.csr_array]:
        blocks = []
        for codes, levels in zip(table.codes.T, self.levels, strict=True):
            rows = np.flatnonzero(np.isin(codes, levels))
            entries = np.ones(rows.size), (rows, np.searchsorted(levels, codes[rows]))
            blocks.append(sp.csr_array(sp.coo_array(entries, shape=(codes.size, max(levels.size, 1)))))
        return blocks


def _numbers(table: Table, beside: bool) -> Matrix:
    if sp.issparse(table.values) or not table.schema.categorical:
        return table.values
    return table.values[:, table.numeric] if beside else table.numbers


def _medians(numbers: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return the medians of the columns; 0 for those without a value."""
    missing = np.isnan(numbers)
    if not missing.any():
        numbers = sampled(numbers, _ROWS_FOR_MEDIANS)
    observed = ~missing.all(axis=0)
    medians = np.zeros(numbers.shape[1], dtype=numbers.dtype)
    medians[observed] = np.nanmedian(numbers[:, observed], axis=0)
    return medians


def _warn_missing(numbers: Matrix) -> None:
    sparse = sp.issparse(numbers)
    n_missing = int(np.isnan(numbers.data if sparse else numbers).sum())
    if n_missing:
        filled = "0" if sparse else "the column's median"
        warn_caller(
            f"X has {n_missing} missing values; they were replaced by {filled} for the graph only. "
            "The booster sees them as they are.",
            GraphWarning,
        )


def _column_factors(matrix: Matrix, scale: Scale) -> NDArray[Any] | None:
    """Return what each column of a finite matrix is multiplied by, or None where columns are left alone.

    Examples
    --------
    >>> _column_factors(np.array([[1.0, 1000.0], [3.0, 5000.0]]), "auto").tolist()
    [1.0, 0.0005]
    >>> _column_factors(np.array([[1e-200, 1.0], [3e-200, 3.0]]), "auto").tolist()
    [1e+200, 1.0]
    """
    if scale is None or 0 in matrix.shape:
        return None
    spread, deviation = _column_statistics(matrix)
    varying = spread > 0
    if not varying.any():
        return None
    narrow = np.quantile(spread[varying], 0.25, method="lower")
    range_of = np.finfo(matrix.dtype)
    # Squares of smaller differences would vanish.
    visible = spread.max() > 1e3 * np.sqrt(range_of.tiny)
    first = matrix[[0]]
    level = (first.toarray() if sp.issparse(first) else first).ravel()
    # The rounding of the mean of a huge constant, such as a mark of missing values, would look like a variance.
    factor = np.where(varying | (np.abs(level) <= _HUGE * spread.max()), 1.0, 0.0)
    if scale == "auto" and visible and spread.max() <= _COMMENSURATE * narrow:
        return None if factor.all() else np.asarray(factor.astype(matrix.dtype))
    with np.errstate(over="ignore", divide="ignore"):
        factor[varying] = 1.0 / deviation[varying]
    return np.asarray(np.minimum(factor, range_of.max).astype(matrix.dtype))


def _column_statistics(X: Matrix) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the range and the standard deviation of every column."""
    if isinstance(X, sp.csr_array):
        # The implicit zeros belong to the column. Two passes: the mean of squares less the square of the mean cancels.
        n_rows, n_columns = X.shape
        lowest, highest = X.min(axis=0).toarray().ravel(), X.max(axis=0).toarray().ravel()
        values = X.data.astype(np.float64)
        mean = np.bincount(X.indices, values, n_columns) / n_rows
        n_implicit = n_rows - np.bincount(X.indices, minlength=n_columns)
        variance = np.bincount(X.indices, (values - mean[X.indices]) ** 2, n_columns) + n_implicit * mean**2
    else:
        mean = X.mean(axis=0, dtype=np.float64)
        variance = np.zeros(X.shape[1])
        for rows in row_blocks(X.shape[0], _ROWS_PER_BLOCK):
            # By blocks: the differences of all rows in double precision would be twice as large as X itself.
            variance += ((X[rows] - mean) ** 2).sum(axis=0)
        lowest, highest = X.min(axis=0), X.max(axis=0)
    spread, deviation = highest.astype(np.float64) - lowest, np.sqrt(variance / X.shape[0])
    for j in np.flatnonzero((spread > 0) & (deviation < _FAINT)):
        # The squares of tiny numbers are 0: taken in a unit of their own size, a power of 2, they are not.
        column = (X[:, [j]].toarray() if sp.issparse(X) else X[:, j]).astype(np.float64).ravel()
        exponent = max(int(np.floor(np.log2(spread[j]))), -1000)
        deviation[j] = np.ldexp(np.std(np.ldexp(column, -exponent)), exponent)
    return spread, deviation
