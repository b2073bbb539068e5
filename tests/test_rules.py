import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from grbb_ext import (
    Committee,
    Corrected,
    Harmonic,
    Labeled,
    Nonlocal,
    grbb_objective,
    knn_graph,
)
from grbb_ext.graph import laplacian
from grbb_ext.losses import LogisticLoss, SoftmaxLoss, SquaredErrorLoss
from grbb_ext.rules import DenseOperator

LOSSES = {"logistic": LogisticLoss(), "softmax": SoftmaxLoss(), "squared_error": SquaredErrorLoss()}


@st.composite
def problems(draw):
    """Return a connected graph, y with labels in random positions, targets of the labelled rows, and raw scores."""
    random = np.random.default_rng(draw(st.integers(0, 10**6)))
    n_rows, n = draw(st.integers(8, 30)), draw(st.integers(3, 6))
    loss = draw(st.sampled_from(sorted(LOSSES)))
    W = np.triu(random.uniform(0.1, 2, size=(n_rows, n_rows)), 1)
    labeled = np.sort(random.permutation(n_rows)[:n])
    n_classes = {"logistic": 2, "softmax": 3, "squared_error": 0}[loss]
    if loss == "squared_error":
        y = np.full(n_rows, np.nan)
        y[labeled] = targets = random.normal(size=n)
    else:
        y = np.full(n_rows, -1)
        y[labeled] = codes = np.arange(n) % n_classes
        targets = np.eye(3)[codes] if n_classes == 3 else codes.astype(float)
    H = random.normal(size=(n_rows, 3) if n_classes == 3 else n_rows)
    return sp.csr_array(W + W.T), y, labeled, targets, loss, H, random


def penalised_loss(loss, W, labeled, targets, lam, H):
    """Return eq. 2: loss of the labelled rows + lam / 2 H^T L H."""
    return LOSSES[loss].value(H[labeled], targets).sum() + 0.5 * lam * np.sum(H * (laplacian(W) @ H))


@settings(max_examples=40)
@given(problem=problems(), lam=st.floats(0.01, 3))
def test_lapgbrt_is_the_gradient_of_the_penalised_loss(problem, lam):
    W, y, labeled, targets, loss, H, random = problem
    obj = grbb_objective(None, y, graph=W, rule="laplacian", lam=lam, loss=loss)
    gradient, hessian = obj(H)
    assert_array_equal(hessian, 1)
    direction = random.normal(size=H.shape)
    step = 1e-5
    difference = (
        penalised_loss(loss, W, labeled, targets, lam, H + step * direction)
        - penalised_loss(loss, W, labeled, targets, lam, H - step * direction)
    ) / (2 * step)
    assert_allclose(np.sum(gradient * direction), difference, rtol=1e-6, atol=1e-6)


@settings(max_examples=40)
@given(problem=problems(), lam=st.floats(0, 3))
def test_labelled_rows_follow_eq_5_under_every_rule(problem, lam):
    W, y, labeled, targets, loss, H, _ = problem
    expected = LOSSES[loss].derivatives(H[labeled], targets)[0] + lam * (laplacian(W) @ H)[labeled]
    for rule in ("paper", "corrected", "targets", "labeled"):
        obj = grbb_objective(None, y, graph=W, rule=rule, lam=lam, loss=loss)
        assert_allclose(obj(H)[0][labeled], expected, rtol=1e-5, atol=1e-5, err_msg=rule)


@settings(max_examples=40)
@given(problem=problems(), lam=st.floats(0, 3))
def test_the_papers_rule_is_eq_6(problem, lam):
    W, y, labeled, targets, loss, H, _ = problem
    gradient, hessian = grbb_objective(None, y, graph=W, preset="paper", lam=lam, loss=loss)(H)
    L = laplacian(W).toarray()
    free = np.setdiff1d(np.arange(len(y)), labeled)
    g_l = LOSSES[loss].derivatives(H[labeled], targets)[0] + lam * (L @ H)[labeled]
    g_u = -np.linalg.inv(L[np.ix_(free, free)]) @ L[np.ix_(free, labeled)] @ g_l
    # P is kept in single precision: large gradients of the labelled rows may cancel.
    atol = 1e-6 + np.finfo(np.float32).eps * np.abs(g_l).sum()
    assert_allclose(gradient[free], g_u, rtol=1e-5, atol=atol)
    assert_array_equal(hessian, 1)


