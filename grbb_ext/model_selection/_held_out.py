"""Predictions of labelled rows by models that have not seen their labels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from grbb_ext._progress import n_threads
from grbb_ext.labels import plain_array
from grbb_ext.model_selection._scorer import labeled_rows, marker_of
from grbb_ext.model_selection._split import copy_model, fit_in_folds, folds_of_model, known_classes, share_graph


class HeldOut(NamedTuple):
    """Labelled rows and what was predicted for them without their labels.

    Attributes
    ----------
    rows : ndarray of int of shape (n,)
        Positions of the labelled rows, ascending; with repeated folds each comes several times.
    y : ndarray of shape (n,)
        Their labels.
    prediction : ndarray of shape (n, K) or (n,)
        Probability of each class, or the predicted number.
    classes : ndarray of shape (K,) or None
        The classes, in the order of the columns; None for regression.
    """

    rows: NDArray[np.intp]
    y: NDArray[Any]
    prediction: NDArray[np.float64]
    classes: NDArray[Any] | None


def held_out_predict(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = 5,
    groups: Any = None,
    sample_weight: Any = None,
    n_jobs: int = 1,
) -> HeldOut:
    """Predict each labelled row by a model that was trained without its label, and with all unlabelled rows.

    This is ``cross_val_predict`` for few labels. That of scikit-learn needs test folds that cover all rows, and turns
    the marker into a class where probabilities are asked for.

    Parameters
    ----------
    estimator : GRBBClassifier or GRBBRegressor
        What to train, once for each fold. It is not changed. One that is fitted is trained for as many rounds as it
        has, with its classes. The graph is built once (:func:`share_graph`).
    X : array-like, sparse matrix or frame of shape (N, d)
        Rows, labelled and unlabelled.
    y : array-like of shape (N,)
        Labels, with the estimator's marker where there is none.
    cv : int or splitter, default=5
        Folds of the labelled rows: a number, a splitter of scikit-learn, or :class:`SemiSupervisedSplit`.
    groups : array-like of shape (N,) or None, default=None
        Groups that must not be on both sides of a fold.
    sample_weight : array-like of shape (N,) or None, default=None
        Weights of the rows in training.
    n_jobs : int, default=1
        Fits at a time.

    Returns
    -------
    HeldOut
        Rows, labels, predictions and classes.

    Examples
    --------
    >>> from lightgbm import LGBMClassifier
    >>> from sklearn.datasets import load_wine
    >>> from grbb_ext import GRBBClassifier
    >>> X, truth = load_wine(return_X_y=True)
    >>> y = np.where(np.arange(178) % 5 == 0, truth, -1)
    >>> model = GRBBClassifier(LGBMClassifier(n_estimators=10, n_jobs=1, verbosity=-1))
    >>> found = held_out_predict(model, X, y, cv=3)
    >>> found.rows.size, found.prediction.shape
    (36, (36, 3))
    >>> bool((found.classes[found.prediction.argmax(axis=1)] == found.y).mean() > 0.8)
    True
    """
    n_threads(n_jobs)  # refuses what is no number of them
    model = copy_model(estimator, "estimator", "graph")
    if hasattr(estimator, "booster_"):
        model = estimator.without_early_stopping()
    unlabeled = marker_of(model)
    values, labeled = labeled_rows(y, unlabeled)
    classes = known_classes(estimator, values[labeled]) if is_classifier(model) else None
    shared = share_graph(model, X)
    folds = list(folds_of_model(cv, unlabeled, classes=classes is not None).split(X, y, groups))
    found = fit_in_folds(shared, folds, (X, y, sample_weight), classes, _predicted, n_jobs)
    rows = np.concatenate([test for _, test in folds])
    order = np.argsort(rows, kind="stable")
    rows = rows[order]
    return HeldOut(rows, plain_array(values[rows]), np.concatenate(found)[order], classes)


def _predicted(model: Any, X: Any, y: Any) -> NDArray[np.float64]:
    return np.asarray(model.predict_proba(X) if is_classifier(model) else model.predict(X), dtype=np.float64)
