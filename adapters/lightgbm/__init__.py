"""LightGBM: training with feature costs, and metrics for early stopping with a GRBB objective."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from grbb_ext.evaluation import Metric, evaluate
from grbb_ext.objective import GRBBObjective

try:
    import lightgbm as lgb
except ImportError as error:
    raise ImportError("grbb_ext.adapters.lightgbm needs LightGBM: pip install 'grbb_ext[lightgbm]'.") from error

from grbb_ext.adapters.lightgbm._estimator import ADAPTER
from grbb_ext.adapters.lightgbm._train import train
from grbb_ext.adapters.lightgbm._trees import add_link

__all__ = ["ADAPTER", "add_link", "metric", "train"]


def metric(obj: GRBBObjective, name: Metric = "loss") -> Callable[[NDArray[Any], lgb.Dataset], tuple[str, float, bool]]:
    """Make a ``feval`` for ``lightgbm.train`` that scores the labelled rows of each validation set.

    Parameters
    ----------
    obj : GRBBObjective
        The objective of the training.
    name : {"loss", "error", "accuracy", "auc", "rmse"}, default="loss"
        The metric; see :func:`grbb_ext.evaluation.evaluate`.

    Returns
    -------
    callable
        ``feval(raw_scores, dataset) -> (name, value, is_higher_better)``. The Dataset holds labels in the values of
        ``obj.classes_``, -1 where unlabelled.

    Examples
    --------
    >>> import lightgbm as lgb
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from grbb_ext import grbb_objective
    >>> X, truth = make_moons(300, noise=0.1, random_state=0)
    >>> y = np.where(np.arange(300) < 10, truth, -1)
    >>> obj = grbb_objective(X[:250], y[:250])
    >>> train = lgb.Dataset(X[:250])
    >>> booster = lgb.train({"objective": obj, "verbosity": -1}, train, 100,
    ...                     valid_sets=[lgb.Dataset(X[250:], label=truth[250:], reference=train)],
    ...                     feval=metric(obj), callbacks=[lgb.early_stopping(3, verbose=False)])
    >>> booster.best_iteration < 100
    True
    """

    def feval(raw_scores: NDArray[Any], data: lgb.Dataset) -> tuple[str, float, bool]:
        result = evaluate(obj, raw_scores, data.get_label(), name, data.get_weight())
        return result.name, result.value, result.higher_is_better

    return feval
