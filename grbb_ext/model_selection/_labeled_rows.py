"""Which rows can be tested or scored: those with a label."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from grbb_ext.estimators._target import read_target
from grbb_ext.labels import is_unlabeled


def labeled_rows(y: Any, unlabeled: Any = -1) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return y as an array, and which of its rows are labelled.

    Where y holds fractions it is taken for the target of a regression: -1 is a number there, and only NaN marks.

    Parameters
    ----------
    y : array-like of shape (N,)
        Labels.
    unlabeled : object, default=-1
        The marker; NaN and None mark too.

    Returns
    -------
    values : ndarray of shape (N,)
        y itself.
    labeled : ndarray of bool of shape (N,)
        Whether a row has a label.

    Examples
    --------
    >>> labeled_rows([0, -1, 1])[1].tolist(), labeled_rows([0.5, -1.0, np.nan])[1].tolist()
    ([True, False, True], [True, True, False])
    """
    values = _floats(read_target(y, "Model selection"))
    labeled = ~is_unlabeled(values, np.nan if is_continuous(values) else unlabeled)
    if values.dtype.kind in "OU" and not isinstance(unlabeled, str) and (values[labeled] == str(unlabeled)).any():
        raise ValueError(
            f"y holds the text {str(unlabeled)!r}, but the marker of unlabelled rows is {unlabeled!r}. Pass "
            f"unlabeled={str(unlabeled)!r}, or a list that keeps numbers and text apart."
        )
    return values, labeled


def _floats(values: NDArray[Any]) -> NDArray[Any]:
    """Turn floats and None, which a series with missing values becomes, into floats and NaN."""
    if values.dtype.kind == "O" and {type(value) for value in values} == {float, type(None)}:
        return values.astype(np.float64)
    return values


def is_continuous(values: NDArray[Any]) -> bool:
    """Tell whether y holds fractions, so that its values cannot be classes.

    Examples
    --------
    >>> is_continuous(np.array([0.5, 1.0])), is_continuous(np.array([0.0, np.nan])), is_continuous(np.array(["a"]))
    (True, False, False)
    """
    return values.dtype.kind == "f" and bool(np.any(values[np.isfinite(values)] % 1))


def take_rows(values: Any, rows: NDArray[np.intp]) -> Any:
    """Return some rows of an array, a sparse matrix, a frame or a list, as what it is.

    Examples
    --------
    >>> take_rows(["a", "b", "c"], np.array([2, 0])).tolist()
    ['c', 'a']
    """
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    if hasattr(values, "tocsr"):
        return values.tocsr()[rows]
    return values[rows] if hasattr(values, "__array__") else np.asarray(values)[rows]


def plain_array(values: NDArray[Any]) -> NDArray[Any]:
    """Turn Python objects of one type into an array of that type, which scikit-learn asks for.

    Examples
    --------
    >>> plain_array(np.array([0, 1], dtype=object)).dtype.kind
    'i'
    """
    if values.dtype.kind != "O":
        return values
    if len({type(value) for value in values}) > 1:
        raise ValueError("y mixes labels of different types. Use one type for all classes.")
    return np.array(values.tolist())
