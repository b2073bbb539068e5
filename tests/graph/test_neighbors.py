import numpy as np
import pytest
import scipy.sparse as sp

from grbb_ext.graph._neighbors import FaissIndex, NodeIndex, choose_method, nearest_neighbors


def test_large_sets_are_searched_approximately_where_faiss_is_installed(monkeypatch):
    large = np.zeros((20_001, 2), dtype=np.float32)
    assert choose_method(large, "euclidean", "auto") == "faiss"
    assert choose_method(large, "manhattan", "auto") == "brute"
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert choose_method(large, "euclidean", "auto") == "brute"


def test_a_missing_faiss_names_the_extra(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'grbb_ext\[ann\]'"):
        choose_method(np.zeros((10, 2)), "euclidean", "faiss")


def test_the_recall_that_is_reported_is_the_recall():
    X = np.random.default_rng(0).normal(size=(3000, 8)).astype(np.float32)
    index = FaissIndex(X, 10, "euclidean", recall_wanted=0.8)
    truth = NodeIndex(X, 10, "euclidean", "brute", None).search(X)[0]
    found = index.search(X)[0]
    recall = np.mean([np.isin(a, b).mean() for a, b in zip(truth, found, strict=True)])
    assert index.recall >= 0.8
    assert index.n_probed < index.n_cells
    assert recall == pytest.approx(index.recall, abs=0.05)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_nodes_are_found_by_either_search(metric):
    random = np.random.default_rng(0)
    far = 100.0 if metric == "euclidean" else 0.0
    nodes, X = random.normal(size=(2000, 3)) + far, random.normal(size=(50, 3)) + far
    exact = NodeIndex(nodes, 3, metric, "brute", None).search(X)
    index = NodeIndex(nodes, 3, metric, "faiss", None, 0.9)
    found = index.search(X)
    same = exact[0] == found[0]
    assert same[:, 0].mean() > 0.8
    tolerance = 1e-4 if metric == "euclidean" else 1e-6
    np.testing.assert_allclose(found[1][same], exact[1][same], atol=tolerance)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("method", ["brute", "tree"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_long_ties_are_settled_by_row_number(dtype, method, n_jobs):
    # Every corner of the cube has 10 neighbours at distance 1, 45 at sqrt(2) and 120 at sqrt(3): k = 60 ends there.
    X = (np.arange(1024)[:, None] >> np.arange(10) & 1).astype(dtype)
    squared = (X[:, None] != X).sum(axis=2).astype(float)
    np.fill_diagonal(squared, np.inf)
    expected = np.argsort(squared, axis=1, kind="stable")[:, :60]
    neighbors, distances, _ = nearest_neighbors(X, 60, "euclidean", method, n_jobs, False)
    np.testing.assert_array_equal(neighbors, expected)
    np.testing.assert_allclose(distances, np.sqrt(np.take_along_axis(squared, expected, axis=1)), rtol=1e-6)


def test_ties_of_sparse_rows_and_of_faiss_are_settled_too():
    X = (np.arange(1024)[:, None] >> np.arange(10) & 1).astype(np.float32)
    expected = nearest_neighbors(X, 60, "euclidean", "brute", None, False)[0]
    sparse = nearest_neighbors(sp.csr_array(X), 60, "euclidean", "brute", None, False)[0]
    np.testing.assert_array_equal(sparse, expected)
    found, _, recall = nearest_neighbors(X, 60, "euclidean", "faiss", None, False)
    assert (found == expected).mean() > recall - 0.1


def test_close_rows_far_from_the_others_keep_their_order():
    # The two heaps are so far apart that the expansion of |a - b|^2 loses all distances within them.
    X = np.concatenate([np.arange(30.0), 1e9 + np.arange(30.0)])[:, None]
    neighbors = nearest_neighbors(X, 3, "euclidean", "brute", None, False)[0]
    np.testing.assert_array_equal(neighbors[[0, 10, 29, 30]], [[1, 2, 3], [9, 11, 8], [28, 27, 26], [31, 32, 33]])


@pytest.mark.parametrize("unit", [1e-25, 1.0, 1e25])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_faiss_finds_neighbours_in_any_unit(unit, dtype):
    X = np.random.default_rng(0).normal(size=(500, 4)).astype(dtype)
    exact, distances, _ = nearest_neighbors(X, 5, "euclidean", "brute", None, False)
    found, in_unit, recall = nearest_neighbors((X * unit).astype(dtype), 5, "euclidean", "faiss", None, False)
    same = (found == exact).all(axis=1)
    assert recall >= 0.98
    assert same.mean() > 0.8
    np.testing.assert_allclose(in_unit[same], unit * distances[same], rtol=1e-5)


def test_faiss_finds_close_rows_that_lie_far_from_the_others():
    cloud = np.random.default_rng(0).normal(size=(2000, 4))
    X = cloud + 1e4 * (cloud[:, :1] > 0)
    exact = nearest_neighbors(X, 9, "euclidean", "brute", None, False)[0]
    found = nearest_neighbors(X, 9, "euclidean", "faiss", None, False)[0]
    assert (found[:, :, None] == exact[:, None, :]).any(axis=1).mean() > 0.95


def test_faiss_takes_the_threads_asked_for_and_leaves_those_of_others_alone(monkeypatch):
    faiss = pytest.importorskip("faiss")
    asked = []
    monkeypatch.setattr(
        faiss, "omp_set_num_threads", lambda n, real=faiss.omp_set_num_threads: asked.append(n) or real(n)
    )
    before = faiss.omp_get_max_threads()
    nearest_neighbors(np.random.default_rng(0).normal(size=(200, 3)), 3, "euclidean", "faiss", 3, False)
    assert asked
    assert asked[0::2] == [3] * (len(asked) // 2)
    assert asked[1::2] == [before] * (len(asked) // 2)
    assert faiss.omp_get_max_threads() == before
