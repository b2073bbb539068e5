"""fit(init_model=): more rounds for a model that exists, from its own scores."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import grbb_ext
from grbb_ext import FeatureCosts, GRBBClassifier, GRBBRegressor


def test_rounds_in_two_trainings_are_those_of_one(classifier, moons):
    X, _, y = moons
    whole = GRBBClassifier(classifier(n_estimators=12)).fit(X, y)
    first = GRBBClassifier(classifier(n_estimators=5)).fit(X, y)
    before = first.decision_function(X)
    second = GRBBClassifier(classifier(n_estimators=7)).fit(X, y, init_model=first)
    assert second.n_iter_ == second.forest_.n_trees == 12
    np.testing.assert_allclose(second.decision_function(X), whole.decision_function(X), atol=2e-6)
    np.testing.assert_array_equal(first.decision_function(X), before)
    staged = list(second.staged_predict_proba(X))
    assert len(staged) == 12
    np.testing.assert_allclose(staged[4], first.predict_proba(X), rtol=1e-6)


def test_regression_keeps_its_start(regressor):
    X = np.random.default_rng(0).uniform(-2, 2, size=(200, 2))
    y = np.where(np.arange(200) < 50, 100 + X[:, 0], np.nan)
    whole = GRBBRegressor(regressor(n_estimators=10), rule="labeled").fit(X, y)
    first = GRBBRegressor(regressor(n_estimators=4), rule="labeled").fit(X, y)
    second = GRBBRegressor(regressor(n_estimators=6), rule="labeled").fit(X, y, init_model=first)
    np.testing.assert_allclose(second.predict(X), whole.predict(X), rtol=1e-6)


@pytest.mark.parametrize("library", ["xgboost"])  # whose parameter base_score is
def test_another_start_of_the_first_model_is_kept(classifier, moons):
    X, _, y = moons
    first = GRBBClassifier(classifier(n_estimators=3, base_score=0.9)).fit(X, y)
    second = GRBBClassifier(classifier(n_estimators=2)).fit(X, y, init_model=first)
    np.testing.assert_array_equal(second.forest_.base, first.forest_.base)
    np.testing.assert_array_equal(second.forest_.predict(X, stop_tree=3), first.decision_function(X))


def test_a_saved_model_goes_on_with_its_own_codes(classifier, library, tmp_path):
    rng = np.random.default_rng(0)
    colors = np.array(["blue", "green", "red"])[rng.integers(0, 3, 300)]
    frame = pd.DataFrame({"color": colors, "size": rng.normal(size=300)})
    y = np.where(np.arange(300) < 60, (colors == "red").astype(int), -1)
    first = GRBBClassifier(classifier(), rule="labeled").fit(frame, y)
    first.save(tmp_path / "first")
    loaded = grbb_ext.load(tmp_path / "first")
    # Without blue the sorted colors of these rows would have other codes.
    part = np.flatnonzero(colors != "blue")
    model = GRBBClassifier(classifier(n_estimators=2), rule="labeled").fit(frame.iloc[part], y[part], init_model=loaded)
    n_trees = first.forest_.n_trees
    np.testing.assert_array_equal(model.forest_.predict(frame, stop_tree=n_trees), first.decision_function(frame))
    assert model.n_iter_ == first.n_iter_ + 2
    np.testing.assert_array_equal(model.predict(frame), (colors == "red").astype(int))


def test_a_model_can_continue_itself(classifier, moons):
    X, truth, y = moons
    model = GRBBClassifier(classifier(n_estimators=4)).fit(X, y)
    more = np.where(np.arange(200) < 60, truth, -1)
    model.fit(X, more, init_model=model)
    assert model.n_iter_ == 8


def test_early_stopping_counts_from_the_first_round(classifier, moons):
    X, truth, y = moons
    first = GRBBClassifier(classifier(n_estimators=3)).fit(X[:150], y[:150])
    model = GRBBClassifier(classifier(n_estimators=100, early_stopping_rounds=3)).fit(
        X[:150], y[:150], eval_set=[(X[150:], truth[150:])], init_model=first
    )
    losses = next(iter(model.evals_result_["validation_0"].values()))
    assert model.n_iter_ == model.forest_.n_trees == 3 + int(np.argmin(losses)) + 1
    assert f"round {model.n_iter_} of {3 + len(losses)} " in model.stop_reason_


def test_what_the_first_model_reads_is_paid(classifier):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.where(np.arange(300) < 100, (X[:, 0] + X[:, 1] > 0).astype(int), -1)
    settings = {"feature_costs": FeatureCosts([3.0, 2.0, 2.0]), "budget": 5.0}
    first = GRBBClassifier(classifier(), feature_costs=FeatureCosts([3.0, 2.0, 2.0]), budget=3.0).fit(X, y)
    assert first.paid_ == (0,)
    model = GRBBClassifier(classifier(), **settings).fit(X, y, init_model=first)
    assert model.feature_cost_ == 5.0
    assert set(model.paid_) == {0, 1}
    assert set(model.forest_.features_used()) == {0, 1}


def test_what_cannot_be_continued(classifier, regressor, library, moons):
    X, truth, y = moons
    first = GRBBClassifier(classifier(n_estimators=2)).fit(X, y)
    with pytest.raises(TypeError, match="init_model must be a fitted GRBBClassifier"):
        GRBBClassifier(classifier()).fit(X, y, init_model=first.booster_)
    with pytest.raises(TypeError, match="init_model must be a fitted GRBBRegressor"):
        GRBBRegressor(regressor()).fit(X, truth.astype(float), init_model=first)
    with pytest.raises(ValueError, match="3 features, but model is expecting 2"):
        GRBBClassifier(classifier()).fit(np.column_stack([X, X[:, 0]]), y, init_model=first)
    with pytest.raises(ValueError, match="outside the classes"):
        GRBBClassifier(classifier()).fit(X, np.where(y == 1, 2, y), init_model=first)
    with pytest.raises(ValueError, match="init_model has the classes"):
        GRBBClassifier(classifier()).fit(X, y, classes=[0, 1, 2], init_model=first)
    other = "xgboost" if library == "lightgbm" else "lightgbm"
    wrapped = pytest.importorskip(other)
    another = wrapped.XGBClassifier() if other == "xgboost" else wrapped.LGBMClassifier()
    with pytest.raises(ValueError, match=f"init_model is one of {library}, but estimator is one of {other}"):
        GRBBClassifier(another).fit(X, y, init_model=first)


def test_xgboost_would_drop_the_trees_of_another_booster(moons):
    X, _, y = moons

    def wrapped(**settings):
        return xgb.XGBClassifier(n_estimators=3, n_jobs=1, **settings)

    dart = {"booster": "dart", "rate_drop": 0.5}
    trees, dropped = (GRBBClassifier(wrapped(**settings)).fit(X, y) for settings in ({}, dart))
    assert GRBBClassifier(wrapped(booster="gbtree")).fit(X, y, init_model=trees).n_iter_ == 6
    assert GRBBClassifier(wrapped(**dart)).fit(X, y, init_model=dropped).n_iter_ == 6
    if tuple(map(int, xgb.__version__.split(".")[:2])) < (3, 3):  # later both are one booster
        for before, settings in ((trees, dart), (dropped, {"booster": "gbtree"})):
            with pytest.raises(ValueError, match="XGBoost would drop the trees"):
                GRBBClassifier(wrapped(**settings)).fit(X, y, init_model=before)


def test_trees_for_one_class_and_trees_for_all_do_not_mix(moons):
    X = moons[0]
    y = np.where(np.arange(len(X)) < 30, np.arange(len(X)) % 3, -1)
    plain, vectors = (
        xgb.XGBClassifier(n_estimators=2, n_jobs=1, multi_strategy=strategy)
        for strategy in ("one_output_per_tree", "multi_output_tree")
    )
    for one, other in ((plain, vectors), (vectors, plain)):
        first = GRBBClassifier(one).fit(X, y)
        assert GRBBClassifier(one).fit(X, y, init_model=first).n_iter_ == 4
        with pytest.raises(ValueError, match="multi_strategy= is not that of init_model"):
            GRBBClassifier(other).fit(X, y, init_model=first)


def test_an_early_stop_of_the_first_model_is_over(classifier, moons):
    X, truth, y = moons
    first = GRBBClassifier(classifier(n_estimators=100, early_stopping_rounds=2))
    first.fit(X[:150], y[:150], eval_set=[(X[150:], truth[150:])])
    model = GRBBClassifier(classifier(n_estimators=7)).fit(X[:150], y[:150], init_model=first)
    assert model.n_iter_ == model.forest_.n_trees == first.n_iter_ + 7
    assert model.stop_reason_ == f"All {model.n_iter_} rounds were run."
    assert "was the best" in first.stop_reason_


def test_a_loaded_model_goes_on_as_the_fitted_one(classifier, library, moons, tmp_path):
    X, _, y = moons
    chance = {"n_estimators": 4, "subsample": 0.5, "random_state": 0}
    chance |= {"subsample_freq": 1} if library == "lightgbm" else {}
    if library == "xgboost" and int(xgb.__version__.partition(".")[0]) < 3:
        chance["subsample"] = 1.0  # a continued training draws other rows each time it is repeated there
    first = GRBBClassifier(classifier(**chance)).fit(X, y)
    first.save(tmp_path / "first")
    loaded = grbb_ext.load(tmp_path / "first")
    fitted, again = (GRBBClassifier(classifier(**chance)).fit(X, y, init_model=one) for one in (first, loaded))
    np.testing.assert_array_equal(again.decision_function(X), fitted.decision_function(X))
