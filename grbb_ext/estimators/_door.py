"""What is refused at the door, because numpy or a booster would take it for something else without a word."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext.frames import is_frame

_LARGEST = float(np.finfo(np.float32).max)


def check_container(X: Any) -> None:
    """Refuse rows whose values numpy would turn into numbers without a word.

    Examples
    --------
    >>> check_container(np.array([["2026-01-01"]], dtype="datetime64[D]"))
    Traceback (most recent call last):
    ...
    ValueError: X holds dates or durations. Turn them into numbers, such as days since a date of your choice.
    """
    if isinstance(X, np.ma.MaskedArray):
        raise TypeError("X is a masked array, and masks are not read. Pass X.filled(np.nan): NaN is a missing value.")
    if is_frame(X):
        names = [str(name) for name in X.columns]
        twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
        if twice:
            raise ValueError(f"X has several columns called {twice[0]!r}. Give each column a name of its own.")
    elif getattr(getattr(X, "dtype", None), "kind", None) in ("m", "M"):
        raise ValueError(
            "X holds dates or durations. Turn them into numbers, such as days since a date of your choice."
        )


def check_magnitude(values: Any, what: str) -> None:
    """Refuse numbers that single precision, in which boosters compute, takes for infinite.

    Examples
    --------
    >>> check_magnitude(np.array([1.0, np.nan, 1e300]), "X")
    Traceback (most recent call last):
    ...
    ValueError: X holds numbers as large as 1e+300; boosters compute in single precision, up to 3.4e+38. ...
    """
    numbers = values.data if sp.issparse(values) else values
    # fmax and fmin pass over NaN.
    largest = max(np.fmax.reduce(numbers, axis=None, initial=0.0), -np.fmin.reduce(numbers, axis=None, initial=0.0))
    if largest > _LARGEST:
        raise ValueError(
            f"{what} holds numbers as large as {largest:.3g}; boosters compute in single precision, up to "
            f"{_LARGEST:.2g}. Scale them, or make them missing."
        )


def check_marker(unlabeled: Any) -> None:
    """Refuse a list of markers, which numpy would compare with y element by element."""
    if np.ndim(unlabeled) != 0:
        raise TypeError(f"unlabeled must be one marker, such as -1, got {unlabeled!r}.")


def read_all_classes(classes: Any, unlabeled: Any) -> NDArray[Any] | None:
    """Return the classes that a user lists, in ascending order.

    Examples
    --------
    >>> read_all_classes(["spam", "ham"], -1).tolist()
    ['ham', 'spam']
    """
    if classes is None:
        return None
    listed = np.asarray(classes)
    if listed.ndim == 1 and (listed.dtype.kind == "f" and np.isnan(listed).any()):
        raise ValueError("classes holds NaN, which marks rows without a label. Leave it out.")
    if listed.ndim == 1 and any(type(one) is type(unlabeled) and one == unlabeled for one in listed.tolist()):
        raise ValueError(
            f"classes holds {unlabeled!r}, which marks rows without a label. Leave it out, or pass another unlabeled=."
        )
    return listed if listed.ndim != 1 else np.unique(listed)  # several dimensions are refused further on


def read_columns(listed: Any, names: Sequence[str] | None, n_columns: int) -> set[int]:
    """Return the positions of columns that are listed by name, by position or by a truth value for each.

    Examples
    --------
    >>> sorted(read_columns(["b", 0], ["a", "b"], 2)), sorted(read_columns([True, False], None, 2))
    ([0, 1], [0])
    """
    if isinstance(listed, (str, bytes)) or np.ndim(listed) != 1:
        raise TypeError(f"categorical_features must be 'from_dtype' or a list of columns, got {listed!r}.")
    entries = list(listed)
    if entries and all(isinstance(entry, (bool, np.bool_)) for entry in entries):
        if len(entries) != n_columns:
            raise ValueError(
                f"categorical_features has {len(entries)} truth values, but X has {n_columns} columns. Give one for "
                "each, or list the columns."
            )
        return set(np.flatnonzero(entries).tolist())
    positions = set()
    for entry in entries:
        if isinstance(entry, str):
            known = names is not None and entry in names
        else:
            known = isinstance(entry, Integral) and 0 <= int(entry) < n_columns
        if not known:
            raise ValueError(f"categorical_features names column {entry!r}, but X has no such column.")
        positions.add(names.index(entry) if names is not None and isinstance(entry, str) else int(entry))
    return positions


def check_callbacks(callbacks: Any) -> list[Any]:
    """Return the callbacks as a list; entries are functions (LightGBM) or TrainingCallbacks (XGBoost)."""
    if callbacks is None:
        return []
    if not isinstance(callbacks, (list, tuple)):
        raise TypeError(f"callbacks must be a list, got {callbacks!r}. Put it in a list.")
    for entry in callbacks:
        if not (callable(entry) or hasattr(entry, "after_iteration")):
            raise TypeError(f"callbacks must hold callbacks of the booster's library, got {entry!r}.")
    return list(callbacks)


def check_rounds(value: Any) -> int:
    """Return the number of rounds."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"n_estimators of the wrapped estimator must be a positive integer, got {value!r}.")
    return int(value)
