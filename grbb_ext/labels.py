"""Labels: which rows have one, which classes there are, the targets of a loss, and weights of rows and classes."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Number
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from grbb_ext._options import one_of
from grbb_ext._progress import warn_caller
from grbb_ext.losses import LogisticLoss, Loss, SoftmaxLoss, SquaredErrorLoss, per_class
from grbb_ext.table import check_magnitude

LossName = Literal["auto", "logistic", "softmax", "squared_error"]

# What a missing value becomes where labels are turned into text: never meant as a class.
_MISSING_AS_TEXT = ("None", "", "nan", "NaT", "<NA>")


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
    y : ndarray of shape (N,)
        The labels as given, unlabelled rows with their marker.
    unlabeled : object
        The marker.
    """

    loss: Loss
    classes: NDArray[Any] | None
    labeled: NDArray[np.intp]
    targets: NDArray[np.float64]
    y: NDArray[Any]
    unlabeled: Any

    @cached_property
    def n_rows(self) -> int:
        """N."""
        return self.y.size

    @cached_property
    def n_outputs(self) -> int:
        """Scores per row: 1, or K for softmax."""
        return 1 if self.targets.ndim == 1 else self.targets.shape[1]

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """What teachers learn from: equal for equal labels of the same rows."""
        classes = None if self.classes is None else tuple(self.classes.tolist())
        return self.loss.name, classes, self.targets.tobytes(), self.labeled.tobytes()

    def among(self, rows: NDArray[np.intp]) -> Labels:
        """Return the labels of some rows, ascending, that hold all labelled ones."""
        return replace(self, labeled=np.searchsorted(rows, self.labeled), y=self.y[rows])

    def again(self, y: ArrayLike) -> Labels:
        """Read other labels, with the same loss, marker and classes."""
        return read_labels(y, cast(LossName, self.loss.name), self.classes, self.unlabeled)


def is_unlabeled(y: ArrayLike, unlabeled: Any = -1) -> NDArray[np.bool_]:
    """Tell which rows carry no label: the marker, NaN or None.

    Examples
    --------
    >>> is_unlabeled(["spam", None, "ham"]).tolist(), is_unlabeled([0, -1, 1]).tolist()
    ([False, True, False], [False, True, False])
    """
    values = np.asarray(y)
    if values.dtype.kind == "O":
        return np.array([v is None or _is_na(v) or v != v or _same(v, unlabeled) for v in values], dtype=bool)
    missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, dtype=bool)
    kinds = {values.dtype.kind, np.asarray(unlabeled).dtype.kind}
    if len(kinds) == 1 or kinds <= set("iuf"):
        missing |= np.asarray(values == unlabeled, dtype=bool)
    return missing


def plain_array(labels: NDArray[Any]) -> NDArray[Any]:
    """Turn Python objects of one type into an array of that type, which scikit-learn asks for.

    Examples
    --------
    >>> plain_array(np.array([0, 1], dtype=object)).dtype.kind
    'i'
    """
    if labels.dtype.kind not in "OT":
        return labels
    # A list that was filled by hand and from an array holds numbers of Python and of numpy.
    entries = [label.item() if isinstance(label, np.generic) else label for label in labels.tolist()]
    if len(set(map(type, entries))) > 1:
        raise ValueError("y mixes labels of different types. Use one type for all classes.")
    return np.array(entries)


def _is_na(value: Any) -> bool:
    """Tell whether a value is pandas' NA, which is equal to nothing and no truth value."""
    return type(value).__name__ == "NAType"


def _same(value: Any, marker: Any) -> bool:
    """Tell whether a label is the marker: numbers are equal in any precision, but True is not 1."""
    kinds = [
        next((kind for kind in (bool | np.bool_, Number, str) if isinstance(one, kind)), type(one))
        for one in (value, marker)
    ]
    return kinds[0] == kinds[1] and bool(value == marker)


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


def warn_of_strangers(y: NDArray[Any], classes: NDArray[Any]) -> None:
    """Warn of labels to score that are no classes of a model; refuse text beside numbers.

    Any fold may miss a class, so such labels are no error: they count as wrong, as in scikit-learn.
    """
    classes = plain_array(classes)
    known = classes.tolist()
    strangers = sorted(set(y.tolist()) - set(known), key=str)[:5]
    if (y.dtype.kind == "U") != (classes.dtype.kind == "U"):
        raise ValueError(f"y holds {strangers}, but the classes of the model are {known}. Use the labels given to fit.")
    if strangers:
        warn_caller(
            f"y holds labels that are no classes of the model: {strangers}. They count as wrong. The classes are "
            f"{known}; fit(..., classes=) adds classes that have no label.",
            UserWarning,
        )


