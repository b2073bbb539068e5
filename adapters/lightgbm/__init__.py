"""LightGBM: training with feature costs, and metrics for early stopping with a GRBB objective."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grbb_ext.evaluation import Metric, evaluate
from grbb_ext.objective import GRBBObjective

try:
    import lightgbm as lgb
except ImportError as error:
    raise ImportError("grbb_ext.adapters.lightgbm needs LightGBM: pip install 'grbb_ext[lightgbm]'.") from error

from grbb_ext.adapters._wrapped import Folds, check_objective, labels_of, refuse_keywords
from grbb_ext.adapters.lightgbm import _params as parameters
from grbb_ext.adapters.lightgbm._estimator import ADAPTER
from grbb_ext.adapters.lightgbm._train import train
from grbb_ext.adapters.lightgbm._trees import add_link

__all__ = ["ADAPTER", "add_link", "cv", "metric", "train"]


def metric(obj: GRBBObjective, name: Metric = "loss") -> Callable[[NDArray[Any], lgb.Dataset], tuple[str, float, bool]]:
    """Make a ``feval`` for ``lightgbm.train`` that scores the labelled rows of each validation set.

    Parameters
    ----------
    obj : GRBBObjective
        The objective of the training.
    name : {"loss", "error", "accuracy", "auc", "aucpr", "average_precision", "rmse"} or callable, default="loss"
        The metric, or a function of (y, prediction); see :func:`grbb_ext.evaluation.evaluate`.

    Returns
    -------
    callable
        ``feval(raw_scores, dataset) -> (name, value, is_higher_better)``. The Dataset holds labels in the values of
        ``obj.classes_``, or positions there for classes of text; -1 where unlabelled.

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
    >>> booster = lgb.train({"objective": obj, "verbosity": -1}, train, 500,
    ...                     valid_sets=[lgb.Dataset(X[250:], label=truth[250:], reference=train)],
    ...                     feval=metric(obj), callbacks=[lgb.early_stopping(3, verbose=False)])
    >>> booster.best_iteration < 500
    True
    """
    check_objective(obj)

    def feval(raw_scores: NDArray[Any], data: lgb.Dataset) -> tuple[str, float, bool]:
        if not np.asarray(data.get_label()).any():
            raise ValueError(
                "All labels of a validation set are 0, which is what LightGBM makes of labels that are left out. Give "
                "it labels: lgb.Dataset(X, label=y), -1 where there is none."
            )
        result = evaluate(obj, raw_scores, labels_of(data, obj), name, data.get_weight())
        return result.name, result.value, result.higher_is_better

    return feval


def cv(
    params: dict[str, Any],
    train_set: lgb.Dataset,
    num_boost_round: int = 100,
    *,
    folds: Any = 5,
    groups: Any = None,
    metric: Metric | list[Metric] = "loss",
    **keywords: Any,
) -> dict[str, Any]:
    """Cross-validate as ``lightgbm.cv`` does: test on labelled rows, train with all unlabelled ones in every fold.

    Each fold trains with ``obj.subset(rows)``, so nothing is learned from the labels that it tests on.

    Parameters
    ----------
    params : dict
        As for ``lightgbm.cv``, with the objective of all rows: ``{"objective": obj}``.
    train_set, num_boost_round
        As for ``lightgbm.cv``; `train_set` holds the rows of the objective in the same order, and needs no labels.
    folds : int or splitter, default=5
        A number of folds, a splitter of scikit-learn, or :class:`~grbb_ext.model_selection.SemiSupervisedSplit`.
    groups : array-like of shape (N,) or None, default=None
        Groups that must not be on both sides of a fold.
    metric : str, callable or list of these, default="loss"
        As for :func:`metric`.
    **keywords
        Passed to ``lightgbm.cv``: ``callbacks``, ``eval_train_metric``, ``return_cvbooster`` and others. An
        ``init_model`` that was trained with the labels to test makes the scores too good.

    Returns
    -------
    dict
        What ``lightgbm.cv`` returns: mean and standard deviation over the folds after each round.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from grbb_ext import grbb_objective
    >>> X, truth = make_moons(300, noise=0.1, random_state=0)
    >>> obj = grbb_objective(X, np.where(np.arange(300) < 30, truth, -1))
    >>> history = cv({"objective": obj, "verbosity": -1}, lgb.Dataset(X), 20, folds=3, metric="auc")
    >>> sorted(history), len(history["valid auc-mean"])
    (['valid auc-mean', 'valid auc-stdv'], 20)
    """
    refuse_keywords(keywords, "nfold", "stratified", "shuffle", "metrics", "feval", "fpreproc")
    obj: Any = params.get("objective")
    check_objective(obj, "params['objective']")
    if parameters.get(params, "metric") not in (None, "", "None"):
        raise TypeError("Metrics of params count unlabelled rows. Take them out, and pass metric=.")
    if not isinstance(train_set, lgb.Dataset):
        raise TypeError(f"train_set must be a lightgbm.Dataset of all rows, got {type(train_set).__name__}.")
    if keywords.get("init_model") is not None and train_set.free_raw_data:
        raise ValueError("init_model= predicts the rows of each fold: use lgb.Dataset(X, free_raw_data=False).")
    parameters.refuse_forest(params)
    try:
        n_rows = train_set.num_data()
    except lgb.basic.LightGBMError:  # not made yet: bins are made as the parameters say
        train_set.params = {**(train_set.params or {}), **params, "objective": "none"}
        n_rows = train_set.construct().num_data()
    parts = Folds(obj, n_rows, folds, groups, metric)
    found: dict[str, Any] = lgb.cv(
        # LightGBM copies the parameters with all that is in them; a function is left as it is.
        {**params, "objective": lambda raw_scores, data: parts.gradients(raw_scores, data), "metric": "None"},
        train_set,
        num_boost_round,
        folds=parts.rows,
        feval=lambda raw_scores, data: [(*one,) for one in parts.score(raw_scores, data)],
        fpreproc=parts.prepare,
        **keywords,
    )
    return found
