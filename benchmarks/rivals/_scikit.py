"""What scikit-learn offers: self-training over the same booster, and label spreading."""

from __future__ import annotations

import warnings

import numpy as np
import xgboost as xgb
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from benchmarks.rivals._booster import DEPTH, LEARNING_RATE, TREES, Fitted, fit_targets, of_booster
from benchmarks.rivals._problem import N_NEIGHBORS, Problem


def self_training(problem: Problem) -> Fitted:
    """Self-training as it comes (threshold .75, ten iterations at most) over the same booster."""
    booster = xgb.XGBClassifier(
        n_estimators=max(TREES),
        max_depth=DEPTH,
        learning_rate=LEARNING_RATE,
        min_child_weight=0,
        tree_method="hist",
        max_bin=problem.max_bin,
        n_jobs=1,
        base_score=0.5,
    )
    model = SelfTrainingClassifier(booster).fit(problem.split.X, problem.split.y)
    return of_booster(model.estimator_.get_booster(), problem)


def spread(problem: Problem) -> LabelSpreading:
    """Fit label spreading on the graph's neighbours and columns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LabelSpreading(kernel="knn", n_neighbors=N_NEIGHBORS, max_iter=100, n_jobs=1).fit(
            problem.columns[0], problem.split.y
        )


def class_1(distributions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of class 1; NaN for rows that no label reached."""
    total = distributions.sum(axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(total > 0, distributions[:, 1] / total, np.nan))


def spread_then_train(problem: Problem) -> Fitted:
    """Hard labels of label spreading train the same booster."""
    q = class_1(spread(problem).label_distributions_)
    return fit_targets(problem, np.where(np.isnan(q), np.nan, q > 0.5))


def spreading(problem: Problem) -> Fitted:
    """Label spreading itself predicts the test rows; there are no trees."""
    model = spread(problem)
    with np.errstate(invalid="ignore", divide="ignore"):
        classes = model.predict(problem.columns[1])
    return Fitted(lambda trees: classes)
