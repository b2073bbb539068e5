"""Columns for trees: missing values stay missing, categories are ordered by what they say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext.table._distances import Matrix, numeric

Index = NDArray[np.intp]

# A category counts as if so many rows at the overall mean were added to it.
_PRIOR_ROWS = 10.0


@dataclass(frozen=True)
class TreeColumns:
    """The columns of X as trees take them.

    Attributes
    ----------
    numbers : ndarray or csr_array of shape (N, d)
        Columns of numbers, NaN where missing.
    codes : ndarray of int of shape (N, c)
        Columns of categories; -1 where missing.

    Examples
    --------
    >>> columns = read_columns(np.array([[1.0, "red"], [2.0, "blue"], [None, "red"]], dtype=object))
    >>> columns.numbers.ravel().tolist(), columns.codes.ravel().tolist()
    ([1.0, 2.0, nan], [1, 0, 1])
    >>> columns.ordered(np.array([0.0, 1.0, 0.0]), np.arange(3)).round(2).tolist()
    [[1.0, 0.28], [2.0, 0.39], [nan, 0.28]]
    """

    numbers: Matrix
    codes: NDArray[np.intp]

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.codes.shape[0])

    def subset(self, rows: Index) -> TreeColumns:
        """Return some of the rows."""
        return TreeColumns(self.numbers[rows], self.codes[rows])

    def distance_columns(self) -> Matrix:
        """Return what distances are taken of: the numbers, or the categories one-hot where there are no numbers."""
        if self.numbers.shape[1] or not self.codes.shape[1]:
            return self.numbers
        return np.hstack([(column[:, None] == np.unique(column)).astype(np.float64) for column in self.codes.T])

    def coded(self) -> Matrix:
        """Return all columns as numbers: a category is its code, NaN where missing."""
        if not self.codes.shape[1]:
            return self.numbers
        codes = self.codes.astype(np.float64)
        codes[self.codes < 0] = np.nan
        return np.hstack([self.numbers, codes])

    def ordered(self, target: NDArray[np.float64], rows: Index) -> Matrix:
        """Return all columns as numbers: a category is its mean target, so that a split may part any two sets of them.

        Parameters
        ----------
        target : ndarray of shape (R,) or (R, K)
            What the trees will be fitted to; of several columns the direction of largest variance counts.
        rows : ndarray of int of shape (R,)
            The rows that they will be fitted to.

        Returns
        -------
        ndarray or csr_array of shape (N, d + c)
            NaN where missing.
        """
        if not self.codes.shape[1]:
            return self.numbers
        along = _leading_direction(target)
        mean = along.mean()
        encoded = np.empty(self.codes.shape)
        for column, codes in enumerate(self.codes.T):
            # Code -1 becomes the last entry, a category like any other here, and NaN afterwards.
            size = int(codes.max(initial=-1)) + 2
            seen = codes[rows] % size
            total = np.bincount(seen, weights=along, minlength=size) + _PRIOR_ROWS * mean
            encoded[:, column] = (total / (np.bincount(seen, minlength=size) + _PRIOR_ROWS))[codes]
        encoded[self.codes < 0] = np.nan
        return np.hstack([self.numbers, encoded])


def _leading_direction(target: NDArray[np.float64]) -> NDArray[np.float64]:
    if target.ndim == 1:
        return target
    centered = target - target.mean(axis=0)
    _, vectors = np.linalg.eigh(centered.T @ centered)
    axis = vectors[:, -1]
    return np.asarray(centered @ (axis * np.sign(axis[np.abs(axis).argmax()])))


def read_columns(X: Any) -> TreeColumns:
    """Split X into columns of numbers and columns of categories.

    A column is one of categories if its type is pandas' ``category``, text, or objects that are not all numbers.

    Parameters
    ----------
    X : array-like, data frame or sparse matrix of shape (N, d)
        Rows; NaN or None marks a missing value.

    Returns
    -------
    TreeColumns
        The two kinds.
    """
    if hasattr(X, "columns") and hasattr(X, "iloc"):
        columns = [(np.asarray(X.iloc[:, i]), str(X.dtypes.iloc[i]) == "category") for i in range(X.shape[1])]
    else:
        values = X if sp.issparse(X) else np.asarray(X)
        if sp.issparse(values) or values.dtype.kind in "biuf" or values.ndim != 2:
            matrix = _without_missing(sp.csr_array(values)) if sp.issparse(values) else numeric(values)
            return TreeColumns(matrix, np.empty((matrix.shape[0], 0), dtype=np.intp))
        columns = [(column, False) for column in values.T]
    numbers, codes = [], []
    for values, is_category in columns:
        as_numbers = None if is_category else _as_numbers(values)
        if as_numbers is None:
            codes.append(_codes(values))
        else:
            numbers.append(as_numbers)
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    return TreeColumns(_stacked(numbers, n_rows, np.float64), _stacked(codes, n_rows, np.intp))


def _without_missing(X: sp.csr_array) -> sp.csr_array:
    # Trees take NaN in dense columns only; the graph reads it as 0 in sparse ones.
    X = numeric(X)
    if np.isnan(X.data).any():
        X = X.copy()
        X.data = np.nan_to_num(X.data, nan=0.0, posinf=np.inf, neginf=-np.inf)
    return X


def _stacked(columns: list[NDArray[Any]], n_rows: int, kind: type) -> NDArray[Any]:
    return np.column_stack(columns).astype(kind, copy=False) if columns else np.empty((n_rows, 0), dtype=kind)


def _as_numbers(values: NDArray[Any]) -> NDArray[np.float64] | None:
    if values.dtype.kind in "US":
        return None
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        return None


def _codes(values: NDArray[Any]) -> NDArray[np.intp]:
    missing = np.array([value is None or value != value for value in values], dtype=bool)
    # Text is what values of different types have in common, and it sorts.
    _, codes = np.unique(values.astype(str), return_inverse=True)
    return np.where(missing, -1, codes)