def read_labels(
    y: Any, loss: LossName = "auto", classes: ArrayLike | None = None, unlabeled: Any = -1, name: str = "grbb_objective"
) -> Labels:
    """Split y into labelled and unlabelled rows and choose the loss.

    Parameters
    ----------
    y : array-like of shape (N,)
        Labels; `unlabeled`, NaN or None marks a row without one.
    loss : {"auto", "logistic", "softmax", "squared_error"}, default="auto"
        ``"auto"``: logistic for two classes, softmax for more.
    classes : array-like or None, default=None
        All classes, where y may miss some; None takes those of the labelled rows.
    unlabeled : object, default=-1
        The marker, -1 in scikit-learn.
    name : str, default="grbb_objective"
        Who asks, for messages.

    Returns
    -------
    Labels
        The labelled rows and their targets.

    Examples
    --------
    >>> labels = read_labels([8, -1, 3, -1])
    >>> labels.classes.tolist(), labels.labeled.tolist(), labels.targets.tolist()
    ([3, 8], [0, 2], [1.0, 0.0])
    """
    if isinstance(y, Labels):
        return y
    one_of(loss, get_args(LossName), "loss")
    if loss == "squared_error":
        if unlabeled != -1 and not is_unlabeled([unlabeled], None)[0]:
            raise ValueError(
                f"unlabeled={unlabeled!r} is for classes. In a regression NaN marks rows: use np.where(y == "
                f"{unlabeled!r}, np.nan, y)."
            )
        numbers = read_numbers(y, name)
        labeled = np.flatnonzero(~np.isnan(numbers))
        _require_labels(labeled, "NaN marks a row without one")
        return Labels(SquaredErrorLoss(), None, labeled, numbers[labeled], numbers, np.nan)

    values = read_classes(y, unlabeled, name, classes)
    labeled = np.flatnonzero(~is_unlabeled(values, unlabeled))
    _require_labels(labeled, f"{unlabeled!r}, NaN or None marks a row without one")
    seen = plain_array(values[labeled])
    present = np.unique(seen)
    known = present if classes is None else _check_classes(classes, unlabeled)
    code = encode(seen, known)
    if present.size == 1:
        only = present.tolist()[0]
        if classes is None:
            raise ValueError(
                f"Only the class {only!r} is labelled, so there is nothing to tell apart. Label a row of another class,"
                f" or name all of them with classes=. ({unlabeled!r} marks unlabelled rows: if it is one of your "
                "classes, recode y or pass another marker as unlabeled=.)"
            )
        warn_caller(f"Only the class {only!r} is labelled.", UserWarning)
    values = values.copy()  # the caller may go on to fill in labels
    if loss == "logistic" and known.size > 2:
        raise ValueError(f"loss='logistic' is for two classes, y has {known.size}: use loss='softmax' or 'auto'.")
    if loss == "logistic" or (loss == "auto" and known.size == 2):
        return Labels(LogisticLoss(), known, labeled, code.astype(np.float64), values, unlabeled)
    return Labels(SoftmaxLoss(), known, labeled, np.eye(known.size)[code], values, unlabeled)


def _require_labels(labeled: NDArray[np.intp], marks: str) -> None:
    if labeled.size == 0:
        raise ValueError(f"y has no labelled row ({marks}). Label at least one row.")


def listed_classes(classes: Any) -> NDArray[Any]:
    """Return what was given as ``classes=`` as an array of one type; those of a set are sorted.

    Examples
    --------
    >>> listed_classes({"yes", "no"}).tolist(), listed_classes(np.array(["a", "b"], dtype=object)).dtype.kind
    (['no', 'yes'], 'U')
    """
    return np.atleast_1d(plain_array(np.sort(list(classes)) if isinstance(classes, Set) else np.asarray(classes)))


def _check_classes(classes: ArrayLike, unlabeled: Any) -> NDArray[Any]:
    known = listed_classes(classes)
    if known.ndim != 1 or known.size < 2 or np.unique(known).size != known.size:
        raise ValueError(f"classes must list at least two different labels, got {known.tolist()}.")
    if known.dtype.kind == "f" and np.isnan(known).any():
        raise ValueError("classes holds NaN, which marks rows without a label. Leave it out.")
    if any(_same(one, unlabeled) for one in known.tolist()):
        raise ValueError(
            f"classes holds {unlabeled!r}, which marks rows without a label. Leave it out, or pass another unlabeled=."
        )
    return known


