"""One sweep along mu and along budgets: of an estimator, cross-validated, or of any training function."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from grbb_ext._progress import n_threads, progress
from grbb_ext.costs import FeatureCosts, check_price
from grbb_ext.forest import Forest
from grbb_ext.model_selection._curve import CostCurve
from grbb_ext.model_selection._scorer import LabeledScorer, labeled_rows, labeled_scorer, marker_of, take_rows
from grbb_ext.model_selection._split import (
    SemiSupervisedSplit,
    copy_model,
    fit_in_folds,
    folds_of_model,
    known_classes,
    share_graph,
)
from grbb_ext.table import column_names

DEFAULT_MUS = (0.0, *(4.0**k for k in range(-5, 5)))

Floats = NDArray[np.float64]


def staged_curve(estimator: Any, X: Any, y: Any, scoring: Any = None) -> CostCurve:
    """Return the curve of one fitted model: its score on labelled rows, and its cost, after each round.

    Parameters
    ----------
    estimator : GRBBClassifier or GRBBRegressor
        Fitted.
    X, y
        Rows and their labels; unlabelled ones are left out.
    scoring : str, callable or None, default=None
        A score of scikit-learn; None is accuracy, or R^2 for regression.

    Returns
    -------
    CostCurve
        With one setting and one fold. Without prices all costs are 0.
    """
    check_is_fitted(estimator)
    check_consistent_length(X, y)
    rows = np.flatnonzero(labeled_rows(y, marker_of(estimator))[1])
    scorer, name = _scorer(scoring, estimator)
    fit = _staged(scorer, estimator, take_rows(X, rows), take_rows(y, rows))
    return _curve([{"mu": float(estimator.mu)}], [[fit]], score_name=name)


def _scorer(scoring: Any, estimator: Any) -> tuple[LabeledScorer, str]:
    """Return a scorer of labelled rows, and its name for the axis of a picture."""
    own = "accuracy" if is_classifier(estimator) else "R^2"
    return labeled_scorer(scoring), own if scoring is None else _name(scoring)


def _name(scoring: Any) -> str:
    """Return the name of a score: of its function, where it is a scorer of scikit-learn."""
    if isinstance(scoring, str):
        return scoring
    function = getattr(scoring, "_score_func", scoring)
    return str(getattr(function, "__name__", "score")).replace("<lambda>", "score")


class _Stage(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A model whose predictions of the test rows are known, for scikit-learn's scorers."""

    def __init__(self, model: Any, prediction: Floats) -> None:
        self.model, self.prediction = model, prediction
        if is_classifier(model):
            self.classes_, self.unlabeled = model.classes_, marker_of(model)

    def __sklearn_tags__(self) -> Any:
        return self.model.__sklearn_tags__()

    def predict_proba(self, X: Any) -> Floats:
        return self.prediction

    def predict(self, X: Any) -> NDArray[Any]:
        return self.classes_[self.prediction.argmax(axis=1)] if is_classifier(self.model) else self.prediction

    def score(self, X: Any, y: Any, **keywords: Any) -> float:
        return float((ClassifierMixin if is_classifier(self.model) else RegressorMixin).score(self, X, y, **keywords))


