"""The labelled rows, collected from all partitions; and the labels of evaluation sets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grbb_ext.adapters.dask._model import Problem
from grbb_ext.adapters.dask._parts import Parts, part_table
from grbb_ext.adapters.dask._rows import Ids, ids_message
from grbb_ext.labels import Labels, class_weights, encode, is_unlabeled, mixed_weight, read_labels
from grbb_ext.table import Schema, Table, stack_tables


def collect_labels(
    problem: Problem, *, with_features: bool = False
) -> tuple[Labels, NDArray[np.float64], Table | None]:
    """Bring the labelled rows to the client.

    Parameters
    ----------
    problem : Problem
        What training is asked.
    with_features : bool, default=False
        Whether to bring the features too.

    Returns
    -------
    labels : Labels
        Of the n labelled rows alone; `labeled` are their ids, ascending.
    weights : ndarray of shape (n,)
        Weights of their losses.
    X : Table of n rows or None
        Their features, where asked for.
    """
    parts, loss, unlabeled = problem.parts, problem.asked.get("loss", "auto"), problem.asked.get("unlabeled", -1)
    collected = parts.collect(
        _labeled,
        parts.align(problem.y, "y"),
        problem.ids,
        problem.weights,
        parts.pieces if with_features else [None] * len(parts.pieces),
        schema=parts.schema,
        unlabeled=np.nan if loss == "squared_error" else unlabeled,
    )
    id_l: Ids = np.concatenate([some[0] for some in collected])
    order = np.argsort(id_l, kind="stable")
    id_l = id_l[order]
    # Partitions without a label may have another type, which would decide that of all labels.
    some_labels = [some for some in collected if some[0].size] or collected[:1]
    values, weight = (np.concatenate([some[i] for some in some_labels])[order] for i in (1, 2))
    labels = read_labels(values, loss, problem.classes, unlabeled)
    twice = np.unique(id_l[1:][id_l[1:] == id_l[:-1]])
    if twice.size or id_l[-1] >= parts.n_rows:
        also = f"{id_l[-1]} is too large" if id_l[-1] >= parts.n_rows else ""
        raise ValueError(ids_message(parts.n_rows, parts.n_rows, [], twice[:5].tolist(), also))
    of_class = class_weights(problem.recipe.class_weight, labels)
    if of_class is not None:
        weight = weight * mixed_weight(labels.targets, of_class)
    X = stack_tables([some[3] for some in some_labels]).take(order) if with_features else None
    return replace(labels, labeled=id_l), weight, X


def _labeled(y: NDArray[Any], ids: Ids, weight: Any, piece: Any, schema: Schema, unlabeled: Any) -> tuple[Any, ...]:
    here = np.flatnonzero(~is_unlabeled(y, unlabeled))
    features = None if piece is None else part_table(piece, schema, here)
    return ids[here], y[here], np.ones(here.size) if weight is None else weight[here], features


#: XGBoost's own names of the metrics that are means over rows, by loss.
METRICS = {
    "logistic": {"loss": "logloss", "error": "error"},
    "softmax": {"loss": "mlogloss", "error": "merror"},
    "squared_error": {"loss": "rmse", "rmse": "rmse"},
}


def metric_name(asked: str, labels: Labels) -> str:
    """Return what XGBoost calls a metric.

    Examples
    --------
    >>> from grbb_ext.labels import read_labels
    >>> metric_name("loss", read_labels([0, 1, -1]))
    'logloss'
    """
    known = METRICS[labels.loss.name]
    if asked not in (*known, *known.values()):
        raise ValueError(
            f"eval_metric={asked!r} does not suit the loss {labels.loss.name!r} on many machines: use one of "
            f"{[*known]}. Others are no means over rows, and cannot be put together from the workers' parts."
        )
    return known.get(asked, asked)


# XGBoost's metrics that look at the order of rows.
_OF_ORDER = {"ams", "auc", "aucpr", "cox-nloglik", "map", "ndcg", "pre"}


def check_metrics(metrics: Any) -> None:
    """Refuse XGBoost's metrics that are no means over rows; parameters hold one or several.

    Examples
    --------
    >>> check_metrics(["mape", "auc"])
    Traceback (most recent call last):
        ...
    ValueError: eval_metric='auc' is no mean over rows, and cannot be put together from the workers' parts: take it ...
    """
    for metric in [metrics] if isinstance(metrics, str) else metrics or ():
        if metric.split("@")[0].rstrip("-") in _OF_ORDER:
            raise ValueError(
                f"eval_metric={metric!r} is no mean over rows, and cannot be put together from the workers' parts: "
                "take it out of params, and compute it from predict()."
            )


def evaluation_fields(parts: Parts, y: Any, labels: Labels) -> dict[str, Any]:
    """Return labels and weights of an evaluation set as XGBoost takes them: rows without a label weigh 0."""
    blocks = parts.map(_evaluated, parts.align(y, "y of an evaluation set"), labels=labels)
    if not any(parts.collect(lambda block: bool(block[1].any()), blocks)):
        raise ValueError("The evaluation set has no labelled row.")
    return parts.fields(blocks, "label", "weight")


def _evaluated(y: NDArray[Any], labels: Labels) -> tuple[NDArray[Any], NDArray[Any]]:
    known = ~is_unlabeled(y, labels.unlabeled)
    values = np.zeros(y.shape[0])
    values[known] = y[known] if labels.classes is None else encode(y[known], labels.classes)
    return values, known.astype(np.float32)