_LARGEST_WEIGHT = 1e30

ClassWeight = Literal["balanced"] | Mapping[Any, float] | None


def warn_of_another_order(X: Any, values: Any, name: str = "y") -> None:
    """Warn where pandas' index says that labels or weights are those of the rows of X in another order."""
    if not (hasattr(X, "iloc") and hasattr(values, "iloc")) or len(X) != len(values) or X.index.equals(values.index):
        return
    if X.index.is_unique and values.index.is_unique and values.index.isin(X.index).all():
        what = "weights" if name == "sample_weight" else "labels"
        warn_caller(
            f"{name} has the index of X, but in another order: rows and {what} are paired by their place, as "
            f"scikit-learn does. Pass {name}.loc[X.index] to pair them by the index, or {name}.to_numpy() if the "
            "places are right.",
            UserWarning,
        )


def check_sample_weight(sample_weight: ArrayLike | None, n_rows: int) -> NDArray[np.float64] | None:
    """Return the weights as floats, or say what is wrong with them.

    Examples
    --------
    >>> check_sample_weight([1, 2], 2).tolist()
    [1.0, 2.0]
    """
    if sample_weight is None:
        return None
    _refuse_mask(sample_weight, "sample_weight", "sample_weight.filled(0): rows of weight 0 do not count")
    try:
        weight = np.array(sample_weight, dtype=np.float64)  # kept, and the caller may change his own
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight must hold one number for each row ({error}).") from error
    if weight.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must have one weight for each of the {n_rows} rows, labelled and unlabelled; "
            f"got shape {weight.shape}."
        )
    if not np.isfinite(weight).all() or weight.min(initial=0.0) < 0:
        raise ValueError("sample_weight must be finite and not negative.")
    if weight.max(initial=0.0) > _LARGEST_WEIGHT:
        raise ValueError(
            f"sample_weight holds {weight.max():.3g}; gradients in single precision need weights up to "
            f"{_LARGEST_WEIGHT:g}. Divide the weights by a constant."
        )
    return weight


def class_weights(class_weight: ClassWeight, labels: Labels) -> NDArray[np.float64] | None:
    """Return the weight of each class, or None where all weigh 1.

    ``"balanced"`` is n / (K n_k) with the labelled counts n_k, as in scikit-learn.

    Examples
    --------
    >>> from grbb_ext.labels import read_labels
    >>> class_weights("balanced", read_labels([0, 0, 0, 1, -1], "auto", None, -1)).round(3).tolist()
    [0.667, 2.0]
    """
    if class_weight is None:
        return None
    if labels.classes is None:
        raise ValueError("class_weight is for classification; use sample_weight with squared error.")
    if isinstance(class_weight, str) and class_weight == "balanced":
        count = per_class(labels.targets).sum(axis=0)
        return np.asarray(labels.labeled.size / (count.size * np.maximum(count, 1.0)))
    given: Any = class_weight  # a dict or a pandas Series
    if not hasattr(given, "items"):
        raise (ValueError if isinstance(given, str) else TypeError)(
            f"class_weight must be 'balanced', a dict or None, got {class_weight!r}."
        )
    known = labels.classes.tolist()
    class_weight = dict(given.items())
    unknown = [key for key in class_weight if key not in known]
    if unknown:
        raise ValueError(f"class_weight names {unknown}, which are not among the classes {known}.")
    weight = np.array([class_weight.get(label, 1.0) for label in known], dtype=np.float64)
    if not np.isfinite(weight).all() or weight.min() < 0:
        raise ValueError(f"class_weight must be finite and not negative, got {class_weight}.")
    if not weight.any():
        raise ValueError("class_weight is 0 for every class, so there is nothing to learn from.")
    return weight


