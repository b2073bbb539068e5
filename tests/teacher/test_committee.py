"""The forest beside the graph: what is averaged, when it takes no part, and that labels left out do not count."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_moons

from grbb_ext import GraphWarning, KNNGraph, Smooth, Targets, grbb_objective, knn_graph
from grbb_ext.labels import read_labels
from grbb_ext.table import read_table
from grbb_ext.teacher import ForestExpert, GraphEvidenceWarning

MOONS, TRUTH = make_moons(300, noise=0.1, random_state=0)
UNSCALED = KNNGraph(scale=None)


def labeled_forest(X, labels):
    """Return what a forest predicts for all rows, and for the labelled ones out of bag."""
    table = read_table(X)
    forest = ForestExpert.fit(table, labels)
    return forest.predict(table), forest.held_out


def labels_of(truth, n, seed=0):
    y = np.full(truth.size, -1)
    rows = np.random.default_rng(seed).choice(truth.size, n, replace=False)
    y[rows] = truth[rows]
    return y


def one_column_among_noise(seed=0):
    """One column tells the class, but is a whisper among the others, so that neighbours say nothing."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(400, 12))
    truth = (X[:, 3] > 0).astype(int)
    X[:, 3] *= 0.001
    return X, truth


def test_targets_are_the_mixture_of_both_experts():
    y = labels_of(TRUTH, 20)
    obj = grbb_objective(MOONS, y, graph="knn")
    labels = read_labels(y, "auto", None, -1)
    forest, _ = labeled_forest(MOONS, labels)
    sharp = forest**3 / (forest**3 + (1 - forest) ** 3)
    graph = grbb_objective(MOONS, y, graph="knn", teacher="graph").targets_
    w = obj.evidence_.weights["graph"]
    expected = w * graph + (1 - w) * sharp
    expected[labels.labeled] = labels.targets
    assert_allclose(obj.targets_, expected, atol=1e-6)
    assert 0 < w < 1


def test_leave_one_out_is_the_operator_without_that_row():
    W, y = knn_graph(MOONS), labels_of(TRUTH, 12)
    rows = np.flatnonzero(y >= 0)
    values = 2.0 * y[rows] - 1.0
    operator = Smooth().on(W, rows)
    held_out = operator.leave_one_out(values)
    K = operator.kernel_block + 0.1 * np.eye(rows.size)
    for i in range(rows.size):
        others = np.arange(rows.size) != i
        by_hand = operator.kernel_block[i, others] @ np.linalg.solve(K[np.ix_(others, others)], values[others])
        assert_allclose(held_out[i], by_hand, rtol=1e-8)
    assert_allclose(operator.leave_one_out(np.column_stack([values, -values])), np.column_stack([held_out, -held_out]))


def test_where_neighbors_say_nothing_the_forest_decides():
    X, truth = one_column_among_noise()
    y = labels_of(truth, 40)
    with pytest.warns(GraphEvidenceWarning, match="predicts held-out labels worse"):
        obj = grbb_objective(X, y, graph=UNSCALED)
    unlabeled = y < 0
    alone = grbb_objective(X, y, graph=UNSCALED, teacher="graph")
    share = [np.mean((o.targets_ > 0.5)[unlabeled] == truth[unlabeled]) for o in (obj, alone)]
    assert share[0] > 0.8 > share[1]


def test_where_neighbors_know_the_graph_decides():
    y = labels_of(TRUTH, 30)
    obj = grbb_objective(MOONS, y)
    assert obj.evidence_.weights["graph"] > 0.5
    assert np.mean((obj.targets_ > 0.5) == TRUTH) > 0.97


@pytest.mark.parametrize(
    "arguments",
    [
        {"teacher": "graph"},
        {"propagation": "nonlocal"},
        {"rule": "corrected"},
        {"preset": "paper"},
        {"rule": "labeled"},
    ],
)
def test_no_forest_where_it_is_not_asked_for_or_not_defined(arguments):
    assert grbb_objective(MOONS, labels_of(TRUTH, 20), **arguments).evidence_ is None


def test_no_forest_without_columns_or_without_unlabeled_rows():
    y = labels_of(TRUTH, 20)
    assert grbb_objective(None, y, graph=knn_graph(MOONS)).evidence_ is None
    whole = grbb_objective(MOONS, TRUTH)
    assert whole.evidence_ is None
    assert whole.refinement_ is None  # nor is there anything to refine a graph for


# The graph predicts labels that were turned round on purpose badly.
@pytest.mark.filterwarnings("ignore::grbb_ext.teacher.GraphEvidenceWarning")
@pytest.mark.parametrize("graph", ["knn", "refined"])
def test_a_fold_learns_nothing_from_the_labels_left_out(graph):
    y = labels_of(TRUTH, 24)
    rows = np.sort(np.random.default_rng(0).choice(300, 200, replace=False))
    changed = y.copy()
    outside = np.setdiff1d(np.flatnonzero(y >= 0), rows)
    changed[outside] = 1 - changed[outside]
    fold, other = (grbb_objective(MOONS, labels, graph=graph).subset(rows) for labels in (y, changed))
    assert outside.size
    assert fold.evidence_ == other.evidence_
    assert_array_equal(fold.targets_, other.targets_)


