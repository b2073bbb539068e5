"""More rows than nodes: the graph joins a sample, the others hang on it."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from grbb_ext import Committee, KNNGraph, RefinedGraph, grbb_objective, prediction_variance, suggest_labels
from grbb_ext.propagation import NodePropagation, SmoothPropagation

RANDOM = np.random.default_rng(0)
N = 900
TRUTH = np.arange(N) % 2
X = np.column_stack([4.0 * TRUTH, np.zeros(N)]) + RANDOM.normal(size=(N, 2))
Y = np.where(np.arange(N) < 14, TRUTH, -1)
FEW = RefinedGraph(n_trees=10, n_candidates=15, max_nodes=300)


@pytest.fixture(scope="module")
def objective():
    return grbb_objective(X, Y, graph=FEW, verbose=False, teacher="graph")


def test_labelled_rows_are_nodes_and_the_others_are_means_of_nodes(objective):
    P = objective.propagation_
    assert isinstance(P, NodePropagation)
    assert P.nodes.size == 300
    assert np.isin(objective.labeled_, P.nodes).all()
    assert P.Z.dtype == np.float32
    assert_allclose(np.asarray(P.Z.sum(axis=1)).ravel(), 1.0, rtol=1e-5)
    assert_array_equal(P.Z[P.nodes].toarray(), np.eye(300))
    others = np.setdiff1d(np.arange(N), P.nodes)
    assert np.diff(P.Z.indptr)[others].min() >= 9
    assert np.diff(P.Z.indptr)[others].max() <= 15
    assert objective.graph_.shape == (N, N)
    assert not objective.graph_[others].nnz


def test_the_targets_are_nearly_those_of_the_whole_graph(objective):
    whole = grbb_objective(
        X, Y, graph=RefinedGraph(n_trees=10, n_candidates=15, max_nodes=None), verbose=False, teacher="graph"
    )
    assert type(whole.propagation_) is SmoothPropagation
    both = (objective.targets_ > 0.5, whole.targets_ > 0.5)
    assert np.mean(both[0] == both[1]) > 0.97
    assert np.mean(both[0] == TRUTH) > 0.95
    assert_array_equal(objective.targets_[:14], TRUTH[:14])


def test_as_many_nodes_as_rows_change_nothing():
    at, above = (
        grbb_objective(X, Y, graph=RefinedGraph(n_trees=10, max_nodes=m), verbose=False, teacher="graph")
        for m in (N, None)
    )
    assert_array_equal(at.targets_, above.targets_)


@pytest.mark.parametrize("graph", [FEW, KNNGraph()])
def test_a_row_that_equals_unlabelled_nodes_is_their_mean(graph):
    rows, y = np.vstack([X[:200], X[5:9], X[20:24], X[20:24]]), np.concatenate([Y[:200], np.full(12, -1)])
    obj = grbb_objective(rows, y, graph=graph, verbose=False, teacher=Committee(("graph",), sharpen=1))
    q, predicted = obj.targets_.astype(float), obj.teacher_.predict(rows)
    assert_allclose(predicted[100:200], q[100:200], atol=1e-6)
    assert_allclose(predicted[5:9], q[200:204], atol=1e-6)  # of a label and a copy without one, the copy
    assert_allclose(predicted[20:24], (q[20:24] + q[204:208] + q[208:212]) / 3, atol=1e-6)


@pytest.mark.parametrize("graph", [FEW, KNNGraph()])
def test_a_row_that_equals_labelled_nodes_alone_is_weighed_as_any_other(graph):
    y = np.where(np.arange(300) == 4, 1 - Y[:300], Y[:300])  # a wrong label among right ones
    obj = grbb_objective(X[:300], y, graph=graph, verbose=False, teacher="graph")
    assert obj.targets_[4] == y[4]
    at, near = (obj.teacher_.predict(rows) for rows in (X[:14], X[:14] + 1e-9))
    assert_allclose(at, near, atol=1e-6)
    assert 0 < at[4] < 1


def test_a_row_that_equals_a_node_has_its_targets():
    twice = np.vstack([X, X])
    y = np.concatenate([Y, np.full(N, -1)])
    obj = grbb_objective(twice, y, graph=FEW, verbose=False, teacher="graph")
    assert np.isfinite(obj.targets_).all()
    assert np.mean((obj.targets_ > 0.5) == np.tile(TRUTH, 2)) > 0.95


@pytest.mark.parametrize("weights", ["self-tuning", "binary", "heat"])
def test_every_formula_of_weights(weights):
    obj = grbb_objective(X, Y, graph=FEW.replace(weights=weights), verbose=False, teacher="graph")
    assert np.mean((obj.targets_ > 0.5) == TRUTH) > 0.95


def test_other_operators_and_rules_take_every_row_as_a_node():
    for settings in ({"propagation": "harmonic", "teacher": "graph"}, {"rule": "corrected"}):
        obj = grbb_objective(X, Y, graph=FEW, verbose=False, **settings)
        assert obj.refinement_.nodes.size == N
        assert not obj.unreachable_.size


def test_folds_and_other_labels(objective):
    fold = objective.subset(np.flatnonzero(np.arange(N) % 3))
    assert fold.refinement_.nodes.size == 300
    small = objective.subset(np.arange(250))
    assert type(small.propagation_) is SmoothPropagation
    y = Y.copy()
    y[800:] = TRUTH[800:]
    more = objective.with_labels(y)
    assert np.isin(np.arange(800, N), more.propagation_.nodes).all()


def test_variance_and_suggestions_take_it(objective):
    raw = np.where(TRUTH, 1.0, -1.0)
    found = [prediction_variance(objective, raw, lam=1.0, method=method).mean for method in ("dense", "schur")]
    assert found[0] > 0
    assert found[0] == pytest.approx(found[1], rel=1e-4)
    assert suggest_labels(objective, raw, k=3).rows.size == 3


def test_categories_missing_values_and_sparse_rows():
    words = np.where(TRUTH, "red", "blue").astype(object)
    table = np.column_stack([X.astype(object), words])
    table[5, 0] = None
    with pytest.warns(UserWarning, match="missing"):
        obj = grbb_objective(table, Y, graph=FEW, verbose=False, teacher="graph")
    assert np.mean((obj.targets_ > 0.5) == TRUTH) > 0.93
    sparse = grbb_objective(sp.csr_array(X), Y, graph=FEW, verbose=False, teacher="graph")
    assert np.mean((sparse.targets_ > 0.5) == TRUTH) > 0.95


def test_several_classes_and_regression():
    classes = np.where(Y < 0, -1, np.arange(N) % 3)
    assert grbb_objective(X, classes, graph=FEW, verbose=False, teacher="graph").targets_.shape == (N, 3)
    values = np.where(Y < 0, np.nan, X[:, 0])
    obj = grbb_objective(X, values, loss="squared_error", graph=FEW, verbose=False, teacher="graph")
    assert np.corrcoef(obj.targets_, X[:, 0])[0, 1] > 0.8


def test_a_wrong_number_of_nodes_is_refused():
    with pytest.raises(ValueError, match="max_nodes"):
        RefinedGraph(max_nodes=0)


def test_the_recall_of_the_search_is_reported(objective, caplog):
    assert objective.refinement_.recall == 1.0
    assert objective.refinement_.search == "brute"
    assert "nodes=300 of 900" in repr(objective.refinement_)
    with caplog.at_level("INFO", logger="grbb_ext.graph"):
        obj = grbb_objective(X, Y, graph=FEW.replace(method="faiss"), verbose=False, teacher="graph")
    assert 0.9 <= obj.refinement_.recall <= 1.0
    assert obj.refinement_.search == "faiss"
    assert "recall" in caplog.text


def test_rows_in_a_memory_mapped_file(objective, tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, X)
    obj = grbb_objective(np.load(path, mmap_mode="r"), Y, graph=FEW, verbose=False, teacher="graph")
    assert_array_equal(obj.targets_, objective.targets_)
