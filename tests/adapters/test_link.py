"""Objectives named beside the callable: the booster and its file predict probabilities, from the same trees."""

from __future__ import annotations

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine, make_moons

from grbb_ext import Forest, GRBBClassifier, grbb_objective
from grbb_ext.adapters.lightgbm import add_link, train
from grbb_ext.costs import FeatureCosts

LGB = {"verbosity": -1, "num_threads": 1}
NAMED = {
    "logistic": {"objective": "binary:logistic", "base_score": 0.5},
    "softmax": {"objective": "multi:softprob", "base_score": 0, "num_class": 3},
    "squared_error": {"objective": "reg:squarederror", "base_score": 0},
}


def problem(loss, **options):
    if loss == "softmax":
        X, truth = load_wine(return_X_y=True)
    else:
        X, truth = make_moons(200, noise=0.2, random_state=0)
    marker = -1
    if loss == "squared_error":
        truth, marker = X[:, 0] + 3.0, np.nan
    y = np.where(np.arange(len(X)) % 10 == 0, truth, marker)
    return X, y, grbb_objective(X, y, loss=loss, **{"teacher": "graph"} | options)


def predicted(obj, raw_scores):
    if obj.classes_ is None:
        return raw_scores
    return obj.predict_proba(raw_scores)[:, 1] if obj.n_outputs_ == 1 else obj.predict_proba(raw_scores)


@pytest.mark.parametrize("loss", NAMED)
def test_xgboost_takes_the_name_beside_the_callable(loss):
    X, _, obj = problem(loss)
    plain = {name: value for name, value in NAMED[loss].items() if name == "num_class"} | {"base_score": 0}
    data = xgb.DMatrix(X)
    unnamed = xgb.train(plain, data, 10, obj=obj).predict(data, output_margin=True)
    named = xgb.train(NAMED[loss], data, 10, obj=obj)
    assert_array_equal(named.predict(data, output_margin=True), unnamed)
    assert_allclose(named.predict(data), predicted(obj, unnamed), rtol=1e-5)
    assert_array_equal(Forest.from_booster(named).predict(X), unnamed)


@pytest.mark.parametrize("rule", ["paper", "corrected", "labeled"])
def test_the_other_rules_carry_their_link_too(rule):
    X, y, _ = problem("logistic")
    for wrapped in (xgb.XGBClassifier(n_estimators=5, n_jobs=1), lgb.LGBMClassifier(n_estimators=5, n_jobs=1)):
        model = GRBBClassifier(wrapped, rule=rule).fit(X, y)
        rows = xgb.DMatrix(X) if model.library_ == "xgboost" else X
        assert_allclose(model.booster_.predict(rows), model.predict_proba(X)[:, 1], rtol=1e-5)


@pytest.mark.parametrize("base_score", [0, 1])
def test_a_base_score_that_is_no_probability_is_refused(base_score):
    X, _, obj = problem("logistic")
    # Before 3.1 XGBoost refuses it by itself.
    with pytest.raises((ValueError, xgb.core.XGBoostError), match=r"Set it to 0\.5|base_score must be in"):
        xgb.train({"objective": "binary:logistic", "base_score": base_score}, xgb.DMatrix(X), 1, obj=obj)


def test_a_base_score_that_is_left_out_is_refused():
    X, _, obj = problem("softmax")
    with pytest.raises(ValueError, match="Add 'base_score': 0"):
        xgb.train({"objective": "multi:softprob", "num_class": 3}, xgb.DMatrix(X), 1, obj=obj)


@pytest.mark.parametrize("loss", NAMED)
def test_lightgbm_gets_the_name_afterwards(loss, tmp_path):
    X, _, obj = problem(loss)
    booster = lgb.train(LGB | {"objective": obj, "num_class": obj.n_outputs_}, lgb.Dataset(X), 10)
    raw_scores = booster.predict(X)
    assert add_link(booster, obj) is booster
    assert_array_equal(booster.predict(X, raw_score=True), raw_scores)
    booster.save_model(tmp_path / "model.txt")
    for one in (booster, lgb.Booster(model_file=tmp_path / "model.txt")):
        assert_allclose(one.predict(X), predicted(obj, raw_scores), rtol=1e-12)
    assert_array_equal(Forest.from_file(tmp_path / "model.txt").predict(X), raw_scores)


def test_a_link_keeps_the_best_round_and_the_ledger():
    X, y, obj = problem("logistic")
    labeled = np.flatnonzero(y >= 0)
    watched = lgb.Dataset(X[labeled], label=y[labeled])
    booster = train(
        LGB | {"objective": obj},
        lgb.Dataset(X),
        40,
        valid_sets=[watched],
        feval=lambda scores, data: ("error", float(np.mean((scores > 0) != data.get_label())), False),
        callbacks=[lgb.early_stopping(3, verbose=False)],
        costs=FeatureCosts([1.0, 1.0]),
    )
    best, ledger = booster.best_iteration, booster.ledger_
    add_link(booster, obj)
    assert booster.best_iteration == best < 40
    assert booster.ledger_ is ledger


@pytest.mark.parametrize("boosting", ["gbdt", "rf"])
def test_cross_entropy_becomes_binary(tmp_path, boosting):
    X, _, obj = problem("logistic")
    params = LGB | {"objective": "cross_entropy", "boosting": boosting, "bagging_fraction": 0.5, "bagging_freq": 1}
    booster = lgb.train(params, lgb.Dataset(X, obj.soft_labels()[0]), 5)
    before, raw_scores = booster.predict(X), booster.predict(X, raw_score=True)
    add_link(booster).save_model(tmp_path / "model.txt")
    text = (tmp_path / "model.txt").read_text()
    assert "\nobjective=binary sigmoid:1\n" in text
    assert "[objective: binary]" in text
    loaded = lgb.Booster(model_file=tmp_path / "model.txt")
    assert_array_equal(loaded.predict(X), before)
    assert_array_equal(loaded.predict(X, raw_score=True), raw_scores)


def test_links_that_make_no_sense_are_refused():
    X, _, obj = problem("logistic")
    booster = lgb.train(LGB | {"objective": obj}, lgb.Dataset(X), 2)
    with pytest.raises(ValueError, match="1 scores per row, the objective 3"):
        add_link(booster, problem("softmax")[2])
    with pytest.raises(ValueError, match="pass its objective too"):
        add_link(booster)
    add_link(booster, obj)
    with pytest.raises(ValueError, match="names an objective already"):
        add_link(booster, obj)
