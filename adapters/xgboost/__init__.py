"""XGBoost: training with feature costs, and metrics for early stopping with a GRBB objective."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from grbb_ext.evaluation import Metric, evaluate
from grbb_ext.objective import GRBBObjective

try:
    import xgboost as xgb
except ImportError as error:
    raise ImportError("grbb_ext.adapters.xgboost needs XGBoost: pip install 'grbb_ext[xgboost]'.") from error

from grbb_ext.adapters.xgboost._estimator import ADAPTER
from grbb_ext.adapters.xgboost._miser import GreedyMiser, Strategy

__all__ = ["ADAPTER", "GreedyMiser", "Strategy", "metric"]


def metric(obj: GRBBObjective, name: Metric = "loss") -> Callable[[NDArray[Any], xgb.DMatrix], tuple[str, float]]:
    """Make a ``custom_metric`` for ``xgboost.train`` that scores the labelled rows of each evaluation set.

    XGBoost's own metrics count the marker -1 as a class. Early stopping minimises by default: for ``"accuracy"`` and
    ``"auc"`` use ``xgboost.callback.EarlyStopping(rounds, maximize=True)``.

    Parameters
    ----------
    obj : GRBBObjective
        The objective of the training.
    name : {"loss", "error", "accuracy", "auc", "rmse"}, default="loss"
        The metric; see :func:`grbb_ext.evaluation.evaluate`.

    Returns
    -------
    callable
        ``custom_metric(raw_scores, dmatrix) -> (name, value)``. The DMatrix holds labels in the values of
        ``obj.classes_``, -1 where unlabelled.

    Examples
    --------
    >>> import xgboost as xgb
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from grbb_ext import grbb_objective
    >>> X, truth = make_moons(300, noise=0.1, random_state=0)
    >>> y = np.where(np.arange(300) < 10, truth, -1)
    >>> obj = grbb_objective(X[:250], y[:250])
    >>> valid = xgb.DMatrix(X[250:], label=truth[250:])
    >>> booster = xgb.train({"base_score": 0}, xgb.DMatrix(X[:250]), 100, obj=obj, evals=[(valid, "valid")],
    ...                     custom_metric=metric(obj), early_stopping_rounds=5, verbose_eval=False)
    >>> booster.best_iteration < 99
    True
    """

    def custom_metric(raw_scores: NDArray[Any], data: xgb.DMatrix) -> tuple[str, float]:
        weight = data.get_weight()
        result = evaluate(obj, raw_scores, data.get_label(), name, weight if weight.size else None)
        return result.name, result.value

    return custom_metric
