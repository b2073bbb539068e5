"""y as it comes: lists, arrays and series, with the markers of unlabelled rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from grbb_ext.estimators._door import check_magnitude, check_marker
from grbb_ext.labels import is_unlabeled


def read_target(y: Any, name: str) -> NDArray[Any]:
    """Return y as a one-dimensional array; None, NaN and pandas' NA stay what they are or become None.

    Parameters
    ----------
    y : array-like of shape (N,)
        Labels.
    name : str
        Of the estimator, for messages.

    Examples
    --------
    Text and a number in one list stay apart:

    >>> read_target(["spam", -1, "ham"], "GRBBClassifier").tolist()
    ['spam', -1, 'ham']
    """
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None. Mark unlabelled rows in it.")
    if hasattr(y, "null_count") and hasattr(y, "to_list"):  # polars
        y = y.to_list() if y.null_count() else y.to_numpy()
    elif hasattr(y, "isna") and getattr(y, "ndim", 1) == 1:  # pandas
        missing = np.asarray(y.isna())
        y = np.array(y, dtype=object) if missing.any() else np.asarray(y)
        if missing.any():
            y[missing] = None
    values = np.asarray(y)
    if values.dtype.kind in "US" and not isinstance(y, np.ndarray):
        values = np.array(y, dtype=object)
    values = column_or_1d(values, warn=True)
    if values.dtype.kind == "O":
        values = _narrow(values)
    if values.dtype.kind == "c":
        raise ValueError("Complex data not supported: y must hold labels or real numbers.")
    return values


def read_classes(y: Any, unlabeled: Any, name: str) -> NDArray[Any]:
    """Return y of a classifier, and refuse what cannot be classes."""
    check_marker(unlabeled)
    values = read_target(y, name)
    if values.dtype.kind == "f" and np.isinf(values).any():
        raise ValueError(
            "Input y contains infinity or a value too large for dtype('float64'). Use classes and markers."
        )
    seen = values[~is_unlabeled(values, unlabeled)]
    if seen.dtype.kind in "OU" and not isinstance(unlabeled, str) and (seen == str(unlabeled)).any():
        raise ValueError(
            f"y holds the text {str(unlabeled)!r}, but the marker of unlabelled rows is {unlabeled!r}. Pass "
            f"unlabeled={str(unlabeled)!r}, or a list that keeps numbers and text apart."
        )
    if seen.size:
        if len({type(label) for label in seen.tolist()}) > 1:
            raise ValueError("y mixes labels of different types. Use one type for all classes.")
        if isinstance(seen[0], bytes):  # scikit-learn 1.6 only warns
            raise TypeError("Labels represented as bytes are not supported. Decode them, e.g. y.astype(str).")
        check_classification_targets(np.array(seen.tolist()))
    return values


def read_numbers(y: Any, name: str) -> NDArray[np.float64]:
    """Return y of a regressor as floats, NaN where unlabelled."""
    values = read_target(y, name)
    if values.dtype.kind in "mMSU":
        raise ValueError(f"{name} needs numbers in y, NaN where unlabelled; got text, dates or durations.")
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} needs numbers in y, NaN where unlabelled ({error}).") from error
    if np.isinf(numbers).any():
        raise ValueError(
            "Input y contains infinity or a value too large for dtype('float64'). Use NaN for an unlabelled row."
        )
    check_magnitude(numbers, "y")
    return numbers


def _narrow(values: NDArray[Any]) -> NDArray[Any]:
    """Give an array of objects the type that its values share."""
    kinds = {type(value) for value in values}
    if len(kinds) == 1 and kinds <= {int, float, str, bool, np.str_}:
        return np.array(values.tolist())
    return values
