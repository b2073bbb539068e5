import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from grbb_ext.graph import check_graph

TRIANGLE = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0]])


@pytest.mark.parametrize(
    "kind", [np.asarray, sp.csr_matrix, sp.csc_array, sp.coo_matrix, sp.lil_matrix, np.ndarray.tolist]
)
def test_every_matrix_type_is_accepted(kind):
    W = check_graph(kind(TRIANGLE), 3)
    assert isinstance(W, sp.csr_array)
    assert_array_equal(W.toarray(), TRIANGLE)


def test_the_users_matrix_is_not_changed():
    given = sp.csr_array(TRIANGLE + np.eye(3))
    W = check_graph(given)
    assert_array_equal(W.diagonal(), 0)
    assert_array_equal(given.diagonal(), 1)


def test_integers_and_booleans_become_floats():
    assert check_graph(TRIANGLE.astype(int)).dtype == np.float64
    assert check_graph(sp.csr_array(TRIANGLE > 0)).dtype == np.float64


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (TRIANGLE[:2], r"square.*\(2, 3\)"),
        (np.triu(TRIANGLE), r"not symmetric.*W\.maximum\(W\.T\)"),
        (-TRIANGLE, "negative weight"),
        (np.where(TRIANGLE > 1, np.nan, TRIANGLE), "NaN or infinite"),
        ("graph", "two-dimensional matrix of numbers"),
        ([[0.0, "x"], ["x", 0.0]], "two-dimensional matrix of numbers"),
    ],
)
def test_wrong_graphs(graph, message):
    with pytest.raises(ValueError, match=message):
        check_graph(graph)


def test_wrong_number_of_rows():
    with pytest.raises(ValueError, match="graph has 3 rows but y has 4"):
        check_graph(TRIANGLE, 4)
