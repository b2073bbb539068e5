"""Predictions of labelled rows by models that have not seen their label, and experts that a user brings along."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from grbb_ext._progress import over_rows
from grbb_ext.labels import Labels, plain_array
from grbb_ext.table import Table, row_keys

Floats = NDArray[np.float64]
Index = NDArray[np.intp]

#: More labels than this are not used by one tree or one linear model, so that the time does not grow with them.
MOST_LABELS = 10_000
#: Time and memory of experts grow with their outputs: beyond so many they are bounded.
MOST_OUTPUTS = 32
_FOLDS, _FEWER_FOLDS = 10, 3
_FOLDS_OF_ESTIMATORS = 5


def fixed_order(table: Table, targets: Floats) -> Index:
    """Return an order of the rows that depends on what they hold alone: samples and folds are drawn by position.

    Examples
    --------
    >>> X = np.array([[2.0, 1.0], [1.0, 3.0], [1.0, 3.0]])
    >>> order = fixed_order(Table(X), np.array([0.0, 1.0, 0.0]))
    >>> again = fixed_order(Table(X[::-1]), np.array([0.0, 1.0, 0.0]))
    >>> np.array_equal(X[order], X[::-1][again])
    True
    """
    keys = row_keys(table)
    return np.array(sorted(range(len(keys)), key=lambda i: (keys[i], targets[i].tobytes())), dtype=np.intp)


def folds(targets: Floats, n_folds: int | None = None, *, values: bool = False) -> Index:
    """Deal labels out to folds, class by class; -1 for a label that is the only one of its class.

    The first classes are those of the first labels, so that it does not matter what they are called.

    Parameters
    ----------
    targets : ndarray of shape (n,) or (n, K)
        0/1, one-hot, or values.
    n_folds : int or None, default=None
        Most folds; None is 10, and 3 for many classes or labels.
    values : bool, default=False
        Whether these are values of a regression, which may happen to be 0 and 1.

    Examples
    --------
    >>> folds(np.array([0.0, 1.0, 0.0, 1.0, 1.0]), 2).tolist()
    [0, 0, 1, 1, 0]
    >>> folds(np.eye(3)[[0, 1, 1, 2]]).tolist()
    [-1, 0, 1, -1]
    """
    n = targets.shape[0]
    many = targets.ndim == 2 and targets.shape[1] > MOST_OUTPUTS
    n_folds = min(n, n_folds or (_FEWER_FOLDS if many or n > MOST_LABELS // 10 else _FOLDS))
    if values:
        return np.arange(n) % n_folds if n > 1 else np.full(n, -1)
    classes = targets.astype(np.intp) if targets.ndim == 1 else targets.argmax(axis=1)
    fold, dealt = np.full(n, -1), 0
    for k in dict.fromkeys(classes.tolist()):
        members = np.flatnonzero(classes == k)
        if members.size > 1:
            fold[members] = (dealt + np.arange(members.size)) % n_folds
            dealt += members.size
    return fold


def cross_fitted(
    targets: Floats, predict: Callable[[Index, Index], Floats], n_folds: int | None = None, *, values: bool = False
) -> Floats:
    """Return held-out predictions; NaN for labels in no fold.

    Parameters
    ----------
    targets : ndarray of shape (n,) or (n, K)
        0/1, one-hot, or values.
    predict : callable
        Given the labels to learn from and those to predict, by position, returns predictions of the latter.
    n_folds, values
        As in :func:`folds`.
    """
    held_out = np.full(targets.shape, np.nan)
    fold = folds(targets, n_folds, values=values)
    for k in np.unique(fold[fold >= 0]):
        held_out[fold == k] = predict(np.flatnonzero(fold != k), np.flatnonzero(fold == k))
    return held_out


@dataclass(frozen=True)
class EstimatorExpert:
    """A classifier or regressor of scikit-learn's kind, fitted to the labelled rows.

    It is fitted to copies of all labels but a fifth, five times, for its held-out predictions, and once to all. A
    model that knows none of these labels, such as one of last year, is passed as it is within
    ``sklearn.frozen.FrozenEstimator``.

    Attributes
    ----------
    name : str
        The name of its class.
    model : object
        The fitted model.
    labels : Labels
        Loss and classes.
    held_out : ndarray of shape (n,) or (n, K)
        Predictions of the labelled rows by models that have not seen their label.
    """

    name: str
    model: Any
    labels: Labels
    held_out: Floats

    @classmethod
    def fit(cls, estimator: Any, name: str, table: Table, labels: Labels) -> EstimatorExpert:
        """Fit copies of an estimator.

        Parameters
        ----------
        estimator : estimator
            With ``fit``, and ``predict_proba`` for classes or ``predict`` for values. It sees what was passed as X: a
            frame with the same names and categories, or an array.
        name : str
            Its name in the evidence.
        table : Table
            All rows.
        labels : Labels
            The labels.

        Examples
        --------
        >>> from sklearn.naive_bayes import GaussianNB
        >>> from grbb_ext.labels import read_labels
        >>> from grbb_ext.table import read_table
        >>> table, labels = read_table(np.arange(8.0)[:, None]), read_labels([0, 0, 0, -1, -1, 1, 1, 1])
        >>> expert = EstimatorExpert.fit(GaussianNB(), "GaussianNB", table, labels)
        >>> (expert.predict(table) > 0.5).tolist()
        [False, False, False, False, True, True, True, True]
        """
        rows = table.take(labels.labeled)
        order = fixed_order(rows, labels.targets)
        known = plain_array(labels.y[labels.labeled])

        def fitted(chosen: Index) -> Any:
            try:
                return clone(estimator).fit(rows.take(chosen).native(), known[chosen])
            except (TypeError, ValueError) as error:
                numbered = labels.classes is None or labels.classes.tolist() == list(range(labels.classes.size))
                way_out = "It gets classes as they are in y: number them 0, 1, ... if it takes nothing else."
                raise ValueError(
                    f"The expert {name} cannot be fitted: {error}{'' if numbered else ' ' + way_out}"
                ) from error

        def predict(train: Index, test: Index) -> Floats:
            return _predicted(fitted(order[train]), rows.take(order[test]), labels)

        held_out = np.empty(labels.targets.shape)
        values = labels.classes is None
        held_out[order] = cross_fitted(labels.targets[order], predict, _FOLDS_OF_ESTIMATORS, values=values)
        return cls(name, fitted(order), labels, held_out)

    def predict(self, table: Table, *, n_jobs: int | None = 1, verbose: bool = False) -> Floats:
        """Predict the targets of any rows, block by block: probabilities, or values for regression."""
        # A user's model may not bear threads, and brings its own.
        settings: dict[str, Any] = {"n_jobs": 1, "description": self.name, "verbose": verbose}
        return over_rows(lambda block: _predicted(self.model, table.take(block), self.labels), table.n_rows, **settings)


def check_estimator(estimator: Any) -> str:
    """Return the name of a user's expert, or say what it lacks."""
    name = type(estimator).__name__
    # Stacking gets its methods of prediction by fitting: until then only its class has them.
    predicts = any(hasattr(one, how) for one in (estimator, type(estimator)) for how in ("predict_proba", "predict"))
    if not (hasattr(estimator, "fit") and predicts):
        raise TypeError(
            f"An expert is 'graph', 'forest', 'linear' or an estimator with fit and predict_proba; got {estimator!r}."
        )
    if isinstance(estimator, type):
        raise TypeError(f"Pass an instance as expert: {estimator.__name__}(), not the class.")
    return name


