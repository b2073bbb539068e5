"""What the objective is told about the graph."""

from __future__ import annotations

import numpy as np
import pytest

from grbb_ext.estimators._affinity import graph_of_fit
from grbb_ext.graph import knn_graph
from grbb_ext.table import Schema, Table
from grbb_ext.teacher import RefinedGraph

SETTINGS = {
    "n_neighbors": 9,
    "weights": "binary",
    "metric": "euclidean",
    "scale": None,
    "n_jobs": None,
    "verbose": False,
}
ROWS = np.array([[0.0, 0.0], [1.0, 1.0], [np.nan, np.nan], [3.0, 0.0]])


def affinity(table, graph, needed=True):
    return graph_of_fit(table, graph, memory=None, needed=needed, random_state=0, settings=SETTINGS)


def test_there_are_at_most_as_many_neighbors_as_other_rows():
    given = affinity(Table(ROWS[:, :1]), "knn")
    filled = np.nan_to_num(ROWS[:, :1], nan=1.0)
    assert (given["graph"] != knn_graph(filled, 3, weights="binary", scale=None)).nnz == 0


def test_nothing_is_built_that_is_not_needed():
    given = affinity(Table(ROWS), "knn", needed=False)
    assert given == {"X": None, "graph": None}


def test_a_refined_graph_sees_categories_and_missing_values_as_they_are():
    asked = RefinedGraph(n_trees=3)
    given = affinity(Table(ROWS, Schema((1,))), asked)
    basis = given["graph"]
    assert basis.settings is asked
    assert basis.search.n_neighbors == 3
    assert given["X"][:, 1].tolist() == ["category 0", "category 1", None, "category 0"]
    assert basis.columns.codes.ravel().tolist() == [1, 2, -1, 1]
    np.testing.assert_array_equal(basis.columns.numbers, ROWS[:, :1])
    np.testing.assert_array_equal(basis.points.ravel(), [0.0, 1.0, 1.0, 3.0])  # distances see the median


@pytest.mark.parametrize("graph", [np.ones((3, 3)), [[0.0]], np.float64(3.0)])
def test_a_matrix_of_other_rows_is_refused(graph):
    with pytest.raises(ValueError, match="SharedGraph"):
        affinity(Table(ROWS), graph)
