"""Scores on the labelled rows of a fold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor
from sklearn.metrics import check_scoring, log_loss
from sklearn.utils import check_consistent_length
from sklearn.utils.metadata_routing import MetadataRequest, get_routing_for_object

from grbb_ext.labels import (
    check_sample_weight,
    check_text,
    is_unlabeled,
    plain_array,
    read_target,
    warn_of_strangers,
)


def labeled_rows(y: Any, unlabeled: Any = -1) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return y as an array, and which of its rows are labelled.

    Where y holds fractions it is taken for the target of a regression: -1 is a number there, and only NaN marks.

    Parameters
    ----------
    y : array-like of shape (N,)
        Labels.
    unlabeled : object, default=-1
        The marker; NaN and None mark too.

    Returns
    -------
    values : ndarray of shape (N,)
        y itself.
    labeled : ndarray of bool of shape (N,)
        Whether a row has a label.

    Examples
    --------
    >>> labeled_rows([0, -1, 1])[1].tolist(), labeled_rows([0.5, -1.0, np.nan])[1].tolist()
    ([True, False, True], [True, True, False])
    """
    values = read_target(y, "Model selection")
    if values.dtype.kind == "O" and {type(value) for value in values} == {float, type(None)}:
        values = values.astype(np.float64)  # None is what pandas' missing values become
    labeled = ~is_unlabeled(values, np.nan if is_continuous(values) else unlabeled)
    check_text(values[labeled], unlabeled)
    return values, labeled


def is_continuous(values: NDArray[Any]) -> bool:
    """Return whether y holds fractions, so that its values cannot be classes.

    Examples
    --------
    >>> is_continuous(np.array([0.5, 1.0])), is_continuous(np.array([0.0, np.nan])), is_continuous(np.array(["a"]))
    (True, False, False)
    """
    return values.dtype.kind == "f" and bool(np.any(values[np.isfinite(values)] % 1))


def marker_of(model: Any, given: Any = None) -> Any:
    """Return what marks unlabelled rows: NaN for a regressor, else what was given, or the marker of the model.

    That of a pipeline or a search is the marker of the model within; where there is none it is -1.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression, LogisticRegression
    >>> marker_of(LogisticRegression()), marker_of(LinearRegression())
    (-1, nan)
    """
    # An estimator of another kind than scikit-learn's does not say what it is.
    if hasattr(model, "__sklearn_tags__") and is_regressor(model):
        return np.nan
    if given is not None:
        return given
    while not hasattr(model, "unlabeled") and (hasattr(model, "steps") or hasattr(model, "estimator")):
        model = model.steps[-1][1] if hasattr(model, "steps") else model.estimator
    return getattr(model, "unlabeled", -1)


def take_rows(values: Any, rows: NDArray[np.intp]) -> Any:
    """Return some rows of an array, a sparse matrix, a frame or a list, as what it is.

    Examples
    --------
    >>> take_rows(["a", "b", "c"], np.array([2, 0])).tolist()
    ['c', 'a']
    """
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    if hasattr(values, "tocsr"):
        return values.tocsr()[rows]
    if type(values).__module__.partition(".")[0] == "pyarrow":
        return values.take(rows)
    if hasattr(values, "__array__"):
        return values[rows]
    array = np.asarray(values)
    if array.dtype.kind in "US":  # numpy makes text of numbers beside text
        array = np.asarray(values, dtype=object)
    return array[rows]


