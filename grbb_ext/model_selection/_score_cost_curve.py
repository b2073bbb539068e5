"""Cross-validation of mu and of the number of rounds, from one model for each fold and mu."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils.parallel import Parallel, delayed

from grbb_ext._reporting import progress
from grbb_ext.costs import Ledger, check_price
from grbb_ext.model_selection._cost_path import DEFAULT_MU
from grbb_ext.model_selection._curve import ScoreCostCurve
from grbb_ext.model_selection._scorer import labeled_rows, labeled_scorer, plain_array, take_rows
from grbb_ext.model_selection._share_graph import share_graph
from grbb_ext.model_selection._split import SemiSupervisedSplit

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


# What an estimator has to have beside fit; GRBBClassifier and GRBBRegressor do.
_PARAMETERS = ("estimator", "feature_costs", "mu", "budget")


def score_cost_curve(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    feature_costs: Any = None,
    mus: Iterable[float] | None = None,
    cv: Any = 5,
    scoring: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: bool = True,
) -> ScoreCostCurve:
    """Cross-validate the trade-off between score and cost: one fit for each fold and mu, scored after every round.

    The first t rounds of a model are the model of t rounds, so the number of rounds needs no fits of its own. The graph
    is built once over all rows and cut to each fold (:func:`share_graph`) where the estimator has
    ``graph="knn"``; nothing is learned from the labels left out.

    Parameters
    ----------
    estimator : GRBBClassifier or GRBBRegressor
        What to train. It is not changed. Its own ``mu`` is replaced; a ``budget`` is kept in every fit.
    X : array-like, sparse matrix or frame of shape (N, d)
        Rows, labelled and unlabelled.
    y : array-like of shape (N,)
        Labels, with the estimator's marker where there is none.
    feature_costs : FeatureCosts, dict or sequence, default=None
        Prices; None takes the estimator's.
    mus : iterable of float or None, default=None
        Trade-offs to try; None is 0 and 4**-5, ..., 4**4, as in the paper.
    cv : int, splitter or iterable, default=5
        A number of folds is :class:`SemiSupervisedSplit`. Put a plain splitter of scikit-learn into one, too.
    scoring : str, callable or None, default=None
        A score of scikit-learn; None is accuracy, or R^2 for regression. Unlabelled rows are left out.
    groups : array-like of shape (N,) or None, default=None
        Groups (queries, patients) that must not be on both sides of a fold.
    sample_weight : array-like of shape (N,) or None, default=None
        Weights of the rows in training.
    random_state : int, RandomState or None, default=None
        Shuffles the rows before a number of folds is dealt; None leaves them in order. The estimator has its own.
    n_jobs : int or None, default=None
        Fits at a time. Give the booster one thread each (``n_jobs=1``) where it is above 1.
    verbose : bool, default=True
        Draw a progress bar.

    Returns
    -------
    ScoreCostCurve
        With ``best_under(budget)``, ``fit_best(X, y, budget)`` and ``to_dict()``.

    See Also
    --------
    grbb_ext.plotting.CostAccuracyDisplay, grbb_ext.plotting.TreesAccuracyDisplay : Pictures of it.
    grbb_ext.costs.cost_path : The sweep without cross-validation, for any training function.

    Examples
    --------
    >>> from lightgbm import LGBMClassifier
    >>> from sklearn.datasets import load_wine
    >>> from grbb_ext import GRBBClassifier
    >>> X, truth = load_wine(return_X_y=True)
    >>> y = np.where(np.random.default_rng(0).random(178) < 0.3, truth, -1)
    >>> booster = LGBMClassifier(n_estimators=10, num_leaves=4, n_jobs=1, verbosity=-1)
    >>> model = GRBBClassifier(booster, feature_costs=[5.0] * 6 + [12.0] + [5.0] * 6)
    >>> curve = score_cost_curve(model, X, y, mus=[0, 1], cv=3, random_state=0, verbose=False)
    >>> curve
    ScoreCostCurve(accuracy, 3 folds, 2 values of mu, up to 10 rounds)
    >>> best = curve.best_under(20)
    >>> best.cost <= 20
    True
    >>> curve.fit_best(X, y, 20).feature_cost_ <= 20
    True
    """
    model = _with_costs(estimator, feature_costs)
    values = sorted({check_price(mu, "mu") for mu in (DEFAULT_MU if mus is None else mus)})
    if not values:
        raise ValueError("mus is empty: give at least one value.")
    if isinstance(scoring, dict | list | tuple | set):
        raise TypeError("A curve has one score: pass a name or a scorer as scoring=.")
    unlabeled = getattr(model, "unlabeled", np.nan)
    scorer = labeled_scorer(scoring, unlabeled=unlabeled)
    labels, labeled = labeled_rows(y, unlabeled)
    folds = [
        (train, test[labeled[test]])
        for train, test in _splitter(cv, unlabeled, random_state, is_classifier(model)).split(X, y, groups)
    ]
    if any(test.size == 0 for _, test in folds):
        raise ValueError(f"cv={cv!r} made a fold without a labelled row: pass cv=SemiSupervisedSplit({cv!r}).")

    shared = clone(model) if model.rule == "labeled" and model.lam == 0 else share_graph(model, X)
    if is_classifier(model) and model.classes is None:
        shared.set_params(classes=np.unique(plain_array(labels[labeled])))  # a fold may miss some
    rows = [
        Parallel(n_jobs=n_jobs)(
            delayed(_one_fit)(clone(shared).set_params(mu=mu), X, y, train, test, scorer, sample_weight)
            for train, test in folds
        )
        for mu in progress(values, total=len(values), description="score-cost curve", verbose=verbose)
    ]
    fits = [row[fold] for fold in range(len(folds)) for row in rows]
    longest = max(len(fit.score) for fit in fits)
    shape = (len(folds), len(values))
    if model.estimator is None:  # name the booster that was found installed, so that its rounds can be set
        model.set_params(estimator=fits[0].booster)
    return ScoreCostCurve(
        mu=np.array(values),
        score=np.array([_extended(fit.score, longest) for fit in fits]).reshape(*shape, longest),
        cost=np.array([_extended(fit.cost, longest) for fit in fits]).reshape(*shape, longest),
        n_rounds=np.array([fit.n_rounds for fit in fits], dtype=np.intp).reshape(shape),
        score_name=score_name(scoring, model),
        estimator=model,
        n_rounds_name="estimator__n_estimators",
    )


class _Fit(NamedTuple):
    """Scores and costs after each round of one model, and the booster's estimator that trained it."""

    score: list[float]
    cost: list[float]
    n_rounds: int
    booster: Any