def _predicted(model: Any, table: Table, labels: Labels) -> Floats:
    X = table.native()
    if labels.classes is None:
        if is_classifier(model) or not hasattr(model, "predict"):
            raise TypeError(f"For regression an expert has to predict values; {type(model).__name__} is a classifier.")
        values = _answer(model, "predict", X)
        if values.shape not in ((table.n_rows,), (table.n_rows, 1)) or not np.isfinite(values).all():
            raise ValueError(
                f"The expert {type(model).__name__} has to predict a finite number for each of {table.n_rows} rows; it "
                f"returned the shape {values.shape}{'' if np.isfinite(values).all() else ' with NaN or inf'}."
            )
        return values.ravel()
    if hasattr(model, "predict_proba") and not hasattr(model, "classes_"):
        raise TypeError(
            "For classes an expert needs classes_, in the order of the columns of predict_proba; "
            f"{type(model).__name__} has none."
        )
    if not hasattr(model, "predict_proba"):
        raise TypeError(
            f"For classes an expert needs predict_proba; {type(model).__name__} has none. Wrap it in "
            "sklearn.calibration.CalibratedClassifierCV, or use one that has it."
        )
    given = _answer(model, "predict_proba", X)
    position = {label: k for k, label in enumerate(labels.classes.tolist())}
    known = np.asarray(model.classes_).tolist()
    if given.shape != (table.n_rows, len(known)) or not (
        (given >= 0).all() and np.allclose(given.sum(axis=1), 1, atol=1e-3)
    ):
        raise ValueError(
            f"predict_proba of the expert {type(model).__name__} has to return probabilities with sum 1 of each of its "
            f"{len(known)} classes, for each of {table.n_rows} rows; it returned the shape {given.shape}."
        )
    unknown = [label for label in known if label not in position]
    if unknown:
        raise ValueError(
            f"The expert {type(model).__name__} knows the classes {unknown}, which y has not: its classes must be "
            f"among {labels.classes.tolist()}. Pass classes= with all of them."
        )
    q = np.zeros((table.n_rows, labels.classes.size))
    q[:, [position[label] for label in known]] = given
    return q[:, 1] if labels.targets.ndim == 1 else q


def _answer(model: Any, method: str, X: Any) -> Floats:
    """Ask a model of the user; what it cannot do is reported under its name."""
    try:
        return np.asarray(getattr(model, method)(X), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"The expert {type(model).__name__} cannot predict: {error}") from error