class LabeledScorer:
    """A scorer of the labelled rows only; made by :func:`labeled_scorer`."""

    def __init__(self, scorer: Any, name: str, unlabeled: Any, *, given: bool = False) -> None:
        self._scorer, self._name, self._unlabeled = scorer, name, unlabeled
        # A scorer of the user has requests of its own.
        self._requests: dict[str, Any] | None = None if given else {"sample_weight": None}

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None, **keywords: Any) -> Any:
        """Score an estimator on the labelled ones of some rows.

        Parameters
        ----------
        estimator : estimator
            Fitted.
        X : array-like of shape (M, d)
            Rows.
        y : array-like of shape (M,)
            Their labels; unlabelled rows are left out.
        sample_weight : array-like of shape (M,) or None, default=None
            Weights of the rows.
        **keywords
            Passed to the scorer.

        Returns
        -------
        float, or dict of float
            What the scorer returns; higher is better.
        """
        unlabeled = marker_of(estimator, self._unlabeled)
        values, labeled = labeled_rows(y, unlabeled)
        rows = np.flatnonzero(labeled)
        check_consistent_length(X, values)
        weight = check_sample_weight(sample_weight, values.size)
        if rows.size == 0:
            raise ValueError(
                f"None of the {values.size} rows to score is labelled ({unlabeled!r}, NaN or None marks a row "
                "without a label). Use cv=SemiSupervisedSplit(), whose test folds hold labelled rows only."
            )
        if weight is not None:
            keywords["sample_weight"] = weight[rows]
        if rows.size < values.size:
            X = take_rows(X, rows)
        y = plain_array(values[rows])
        if isinstance(classes := getattr(estimator, "classes_", None), np.ndarray):
            warn_of_strangers(y, classes)
        if isinstance(self._scorer, dict):
            return {key: scorer(estimator, X, y, **keywords) for key, scorer in self._scorer.items()}
        return self._scorer(estimator, X, y, **keywords)

    def set_score_request(self, **requests: Any) -> LabeledScorer:
        """Say which metadata scikit-learn is to route to the scorer, as for its own scorers.

        Parameters
        ----------
        **requests
            ``sample_weight=True`` for weighted scores, False for scores without weights, text for another name. It
            holds for all of several scores.

        Returns
        -------
        LabeledScorer
            The scorer itself.
        """
        self._requests = requests
        return self

    def get_metadata_routing(self) -> Any:
        """Return what metadata the scorer requests."""
        if self._requests is None:
            return get_routing_for_object(self._scorer)
        routing = MetadataRequest(owner=repr(self))
        for name, alias in self._requests.items():
            routing.score.add_request(param=name, alias=alias)
        return routing

    def __repr__(self) -> str:
        return f"labeled_scorer({self._name}, unlabeled={self._unlabeled!r})"


def labeled_scorer(scoring: Any = None, *, unlabeled: Any = None) -> LabeledScorer:
    """Make a scorer that leaves out unlabelled rows.

    Pass it wherever scikit-learn takes ``scoring=``. It is needed where a fold holds unlabelled rows: with a plain
    splitter, or for scores of the training rows (``return_train_score=True``).

    Parameters
    ----------
    scoring : str, callable, list or dict, default=None
        As in scikit-learn: the name of a score, a scorer ``(estimator, X, y) -> float``, or several of them. None is
        the estimator's own ``score``. ``"neg_log_loss"`` uses the estimator's classes, so that a fold may miss some.
    unlabeled : object, default=None
        The marker in y; NaN and None mark too. None is that of the estimator, also within a pipeline or a search, or
        -1 where it has none. For regression only NaN marks.

    Returns
    -------
    LabeledScorer
        A callable ``(estimator, X, y)`` that returns a number, or a dict of numbers where there are several scores.
        For scores with weights, under scikit-learn's metadata routing, use ``.set_score_request(sample_weight=True)``.

    See Also
    --------
    SemiSupervisedSplit : Test folds of labelled rows only.

    Examples
    --------
    A model that is right for both labelled rows, and cannot be for the others:

    >>> from sklearn.dummy import DummyClassifier
    >>> X, y = [[0], [1], [2], [3]], [1, 1, -1, -1]
    >>> model = DummyClassifier(strategy="constant", constant=1).fit(X, y)
    >>> model.score(X, y), labeled_scorer("accuracy")(model, X, y)
    (0.5, 1.0)
    """
    name = repr(scoring)
    if scoring is None:
        return LabeledScorer(_own_score, name, unlabeled)
    if isinstance(scoring, str | dict | list | tuple | set) and not scoring:
        raise ValueError("scoring is empty: name a score, e.g. 'accuracy'.")
    if isinstance(scoring, list | tuple | set) and all(isinstance(entry, str) for entry in scoring):
        scoring = {entry: entry for entry in scoring}
    scorer = check_scoring(scoring=_with_classes(scoring))
    if isinstance(scoring, dict):  # scikit-learn's scorer of several has no set_score_request
        scorer = {key: check_scoring(scoring=_with_classes(value)) for key, value in scoring.items()}
    return LabeledScorer(scorer, name, unlabeled, given=callable(scoring))


def _with_classes(scoring: Any) -> Any:
    return _neg_log_loss if isinstance(scoring, str) and scoring == "neg_log_loss" else scoring


def _neg_log_loss(estimator: Any, X: Any, y: Any, **keywords: Any) -> float:
    """Score like "neg_log_loss", which refuses rows that do not hold all classes: with few labels, many a fold."""
    return -float(log_loss(y, estimator.predict_proba(X), labels=estimator.classes_, **keywords))


def _own_score(estimator: Any, X: Any, y: Any, **keywords: Any) -> float:
    return float(estimator.score(X, y, **keywords))
