from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from grbb_ext.table import Schema, Table, graph_columns


def test_numbers_are_left_to_the_graph_except_for_holes():
    matrix, scale = graph_columns(Table(np.array([[1.0, 5.0], [np.nan, 6.0], [3.0, 9.0]])), "auto")
    np.testing.assert_array_equal(matrix, [[1, 5], [2, 6], [3, 9]])
    assert scale == "auto"


def test_categories_are_at_squared_distance_two_and_missing_ones_at_one():
    rows = np.array([[0.0], [1.0], [7.0], [np.nan], [0.0]])
    matrix, scale = graph_columns(Table(rows, Schema((0,))))
    squared = ((matrix[:, None] - matrix[None]) ** 2).sum(axis=2)
    expected = [[0, 2, 2, 1, 0], [2, 0, 2, 1, 2], [2, 2, 0, 1, 2], [1, 1, 1, 0, 1], [0, 2, 2, 1, 0]]
    np.testing.assert_array_equal(squared, expected)
    assert scale is None


def test_numbers_beside_categories_are_scaled():
    rows = np.column_stack([np.arange(10.0) * 1000, np.arange(10) % 2])
    matrix, _ = graph_columns(Table(rows, Schema((1,))))
    assert matrix[:, 0].std() == pytest.approx(1)
    unscaled, _ = graph_columns(Table(rows, Schema((1,))), None)
    np.testing.assert_array_equal(unscaled[:, 0], rows[:, 0])


def test_many_categories_make_a_sparse_matrix():
    rows = np.column_stack([np.zeros(300), np.arange(300.0)])
    matrix, _ = graph_columns(Table(rows, Schema((1,))))
    assert sp.issparse(matrix)
    assert matrix.shape == (300, 301)
    np.testing.assert_array_equal(matrix.toarray()[:, 1:], np.eye(300))


def test_holes_of_a_sparse_matrix_are_zeros_and_categories_refused():
    S = sp.csr_array([[0.0, np.nan], [1.0, 2.0]])
    np.testing.assert_array_equal(graph_columns(Table(S))[0].toarray(), [[0, 0], [1, 2]])
    with pytest.raises(ValueError, match="sparse"):
        graph_columns(Table(S, Schema((0,))))