def cost_curve(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    feature_costs: Any = None,
    mus: Iterable[float] | None = None,
    budgets: Iterable[float] | int | None = None,
    cv: Any = 5,
    scoring: Any = None,
    higher_is_better: bool = True,
    groups: Any = None,
    sample_weight: Any = None,
    random_state: Any = None,
    n_jobs: int = 1,
    verbose: bool = True,
) -> CostCurve:
    """Train a model for each mu and for each budget, and return the curve of score and cost.

    Gains have no natural unit of money: how much loss a unit of cost is worth is a choice. The curve shows what each
    choice buys. A grid of mu often has no model near a small budget; a path of hard budgets has one at each of them.

    An estimator is cross-validated: one fit for each fold and setting, scored after every round. The first t rounds of
    a model are the model of t rounds, so the number of rounds needs no fits of its own, and early stopping is left out.
    The graph is built once over all rows and cut to each fold (:func:`share_graph`); labels that are left out are not
    used.

    Parameters
    ----------
    estimator : GRBBClassifier, GRBBRegressor or callable
        What to train. An estimator is not changed. Along `mus` its ``mu`` is replaced and a ``budget`` is kept; along
        `budgets` its ``mu`` is kept, and its own ``budget`` is not exceeded. A callable trains by itself:
        ``estimator(mu=...)`` and ``estimator(budget=...)`` return a booster of either library, or a
        :class:`~grbb_ext.forest.Forest`.
    X : array-like, sparse matrix or frame of shape (N, d)
        Rows, labelled and unlabelled. Used with an estimator only, like `y` and the options of the folds.
    y : array-like of shape (N,)
        Labels, with the estimator's marker where there is none.
    feature_costs : FeatureCosts, dict or sequence, default=None
        Prices; None takes the estimator's.
    mus : iterable of float or None, default=None
        Trade-offs to try; None is 0 and 4**-5, ..., 4**4, as in the paper, or none where there are `budgets`.
    budgets : iterable of float, int or None, default=None
        Hard budgets to try. A number of steps takes them from the prices, :meth:`~grbb_ext.costs.FeatureCosts.budgets`.
    cv : int, splitter or iterable, default=5
        A number of folds is :class:`SemiSupervisedSplit`. Wrap a plain splitter of scikit-learn in one, too.
    scoring : str, callable or None, default=None
        A score of scikit-learn; None is accuracy, or R^2 for regression. Unlabelled rows are left out. With a callable
        to train, a function ``scoring(model)`` that returns a number, on held-out rows; None leaves scores NaN.
    higher_is_better : bool, default=True
        Direction of ``scoring(model)``.
    groups : array-like of shape (N,) or None, default=None
        Groups (queries, patients) that must not be on both sides of a fold.
    sample_weight : array-like of shape (N,) or None, default=None
        Weights of the rows in training.
    random_state : int, RandomState or None, default=None
        Shuffles the rows before a number of folds is made; None leaves them in order. The estimator has its own.
    n_jobs : int, default=1
        Fits at a time. Give the booster one thread each (``n_jobs=1``) where it is above 1.
    verbose : bool, default=True
        Draw a progress bar.

    Returns
    -------
    CostCurve
        With ``best_under(budget)``, ``fit_best(X, y, budget)`` and ``to_dict()``.

    See Also
    --------
    grbb_ext.plotting.CostCurveDisplay : Draw the curve.

    Examples
    --------
    >>> from lightgbm import Dataset, LGBMClassifier
    >>> from sklearn.datasets import load_wine
    >>> from grbb_ext import GRBBClassifier
    >>> X, truth = load_wine(return_X_y=True)
    >>> y = np.where(np.random.default_rng(0).random(178) < 0.3, truth, -1)
    >>> booster = LGBMClassifier(n_estimators=10, num_leaves=4, n_jobs=1, verbosity=-1)
    >>> model = GRBBClassifier(booster, feature_costs=[5.0] * 6 + [12.0] + [5.0] * 6)
    >>> curve = cost_curve(model, X, y, mus=[0, 1], budgets=[5, 20], cv=3, random_state=0, verbose=False)
    >>> curve
    CostCurve(accuracy, 3 folds, 2 values of mu, 2 budgets, up to 10 rounds)
    >>> curve.best_under(20).cost <= 20, curve.fit_best(X, y, 20).feature_cost_ <= 20
    (True, True)

    A training function with its own rows and score:

    >>> from grbb_ext.adapters.lightgbm import train
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 4))
    >>> y = X @ [2.0, 1.0, 0.5, 0.25]
    >>> costs = FeatureCosts([9.0, 1.0, 1.0, 1.0])
    >>> params = {"objective": "regression", "num_leaves": 4, "verbosity": -1, "num_threads": 1}
    >>> data = Dataset(X[:300], y[:300])
    >>> curve = cost_curve(lambda **setting: train(params, data, 20, costs=costs, **setting), feature_costs=costs,
    ...                    mus=[0, 10, 100, 1000], budgets=[1, 3],
    ...                    scoring=lambda model: float(np.mean((model.predict(X[300:]) - y[300:]) ** 2)),
    ...                    higher_is_better=False, verbose=False)
    >>> dict(zip(curve.names, curve.mean_cost[:, -1].tolist()))
    {'mu 0': 11.0, 'mu 10': 11.0, 'mu 100': 2.0, 'mu 1e+03': 0.0, 'budget 1': 1.0, 'budget 3': 3.0}
    >>> curve.select(mus=[0, 10, 100, 1000]).best_under(10).mu, curve.best_under(10).budget
    (100.0, 1.0)
    """
    if callable(estimator) and not hasattr(estimator, "fit"):
        if X is not None or y is not None:
            raise TypeError("X and y are for an estimator: a training function has its own rows.")
        return _curve_of_function(estimator, feature_costs, mus, budgets, scoring, higher_is_better, verbose)
    if not higher_is_better:
        raise ValueError("Scores of scikit-learn are higher for better models: use one such as 'neg_log_loss'.")
    n_threads(n_jobs)  # refuses what is no number of them
    model = copy_model(estimator, "estimator", "feature_costs", "mu", "budget")
    if feature_costs is not None:
        model.set_params(feature_costs=feature_costs)
    if model.feature_costs is None:
        raise ValueError("A cost curve needs prices: pass feature_costs=, or set the estimator's.")
    model = model.without_early_stopping()
    settings = _settings(mus, budgets, model.feature_costs, X, own=model.budget)
    if isinstance(scoring, dict | list | tuple | set):
        raise TypeError("A curve has one score: pass a name or a scorer as scoring=.")
    unlabeled = marker_of(model)
    scorer, score_name = _scorer(scoring, model)
    labels, labeled = labeled_rows(y, unlabeled)
    folds = [
        (train, test[labeled[test]])
        for train, test in _splitter(cv, unlabeled, random_state, is_classifier(model)).split(X, y, groups)
    ]
    if any(test.size == 0 for _, test in folds):
        raise ValueError(f"cv={cv!r} made a fold without a labelled row: pass cv=SemiSupervisedSplit({cv!r}).")
    shared = share_graph(model, X)
    classes = known_classes(estimator, labels[labeled]) if is_classifier(model) else None
    data, work = (X, y, sample_weight), partial(_staged, scorer)
    fits = [
        fit_in_folds(clone(shared).set_params(**setting), folds, data, classes, work, n_jobs)
        for setting in progress(settings, total=len(settings), description="cost curve", verbose=verbose)
    ]
    trained = {"estimator": model, "n_rounds_name": "estimator__n_estimators", "weighted": sample_weight is not None}
    return _curve(settings, fits, own_mu=float(model.mu), score_name=score_name, **trained)


