"""Columns for the graph: categories one-hot, missing values filled. The booster sees neither."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext.frames import Table
from grbb_ext.graph._columns import Matrix, Scale, prepare_columns

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
    >>> from grbb_ext.frames import Schema
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
