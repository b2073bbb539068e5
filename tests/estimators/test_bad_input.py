"""Wrong calls end at the door, with what to do in the message; odd but possible ones give finite predictions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from grbb_ext import GRBBClassifier, GRBBRegressor

X = np.random.default_rng(0).normal(size=(40, 3))
Y = np.where(np.arange(40) < 10, (X[:, 0] > 0).astype(int), -1)


def _with(row: int, column: int, value: float):
    changed = X.copy()
    changed[row, column] = value
    return changed


@pytest.mark.parametrize(
    ("rows", "labels", "match"),
    [
        (None, Y, "array"),
        ("text", Y, "could not convert"),
        (3.0, Y, "2D array"),
        (X[:, 0], Y, "2D array"),
        (X[None], Y, "dim"),
        (X[:0], Y[:0], "0 sample"),
        (X[:1], Y[:1], "1 sample"),
        (X[:, :0], Y, "0 feature"),
        (_with(0, 0, np.inf), Y, "infinity"),
        (pd.DataFrame(_with(0, 0, np.inf)), Y, "infinity"),
        (pd.DataFrame(X).iloc[:, :0], Y, "0 feature"),
        (pd.DataFrame(X).iloc[:1], Y[:1], "1 sample"),
        (X.astype(complex), Y, "Complex"),
        (np.array([["a", {}]] * 40), Y, "a string or a number"),
        (X, None, "requires y"),
        (X, Y[:-1], "inconsistent"),
        (X, np.full(40, -1), "no labelled row"),
        (X, np.full(40, np.nan), "no labelled row"),
        (X, np.full(40, None), "no labelled row"),
        (X, np.where(Y == 1, 1, -1), "classes="),
        (X, np.linspace(0, 1, 40), "Unknown label type"),
        (X, np.column_stack([Y, Y]), "1d array"),
        (X, np.where(Y == 1, np.inf, Y), "infinity"),
        (X, Y.astype(complex), "[Cc]omplex"),
        (X, ["a", 1] * 20, "different types"),
        (X, np.array(["a", "-1"] * 20), "unlabeled='-1'"),
    ],
)
def test_data_is_refused(classifier, rows, labels, match):
    with pytest.raises((ValueError, TypeError), match=match):
        GRBBClassifier(classifier(), teacher="graph").fit(rows, labels)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"graph__n_neighbors": 0}, "n_neighbors"),
        ({"graph__n_neighbors": 2.5}, "n_neighbors"),
        ({"graph__n_neighbors": "all"}, "n_neighbors"),
        ({"graph__weights": "cubic"}, "weights"),
        ({"graph__scale": "log"}, "scale"),
        ({"graph": np.ones((3, 3))}, "SharedGraph"),
        ({"graph": "nonsense"}, "graph"),
        ({"graph": -np.ones((40, 40))}, "negative"),
        ({"preset": "paper"}, "preset"),
        ({"rule": "paper"}, "no teacher"),
        ({"rule": "nonsense"}, "rule"),
        ({"rule": "laplacian"}, "lam"),
        ({"propagation": "nonsense"}, "nonsense"),
        ({"rule__lam": -1.0}, "lam"),
        ({"rule__lam": np.nan}, "lam"),
        ({"teacher__sharpen": 0.5}, "sharpen"),
        ({"rule__hessian": "third"}, "hessian"),
        ({"class_weight": "even"}, "class_weight"),
        ({"class_weight": {7: 1.0}}, "class_weight"),
        ({"categorical_features": [7]}, "no such column"),
        ({"categorical_features": ["color"]}, "no such column"),
        ({"categorical_features": "color"}, "from_dtype"),
        ({"categorical_features": [0]}, "codes"),
    ],
)
def test_settings_are_refused(classifier, settings, match):
    with pytest.raises((ValueError, TypeError), match=match):
        GRBBClassifier(classifier(), teacher="graph").set_params(**settings).fit(X, Y)


@pytest.mark.parametrize("classes", [[0], [0, 5], 2])
def test_classes_are_refused(classifier, classes):
    with pytest.raises(ValueError, match="classes"):
        GRBBClassifier(classifier(), teacher="graph").fit(X, Y, classes=classes)


@pytest.mark.parametrize(
    ("weight", "match"),
    [
        (np.ones(3), "sample_weight"),
        (-np.ones(40), "sample_weight"),
        (np.full(40, np.nan), "sample_weight"),
        (np.zeros(40), "zero"),
        (np.where(Y == -1, 1.0, 0.0), "zero"),
    ],
)
def test_weights_are_refused(classifier, weight, match):
    with pytest.raises(ValueError, match=match):
        GRBBClassifier(classifier(), teacher="graph").fit(X, Y, weight)


@pytest.mark.parametrize(
    ("labels", "match"),
    [
        (np.full(40, np.nan), "no labelled row"),
        (["a"] * 40, "numbers"),
        (np.where(Y == 1, np.inf, 0.0), "infinity"),
        (None, "requires y"),
    ],
)
def test_targets_of_a_regression_are_refused(regressor, labels, match):
    with pytest.raises(ValueError, match=match):
        GRBBRegressor(regressor(), teacher="graph").fit(X, labels)


@pytest.mark.parametrize(
    "rows",
    [
        np.ones((40, 3)),
        np.column_stack([X[:, 0], np.ones(40)]),
        np.repeat(X[:4], 10, axis=0),
        np.full((40, 3), np.nan),
        np.column_stack([X[:, 0], np.full(40, np.nan)]),
        X * 1e30,
        X * 1e-30,
        X.astype(np.float32),
        (X * 10).astype(int),
        X > 0,
    ],
    ids=["all-equal", "constant", "copies", "all-missing", "missing-column", "huge", "tiny", "float32", "int", "bool"],
)
def test_odd_rows_give_finite_predictions(classifier, regressor, rows):
    probability = GRBBClassifier(classifier(), teacher="graph").fit(rows, Y).predict_proba(rows)
    value = GRBBRegressor(regressor(), teacher="graph").fit(rows, np.where(Y < 0, np.nan, Y)).predict(rows)
    assert np.isfinite(probability).all()
    assert np.isfinite(value).all()


def test_two_rows(classifier):
    model = GRBBClassifier(classifier(), teacher="graph").fit([[0.0], [1.0]], [0, 1])
    assert np.isfinite(model.predict_proba([[0.5]])).all()


def test_an_unfitted_model_says_so(classifier, regressor):
    model = GRBBClassifier(classifier(), teacher="graph")
    for call in (
        lambda: model.predict(X),
        lambda: model.predict_proba(X),
        lambda: model.decision_function(X),
        lambda: next(model.staged_predict_proba(X)),
        lambda: model.score(X, Y),
        lambda: model.prediction_variance(),
        lambda: model.suggest_labels(1),
        lambda: model.on_demand({}),
        lambda: model.forest_,
        lambda: model.library_,
        lambda: GRBBRegressor(regressor(), teacher="graph").predict(X),
    ):
        with pytest.raises(NotFittedError):
            call()


def test_other_columns_at_prediction_are_refused(classifier):
    model = GRBBClassifier(classifier(), teacher="graph").fit(X, Y)
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, :2])
    with pytest.raises(ValueError, match="infinity"):
        model.predict(_with(0, 0, np.inf))
    with pytest.raises(ValueError, match="0 sample"):
        model.predict(X[:0])


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_numbers_are_no_names_of_categories(classifier, moons, container):
    X, _, y = moons
    rows = pd.DataFrame({"kind": pd.Categorical(1 + (X[:, 0] > 0)), "x": X[:, 1]})
    model = GRBBClassifier(classifier(), teacher="forest").fit(rows, y)
    with pytest.raises(ValueError, match="the numbers of an array are no names"):
        model.predict(container(rows.to_numpy(dtype=float)))
