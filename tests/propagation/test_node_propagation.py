import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_moons

from grbb_ext import Smooth, knn_graph
from grbb_ext.propagation import NodePropagation, SmoothPropagation


@pytest.fixture(scope="module")
def on_nodes():
    X, _ = make_moons(120, noise=0.1, random_state=0)
    return Smooth().on(knn_graph(X, n_neighbors=6), np.arange(0, 120, 15))


def weights(n_rows, nodes, seed=0):
    """Unit vectors for nodes, random means of three nodes for the others."""
    random = np.random.default_rng(seed)
    Z = np.zeros((n_rows, nodes.size))
    for row in range(n_rows):
        Z[row, random.choice(nodes.size, 3, replace=False)] = random.dirichlet(np.ones(3))
    Z[nodes] = np.eye(nodes.size)
    return sp.csr_array(Z)


def test_it_is_the_product_of_its_factors(on_nodes):
    nodes = np.sort(np.random.default_rng(1).choice(300, 120, replace=False))
    Z = weights(300, nodes)
    P = NodePropagation(on_nodes, Z, nodes)
    assert_array_equal(P.labeled, nodes[on_nodes.labeled])
    values = np.random.default_rng(2).normal(size=(8, 2))
    assert_allclose(P.extend(values), Z @ on_nodes.extend(values), atol=1e-12)
    assert_allclose(P.extend(values)[nodes], on_nodes.extend(values), atol=1e-12)
    assert_allclose(P.dense(), Z @ on_nodes.dense(), atol=1e-6)
    assert_allclose(P.leave_one_out(values), on_nodes.leave_one_out(values))


def test_the_kernel_of_all_rows_is_symmetric_and_agrees_on_labelled_rows(on_nodes):
    nodes = np.arange(0, 240, 2)
    Z = weights(240, nodes)
    P = NodePropagation(on_nodes, Z, nodes)
    K = P.kernel_product(np.eye(240))
    assert_allclose(K, Z @ on_nodes.kernel_product(np.eye(120)) @ Z.T, atol=1e-10)
    assert_allclose(K, K.T, atol=1e-9)
    assert np.linalg.eigvalsh(K).min() > -1e-8
    assert_allclose(K[np.ix_(P.labeled, P.labeled)], P.kernel_block, atol=1e-8)


def test_all_rows_as_nodes_is_the_smooth_operator(on_nodes):
    P = NodePropagation(on_nodes, sp.csr_array(sp.eye_array(120)), np.arange(120))
    assert_allclose(P.extend(np.ones(8)), on_nodes.extend(np.ones(8)), atol=1e-14)
    assert_array_equal(P.W.toarray(), on_nodes.W.toarray())


def test_rows_that_hang_on_unreached_nodes_alone_are_out_of_reach():
    two_pairs = sp.csr_array(np.kron(np.eye(2), [[0.0, 1.0], [1.0, 0.0]]))
    Z = sp.csr_array(np.vstack([np.eye(4), [[0, 0.5, 0.5, 0], [0, 0, 0.5, 0.5]]]))
    P = NodePropagation(Smooth().on(two_pairs, [0]), Z, np.arange(4))
    assert P.reachable.tolist() == [True, True, False, False, True, False]
    extended = P.extend([1.0])
    # The fifth row takes the value of its reachable node alone.
    assert extended[4] == pytest.approx(extended[1])
    assert extended[[2, 3, 5]].tolist() == [0.0, 0.0, 0.0]


def test_it_pickles_and_is_built_anew_on_a_whole_graph(on_nodes):
    nodes = np.arange(0, 240, 2)
    P = NodePropagation(on_nodes, weights(240, nodes), nodes)
    again = pickle.loads(pickle.dumps(P))
    assert_allclose(again.extend(np.ones(8)), P.extend(np.ones(8)))
    other = P.spec.on(on_nodes.W, on_nodes.labeled)
    assert type(other) is SmoothPropagation
    assert other.spec == on_nodes.spec


def test_the_block_in_single_precision_moves_extended_values_by_less_than_stated():
    X, truth = make_moons(4000, noise=0.2, random_state=0)
    W, labeled = knn_graph(X), np.arange(0, 4000, 40)
    exact = Smooth(solver="chebyshev", tol=1e-10).on(W, labeled)
    quick = Smooth().on(W, labeled)
    values = 2.0 * truth[labeled] - 1
    assert_allclose(quick.extend(values), exact.extend(values), rtol=0, atol=2e-4)
    assert_allclose(quick.leave_one_out(values), exact.leave_one_out(values), rtol=0, atol=2e-4)
    assert np.abs(quick.kernel_block - exact.kernel_block).max() > 0
