"""Raw scores, checked at every round: boosters accept wrong shapes and NaN without a word."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from grbb_ext._progress import warn_caller
from grbb_ext.labels import Labels
from grbb_ext.losses import Floats

_XGBOOST_DEFAULT_START = 0.5
# Where XGBoost starts with a base_score of 0 or 1: at the logit of 1e-6 or of 1 - 1e-6, in single precision.
_FAR_STARTS = (13.7, 13.9)


def check_raw_scores(raw_scores: ArrayLike, n_rows: int, n_outputs: int, *, single_precision: bool) -> Floats:
    """Return the scores as floats of shape (N,) or (N, K), or say what is wrong with them.

    Parameters
    ----------
    raw_scores : array-like
        What a booster or a user passed.
    n_rows, n_outputs : int
        N and K; K is 1 for a single score per row.
    single_precision : bool
        Convert to float32, the precision in which boosters take gradients.

    Returns
    -------
    ndarray of shape (N,) or (N, K)
        Finite, float32 or float64.

    Examples
    --------
    >>> check_raw_scores([0.0, 1.0], 2, 1, single_precision=True).dtype
    dtype('float32')
    """
    H = np.asarray(raw_scores)
    expected = (n_rows,) if n_outputs == 1 else (n_rows, n_outputs)
    if H.shape != expected:
        raise ValueError(_shape_message(H.shape, expected))
    if single_precision or H.dtype != np.float32:
        H = H.astype(np.float32 if single_precision else np.float64, copy=False)
    if not _all_finite(H):
        bad = int(np.flatnonzero(~np.isfinite(H).reshape(n_rows, -1).all(axis=1))[0])
        raise ValueError(
            f"raw_scores are not finite (first at row {bad}). Training has diverged: lower the learning rate, or raise "
            "the booster's L2 regularisation (lambda, lambda_l2)."
        )
    return H


def warn_of_probabilities(H: Floats) -> None:
    """Warn where a booster that names its loss seems to have predicted probabilities: all would be the second class."""
    if H.ndim == 1:
        alike = H.size > 1 and 0 <= H.min() < 0.5 < H.max() <= 1
    else:
        alike = H.size > 0 and H.min() >= 0 and np.allclose(H.sum(axis=1), 1, atol=1e-5)
    if alike:
        warn_caller(
            "raw_scores look like probabilities, and are taken for raw scores. Use them as they are, or pass those of "
            "predict(..., output_margin=True) of XGBoost or predict(..., raw_score=True) of LightGBM.",
            UserWarning,
        )


def _all_finite(values: Floats) -> bool:
    # The sum is one pass and is finite unless an entry is not (or it overflows, which the second look settles).
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum(dtype=np.float64)
    return bool(np.isfinite(total) or np.isfinite(values).all())


def check_gradients(gradient: Floats, hessian: Floats) -> None:
    """Raise where a gradient or hessian is not finite: boosters would grow trees on it without a word."""
    if not (_all_finite(gradient) and _all_finite(hessian)):
        raise ValueError(
            "Gradients are not finite: weights, lam or the scores are too large for single precision. Scale "
            "sample_weight, class_weight, lam or the graph down."
        )


def _shape_message(shape: tuple[int, ...], expected: tuple[int, ...]) -> str:
    message = f"raw_scores must have shape {expected}, got {shape}."
    if len(expected) == 2 and shape == expected[::-1]:
        return f"{message} That is (classes, rows): pass the transpose."
    if len(expected) == 2 and shape == expected[:1]:
        return f"{message} Set the booster's parameter num_class={expected[1]}."
    if len(expected) == 1 and len(shape) == 2:
        return f"{message} There is one score per row here: leave num_class out of the booster's parameters."
    return (
        f"{message} The data set must hold the rows of y, labelled and unlabelled, in the same order. For "
        "cross-validation use cv of grbb_ext.adapters.xgboost or .lightgbm."
    )


def check_data(H: Floats, data: Any, labels: Labels) -> None:
    """Look at what a booster passes along with its scores.

    Parameters
    ----------
    H : ndarray
        Checked scores.
    data : object
        The second argument of the objective.
    labels : Labels
        Those of the objective.

    Raises
    ------
    TypeError
        If the call has the order of scikit-learn's wrappers, (labels, scores).
    ValueError
        If XGBoost starts at its default of 0.5 or at the logit of 0 or 1, if the data set has weights, which boosters
        do not apply to a custom objective, or if it has labels that are not those of y: its rows may stand in another
        order.
    """
    if isinstance(data, np.ndarray):
        raise TypeError(
            "The objective was called as (labels, scores), as XGBClassifier and LGBMClassifier do. "
            "Use xgboost.train(..., obj=obj) or lightgbm.train({'objective': obj}, ...)."
        )
    _check_labels(data, labels)
    weights = data.get_weight() if hasattr(data, "get_weight") else None
    if weights is not None and np.size(weights):
        raise ValueError(
            "The data set has weights, which boosters do not apply to a custom objective. Pass them to grbb_objective "
            "as sample_weight= and leave them out of the data set."
        )
    first = H.flat[0]
    if H.flat[-1] == first and (first == H).all():  # else not the first round, or a start for each row
        _check_start(float(first), data, labels)


def _check_start(start: float, data: Any, labels: Labels) -> None:
    """Refuse the starts that XGBoost makes of a base_score that is left out, or that means something else."""
    base_margin = getattr(data, "get_base_margin", None)
    if base_margin is None or np.size(base_margin()):
        return
    if start == _XGBOOST_DEFAULT_START:
        raise ValueError(
            "XGBoost starts at a raw score of 0.5 when base_score is not set. Add 'base_score': 0 to the parameters "
            "(or pass the start you want as the DMatrix's base_margin)."
        )
    if labels.classes is not None and _FAR_STARTS[0] < abs(start) < _FAR_STARTS[1]:
        raise ValueError(
            f"XGBoost starts at a raw score of {start:.1f}: with 'objective': 'binary:logistic' the base_score is a "
            "probability. Set it to 0.5; 0 is for parameters that name no objective, and for 'multi:softprob'."
        )


def _check_labels(data: Any, labels: Labels) -> None:
    """Refuse a data set whose labels contradict y; one number for all rows is a placeholder."""
    label = data.get_label() if hasattr(data, "get_label") else None
    given = np.empty(0) if label is None else np.asarray(label)
    if given.size != labels.n_rows or (given == given[0]).all():
        return
    found = given[labels.labeled].astype(np.float32)
    meant = [labels.targets if labels.targets.ndim == 1 else labels.targets.argmax(axis=1)]
    if labels.classes is None or labels.classes.dtype.kind in "biuf":
        meant.append(np.array(labels.y[labels.labeled].tolist()))
    if not any(np.array_equal(found, one.astype(np.float32)) for one in meant):
        raise ValueError(
            "The labels of the data set are not those of y: its rows may stand in another order. Make it of the same "
            "rows in the order of y, or leave its labels out."
        )
