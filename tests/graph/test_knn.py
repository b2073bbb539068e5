import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.neighbors import kneighbors_graph

from grbb_ext import GraphWarning, knn_graph


def rows(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(5, 60),
    k=st.integers(1, 4),
    weights=st.sampled_from(["self-tuning", "binary", "heat"]),
    copies=st.integers(0, 12),
)
def test_an_affinity_is_symmetric_nonnegative_and_hollow(seed, n, k, weights, copies):
    X = rows(n, 3, seed)
    X = np.vstack([X, np.repeat(X[:1], copies, axis=0)])
    W = knn_graph(X, k, weights=weights)
    assert isinstance(W, sp.csr_array)
    assert abs(W - W.T).nnz == 0
    assert W.data.min() > 0
    assert W.data.max() <= 1
    assert_array_equal(W.diagonal(), 0)
    assert np.diff(W.indptr).min() >= 1


def test_binary_weights_are_scikit_learns_union_graph():
    X = rows(80, 4)
    directed = kneighbors_graph(X, 5)
    assert_array_equal(knn_graph(X, 5, weights="binary").toarray(), directed.maximum(directed.T).toarray())


def test_self_tuning_weights_by_hand():
    # Radii (distance to the second neighbour) on the line 0, 1, 3, 7: 3, 2, 3, 6.
    W = knn_graph([[0.0], [1.0], [3.0], [7.0]], 2).toarray()
    expected = np.zeros((4, 4))
    for i, j, squared, product in [(0, 1, 1, 6), (0, 2, 9, 9), (1, 2, 4, 6), (2, 3, 16, 18), (1, 3, 36, 12)]:
        expected[i, j] = expected[j, i] = np.exp(-squared / product)
    assert_allclose(W, expected, rtol=1e-12)


def test_heat_weights_by_hand():
    W = knn_graph([[0.0], [1.0], [3.0]], 1, weights="heat", bandwidth=2.0).toarray()
    assert_allclose(W[0, 1], np.exp(-1 / 4), rtol=1e-12)
    assert_allclose(W[1, 2], np.exp(-4 / 4), rtol=1e-12)
    median_radius = 1.0
    assert_allclose(knn_graph([[0.0], [1.0], [3.0]], 1, weights="heat")[1, 2], np.exp(-4 / median_radius**2))


def test_a_permutation_of_rows_permutes_the_graph():
    X = rows(60, 3)
    p = np.random.default_rng(1).permutation(60)
    assert_allclose(knn_graph(X[p]).toarray(), knn_graph(X).toarray()[np.ix_(p, p)], rtol=1e-12)


def test_a_far_row_stays_attached():
    X = np.vstack([rows(30, 2), [[1e6, 1e6]]])
    W = knn_graph(X, 3, scale=None)
    assert W[[30]].sum() > 0


def test_many_copies_do_not_form_a_component_of_their_own():
    X = np.vstack([rows(50, 2), np.repeat(rows(1, 2, seed=3), 40, axis=0)])
    W = knn_graph(X, 5)
    n_components, component = sp.csgraph.connected_components(W)
    assert n_components == sp.csgraph.connected_components(knn_graph(X[:51], 5))[0]
    assert np.unique(component[50:]).size == 1
    assert W.nnz < 20 * 90  # linear in the rows, not quadratic in the copies
    # Every copy keeps the neighbours of the row it copies.
    outside = (W[50:, :50] > 0).sum(axis=1)
    assert outside.min() >= 1


def test_up_to_k_plus_one_copies_are_a_clique():
    X = np.vstack([rows(10, 2), np.repeat(rows(1, 2, seed=3), 4, axis=0)])
    W = knn_graph(X, 3).toarray()
    assert_array_equal(W[10:, 10:], 1 - np.eye(4))


def test_all_rows_equal():
    W = knn_graph(np.ones((6, 2)), 5)
    assert_array_equal(W.toarray(), 1 - np.eye(6))


