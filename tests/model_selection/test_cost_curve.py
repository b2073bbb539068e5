"""The curve is that of models trained one by one: of both boosters, and of training functions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import joblib
import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.metrics import accuracy_score, cohen_kappa_score, log_loss, make_scorer, r2_score
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from xgboost import XGBClassifier, XGBRegressor

from grbb_ext import FeatureCosts, Forest, GRBBClassifier, GRBBRegressor, SemiSupervisedSplit, cost_curve, share_graph
from grbb_ext.adapters.lightgbm import train as lgb_train
from grbb_ext.model_selection import staged_curve

X, TRUTH = load_wine(return_X_y=True)
LABELED = np.random.default_rng(0).random(TRUTH.size) < 0.35
Y = np.where(LABELED, TRUTH, -1)
NUMBERS = np.where(LABELED, X[:, 0], np.nan)
COSTS = FeatureCosts(
    needs=[["draw", str(j)] if j % 3 == 0 else [str(j)] for j in range(13)],
    prices={"draw": 4.0} | {str(j): 1.0 + j for j in range(13)},
)
ROUNDS = 6
BOOSTERS = {
    "lightgbm": LGBMClassifier(n_estimators=ROUNDS, num_leaves=4, min_child_samples=5, n_jobs=1, verbosity=-1),
    "xgboost": XGBClassifier(n_estimators=ROUNDS, max_depth=2, n_jobs=1),
}
REGRESSORS = {
    "lightgbm": LGBMRegressor(n_estimators=ROUNDS, num_leaves=4, min_child_samples=5, n_jobs=1, verbosity=-1),
    "xgboost": XGBRegressor(n_estimators=ROUNDS, max_depth=2, n_jobs=1),
}
MUS = [0.0, 1.0, 30.0]


def curve_of(booster, **settings):
    model = GRBBClassifier(booster, feature_costs=COSTS)
    return cost_curve(model, X, Y, **({"mus": MUS, "cv": 3, "random_state": 0, "verbose": False} | settings))


@pytest.fixture(scope="module", params=list(BOOSTERS))
def booster_and_curve(request):
    return BOOSTERS[request.param], curve_of(BOOSTERS[request.param])


def test_scores_and_costs_are_those_of_shorter_models(booster_and_curve):
    booster, curve = booster_and_curve
    split = SemiSupervisedSplit(3, shuffle=True, random_state=0)
    assert curve.score.shape == curve.cost.shape == (3, len(MUS), ROUNDS)
    shared = share_graph(GRBBClassifier(booster, feature_costs=COSTS), X)
    for f, (train, test) in enumerate(split.split(X, Y)):
        for m, t in ((0, 4), (1, 6), (2, 1)):
            short = clone(shared).set_params(mu=MUS[m], estimator__n_estimators=t).fit(X[train], Y[train])
            assert_allclose(curve.score[f, m, t - 1], accuracy_score(Y[test], short.predict(X[test])))
            assert_allclose(curve.cost[f, m, t - 1], short.feature_cost_)
            assert_allclose(curve.cost[f, m, t - 1], COSTS.total(short.forest_))


def test_costs_never_fall_along_rounds_and_mu_lowers_them(booster_and_curve):
    _, curve = booster_and_curve
    assert (np.diff(curve.cost, axis=2) >= 0).all()
    assert curve.mean_cost[2, -1] < curve.mean_cost[0, -1]
    best = curve.best_under(15)
    fitted = curve.fit_best(X, Y, 15)
    assert fitted.feature_cost_ <= 15
    assert fitted.mu == best.mu
    assert fitted.n_iter_ <= best.n_rounds
    assert fitted.estimator.n_estimators == best.n_rounds


@pytest.mark.parametrize("library", list(REGRESSORS))
def test_regression(library):
    model = GRBBRegressor(REGRESSORS[library], feature_costs=COSTS, teacher="graph")
    curve = cost_curve(model, X, NUMBERS, mus=[0.5], cv=3, random_state=0, verbose=False)
    assert curve.score_name == "R^2"
    split = SemiSupervisedSplit(3, shuffle=True, random_state=0, stratify=False)
    shared = share_graph(model, X).set_params(mu=0.5)
    for f, (train, test) in enumerate(split.split(X, NUMBERS)):
        fitted = clone(shared).fit(X[train], NUMBERS[train])
        assert_allclose(curve.score[f, 0, -1], r2_score(NUMBERS[test], fitted.predict(X[test])), rtol=1e-6)


def test_jobs_and_seeds_do_not_change_it():
    first = curve_of(BOOSTERS["lightgbm"], mus=[1.0])
    with joblib.parallel_config("threading"):  # processes take seconds to start
        again = curve_of(BOOSTERS["lightgbm"], mus=[1.0], n_jobs=2)
    assert_array_equal(first.score, again.score)
    assert_array_equal(first.cost, again.cost)
    assert not np.array_equal(curve_of(BOOSTERS["lightgbm"], mus=[1.0], random_state=1).score, first.score)


def test_another_score_and_strings():
    names = np.array(["barbera", "barolo", "grignolino"])[TRUTH].astype(object)
    names[~LABELED] = "?"
    model = GRBBClassifier(BOOSTERS["lightgbm"], unlabeled="?")
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(13)], index=np.arange(178) + 1000)
    curve = cost_curve(
        model,
        frame,
        pd.Series(names, index=frame.index),
        feature_costs={f"c{j}": 1.0 for j in range(13)},
        mus=[1.0],
        cv=3,
        scoring="neg_log_loss",
        verbose=False,
    )
    assert curve.score_name == "neg_log_loss"
    model = model.set_params(feature_costs={f"c{j}": 1.0 for j in range(13)}, mu=1.0)
    train, test = next(iter(SemiSupervisedSplit(3, unlabeled="?").split(frame, names)))
    shared = share_graph(model, frame).fit(frame.iloc[train], names[train])
    expected = -log_loss(names[test].astype(str), shared.predict_proba(frame.iloc[test]))
    assert_allclose(curve.score[0, 0, -1], expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("scoring", "name"),
    [
        (None, "accuracy"),
        (make_scorer(cohen_kappa_score), "cohen_kappa_score"),
        (lambda model, X, y: model.score(X, y), "score"),
    ],
)
def test_a_score_has_its_own_name(scoring, name):
    assert curve_of(BOOSTERS["lightgbm"], mus=[1.0], scoring=scoring).score_name == name


@pytest.mark.filterwarnings("ignore:The least populated class")
def test_a_class_with_one_label_does_not_stop_it():
    y = Y.copy()
    y[np.flatnonzero(y == 2)[1:]] = -1
    model = GRBBClassifier(BOOSTERS["lightgbm"], feature_costs=COSTS)
    curve = cost_curve(model, X, y, mus=[0.0], cv=3, scoring="neg_log_loss", verbose=False)
    assert np.isfinite(curve.score).all()
    assert not hasattr(curve.estimator, "classes_")  # the classes were given to the fits of the folds


def test_a_model_that_ends_early_keeps_its_last_score():
    curve = curve_of(BOOSTERS["lightgbm"], mus=[0.0, 1e6])
    assert (curve.n_rounds[:, 0] == ROUNDS).all()
    assert (curve.n_rounds[:, 1] < ROUNDS).all()
    assert (curve.cost[:, 1] == 0).all()
    assert (curve.score[:, 1] == curve.score[:, 1, :1]).all()


def test_the_installed_booster_is_named_for_the_refit():
    model = GRBBClassifier(feature_costs=COSTS)
    rows = np.flatnonzero(LABELED)
    curve = cost_curve(model, X[rows], TRUTH[rows], mus=[100.0], cv=2, verbose=False)
    assert type(curve.estimator.estimator).__name__ == "LGBMClassifier"
    assert curve.fit_best(X[rows], TRUTH[rows], None).n_iter_ <= curve.best_under(None).n_rounds
    assert model.estimator is None


def test_groups_and_weights_reach_the_fits():
    groups, weight = np.arange(178) // 6, np.linspace(0.2, 3.0, 178)
    curve = curve_of(
        BOOSTERS["lightgbm"],
        mus=[0.0],
        cv=SemiSupervisedSplit(3),
        groups=groups,
        sample_weight=weight,
        random_state=None,
    )
    shared = share_graph(GRBBClassifier(BOOSTERS["lightgbm"], feature_costs=COSTS), X)
    for f, (train, test) in enumerate(SemiSupervisedSplit(3).split(X, Y, groups)):
        fitted = clone(shared).fit(X[train], Y[train], sample_weight=weight[train])
        assert_allclose(curve.score[f, 0, -1], accuracy_score(Y[test], fitted.predict(X[test])))
    with pytest.raises(ValueError, match="sample_weight="):
        curve.select(mus=[0.0]).fit_best(X, Y, None)
    fitted = curve.fit_best(X, Y, None, sample_weight=weight)
    assert_array_equal(fitted.objective_.sample_weight_, weight)
    assert curve.fit_best(X, Y, None, sample_weight=None).objective_.sample_weight_ is None


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"mus": []}, ValueError, "mus is empty"),
        ({"mus": [-1.0]}, ValueError, "mu must be a finite number"),
        ({"mus": 0.5}, TypeError, "mus must be a list of numbers, got 0.5"),
        ({"budgets": np.float64(20)}, TypeError, "budgets must be a list"),
        ({"scoring": ["accuracy", "f1"]}, TypeError, "one score"),
        ({"cv": SemiSupervisedSplit(3)}, ValueError, "set it on the splitter"),
        ({"cv": KFold(60), "random_state": None}, ValueError, "pass cv=SemiSupervisedSplit"),
    ],
)
def test_bad_settings(settings, error, message):
    with pytest.raises(error, match=message):
        curve_of(BOOSTERS["lightgbm"], **settings)


def test_what_cannot_have_a_curve():
    with pytest.raises(ValueError, match="needs prices: pass feature_costs="):
        cost_curve(GRBBClassifier(), X, Y)
    with pytest.raises(TypeError, match=r"must be GRBBClassifier\(...\).*transform X before"):
        cost_curve(make_pipeline(GRBBClassifier()), X, Y)
    with pytest.raises(TypeError, match="must be GRBBClassifier"):
        cost_curve(GRBBClassifier, X, Y)


class TestTrainingFunction:
    """The sweep of a function that trains, with a score of its own."""

    COSTS = FeatureCosts([4.0, 2.0, 1.0])

    def forest(self, mu: float = 0.0, budget: float = np.inf) -> Any:
        """Uses fewer features the larger mu and the smaller the budget is."""
        used = np.flatnonzero((mu * self.COSTS.prices < 5) & (self.COSTS.prices <= budget))
        return SimpleNamespace(n_features=3, n_trees=2 * used.size, features_used=lambda: used, mu=mu)

    def curve(self, **settings: Any) -> Any:
        return cost_curve(self.forest, feature_costs=self.COSTS, verbose=False, **settings)

    def test_the_default_is_the_grid_of_the_paper(self) -> None:
        curve = self.curve()
        assert len(curve) == 11
        np.testing.assert_array_equal(curve.mu, [0, *(4.0 ** np.arange(-5, 5))])
        assert np.isnan(curve.score).all()

    def test_by_hand(self) -> None:
        curve = self.curve(mus=[0, 1.5, 3, 100], scoring=lambda f: -f.mu)
        assert curve.mean_cost[:, -1].tolist() == [7.0, 3.0, 1.0, 0.0]
        assert curve.n_features[0].tolist() == [3, 2, 1, 0]
        assert curve.n_rounds[0].tolist() == [6, 4, 2, 0]
        assert repr(curve) == "CostCurve(4 models, cost 0 to 7)"
        best = curve.best_under(3.5)
        assert (best.mu, best.cost, best.score, best.model.mu) == (1.5, 3.0, -1.5, 1.5)
        assert best.n_rounds == 4
        assert curve.best_under(7.0).mu == 0.0
        assert curve.to_dict()["n_rounds"].tolist() == [6, 4, 2, 0]

    def test_budgets_are_swept_like_mu(self) -> None:
        curve = self.curve(mus=[0, 100], budgets=[3, 1, 2], scoring=lambda f: f.n_trees)
        assert curve.names == ("mu 0", "mu 100", "budget 1", "budget 2", "budget 3")
        assert curve.mean_cost[:, -1].tolist() == [7.0, 0.0, 1.0, 3.0, 3.0]
        best = curve.best_under(6)
        assert (best.budget, best.cost, best.n_rounds) == (2.0, 3.0, 4)
        assert np.isnan(best.mu)
        assert curve.best_under(7).budget is None
        assert curve.select(budgets=[1]).models == (curve.models[2],)
        np.testing.assert_array_equal(curve.to_dict()["budget"], [np.inf, np.inf, 1, 2, 3])

    def test_steps_are_chosen_from_the_prices(self) -> None:
        assert self.curve(budgets=4).budget.tolist() == [1.0, 3.0, 7.0]
        assert self.curve(budgets=2).budget.tolist() == [1.0, 7.0]

    def test_lower_may_be_better_and_of_equals_the_cheapest_wins(self) -> None:
        falling = self.curve(mus=[0, 1.5, 3], scoring=lambda f: f.mu, higher_is_better=False)
        assert falling.best_under(100).mu == 0.0
        assert falling.frontier()[1].tolist() == [3.0, 1.5, 0.0]
        level = self.curve(mus=[0, 1.5, 3], scoring=lambda f: 1.0)
        assert level.best_under(100).cost == 1.0

    def test_wrong_use(self) -> None:
        with pytest.raises(ValueError, match="mu must be a finite number"):
            self.curve(mus=[-1])
        with pytest.raises(ValueError, match="mus is empty"):
            self.curve(mus=[])
        with pytest.raises(ValueError, match="budgets is empty"):
            self.curve(budgets=[])
        with pytest.raises(TypeError, match="returned None"):
            cost_curve(lambda mu: None, feature_costs=self.COSTS, mus=[1], verbose=False)
        with pytest.raises(ValueError, match="needs prices"):
            cost_curve(self.forest)
        with pytest.raises(TypeError, match="has its own rows"):
            cost_curve(self.forest, X, Y, feature_costs=self.COSTS)
        with pytest.raises(TypeError, match="a function of the model, got 'accuracy'"):
            self.curve(scoring="accuracy")
        curve = self.curve(mus=[0])
        with pytest.raises(ValueError, match=r"No model costs 5 or less; the cheapest costs 7\."):
            curve.best_under(5)
        with pytest.raises(ValueError, match="pass scoring="):
            curve.best_under(8)
        with pytest.raises(ValueError, match=r"best_under\(budget\).model is the model"):
            curve.fit_best(X, Y, 8)

    @pytest.mark.parametrize(
        "costs",
        [
            FeatureCosts({name: float(price) for name, price in zip("dabc", [8, 1, 2, 4], strict=True)}),
            FeatureCosts({"d": 8.0, "b": 2.0}, default=1.0),
        ],
        ids=["another order", "default"],
    )
    def test_prices_go_by_name(self, costs: FeatureCosts) -> None:
        """The ledger of LightGBM is in the order of the columns, the prices as they were given need not be."""
        rows = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 4)), columns=list("abcd"))
        y = rows["d"] + 0.5 * rows["a"]
        params = {"num_leaves": 4, "verbosity": -1, "num_threads": 1}

        def fit(**setting: float) -> lgb.Booster:
            return lgb_train(params, lgb.Dataset(rows, y), 5, costs=costs, **setting)

        curve = cost_curve(fit, feature_costs=costs, mus=[0.0, 1.0, 1e3], budgets=[1.0], verbose=False)
        assert len(set(curve.mean_cost[:, -1])) > 1
        assert curve.mean_cost[:, -1].tolist() == [model.ledger_.spent for model in curve.models]

    def test_lightgbm_cost_falls_along_mu_and_a_budget_finds_a_cheap_model(self) -> None:
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(300, 6))
        y = rows @ [2.0, 1.5, 1.0, 0.7, 0.4, 0.2] + 0.1 * rng.normal(size=300)
        costs = FeatureCosts(needs=["a", "a", "b", "b", "c", "d"], prices={"a": 4.0, "b": 2.0, "c": 1.0, "d": 1.0})
        params = {"objective": "regression", "num_leaves": 4, "verbosity": -1, "num_threads": 1}
        data = lgb.Dataset(rows[:200], y[:200])

        def error(model: lgb.Booster) -> float:
            return float(np.mean((model.predict(rows[200:]) - y[200:]) ** 2))

        def fit(**setting: float) -> lgb.Booster:
            return lgb_train(params, data, 40, costs=costs, **setting)

        settings = {"feature_costs": costs, "scoring": error, "higher_is_better": False, "verbose": False}
        curve = cost_curve(fit, mus=[0, 1, 10, 100, 1e4], **settings)
        cost = curve.mean_cost[:, -1]
        assert cost[0] == 8.0
        assert cost[-1] == 0.0
        assert (np.diff(cost) <= 0).all()
        assert error(curve.best_under(8.0).model) == curve.score.min()
        both = cost_curve(fit, mus=[0, 1, 10, 100, 1e4], budgets=[2, 6], **settings)
        assert both.mean_cost[-2:, -1].tolist() == [2.0, 6.0]
        assert both.best_under(2).score < curve.best_under(2).score
        assert both.best_under(2).budget == 2.0


@pytest.mark.parametrize("library", list(BOOSTERS))
def test_hard_budgets_of_an_estimator(library):
    model = GRBBClassifier(BOOSTERS[library], feature_costs=COSTS, mu=0.5)
    curve = cost_curve(model, X, Y, budgets=[3, 15], mus=[0.0], cv=3, random_state=0, verbose=False)
    assert curve.names == ("mu 0", "budget 3", "budget 15")
    assert_array_equal(curve.mu, [0.0, 0.5, 0.5])
    assert (curve.cost[:, 1] <= 3).all()
    assert (curve.cost[:, 2] <= 15).all()
    assert curve.cost[:, 0].max() > 15
    assert curve.best_under(3).budget is not None
    fitted = curve.select(budgets=[3]).fit_best(X, Y, None)
    assert (fitted.mu, fitted.budget) == (0.5, 3.0)
    assert fitted.feature_cost_ <= 3
    shared = share_graph(model.set_params(budget=15), X)
    train, test = next(iter(SemiSupervisedSplit(3, shuffle=True, random_state=0).split(X, Y)))
    expected = clone(shared).fit(X[train], Y[train])
    assert_allclose(curve.score[0, 2, -1], accuracy_score(Y[test], expected.predict(X[test])))
    assert_allclose(curve.cost[0, 2, -1], expected.feature_cost_)


def test_the_estimators_own_budget_is_kept_and_steps_come_from_the_prices():
    model = GRBBClassifier(BOOSTERS["lightgbm"], feature_costs=FeatureCosts({0: 2.0}, default=1.0), budget=5.0)
    curve = cost_curve(model, X, Y, budgets=4, cv=2, verbose=False)
    assert_array_equal(curve.budget, [1.0, 2.0, 5.0])  # 6 and 14 are above the estimator's own
    assert curve.cost.max() <= 5
    with pytest.raises(ValueError, match="higher for better models"):
        cost_curve(model, X, Y, higher_is_better=False)


def test_steps_of_a_default_price_need_the_columns() -> None:
    costs = FeatureCosts({"a": 5.0}, default=1.0)
    with pytest.raises(ValueError, match=r"costs\.bind\(columns\)"):
        cost_curve(lambda **setting: None, feature_costs=costs, budgets=4, verbose=False)


def test_models_of_a_training_function_may_be_estimators() -> None:
    """Their names and prices are their own: LightGBM renames a column with a blank."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(120, 3)), columns=["blood pressure", "b", "c"])
    y = np.where(rng.random(120) < 0.4, rows["blood pressure"] > 0, -1)
    prices = {"c": 4.0, "b": 2.0, "blood pressure": 1.0}
    booster = LGBMClassifier(n_estimators=4, num_leaves=4, n_jobs=1, verbosity=-1)

    def fit(**setting: float) -> GRBBClassifier:
        return GRBBClassifier(booster, feature_costs=prices, verbose=False, **setting).fit(rows, y)

    curve = cost_curve(fit, feature_costs=prices, mus=[0.0], verbose=False)
    assert curve.mean_cost[0, -1] == curve.models[0].feature_cost_
    assert Forest.from_booster(curve.models[0]) is curve.models[0].forest_


