"""Soft labels and weighted rows teach other engines what the objective teaches."""

from __future__ import annotations

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from catboost import CatBoostClassifier, CatBoostRegressor
from numpy.testing import assert_allclose
from sklearn.datasets import load_wine, make_moons

from grbb_ext import Laplacian, Targets, UnreachableRowsWarning, grbb_objective

XGB = {"eta": 0.3, "max_depth": 4, "nthread": 1}
LGB = {"learning_rate": 0.3, "num_leaves": 7, "min_data_in_leaf": 1, "verbosity": -1, "num_threads": 1}
CAT = {"iterations": 30, "verbose": False, "allow_writing_files": False, "thread_count": 1}
# Without what depends on the number of rows or on chance.
EXACT = {"bootstrap_type": "No", "random_strength": 0, "boosting_type": "Plain", "l2_leaf_reg": 0}


def moons(**options):
    X, truth = make_moons(300, noise=0.2, random_state=0)
    y = np.where(np.arange(300) % 15 == 0, truth, -1)
    return X, truth, grbb_objective(X, y, **options)


WEIGHTS = {
    "none": {},
    "rows": {"sample_weight": np.random.default_rng(0).uniform(0.2, 3, 300)},
    "classes": {"class_weight": {0: 1.0, 1: 4.0}},
}


@pytest.mark.parametrize("weights", WEIGHTS)
def test_two_classes_by_the_library_own_loss(weights):
    X, _, obj = moons(**WEIGHTS[weights])
    X = X.round(1)  # fewer values than bins, which XGBoost makes by weight
    q, weight = obj.soft_labels()
    data = xgb.DMatrix(X, label=q, weight=weight)
    own = xgb.train(XGB | {"objective": "binary:logistic", "base_score": 0.5}, data, 20)
    ours = xgb.train(XGB | {"base_score": 0}, xgb.DMatrix(X), 20, obj=obj)
    rows = xgb.DMatrix(X)
    assert_allclose(own.predict(rows, output_margin=True), ours.predict(rows, output_margin=True), rtol=2e-6, atol=2e-6)
    own = lgb.train(
        LGB | {"objective": "cross_entropy", "boost_from_average": False}, lgb.Dataset(X, q, weight=weight), 20
    )
    ours = lgb.train(LGB | {"objective": obj}, lgb.Dataset(X), 20)
    assert_allclose(own.predict(X, raw_score=True), ours.predict(X), rtol=2e-6, atol=2e-6)


def test_regression_by_the_library_own_loss():
    X = np.random.default_rng(0).uniform(-2, 2, size=(300, 2))
    obj = grbb_objective(
        X, np.where(np.arange(300) < 60, np.sin(X[:, 0]), np.nan), loss="squared_error", teacher="graph"
    )
    q, weight = obj.soft_labels()
    own = xgb.train(XGB | {"objective": "reg:squarederror", "base_score": 0}, xgb.DMatrix(X, q, weight=weight), 20)
    ours = xgb.train(XGB | {"base_score": 0}, xgb.DMatrix(X), 20, obj=obj)
    assert_allclose(own.predict(xgb.DMatrix(X)), ours.predict(xgb.DMatrix(X)), rtol=2e-6, atol=2e-6)
    own = lgb.train(
        LGB | {"objective": "regression", "boost_from_average": False}, lgb.Dataset(X, q, weight=weight), 20
    )
    ours = lgb.train(LGB | {"objective": obj}, lgb.Dataset(X), 20)
    assert_allclose(own.predict(X), ours.predict(X), rtol=2e-6, atol=2e-6)
    model = CatBoostRegressor(**CAT).fit(X, q, sample_weight=weight)
    assert np.corrcoef(model.predict(X), q)[0, 1] > 0.98


