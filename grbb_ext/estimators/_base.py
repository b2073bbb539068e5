"""What classifier and regressor share: from X and y to a trained booster, and what it can be asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.validation import check_is_fitted

from grbb_ext._options import Spec
from grbb_ext.costs import FeatureCosts
from grbb_ext.estimators._job import BoosterAdapter, Job, adapter_named, adapter_of, check_callbacks
from grbb_ext.estimators._persistence import SavedModel
from grbb_ext.forest import Forest
from grbb_ext.labels import Labels, LossName, check_sample_weight, read_labels, warn_of_another_order
from grbb_ext.model_selection import CostCurve, cost_curve
from grbb_ext.objective import GRBBObjective, Recipe, grbb_objective
from grbb_ext.ondemand import OnDemandPredictor
from grbb_ext.report import write_report
from grbb_ext.table import Schema, Table, read_table
from grbb_ext.variance import (
    LabelPlan,
    LabelSuggestions,
    PredictionVariance,
    plan_labels,
    prediction_variance,
    suggest_labels,
)

# Parameters that are specs.
_SPECS = ("graph", "teacher", "propagation", "rule")


@dataclass(eq=False, repr=False)
class GRBBModel(SavedModel):
    """Fit, raw scores and what is derived from them; classifier and regressor add the rest."""

    estimator: Any = None
    _: KW_ONLY
    graph: Any = None
    teacher: Any = None
    propagation: Any = None
    rule: Any = None
    feature_costs: Any = None
    mu: float = 0.0
    budget: float | None = None
    categorical_features: Any = "from_dtype"
    random_state: Any = None
    n_jobs: int | None = None
    verbose: bool = False

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of a spec, such as ``graph__n_neighbors``.

        Parameters
        ----------
        **params
            By name. A spec that is asked for by name, or left out, is filled in first: ``graph__n_neighbors=5`` goes
            with ``graph=None``, ``"knn"`` and ``KNNGraph(...)``, and ``estimator__n_estimators=50`` with
            ``estimator=None``.

        Returns
        -------
        estimator
            Itself.
        """
        nested: dict[str, dict[str, Any]] = {}
        for key in list(params):
            name, is_nested, field = key.partition("__")
            if is_nested and name in _SPECS:
                nested.setdefault(name, {})[field] = params.pop(key)
        of_booster = {key: params.pop(key) for key in list(params) if key.startswith("estimator__")}
        super().set_params(**params)
        if of_booster and self.estimator is None:
            self.estimator = self._new_booster()[1]
        super().set_params(**of_booster)
        for name, fields in nested.items():
            spec = Recipe.parts(**self._specs())[name]
            if not isinstance(spec, Spec):
                raise ValueError(f"{name} is {type(spec).__name__}, which has no parameters to set: {sorted(fields)}.")
            setattr(self, name, spec.replace(**fields))
        return self

    def _specs(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _SPECS}

    def _new_booster(self) -> tuple[BoosterAdapter, Any]:
        """Return the adapter and an unfitted copy of the wrapped estimator, or what stands for None."""
        adapter = adapter_of(self.estimator, self._task)
        return adapter, adapter.clone(self.estimator, self._task, costs=self.feature_costs is not None)

    def without_early_stopping(self) -> Self:
        """Return an unfitted copy that trains for a fixed number of rounds, such as on all rows once that is known.

        Returns
        -------
        estimator
            It has the rounds of this model if that is fitted, ``n_iter_``, else those of the wrapped estimator.
        """
        model: Self = clone(self)
        adapter, booster = self._new_booster()
        adapter.fix_rounds(booster, max(self.n_iter_, 1) if hasattr(self, "booster_") else None)
        return model.set_params(estimator=booster)

    def read_rows(self, X: Any) -> Table:
        """Read rows as :meth:`fit` would: with the categories, and what is missing, of the wrapped estimator.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (N, d)
            The rows.

        Returns
        -------
        Table
            Numbers, categories and names.
        """
        adapter, estimator = self._new_booster()
        categorical = self._categorical(adapter.categorical(estimator))
        return read_table(X, categorical=categorical, missing=adapter.missing(estimator))

    def _fit(self, X: Any, y: Any, sample_weight: Any, **settings: Any) -> Labels:
        """Train, or leave the model as it was where that fails or is interrupted."""
        before = dict(vars(self))
        try:
            return self._trained(X, y, sample_weight, **settings)
        except BaseException:
            self.__dict__ = before
            raise

    def _trained(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        *,
        classes: Any = None,
        eval_set: Any,
        callbacks: Any,
        init_model: GRBBModel | None,
    ) -> Labels:
        """Read the rows and then the labels, make the objective, train, and set what both estimators have."""
        self._check_costs()
        adapter, estimator = self._new_booster()
        missing = adapter.missing(estimator)
        continued = booster = None
        if init_model is not None:  # which may be this very model
            continued, booster = self._continued(init_model, adapter.library, missing), init_model.booster_
        self._library = adapter.library
        self._unseen = adapter.unseen
        categorical = self._categorical(adapter.categorical(estimator))
        table = self._read(X, reset=True, categorical=categorical, missing=missing, schema=continued)
        regression = self._task == "regression"
        loss: LossName = "squared_error" if regression else "auto"
        labels = read_labels(y, loss, classes, self.unlabeled, type(self).__name__)
        warn_of_another_order(X, y)
        warn_of_another_order(X, sample_weight, "sample_weight")
        check_consistent_length(table.values, labels.y)
        weight = check_sample_weight(sample_weight, table.n_rows)
        of_label = None if weight is None else weight[labels.labeled]
        costs = None if self.feature_costs is None else self._bind_costs()
        if costs is not None and all(isinstance(label, Integral) for label in getattr(X, "columns", ["none"])):
            self._costs().bind(list(X.columns))  # refuses numbers that are no positions
        evaluation = self._evaluation_sets(eval_set)
        callbacks = check_callbacks(callbacks)
        seed = self._seed()
        self.objective_: GRBBObjective = grbb_objective(
            table,
            labels,
            **self._specs(),
            sample_weight=weight,
            class_weight=None if regression else adapter.class_weight(estimator, self.class_weight, labels),
            random_state=(seed or 0) % 2**31,
            n_jobs=self.n_jobs,
            verbose=bool(self.verbose),
        )
        trained = adapter.train(
            Job(
                task=self._task,
                estimator=estimator,
                obj=self.objective_,
                table=table,
                names=self._booster_names(),
                weight=weight,
                start=float(np.average(labels.targets, weights=of_label)) if regression else 0.0,
                evaluation=evaluation,
                callbacks=callbacks,
                costs=costs,
                mu=self.mu,
                budget=self.budget,
                seed=seed,
                init_model=booster,
            )
        )
        self.__dict__.pop("forest_", None)
        self.estimator_ = estimator
        self.booster_: Any = trained.booster
        self.graph_ = self.objective_.graph_
        self.evidence_ = self.objective_.evidence_
        self.n_iter_ = trained.n_iter
        self.stop_reason_ = trained.stop_reason
        self.evals_result_ = trained.history
        self.ledger_ = trained.ledger
        self.feature_cost_ = None if trained.ledger is None else trained.ledger.spent
        self.paid_ = () if trained.ledger is None else trained.ledger.sources
        self.raw_scores_ = self._raw_scores_of(table)
        if not np.isfinite(self.raw_scores_).all():
            raise ValueError("The trained scores are not finite: lower the learning rate, or raise the L2 penalty.")
        return labels

    def _continued(self, before: Any, library: str, missing: float) -> Schema:
        """Return the columns of a model that is to be continued: its categories keep their codes."""
        if not isinstance(before, GRBBModel) or before._task != self._task:
            raise TypeError(
                f"init_model must be a fitted {type(self).__name__}, from fit or grbb_ext.load; got "
                f"{type(before).__name__}. For a booster of the library use its own train with grbb_objective."
            )
        if before.library_ != library:
            raise ValueError(
                f"init_model is one of {before.library_}, but estimator is one of {library}. Wrap the same."
            )
        schema = before._schema
        if not np.array_equal(schema.missing, missing, equal_nan=True):
            raise ValueError(
                f"init_model was trained with missing={schema.missing}, but estimator has missing={missing}. "
                "Use the same."
            )
        return replace(schema, names=before._names, n_columns=before.n_features_in_)

    def _seed(self) -> int | None:
        if self.random_state is None:
            return None
        if isinstance(self.random_state, (int, np.integer)):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _check_costs(self) -> None:
        costs = self.feature_costs
        if costs is None and (self.budget is not None or np.any(self.mu)):
            raise ValueError("mu and budget need prices: pass feature_costs=FeatureCosts(...).")
        by_column = isinstance(costs, (Sequence, np.ndarray)) or hasattr(costs, "items")  # a mapping, a pandas Series
        if isinstance(costs, str) or not (costs is None or isinstance(costs, FeatureCosts) or by_column):
            raise TypeError(f"feature_costs must be FeatureCosts, or prices by column; got {type(costs).__name__}.")

    def _costs(self) -> FeatureCosts:
        return self.feature_costs if isinstance(self.feature_costs, FeatureCosts) else FeatureCosts(self.feature_costs)

    def _bind_costs(self) -> FeatureCosts:
        return self._costs().bind(self.n_features_in_ if self._names is None else list(self._names))

    def _raw_scores(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self, "booster_")
        return self._raw_scores_of(self._read(X))

    def _raw_scores_of(self, table: Table) -> NDArray[Any]:
        return self._adapter.raw_scores(self.booster_, self.estimator_, table, self._booster_names())

    def _staged_raw_scores(self, X: Any) -> Iterator[NDArray[Any]]:
        """Yield raw scores after each round, added tree by tree as the library does."""
        base = self.forest_.base
        values = self._read(X).values
        forest = replace(self.forest_, feature_names=None, categories={}, base=np.zeros_like(base))
        scores = np.repeat(base[None, :], values.shape[0], axis=0)
        per_round = forest.n_trees // max(self.n_iter_, 1)
        for tree in range(forest.n_trees):
            added = forest.predict(values, start_tree=tree, stop_tree=tree + 1)
            scores = scores + added.reshape(scores.shape)
            if (tree + 1) % per_round == 0:
                yield scores[:, 0] if scores.shape[1] == 1 else scores

    @property
    def library_(self) -> str:
        """The library of the booster, ``"lightgbm"`` or ``"xgboost"``."""
        check_is_fitted(self, "estimator_")
        return self._library

    @property
    def _adapter(self) -> BoosterAdapter:
        """What trains and asks the booster; a name and a look-up of it, so that models pickle without adapters."""
        return adapter_named(self.library_)

    @cached_property
    def forest_(self) -> Forest:
        """The trees as arrays."""
        missing = self._schema.missing if self.library_ == "xgboost" else None
        return replace(
            Forest.from_booster(self.booster_, missing=missing),
            feature_names=self._names,
            categories=self._schema.categories,
            category_lists=(),
        )

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Importance of each column, by the wrapped estimator's ``importance_type``; the sum is 1."""
        raw = self._adapter.importances(self.booster_, self.estimator_, self.n_features_in_)
        total = raw.sum()
        return np.asarray(raw / total if total > 0 else raw, dtype=np.float64)

    def prediction_variance(self, **settings: Any) -> PredictionVariance:
        """Estimate the variance of the predictions of the training rows.

        Parameters
        ----------
        **settings
            Passed to :func:`grbb_ext.variance.prediction_variance`, such as ``per_row=True`` and ``lam``.

        Returns
        -------
        PredictionVariance
        """
        check_is_fitted(self, "booster_")
        return prediction_variance(self.objective_, self.raw_scores_, **settings)

    def suggest_labels(self, k: int, **settings: Any) -> LabelSuggestions:
        """Suggest training rows to label next.

        Parameters
        ----------
        k : int
            How many.
        **settings
            Passed to :func:`grbb_ext.variance.suggest_labels`. Pass ``X=``, the rows given to fit, for better
            suggestions.

        Returns
        -------
        LabelSuggestions
            ``rows`` are positions among the rows given to fit.
        """
        check_is_fitted(self, "booster_")
        return suggest_labels(self.objective_, self.raw_scores_, k, **self._with_read_rows(settings))

    def plan_labels(self, k: int, price: float, **settings: Any) -> LabelPlan:
        """Forecast the benefit of up to k more labels, and recommend how many to buy.

        Parameters
        ----------
        k : int
            The most labels to consider.
        price : float
            Price of one label.
        **settings
            Passed to :func:`grbb_ext.variance.plan_labels`, such as ``X=``, ``money=`` and ``strategy=``.

        Returns
        -------
        LabelPlan
            It prints as a table with a recommendation, and has ``plot()``.
        """
        check_is_fitted(self, "booster_")
        return plan_labels(self.objective_, self.raw_scores_, k, price, **self._with_read_rows(settings))

    def _with_read_rows(self, settings: dict[str, Any]) -> dict[str, Any]:
        X = settings.get("X")
        return settings if X is None else {**settings, "X": self._rows_of_fit(X)}

    def _rows_of_fit(self, X: Any) -> Table:
        """Read the rows given to fit as for a prediction, and refuse rows that have other scores."""
        table = self._read(X)
        scores = self._raw_scores_of(table)
        if scores.shape != self.raw_scores_.shape or not np.allclose(
            scores, self.raw_scores_, rtol=0.0, atol=1e-6 * np.ptp(self.raw_scores_)
        ):
            raise ValueError(
                "X: these are not the rows given to fit, or not in that order. Pass the same rows, in the same order."
            )
        return table

    def cost_curve(self, X: Any, y: Any, **settings: Any) -> CostCurve:
        """Cross-validate this estimator for values of mu or hard budgets; it is not changed and need not be fitted.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (N, d)
            Rows, labelled and unlabelled.
        y : array-like of shape (N,)
            Labels.
        **settings
            Passed to :func:`grbb_ext.model_selection.cost_curve`: ``budgets=8``, ``cv=5`` and others.

        Returns
        -------
        CostCurve
            With ``best_under(budget)`` and ``fit_best(X, y, budget)``.
        """
        return cost_curve(self, X, y, **settings)

    def report(self, path: str | PathLike[str], X: Any = None, **settings: Any) -> Path:
        """Write one HTML page about the model: labels, quality, calibration, evidence, costs, what to label next.

        The page needs no network. Pictures need matplotlib.

        Parameters
        ----------
        path : str or path
            The file to write.
        X : array-like, sparse matrix or frame of shape (N, d) or None, default=None
            The rows given to fit. With them the model is trained again in folds, and tested on held-out labels.
        **settings
            ``title``; ``cv``, folds as in :func:`grbb_ext.model_selection.held_out_predict` (default 5); ``groups``
            that must not be on both sides of a fold; ``curve``, a :class:`~grbb_ext.model_selection.CostCurve` to draw;
            ``n_suggestions`` (default 10); ``label_price``, the price of one label, for a plan.

        Returns
        -------
        pathlib.Path
            The file.
        """
        check_is_fitted(self, "booster_")
        return write_report(self, path, X, **settings)

    def on_demand(self, fetch: Mapping[Any, Any], **settings: Any) -> OnDemandPredictor:
        """Return a predictor that fetches features only for the rows whose path through the trees needs them.

        Parameters
        ----------
        fetch : mapping from source to callable
            See :class:`grbb_ext.ondemand.OnDemandPredictor`. Categories come by name, as in the frame given to fit.
            Prices are those of the fit.
        **settings
            Passed to :class:`grbb_ext.ondemand.OnDemandPredictor`.

        Returns
        -------
        OnDemandPredictor
            Its results have ``predictions`` and, for classes, ``probabilities``.
        """
        check_is_fitted(self, "booster_")
        if self.feature_costs is None and self.ledger_ is None:
            raise ValueError("on_demand needs to know which feature needs which source: pass feature_costs= and fit.")
        early_exit, side = settings.get("early_exit"), "decision_threshold" in settings
        if self._task == "regression" and early_exit is not None and not (early_exit == "decision" and side):
            raise ValueError(
                "early_exit stops where the class is certain or probable. Leave it out for regression, or pass "
                "early_exit='decision' and the decision_threshold= whose side is asked for."
            )
        costs = self._bind_costs() if self.ledger_ is None else self.ledger_.costs
        known = {costs.features[j]: names for j, names in self._schema.categories.items()}
        settings = {"categories": known, "classes": getattr(self, "classes_", None)} | settings
        return OnDemandPredictor(self.forest_, costs, fetch, **settings)

    def _scores_to_score(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64] | None]:
        """Return raw scores, labels and weights of the labelled rows; the others cannot be scored."""
        check_is_fitted(self, "booster_")
        table, labels, rows = self._read_labeled(X, y, "y has no labelled row, so there is nothing to score.")
        weight = check_sample_weight(sample_weight, len(y))
        return self._raw_scores_of(table), labels, None if weight is None else weight[rows]
