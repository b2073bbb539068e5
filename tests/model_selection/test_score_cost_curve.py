"""The curve is that of models trained one by one, for both boosters."""

from __future__ import annotations

import joblib
import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.metrics import accuracy_score, log_loss, r2_score
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from xgboost import XGBClassifier, XGBRegressor

from grbb_ext import FeatureCosts, GRBBClassifier, GRBBRegressor, SemiSupervisedSplit, score_cost_curve, share_graph

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
    return score_cost_curve(model, X, Y, **({"mus": MUS, "cv": 3, "random_state": 0, "verbose": False} | settings))


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
    model = GRBBRegressor(REGRESSORS[library], feature_costs=COSTS, guard=False)
    curve = score_cost_curve(model, X, NUMBERS, mus=[0.5], cv=3, random_state=0, verbose=False)
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
    curve = score_cost_curve(
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


@pytest.mark.filterwarnings("ignore:The least populated class")
def test_a_class_with_one_label_does_not_stop_it():
    y = Y.copy()
    y[np.flatnonzero(y == 2)[1:]] = -1
    model = GRBBClassifier(BOOSTERS["lightgbm"], feature_costs=COSTS)
    curve = score_cost_curve(model, X, y, mus=[0.0], cv=3, scoring="neg_log_loss", verbose=False)
    assert np.isfinite(curve.score).all()
    assert curve.estimator.classes is None


def test_a_model_that_ends_early_keeps_its_last_score():
    curve = curve_of(BOOSTERS["lightgbm"], mus=[0.0, 1e6])
    assert (curve.n_rounds[:, 0] == ROUNDS).all()
    assert (curve.n_rounds[:, 1] < ROUNDS).all()
    assert (curve.cost[:, 1] == 0).all()
    assert (curve.score[:, 1] == curve.score[:, 1, :1]).all()


def test_the_installed_booster_is_named_for_the_refit():
    model = GRBBClassifier(feature_costs=COSTS)
    rows = np.flatnonzero(LABELED)
    curve = score_cost_curve(model, X[rows], TRUTH[rows], mus=[100.0], cv=2, verbose=False)
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


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"mus": []}, ValueError, "mus is empty"),
        ({"mus": [-1.0]}, ValueError, "mu must be a finite number"),
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
        score_cost_curve(GRBBClassifier(), X, Y)
    with pytest.raises(TypeError, match=r"must be GRBBClassifier\(...\).*transform X before"):
        score_cost_curve(make_pipeline(GRBBClassifier()), X, Y)
    with pytest.raises(TypeError, match="must be GRBBClassifier"):
        score_cost_curve(GRBBClassifier, X, Y)