def _one_fit(
    model: Any, X: Any, y: Any, train: NDArray[np.intp], test: NDArray[np.intp], scorer: Any, sample_weight: Any
) -> _Fit:
    weight = {} if sample_weight is None else {"sample_weight": take_rows(sample_weight, train)}
    model.fit(take_rows(X, train), take_rows(y, train), **weight)
    X_test, y_test = take_rows(X, test), take_rows(y, test)
    score = [float(scorer(stage, X_test, y_test)) for stage in stages(model, X_test)]
    return _Fit(score, _cost_after_rounds(model.ledger_, len(score)), int(model.n_iter_), clone(model.estimator_))


def _cost_after_rounds(ledger: Ledger, n_rounds: int) -> list[float]:
    """Return what the first t rounds have paid for, t = 1, ..., n_rounds.

    Examples
    --------
    >>> from grbb_ext.costs import FeatureCosts
    >>> ledger = Ledger(FeatureCosts([1.0, 2.0]))
    >>> _ = ledger.buy([0], round=0), ledger.buy([1], round=2)
    >>> _cost_after_rounds(ledger, 4)
    [1.0, 1.0, 3.0, 3.0]
    """
    bought = np.array([purchase.round for purchase in ledger.history], dtype=np.intp)
    spent = np.array([0.0, *(purchase.spent for purchase in ledger.history)])
    return list(spent[np.searchsorted(bought, np.arange(1, n_rounds + 1), side="left")].tolist())


def _extended(values: list[float], size: int) -> list[float]:
    return values + values[-1:] * (size - len(values))


def _splitter(cv: Any, unlabeled: Any, random_state: Any, classes: bool) -> Any:
    if isinstance(cv, int | np.integer):
        return SemiSupervisedSplit(
            cv,
            stratify="auto" if classes else False,
            shuffle=random_state is not None,
            random_state=random_state,
            unlabeled=unlabeled,
        )
    if random_state is not None:
        raise ValueError("random_state is for a number of folds: set it on the splitter.")
    return check_cv(cv)


def _with_costs(estimator: Any, feature_costs: Any) -> Any:
    """Return a copy of the estimator that knows its prices."""
    missing = [name for name in _PARAMETERS if not hasattr(estimator, name)]
    if missing or isinstance(estimator, type):
        raise TypeError(
            f"estimator must be GRBBClassifier(...) or GRBBRegressor(...), got {estimator!r}. In a pipeline, transform "
            "X before."
        )
    model = clone(estimator)
    if feature_costs is not None:
        model.set_params(feature_costs=feature_costs)
    if model.feature_costs is None:
        raise ValueError("A score-cost curve needs prices: pass feature_costs=, or set the estimator's.")
    return model
