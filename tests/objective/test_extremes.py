"""Extreme inputs: gradients are finite, or the input is refused with a message that helps."""

from __future__ import annotations

import warnings

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xgboost as xgb
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits, make_moons

from grbb_ext import Committee, GraphWarning, KNNGraph, grbb_objective, knn_graph
from grbb_ext.propagation import PROPAGATIONS, SolverError

RULES = ("targets", "paper", "corrected", "laplacian", "labeled")


def path_graph(weights):
    W = sp.diags_array(np.asarray(weights, dtype=float), offsets=1)
    return sp.csr_array(W + W.T)


def far_rows(seed=0, n=60, distance=40.0):
    """Return heat-kernel affinities of a cloud and two rows far from it: their edges have weights near 1e-300."""
    X = np.vstack([np.random.default_rng(seed).normal(size=(n, 2)), [[distance, 0.0], [distance, 1.0]]])
    squared = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    W = np.exp(-squared / 2)
    np.fill_diagonal(W, 0)
    return W


@pytest.mark.parametrize("kind", list(PROPAGATIONS))
@pytest.mark.parametrize("labeled", [(0, 1), (0, 60), (60, 61)])
def test_far_rows_of_a_heat_kernel_have_finite_gradients(kind, labeled):
    y = np.full(62, -1)
    y[list(labeled)] = [0, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        obj = grbb_objective(None, y, graph=far_rows(), propagation=kind, verbose=False)
        gradient, hessian = obj(np.zeros(62))
    assert np.isfinite(gradient).all()
    assert np.isfinite(hessian).all()


def test_edges_that_double_precision_cannot_see_are_dropped_with_a_warning():
    W = path_graph([1.0, 1e-20, 1.0])
    with (
        pytest.warns(GraphWarning, match="1 edges of the graph are lighter"),
        pytest.warns(UserWarning, match="2 of 4"),
    ):
        obj = grbb_objective(None, [0, 1, -1, -1], graph=W, propagation="harmonic", verbose=False)
    assert_array_equal(obj.unreachable_, [2, 3])


@pytest.mark.parametrize("unit", [1e-300, 1e-100, 1e100, 1e300])
def test_the_unit_of_weights_does_not_matter(unit):
    weights = np.array([1.0, 2.0, 0.5, 1.0])
    y = [0, -1, -1, -1, 1]
    for kind in PROPAGATIONS:
        plain = grbb_objective(None, y, graph=path_graph(weights), propagation=kind, verbose=False)
        with pytest.warns(GraphWarning, match="divided by it"):
            scaled = grbb_objective(None, y, graph=path_graph(unit * weights), propagation=kind, verbose=False)
        assert_allclose(scaled.targets_, plain.targets_, rtol=1e-6)


@given(
    seed=st.integers(0, 10_000),
    spread=st.floats(0, 300),
    shift=st.floats(-250, 250),
    lam=st.sampled_from([0.0, 1e-6, 1.0, 1e6]),
    rule=st.sampled_from(RULES),
    kind=st.sampled_from(["harmonic", "nonlocal", "smooth", "poisson"]),
)
@settings(max_examples=120)
def test_any_graph_gives_finite_gradients_or_a_helpful_refusal(seed, spread, shift, lam, rule, kind):
    random = np.random.default_rng(seed)
    n = int(random.integers(4, 30))
    exponent = np.clip(shift + spread * (random.random(3 * n) - 0.5), -300, 300)
    i, j = random.integers(0, n, (2, 3 * n))
    W = np.zeros((n, n))
    W[i, j] = 10.0**exponent
    W = np.maximum(W, W.T)
    y = np.full(n, -1)
    y[random.permutation(n)[:3]] = [0, 1, 1]
    if rule == "laplacian":
        lam = lam or 1.0
    if rule == "corrected" and kind in ("smooth", "poisson"):
        kind = "nonlocal"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            obj = grbb_objective(None, y, graph=W, rule=rule, propagation=kind, lam=lam, verbose=False)
            gradient, hessian = obj(random.normal(size=n))
        except (SolverError, ValueError) as error:
            assert any(word in str(error) for word in ("drop such edges", "Scale sample_weight"))  # noqa: PT017
            return
    assert np.isfinite(gradient).all()
    assert np.isfinite(hessian).all()


@pytest.mark.parametrize("sharpen", [100, 1100, 1e6])
def test_sharpening_leaves_ties_alone(sharpen):
    obj = grbb_objective(
        None, [0, -1, 1], graph=path_graph([1.0, 1.0]), teacher=Committee(sharpen=sharpen), verbose=False
    )
    assert_allclose(obj.targets_, [0, 0.5, 1])


@pytest.mark.parametrize("sharpen", [100, 1100, 1e6])
def test_sharpening_leaves_ties_of_three_classes_alone(sharpen):
    # The last row has an edge to one row of each class.
    W = np.zeros((4, 4))
    W[3, :3] = W[:3, 3] = 1.0
    obj = grbb_objective(None, [0, 1, 2, -1], graph=W, teacher=Committee(sharpen=sharpen), verbose=False)
    assert_allclose(obj.targets_, np.vstack([np.eye(3), np.full(3, 1 / 3)]))


def test_weights_that_multiply_beyond_single_precision_are_refused():
    y, weight = [0, -1, 1], [1e25, 1e25, 1.0]
    for rule in ("paper", "corrected"):
        with pytest.raises(ValueError, match="Divide the weights"):
            grbb_objective(None, y, graph=path_graph([1.0, 1.0]), rule=rule, sample_weight=weight, verbose=False)
    obj = grbb_objective(None, y, graph=path_graph([1.0, 1.0]), sample_weight=weight, verbose=False)
    assert np.isfinite(obj(np.zeros(3))[0]).all()


def test_numbers_beyond_single_precision_are_refused():
    with pytest.raises(ValueError, match="as large as 1e\\+300"):
        grbb_objective(None, [1e300, np.nan, 1.0], graph=path_graph([1.0, 1.0]), loss="squared_error")


def test_gradients_that_are_not_finite_are_refused():
    W = path_graph([1.0, 1.0])
    obj = grbb_objective(None, [0, -1, 1], graph=W, rule="laplacian", lam=1e30, verbose=False)
    with pytest.raises(ValueError, match="Gradients are not finite"):
        obj(np.array([0.0, 3e38, -3e38], dtype=np.float32), None)


def test_neighbors_do_not_depend_on_threads():
    # Pixels are whole numbers: many rows are at the same distance.
    X = load_digits().data
    one, two = (knn_graph(X, n_jobs=jobs, verbose=False) for jobs in (1, 2))
    assert (one != two).nnz == 0


def test_ties_are_settled_by_row_number():
    # All four corners of a square are at the same distance from its centre.
    X = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0], [0.0, 0.0]])
    W = knn_graph(X, 1, weights="binary", scale=None, verbose=False)
    assert_array_equal(np.flatnonzero(W[[4]].toarray()[0] * (np.arange(5) < 1)), [0])


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_neighbors_are_the_first_by_distance_and_row_number(n_jobs):
    # Squared distances of whole numbers are exact, so that all pairs can be ranked without rounding.
    X = load_digits().data
    products = X @ X.T
    squared = np.diag(products)[:, None] + np.diag(products) - 2 * products
    np.fill_diagonal(squared, np.inf)
    ranked = np.lexsort((np.broadcast_to(np.arange(len(X)), squared.shape), squared), axis=1)
    nearest = np.zeros(squared.shape, dtype=bool)
    np.put_along_axis(nearest, ranked[:, :10], True, axis=1)
    W = knn_graph(X, 10, weights="binary", scale=None, n_jobs=n_jobs, verbose=False)
    assert_array_equal(W.toarray() > 0, nearest | nearest.T)


