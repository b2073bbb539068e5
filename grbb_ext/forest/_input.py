"""Rows as a library sees them: its precision, its missing values, its category codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext.forest._walk import ZERO
from grbb_ext.table import Schema, Unseen, column_names, listed_categories, read_table

if TYPE_CHECKING:
    from grbb_ext.forest._forest import Forest


def as_rows(forest: Forest, X: Any) -> NDArray[Any]:
    """Return X as the library of the forest would read it.

    Parameters
    ----------
    forest : Forest
        The model.
    X : array-like, sparse matrix or frame of shape (N, d)
        Rows, as :func:`grbb_ext.table.read_table` takes them. Absent entries of a sparse matrix are missing for
        XGBoost and 0 for LightGBM, as in the libraries.

    Returns
    -------
    ndarray of shape (N, d)
        Contiguous; float32 for XGBoost, float64 for LightGBM; missing values are NaN.

    Raises
    ------
    ValueError
        If the columns are not those of the model, or hold what :func:`grbb_ext.table.read_table` refuses.
    """
    numeric = sp.issparse(X) or (isinstance(X, np.ndarray) and X.dtype.kind in "biuf")
    # Arrays of numbers hold codes, and trees send codes that no training row had their own way.
    schema = Schema(n_columns=forest.n_features) if numeric else _schema(forest, X)
    unseen: Unseen = "error" if forest.library == "xgboost" else "missing"
    values = read_table(X, schema=schema, unseen=unseen, missing=forest.missing, min_rows=0).values
    if sp.issparse(values):
        values = _filled(forest, values)
    elif numeric and X.dtype not in (np.float32, np.float64):
        # LightGBM reads everything that is not a float as float32, and so large integers lose digits.
        values = values.astype(np.float32)
    values = np.ascontiguousarray(values, dtype=forest.threshold.dtype)
    if not np.isnan(forest.missing):
        values = np.where(values == values.dtype.type(forest.missing), values.dtype.type(np.nan), values)
    if forest.library == "lightgbm" and not (sp.issparse(X) and X.format != "csc"):
        # LightGBM reads numbers that are that small as 0, except from sparse rows.
        tiny = (np.abs(values) <= ZERO) & (values != 0)
        if tiny.any():
            values = np.where(tiny, 0.0, values)
    return values


def _filled(forest: Forest, X: Any) -> NDArray[Any]:
    """Fill in the absent entries of a sparse matrix."""
    entries = sp.coo_array(X)
    absent = np.nan if forest.library == "xgboost" else 0.0
    values = np.full(entries.shape, absent, dtype=forest.threshold.dtype)
    entries.sum_duplicates()
    row, column = entries.coords
    values[row, column] = entries.data
    return values


def _schema(forest: Forest, X: Any) -> Schema:
    """Return what the columns of frames or objects should be."""
    categories = column_categories(forest)
    if categories is None:
        found = read_table(X, min_rows=0).schema.categorical
        categories = {j: forest.categories[i] for i, j in enumerate(found) if i in forest.categories}
    unreadable = [j for j in listed_categories(X) if categories.get(j) == ()]
    if unreadable and forest.library == "xgboost":
        column = unreadable[0] if forest.feature_names is None else forest.feature_names[unreadable[0]]
        raise ValueError(
            f"The model has no readable names of the categories of column {column!r}: before 3.4 XGBoost damages names "
            "that are not ASCII where it saves them. Pass their codes, numbered as the type of the column listed them "
            "in training."
        )
    if not categories:
        # Without stored names the codes of the type are what the model was trained on.
        categories = listed_categories(X)
    names = forest.feature_names
    if names is not None and forest.library == "lightgbm":  # its files have "_" for blanks
        given = {name.replace(" ", "_"): name for name in column_names(X) or ()}
        names = tuple(given.get(name.replace(" ", "_"), name) for name in names)
    return Schema(tuple(sorted(categories)), categories, names, forest.n_features)


def column_categories(forest: Forest) -> dict[int, tuple[Any, ...]] | None:
    """Return the categories by column; None where they are numbered among columns that the trees do not tell."""
    if forest.library == "xgboost" or not forest.categories:
        return {j: tuple(categories) for j, categories in forest.categories.items()}
    split = np.unique(forest.feature[forest.category_set >= 0]).tolist()
    if len(split) != len(forest.categories):
        return None
    return {j: tuple(forest.categories[i]) for i, j in enumerate(split)}
