import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from grbb_ext import Harmonic, Nonlocal, Poisson, Smooth, knn_graph
from grbb_ext.graph import laplacian
from grbb_ext.propagation import PROPAGATIONS

KINDS = ["harmonic", "nonlocal", "smooth", "poisson"]
SOLVERS = ["direct", "cg"]


@st.composite
def problems(draw):
    """Return a random weighted graph, some of its components without a label, and labelled rows anywhere."""
    random = np.random.default_rng(draw(st.integers(0, 10**6)))
    n_rows = draw(st.integers(2, 40))
    W = np.triu(random.uniform(0.1, 2, size=(n_rows, n_rows)) * (random.random((n_rows, n_rows)) < 3 / n_rows), 1)
    n_labeled = draw(st.integers(1, max(1, n_rows // 3)))
    return W + W.T, random.permutation(n_rows)[:n_labeled], random


def dense_reference(kind, W, labeled):
    """Return [I; P] by the formulas, with dense inverses, on the rows that a label reaches."""
    n_rows, n = W.shape[0], labeled.size
    _, component = sp.csgraph.connected_components(sp.csr_array(W))
    reachable = np.isin(component, component[labeled])
    free = np.flatnonzero(reachable & ~np.isin(np.arange(n_rows), labeled))
    P_bar = np.zeros((n_rows, n))
    P_bar[labeled, np.arange(n)] = 1
    degree = W.sum(axis=1)
    if kind in ("harmonic", "nonlocal"):
        if kind == "nonlocal":
            touched = np.isin(np.arange(n_rows), labeled)
            W = W * np.where(touched[:, None] | touched[None, :], n_rows / n, 1.0)
        L = np.diag(W.sum(axis=1)) - W
        P_bar[free] = -np.linalg.solve(L[np.ix_(free, free)], L[np.ix_(free, labeled)])
    elif kind == "smooth":
        root = np.where(degree > 0, 1 / np.sqrt(np.where(degree > 0, degree, 1)), 0)
        L_n = np.eye(n_rows) - root[:, None] * W * root[None, :]
        K = np.linalg.matrix_power(np.linalg.inv(L_n + 0.05 * np.eye(n_rows)), 3)
        K /= K[labeled, labeled].mean()
        P_bar[free] = K[np.ix_(free, labeled)] @ np.linalg.inv(K[np.ix_(labeled, labeled)] + 0.1 * np.eye(n))
    else:
        pseudo = np.linalg.pinv(np.diag(degree) - W, rcond=1e-10)
        same = (component[:, None] == component[None, labeled]).astype(float)
        mean = same / np.maximum(same.sum(axis=1, keepdims=True), 1)
        centering = np.eye(n) - mean[labeled]
        u = pseudo[:, labeled] @ centering
        for c in np.unique(component[labeled]):
            rows = component == c
            if degree[rows].sum() > 0:
                u[rows] -= degree[rows] @ u[rows] / degree[rows].sum()
        diagonal = np.diag(centering.T @ pseudo[np.ix_(labeled, labeled)] @ centering)
        scale = 1 / diagonal.mean() if diagonal.mean() > 1e-14 else 1
        P_bar[free] = mean[free] + scale * u[free]
    return P_bar, reachable


def settings_of(kind, solver):
    return {"solver": solver, "tol": 1e-10} | ({"tau": 0.05} if kind == "smooth" else {})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", SOLVERS)
@settings(max_examples=40)
@given(problem=problems())
def test_operators_equal_their_dense_formulas(kind, solver, problem):
    W, labeled, random = problem
    P_bar, reachable = dense_reference(kind, W, labeled)
    operator = PROPAGATIONS[kind].replace(**settings_of(kind, solver)).on(W, labeled)
    values = random.normal(size=(labeled.size, 2))
    assert_allclose(operator.extend(values), P_bar @ values, atol=2e-6)
    assert_allclose(operator.extend(values[:, 0]), P_bar @ values[:, 0], atol=2e-6)
    assert_allclose(operator.dense(), P_bar, atol=2e-6)
    assert_array_equal(operator.reachable, reachable)
    assert_array_equal(operator.extend(values)[~reachable], 0)
    assert_array_equal(operator.extend(values)[labeled], values)


def test_smooth_chebyshev_equals_direct():
    W = knn_graph(np.random.default_rng(0).normal(size=(200, 3)), 6)
    labeled = np.arange(0, 200, 17)
    values = np.random.default_rng(1).normal(size=(labeled.size, 2))
    for tau, power in [(0.05, 3), (0.01, 2), (0.3, 1)]:
        direct = Smooth(tau=tau, power=power, solver="direct").on(W, labeled).extend(values)
        for solver in ("chebyshev", "cg"):
            other = Smooth(tau=tau, power=power, solver=solver, tol=1e-10).on(W, labeled).extend(values)
            assert_allclose(other, direct, atol=1e-7)


@pytest.mark.parametrize("kind", ["harmonic", "nonlocal"])
@settings(max_examples=40)
@given(problem=problems())
def test_harmonic_operators_average(kind, problem):
    W, labeled, random = problem
    operator = PROPAGATIONS[kind].replace(solver="direct").on(W, labeled)
    P_bar = operator.dense()
    assert P_bar.min() >= 0
    assert_allclose(P_bar.sum(axis=1)[operator.reachable], 1, atol=1e-6)
    values = random.normal(size=labeled.size)
    extended = operator.extend(values)[operator.reachable]
    assert extended.min() >= values.min() - 1e-9  # the maximum principle
    assert extended.max() <= values.max() + 1e-9


@pytest.mark.parametrize(("solver", "bound"), [("direct", 1e-8), ("cg", 1e-6)])
@settings(max_examples=30)
@given(problem=problems())
def test_the_harmonic_extension_has_no_residual(solver, bound, problem):
    W, labeled, random = problem
    operator = Harmonic(solver=solver, tol=1e-8).on(W, labeled)
    f = operator.extend(random.normal(size=labeled.size))
    residual = laplacian(sp.csr_array(W)) @ f
    assert np.abs(residual[operator.free]).max(initial=0) < bound


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25)
@given(problem=problems(), scale=st.floats(-3, 3))
def test_operators_are_linear_and_follow_a_permutation(kind, problem, scale):
    W, labeled, random = problem
    operator = PROPAGATIONS[kind].on(W, labeled)
    a, b = random.normal(size=(2, labeled.size))
    assert_allclose(operator.extend(scale * a + b), scale * operator.extend(a) + operator.extend(b), atol=1e-7)
    p = random.permutation(W.shape[0])
    where = np.argsort(p)
    permuted = PROPAGATIONS[kind].on(W[np.ix_(p, p)], where[labeled])
    assert_allclose(permuted.extend(a), operator.extend(a)[p], atol=1e-7)


def test_a_path_by_hand():
    path = np.diag(np.ones(4), 1) + np.diag(np.ones(4), -1)
    assert_allclose(Harmonic().on(path, [0, 4]).extend([0.0, 4.0]), [0, 1, 2, 3, 4])
    # Edges at the ends weigh 5/2: conductances 2.5, 1, 1, 2.5, so potentials drop by .4, 1, 1, .4 of 2.8.
    drops = np.array([0, 0.4, 1.4, 2.4, 2.8]) / 2.8
    assert_allclose(Nonlocal().on(path, [0, 4]).extend([0.0, 1.0]), drops)
    # A unit source and sink: u falls by 1 per edge, is odd about the middle, and (L+)_ll centred has diagonal 1.
    assert_allclose(Poisson().on(path, [0, 4]).extend([-1.0, 1.0]), [-1, -1, 0, 1, 1])


def test_reach_decides_the_length_scale():
    # Labels at the ends of a long path are out of reach of its middle unless tau shrinks.
    path = sp.diags_array([np.ones(199), np.ones(199)], offsets=[1, -1])
    few = Smooth().on(path, [0, 199])
    many = Smooth().on(path, np.arange(0, 200, 5))
    assert few.tau_ < many.tau_ == 0.05
    assert np.median(few.extend([1.0, 1.0])) >= 0.5
    assert Smooth(tau=0.2).on(path, [0, 199]).tau_ == 0.2


def test_threads_and_blocks_do_not_change_the_operator():
    W = knn_graph(np.random.default_rng(0).normal(size=(400, 3)), 6)
    labeled = np.arange(0, 400, 5)  # 80 columns: three blocks
    for kind in KINDS:
        one = PROPAGATIONS[kind].replace(solver="cg").on(W, labeled, n_jobs=1).dense()
        two = PROPAGATIONS[kind].replace(solver="cg").on(W, labeled, n_jobs=2).dense()
        assert_array_equal(one, two)


@pytest.mark.parametrize("kind", KINDS)
def test_operators_pickle_after_use(kind):
    W = knn_graph(np.random.default_rng(0).normal(size=(50, 3)), 6)
    operator = PROPAGATIONS[kind].on(W, [0, 7])
    expected = operator.extend([1.0, 2.0])
    assert_allclose(pickle.loads(pickle.dumps(operator)).extend([1.0, 2.0]), expected)


def test_the_same_operator_on_another_graph():
    W = knn_graph(np.random.default_rng(0).normal(size=(50, 3)), 6)
    operator = Smooth(tau=0.2, noise=0.5).on(W, [0, 7])
    again = operator.spec.on(W, [1, 2])
    assert_allclose(again.extend([1.0, 2.0]), Smooth(tau=0.2, noise=0.5).on(W, [1, 2]).extend([1.0, 2.0]))


def test_a_dense_operator_over_the_limit_is_refused():
    W = knn_graph(np.random.default_rng(0).normal(size=(50, 3)), 6)
    with pytest.raises(MemoryError, match=r"memory_limit=100 bytes.*rule='targets'"):
        Harmonic(memory_limit=100).on(W, [0, 1]).dense()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labeled": []}, "at least one labelled row"),
        ({"labeled": [0, 5]}, r"must lie in 0\.\.2"),
        ({"labeled": [0, 0]}, "names a row twice"),
        ({"labeled": [0.5]}, "row numbers"),
        ({"solver": "gmres"}, "solver must be one of"),
        ({"solver": "chebyshev"}, "solver must be one of"),
        ({"tol": 0.0}, "tol must lie between"),
        ({"memory_limit": "4GB"}, "memory_limit is a number of bytes, such as 4e9"),
        ({"kind": "smooth", "tau": -1}, "tau must be a positive number"),
        ({"kind": "smooth", "tau": "small"}, "tau must be a positive number or 'auto'"),
        ({"kind": "smooth", "power": 0}, "power must be a positive integer"),
        ({"kind": "smooth", "noise": np.nan}, "noise must be a positive number"),
    ],
)
def test_wrong_arguments(arguments, message):
    graph = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    spec = PROPAGATIONS[arguments.pop("kind", "harmonic")]
    labeled = arguments.pop("labeled", [0])
    with pytest.raises(ValueError, match=message):
        spec.replace(**arguments).on(graph, labeled)


def test_wrong_values():
    operator = Harmonic().on([[0, 1], [1, 0]], [0])
    with pytest.raises(ValueError, match="one row per labelled row"):
        operator.extend([1.0, 2.0])
    with pytest.raises(ValueError, match="must be finite"):
        operator.extend([np.nan])
