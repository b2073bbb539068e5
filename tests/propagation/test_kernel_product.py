import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_moons

from grbb_ext import Harmonic, Nonlocal, Poisson, Smooth, knn_graph
from grbb_ext.graph import normalized_laplacian


@pytest.fixture(scope="module")
def graph():
    X, _ = make_moons(150, noise=0.1, random_state=0)
    return knn_graph(X, n_neighbors=6)


@pytest.mark.parametrize("solver", ["direct", "cg", "chebyshev"])
def test_product_is_with_the_kernel_of_all_rows(graph, solver):
    labeled = np.arange(0, 150, 10)
    P = Smooth(solver=solver, tol=1e-12).on(graph, labeled)
    K = np.linalg.matrix_power(np.linalg.inv(normalized_laplacian(graph).toarray() + P.tau_ * np.eye(150)), 3)
    K /= K[labeled, labeled].mean()
    assert_allclose(P.kernel_block, K[np.ix_(labeled, labeled)], rtol=1e-7, atol=1e-8)
    Z = np.random.default_rng(0).normal(size=(150, 37))
    assert_allclose(P.kernel_product(Z), K @ Z, rtol=1e-7, atol=1e-7)


def test_rough_product_has_four_digits_and_single_precision(graph):
    P = Smooth(solver="chebyshev").on(graph, [0, 50, 100])
    Z = np.random.default_rng(0).normal(size=(150, 3)).astype(np.float32)
    exact, rough = P.kernel_product(Z.astype(np.float64)), P.kernel_product(Z, rough=True)
    assert rough.dtype == np.float32
    assert 0 < np.abs(rough - exact).max() < 1e-4 * np.abs(exact).max()


def test_affinity_is_the_one_of_the_operator(graph):
    for spec in (Harmonic(), Poisson(), Smooth()):
        P = spec.on(graph, [3, 7])
        assert P.affinity is P.W
    weighted = Nonlocal().on(graph, [3, 7]).affinity.toarray()
    plain = graph.toarray()
    assert_allclose(weighted[3], 75 * plain[3])
    touched = np.isin(np.arange(150), [3, 7])
    assert_allclose(weighted[np.ix_(~touched, ~touched)], plain[np.ix_(~touched, ~touched)])
