"""What the objective is told about the graph."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from grbb_ext.estimators._affinity import graph_of_fit
from grbb_ext.frames import Schema, Table
from grbb_ext.graph import knn_graph

SETTINGS = {
    "n_neighbors": 9,
    "weights": "binary",
    "metric": "euclidean",
    "scale": None,
    "n_jobs": None,
    "verbose": False,
}
ROWS = np.array([[0.0, 0.0], [1.0, 1.0], [np.nan, np.nan], [3.0, 0.0]])


def test_there_are_at_most_as_many_neighbors_as_other_rows():
    given = graph_of_fit(Table(ROWS[:, :1]), "knn", memory=None, needed=True, settings=SETTINGS)
    filled = np.nan_to_num(ROWS[:, :1], nan=1.0)
    assert (given["graph"] != knn_graph(filled, 3, weights="binary", scale=None)).nnz == 0


def test_nothing_is_built_that_is_not_needed():
    given = graph_of_fit(Table(ROWS), "knn", memory=None, needed=False, settings=SETTINGS)
    assert given == {"X": None, "graph": None}


def test_what_is_not_a_matrix_is_passed_on_with_the_rows():
    asked = SimpleNamespace(n_trees=3)
    for graph in ("refined", asked):
        given = graph_of_fit(Table(ROWS, Schema((1,))), graph, memory=None, needed=True, settings=SETTINGS)
        assert given["graph"] is graph
        assert given["n_neighbors"] == 3
        assert given["X"][:, 1].tolist() == ["category 0", "category 1", None, "category 0"]
        np.testing.assert_array_equal(given["X"][:, 0].astype(float), ROWS[:, 0])
    plain = graph_of_fit(Table(ROWS), "refined", memory=None, needed=True, settings=SETTINGS)
    np.testing.assert_array_equal(plain["X"], ROWS)


@pytest.mark.parametrize("graph", [np.ones((3, 3)), [[0.0]], np.float64(3.0)])
def test_a_matrix_of_other_rows_is_refused(graph):
    with pytest.raises(ValueError, match="SharedGraph"):
        graph_of_fit(Table(ROWS), graph, memory=None, needed=True, settings=SETTINGS)
