"""The linear expert against scikit-learn's models, and what it says where there is nothing to learn."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, make_regression
from sklearn.linear_model import LogisticRegression, Ridge

from grbb_ext.labels import read_labels
from grbb_ext.table import DistanceSpace, read_table
from grbb_ext.teacher import LinearExpert

IRIS, SPECIES = load_iris(return_X_y=True)


def some_labels(truth, n=30, seed=0):
    y = np.full(truth.size, -1)
    rows = np.random.default_rng(seed).choice(truth.size, n, replace=False)
    y[rows] = truth[rows]
    return y


def design(X):
    """Return the columns of the expert by its definition: centred, and of mean squared norm 20."""
    points = DistanceSpace.fit(read_table(X), scale="standard", normal_scores=True, warn_missing=False)(read_table(X))
    points = points - points.mean(axis=0)
    return points * np.sqrt(20 / (points**2).sum(axis=1).mean())


@pytest.mark.parametrize("n_classes", [2, 3])
def test_it_is_the_regression_of_its_definition(n_classes):
    X, truth = IRIS[n_classes > SPECIES], SPECIES[n_classes > SPECIES]
    y = some_labels(truth)
    expert = LinearExpert.fit(read_table(X), read_labels(y))
    Z = design(X)
    model = LogisticRegression(C=0.3, tol=1e-8, max_iter=10_000).fit(Z[y >= 0], y[y >= 0])
    expected = model.predict_proba(Z)
    found = expert.predict(read_table(X))
    assert_allclose(found, expected[:, 1] if n_classes == 2 else expected, atol=0.01)


def test_held_out_predictions_do_not_change_with_the_label():
    y = some_labels(SPECIES)
    table, labels = read_table(IRIS), read_labels(y)
    expert = LinearExpert.fit(table, labels)
    assert np.isfinite(expert.held_out).all()
    own = (expert.held_out * labels.targets).sum(axis=1)
    fitted = (expert.predict(table)[labels.labeled] * labels.targets).sum(axis=1)
    assert fitted.mean() > own.mean()  # a model is surer of labels that it has seen


def test_values_by_ridge_regression_and_the_closed_form_of_leaving_one_out():
    X, truth = make_regression(120, 3, noise=5.0, random_state=0)
    y = np.where(np.arange(120) < 30, truth, np.nan)
    table, labels = read_table(X), read_labels(y, "squared_error")
    expert = LinearExpert.fit(table, labels)
    assert np.corrcoef(expert.predict(table)[30:], truth[30:])[0, 1] > 0.98
    # With one strength of the penalty alone, leaving a row out is fitting without it.
    from grbb_ext.teacher import _linear

    Z = design(X)[:30]
    original, _linear._ALPHAS = _linear._ALPHAS, (10.0,)
    try:
        w, b, held_out = _linear._ridge(Z, truth[:30])
    finally:
        _linear._ALPHAS = original
    whole = Ridge(10.0).fit(Z, truth[:30])
    assert_allclose(Z @ w + b, whole.predict(Z))
    for i in range(5):
        others = np.arange(30) != i
        assert_allclose(held_out[i], Ridge(10.0).fit(Z[others], truth[:30][others]).predict(Z[[i]])[0], rtol=0.02)


@pytest.mark.parametrize("X", [np.zeros((40, 2)), np.full((40, 1), 1e-30), sp.csr_array((40, 3))])
@pytest.mark.parametrize("loss", ["auto", "squared_error"])
def test_constant_columns_give_the_mean_of_the_labels(X, loss):
    y = np.where(np.arange(40) < 8, np.arange(40) % 4 == 0, -1.0)
    labels = read_labels(np.where(y < 0, np.nan, y) if loss != "auto" else y.astype(int), loss)
    expert = LinearExpert.fit(read_table(X), labels)
    assert_allclose(expert.predict(read_table(X)), 0.25, atol=1e-6)
    assert np.isfinite(expert.held_out).all()


def test_sparse_rows_and_categories():
    random = np.random.default_rng(0)
    X = sp.csr_array(random.poisson(0.3, size=(200, 10)).astype(float))
    truth = np.asarray(X[:, [2]].todense()).ravel() > 0
    expert = LinearExpert.fit(read_table(X), read_labels(some_labels(truth.astype(int), 60)))
    assert np.mean((expert.predict(read_table(X)) > 0.5) == truth) > 0.85
    frame = pd.DataFrame({"noise": random.normal(size=200), "kind": np.where(truth, "yes", "no")})
    expert = LinearExpert.fit(read_table(frame), read_labels(some_labels(truth.astype(int), 20)))
    assert_array_equal(expert.predict(read_table(frame)) > 0.5, truth)


def test_the_order_of_rows_does_not_matter():
    y = some_labels(SPECIES)
    p = np.random.default_rng(1).permutation(150)
    first, second = (LinearExpert.fit(read_table(X), read_labels(t)) for X, t in ((IRIS, y), (IRIS[p], y[p])))
    assert_allclose(second.predict(read_table(IRIS)), first.predict(read_table(IRIS)), atol=1e-8)


def test_a_class_without_a_label_has_no_probability():
    y = some_labels(SPECIES[SPECIES < 2])
    labels = read_labels(y, "softmax", classes=[0, 1, 2])
    expert = LinearExpert.fit(read_table(IRIS[:100]), labels)
    q = expert.predict(read_table(IRIS[:100]))
    assert (q[:, 2] < 1e-6).all()
    assert np.mean(q.argmax(axis=1) == SPECIES[:100]) > 0.95
    one = replace(labels, targets=np.tile([1.0, 0.0, 0.0], (labels.labeled.size, 1)))
    assert (LinearExpert.fit(read_table(IRIS[:100]), one).predict(read_table(IRIS[:100])).argmax(axis=1) == 0).all()