@pytest.mark.parametrize("class_weight", [None, {0: 1.0, 1: 2.0, 2: 3.0}])
def test_several_classes_by_weighted_rows(class_weight):
    X, truth = load_wine(return_X_y=True)
    X = X.round(0)
    obj = grbb_objective(X, np.where(np.arange(len(X)) % 9 == 0, truth, -1), class_weight=class_weight)
    rows, label, weight = obj.weighted_rows()
    several = {"num_class": 3, "base_score": 0}
    data = xgb.DMatrix(X[rows], label=label, weight=weight)
    own = xgb.train(XGB | several | {"objective": "multi:softprob"}, data, 10)
    ours = xgb.train(XGB | several, xgb.DMatrix(X), 10, obj=obj)
    everything = xgb.DMatrix(X)
    assert_allclose(
        own.predict(everything, output_margin=True), ours.predict(everything, output_margin=True), atol=2e-5
    )


def test_weights_of_copies_add_up_and_unreachable_rows_have_none():
    path = np.diag([1.0, 1.0, 0.0, 1.0], 1)
    with pytest.warns(UnreachableRowsWarning):
        obj = grbb_objective(None, ["a", None, "b", None, None], graph=path + path.T, teacher="graph")
    q, weight = obj.soft_labels()
    assert weight.tolist() == [1, 1, 1, 0, 0]
    assert q[[0, 2]].tolist() == [0, 1]
    rows, label, of_row = obj.weighted_rows()
    assert set(rows.tolist()) == {0, 1, 2}
    assert_allclose(np.bincount(rows, of_row), [1, 1, 1])
    assert label[rows == 0].tolist() == ["a"]
    assert label[rows == 2].tolist() == ["b"]


def test_they_are_copies():
    _, _, obj = moons(sample_weight=np.full(300, 2.0))
    for array in obj.soft_labels():
        array[:] = 7
    q, weight = obj.soft_labels()
    assert q.max() <= 1
    assert (weight == 2).all()


def test_rules_without_soft_labels():
    X, _, obj = moons(rule="labeled")
    with pytest.raises(ValueError, match="rule='labeled' has no soft labels"):
        obj.soft_labels()
    with pytest.raises(ValueError, match="has no soft labels"):
        moons(rule=Laplacian(lam=0.1))[2].weighted_rows()
    with pytest.raises(ValueError, match="Laplacian term"):
        moons(rule=Targets(lam=0.1))[2].soft_labels()
    numbers = grbb_objective(X, np.where(np.arange(300) < 9, X[:, 0], np.nan), loss="squared_error", teacher="graph")
    with pytest.raises(ValueError, match=r"train on soft_labels\(\)"):
        numbers.weighted_rows()


def test_catboost_learns_two_classes():
    X, _, obj = moons(class_weight={0: 1.0, 1: 3.0})
    X = X.round(1)
    q, weight = obj.soft_labels()
    options = CAT | EXACT | {"boost_from_average": False}
    model = CatBoostClassifier(loss_function="CrossEntropy", **options).fit(X, q, sample_weight=weight)
    assert np.mean((model.predict(X) == 1) == (q > 0.5)) > 0.95  # class weights have moved q
    rows, label, of_row = obj.weighted_rows()
    copies = CatBoostClassifier(loss_function="Logloss", **options).fit(X[rows], label, sample_weight=of_row)
    assert_allclose(copies.predict_proba(X), model.predict_proba(X), atol=1e-6)


def test_catboost_learns_several_classes_of_text():
    X, truth = load_wine(return_X_y=True)
    names = np.array(["barolo", "grignolino", "barbera"])[truth]
    obj = grbb_objective(X, np.where(np.arange(len(X)) % 9 == 0, names, None))
    rows, label, weight = obj.weighted_rows()
    model = CatBoostClassifier(loss_function="MultiClass", **CAT | EXACT | {"iterations": 200})
    model.fit(X[rows], label, sample_weight=weight)
    assert model.classes_.tolist() == obj.classes_.tolist()
    assert np.abs(model.predict_proba(X) - obj.targets_).mean() < 0.01
