import numpy as np
import pytest

from grbb_ext.graph._neighbors import FaissIndex, NodeIndex, choose_method


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
    index = NodeIndex(nodes, 3, metric, "faiss", None)
    found = index.search(X)
    same = exact[0] == found[0]
    assert same[:, 0].mean() > 0.8
    tolerance = 1e-4 if metric == "euclidean" else 1e-6
    np.testing.assert_allclose(found[1][same], exact[1][same], atol=tolerance)
