"""XGBoost: training with feature costs, and metrics for early stopping with a GRBB objective."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from grbb_ext.evaluation import Metric, evaluate, higher_is_better
from grbb_ext.objective import GRBBObjective

try:
    import xgboost as xgb
except ImportError as error:
    raise ImportError("grbb_ext.adapters.xgboost needs XGBoost: pip install 'grbb_ext[xgboost]'.") from error

from grbb_ext.adapters._wrapped import Folds, check_objective, labels_of, refuse_keywords
from grbb_ext.adapters.xgboost._estimator import ADAPTER
from grbb_ext.adapters.xgboost._mask import MaskedBooster as MaskedBooster  # for adapters.dask, not for users
from grbb_ext.adapters.xgboost._miser import GreedyMiser, Strategy

__all__ = ["ADAPTER", "GreedyMiser", "Strategy", "cv", "metric"]


def metric(obj: GRBBObjective, name: Metric = "loss") -> Callable[[NDArray[Any], xgb.DMatrix], tuple[str, float]]:
    """Make a ``custom_metric`` for ``xgboost.train`` that scores the labelled rows of each evaluation set.

    XGBoost's own metrics count the marker -1 as a class. Early stopping minimises by default: for ``"accuracy"``,
    ``"auc"`` and ``"aucpr"`` use ``xgboost.callback.EarlyStopping(rounds, maximize=True)``.

    Parameters
    ----------
    obj : GRBBObjective
        The objective of the training.
    name : {"loss", "error", "accuracy", "auc", "aucpr", "average_precision", "rmse"} or callable, default="loss"
        The metric, or a function of (y, prediction); see :func:`grbb_ext.evaluation.evaluate`.

    Returns
    -------
    callable
        ``custom_metric(raw_scores, dmatrix) -> (name, value)``. The DMatrix holds labels in the values of
        ``obj.classes_``, or positions there for classes of text; -1 where unlabelled.

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
    check_objective(obj)

    def custom_metric(raw_scores: NDArray[Any], data: xgb.DMatrix) -> tuple[str, float]:
        weight = data.get_weight()
        result = evaluate(obj, raw_scores, labels_of(data, obj), name, weight if weight.size else None)
        return result.name, result.value

    return custom_metric


def cv(
    params: dict[str, Any],
    dtrain: xgb.DMatrix,
    num_boost_round: int = 10,
    *,
    obj: GRBBObjective,
    folds: Any = 5,
    groups: Any = None,
    metric: Metric | list[Metric] = "loss",
    early_stopping_rounds: int | None = None,
    **keywords: Any,
) -> Any:
    """Cross-validate as ``xgboost.cv`` does: test on labelled rows, train with all unlabelled ones in every fold.

    Each fold trains with ``obj.subset(rows)``, so nothing is learned from the labels that it tests on.

    Parameters
    ----------
    params, dtrain, num_boost_round
        As for ``xgboost.cv``; `dtrain` holds the rows of `obj` in the same order, and needs no labels.
    obj : GRBBObjective
        The objective of all rows.
    folds : int or splitter, default=5
        A number of folds, a splitter of scikit-learn, or :class:`~grbb_ext.model_selection.SemiSupervisedSplit`.
    groups : array-like of shape (N,) or None, default=None
        Groups that must not be on both sides of a fold.
    metric : str, callable or list of these, default="loss"
        As for :func:`metric`. The last one decides on early stopping, in the right direction.
    early_stopping_rounds : int or None, default=None
        As for ``xgboost.cv``.
    **keywords
        Passed to ``xgboost.cv``: ``as_pandas``, ``verbose_eval``, ``show_stdv``, ``callbacks`` and others.

    Returns
    -------
    DataFrame or dict
        What ``xgboost.cv`` returns: mean and standard deviation over the folds after each round.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from grbb_ext import grbb_objective
    >>> X, truth = make_moons(300, noise=0.1, random_state=0)
    >>> obj = grbb_objective(X, np.where(np.arange(300) < 30, truth, -1))
    >>> params = {"objective": "binary:logistic", "base_score": 0.5}
    >>> history = cv(params, xgb.DMatrix(X), 20, obj=obj, folds=3, metric="auc", as_pandas=False)
    >>> sorted(history), len(history["test-auc-mean"])
    (['test-auc-mean', 'test-auc-std', 'train-auc-mean', 'train-auc-std'], 20)
    """
    ours = ("nfold", "stratified", "shuffle", "metrics", "custom_metric", "fpreproc", "maximize", "eval_metric")
    refuse_keywords({**params, **keywords}, *ours)
    check_objective(obj)
    if not isinstance(dtrain, xgb.DMatrix) or isinstance(dtrain, xgb.QuantileDMatrix):
        raise TypeError(
            f"dtrain must be a plain xgboost.DMatrix of all rows, which xgboost.cv can cut to folds; got "
            f"{type(dtrain).__name__}. Use DMatrix(X)."
        )
    parts = Folds(obj, dtrain.num_row(), folds, groups, metric)
    return xgb.cv(
        {**params, "disable_default_eval_metric": 1},
        dtrain,
        num_boost_round,
        folds=parts.rows,
        obj=parts.gradients,
        custom_metric=lambda raw_scores, data: [one[:2] for one in parts.score(raw_scores, data)],
        maximize=higher_is_better(obj, parts.metrics[-1]),
        early_stopping_rounds=early_stopping_rounds,
        fpreproc=parts.prepare,
        **keywords,
    )
