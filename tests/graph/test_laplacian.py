import numpy as np
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from grbb_ext.graph import knn_graph, laplacian, normalized_laplacian, reachable_rows


def test_the_laplacian_is_the_sum_of_squared_differences():
    random = np.random.default_rng(0)
    W = knn_graph(random.normal(size=(30, 3)), 4)
    H = random.normal(size=30)
    edges = W.tocoo()
    penalty = 0.5 * (edges.data * (H[edges.row] - H[edges.col]) ** 2).sum()
    assert_allclose(H @ (laplacian(W) @ H), penalty)
    assert_allclose(laplacian(W) @ np.ones(30), 0, atol=1e-12)


def test_the_normalized_laplacian_has_eigenvalues_between_0_and_2():
    W = knn_graph(np.random.default_rng(0).normal(size=(30, 3)), 4)
    eigenvalues = np.linalg.eigvalsh(normalized_laplacian(W).toarray())
    assert eigenvalues.min() > -1e-12
    assert eigenvalues.max() < 2 + 1e-12


def test_an_isolated_row_has_the_identity_as_its_normalized_laplacian():
    W = sp.csr_array(np.diag([1.0, 0.0], 1) + np.diag([1.0, 0.0], -1))
    assert_array_equal(normalized_laplacian(W).toarray()[2], [0, 0, 1])


def test_reachable_rows_of_two_components():
    W = sp.block_diag([np.ones((2, 2)) - np.eye(2), np.ones((3, 3)) - np.eye(3)], format="csr")
    reachable, component = reachable_rows(sp.csr_array(W), np.array([3]))
    assert_array_equal(reachable, [False, False, True, True, True])
    assert component[0] == component[1] != component[2]
