from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from grbb_ext import GRBBClassifier, KNNGraph, RefinedGraph, SharedGraph, TableGraph, knn_graph
from grbb_ext.table import read_table

X = np.random.default_rng(0).normal(size=(60, 3))


def test_the_affinity_of_a_part_is_the_part_of_the_affinity():
    shared, part = SharedGraph(X, KNNGraph(n_neighbors=5)), np.random.default_rng(1).permutation(60)[:25]
    np.testing.assert_array_equal(shared.rows(X[part]), part)
    assert (knn_graph(X, 5)[part][:, part] != shared.prepared(X[part]).W).nnz == 0


def test_sparse_rows():
    S = sp.random(40, 10, 0.5, format="csr", random_state=0)
    np.testing.assert_array_equal(SharedGraph(S).rows(S[[7, 3]]), [7, 3])


def test_equal_rows_are_taken_in_order_and_not_more_often_than_they_are():
    rows = X[[0, 1, 0, 2, 0]]
    shared = SharedGraph(rows, KNNGraph(n_neighbors=2))
    np.testing.assert_array_equal(shared.rows(X[[0, 2, 0]]), [0, 3, 2])
    with pytest.raises(ValueError, match="more often than in the SharedGraph, which has 3"):
        shared.rows(X[[0, 0, 0, 0]])


def test_a_stranger_is_refused():
    shared = SharedGraph(X)
    with pytest.raises(ValueError, match="Row 1 of X is not a row of the SharedGraph"):
        shared.prepared(np.vstack([X[3], X[3] + 1e-12]))
    with pytest.raises(ValueError, match="Row 0"):
        shared.rows(X[:, :2])
    marked = np.where(X > 1, -999, X)
    with pytest.raises(ValueError, match="with NaN for the missing value -999"):
        SharedGraph(marked).rows(read_table(marked, missing=-999))


def test_an_affinity_of_the_users_own():
    W = knn_graph(X, 3, weights="binary")
    assert (W[:10][:, :10] != SharedGraph(X, W).prepared(X[:10]).W).nnz == 0
    with pytest.raises(ValueError, match="rows"):
        SharedGraph(X, W[:10][:, :10])


def test_copies_are_the_object_itself():
    shared = SharedGraph(X)
    assert copy.deepcopy(shared) is shared
    assert clone(GRBBClassifier(graph=shared)).graph is shared
    other = pickle.loads(pickle.dumps(shared))
    np.testing.assert_array_equal(other.rows(X[[5, 2]]), [5, 2])


def test_the_default_graph_is_that_of_the_default():
    shared = SharedGraph(X)
    assert shared.prepared(X).spec == TableGraph()
    assert shared.prepared(X[:20]).lists.neighbors.shape == (20, 9)
    assert "edges" in repr(shared)


def test_rows_beyond_the_nodes_wait_for_the_labels():
    shared = SharedGraph(X, RefinedGraph(max_nodes=50))
    assert repr(shared) == "SharedGraph(60 rows)"
    assert shared.prepared(X).W is None
    assert shared.prepared(X[:50]).W.shape == (50, 50)


def test_a_name_that_is_no_graph():
    with pytest.raises(ValueError, match=r"graph must be one of \['knn', 'refined', 'table'\]"):
        SharedGraph(X, "kernel")
