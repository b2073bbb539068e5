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
    evidence = weigh(np.array([0.2, 0.6, 0.9]), np.array([0.5, 0.5, 0.5]), Y, LogisticLoss())
    assert_allclose(evidence.graph_log_likelihood, np.log(0.8 * 0.6 * 0.9) / 3)
    assert_allclose(evidence.forest_log_likelihood, np.log(0.5))
    assert_allclose(evidence.graph_weight, 0.432 / (0.432 + 0.125))
    assert evidence.n_labels == 3


def test_a_smooth_function_is_a_prior_for_the_graph():
    graph, forest = np.array([0.2, 0.6, 0.9]), np.array([0.5, 0.5, 0.5])
    evidence = weigh(graph, forest, Y, LogisticLoss(), smoothness=0.75)
    assert_allclose(evidence.graph_weight, 4 * 0.432 / (4 * 0.432 + 0.125))
    assert evidence.smoothness == 0.75
    assert weigh(forest, forest, Y, LogisticLoss(), smoothness=1.0).graph_weight == pytest.approx(100 / 101)


def test_several_classes_by_hand():
    graph = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
    forest = np.full((2, 3), 1 / 3)
    evidence = weigh(graph, forest, np.eye(3)[[0, 2]], SoftmaxLoss())
    assert_allclose(evidence.graph_weight, 0.56 / (0.56 + 1 / 9))


def test_regression_by_hand():
    y = np.array([0.0, 2.0, 4.0, 6.0])
    evidence = weigh(y + 1.0, y + 2.0, y, SquaredErrorLoss())
    # Each expert has its own variance, 1 and 4: the likelihoods are as (1/1)^(4/2) to (1/4)^(4/2).
    assert_allclose(evidence.graph_weight, 16 / 17)
    assert_allclose(evidence.graph_log_likelihood, -0.5 * np.log(2 * np.pi * np.e))


def test_an_expert_without_error_takes_all():
    y = np.array([0.0, 1.0, 5.0])
    assert weigh(y, y + 1.0, y, SquaredErrorLoss()).graph_weight == pytest.approx(1.0)
    assert weigh(y, y, y, SquaredErrorLoss()).graph_weight == 0.5


def test_one_surprise_is_no_proof():
    sure_and_wrong, undecided = np.array([0.0, 0.0, 1.0]), np.array([0.5, 0.5, 0.5])
    evidence = weigh(sure_and_wrong, undecided, Y, LogisticLoss())
    assert_allclose(evidence.graph_weight, 0.99**2 * 0.01 / (0.99**2 * 0.01 + 0.125))


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.booleans()), min_size=1, max_size=30))
def test_the_weights_of_the_two_add_up_to_one(rows):
    graph, forest, y = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    forth, back = weigh(graph, forest, y, LogisticLoss()), weigh(forest, graph, y, LogisticLoss())
    assert_allclose(forth.graph_weight + back.graph_weight, 1.0)
    assert (forth.graph_weight >= 0.5) == (forth.graph_log_likelihood >= forth.forest_log_likelihood)


def test_a_warning_where_the_labels_speak_against_the_graph():
    with pytest.warns(GraphEvidenceWarning, match=r"10 % of the weight.*rule='labeled'.*guard=False"):
        Evidence(-0.6, -0.3, 0.1, 20).warn_if_doubtful()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Evidence(-0.6, -0.55, 0.4, 20).warn_if_doubtful()