@settings(max_examples=40)
@given(problem=problems(), rho=st.floats(0, 2), newton=st.booleans())
def test_the_corrected_rule_adds_the_distance_from_the_extension(problem, rho, newton):
    W, y, labeled, targets, loss, H, _ = problem
    rule = Corrected(correction=rho, hessian="newton" if newton else "unit")
    obj = grbb_objective(None, y, graph=W, rule=rule, loss=loss)
    gradient, hessian = obj(H)
    P = Nonlocal().on(W, labeled)
    g_l, h_l = LOSSES[loss].derivatives(H[labeled], targets)
    h = P.extend(h_l) if newton else np.ones_like(H)
    assert_allclose(hessian, h, rtol=1e-5, atol=1e-6)
    assert_allclose(gradient, P.extend(g_l) + rho * h * (H - P.extend(H[labeled])), rtol=1e-5, atol=2e-5)


@settings(max_examples=30)
@given(problem=problems())
def test_the_corrected_rule_in_probability_space_is_the_rule_of_targets(problem):
    W, y, labeled, targets, loss, H, _ = problem
    obj = grbb_objective(None, y, graph=W, propagation="harmonic", teacher=Committee(sharpen=1), loss=loss)
    P = Harmonic().on(W, labeled)
    g_l = LOSSES[loss].derivatives(H[labeled], targets)[0]
    mean = LOSSES[loss].mean(H)
    assert_allclose(obj(H)[0], P.extend(g_l) + mean - P.extend(mean[labeled]), atol=1e-6)


@pytest.mark.parametrize("hessian", ["newton", "unit"])
def test_the_labelled_rule_ignores_the_unlabelled_rows(hessian):
    y = np.array([-1, 0, -1, 1])
    gradient, h = grbb_objective(None, y, rule=Labeled(hessian=hessian))(np.zeros(4))
    assert_array_equal(gradient, [0, 0.5, 0, -0.5])
    assert_array_equal(h, [0, 0.25, 0, 0.25] if hessian == "newton" else [0, 1, 0, 1])


@pytest.mark.parametrize("rule", ["paper", "corrected", "targets", "laplacian"])
@pytest.mark.parametrize("propagation", ["harmonic", "nonlocal", "smooth", "poisson"])
def test_rows_that_no_label_reaches_have_gradient_exactly_0(rule, propagation):
    settings = {"teacher": Committee(sharpen=2)} if rule == "targets" else {}
    if rule == "corrected" and propagation in ("smooth", "poisson"):
        rule = Corrected(hessian="unit")
    graph = sp.block_diag([knn_graph(np.random.default_rng(0).normal(size=(20, 2)), 3), np.ones((3, 3)) - np.eye(3)])
    y = np.full(23, -1)
    y[[0, 1, 2]] = [0, 1, 1]
    with pytest.warns(UserWarning, match=r"of 23 rows lie in a component of the graph without a label"):
        obj = grbb_objective(None, y, graph=graph, rule=rule, propagation=propagation, lam=0.5, **settings)
    assert set(obj.unreachable_) >= {20, 21, 22}
    H = np.random.default_rng(1).normal(size=23)
    assert_array_equal(obj(H)[0][obj.unreachable_], 0)
    reached = np.setdiff1d(np.arange(23), obj.unreachable_)
    assert (obj(H)[0][reached] != 0).all()


@pytest.mark.parametrize("n", [1, 13, 57, 200, 1500, 3000])
@pytest.mark.parametrize("columns", [(), (1,), (3,), (6,)])
def test_the_product_of_a_row_does_not_depend_on_its_neighbours(n, columns):
    random = np.random.default_rng(n)
    P_bar = random.random((301, n), dtype=np.float32)
    vectors = random.standard_normal((n, *columns))
    whole = DenseOperator(P_bar)(vectors)
    assert_allclose(whole, P_bar.astype(np.float64) @ vectors, rtol=1e-3, atol=1e-3)
    for size in (0, 1, 7, 150):
        rows = random.permutation(301)[:size]
        assert_array_equal(DenseOperator(np.ascontiguousarray(P_bar[rows]))(vectors), whole[rows])