def test_another_name_of_the_rounds_is_refused() -> None:
    booster = LGBMClassifier(num_iterations=30, num_leaves=4, n_jobs=1, verbosity=-1)
    model = GRBBClassifier(booster, feature_costs=[1.0] * X.shape[1], verbose=False)
    curve = cost_curve(model, X, Y, mus=[0.0], cv=2, verbose=False)
    assert curve.best_under(None).n_rounds < 30
    with pytest.raises(ValueError, match="Set n_estimators in its place"):
        curve.fit_best(X, Y, None)


def test_a_fitted_model_is_scored_on_rows_with_their_labels():
    model = GRBBClassifier(BOOSTERS["lightgbm"], rule="labeled").fit(X, Y)
    for rows in (X[:100], np.vstack([X, X])):
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            staged_curve(model, rows, Y)


def test_early_stopping_is_left_to_the_curve():
    curves = [
        cost_curve(
            GRBBClassifier(clone(BOOSTERS["lightgbm"]).set_params(**stop), feature_costs=COSTS, n_jobs=1),
            X,
            Y,
            budgets=[12],
            cv=2,
            verbose=False,
        )
        for stop in ({}, {"early_stopping_round": 2})
    ]
    assert_array_equal(curves[0].score, curves[1].score)
    assert curves[1].fit_best(X, Y, 12).n_iter_ == curves[1].best_under(12).n_rounds


def test_folds_know_that_a_model_is_a_regression():
    y = np.where(LABELED, np.round(X[:, 0]) - 13, np.nan)
    assert (y == -1).any()
    model = GRBBRegressor(REGRESSORS["lightgbm"], feature_costs=COSTS)
    number, split = (
        cost_curve(model, X, y, mus=[0.0], cv=cv, verbose=False).score for cv in (3, SemiSupervisedSplit(3))
    )
    assert_array_equal(split, number)
