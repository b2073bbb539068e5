"""Semi-supervised, budgeted regression around a booster's own scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from grbb_ext.estimators._base import GRBBModel
from grbb_ext.labels import read_numbers


class GRBBRegressor(RegressorMixin, GRBBModel):  # type: ignore[misc]  # scikit-learn has no types
    """A booster for numbers that also learns from rows without a label, and pays for its features.

    The loss is the squared error. Scores start at the mean of the labelled rows, as those of the plain boosters do.
    The wrapped estimator's own parameters drive the training; what a custom objective cannot honour is mapped or
    refused by name, see the user guide.

    Parameters
    ----------
    estimator : lightgbm.LGBMRegressor, xgboost.XGBRegressor or None, default=None
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
    GRBBClassifier : The same for classes.

    Examples
    --------
    >>> import numpy as np
    >>> from lightgbm import LGBMRegressor
    >>> from grbb_ext import GRBBRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(300, 1))
    >>> truth = np.sin(X[:, 0])
    >>> y = np.where(np.arange(300) < 30, truth, np.nan)  # 30 labels
    >>> model = GRBBRegressor(LGBMRegressor(n_estimators=50), guard=False).fit(X, y)  # near rows have near values
    >>> bool(model.score(X[30:], truth[30:]) > 0.9)
    True
    """

    _task = "regression"

    def fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, eval_set: Any = None, callbacks: Any = None
    ) -> GRBBRegressor:
        """Train on all rows, labelled and unlabelled.

        Parameters
        ----------
        X : array-like, sparse matrix, pandas.DataFrame or polars.DataFrame of shape (N, d)
            Rows. NaN is a missing value, for the booster to deal with.
        y : array-like of shape (N,)
            Numbers; NaN or None marks a row without one.
        sample_weight : array-like of shape (N,) or None, default=None
            Weights of the rows.
        eval_set : list of pairs (X, y), default=None
            Rows on which training is watched, for early stopping; unlabelled ones are left out.
        callbacks : list, default=None
            Callbacks of the library, beside those of the wrapped estimator.

        Returns
        -------
        GRBBRegressor
            Itself.
        """
        values = self._read_y(y)
        estimator, table, weight = self._open(X, values, sample_weight)
        labeled = ~np.isnan(values)
        self._train(
            estimator,
            table,
            values,
            weight,
            objective_settings={"loss": "squared_error", "unlabeled": np.nan},
            start=_mean(values[labeled], None if weight is None else weight[labeled]),
            eval_set=eval_set,
            callbacks=callbacks,
        )
        self.transduction_ = np.where(labeled, values, self.raw_scores_)
        return self

    def _read_y(self, y: Any) -> NDArray[np.float64]:
        return read_numbers(y, type(self).__name__)

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
        check_is_fitted(self, "booster_")
        rows, values, weight = self._labeled_rows(X, self._read_y(y), np.nan, sample_weight)
        return float(r2_score(values, self.predict(rows), sample_weight=weight))


def _mean(values: NDArray[np.float64], weight: NDArray[np.float64] | None) -> float:
    """Return the weighted mean of the labelled rows, or 0 where there is none; those cases are refused later."""
    if values.size == 0 or (weight is not None and not weight.any()):
        return 0.0
    return float(np.average(values, weights=weight))
