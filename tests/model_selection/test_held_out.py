from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor, early_stopping
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.model_selection import KFold, LeaveOneOut

from grbb_ext import GRBBClassifier, GRBBRegressor, SemiSupervisedSplit, cost_curve, share_graph
from grbb_ext.model_selection import held_out_predict

X, TRUTH = make_moons(120, noise=0.1, random_state=0)
Y = np.where(np.arange(120) % 6 == 0, TRUTH, -1)
MODEL = GRBBClassifier(LGBMClassifier(n_estimators=5, n_jobs=1, verbosity=-1), n_jobs=1)


def test_each_row_is_predicted_without_its_label():
    found = held_out_predict(MODEL, X, Y, cv=LeaveOneOut())
    np.testing.assert_array_equal(found.rows, np.flatnonzero(Y >= 0))
    np.testing.assert_array_equal(found.y, Y[found.rows])
    row = found.rows[3]
    rest = np.delete(np.arange(120), row)
    alone = share_graph(MODEL, X).fit(X[rest], Y[rest]).predict_proba(X[[row]])
    np.testing.assert_array_equal(found.prediction[3], alone[0])
    # and its label has no say: a wrong one changes nothing
    wrong = Y.copy()
    wrong[row] = 1 - Y[row]
    np.testing.assert_array_equal(held_out_predict(MODEL, X, wrong, cv=LeaveOneOut()).prediction[3], alone[0])


def test_folds_of_names_repeats_and_processes():
    names = np.array(["a", "b"])[TRUTH].astype(object)
    names[Y < 0] = None
    found = held_out_predict(MODEL, X, names, cv=SemiSupervisedSplit(3, n_repeats=2, random_state=0), n_jobs=2)
    assert found.classes.tolist() == ["a", "b"]
    assert found.prediction.shape == (40, 2)
    assert (np.diff(found.rows) >= 0).all()
    assert (found.classes[found.prediction.argmax(axis=1)] == found.y).mean() > 0.8


def test_numbers():
    y = np.where(np.arange(120) % 4 == 0, X[:, 0], np.nan)
    found = held_out_predict(GRBBRegressor(LGBMRegressor(n_estimators=30, n_jobs=1, verbosity=-1)), X, y, cv=5)
    assert found.classes is None
    assert found.prediction.shape == (30,)
    assert np.corrcoef(found.prediction, found.y)[0, 1] > 0.7


def test_a_pipeline_is_refused():
    with pytest.raises(TypeError, match="transform"):
        held_out_predict(LGBMClassifier(), X, Y)


@pytest.mark.filterwarnings("ignore:Only the class:UserWarning")
def test_classes_of_a_fitted_model_are_kept():
    fitted = MODEL.fit(X, Y, classes=[0, 1, 2])
    found = held_out_predict(fitted, X, Y)
    assert found.classes.tolist() == [0, 1, 2]
    assert found.prediction.shape == (20, 3)
    only = np.where(Y == 1, 1, -1)
    assert held_out_predict(fitted, X, only, cv=2).classes.tolist() == [0, 1, 2]


@pytest.mark.parametrize("by_callback", [False, True])
def test_a_fitted_model_keeps_its_rounds(by_callback):
    stop = {} if by_callback else {"early_stopping_rounds": 2}
    model = GRBBClassifier(LGBMClassifier(n_estimators=200, n_jobs=1, verbosity=-1, **stop), n_jobs=1)
    callbacks = [early_stopping(2, verbose=False)] if by_callback else None
    model.fit(X, Y, eval_set=[(X[:60], TRUTH[:60])], callbacks=callbacks)
    short = GRBBClassifier(LGBMClassifier(n_estimators=model.n_iter_, n_jobs=1, verbosity=-1), n_jobs=1)
    expected = held_out_predict(short, X, Y, cv=3).prediction
    np.testing.assert_array_equal(held_out_predict(model, X, Y, cv=3).prediction, expected)
    if not by_callback:
        with pytest.raises(ValueError, match=r"without_early_stopping\(\)"):
            held_out_predict(clone(model), X, Y, cv=3)


@pytest.mark.parametrize("cv", [3, np.int64(3), SemiSupervisedSplit(3)], ids=["int", "int64", "split"])
def test_whole_numbers_of_a_regression_are_no_classes_and_no_markers(cv):
    y = np.where(np.arange(120) % 4 == 0, np.round(2 * X[:, 0]), np.nan)
    model = GRBBRegressor(LGBMRegressor(n_estimators=5, n_jobs=1, verbosity=-1), n_jobs=1)
    assert (y == -1).any()
    expected, found = (held_out_predict(model, X, y, cv=one) for one in (KFold(3), cv))
    np.testing.assert_array_equal(found.rows, np.flatnonzero(~np.isnan(y)))
    np.testing.assert_array_equal(found.prediction, expected.prediction)


def test_folds_know_the_marker_of_the_model():
    model = GRBBClassifier(MODEL.estimator, unlabeled="?", n_jobs=1)
    y, split = np.array(["no", "yes", "?"])[Y], SemiSupervisedSplit(3)
    found = held_out_predict(model, X, y, cv=split)
    np.testing.assert_array_equal(found.rows, np.flatnonzero(Y >= 0))
    assert split.unlabeled == -1


def test_tables_and_labels_of_pyarrow():
    expected = held_out_predict(MODEL, X, Y, cv=3)
    found = held_out_predict(MODEL, pa.table({"a": X[:, 0], "b": X[:, 1]}), pa.array(Y), cv=3)
    np.testing.assert_array_equal(found.prediction, expected.prediction)


def test_lists_of_numbers_and_text():
    rows = [[float(x), "high" if x > 0.5 else "low"] for x in X[:, 0]]
    expected = held_out_predict(MODEL, np.array(rows, dtype=object), Y, cv=3)
    np.testing.assert_array_equal(held_out_predict(MODEL, rows, Y.tolist(), cv=3).prediction, expected.prediction)


@pytest.mark.parametrize("n_weights", [2, 121])
def test_weights_are_those_of_the_rows(n_weights):
    for call in (held_out_predict, partial(cost_curve, feature_costs=[1.0, 2.0], mus=[0.0], verbose=False)):
        with pytest.raises(ValueError, match="one weight for each of the 120 rows"):
            call(MODEL, X, Y, cv=3, sample_weight=np.ones(n_weights))


@pytest.mark.parametrize("n_jobs", [0, "2"])
def test_the_number_of_fits_at_a_time_is_an_integer(n_jobs):
    for call in (held_out_predict, partial(cost_curve, feature_costs=[1.0, 2.0])):
        with pytest.raises(ValueError, match="n_jobs must be a positive integer, -1 or None"):
            call(MODEL, X, Y, n_jobs=n_jobs)
