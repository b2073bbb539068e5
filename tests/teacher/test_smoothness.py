"""How smooth a function is on a graph."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from grbb_ext import knn_graph
from grbb_ext.teacher import smoothness

TRIANGLE_AND_ROW = sp.csr_array(np.array([[0, 1, 1, 0], [1, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 0]], dtype=float))


def test_by_hand_on_a_path():
    W = sp.csr_array(np.diag([1.0, 1.0, 1.0], 1) + np.diag([1.0, 1.0, 1.0], -1))
    v = np.array([0.0, 0.0, 1.0, 1.0])
    means = np.array([0.0, 0.5, 0.5, 1.0])
    assert smoothness(W, v) == pytest.approx(np.corrcoef(means, v)[0, 1] ** 2)


def test_rows_without_neighbors_do_not_count():
    W, v = TRIANGLE_AND_ROW, np.array([0.0, 1.0, 2.0, 50.0])
    assert smoothness(W, v) == smoothness(sp.csr_array(W[:3, :3]), v[:3])


def test_unlike_neighbors_are_not_smooth():
    # In a triangle the mean of the others falls where the own value rises.
    assert smoothness(TRIANGLE_AND_ROW, np.array([0.0, 1.0, 2.0, 0.0])) == 0.0


def test_a_constant_is_not_called_smooth():
    assert smoothness(TRIANGLE_AND_ROW, np.ones(4)) == 0.0


def test_columns_are_taken_together():
    X = np.linspace(0, 1, 40)[:, None]
    W, v = knn_graph(X, 4), np.sin(6 * X[:, 0])
    assert smoothness(W, np.column_stack([1 - v, v])) == pytest.approx(smoothness(W, v))
    noise = np.random.default_rng(0).normal(size=40)
    assert smoothness(W, noise) < smoothness(W, np.column_stack([v, noise])) < smoothness(W, v)


@given(shift=st.floats(-10, 10), scale=st.floats(0.1, 10))
def test_it_does_not_depend_on_the_unit(shift, scale):
    X = np.random.default_rng(1).normal(size=(50, 2))
    W = knn_graph(X, 5)
    assert smoothness(W, shift + scale * X[:, 0]) == pytest.approx(smoothness(W, X[:, 0]))
    assert 0.5 < smoothness(W, X[:, 0]) <= 1
