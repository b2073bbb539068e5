import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from grbb_ext import Harmonic, Smooth, knn_graph
from grbb_ext.losses import LogisticLoss, SoftmaxLoss, SquaredErrorLoss
from grbb_ext.propagation import PROPAGATIONS
from grbb_ext.teacher import soft_targets

W = knn_graph(np.random.default_rng(0).normal(size=(60, 3)), 6)
LABELED = np.arange(0, 60, 6)
BINARY = (np.arange(10) % 3 == 0).astype(float)
ONE_HOT = np.eye(3)[np.arange(10) % 3]


def test_harmonic_targets_are_the_propagated_labels():
    P = Harmonic().on(W, LABELED)
    assert_allclose(soft_targets(P, BINARY, LogisticLoss()), P.extend(BINARY), atol=1e-9)
    assert_allclose(soft_targets(P, ONE_HOT, SoftmaxLoss()), P.extend(ONE_HOT), atol=1e-9)


def test_smooth_targets_by_the_formula():
    P = Smooth(tau=0.05).on(W, LABELED)
    t = 2 * BINARY - 1  # mean -.2, n = 10: 1 - 4 / (10 * .04) < 0, so the prior mean is 0
    q = soft_targets(P, BINARY, LogisticLoss())
    expected = (1 + np.clip(P.extend(t), -1, 1)) / 2
    expected[LABELED] = BINARY
    assert_allclose(q, expected)


def test_the_prior_mean_is_kept_where_the_labels_show_it():
    rare = np.zeros(10)
    rare[0] = 1.0  # coded mean -.8: shrunk to -.8 (1 - 4 / (10 * .64)) = -.3
    P = Smooth(tau=0.05).on(W, LABELED)
    expected = (1 + np.clip(-0.3 + P.extend(2 * rare - 1 + 0.3), -1, 1)) / 2
    expected[LABELED] = rare
    assert_allclose(soft_targets(P, rare, LogisticLoss()), expected)


@settings(max_examples=30)
@given(
    kind=st.sampled_from(["harmonic", "nonlocal", "smooth", "poisson"]), sharpen=st.floats(1, 50), hard=st.booleans()
)
def test_targets_are_distributions_and_sharpening_keeps_the_winner(kind, sharpen, hard):
    P = PROPAGATIONS[kind].on(W, LABELED)
    for targets, loss in ((BINARY, LogisticLoss()), (ONE_HOT, SoftmaxLoss())):
        plain = soft_targets(P, targets, loss)
        q = soft_targets(P, targets, loss, sharpen=sharpen, hard=hard)
        assert_array_equal(q[LABELED], targets)
        assert q.min() >= 0
        assert q.max() <= 1
        if targets.ndim == 2:
            assert_allclose(q.sum(axis=1), 1)
            assert_array_equal(q.argmax(axis=1), plain.argmax(axis=1))
        else:
            assert_array_equal(np.sign(q - 0.5).round(9), np.sign(plain - 0.5))


def test_swapping_the_classes_swaps_the_targets():
    P = Smooth().on(W, LABELED)
    q = soft_targets(P, BINARY, LogisticLoss(), sharpen=3)
    assert_allclose(soft_targets(P, 1 - BINARY, LogisticLoss(), sharpen=3), 1 - q, atol=1e-12)
    two_columns = soft_targets(P, np.column_stack([1 - BINARY, BINARY]), SoftmaxLoss(), sharpen=3)
    assert_allclose(two_columns[:, 1], q, atol=1e-12)


def test_regression_targets_follow_shift_and_scale():
    P = Smooth().on(W, LABELED)
    y = np.random.default_rng(0).normal(size=10)
    q = soft_targets(P, y, SquaredErrorLoss())
    assert_allclose(soft_targets(P, 3 * y + 100, SquaredErrorLoss()), 3 * q + 100)
    assert_allclose(soft_targets(P, np.full(10, 7.0), SquaredErrorLoss()), 7.0)
