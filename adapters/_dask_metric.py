"""A metric over the rows of all workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import xgboost as xgb
from numpy.typing import NDArray

from grbb_ext.adapters._dask_objective import sum_over_workers
from grbb_ext.labels import Labels, encode, is_unlabeled
from grbb_ext.losses import SquaredErrorLoss

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
        return (
            (labels.loss.name, mean) if self.name == "loss" else (self.name, mean**0.5 if self.name == "rmse" else mean)
        )


def check_metric(name: str) -> None:
    """Refuse metrics that are no means over rows."""
    if name not in ("loss", "error", "rmse"):
        raise ValueError(
            f"eval_metric must be 'loss', 'error' or 'rmse', got {name!r}: others are no means over rows, and cannot "
            "be put together from the workers' parts."
        )


def evaluation_labels(y: NDArray[Any], labels: Labels, unlabeled: Any) -> NDArray[np.float32]:
    """Return labels as XGBoost takes them: numbers of classes, -1 where there is none; or values."""
    if labels.classes is None:
        return y.astype(np.float32)
    code = np.full(y.shape[0], -1, dtype=np.float32)
    known = ~is_unlabeled(y, unlabeled)
    code[known] = encode(y[known], labels.classes)
    return code
