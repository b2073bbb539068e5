"""A model after each of its rounds, in the form that scikit-learn's scorers take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier

from grbb_ext.model_selection._labeled_rows import labeled_rows, take_rows
from grbb_ext.model_selection._scorer import labeled_scorer

Floats = NDArray[np.float64]


def staged_scores(estimator: Any, X: Any, y: Any, scoring: Any = None) -> Floats:
    """Score a fitted model after each round, on labelled rows.

    Parameters
    ----------
    estimator : GRBBClassifier or GRBBRegressor
        Fitted.
    X, y
        Rows and their labels.
    scoring : str, callable or None, default=None
        A score of scikit-learn; None is accuracy, or R^2 for regression.

    Returns
    -------
    ndarray of shape (n_iter_,)
    """
    unlabeled = getattr(estimator, "unlabeled", np.nan)
    rows = np.flatnonzero(labeled_rows(y, unlabeled)[1])
    X, y, scorer = take_rows(X, rows), take_rows(y, rows), labeled_scorer(scoring, unlabeled=unlabeled)
    return np.array([float(scorer(stage, X, y)) for stage in stages(estimator, X)])


def score_name(scoring: Any, estimator: Any) -> str:
    """Return a name for the axis of a picture."""
    own = "accuracy" if is_classifier(estimator) else "R^2"
    return scoring if isinstance(scoring, str) else getattr(scoring, "__name__", own)


def stages(model: Any, X: Any) -> Iterator[Any]:
    """Yield the model after each round; a model without trees is one stage."""
    if is_classifier(model):
        predictions = model.staged_predict_proba(X) if model.n_iter_ else [model.predict_proba(X)]
        yield from (_ClassifierStage(model.classes_, probability) for probability in predictions)
    else:
        predictions = model.staged_predict(X) if model.n_iter_ else [model.predict(X)]
        yield from (_RegressorStage(prediction) for prediction in predictions)


class _ClassifierStage(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier whose predictions of the test rows are known, for scikit-learn's scorers."""

    def __init__(self, classes: NDArray[Any], probability: Floats) -> None:
        self.classes_, self._probability = classes, probability

    def predict_proba(self, X: Any) -> Floats:
        return self._probability

    def predict(self, X: Any) -> NDArray[Any]:
        return np.asarray(self.classes_[self._probability.argmax(axis=1)])


class _RegressorStage(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A regressor whose predictions of the test rows are known."""

    def __init__(self, prediction: Floats) -> None:
        self._prediction = prediction

    def predict(self, X: Any) -> Floats:
        return self._prediction
