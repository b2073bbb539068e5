"""Parameters that wrapped estimators of both libraries share: weights of classes, and names of metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from grbb_ext.evaluation import Metric
from grbb_ext.labels import Labels
from grbb_ext.objective import GRBBObjective


def positive_weight(weight: Any, labels: Labels) -> dict[Any, float]:
    """Turn ``scale_pos_weight`` into the weight of the second class.

    Examples
    --------
    >>> from grbb_ext.labels import read_labels
    >>> positive_weight(3.0, read_labels(["ham", "spam", None], "auto", None, None))
    {'spam': 3.0}
    """
    assert labels.classes is not None
    if labels.classes.size != 2:
        raise ValueError(
            f"scale_pos_weight={weight!r} is for two classes, and y has {labels.classes.size}. Use class_weight=."
        )
    return {labels.classes.tolist()[1]: float(weight)}


def unbalance_weight(labels: Labels) -> dict[Any, float]:
    """Turn LightGBM's ``is_unbalance`` into the weight of the rarer class: the ratio of the labelled counts.

    Examples
    --------
    >>> from grbb_ext.labels import read_labels
    >>> unbalance_weight(read_labels([0, 0, 0, 1, -1], "auto", None, -1))
    {1: 3.0}
    """
    assert labels.classes is not None
    if labels.classes.size != 2:
        raise ValueError(f"is_unbalance is for two classes, and y has {labels.classes.size}. Use class_weight=.")
    n_positive = float(np.sum(labels.targets))
    n_negative = labels.targets.size - n_positive
    if min(n_positive, n_negative) == 0:
        raise ValueError("is_unbalance needs a labelled row of each class. Use class_weight= with numbers.")
    rare = 0 if n_positive > n_negative else 1
    return {labels.classes.tolist()[rare]: max(n_positive, n_negative) / min(n_positive, n_negative)}


def check_task(given: dict[str, Any], num_class: Any, classes: Any) -> None:
    """Refuse weights of classes where there are none, and a number of classes that is not that of y.

    Examples
    --------
    >>> check_task({"scale_pos_weight": 2.0}, None, None)
    Traceback (most recent call last):
        ...
    ValueError: scale_pos_weight=2.0 of the wrapped estimator is for classes. Use sample_weight for a regression.
    """
    for name, value in given.items():
        if classes is None and value is not None:
            raise ValueError(
                f"{name}={value!r} of the wrapped estimator is for classes. Use sample_weight for a regression."
            )
    if num_class is not None and int(num_class) not in (0, 1 if classes is None else len(classes)):
        raise ValueError(
            f"num_class={num_class!r} of the wrapped estimator does not fit y. Leave it out; classes= names classes "
            "that have no label."
        )


def choose(own: Any, of_booster: dict[str, Any]) -> Any:
    """Return the one weight of classes that was given, or refuse several.

    Parameters
    ----------
    own : "balanced", dict or None
        The ``class_weight`` of the GRBB estimator.
    of_booster : dict
        What the wrapped estimator was given, by parameter.
    """
    given = {name: weight for name, weight in of_booster.items() if weight is not None}
    if own is not None and given:
        raise ValueError(
            f"class_weight of the GRBB estimator and {' and '.join(given)} of the wrapped one weigh the same classes. "
            f"Leave {' and '.join(given)} out."
        )
    if len(given) > 1:
        raise ValueError(f"{' and '.join(given)} of the wrapped estimator weigh the same classes. Keep one.")
    return own if own is not None else next(iter(given.values()), None)


_CLASSIFICATION: dict[str, Metric] = {
    "loss": "loss",
    "logloss": "loss",
    "mlogloss": "loss",
    "binary_logloss": "loss",
    "binary": "loss",
    "multi_logloss": "loss",
    "multiclass": "loss",
    "softmax": "loss",
    "error": "error",
    "merror": "error",
    "binary_error": "error",
    "multi_error": "error",
    "accuracy": "accuracy",
    "auc": "auc",
}
_REGRESSION: dict[str, Metric] = {
    "loss": "loss",
    "rmse": "rmse",
    "root_mean_squared_error": "rmse",
    "l2_root": "rmse",
    "l2": "loss",
    "mse": "loss",
    "mean_squared_error": "loss",
    "regression": "loss",
}


def read_metrics(asked: Any, obj: GRBBObjective, parameter: str) -> list[Metric | Callable[..., float]]:
    """Return the metrics to compute on labelled rows.

    Parameters
    ----------
    asked : str, callable, list of these, or None
        The wrapped estimator's parameter. Built-in metrics of the libraries would count unlabelled rows and do not
        know the raw scores of a custom objective, so each is computed here.
    obj : GRBBObjective
        The objective.
    parameter : str
        Name of the parameter, for messages.

    Examples
    --------
    >>> from grbb_ext import grbb_objective
    >>> obj = grbb_objective(None, [0, 1, -1], rule="labeled")
    >>> read_metrics(None, obj, "eval_metric"), read_metrics(["auc", "merror"], obj, "eval_metric")
    (['loss'], ['auc', 'error'])
    """
    if asked is None or asked == "":
        return ["loss"]
    if isinstance(asked, str):
        asked = asked.split(",")
    listed = list(asked) if isinstance(asked, (list, tuple, set)) else [asked]
    known = _REGRESSION if obj.classes_ is None else _CLASSIFICATION
    metrics: list[Metric | Callable[..., float]] = []
    for entry in listed:
        if callable(entry):
            metrics.append(entry)
        elif isinstance(entry, str) and entry.strip() in known:
            metrics.append(known[entry.strip()])
        else:
            raise ValueError(
                f"{parameter}={entry!r} cannot be computed on the labelled rows of eval_set. Use one of "
                f"{sorted(known)}, or a function of (y, prediction)."
            )
    return metrics


def higher_is_better(metric: Any) -> bool:
    """Return the direction of a metric; a function counts as a loss, as in XGBoost."""
    return metric in ("accuracy", "auc")
