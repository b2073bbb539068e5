"""Semi-supervised, budgeted classification around a booster's own scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score

from grbb_ext.estimators._base import GRBBModel
from grbb_ext.estimators._rows import refuse_marker_as_class
from grbb_ext.labels import listed_classes, plain_array, warn_of_strangers
from grbb_ext.losses import class_probabilities
from grbb_ext.table import Table


@dataclass(eq=False, repr=False, kw_only=True)
class GRBBClassifier(ClassifierMixin, GRBBModel):  # type: ignore[misc]  # scikit-learn has no types
    """Boosting classifier that also learns from unlabelled rows, with optional prices of features.

    The wrapped estimator's own parameters are used for training; graph, teacher, rule and prices are parameters here.
    Parameters that do not work with a custom objective are translated, or rejected with an error that names them.

    Parameters
    ----------
    estimator : lightgbm.LGBMClassifier, xgboost.XGBClassifier or None, default=None
        The booster. None is LightGBM if it is installed, with ``n_estimators=200, extra_trees=True,
        colsample_bynode=0.5, min_child_samples=5``, else XGBoost with ``learning_rate=0.1, colsample_bynode=0.3``:
        settings that suit a student. With `feature_costs` None has the settings of the library. An estimator is cloned
        and not changed.
    graph : {"table", "knn", "refined"}, KNNGraph, SharedGraph, sparse matrix or array-like of shape (N, N)
        The graph of the rows given to fit, as in :func:`grbb_ext.grbb_objective`; at most N - 1 neighbours. None is
        ``"table"`` for ``rule="targets"``, which is the default, and ``"knn"`` for the other rules.
    teacher, propagation, rule
        As in :func:`grbb_ext.grbb_objective`. ``rule="paper"`` is the rule of the paper.
    feature_costs : FeatureCosts, mapping or array-like, default=None
        Prices of the columns, by name where X has names.
    mu : float, default=0
        The gain that one unit of cost must bring: a feature is bought only if its gain exceeds mu times its price.
    budget : float or None, default=None
        The most that all features may cost together.
    class_weight : "balanced", dict or None, default=None
        Weights of the classes.
    unlabeled : object, default=-1
        The value of y that marks unlabelled rows. None and NaN always do; ``unlabeled=None`` allows only these.
    categorical_features : "from_dtype" or list of names, positions or bools, default="from_dtype"
        Categorical columns, beside those of text or of a categorical type.
    random_state : int, RandomState or None, default=None
        Seed of the teacher's trees (None is 0), and of a booster that has none of its own.
    n_jobs : int or None, default=None
        Threads of graph, teacher and operator; None takes all cores. The booster has its own.
    verbose : bool, default=False
        Show progress bars for steps that take more than two seconds.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes, sorted.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : ndarray of str
        Their names, where X has them.
    transduction_ : ndarray of shape (N,)
        The class of each row given to fit: its label, or what the model predicts.
    raw_scores_ : ndarray of shape (N,) or (N, K)
        Raw scores of the rows given to fit.
    estimator_ : object
        The clone of the wrapped estimator that was used; it is not fitted itself.
    booster_ : xgboost.Booster or lightgbm.Booster
        The trained model of the library, cut to its best round where training was stopped early.
    forest_ : Forest
        Its trees as arrays.
    objective_ : GRBBObjective
        The objective.
    graph_ : csr_array of shape (N, N) or None
        The affinity.
    evidence_ : Evidence or None
        Held-out likelihood and weight of each expert of the teacher; None for rules without targets.
    feature_cost_ : float or None
        What the features of the model cost; None without `feature_costs`.
    paid_ : tuple
        Sources that the model pays for.
    ledger_ : Ledger or None
        What was bought, in which round, at which price.
    n_iter_ : int
        Rounds of the model.
    stop_reason_ : str
        Why training ended.
    evals_result_ : dict
        Metrics of the sets in `eval_set`, by set and metric, a value for each round.
    library_ : {"lightgbm", "xgboost"}
        The library of the booster.

    See Also
    --------
    GRBBRegressor : The same for regression.
    grbb_ext.grbb_objective : The objective alone, for ``xgboost.train`` and ``lightgbm.train``.

    Examples
    --------
    Digits with 50 labels for ten classes:

    >>> import numpy as np
    >>> from lightgbm import LGBMClassifier
    >>> from sklearn.datasets import load_digits
    >>> from grbb_ext import GRBBClassifier
    >>> X, truth = load_digits(return_X_y=True)
    >>> labeled = np.random.default_rng(0).choice(len(truth), 50, replace=False)
    >>> y = np.full(len(truth), -1)
    >>> y[labeled] = truth[labeled]
    >>> model = GRBBClassifier(LGBMClassifier(n_estimators=20)).fit(X, y)
    >>> rest = np.setdiff1d(np.arange(len(truth)), labeled)
    >>> bool(model.score(X[rest], truth[rest]) > 0.85)
    True
    """

    _task = "classification"
    class_weight: Any = None
    unlabeled: Any = -1

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        classes: ArrayLike | None = None,
        eval_set: Any = None,
        callbacks: Any = None,
        init_model: GRBBClassifier | None = None,
    ) -> GRBBClassifier:
        """Train on all rows, labelled and unlabelled.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (N, d)
            Rows. NaN is a missing value, which the booster handles.
        y : array-like of shape (N,)
            Labels; `unlabeled`, None or NaN marks a row without one.
        sample_weight : array-like of shape (N,) or None, default=None
            Weights of the rows. The teacher learns from all labels alike, see :func:`grbb_ext.grbb_objective`.
        classes : array-like or None, default=None
            All classes, where y may miss some.
        eval_set : list of pairs (X, y), default=None
            Rows on which metrics are computed after each round, for early stopping; unlabelled rows are left out.
        callbacks : list, default=None
            Callbacks of the library, beside those of the wrapped estimator.
        init_model : GRBBClassifier or None, default=None
            A fitted model to continue, of the same columns and classes. The trees of this training are added to its
            own, and `n_iter_` counts both. What its features cost is paid, and counts towards `budget`.

        Returns
        -------
        GRBBClassifier
            Itself.
        """
        known = None if classes is None else np.sort(listed_classes(classes))
        if init_model is not None and hasattr(init_model, "classes_"):
            if known is not None and known.tolist() != init_model.classes_.tolist():
                raise ValueError(f"init_model has the classes {init_model.classes_.tolist()}, got {known.tolist()}.")
            known = init_model.classes_
        labels = self._fit(
            X, y, sample_weight, classes=known, eval_set=eval_set, callbacks=callbacks, init_model=init_model
        )
        assert labels.classes is not None
        self.classes_: NDArray[Any] = labels.classes
        self.transduction_ = self._classes_of(self.raw_scores_)
        self.transduction_[labels.labeled] = np.asarray(labels.y[labels.labeled].tolist(), dtype=self.classes_.dtype)
        return self

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return raw scores: of the second of two classes, shape (N,), or of each of K, shape (N, K).

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (N, d)
            Rows.
        """
        return self._raw_scores(X)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class, shape (N, K), in the order of ``classes_``.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (N, d)
            Rows.
        """
        return class_probabilities(self._raw_scores(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (N, d)
            Rows.
        """
        return self._classes_of(self._raw_scores(X))

    def staged_predict_proba(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Yield the probabilities after each round.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (N, d)
            Rows.

        Yields
        ------
        ndarray of shape (N, K)
        """
        for scores in self._staged_raw_scores(X):
            yield class_probabilities(scores)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy on labelled rows; rows that y marks as unlabelled are left out.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (N, d)
            Rows.
        y : array-like of shape (N,)
            Labels.
        sample_weight : array-like of shape (N,) or None, default=None
            Weights of the rows.
        """
        scores, labels, weight = self._scores_to_score(X, y, sample_weight)
        labels = plain_array(labels)
        warn_of_strangers(labels, self.classes_)
        return float(accuracy_score(labels, self._classes_of(scores), sample_weight=weight))

    def _read(self, X: Any, **settings: Any) -> Table:
        refuse_marker_as_class(self.unlabeled)
        return super()._read(X, **settings)

    def __sklearn_clone__(self) -> Self:
        # Wrappers that fit in other processes are up the stack here, and no longer in fit.
        refuse_marker_as_class(self.unlabeled)
        copied: Self = super().__sklearn_clone__()
        return copied

    def _classes_of(self, scores: NDArray[Any]) -> NDArray[Any]:
        index = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[index])
