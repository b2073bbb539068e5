"""What scikit-learn offers: self-training over the same booster, and label spreading."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import xgboost as xgb
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from benchmarks.rivals._booster import LOGISTIC, TREES, Fitted, fit_targets, of_booster, parameters
from benchmarks.rivals._problem import BINS, N_NEIGHBORS, Problem


class SharedBooster(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The booster of the study with the two methods that self-training asks for, on any version of XGBoost."""

    def __init__(self, max_bin: int = BINS) -> None:
        self.max_bin = max_bin

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> SharedBooster:
        """Train on rows of class 0 and 1."""
        self.classes_ = np.array([0, 1])
        data = xgb.QuantileDMatrix(X, label=y, max_bin=self.max_bin, nthread=1)
        self.booster_ = xgb.train(parameters(self.max_bin) | LOGISTIC, data, max(TREES))
        return self

    def predict_proba(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return the probability of both classes."""
        p = self.booster_.predict(xgb.DMatrix(X, nthread=1)).astype(np.float64)
        return np.column_stack([1 - p, p])


def self_training(problem: Problem) -> Fitted:
    """Self-training as it comes (threshold .75, ten iterations at most) over the same booster."""
    model = SelfTrainingClassifier(SharedBooster(problem.max_bin)).fit(problem.split.X, problem.split.y)
    return of_booster(model.estimator_.booster_, problem)


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
