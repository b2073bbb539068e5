"""Both boosters with the objective, against one slow reference loop, the plain boosters and soft labels."""

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_moons

from grbb_ext import Committee, grbb_objective
from tests.adapters.reference import boost, dense_gradient

XGB = {"base_score": 0, "eta": 0.3, "max_depth": 2, "lambda": 0, "min_child_weight": 0, "nthread": 1}
LGB = {
    "learning_rate": 0.3,
    "num_leaves": 4,
    "max_depth": 2,
    "min_data_in_leaf": 1,
    "min_data_in_bin": 1,
    "min_gain_to_split": 0,
    "verbosity": -1,
    "num_threads": 1,
}


def xgb_scores(obj, X, n_rounds, **parameters):
    data = parameters.pop("data", None) or xgb.DMatrix(X)
    booster = xgb.train(XGB | parameters, data, n_rounds, obj=obj)
    return booster.predict(xgb.DMatrix(X), output_margin=True)


def lgb_scores(obj, X, n_rounds, **parameters):
    booster = lgb.train(LGB | {"objective": obj} | parameters, lgb.Dataset(X), n_rounds)
    return booster.predict(X, raw_score=True)


def random_problem(seed, n_classes, n_rows=60):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, 3))
    W = np.triu(random.uniform(0.1, 2, size=(n_rows, n_rows)) * (random.random((n_rows, n_rows)) < 0.2), 1)
    W[np.arange(n_rows - 1), np.arange(1, n_rows)] = 1.0  # connected
    y = np.full(n_rows, -1)
    labeled = random.permutation(n_rows)[: 4 * n_classes]
    y[labeled] = np.arange(4 * n_classes) % n_classes
    return X, W + W.T, y


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("lam", [0.0, 0.02])
@pytest.mark.parametrize("seed", range(3))
def test_the_papers_preset_equals_the_slow_loop_on_both_boosters(seed, lam, n_classes):
    X, W, y = random_problem(seed, n_classes)
    n_outputs = 1 if n_classes == 2 else n_classes
    slow = boost(X, dense_gradient(W, y, np.arange(n_classes), lam), n_outputs, 8, 0.3, 2)
    obj = grbb_objective(None, y, graph=W, preset="paper", lam=lam)
    classes = {} if n_classes == 2 else {"num_class": n_classes}
    assert_allclose(xgb_scores(obj, X, 8, tree_method="exact", **classes), slow, atol=1e-6)
    assert_allclose(lgb_scores(obj, X, 8, **classes), slow, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_the_papers_preset_equals_the_booster_fed_with_dense_gradients(seed, n_classes):
    X, W, y = random_problem(seed, n_classes, n_rows=150)
    dense = dense_gradient(W, y, np.arange(n_classes), 0.01)

    def fed(H, data):
        gradient = dense(H)
        return gradient, np.ones_like(gradient)

    obj = grbb_objective(None, y, graph=W, preset="paper", lam=0.01)
    classes = {} if n_classes == 2 else {"num_class": n_classes}
    for scores in (xgb_scores, lgb_scores):
        assert_allclose(scores(obj, X, 20, **classes), scores(fed, X, 20, **classes), atol=1e-6)


@pytest.mark.parametrize("tree_method", ["hist", "approx", "exact"])
@pytest.mark.parametrize("rule", ["targets", "labeled"])
def test_all_rows_labelled_is_plain_xgboost(tree_method, rule):
    X, truth = make_moons(200, noise=0.3, random_state=0)
    # `approx` weighs its quantile sketch by the hessian only if the named objective has a varying one.
    parameters = XGB | {"tree_method": tree_method, "max_depth": 4, "lambda": 1}
    logistic = parameters | {"objective": "binary:logistic", "base_score": 0.5}
    obj = grbb_objective(X, truth, rule=rule)
    ours = xgb.train(logistic if tree_method == "approx" else parameters, xgb.DMatrix(X), 10, obj=obj)
    plain = xgb.train(logistic, xgb.DMatrix(X, label=truth), 10)
    assert structure(ours) == structure(plain)
    rows = xgb.DMatrix(X)
    assert_allclose(ours.predict(rows, output_margin=True), plain.predict(rows, output_margin=True), atol=1e-5)


def structure(booster):
    table = booster.trees_to_dataframe()
    return table[["Tree", "Node", "Feature", "Split"]].fillna(0).to_numpy().tolist()


def test_all_rows_labelled_in_three_classes_is_plain_xgboost():
    X, _, _ = random_problem(0, 3, n_rows=150)
    y = np.random.default_rng(1).integers(0, 3, 150)
    ours = xgb.train(XGB | {"num_class": 3}, xgb.DMatrix(X), 10, obj=grbb_objective(X, y))
    plain = xgb.train(XGB | {"num_class": 3, "objective": "multi:softprob"}, xgb.DMatrix(X, label=y), 10)
    assert structure(ours) == structure(plain)


def test_all_rows_labelled_is_plain_lightgbm():
    X, truth = make_moons(200, noise=0.3, random_state=0)
    ours = lgb_scores(grbb_objective(X, truth), X, 10, num_leaves=8, max_depth=-1)
    plain = lgb.train(
        LGB | {"objective": "binary", "boost_from_average": False, "num_leaves": 8, "max_depth": -1},
        lgb.Dataset(X, label=truth),
        10,
    )
    assert_allclose(ours, plain.predict(X, raw_score=True), atol=1e-5)


def test_all_rows_labelled_in_regression_is_plain_lightgbm():
    X, _, _ = random_problem(0, 2, n_rows=150)
    y = X[:, 0] + np.random.default_rng(0).normal(size=150)
    ours = lgb_scores(grbb_objective(X, y, loss="squared_error"), X, 10)
    plain = lgb.train(LGB | {"objective": "l2", "boost_from_average": False}, lgb.Dataset(X, label=y), 10)
    assert_allclose(ours, plain.predict(X), atol=1e-6)


def test_targets_without_sharpening_equal_a_booster_trained_on_soft_labels():
    X, truth = make_moons(200, noise=0.1, random_state=0)
    y = np.where(np.arange(200) % 20 == 0, truth, -1)
    obj = grbb_objective(X, y, teacher=Committee(sharpen=1))
    assert np.unique(obj.targets_).size > 50
    soft = xgb.DMatrix(X, label=obj.targets_)
    plain = xgb.train(XGB | {"objective": "binary:logistic", "base_score": 0.5}, soft, 20)
    assert_allclose(xgb_scores(obj, X, 20), plain.predict(soft, output_margin=True), atol=1e-5)
    plain = lgb.train(
        LGB | {"objective": "cross_entropy", "boost_from_average": False}, lgb.Dataset(X, label=obj.targets_), 20
    )
    assert_allclose(lgb_scores(obj, X, 20), plain.predict(X, raw_score=True), atol=1e-5)


def test_quantile_matrix_and_base_margin():
    X, truth = make_moons(200, noise=0.1, random_state=0)
    obj = grbb_objective(X, np.where(np.arange(200) % 20 == 0, truth, -1))
    plain = xgb_scores(obj, X, 5, tree_method="hist")
    assert_allclose(xgb_scores(obj, X, 5, data=xgb.QuantileDMatrix(X)), plain, atol=1e-6)
    margin = np.random.default_rng(0).normal(size=200)
    seen = []

    def spy(H, data):
        seen.append(H.copy())
        return obj(H, data)

    xgb.train(XGB, xgb.DMatrix(X, base_margin=margin), 1, obj=spy)
    lgb.train(LGB | {"objective": spy}, lgb.Dataset(X, init_score=margin), 1)
    for start in seen:
        assert_allclose(start, margin, atol=1e-6)
    # A constant start is fine where it is given on purpose.
    xgb.train(XGB, xgb.DMatrix(X, base_margin=np.full(200, 0.5)), 1, obj=obj)


def test_continued_training_is_training():
    X, truth = make_moons(200, noise=0.1, random_state=0)
    obj = grbb_objective(X, np.where(np.arange(200) % 20 == 0, truth, -1))
    data = xgb.DMatrix(X)
    first = xgb.train(XGB, data, 4, obj=obj)
    continued = xgb.train(XGB, data, 6, obj=obj, xgb_model=first)
    assert_allclose(continued.predict(data, output_margin=True), xgb_scores(obj, X, 10), atol=1e-5)
    first = lgb.train(LGB | {"objective": obj}, lgb.Dataset(X), 4)
    continued = lgb.train(LGB | {"objective": obj}, lgb.Dataset(X, free_raw_data=False), 6, init_model=first)
    assert_allclose(continued.predict(X, raw_score=True), lgb_scores(obj, X, 10), atol=1e-5)


def test_the_same_seed_gives_the_same_model():
    X, truth = make_moons(200, noise=0.1, random_state=0)
    y = np.where(np.arange(200) % 20 == 0, truth, -1)
    sampling = {"subsample": 0.5, "seed": 3}
    assert_array_equal(*(xgb_scores(grbb_objective(X, y), X, 5, **sampling) for _ in range(2)))
    sampling = {"bagging_fraction": 0.5, "bagging_freq": 1, "seed": 3}
    assert_array_equal(*(lgb_scores(grbb_objective(X, y), X, 5, **sampling) for _ in range(2)))


def test_a_forgotten_base_score_is_noticed():
    X, truth = make_moons(100, random_state=0)
    obj = grbb_objective(X, np.where(np.arange(100) < 10, truth, -1))
    with pytest.raises(ValueError, match="Add 'base_score': 0"):
        xgb.train({}, xgb.DMatrix(X), 1, obj=obj)
    with pytest.raises(ValueError, match="Add 'base_score': 0"):
        xgb.train({}, xgb.QuantileDMatrix(X), 1, obj=obj)


def test_weights_of_the_data_set_are_refused():
    X, truth = make_moons(100, random_state=0)
    obj = grbb_objective(X, np.where(np.arange(100) < 10, truth, -1))
    with pytest.raises(ValueError, match="sample_weight="):
        xgb.train(XGB, xgb.DMatrix(X, weight=np.arange(1.0, 101.0)), 1, obj=obj)
    with pytest.raises(ValueError, match="sample_weight="):
        lgb.train(LGB | {"objective": obj}, lgb.Dataset(X, weight=np.arange(1.0, 101.0)), 1)


def test_weights_of_the_data_set_are_refused_from_any_start():
    X, truth = make_moons(100, random_state=0)
    obj = grbb_objective(X, np.where(np.arange(100) < 10, truth, -1))
    weight, start = np.arange(1.0, 101.0), X[:, 0].copy()
    params = LGB | {"objective": obj}
    first = xgb.train(XGB, xgb.DMatrix(X), 1, obj=obj)
    for train, data, before in [
        (xgb.train, xgb.DMatrix(X, weight=weight, base_margin=start), {"obj": obj}),
        (xgb.train, xgb.DMatrix(X, weight=weight), {"obj": obj, "xgb_model": first}),
        (lgb.train, lgb.Dataset(X, weight=weight, init_score=start), {}),
        (lgb.train, lgb.Dataset(X, weight=weight), {"init_model": lgb.train(params, lgb.Dataset(X), 1)}),
    ]:
        with pytest.raises(ValueError, match="sample_weight="):
            train(XGB if train is xgb.train else params, data, 1, **before)


def test_folds_are_refused_and_subsets_take_their_place():
    X, truth = make_moons(100, random_state=0)
    obj = grbb_objective(X, np.where(np.arange(100) % 5 == 0, truth, -1))
    with pytest.raises(ValueError, match=r"use cv of grbb_ext\.adapters\.xgboost"):
        xgb.cv(XGB, xgb.DMatrix(X, label=truth), 2, obj=obj)
    with pytest.raises(ValueError, match=r"use cv of grbb_ext\.adapters\.xgboost"):
        lgb.cv(LGB | {"objective": obj, "metric": "l2"}, lgb.Dataset(X, label=truth), 2, stratified=False)
    fold = np.arange(100) % 4 != 0
    xgb.train(XGB, xgb.DMatrix(X[fold]), 2, obj=obj.subset(fold))


# LightGBM 4.5 asks scikit-learn for an argument by its old name.
@pytest.mark.filterwarnings("ignore:.force_all_finite.:FutureWarning")
def test_the_wrappers_call_order_is_refused_by_both_libraries():
    X, truth = make_moons(100, random_state=0)
    obj = grbb_objective(X, truth)
    with pytest.raises(TypeError, match="XGBClassifier and LGBMClassifier"):
        xgb.XGBClassifier(objective=obj).fit(X, truth)
    with pytest.raises(TypeError, match="XGBClassifier and LGBMClassifier"):
        lgb.LGBMClassifier(objective=obj, verbosity=-1).fit(X, truth)


@pytest.mark.parametrize("scores", [xgb_scores, lgb_scores])
@pytest.mark.parametrize("seed", range(5))
def test_two_moons_from_two_labels(scores, seed):
    X, truth = make_moons(400, noise=0.05, random_state=seed)
    random = np.random.default_rng(seed)
    y = np.full(400, -1)
    y[[random.choice(np.flatnonzero(truth == label)) for label in (0, 1)]] = [0, 1]
    depth = {"max_depth": 4} | ({"num_leaves": 16} if scores is lgb_scores else {})
    raw = scores(grbb_objective(X, y), X, 50, **depth)
    assert np.mean((raw > 0) == truth) >= 0.99
