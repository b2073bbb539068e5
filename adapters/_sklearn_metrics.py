"""Names of metrics in both libraries, and ours for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grbb_ext.evaluation import Metric
from grbb_ext.objective import GRBBObjective

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