@pytest.mark.parametrize("marker", ["None", "", "nan", "<NA>"])
def test_markers_that_became_text_are_refused(marker):
    y = np.array(["a", "b", marker, marker])
    with pytest.raises(ValueError, match="but the marker of unlabelled rows is -1"):
        grbb_objective(None, y, graph=path_graph([1.0, 1.0, 1.0]))
    labels = grbb_objective(None, y, graph=path_graph([1.0, 1.0, 1.0]), unlabeled=marker, verbose=False).labeled_
    assert_array_equal(labels, [0, 1])


@pytest.fixture
def shuffled():
    X, truth = make_moons(100, noise=0.1, random_state=0)
    y = np.where(np.arange(100) < 10, truth, -1)
    obj = grbb_objective(X, y, graph=KNNGraph(), teacher="graph", verbose=False)
    return X, y, obj, np.random.default_rng(0).permutation(100)


def test_a_data_set_in_another_order_is_caught_by_its_labels(shuffled):
    X, y, obj, p = shuffled
    with pytest.raises(ValueError, match="may stand in another order"):
        xgb.train({"base_score": 0}, xgb.DMatrix(X[p], label=y[p]), 1, obj=obj)
    with pytest.raises(ValueError, match="may stand in another order"):
        lgb.train({"objective": obj, "verbosity": -1}, lgb.Dataset(X[p], label=y[p]), 1)


