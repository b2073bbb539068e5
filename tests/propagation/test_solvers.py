import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from grbb_ext import Harmonic, Smooth, knn_graph
from grbb_ext.graph import laplacian, normalized_laplacian
from grbb_ext.propagation import PROPAGATIONS, SolverError
from grbb_ext.propagation._solvers import ChebyshevPower, ConjugateGradientSolver, DirectSolver


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 40), columns=st.integers(1, 4))
def test_both_solvers_leave_no_residual(seed, n, columns):
    random = np.random.default_rng(seed)
    M = random.normal(size=(n, n))
    A = sp.csr_array(M @ M.T / n + np.eye(n))
    B = random.normal(size=(n, columns))
    assert_allclose(A @ DirectSolver(A)(B), B, atol=1e-9)
    assert (
        np.linalg.norm(A @ ConjugateGradientSolver(A, 1e-9)(B) - B, axis=0).max()
        <= 2e-9 * np.linalg.norm(B, axis=0).max()
    )


def test_columns_of_very_different_size_are_each_solved():
    A = laplacian(knn_graph(np.random.default_rng(0).normal(size=(60, 2)), 5)) + 0.01 * sp.eye_array(60)
    B = np.random.default_rng(1).normal(size=(60, 3)) * [1e-12, 0.0, 1e9]
    X = ConjugateGradientSolver(sp.csr_array(A), 1e-10)(B)
    residual = np.linalg.norm(A @ X - B, axis=0)
    assert (residual <= 1e-9 * np.linalg.norm(B, axis=0)).all()
    assert (X[:, 1] == 0).all()


def test_a_singular_system_with_a_consistent_right_side():
    L = laplacian(knn_graph(np.random.default_rng(0).normal(size=(60, 2)), 8))
    b = np.zeros((60, 1))
    b[[3, 40], 0] = [1.0, -1.0]
    assert_allclose(L @ ConjugateGradientSolver(L, 1e-10)(b), b, atol=1e-8)


def test_giving_up_says_what_to_do():
    L = laplacian(knn_graph(np.random.default_rng(0).normal(size=(200, 1)), 2)) + 1e-9 * sp.eye_array(200)
    with pytest.raises(SolverError, match=r"stopped after 3 iterations.*use propagation='smooth'"):
        ConjugateGradientSolver(sp.csr_array(L), 1e-12, max_iter=3)(np.ones((200, 1)) * np.arange(200)[:, None])


@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-10])
@pytest.mark.parametrize(("shift", "power"), [(0.05, 3), (0.5, 1), (0.002, 2), (3.0, 4)])
def test_chebyshev_keeps_its_tolerance(tol, shift, power):
    L_n = normalized_laplacian(knn_graph(np.random.default_rng(0).normal(size=(80, 3)), 5))
    exact = np.linalg.matrix_power(np.linalg.inv(L_n.toarray() + shift * np.eye(80)), power)
    error = np.linalg.norm(ChebyshevPower(L_n, np.arange(80), shift, power, tol)(np.eye(80)) - exact, ord=2)
    assert error <= tol * shift**-power


@pytest.mark.parametrize("tol", [1e-3, 1e-8, 1e-14])
@pytest.mark.parametrize(("shift", "power"), [(1e-4, 3), (3e-6, 3), (1e-3, 8), (0.05, 30)])
def test_chebyshev_sees_the_peak_at_small_shifts(tol, shift, power):
    # With tau = 1e-4 nine nodes lie beside the peak at 0, and all values there are smaller than tol times the largest.
    spectrum = np.concatenate([[0.0], np.geomspace(1e-7, 2.0, 49)])
    found = ChebyshevPower(sp.csr_array(np.diag(spectrum)), np.arange(50), shift, power, tol)(np.eye(50))
    assert_allclose(found * shift**power, np.diag((spectrum / shift + 1) ** -power), atol=max(tol, 2e-11))


def test_chebyshev_takes_no_more_products_than_its_limit():
    with pytest.raises(SolverError, match=r"degree [\d,]+; at most 32,768 is computed. Pass a larger tau"):
        ChebyshevPower(sp.csr_array(np.eye(2)), np.arange(2), 1e-9, 3, 1e-8)


@pytest.mark.parametrize("tol", [1e-3, 1e-8])
def test_a_long_path_is_solved_as_directly(tol):
    # Two labels reach the middle of 3,200 rows with the smallest tau only.
    ones = np.ones(3_199)
    path = sp.csr_array(sp.diags_array([ones, ones], offsets=[1, -1]))
    found, exact = (Smooth(solver=solver, tol=tol).on(path, [0, 3_199]) for solver in ("auto", "direct"))
    assert_allclose(found.extend([-1.0, 1.0]), exact.extend([-1.0, 1.0]), atol=2e-3)
    assert found.tau_ == exact.tau_


