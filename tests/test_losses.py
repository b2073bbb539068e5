import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from grbb_ext.losses import LogisticLoss, SoftmaxLoss, SquaredErrorLoss

scores = st.floats(-8, 8)


def central_difference(function, x, step=1e-5):
    return (function(x + step) - function(x - step)) / (2 * step)


@pytest.mark.parametrize("loss", [LogisticLoss(), SquaredErrorLoss()])
@given(h=scores, t=st.floats(0, 1))
def test_derivatives_match_finite_differences(loss, h, t):
    H, T = np.array([h]), np.array([t])
    gradient, curvature = loss.derivatives(H, T)
    assert_allclose(gradient, central_difference(lambda x: loss.value(x, T), H), atol=1e-8)
    assert_allclose(curvature, central_difference(lambda x: loss.derivatives(x, T)[0], H), atol=1e-8)


@given(st.lists(scores, min_size=3, max_size=3), st.integers(0, 2))
def test_softmax_gradient_matches_finite_differences(h, label):
    H, T, loss = np.array([h]), np.eye(3)[[label]], SoftmaxLoss()
    gradient, _ = loss.derivatives(H, T)
    for k in range(3):
        direction = np.eye(3)[[k]]
        expected = central_difference(lambda s, d=direction: loss.value(H + s * d, T), 0.0)
        assert_allclose(gradient[:, k], expected, atol=1e-8)


@given(st.lists(scores, min_size=4, max_size=4))
def test_softmax_curvature_bounds_the_hessian(h):
    loss = SoftmaxLoss()
    H = np.array([h])
    p = loss.mean(H)[0]
    _, curvature = loss.derivatives(H, np.zeros((1, 4)))
    assert np.linalg.eigvalsh(np.diag(curvature[0]) - (np.diag(p) - np.outer(p, p))).min() > -1e-12


def test_two_class_softmax_is_logistic():
    H = np.linspace(-5, 5, 11)
    assert_allclose(SoftmaxLoss().mean(np.column_stack([np.zeros(11), H]))[:, 1], LogisticLoss().mean(H))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extreme_scores_stay_finite_and_keep_their_precision(dtype):
    for extreme in (1e4, -1e4, 1e30, -1e30):
        H = np.full(2, extreme, dtype=dtype)
        gradient, curvature = LogisticLoss().derivatives(H, np.array([0, 1], dtype=dtype))
        assert gradient.dtype == curvature.dtype == dtype
        assert_allclose(gradient, [1, 0] if extreme > 0 else [0, -1])
        assert_allclose(curvature, 0)
        gradient, curvature = SoftmaxLoss().derivatives(
            np.array([[extreme, 0.0]], dtype=dtype), np.array([[1, 0]], dtype=dtype)
        )
        assert np.isfinite(gradient).all()
        assert np.isfinite(curvature).all()
        assert gradient.dtype == curvature.dtype == dtype
