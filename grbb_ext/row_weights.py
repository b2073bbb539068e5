"""Weights of rows and classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grbb_ext.labels import Labels

_LARGEST_WEIGHT = 1e30

ClassWeight = Literal["balanced"] | Mapping[Any, float] | None


def check_sample_weight(sample_weight: ArrayLike | None, n_rows: int) -> NDArray[np.float64] | None:
    """Return the weights as floats, or say what is wrong with them.

    Examples
    --------
    >>> check_sample_weight([1, 2], 2).tolist()
    [1.0, 2.0]
    """
    if sample_weight is None:
        return None
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
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
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ValueError(f"class_weight must be 'balanced', a dict or None, got {class_weight!r}.")
        one_hot = _per_class(labels.targets)
        count = one_hot.sum(axis=0)
        return np.asarray(one_hot.shape[0] / (count.size * np.maximum(count, 1.0)))
    if not isinstance(class_weight, Mapping):
        raise TypeError(f"class_weight must be 'balanced', a dict or None, got {class_weight!r}.")
    known = labels.classes.tolist()
    unknown = [key for key in class_weight if key not in known]
    if unknown:
        raise ValueError(f"class_weight names {unknown}, which are not among the classes {known}.")
    weight = np.array([class_weight.get(label, 1.0) for label in known], dtype=np.float64)
    if not np.isfinite(weight).all() or weight.min() < 0:
        raise ValueError(f"class_weight must be finite and not negative, got {dict(class_weight)}.")
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
    return np.asarray(_per_class(targets) @ of_class)


def _per_class(targets: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    return np.column_stack([1.0 - targets, targets]) if targets.ndim == 1 else targets
