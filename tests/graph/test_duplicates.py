import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from grbb_ext import knn_graph
from grbb_ext.graph._knn import distinct_rows, spread_edges


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 80), d=st.integers(1, 4), dtype=st.sampled_from(["f4", "f8"]))
def test_distinct_rows_are_numpys(seed, n, d, dtype):
    # Small round numbers: the hash must tell apart values that differ in a few high bits only.
    X = np.random.default_rng(seed).integers(-2, 3, size=(n, d)).astype(dtype) * 0.5
    first, inverse = distinct_rows(X)
    assert first.size == np.unique(X, axis=0).shape[0]
    assert_array_equal(X[first[inverse]], X)
    assert_array_equal(np.sort(first), first)
    sparse_first, sparse_inverse = distinct_rows(sp.csr_array(X))
    assert_array_equal(sparse_first, first)
    assert_array_equal(sparse_inverse, inverse)


def test_a_grid_of_round_numbers_has_no_collision():
    X = np.stack(np.meshgrid(*[2.0 ** np.arange(-20, 20, 2)] * 3), axis=-1).reshape(-1, 3)
    assert distinct_rows(X)[0].size == X.shape[0]


@pytest.mark.parametrize("n_distinct", [1, 2])
def test_equal_rows_do_not_tell_where_they_stand(n_distinct):
    # Of rows that are sorted by class, neighbours in the table are of one class whatever their columns say.
    half = np.arange(400) >= 200
    edges = knn_graph((np.arange(400.0) % n_distinct)[:, None], 9, verbose=False).tocoo()
    assert abs(np.mean(half[edges.row] == half[edges.col]) - 0.5) < 0.1


def test_every_copy_keeps_the_neighbours_of_its_row():
    inverse = np.array([0, 1, 1, 1, 2, 2])
    edges = (np.array([0, 1]), np.array([1, 2]), np.array([1.0, 2.0]))
    source, target, distance = spread_edges(edges, inverse, n_neighbors=2)
    between = distance > 0
    of_row = set(zip(inverse[source[between]].tolist(), inverse[target[between]].tolist(), strict=True))
    assert of_row == {(0, 1), (1, 2)}
    assert set(source[between]) == {0, 1, 2, 3}
    assert set(target[between]) == {1, 2, 3, 4, 5}
    assert_array_equal(distance[~between], 0)
    assert (inverse[source[~between]] == inverse[target[~between]]).all()
    assert (source != target).all()
