"""Semi-supervised, budgeted classification around a booster's own scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from grbb_ext.estimators._base import GRBBModel
from grbb_ext.labels import read_all_classes, read_classes, read_labels
from grbb_ext.losses import class_probabilities


class GRBBClassifier(ClassifierMixin, GRBBModel):  # type: ignore[misc]  # scikit-learn has no types
    """A booster that also learns from rows without a label, and pays for its features.

    The wrapped estimator's own parameters drive the training; the graph, the rule and the prices are parameters here.
    What a custom objective cannot honour is mapped or refused by name, see the user guide.

    Parameters
    ----------
    estimator : lightgbm.LGBMClassifier, xgboost.XGBClassifier or None, default=None
        The booster. None takes LightGBM where it is installed, else XGBoost. It is cloned, never changed.
    graph : {"refined", "knn"}, RefinedGraph, SharedGraph, sparse matrix or array-like of shape (N, N), default=None
        The affinity of the rows given to fit: built from X, shared between fits, or ready. None is ``"refined"`` for
        ``rule="targets"``, which is the default, and ``"knn"`` for the other rules and the paper's preset.
    n_neighbors : int, default=9
        Neighbours of a row, at most N - 1.
    weights, metric, scale
        Of the graph, as in :func:`grbb_ext.knn_graph`.
    preset : {"paper"} or None, default=None
        ``"paper"`` is the paper's rule, exactly.
    rule, propagation, hessian, lam, correction, sharpen, hard, solver
        As in :func:`grbb_ext.grbb_objective`.
    guard : bool, default=True
        Let a forest on the labelled rows speak beside the graph, each with the weight that the labels give it, see
        :func:`grbb_ext.teacher.weigh`. Where they speak against the graph, fit warns.
    feature_costs : FeatureCosts, mapping or array-like, default=None
        Prices of the columns, by name where X has names.
    mu : float, default=0
        Trade-off between gain and price.
    budget : float or None, default=None
        The most that all features may cost together.
    classes : array-like or None, default=None
        All classes, where y may miss some.
    class_weight : "balanced", dict or None, default=None
        Weights of the classes.
    unlabeled : object, default=-1
        The marker of unlabelled rows in y. None and NaN mark in any case; None marks only these.
    categorical_features : "from_dtype" or list of names, positions or bools, default="from_dtype"
        Categorical columns, beside those of a frame that have a categorical type.
    memory : None, str, path or joblib.Memory, default=None
        Where neighbours are kept, so that a fit to the same rows does not search them again.
    n_jobs : int or None, default=None
        Threads of the graph and of the solver. The booster has its own.
    random_state : int, RandomState or None, default=None
        Seed of the trees that refine the graph and of the guard (None is 0), and of a booster that has none of its
        own.
    verbose : bool, default=False
        Draw progress bars on what takes more than a few seconds.

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
        What the labels say for the graph and for a forest on the labelled rows alone; None without a guard.
    feature_cost_ : float or None
        What the features of the model cost; None without `feature_costs`.
    paid_ : tuple
        The sources that were paid.
    ledger_ : Ledger or None
        What was bought when.
    n_iter_ : int
        Rounds of the model.
    stop_reason_ : str
        Why training ended.
    evals_result_ : dict
        Metrics of the sets in `eval_set`, by set and metric, a value for each round.
    library_ : {"lightgbm", "xgboost"}
        Whose booster it is.

    See Also
    --------
    GRBBRegressor : The same for numbers.
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

    def __init__(
        self,
        estimator: Any = None,
        *,
        graph: Any = None,
        n_neighbors: int = 9,
        weights: Any = None,
        metric: str = "euclidean",
        scale: Any = "auto",
        preset: Any = None,
        rule: Any = None,
        propagation: Any = None,
        hessian: Any = None,
        lam: float = 0.0,
        correction: float = 1.0,
        sharpen: float = 3.0,
        hard: bool = False,
        guard: bool = True,
        solver: Any = "auto",
        feature_costs: Any = None,
        mu: float = 0.0,
        budget: float | None = None,
        classes: ArrayLike | None = None,
        class_weight: Any = None,
        unlabeled: Any = -1,
        categorical_features: Any = "from_dtype",
        memory: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            estimator,
            graph=graph,
            n_neighbors=n_neighbors,
            weights=weights,
            metric=metric,
            scale=scale,
            preset=preset,
            rule=rule,
            propagation=propagation,
            hessian=hessian,
            lam=lam,
            correction=correction,
            sharpen=sharpen,
            hard=hard,
            guard=guard,
            solver=solver,
            feature_costs=feature_costs,
            mu=mu,
            budget=budget,
            categorical_features=categorical_features,
            memory=memory,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )
        self.classes = classes
        self.class_weight = class_weight
        self.unlabeled = unlabeled

    def fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, eval_set: Any = None, callbacks: Any = None
    ) -> GRBBClassifier:
        """Train on all rows, labelled and unlabelled.

        Parameters
        ----------
        X : array-like, sparse matrix, pandas.DataFrame or polars.DataFrame of shape (N, d)
            Rows. NaN is a missing value, for the booster to deal with.
        y : array-like of shape (N,)
            Labels; `unlabeled`, None or NaN marks a row without one.
        sample_weight : array-like of shape (N,) or None, default=None
            Weights of the rows.
        eval_set : list of pairs (X, y), default=None
            Rows on which training is watched, for early stopping; unlabelled ones are left out.
        callbacks : list, default=None
            Callbacks of the library, beside those of the wrapped estimator.

        Returns
        -------
        GRBBClassifier
            Itself.
        """
        labels = self._read_y(y)
        estimator, table, weight = self._open(X, labels, sample_weight)
        classes = read_all_classes(self.classes, self.unlabeled)
        read = read_labels(labels, "auto", classes, self.unlabeled)
        assert read.classes is not None
        self._train(
            estimator,
            table,
            labels,
            weight,
            objective_settings={"classes": classes, "unlabeled": self.unlabeled},
            class_weight=self._adapter.class_weight(estimator, self.class_weight, read),
            eval_set=eval_set,
            callbacks=callbacks,
        )
        self.classes_ = read.classes
        predicted = self._classes_of(self.raw_scores_)
        predicted[read.labeled] = np.asarray(labels[read.labeled].tolist(), dtype=self.classes_.dtype)
        self.transduction_ = predicted
        return self

    def _read_y(self, y: Any) -> NDArray[Any]:
        return read_classes(y, self.unlabeled, type(self).__name__)

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
        check_is_fitted(self, "booster_")
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
        check_is_fitted(self, "booster_")
        rows, labels, weight = self._labeled_rows(X, self._read_y(y), self.unlabeled, sample_weight)
        labels = np.asarray(labels.tolist()) if labels.dtype.kind == "O" else labels
        return float(accuracy_score(labels, self.predict(rows), sample_weight=weight))

    def _classes_of(self, scores: NDArray[Any]) -> NDArray[Any]:
        index = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[index])