def test_another_order_is_caught_in_every_way_to_start(shuffled):
    X, y, obj, p = shuffled
    margin = np.random.default_rng(0).normal(size=100)
    named = {"objective": "binary:logistic", "base_score": 0.5}
    first = xgb.train(named, xgb.DMatrix(X, label=y), 2, obj=obj)
    for data, before in (
        (xgb.DMatrix(X[p], label=y[p]), None),
        (xgb.DMatrix(X[p], label=y[p]), first),
        (xgb.DMatrix(X[p], label=y[p], base_margin=margin), None),
        (xgb.QuantileDMatrix(X[p], label=y[p]), None),
    ):
        with pytest.raises(ValueError, match="may stand in another order"):
            xgb.train(named, data, 1, obj=obj, xgb_model=before)
    first = lgb.train({"objective": obj, "verbosity": -1}, lgb.Dataset(X, label=y), 2)
    for start in ({"init_score": margin}, {"free_raw_data": False}):
        before = None if "init_score" in start else first
        with pytest.raises(ValueError, match="may stand in another order"):
            lgb.train({"objective": obj, "verbosity": -1}, lgb.Dataset(X[p], label=y[p], **start), 1, init_model=before)


def test_another_order_of_frames_text_classes_and_numbers(shuffled):
    X, y, _, p = shuffled
    names = np.array(["ham", "spam", None], dtype=object)[y]
    text = grbb_objective(X, names, graph=KNNGraph(), teacher="graph", verbose=False)
    xgb.train({"base_score": 0}, xgb.DMatrix(X, label=y), 1, obj=text)  # the numbers of the classes
    with pytest.raises(ValueError, match="may stand in another order"):
        xgb.train({"base_score": 0}, xgb.DMatrix(X[p], label=y[p]), 1, obj=text)
    series = pd.Series(y, index=np.arange(500, 600))
    lgb.train({"objective": text, "verbosity": -1}, lgb.Dataset(pd.DataFrame(X), label=series), 1)
    with pytest.raises(ValueError, match="may stand in another order"):
        lgb.train({"objective": text, "verbosity": -1}, lgb.Dataset(pd.DataFrame(X).iloc[p], label=series.iloc[p]), 1)
    numbers = np.where(y < 0, np.nan, X[:, 0])
    regression = grbb_objective(X, numbers, loss="squared_error", graph=KNNGraph(), teacher="graph", verbose=False)
    filled = np.nan_to_num(numbers)
    xgb.train({"base_score": 0}, xgb.DMatrix(X, label=filled), 1, obj=regression)
    with pytest.raises(ValueError, match="may stand in another order"):
        xgb.train({"base_score": 0}, xgb.DMatrix(X[p], label=filled[p]), 1, obj=regression)


def test_labels_in_the_order_of_y_and_placeholders_are_fine(shuffled):
    X, y, obj, _ = shuffled
    for label in (y, np.zeros(100), np.where(y < 0, 0, y)):
        xgb.train({"base_score": 0}, xgb.DMatrix(X, label=label), 1, obj=obj)
        lgb.train({"objective": obj, "verbosity": -1}, lgb.Dataset(X, label=label), 1)
