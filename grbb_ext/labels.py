"""Labels: which rows have one, which classes there are, and the targets that a loss compares scores with."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grbb_ext.losses import LogisticLoss, Loss, SoftmaxLoss, SquaredErrorLoss

LossName = Literal["auto", "logistic", "softmax", "squared_error"]


@dataclass(frozen=True)
class Labels:
    """What y says.

    Attributes
    ----------
    loss : Loss
        The loss that suits y.
    classes : ndarray of shape (K,) or None
        The classes in ascending order, or as given; None for regression.
    labeled : ndarray of int of shape (n,)
        The labelled rows.
    targets : ndarray of shape (n,) or (n, K)
        0/1, one-hot, or the values of y.
    n_rows : int
        N.
    """

    loss: Loss
    classes: NDArray[Any] | None
    labeled: NDArray[np.intp]
    targets: NDArray[np.float64]
    n_rows: int

    def among(self, rows: NDArray[np.intp]) -> Labels:
        """Return the labels of some rows, ascending, that hold all labelled ones."""
        return replace(self, labeled=np.searchsorted(rows, self.labeled), n_rows=rows.size)


def is_unlabeled(y: ArrayLike, unlabeled: Any = -1) -> NDArray[np.bool_]:
    """Tell which rows carry no label: the marker, NaN or None.

    Examples
    --------
    >>> is_unlabeled(["spam", None, "ham"]).tolist(), is_unlabeled([0, -1, 1]).tolist()
    ([False, True, False], [False, True, False])
    """
    values = np.asarray(y)
    if values.dtype.kind == "O":
        return np.array([v is None or v != v or _same(v, unlabeled) for v in values], dtype=bool)
    missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, dtype=bool)
    if np.asarray(unlabeled).dtype.kind == values.dtype.kind or {values.dtype.kind} <= set("iuf"):
        missing |= np.asarray(values == unlabeled, dtype=bool)
    return missing


def _same(value: Any, marker: Any) -> bool:
    return type(value) is type(marker) and bool(value == marker)


def encode(values: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """Return the position of each value among the classes.

    Examples
    --------
    >>> encode(np.array([8, 3, 8]), np.array([3, 8])).tolist()
    [1, 0, 1]
    """
    order = np.argsort(classes, kind="stable")
    position = np.searchsorted(classes, values, sorter=order)
    found = order[np.minimum(position, classes.size - 1)]
    unknown = classes[found] != values
    if np.any(unknown):
        strangers = np.unique(values[unknown])[:5].tolist()
        raise ValueError(f"y holds labels outside the classes {classes.tolist()}: {strangers}. Add them to classes=.")
    return np.asarray(found, dtype=np.intp)


def read_labels(y: ArrayLike, loss: LossName, classes: ArrayLike | None, unlabeled: Any) -> Labels:
    """Split y into labelled and unlabelled rows and choose the loss.

    Parameters
    ----------
    y : array-like of shape (N,)
        Labels; `unlabeled`, NaN or None marks a row without one.
    loss : {"auto", "logistic", "softmax", "squared_error"}
        ``"auto"``: logistic for two classes, softmax for more.
    classes : array-like or None
        All classes, where y may miss some; None takes those of the labelled rows.
    unlabeled : object
        The marker, -1 in scikit-learn.

    Returns
    -------
    Labels
        The labelled rows and their targets.

    Examples
    --------
    >>> labels = read_labels([8, -1, 3, -1], "auto", None, -1)
    >>> labels.classes.tolist(), labels.labeled.tolist(), labels.targets.tolist()
    ([3, 8], [0, 2], [1.0, 0.0])
    """
    if loss not in ("auto", "logistic", "softmax", "squared_error"):
        raise ValueError(f"loss must be 'auto', 'logistic', 'softmax' or 'squared_error', got {loss!r}.")
    values = np.asarray(y)
    if values.ndim != 1:
        raise ValueError(f"y must be one-dimensional, one label per row; got shape {values.shape}.")
    if loss == "squared_error":
        return _regression_labels(values)

    labeled = np.flatnonzero(~is_unlabeled(values, unlabeled))
    _require_labels(labeled, f"{unlabeled!r}, NaN or None marks a row without one")
    seen = values[labeled]
    if seen.dtype.kind == "O" and len({type(v) for v in seen}) == 1:
        seen = np.array(seen.tolist())
    if loss == "auto" and seen.dtype.kind == "f" and np.any(seen != np.round(seen)):
        raise ValueError("y looks continuous. For regression pass loss='squared_error' (NaN marks an unlabelled row).")
    try:
        present = np.unique(seen)
    except TypeError as error:
        raise ValueError("y mixes labels of different types. Use one type for all classes.") from error
    known = present if classes is None else _check_classes(classes)
    code = encode(seen, known)
    if present.size == 1:
        only = present.tolist()[0]
        if classes is None:
            raise ValueError(
                f"Only the class {only!r} is labelled, so there is nothing to tell apart. Label a row of another class,"
                f" or name all of them with classes=. ({unlabeled!r} marks unlabelled rows: if it is one of your "
                "classes, recode y or pass another marker as unlabeled=.)"
            )
        warnings.warn(f"Only the class {only!r} is labelled.", UserWarning, stacklevel=3)
    if loss == "logistic" and known.size > 2:
        raise ValueError(f"loss='logistic' is for two classes, y has {known.size}: use loss='softmax' or 'auto'.")
    if loss == "logistic" or (loss == "auto" and known.size == 2):
        return Labels(LogisticLoss(), known, labeled, code.astype(np.float64), values.size)
    return Labels(SoftmaxLoss(), known, labeled, np.eye(known.size)[code], values.size)


def _regression_labels(values: NDArray[Any]) -> Labels:
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"loss='squared_error' needs numbers in y, NaN where unlabelled ({error}).") from error
    if np.isinf(numbers).any():
        raise ValueError("y holds infinite values. Use NaN for an unlabelled row and finite numbers elsewhere.")
    labeled = np.flatnonzero(~np.isnan(numbers))
    _require_labels(labeled, "NaN marks a row without one")
    return Labels(SquaredErrorLoss(), None, labeled, numbers[labeled], numbers.size)


def _require_labels(labeled: NDArray[np.intp], marks: str) -> None:
    if labeled.size == 0:
        raise ValueError(f"y has no labelled row ({marks}). Label at least one row.")


def _check_classes(classes: ArrayLike) -> NDArray[Any]:
    known = np.asarray(classes)
    if known.ndim != 1 or known.size < 2 or np.unique(known).size != known.size:
        raise ValueError(f"classes must list at least two different labels, got {known.tolist()}.")
    return known
