"""Weights are posterior means, computed by hand here, and powers suit the held-out labels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from grbb_ext.losses import LogisticLoss, SoftmaxLoss, SquaredErrorLoss
from grbb_ext.teacher import Evidence, simplex, weigh

Y = np.array([0.0, 1.0, 1.0, 0.0])
GRID = np.arange(21) / 20


def posterior_mean(likelihood):
    """Return the mean of the first weight, from its likelihood on the grid."""
    return float((GRID * likelihood).sum() / likelihood.sum())


def test_two_classes_by_hand():
    graph, forest = np.array([0.2, 0.6, 0.9, 0.3]), np.full(4, 0.5)
    evidence = weigh({"graph": graph, "forest": forest}, Y, LogisticLoss())
    assert evidence.experts == ("graph", "forest")
    assert_allclose(evidence.log_likelihood, [np.log(0.8 * 0.6 * 0.9 * 0.7) / 4, np.log(0.5)])
    likelihood = np.prod([GRID * p + (1 - GRID) * 0.5 for p in (0.8, 0.6, 0.9, 0.7)], axis=0)
    assert_allclose(evidence.weights["graph"], posterior_mean(likelihood**2))
    assert evidence.n_labels == 4


def test_several_classes_by_hand():
    graph = np.array([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8], [0.0, 0.1, 0.9]])
    evidence = weigh(
        {"graph": graph, "forest": np.full((4, 3), 1 / 3)}, np.eye(3)[[0, 0, 2, 2]], SoftmaxLoss(), sharpen=1
    )
    likelihood = np.prod([GRID * p + (1 - GRID) / 3 for p in (0.7, 0.6, 0.8, 0.9)], axis=0)
    assert_allclose(evidence.weights["graph"], posterior_mean(likelihood**2))
    assert (evidence.powers, evidence.shares) == ((1.0,), (1.0,))


def test_regression_by_hand():
    y = np.array([0.0, 2.0, 4.0, 6.0])
    evidence = weigh({"graph": y + 1.0, "forest": y - 2.0}, y, SquaredErrorLoss())
    # The mixture w (y + 1) + (1 - w) (y - 2) is off by 3 w - 2: without error at w = 2/3.
    likelihood = (3 * GRID - 2) ** -4.0
    assert_allclose(evidence.weights["graph"], posterior_mean(likelihood))
    assert_allclose(evidence.log_likelihood[0], -0.5 * np.log(2 * np.pi * np.e))


def test_two_experts_that_know_different_labels_are_averaged_not_chosen():
    graph, forest = np.array([0.1, 0.9, 0.5, 0.5]), np.array([0.5, 0.5, 0.9, 0.1])
    assert_allclose(weigh({"graph": graph, "forest": forest}, Y, LogisticLoss()).weight, [0.5, 0.5])


def test_with_more_labels_the_better_expert_takes_all():
    graph, forest = np.tile([0.1, 0.9, 0.9, 0.1], 50), np.full(200, 0.5)
    assert weigh({"graph": graph, "forest": forest}, np.tile(Y, 50), LogisticLoss()).weights["graph"] > 0.98


def test_an_expert_without_error_takes_all():
    y = np.array([0.0, 1.0, 5.0])
    assert weigh({"graph": y, "forest": y + 1.0}, y, SquaredErrorLoss()).weights["graph"] == pytest.approx(1.0)
    assert weigh({"graph": y, "forest": y}, y, SquaredErrorLoss()).weights["graph"] == pytest.approx(0.5)


def test_one_surprise_is_no_proof():
    sure_and_wrong, undecided = np.array([0.0, 0.0, 1.0, 0.0]), np.full(4, 0.5)
    evidence = weigh({"graph": sure_and_wrong, "forest": undecided}, Y, LogisticLoss())
    likelihood = (GRID * 0.99 + (1 - GRID) / 2) ** 3 * (GRID * 0.01 + (1 - GRID) / 2)
    assert_allclose(evidence.weights["graph"], posterior_mean(likelihood**2))


def test_the_only_label_of_a_class_is_not_held_out():
    targets = np.eye(3)[[0, 0, 1]]
    good, bad = np.eye(3)[[0, 0, 2]] * 0.8 + 0.1, np.full((3, 3), 1 / 3)
    evidence = weigh({"graph": good, "forest": bad}, targets, SoftmaxLoss())
    assert evidence.n_labels == 2
    assert evidence == weigh({"graph": good[:2], "forest": bad[:2]}, targets[:2], SoftmaxLoss())
    none = weigh({"graph": good, "forest": bad}, np.eye(3), SoftmaxLoss())
    assert none.weight == (0.75, 0.25)
    three = weigh({"forest": good, "graph": good, "linear": bad}, np.eye(3), SoftmaxLoss())
    assert three.weight == (0.125, 0.75, 0.125)
    assert (none.n_labels, none.power) == (0, 1.0)
    assert none.log_likelihood == (None, None)
    assert str(none).splitlines()[1].split() == ["graph", "-", "75", "%"]


@pytest.mark.parametrize(("stated", "sharper"), [(0.6, True), (0.99, False)])
def test_timid_probabilities_are_sharpened_and_sure_ones_softened(stated, sharper):
    truth = np.tile([0.0, 1.0], 50)
    right = np.arange(100) % 5 != 0  # four of five
    q = np.where(right == (truth > 0.5), stated, 1 - stated)
    evidence = weigh({"graph": q}, truth, LogisticLoss())
    assert (evidence.power > 1.2) if sharper else (evidence.power < 0.8)
    s, share = np.array(evidence.powers), np.array(evidence.shares)
    assert_allclose(share.sum(), 1.0)
    after = share @ (stated**s / (stated**s + (1 - stated) ** s))
    assert abs(after - 0.8) < abs(stated - 0.8)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.booleans()), min_size=1, max_size=30))
def test_the_order_of_experts_does_not_matter(rows):
    graph, forest, y = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    forth = weigh({"graph": graph, "forest": forest}, y, LogisticLoss())
    back = weigh({"forest": forest, "graph": graph}, y, LogisticLoss())
    assert_allclose(forth.weights["graph"], back.weights["graph"])
    assert_allclose(sum(forth.weight), 1.0)
    assert_allclose(sum(forth.shares), 1.0)


@given(st.integers(1, 7))
def test_the_simplex_is_symmetric_and_sums_to_one(n_experts):
    points = simplex(n_experts)
    assert_allclose(points.sum(axis=1), 1.0)
    assert (points >= 0).all()
    assert_allclose(points.mean(axis=0), 1.0 / n_experts)
    assert np.unique(points, axis=0).shape == points.shape


def test_it_prints_as_a_table():
    evidence = Evidence(
        ["graph", "HistGradientBoostingClassifier"], [-0.6, -0.3], [0.25, 0.75], 20, [1.0, 4.0], [0.5, 0.5]
    )
    lines = str(evidence).splitlines()
    assert [line.split()[-3:] for line in lines[1:3]] == [
        ["-0.60", "25", "%"],
        ["-0.30", "75", "%"],
    ]
    assert len({line.rindex("%") for line in lines[1:3]}) == 1
    assert "power 2.00" in lines[3]
    assert evidence._repr_html_().count("<tr>") == 3