def mixed_weight(targets: NDArray[np.floating[Any]], of_class: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean class weight of each row under its target distribution.

    Examples
    --------
    >>> mixed_weight(np.array([0.0, 0.5, 1.0]), np.array([1.0, 3.0])).tolist()
    [1.0, 2.0, 3.0]
    """
    return np.asarray(per_class(targets) @ of_class)


def _refuse_mask(values: Any, name: str, way_out: str) -> None:
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, and masks are not read. Pass {way_out}.")


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
    _refuse_mask(y, "y", "np.where(y.mask, None, y.data): None marks a row without a label")
    if hasattr(y, "null_count") and hasattr(y, "to_list"):  # polars
        y = y.to_list() if y.null_count() else y.to_numpy()
    elif hasattr(y, "to_pylist") and y.null_count:  # pyarrow, which makes floats of whole numbers beside null
        y = y.to_pylist()
    elif hasattr(y, "isna") and getattr(y, "ndim", 1) == 1:  # pandas, where numpy does so with categories
        missing = np.asarray(y.isna())
        y = np.array(y.astype(object), dtype=object) if missing.any() else np.asarray(y)
        if missing.any():
            y[missing] = None
    values = np.asarray(y)
    if values.dtype.kind == "T":  # text of numpy 2
        values = values.astype(object)
    if values.dtype.kind in "US" and not isinstance(y, np.ndarray):
        values = np.array(y, dtype=object)
    if values.dtype.kind == "O":
        values = values.copy()
        values[np.asarray(np.frompyfunc(_is_na, 1, 1)(values), dtype=bool)] = None
    try:
        values = column_or_1d(values, warn=True)
    except ValueError as error:
        raise ValueError(f"{error} It must be one-dimensional, one label per row.") from error
    kinds = {type(value) for value in values} if values.dtype.kind == "O" else set()
    if len(kinds) == 1 and kinds <= {int, float, str, bool, np.str_}:
        values = np.array(values.tolist())
    if values.dtype.kind == "c":
        raise ValueError("Complex data not supported: y must hold labels or real numbers.")
    return values


def read_classes(y: Any, unlabeled: Any, name: str, classes: ArrayLike | None = None) -> NDArray[Any]:
    """Return y of a classifier, and refuse what cannot be classes, unless `classes` lists it."""
    if np.ndim(unlabeled) != 0:  # numpy would compare a list of markers with y element by element
        raise TypeError(f"unlabeled must be one marker, such as -1, got {unlabeled!r}.")
    values = read_target(y, name)
    if values.dtype.kind in "mM":
        raise ValueError("y holds dates or durations. Make text or integers of them, None where unlabelled.")
    if values.dtype.kind == "f" and np.isinf(values).any():
        raise ValueError(
            "Input y contains infinity or a value too large for dtype('float64'). Use classes and markers."
        )
    seen = values[~is_unlabeled(values, unlabeled)]
    listed = () if classes is None else listed_classes(classes).tolist()
    check_text(seen, unlabeled, *(text for text in _MISSING_AS_TEXT if text not in listed))
    if seen.size:
        plain = np.array(plain_array(seen).tolist())
        if plain.dtype.kind == "S":  # scikit-learn 1.6 only warns
            raise TypeError("Labels represented as bytes are not supported. Decode them, e.g. y.astype(str).")
        try:
            # Each class twice: scikit-learn warns where most labels are of classes of their own, as few labels may be.
            check_classification_targets(np.repeat(np.unique(plain), 2))
        except ValueError as error:
            raise ValueError(
                f"{error} Classes are text, integers or truth values. For regression use GRBBRegressor, or "
                "loss='squared_error' of grbb_objective (NaN marks an unlabelled row)."
            ) from error
    return values


def check_text(labels: NDArray[Any], unlabeled: Any, *also: str) -> None:
    """Refuse labels that are the marker turned into text or into a number, or one of the texts in `also`."""
    number = _as_number(unlabeled)
    if number is not None and is_unlabeled(labels, number).any():
        raise ValueError(
            f"y holds the number {unlabeled}, but the marker of unlabelled rows is the text {unlabeled!r}. Pass "
            f"unlabeled={unlabeled}."
        )
    for text in also if isinstance(unlabeled, str) else (str(unlabeled), *also):
        if labels.dtype.kind in "OU" and (labels == text).any():
            raise ValueError(
                f"y holds the text {text!r}, but the marker of unlabelled rows is {unlabeled!r}. Pass "
                f"unlabeled={text!r}, or a list that keeps numbers and text apart."
            )


def _as_number(text: Any) -> float | None:
    """Return the number that a text is; None for other text, and for what is no text."""
    try:
        return float(text) if isinstance(text, str) else None
    except ValueError:
        return None


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
            "Input y contains infinity or a value too large for dtype('float64'). Use NaN for an unlabelled row, "
            "and no infinite values."
        )
    check_magnitude(numbers, "y")
    return numbers
