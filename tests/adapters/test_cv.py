"""Cross-validation by the libraries' own cv, on folds of labelled rows."""

from __future__ import annotations

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from sklearn.datasets import load_wine, make_moons
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GroupKFold, KFold

from grbb_ext import SemiSupervisedSplit, grbb_objective
from grbb_ext.adapters import lightgbm as lgb_adapter
from grbb_ext.adapters import xgboost as xgb_adapter
from grbb_ext.evaluation import evaluate

X, TRUTH = make_moons(240, noise=0.2, random_state=0)
Y = np.where(np.arange(240) % 6 == 0, TRUTH, -1)
OBJ = grbb_objective(X, Y)
SPLIT = SemiSupervisedSplit(3, shuffle=True, random_state=0)
XGB = {"objective": "binary:logistic", "base_score": 0.5, "max_depth": 3, "nthread": 1}
LGB = {"verbosity": -1, "num_leaves": 4, "num_threads": 1, "deterministic": True, "force_col_wise": True}


def by_hand(train_fold, metric):
    """Score each fold of labelled rows by a model that is trained with the objective of the other rows."""
    scores = []
    for train, test in SPLIT.split(None, Y):
        raw = train_fold(OBJ.subset(train), train)(X[test])
        scores.append(evaluate(OBJ, raw, Y[test], metric).value)
    return np.mean(scores), np.std(scores)


def test_xgboost():
    def train_fold(obj, rows):
        booster = xgb.train(XGB, xgb.DMatrix(X[rows]), 8, obj=obj)
        return lambda more: booster.predict(xgb.DMatrix(more), output_margin=True)

    found = xgb_adapter.cv(XGB, xgb.DMatrix(X), 8, obj=OBJ, folds=SPLIT, metric=["loss", "aucpr"])
    # The same columns, in the same frame, as those of the library.
    plain = xgb.cv(XGB, xgb.DMatrix(X, label=TRUTH), 8, nfold=3)
    assert type(found) is type(plain)
    assert [c.replace("logistic", "logloss") for c in found.columns if "aucpr" not in c] == plain.columns.tolist()
    for name in ("aucpr", "loss"):
        column = {"loss": "logistic"}.get(name, name)
        last = found[[f"test-{column}-mean", f"test-{column}-std"]].iloc[-1]
        np.testing.assert_allclose(last, by_hand(train_fold, name), atol=1e-5)


def test_lightgbm():
    def train_fold(obj, rows):
        whole = lgb.Dataset(X, params=LGB)  # bins of all rows, as in lightgbm.cv
        return lgb.train({**LGB, "objective": obj}, whole.construct().subset(rows), 8).predict

    found = lgb_adapter.cv(
        {**LGB, "objective": OBJ}, lgb.Dataset(X), 8, folds=SPLIT, metric=["loss", "auc"], return_cvbooster=True
    )
    assert len(found["cvbooster"].boosters) == 3
    for name in ("auc", "loss"):
        column = {"loss": "logistic"}.get(name, name)
        last = found[f"valid {column}-mean"][-1], found[f"valid {column}-stdv"][-1]
        np.testing.assert_allclose(last, by_hand(train_fold, name), atol=1e-6)


def test_early_stopping_follows_the_direction_of_the_metric():
    def precision(y, probability):
        return "precision", average_precision_score(y, probability), True

    every = xgb_adapter.cv(XGB, xgb.DMatrix(X), 60, obj=OBJ, folds=SPLIT, metric=precision, as_pandas=False)
    stopped = xgb_adapter.cv(
        XGB, xgb.DMatrix(X), 60, obj=OBJ, folds=SPLIT, metric=precision, early_stopping_rounds=60, as_pandas=False
    )
    best = int(np.argmax(every["test-precision-mean"]))
    assert every["test-precision-mean"][0] < every["test-precision-mean"][best]
    assert stopped["test-precision-mean"][: best + 1] == every["test-precision-mean"][: best + 1]
    patient = lgb.early_stopping(10, verbose=False)
    found = lgb_adapter.cv(
        {**LGB, "objective": OBJ}, lgb.Dataset(X), 200, folds=SPLIT, metric="auc", callbacks=[patient]
    )
    assert found["valid auc-mean"][-1] == max(found["valid auc-mean"])


def test_several_classes_groups_and_regression():
    rows, truth = load_wine(return_X_y=True)
    y = np.where(np.arange(178) % 3 == 0, truth, -1)
    obj = grbb_objective(rows, y, teacher="graph")
    groups = np.arange(178) // 6
    params = {"objective": "multi:softprob", "num_class": 3, "base_score": 0, "nthread": 1}
    found = xgb_adapter.cv(params, xgb.DMatrix(rows), 5, obj=obj, folds=GroupKFold(3), groups=groups, metric="error")
    assert found["test-error-mean"].iloc[-1] < 0.4
    found = lgb_adapter.cv({**LGB, "objective": obj, "num_class": 3}, lgb.Dataset(rows), 5, folds=3, metric="error")
    assert found["valid error-mean"][-1] < 0.4
    number = np.where(np.arange(178) % 3 == 0, rows[:, 0] - 13, np.nan)
    obj = grbb_objective(rows, number, loss="squared_error", teacher="graph")
    found = lgb_adapter.cv({**LGB, "objective": obj}, lgb.Dataset(rows), 20, folds=SPLIT, metric="rmse")
    assert found["valid rmse-mean"][-1] < found["valid rmse-mean"][0]


