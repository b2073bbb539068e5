from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from grbb_ext import GRBBClassifier, SharedGraph, knn_graph

X = np.random.default_rng(0).normal(size=(60, 3))


def test_the_affinity_of_a_part_is_the_part_of_the_affinity():
    shared, part = SharedGraph(X, 5), np.random.default_rng(1).permutation(60)[:25]
    np.testing.assert_array_equal(shared.rows(X[part]), part)
    assert (shared.affinity(X[part]) != knn_graph(X, 5)[part][:, part]).nnz == 0


def test_sparse_rows():
    S = sp.random(40, 10, 0.5, format="csr", random_state=0)
    np.testing.assert_array_equal(SharedGraph(S).rows(S[[7, 3]]), [7, 3])


def test_equal_rows_are_taken_in_order_and_not_more_often_than_they_are():
    rows = X[[0, 1, 0, 2, 0]]
    shared = SharedGraph(rows, 2)
    np.testing.assert_array_equal(shared.rows(X[[0, 2, 0]]), [0, 3, 2])
    with pytest.raises(ValueError, match="more often than in the SharedGraph, which has 3"):
        shared.rows(X[[0, 0, 0, 0]])


def test_a_stranger_is_refused():
    shared = SharedGraph(X)
    with pytest.raises(ValueError, match="Row 1 of X is not a row of the SharedGraph"):
        shared.affinity(np.vstack([X[3], X[3] + 1e-12]))
    with pytest.raises(ValueError, match="Row 0"):
        shared.rows(X[:, :2])


def test_an_affinity_of_the_users_own():
    W = knn_graph(X, 3, weights="binary")
    assert (SharedGraph(X, affinity=W).affinity(X[:10]) != W[:10][:, :10]).nnz == 0
    with pytest.raises(ValueError, match="rows"):
        SharedGraph(X, affinity=W[:10][:, :10])


def test_copies_are_the_object_itself():
    shared = SharedGraph(X)
    assert copy.deepcopy(shared) is shared
    assert clone(GRBBClassifier(graph=shared)).graph is shared
    other = pickle.loads(pickle.dumps(shared))
    np.testing.assert_array_equal(other.rows(X[[5, 2]]), [5, 2])