@pytest.mark.parametrize("solver", ["direct", "cg", "chebyshev"])
@pytest.mark.parametrize(("tau", "power"), [(1e-6, 60), (1e-6, 100)])
def test_a_kernel_beyond_double_precision_is_refused(solver, tau, power):
    path = sp.csr_array(sp.diags_array([np.ones(19), np.ones(19)], offsets=[1, -1]))
    with np.errstate(all="ignore"), pytest.raises(SolverError, match="Pass a larger tau"):
        Smooth(tau=tau, power=power, solver=solver).on(path, [0, 19]).extend([-1.0, 1.0])


def test_a_kernel_product_in_single_precision_does_not_overflow():
    path = sp.csr_array(sp.diags_array([np.ones(19), np.ones(19)], offsets=[1, -1]))
    operator = Smooth(tau=0.005, power=30).on(path, [0, 19])  # tau^-30 is 1e69
    product = operator.kernel_product(np.eye(20, dtype=np.float32), rough=True)
    assert_allclose(product, operator.kernel_product(np.eye(20)), rtol=1e-6)


def test_a_small_residual_with_a_large_error_is_improved():
    # Two clouds on one weak edge, labels in the first: the second is right only once the error is small, too.
    random = np.random.default_rng(0)
    W = sp.lil_array(sp.block_diag([knn_graph(random.normal(size=(300, 2)), 5) for _ in range(2)]))
    W[299, 300] = W[300, 299] = 1e-7
    rough = Harmonic(solver="cg", tol=1e-6).on(W, [0, 5])
    solve, W_ul = rough._blocks
    right = np.asarray(W_ul @ np.ones((2, 1)))
    once = solve(right)
    assert np.abs(once - 1).max() > 1e-3  # what is allowed: a thousand times tol
    assert np.abs(solve.improved(once, right) - 1).max() < 1e-2 * np.abs(once - 1).max()
    exact = Harmonic(solver="direct").on(W, [0, 5])
    assert_allclose(rough.extend([0.0, 1.0]), exact.extend([0.0, 1.0]), atol=1e-3)
    assert_allclose(rough.dense(), exact.dense(), atol=1e-3)


def test_a_graph_beyond_the_tolerance_is_noticed():
    # Weights over sixteen orders of magnitude: the residual is small long before the solution is right.
    n = 400
    weights = 10.0 ** np.random.default_rng(0).uniform(-8, 8, size=n - 1)
    path = sp.csr_array(sp.diags_array([weights, weights], offsets=[1, -1]))
    with pytest.raises(SolverError, match=r"sum to 1 only within|stopped after"):
        Harmonic(solver="cg", tol=1e-4).operator(path, np.array([0, n - 1])).extend([0.0, 1.0])


@pytest.mark.parametrize(
    ("kind", "weights", "message"),
    [
        ("harmonic", [1.0, 1e-320, 1.0], "exactly singular"),
        ("nonlocal", [1.0, 1e-320, 1.0], "exactly singular"),
        ("poisson", [1.0, 1e-320, 1.0], "exactly singular"),
        ("harmonic", [1e-310, 1e-310, 1e-310], "sum to 1 only within nan"),
        ("poisson", [1e308, 1e308, 1e308], "not finite"),
    ],
)
def test_what_a_direct_solve_cannot_do_is_refused_with_advice_that_helps(kind, weights, message):
    # `operator` takes a graph as it is; `on` and the objective scale such weights and drop such edges before.
    path = sp.csr_array(sp.diags_array([weights, weights], offsets=[1, -1]))
    operator = PROPAGATIONS[kind].replace(solver="direct").operator(path, np.array([0, 1]))
    with np.errstate(all="ignore"), pytest.raises(SolverError, match=f"{message}.*drop such edges") as refusal:
        operator.extend([0.0, 1.0])
    assert "solver='direct'" not in str(refusal.value)


def test_rows_of_p_that_are_not_numbers_are_refused():
    path = sp.csr_array(sp.diags_array([[1e-310] * 3, [1e-310] * 3], offsets=[1, -1]))
    operator = Harmonic(solver="direct").operator(path, np.array([0, 1]))
    with np.errstate(all="ignore"), pytest.raises(SolverError, match="sum to 1 only within nan"):
        operator.dense()