def test_wrong_calls():
    with pytest.raises(ValueError, match="240"):
        xgb_adapter.cv(XGB, xgb.DMatrix(X[:50]), obj=OBJ)
    with pytest.raises(TypeError, match="Use folds="):
        xgb_adapter.cv(XGB, xgb.DMatrix(X), obj=OBJ, nfold=3)
    with pytest.raises(TypeError, match="obj must be what grbb_objective returned"):
        xgb_adapter.cv(XGB, xgb.DMatrix(X), obj=lambda scores, data: (scores, scores))
    with pytest.raises(TypeError, match=r"eval_metric= .*metric="):
        xgb_adapter.cv({**XGB, "eval_metric": "auc"}, xgb.DMatrix(X), obj=OBJ)
    with pytest.raises(TypeError, match=r"Metrics of params .*metric="):
        lgb_adapter.cv({**LGB, "objective": OBJ, "metrics": "auc"}, lgb.Dataset(X))
    with pytest.raises(TypeError, match="grbb_objective"):
        lgb_adapter.cv({"objective": "binary"}, lgb.Dataset(X))
    with pytest.raises(ValueError, match="metric must be"):
        lgb_adapter.cv({**LGB, "objective": OBJ}, lgb.Dataset(X), metric="ndcg")


def test_data_sets_that_cannot_be_cut_to_folds():
    for data in (xgb.QuantileDMatrix(X), X):
        with pytest.raises(TypeError, match=r"dtrain must be a plain .* got (Q|nd).* Use DMatrix\(X\)"):
            xgb_adapter.cv(XGB, data, obj=OBJ)
    params = {**LGB, "objective": OBJ}
    with pytest.raises(TypeError, match=r"train_set must be a lightgbm\.Dataset of all rows, got ndarray"):
        lgb_adapter.cv(params, X)
    before = lgb.train(params, lgb.Dataset(X), 2)
    with pytest.raises(ValueError, match="free_raw_data=False"):
        lgb_adapter.cv(params, lgb.Dataset(X), 2, init_model=before)
    assert len(lgb_adapter.cv(params, lgb.Dataset(X, free_raw_data=False), 2, init_model=before)) == 2


@pytest.mark.parametrize("call", [lgb_adapter.cv, lgb_adapter.train])
def test_random_forests_of_lightgbm_have_losses_of_their_own(call):
    params = {**LGB, "objective": OBJ, "boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}
    with pytest.raises(ValueError, match="boosting='rf' of LightGBM takes no objective that is a function"):
        call(params, lgb.Dataset(X), 2)


def test_lightgbm_makes_bins_as_the_parameters_say():
    rows = np.random.default_rng(0).normal(size=(200, 5))
    obj = grbb_objective(rows, np.where(np.arange(200) < 100, rows[:, 0] > 0, -1), verbose=False)
    params = {"objective": obj, "verbosity": -1, "max_bin": 7}
    few = lgb_adapter.cv(params, lgb.Dataset(rows), 5, folds=4)
    made = lgb.Dataset(rows, params={"max_bin": 7}).construct()
    assert few == lgb_adapter.cv(params, made, 5, folds=4)
    assert few != lgb_adapter.cv({**params, "max_bin": 255}, lgb.Dataset(rows), 5, folds=4)


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_whole_numbers_of_a_regression_are_no_classes_and_no_markers(library):
    y = np.where(np.arange(240) % 4 == 0, np.round(2 * X[:, 0]), np.nan)
    obj = grbb_objective(X, y, loss="squared_error", teacher="graph")

    def history(folds):
        if library == "lightgbm":
            return lgb_adapter.cv({**LGB, "objective": obj}, lgb.Dataset(X), 3, folds=folds)
        return xgb_adapter.cv({"base_score": 0, "nthread": 1}, xgb.DMatrix(X), 3, obj=obj, folds=folds, as_pandas=False)

    expected = history(KFold(3))
    assert history(3) == expected
    assert history(np.int64(3)) == expected
    assert history(SemiSupervisedSplit(3)) == expected


def test_folds_of_a_teacher_that_was_fitted_before():
    known = grbb_objective(X, Y, teacher=OBJ.teacher_)
    with pytest.warns(UserWarning, match="scores of held-out rows are too good"):
        xgb_adapter.cv(XGB, xgb.DMatrix(X), 1, obj=known, folds=SPLIT, metric="loss")