def _curve_of_function(
    train: Callable[..., Any],
    feature_costs: Any,
    mus: Any,
    budgets: Any,
    scoring: Callable[[Any], float] | None,
    higher_is_better: bool,
    verbose: bool,
) -> CostCurve:
    """Sweep a training function, without folds."""
    if feature_costs is None:
        raise ValueError("A cost curve needs prices: pass feature_costs=.")
    if scoring is not None and not callable(scoring):
        raise TypeError(f"With a training function, scoring must be a function of the model, got {scoring!r}.")
    costs = feature_costs if isinstance(feature_costs, FeatureCosts) else FeatureCosts(feature_costs)
    settings, fits, models = _settings(mus, budgets, costs), [], []
    for setting in progress(settings, total=len(settings), description="cost curve", verbose=verbose):
        model = train(**setting)
        if model is None:
            raise TypeError("The training function returned None: it has to return the model.")
        models.append(model)
        forest = model if hasattr(model, "features_used") else Forest.from_booster(model)
        cost, n_features = costs.total(forest), len(forest.features_used())
        score = float("nan") if scoring is None else float(scoring(model))
        fits.append([_Fit([score], [cost], int(forest.n_trees), n_features)])
    return _curve(settings, fits, score_name=_name(scoring), higher_is_better=higher_is_better, models=tuple(models))


