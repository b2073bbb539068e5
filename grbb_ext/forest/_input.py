"""Rows as a library sees them: its precision, its missing values, its category codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext.forest._walk import ZERO

if TYPE_CHECKING:
    from grbb_ext.forest._forest import Forest


def as_rows(forest: Forest, X: Any) -> NDArray[Any]:
    """Return X as the library of the forest would read it.

    Parameters
    ----------
    forest : Forest
        The model.
    X : array-like, sparse matrix or pandas.DataFrame of shape (N, d)
        Rows. Absent entries of a sparse matrix are missing for XGBoost and 0 for LightGBM, as in the libraries.

    Returns
    -------
    ndarray of shape (N, d)
        Contiguous; float32 for XGBoost, float64 for LightGBM; missing values are NaN.

    Raises
    ------
    ValueError
        If the shape or the names of the columns do not fit, or an entry is not a number.
    """
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        values = _from_frame(forest, X)
    elif sp.issparse(X):
        values = _from_sparse(forest, X)
    else:
        values = _from_array(X)
    if values.ndim != 2 or values.shape[1] != forest.n_features:
        raise ValueError(f"X must have the {forest.n_features} columns of the model, got shape {values.shape}.")
    values = np.ascontiguousarray(values, dtype=forest.threshold.dtype)
    if not np.isnan(forest.missing):
        values = np.where(values == values.dtype.type(forest.missing), values.dtype.type(np.nan), values)
    if forest.library == "lightgbm" and not (sp.issparse(X) and X.format != "csc"):
        # LightGBM reads numbers that are that small as 0, except from sparse rows.
        tiny = (np.abs(values) <= ZERO) & (values != 0)
        if tiny.any():
            values = np.where(tiny, 0.0, values)
    return values


def _from_array(X: Any) -> NDArray[Any]:
    values = np.asarray(X)
    if values.dtype in (np.float32, np.float64):
        return values
    try:
        # LightGBM reads everything that is not a float as float32, and so large integers lose digits.
        return values.astype(np.float32)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X has entries that are not numbers ({error}). Pass category codes, or a DataFrame with the categorical "
            "columns that the model was trained on."
        ) from error


def _from_sparse(forest: Forest, X: Any) -> NDArray[Any]:
    entries = sp.coo_array(X)
    absent = np.nan if forest.library == "xgboost" else 0.0
    values = np.full(entries.shape, absent, dtype=forest.threshold.dtype)
    entries.sum_duplicates()
    row, column = entries.coords
    values[row, column] = entries.data
    return values


def _from_frame(forest: Forest, X: Any) -> NDArray[Any]:
    names = [str(name) for name in X.columns]
    expected = forest.feature_names
    if expected is not None and _spelled(forest, names) != _spelled(forest, expected):
        raise ValueError(
            f"The columns of X are not those of the model, or in another order. Pass X[{list(expected)[:4]}...]."
        )
    kinds = [str(X.iloc[:, j].dtype) for j in range(len(names))]
    values = np.empty(X.shape, dtype=np.float64)
    categorical = [j for j, kind in enumerate(kinds) if kind == "category"]
    for j, kind in enumerate(kinds):
        column = X.iloc[:, j]
        if kind == "category":
            position = j if forest.library == "xgboost" else categorical.index(j)
            values[:, j] = _codes(forest, column, position, names[j])
            continue
        try:
            values[:, j] = column.to_numpy(dtype=np.float64, na_value=np.nan)
        except (TypeError, ValueError) as error:
            raise ValueError(f"Column {names[j]!r} of X is not numeric ({error}).") from error
    return values


def _spelled(forest: Forest, names: Any) -> list[str]:
    """Return names as the model's file spells them: LightGBM replaces blanks."""
    return ["_".join(name.split(" ")) if forest.library == "lightgbm" else name for name in names]


def _codes(forest: Forest, column: Any, position: int, name: str) -> NDArray[np.float64]:
    """Return the training codes of a categorical column, NaN where it is empty."""
    codes = column.cat.codes.to_numpy()
    present = column.cat.categories.tolist()
    trained = forest.categories.get(position)
    if trained is None and forest.categories:
        raise ValueError(f"Column {name!r} of X is categorical, but was not when the model was trained.")
    # Without stored names the codes themselves are what the model knows.
    table = np.arange(len(present), dtype=np.float64)
    if trained is not None and list(trained) != present:
        code_of = {category: float(code) for code, category in enumerate(trained)}
        unseen = [category for category in present if category not in code_of]
        if unseen and forest.library == "xgboost":
            raise ValueError(f"Column {name!r} of X has categories that the model never saw: {unseen[:5]}.")
        table = np.array([code_of.get(category, np.nan) for category in present])
    return np.asarray(np.append(table, np.nan)[codes])
