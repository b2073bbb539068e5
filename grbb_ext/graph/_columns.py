"""Columns made ready for distances: numeric, finite, on one scale. Only the graph sees the result."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext._caller import warn_caller

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
