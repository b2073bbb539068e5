"""Columns made ready for distances: numeric, finite, on one scale. Only the graph sees the result."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext._reporting import warn_caller
from grbb_ext.table._table import Table

Scale = Literal["auto", "standard"] | None
# A dense float array or a csr_array, which has no types upstream.
Matrix: TypeAlias = Any

# Columns are taken to share a unit (pixels, spectra, word counts) while the widest is within this factor of the lower
# quartile of all that vary.
_COMMENSURATE = 4.0
_ROWS_PER_BLOCK = 65_536


class GraphWarning(UserWarning):
    """Something about X was changed for the graph alone; the booster still sees the original."""


def numeric(X: Any) -> Matrix:
    """Return X as a float array or a csr_array, or say that it is not numbers."""
    if sp.issparse(X):
        matrix = sp.csr_array(X)
        return matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)
    try:
        values = np.asarray(X)
        if values.dtype not in (np.float32, np.float64):
            values = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X has columns that are not numbers ({error}). Encode them before building the graph, "
            "use graph='refined', which takes categories, or pass your own affinity as graph=."
        ) from error
    if values.ndim != 2:
        raise ValueError(f"X must be two-dimensional (rows x columns), got shape {values.shape}.")
    return values


def _impute(X: Matrix) -> Matrix:
    """Replace NaN: by the column's median where X is dense, by 0 (the implicit value) where it is sparse."""
    stored = X.data if isinstance(X, sp.csr_array) else X
    if np.isfinite(stored).all():
        return X
    if np.isinf(stored).any():
        raise ValueError("X holds infinite values. Replace them by NaN (missing) or by a finite number.")
    missing = np.isnan(stored)
    X = X.copy()
    if isinstance(X, sp.csr_array):
        X.data[missing] = 0.0
        X.eliminate_zeros()
        filled = "0"
    else:
        observed = ~missing.all(axis=0)
        medians = np.zeros(X.shape[1], dtype=X.dtype)
        medians[observed] = np.nanmedian(X[:, observed], axis=0)
        np.copyto(X, medians, where=missing)
        filled = "the column's median"
    warn_caller(
        f"X has {int(missing.sum())} missing values; they were replaced by {filled} for the graph only. "
        "The booster sees them as they are.",
        GraphWarning,
    )
    return X


