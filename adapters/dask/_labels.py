"""The labelled rows, collected from all partitions; and metrics over the rows of all workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import xgboost as xgb
from numpy.typing import NDArray

from grbb_ext.adapters.dask._objective import LabeledRows, sum_over_workers
from grbb_ext.adapters.dask._parts import Parts, Pieces, part_table
from grbb_ext.adapters.dask._rows import Ids, ids_message
from grbb_ext.labels import (
    ClassWeight,
    Labels,
    LossName,
    class_weights,
    encode,
    is_unlabeled,
    mixed_weight,
    read_labels,
)
from grbb_ext.losses import SquaredErrorLoss
from grbb_ext.table import Schema, Table, stack_tables


def collect_labels(
    parts: Parts,
    y: Pieces,
    ids: Pieces,
    weights: Pieces | None,
    *,
    loss: LossName = "auto",
    classes: Any = None,
    unlabeled: Any = -1,
    class_weight: ClassWeight = None,
    with_features: bool,
) -> tuple[Labels, LabeledRows, Table | None]:
    """Bring the labelled rows to the client.

    Parameters
    ----------
    parts : Parts
        The partitions of X.
    y, ids, weights : pieces
        Labels, ids and weights of the rows.
    loss, classes, unlabeled, class_weight
        As in :func:`grbb_ext.grbb_objective`.
    with_features : bool
        Whether to bring the features too.

    Returns
    -------
    labels : Labels
        Of the n labelled rows alone, in ascending order of their ids.
    rows : LabeledRows
        Their ids, targets and weights.
    X : Table of n rows or None
        Their features, where asked for.
    """
    nothing = [None] * len(parts.pieces)
    found = parts.client.map(
        _labeled,
        y,
        ids,
        nothing if weights is None else weights,
        parts.pieces if with_features else nothing,
        schema=parts.schema,
        unlabeled=np.nan if loss == "squared_error" else unlabeled,
        pure=False,
    )
    collected = parts.client.gather(found)
    id_l: Ids = np.concatenate([some[0] for some in collected])
    order = np.argsort(id_l, kind="stable")
    id_l = id_l[order]
    # Partitions without a label may have another type, which would decide that of all labels.
    some_labels = [some for some in collected if some[0].size] or collected[:1]
    values, weight = (np.concatenate([some[i] for some in some_labels])[order] for i in (1, 2))
    labels = read_labels(values, loss, classes, unlabeled)
    twice = np.unique(id_l[1:][id_l[1:] == id_l[:-1]])
    if twice.size or id_l[-1] >= parts.n_rows:
        also = f"{id_l[-1]} is too large" if id_l[-1] >= parts.n_rows else ""
        raise ValueError(ids_message(parts.n_rows, parts.n_rows, [], twice[:5].tolist(), also))
    of_class = class_weights(class_weight, labels)
    if of_class is not None:
        weight = weight * mixed_weight(labels.targets, of_class)
    X = stack_tables([some[3] for some in some_labels]).take(order) if with_features else None
    return labels, LabeledRows(id_l, labels.targets, weight), X


def _labeled(y: NDArray[Any], ids: Ids, weight: Any, piece: Any, schema: Schema, unlabeled: Any) -> tuple[Any, ...]:
    here = np.flatnonzero(~is_unlabeled(y, unlabeled))
    features = None if piece is None else part_table(piece, schema, here)
    return ids[here], y[here], np.ones(here.size) if weight is None else weight[here], features


MetricName = Literal["loss", "error", "rmse"]


@dataclass(frozen=True)
class WorkerMetric:
    """A ``custom_metric`` for ``xgboost.dask.train``: the mean over all workers' labelled rows.

    XGBoost averages the workers' values of a custom metric, whatever their rows weigh. Here each worker returns the
    mean over all, so that this average changes nothing.

    Attributes
    ----------
    labels : Labels
        Of the training.
    name : {"loss", "error", "rmse"}
        What is averaged.
    """

    labels: Labels
    name: MetricName

    def __post_init__(self) -> None:
        if self.name != "loss" and (self.name == "rmse") != isinstance(self.labels.loss, SquaredErrorLoss):
            raise ValueError(f"eval_metric={self.name!r} does not suit the loss {self.labels.loss.name!r}.")

    def __call__(self, raw_scores: NDArray[Any], data: xgb.DMatrix) -> tuple[str, float]:
        """Return name and value."""
        labels = self.labels
        code = data.get_label()
        keep = code >= 0 if labels.classes is not None else np.ones(code.size, dtype=bool)
        H = np.asarray(raw_scores, dtype=np.float64).reshape(code.size, *labels.targets.shape[1:])[keep]
        code = code[keep]
        if self.name == "rmse":
            rows = (H - code) ** 2
        elif self.name == "error":
            rows = (H.argmax(axis=1) if H.ndim == 2 else H > 0) != code
        else:
            rows = labels.loss.value(H, code if H.ndim == 1 else np.eye(H.shape[1])[code.astype(np.intp)])
        total, count = sum_over_workers(np.array([float(rows.sum()), float(code.size)]))
        if count == 0:
            raise ValueError("The evaluation set has no labelled row.")
        mean = float(total / count)
        if self.name == "loss":
            return labels.loss.name, mean
        return self.name, mean**0.5 if self.name == "rmse" else mean


def evaluation_labels(y: NDArray[Any], labels: Labels) -> NDArray[np.float32]:
    """Return labels as XGBoost takes them: numbers of classes, -1 where there is none; or values."""
    if labels.classes is None:
        return y.astype(np.float32)
    code = np.full(y.shape[0], -1, dtype=np.float32)
    known = ~is_unlabeled(y, labels.unlabeled)
    code[known] = encode(y[known], labels.classes)
    return code
