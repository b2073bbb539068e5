"""Semi-supervised, budgeted regression around a booster's own scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from grbb_ext.estimators._base import GRBBModel


class GRBBRegressor(RegressorMixin, GRBBModel):  # type: ignore[misc]  # scikit-learn has no types
    """Boosting regressor that also learns from unlabelled rows, with optional prices of features.

    The loss is the squared error. Scores start at the mean of the labelled rows, as those of the plain boosters do.
    The wrapped estimator's own parameters are used for training. Parameters that do not work with a custom objective
    are translated, or rejected with an error that names them.

    Parameters
    ----------
    estimator : lightgbm.LGBMRegressor, xgboost.XGBRegressor or None, default=None
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
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : ndarray of str
        Their names, where X has them.
    transduction_ : ndarray of shape (N,)
        The value of each row given to fit: its label, or what the model predicts.
    raw_scores_ : ndarray of shape (N,)
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
    GRBBClassifier : The same for classification.

    Examples
    --------
    >>> import numpy as np
    >>> from lightgbm import LGBMRegressor
    >>> from grbb_ext import GRBBRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(300, 1))
    >>> truth = np.sin(X[:, 0])
    >>> y = np.where(np.arange(300) < 30, truth, np.nan)  # 30 labels
    >>> model = GRBBRegressor(LGBMRegressor(n_estimators=50), teacher="graph").fit(X, y)  # near rows have near values
    >>> bool(model.score(X[30:], truth[30:]) > 0.9)
    True
    """

    _task = "regression"

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        eval_set: Any = None,
        callbacks: Any = None,
        init_model: GRBBRegressor | None = None,
    ) -> GRBBRegressor:
        """Train on all rows, labelled and unlabelled.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (N, d)
            Rows. NaN is a missing value, which the booster handles.
        y : array-like of shape (N,)
            Numbers; NaN or None marks a row without one.
        sample_weight : array-like of shape (N,) or None, default=None
            Weights of the rows. The teacher learns from all labels alike, see :func:`grbb_ext.grbb_objective`.
        eval_set : list of pairs (X, y), default=None
            Rows on which metrics are computed after each round, for early stopping; unlabelled rows are left out.
        callbacks : list, default=None
            Callbacks of the library, beside those of the wrapped estimator.
        init_model : GRBBRegressor or None, default=None
            A fitted model to continue, of the same columns. The trees of this training are added to its own, and
            `n_iter_` counts both. What its features cost is paid, and counts towards `budget`.

        Returns
        -------
        GRBBRegressor
            Itself.
        """
        labels = self._fit(X, y, sample_weight, eval_set=eval_set, callbacks=callbacks, init_model=init_model)
        self.transduction_ = self.raw_scores_.astype(np.float64)
        self.transduction_[labels.labeled] = labels.targets
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the predicted value of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (N, d)
            Rows.
        """
        return self._raw_scores(X).astype(np.float64, copy=False)

    def staged_predict(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Yield the predictions after each round.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (N, d)
            Rows.

        Yields
        ------
        ndarray of shape (N,)
        """
        for scores in self._staged_raw_scores(X):
            yield scores.astype(np.float64)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return R^2 on labelled rows; rows where y is NaN are left out.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (N, d)
            Rows.
        y : array-like of shape (N,)
            Numbers.
        sample_weight : array-like of shape (N,) or None, default=None
            Weights of the rows.
        """
        scores, values, weight = self._scores_to_score(X, y, sample_weight)
        return float(r2_score(values, scores.astype(np.float64, copy=False), sample_weight=weight))