def _column_statistics(X: Matrix) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the range and the standard deviation of every column."""
    if isinstance(X, sp.csr_array):
        # Stored as min(0, .), max(0, .): the implicit zeros belong to the column.
        spread = X.max(axis=0).toarray().ravel() - X.min(axis=0).toarray().ravel()
        mean = np.asarray(X.mean(axis=0)).ravel()
        mean_square = np.asarray(X.multiply(X).mean(axis=0)).ravel()
        return spread.astype(np.float64), np.sqrt(np.maximum(mean_square - mean**2, 0.0))
    mean = X.mean(axis=0, dtype=np.float64)
    variance = np.zeros(X.shape[1])
    for start in range(0, X.shape[0], _ROWS_PER_BLOCK):
        # By blocks: the differences of all rows in double precision would be twice as large as X itself.
        variance += ((X[start : start + _ROWS_PER_BLOCK] - mean) ** 2).sum(axis=0)
    return np.ptp(X, axis=0).astype(np.float64), np.sqrt(variance / X.shape[0])


def prepare_columns(X: Any, scale: Scale) -> Matrix:
    """Return X as finite floats, with every column divided by its standard deviation where `scale` asks for it.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (N, d)
        Rows; NaN marks a missing value.
    scale : {"auto", "standard"} or None
        ``"standard"`` divides by the standard deviation, None leaves the columns alone, ``"auto"`` divides unless the
        columns share a unit: the widest range is at most 4 times the lower quartile of the ranges.

    Returns
    -------
    ndarray or csr_array of shape (N, d)
        Finite, float32 or float64.

    Examples
    --------
    >>> prepare_columns([[1.0, 1000.0], [3.0, 5000.0]], scale="auto").tolist()
    [[1.0, 0.5], [3.0, 2.5]]
    """
    if scale not in ("auto", "standard", None):
        raise ValueError(f"scale must be 'auto', 'standard' or None, got {scale!r}.")
    matrix = _impute(numeric(X))
    if scale is None or 0 in matrix.shape:
        return matrix
    factor = column_factors(matrix, scale)
    if factor is None:
        return matrix
    if isinstance(matrix, sp.csr_array):
        return sp.csr_array(matrix.multiply(factor[None, :]))
    return np.asarray(matrix * factor)


def column_factors(matrix: Matrix, scale: Scale) -> NDArray[Any] | None:
    """Return what each column of a finite matrix is multiplied by, or None where columns are left alone.

    Examples
    --------
    >>> column_factors(np.array([[1.0, 1000.0], [3.0, 5000.0]]), "auto").tolist()
    [1.0, 0.0005]
    """
    if scale is None:
        return None
    spread, deviation = _column_statistics(matrix)
    varying = spread > 0
    if not varying.any():
        return None
    narrow = np.quantile(spread[varying], 0.25, method="lower")
    if scale == "auto" and spread.max() <= _COMMENSURATE * narrow:
        return None
    factor = np.ones_like(deviation)
    factor[varying] = 1.0 / deviation[varying]
    return np.asarray(factor.astype(matrix.dtype))


# One-hot columns beyond which the matrix is kept sparse.
_DENSE_UP_TO = 256


def graph_columns(table: Table, scale: Scale = "auto") -> tuple[Matrix, Scale]:
    """Return the rows as distances should see them, and the scaling that is left to do.

    A missing number becomes the median of its column (0 in a sparse matrix). If there are categorical columns, numbers
    are divided by their standard deviation (unless `scale` is None) and categories become one-hot columns: two
    different categories are at squared distance 2, which is that of two rows drawn at random in a scaled column; a
    missing category is all zeros, at squared distance 1 from every category.

    Parameters
    ----------
    table : Table
        Rows.
    scale : {"auto", "standard"} or None, default="auto"
        As in :func:`grbb_ext.knn_graph`.

    Returns
    -------
    matrix : ndarray or csr_array
        Finite.
    scale : {"auto", "standard"} or None
        For :func:`grbb_ext.knn_graph`; None where it has been done.

    Examples
    --------
    >>> from grbb_ext.table import Schema
    >>> rows = np.array([[1.0, 0.0], [3.0, 1.0], [np.nan, np.nan]])
    >>> matrix, scale = graph_columns(Table(rows, Schema(categorical=(1,))), scale=None)
    >>> matrix.tolist()
    [[1.0, 1.0, 0.0], [3.0, 0.0, 1.0], [2.0, 0.0, 0.0]]
    """
    values, categorical = table.values, list(table.schema.categorical)
    if sp.issparse(values):
        if categorical:
            raise ValueError("Categorical columns of a sparse matrix are not supported. Pass a frame or a dense array.")
        return fill_missing(values), scale
    if not categorical:
        return fill_missing(values), scale
    numeric = np.setdiff1d(np.arange(values.shape[1]), categorical)
    numbers = prepare_columns(fill_missing(values[:, numeric]), None if scale is None else "standard")
    blocks = [_one_hot(values[:, j]) for j in categorical]
    if sum(block.shape[1] for block in blocks) <= _DENSE_UP_TO:
        return np.hstack([numbers, *(block.toarray() for block in blocks)]), None
    return sp.csr_array(sp.hstack([sp.csr_array(numbers), *blocks])), None


def fill_missing(values: Matrix) -> Matrix:
    """Replace NaN by the column's median, or by 0 in a sparse matrix, without a word: the user guide says so.

    Examples
    --------
    >>> fill_missing(np.array([[1.0], [np.nan], [3.0], [4.0]])).ravel().tolist()
    [1.0, 3.0, 3.0, 4.0]
    """
    if sp.issparse(values):
        filled = sp.csr_array(values, copy=True)
        filled.data[np.isnan(filled.data)] = 0.0
        return filled
    missing = np.isnan(values)
    if not missing.any():
        return values
    observed = ~missing.all(axis=0)
    medians = np.zeros(values.shape[1], dtype=values.dtype)
    medians[observed] = np.nanmedian(values[:, observed], axis=0)
    return np.where(missing, medians, values)


def _one_hot(codes: NDArray[np.floating]) -> sp.csr_array:
    rows = np.flatnonzero(~np.isnan(codes))
    present, position = np.unique(codes[rows], return_inverse=True)
    return sp.csr_array(sp.coo_array((np.ones(rows.size), (rows, position)), shape=(codes.size, max(present.size, 1))))
