import numpy as np
import pytest

from grbb_ext.graph._neighbors import choose_method


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
