"""Scores of raw predictions on labelled rows, for early stopping and model selection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from grbb_ext._options import one_of
from grbb_ext.labels import check_sample_weight, encode, is_unlabeled, plain_array, read_numbers, read_target
from grbb_ext.losses import SoftmaxLoss, class_probabilities
from grbb_ext.objective import GRBBObjective

MetricName = Literal["loss", "error", "accuracy", "auc", "aucpr", "average_precision", "rmse", "mse"]

#: The name of a metric, or a function of (y, prediction); see :func:`evaluate`.
Metric = MetricName | Callable[..., Any]

# Of the ranking of two classes.
_RANKING = {"auc": roc_auc_score, "aucpr": average_precision_score, "average_precision": average_precision_score}


class Evaluation(NamedTuple):
    """A score.

    Attributes
    ----------
    name : str
        Of the metric.
    value : float
        Its value.
    higher_is_better : bool
        Its direction.
    """

    name: str
    value: float
    higher_is_better: bool


def evaluate(
    obj: GRBBObjective, raw_scores: ArrayLike, y: Any, metric: Metric = "loss", sample_weight: Any = None
) -> Evaluation:
    """Score raw predictions against labels; unlabelled rows are left out.

    Parameters
    ----------
    obj : GRBBObjective
        The objective of the training: it knows the loss and the classes.
    raw_scores : array-like of shape (M,) or (M, K)
        Raw scores of any M rows.
    y : array-like of shape (M,)
        Their labels, in the values of ``obj.classes_``; -1 or NaN marks an unlabelled row.
    metric : str or callable, default="loss"
        ``"loss"`` is the mean loss of the objective. For classes ``"error"`` or ``"accuracy"``, for two of them
        ``"auc"``, and ``"aucpr"`` or ``"average_precision"``, which are the same; for numbers ``"rmse"`` or ``"mse"``,
        the mean squared error with and without its root. A callable is a function of (y, prediction), where prediction
        is the probability of the second of two classes, of each of more (M, K), or the number. It returns a value,
        lower for better models, or LightGBM's triple (name, value, is higher better). With weights it is passed
        ``sample_weight=`` too.
    sample_weight : array-like of shape (M,) or None, default=None
        Weights of the rows.

    Returns
    -------
    Evaluation
        Name, value and direction. A value of NaN is refused.

    Examples
    --------
    >>> from grbb_ext import grbb_objective
    >>> obj = grbb_objective(None, [0, 1, -1], rule="labeled")
    >>> score = evaluate(obj, [-2.0, 1.0, -3.0, 0.5], [0, 1, 1, -1], "accuracy")
    >>> score.name, round(score.value, 3), score.higher_is_better
    ('accuracy', 0.667, True)
    """
    found = _score(obj, raw_scores, y, metric, sample_weight)
    if np.isnan(found.value):
        raise ValueError(
            f"The metric {found.name} is NaN on the evaluation set, so rounds cannot be compared. A ranking such as "
            "'auc' needs labelled rows of both classes, with weights above 0: add some, or use 'loss'. A function of "
            "yours has to return a number."
        )
    return found


def higher_is_better(obj: GRBBObjective, metric: Metric) -> bool:
    """Return the direction of a metric; a function tells it with a score.

    Examples
    --------
    >>> from grbb_ext import grbb_objective
    >>> higher_is_better(grbb_objective(None, [0, 1, -1], rule="labeled"), "auc")
    True
    """
    zeros = np.zeros(obj.n_rows_ if obj.n_outputs_ == 1 else (obj.n_rows_, obj.n_outputs_))
    return _score(obj, zeros, obj.y_, metric).higher_is_better


def _score(obj: GRBBObjective, raw_scores: ArrayLike, y: Any, metric: Metric, sample_weight: Any = None) -> Evaluation:
    if not callable(metric):
        one_of(metric, get_args(MetricName), "metric")
    regression = obj.classes_ is None
    H, labels = np.asarray(raw_scores, dtype=np.float64), (read_numbers if regression else read_target)(y, "evaluate")
    if H.shape != (*labels.shape, *obj.labeled_targets_.shape[1:]):
        raise ValueError(
            f"raw_scores must have a row for each label, and {obj.n_outputs_} of them beside each other; got shapes "
            f"{H.shape} and {labels.shape}."
            if obj.n_outputs_ > 1
            else f"raw_scores and y must have the same rows, got shapes {H.shape} and {labels.shape}."
        )
    if not callable(metric) and (metric in ("rmse", "mse")) != regression and metric != "loss":
        raise ValueError(f"metric={metric!r} does not suit the loss {obj.loss_.name!r}.")
    keep = ~(np.isnan(labels) if regression else is_unlabeled(labels, obj.unlabeled_))
    if not keep.any():
        raise ValueError("The evaluation set has no labelled row: give it labels, e.g. DMatrix(X, label=y).")
    given = check_sample_weight(sample_weight, labels.size)
    weight = np.ones(int(keep.sum())) if given is None else given[keep]
    H, labels = H[keep], labels[keep]
    if not weight.any():
        raise ValueError(
            "The weights of all labelled rows of the evaluation set are zero, so there is nothing to average."
        )
    if callable(metric):
        weights = {} if sample_weight is None else {"sample_weight": weight}
        return _of_function(metric, plain_array(labels), H if regression else class_probabilities(H), weights)
    if metric in ("rmse", "mse"):
        error = float(np.average((H - labels) ** 2, weights=weight))
        return Evaluation(metric, error if metric == "mse" else float(np.sqrt(error)), False)
    code = labels if obj.classes_ is None else encode(labels, obj.classes_)
    if metric == "loss":
        targets = np.eye(obj.n_outputs_)[code] if isinstance(obj.loss_, SoftmaxLoss) else code.astype(np.float64)
        return Evaluation(obj.loss_.name, float(np.average(obj.loss_.value(H, targets), weights=weight)), False)
    probability = class_probabilities(H)
    if metric in _RANKING:
        if probability.shape[1] != 2:
            raise ValueError(f"metric={metric!r} is for two classes; use 'loss' or 'accuracy'.")
        margin = H if H.ndim == 1 else H[:, 1] - H[:, 0]
        both = np.unique(code[weight > 0]).size == 2
        return Evaluation(metric, float(_RANKING[metric](code, margin, sample_weight=weight)) if both else np.nan, True)
    right = float(np.average(probability.argmax(axis=1) == code, weights=weight))
    return Evaluation("accuracy", right, True) if metric == "accuracy" else Evaluation("error", 1.0 - right, False)


def _of_function(
    metric: Callable[..., Any], y: NDArray[Any], predicted: NDArray[np.float64], weights: dict[str, Any]
) -> Evaluation:
    if predicted.ndim == 2 and predicted.shape[1] == 2:
        predicted = predicted[:, 1]
    found = metric(y, predicted, **weights)
    name = getattr(metric, "__name__", "metric")
    name, value, higher_is_better = found if isinstance(found, tuple) and len(found) == 3 else (name, found, False)
    try:
        return Evaluation(str(name), float(value), bool(higher_is_better))
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"The metric {name} must return a number, or (name, value, is_higher_better); got {found!r}."
        ) from error
