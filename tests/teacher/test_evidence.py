"""The weight of the graph is a posterior probability, computed by hand here."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from grbb_ext.losses import LogisticLoss, SoftmaxLoss, SquaredErrorLoss
from grbb_ext.teacher import Evidence, GraphEvidenceWarning, weigh

Y = np.array([0.0, 1.0, 1.0])


def test_two_classes_by_hand():
    evidence = weigh({"graph": np.array([0.2, 0.6, 0.9]), "forest": np.array([0.5, 0.5, 0.5])}, Y, LogisticLoss())
    assert evidence.experts == ("graph", "forest")
    assert_allclose(evidence.log_likelihood, [np.log(0.8 * 0.6 * 0.9) / 3, np.log(0.5)])
    assert sum(evidence.weight) == pytest.approx(1.0)
    assert_allclose(evidence.weights["graph"], 0.432 / (0.432 + 0.125))
    assert evidence.n_labels == 3


def test_a_smooth_function_is_a_prior_for_the_graph():
    graph, forest = np.array([0.2, 0.6, 0.9]), np.array([0.5, 0.5, 0.5])
    evidence = weigh({"graph": graph, "forest": forest}, Y, LogisticLoss(), smoothness=0.75)
    assert_allclose(evidence.weights["graph"], 4 * 0.432 / (4 * 0.432 + 0.125))
    assert evidence.smoothness == 0.75
    most = weigh({"graph": forest, "forest": forest}, Y, LogisticLoss(), smoothness=1.0)
    assert most.weights["graph"] == pytest.approx(100 / 101)


def test_several_classes_by_hand():
    graph = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
    forest = np.full((2, 3), 1 / 3)
    evidence = weigh({"graph": graph, "forest": forest}, np.eye(3)[[0, 2]], SoftmaxLoss())
    assert_allclose(evidence.weights["graph"], 0.56 / (0.56 + 1 / 9))


def test_regression_by_hand():
    y = np.array([0.0, 2.0, 4.0, 6.0])
    evidence = weigh({"graph": y + 1.0, "forest": y + 2.0}, y, SquaredErrorLoss())
    # Each expert has its own variance, 1 and 4: the likelihoods are as (1/1)^(4/2) to (1/4)^(4/2).
    assert_allclose(evidence.weights["graph"], 16 / 17)
    assert_allclose(evidence.log_likelihood[0], -0.5 * np.log(2 * np.pi * np.e))


def test_an_expert_without_error_takes_all():
    y = np.array([0.0, 1.0, 5.0])
    assert weigh({"graph": y, "forest": y + 1.0}, y, SquaredErrorLoss()).weights["graph"] == pytest.approx(1.0)
    assert weigh({"graph": y, "forest": y}, y, SquaredErrorLoss()).weights["graph"] == 0.5


def test_one_surprise_is_no_proof():
    sure_and_wrong, undecided = np.array([0.0, 0.0, 1.0]), np.array([0.5, 0.5, 0.5])
    evidence = weigh({"graph": sure_and_wrong, "forest": undecided}, Y, LogisticLoss())
    assert_allclose(evidence.weights["graph"], 0.99**2 * 0.01 / (0.99**2 * 0.01 + 0.125))


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.booleans()), min_size=1, max_size=30))
def test_the_weights_of_the_two_add_up_to_one(rows):
    graph, forest, y = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    forth = weigh({"graph": graph, "forest": forest}, y, LogisticLoss())
    back = weigh({"graph": forest, "forest": graph}, y, LogisticLoss())
    assert_allclose(forth.weights["graph"] + back.weights["graph"], 1.0)
    assert_allclose(sum(forth.weight), 1.0)
    assert (forth.weights["graph"] >= 0.5) == (forth.log_likelihood[0] >= forth.log_likelihood[1])


def test_a_warning_where_the_graph_predicts_labels_worse():
    with pytest.warns(GraphEvidenceWarning, match=r"weight 10 %.*rule='labeled'.*teacher='graph'"):
        Evidence(("graph", "forest"), (-0.6, -0.3), (0.1, 0.9), 20).warn_if_doubtful()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Evidence(("graph", "forest"), (-0.6, -0.55), (0.4, 0.6), 20).warn_if_doubtful()