def test_the_same_seed_gives_the_same_targets():
    y = labels_of(TRUTH, 20)
    first, second, other = (grbb_objective(MOONS, y, graph="knn", random_state=seed) for seed in (3, 3, 4))
    assert_array_equal(first.targets_, second.targets_)
    assert not np.array_equal(first.targets_, other.targets_)
    threads = grbb_objective(MOONS, y, graph="knn", random_state=3, n_jobs=2)
    assert_array_equal(first.targets_, threads.targets_)


def test_several_classes_and_regression():
    three = np.where(TRUTH == 1, 1 + (MOONS[:, 0] > 1), 0)
    obj = grbb_objective(MOONS, labels_of(three, 30))
    assert_allclose(obj.targets_.sum(axis=1), 1.0, atol=1e-6)
    assert np.mean(obj.targets_.argmax(axis=1) == three) > 0.9
    y = np.where(labels_of(TRUTH, 40) >= 0, MOONS[:, 0], np.nan)
    with pytest.warns(GraphEvidenceWarning):  # the value is a column itself, and trees see it at once
        regression = grbb_objective(MOONS, y, loss="squared_error")
    assert np.sqrt(np.mean((regression.targets_ - MOONS[:, 0]) ** 2)) < 0.25
    assert np.isfinite(regression.evidence_.log_likelihood).all()


def test_hard_targets_are_classes():
    obj = grbb_objective(MOONS, labels_of(TRUTH, 20), rule=Targets(hard=True))
    assert set(np.unique(obj.targets_)) <= {0.0, 0.5, 1.0}


def test_a_teacher_that_is_no_teacher():
    with pytest.raises(ValueError, match="teacher must be one of"):
        grbb_objective(MOONS, labels_of(TRUTH, 20), teacher="auto")
    with pytest.raises(TypeError, match="teacher must be one of"):
        grbb_objective(MOONS, labels_of(TRUTH, 20), teacher=False)


@pytest.mark.parametrize("graph", ["knn", "refined"])
def test_a_permutation_of_rows_permutes_the_targets(graph):
    y = labels_of(TRUTH, 20)
    p = np.random.default_rng(1).permutation(y.size)
    obj, permuted = (grbb_objective(X, labels, graph=graph) for X, labels in ((MOONS, y), (MOONS[p], y[p])))
    assert_allclose(permuted.evidence_.weights["graph"], obj.evidence_.weights["graph"], rtol=1e-6)
    assert_allclose(permuted.targets_, obj.targets_[p], atol=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_forest_does_not_depend_on_the_order_of_rows(sparse):
    random = np.random.default_rng(0)
    X = random.normal(size=(120, 6)) * (random.uniform(size=(120, 6)) < 0.5)
    X[7] = X[3]  # equal rows with different labels
    y = np.where(np.arange(120) < 30, np.arange(120) % 3, -1)
    y[3], y[7] = 0, 2
    p = random.permutation(120)
    rows = sp.csr_array(X) if sparse else X
    targets, held_out = labeled_forest(rows, read_labels(y, "auto", None, -1))
    again, held_out_again = labeled_forest(rows[p], read_labels(y[p], "auto", None, -1))
    assert_array_equal(again, targets[p])
    assert_array_equal(held_out_again, held_out[p[p < 30]])


def test_held_out_predictions_are_of_trees_that_did_not_draw_the_label():
    y = labels_of(TRUTH, 30)
    labels = read_labels(y, "auto", None, -1)
    _, held_out = labeled_forest(MOONS, labels)
    for i in range(5):
        changed = replace(labels, targets=labels.targets.copy())
        changed.targets[i] = 1 - changed.targets[i]
        _, other = labeled_forest(MOONS, changed)
        assert other[i] == held_out[i]


def test_one_label_cannot_be_held_out():
    y = np.full(300, -1)
    y[0] = 1
    with pytest.warns(UserWarning, match="Only the class"):
        obj = grbb_objective(MOONS, y, classes=[0, 1])
    assert obj.evidence_ is None
    assert obj.targets_[0] == 1


def test_the_warning_points_at_the_line_of_the_user():
    X, truth = one_column_among_noise()
    with pytest.warns(GraphEvidenceWarning) as caught:
        obj = grbb_objective(X, labels_of(truth, 40), graph=UNSCALED)
    assert caught[0].filename == __file__
    with pytest.warns(GraphEvidenceWarning) as caught:
        obj.with_labels(labels_of(truth, 40))
    assert caught[0].filename == __file__
    X[5, 5] = np.nan
    with pytest.warns(GraphWarning) as caught:
        grbb_objective(X, labels_of(truth, 40), teacher="graph")
    assert caught[0].filename == __file__