def test_sparse_rows_give_the_dense_graph():
    X = rows(60, 6)
    X[np.abs(X) < 0.8] = 0
    assert_allclose(knn_graph(sp.csr_matrix(X), 4).toarray(), knn_graph(X, 4).toarray(), atol=1e-8)


def test_missing_values_are_replaced_by_the_median_with_a_warning():
    X = rows(40, 3)
    X[3, 1] = np.nan
    before = X.copy()
    with pytest.warns(GraphWarning, match=r"1 missing values.*column's median for the graph only"):
        W = knn_graph(X, 4)
    assert_array_equal(X, before)
    X[3, 1] = np.nanmedian(X[:, 1])
    assert_allclose(W.toarray(), knn_graph(X, 4).toarray())


def test_a_column_without_any_value_is_ignored():
    X = rows(40, 3)
    with pytest.warns(GraphWarning):
        W = knn_graph(np.column_stack([X, np.full(40, np.nan)]), 4, scale=None)
    assert_allclose(W.toarray(), knn_graph(X, 4, scale=None).toarray())


def test_columns_of_different_units_are_put_on_one_scale():
    X = rows(50, 3)
    standardised = X / X.std(axis=0)
    assert_allclose(
        knn_graph(X * [1, 1000, 1e-3], 4).toarray(), knn_graph(standardised, 4, scale=None).toarray(), rtol=1e-6
    )
    assert_allclose(knn_graph(X, 4).toarray(), knn_graph(X, 4, scale=None).toarray())


def test_close_rows_far_from_the_origin_keep_their_distances():
    X = np.array([[0.0], [1e-3], [3e-3], [7e-3]]) + 1e6
    shifted = knn_graph(X, 2, scale=None).toarray()
    assert_allclose(shifted, knn_graph(X - 1e6, 2, scale=None).toarray(), rtol=1e-6)


def test_faiss_agrees_with_brute_force():
    X = rows(3000, 8).astype(np.float32)
    exact = knn_graph(X, 6, method="brute", weights="binary")
    approximate = knn_graph(X, 6, method="faiss", weights="binary")
    shared = exact.multiply(approximate).nnz
    assert shared / exact.nnz > 0.95
    assert_array_equal(approximate.toarray(), knn_graph(X, 6, method="faiss", weights="binary").toarray())


def test_other_metrics():
    X = rows(40, 3)
    directed = kneighbors_graph(X, 4, metric="manhattan")
    W = knn_graph(X, 4, metric="manhattan", weights="binary")
    assert_array_equal(W.toarray(), directed.maximum(directed.T).toarray())
    cosine = kneighbors_graph(X, 4, metric="cosine")
    W = knn_graph(X, 4, metric="cosine", weights="binary")
    assert_array_equal(W.toarray(), cosine.maximum(cosine.T).toarray())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_neighbors": 10}, "needs at least 11 rows, X has 10"),
        ({"n_neighbors": 0}, "n_neighbors must be a positive integer"),
        ({"n_neighbors": 2.5}, "n_neighbors must be a positive integer"),
        ({"weights": "cosine"}, "weights must be"),
        ({"scale": "minmax"}, "scale must be"),
        ({"method": "annoy"}, "method must be"),
        ({"bandwidth": -1.0}, "bandwidth must be a positive number"),
        ({"bandwidth": "median"}, "bandwidth must be a positive number"),
        ({"n_jobs": 0}, "n_jobs must be a positive integer, -1 or None"),
        ({"method": "faiss", "metric": "manhattan"}, "method='faiss' needs a dense X"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        knn_graph(rows(10, 2), **({"n_neighbors": 3} | arguments))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.array([["2026-01-01"], ["2026-01-02"]], dtype="M8[D]"), "dates or durations"),
        ([["a", 1j], ["c", 2j]], "complex"),
        (np.array([1.0, 2.0, 3.0]), "two-dimensional"),
        (np.array([[1.0], [np.inf], [2.0]]), "infinite"),
        (np.empty((5, 0)), r"0 feature\(s\)"),
    ],
)
def test_wrong_rows(X, message):
    with pytest.raises(ValueError, match=message):
        knn_graph(X, 1)
