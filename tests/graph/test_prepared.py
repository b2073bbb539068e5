"""What a graph needs of the rows before any label is looked at."""

from __future__ import annotations

import numpy as np
import pytest

from grbb_ext import KNNGraph, RefinedGraph, grbb_objective, knn_graph
from grbb_ext.graph import prepare_graph
from grbb_ext.table import Schema, Table

ROWS = np.array([[0.0, 0.0], [1.0, 1.0], [np.nan, np.nan], [3.0, 0.0]])


def prepared(table, graph):
    return prepare_graph(graph, table, 4, warn_missing=False)


def test_there_are_at_most_as_many_neighbors_as_other_rows():
    found = prepared(Table(ROWS[:, :1]), KNNGraph(weights="binary", scale=None))
    filled = np.nan_to_num(ROWS[:, :1], nan=1.0)
    assert (knn_graph(filled, 3, weights="binary", scale=None) != found.W).nnz == 0


def test_nothing_is_built_that_is_not_needed():
    obj = grbb_objective(Table(ROWS), [0, 1, -1, -1], rule="labeled")
    assert obj.graph_ is None
    assert obj._prepared.lists is None


def test_a_refined_graph_sees_categories_and_missing_values_as_they_are():
    asked = RefinedGraph(n_trees=3, scale=None)
    found = prepared(Table(ROWS, Schema((1,))), asked)
    assert found.spec == asked.replace(n_neighbors=3)
    assert found.table.codes.ravel().tolist() == [0, 1, -1, 0]
    np.testing.assert_array_equal(found.table.numbers, ROWS[:, :1])
    np.testing.assert_array_equal(found.points.ravel(), [0.0, 1.0, 1.0, 3.0])  # distances see the median


@pytest.mark.parametrize("graph", [np.ones((3, 3)), [[0.0]]])
def test_a_matrix_of_other_rows_is_refused(graph):
    with pytest.raises(ValueError, match="SharedGraph"):
        prepared(Table(ROWS), graph)


def test_a_number_is_no_graph():
    with pytest.raises(ValueError, match="graph must be"):
        prepared(Table(ROWS), np.float64(3.0))


def test_the_rows_of_a_fold_keep_their_order_and_their_neighbours():
    X = np.random.default_rng(0).normal(size=(50, 3))
    whole = prepare_graph(RefinedGraph(n_neighbors=4, normal_scores=False, scale=None), Table(X), 50)
    rows = np.random.default_rng(1).permutation(50)[:30]
    part = whole.subset(rows)
    np.testing.assert_array_equal(part.table.values, X[rows])
    np.testing.assert_array_equal(part.W.toarray(), whole.W.toarray()[np.ix_(rows, rows)])
    row_of = np.argsort(part.lists.inverse)  # lists are numbered by distinct row
    for i in range(5):
        own = part.lists.neighbors[part.lists.inverse[i]]
        own = row_of[own[own >= 0]]
        distances = np.linalg.norm(X[rows] - X[rows[i]], axis=1)
        assert 10 < own.size < 30
        np.testing.assert_allclose(distances[own], np.sort(distances[own]))