class _Fit(NamedTuple):
    """Scores and costs after each round of one model, and its size."""

    score: list[float]
    cost: list[float]
    n_rounds: int
    n_features: int


def _staged(scorer: Any, model: Any, X: Any, y: Any) -> _Fit:
    """Score a fitted model after each of its rounds."""
    name = "predict_proba" if is_classifier(model) else "predict"
    # A model without trees is one stage.
    stages = getattr(model, f"staged_{name}")(X) if model.n_iter_ else [getattr(model, name)(X)]
    score = [float(scorer(_Stage(model, prediction), X, y)) for prediction in stages]
    ledger = model.ledger_
    history = [] if ledger is None else ledger.history
    # What the first t rounds have paid for.
    cost = [max((line.spent for line in history if line.round < t), default=0.0) for t in range(1, len(score) + 1)]
    used = len(model.forest_.features_used()) if ledger is None else ledger.used.sum()
    return _Fit(score, cost, int(model.n_iter_), int(used))


def _curve(
    settings: list[dict[str, float]], fits: list[list[_Fit]], own_mu: float = np.nan, **fields: Any
) -> CostCurve:
    """Put fits together, `fits[m][f]` being that of setting m in fold f."""
    longest = max(len(fit.score) for row in fits for fit in row)

    def by_fold(entry: Callable[[_Fit], Any]) -> NDArray[Any]:
        return np.array([[entry(fit) for fit in row] for row in fits]).swapaxes(0, 1)

    return CostCurve(
        mu=np.array([setting.get("mu", own_mu) for setting in settings]),
        score=by_fold(lambda fit: np.pad(fit.score, (0, longest - len(fit.score)), "edge")),
        cost=by_fold(lambda fit: np.pad(fit.cost, (0, longest - len(fit.cost)), "edge")),
        n_rounds=by_fold(lambda fit: fit.n_rounds),
        budget=np.array([setting.get("budget", np.inf) for setting in settings]),
        n_features=by_fold(lambda fit: fit.n_features),
        **fields,
    )


def _settings(mus: Any, budgets: Any, costs: Any, X: Any = None, own: float | None = None) -> list[dict[str, float]]:
    """Return ``{"mu": value}`` or ``{"budget": value}`` for each model of the sweep; no budget exceeds the own one."""
    if isinstance(budgets, Integral):
        costs = costs if isinstance(costs, FeatureCosts) else FeatureCosts(costs)
        if X is not None and not costs.bound:  # a default price is that of columns of X
            costs = costs.bind(column_names(X) or np.shape(X)[1])
        if costs.default is not None and not costs.bound:
            raise ValueError(
                f"budgets={budgets} takes its steps from the prices of all columns, and some have the default. Name "
                "the columns, feature_costs=costs.bind(columns), or pass the budgets themselves."
            )
        budgets = costs.budgets(int(budgets))
    if mus is None and budgets is None:
        mus = DEFAULT_MUS
    settings: list[dict[str, float]] = []
    for name, values, most in (("mu", mus, np.inf), ("budget", budgets, np.inf if own is None else own)):
        if values is None:
            continue
        if isinstance(values, Real | str):
            raise TypeError(f"{name}s must be a list of numbers, got {values!r}. Put it in a list.")
        prices = [check_price(value, name) for value in values]
        if not prices:
            raise ValueError(f"{name}s is empty: give at least one value.")
        settings += [{name: value} for value in sorted({min(price, most) for price in prices})]
    return settings


def _splitter(cv: Any, unlabeled: Any, random_state: Any, classes: bool) -> Any:
    if random_state is not None and not isinstance(cv, int | np.integer):
        raise ValueError("random_state is for a number of folds: set it on the splitter.")
    if isinstance(cv, int | np.integer | SemiSupervisedSplit):
        order = {} if random_state is None else {"shuffle": True, "random_state": random_state}
        return folds_of_model(cv, unlabeled, classes=classes, **order)
    return check_cv(cv)
