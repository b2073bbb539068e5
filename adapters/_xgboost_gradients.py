"""Gradients of XGBoost's built-in objectives, which it does not hand out: the same formulas, from raw scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xgboost as xgb
from numpy.typing import NDArray
from scipy.special import expit, softmax

Gradients = tuple[NDArray[np.float32], NDArray[np.float32]]

# XGBoost keeps hessians above this.
_LEAST_HESSIAN = 1e-16


def builtin_gradients(name: str, scale_pos_weight: float = 1.0) -> Callable[[NDArray[Any], xgb.DMatrix], Gradients]:
    """Return gradient and hessian of a built-in objective as a function of raw scores and data.

    Parameters
    ----------
    name : str
        Name of the objective.
    scale_pos_weight : float, default=1
        Factor of rows with label 1, for the logistic objectives.

    Returns
    -------
    callable
        ``obj(raw_scores, dmatrix) -> (gradient, hessian)``, with the weights of the DMatrix.

    Examples
    --------
    >>> data = xgb.DMatrix(np.zeros((2, 1)), label=[0.0, 1.0])
    >>> builtin_gradients("binary:logistic")(np.zeros(2), data)[0].tolist()
    [0.5, -0.5]
    """
    if name not in BUILTIN:
        raise ValueError(
            f"The gradients of {name!r} are not known here: obj must be one of {sorted(BUILTIN)}, or a callable "
            "obj(raw_scores, dmatrix) -> (gradient, hessian), given to xgboost.train as well."
        )

    def gradients(raw_scores: NDArray[Any], data: xgb.DMatrix) -> Gradients:
        gradient, hessian = BUILTIN[name](raw_scores.astype(np.float32, copy=False), data.get_label())
        weight = data.get_weight()
        factor = np.ones(gradient.shape[0], dtype=np.float32) if weight.size == 0 else weight
        if name in _LOGISTIC and scale_pos_weight != 1:
            factor = np.where(data.get_label() == 1, factor * np.float32(scale_pos_weight), factor)
        if gradient.ndim == 2:
            factor = factor[:, None]
        return gradient * factor, hessian * factor

    return gradients


def _squared_error(scores: NDArray[np.float32], label: NDArray[np.float32]) -> Gradients:
    return scores - label, np.ones_like(scores)


def _logistic(scores: NDArray[np.float32], label: NDArray[np.float32]) -> Gradients:
    p = expit(scores)
    return p - label, np.maximum(p * (1 - p), np.float32(_LEAST_HESSIAN))


def _softmax(scores: NDArray[np.float32], label: NDArray[np.float32]) -> Gradients:
    p = softmax(scores, axis=1)
    gradient = p.copy()
    gradient[np.arange(label.size), label.astype(np.intp)] -= 1
    return gradient, np.maximum(2 * p * (1 - p), np.float32(_LEAST_HESSIAN))


_LOGISTIC = ("binary:logistic", "binary:logitraw", "reg:logistic")

BUILTIN: dict[str, Callable[[NDArray[np.float32], NDArray[np.float32]], Gradients]] = {
    "reg:squarederror": _squared_error,
    **dict.fromkeys(_LOGISTIC, _logistic),
    "multi:softprob": _softmax,
    "multi:softmax": _softmax,
}
