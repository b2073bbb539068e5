"""A refined graph has seen labels: a fold must be refined from its own."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from grbb_ext import RefinedGraph, grbb_objective, knn_graph

RANDOM = np.random.default_rng(0)
N = 160
TRUTH = np.arange(N) % 2
X = np.column_stack([2.5 * TRUTH, np.zeros(N)]) + RANDOM.normal(size=(N, 2))
X = np.hstack([X, RANDOM.normal(size=(N, 4))])
Y = np.where(np.arange(N) < 24, TRUTH, -1)
SMALL = RefinedGraph(n_passes=2, n_trees=20, n_candidates=30, normal_scores=False)
H = np.linspace(-1, 1, N)
HELD_OUT = np.arange(8)
REST = np.arange(8, N)


def test_a_held_out_label_does_not_change_the_folds_objective():
    other = Y.copy()
    other[HELD_OUT] = 1 - other[HELD_OUT]
    first, second = (grbb_objective(X, y, graph=SMALL) for y in (Y, other))
    assert abs(first.graph_ - second.graph_).max() > 0  # the labels do count in the whole graph
    assert_array_equal(first.subset(REST).graph_.toarray(), second.subset(REST).graph_.toarray())
    assert_array_equal(first.subset(REST)(H[REST]), second.subset(REST)(H[REST]))


def test_a_held_out_label_that_becomes_unlabelled_leaves_no_trace():
    first = grbb_objective(X, Y, graph=SMALL)
    hidden = Y.copy()
    hidden[HELD_OUT] = -1
    never_seen = grbb_objective(X, hidden, graph=SMALL)
    found = first.with_labels(hidden)
    assert_array_equal(found.graph_.toarray(), never_seen.graph_.toarray())
    assert_array_equal(found(H), never_seen(H))


def test_the_plain_graph_of_a_fold_is_cut():
    rows = np.random.default_rng(1).permutation(N)[:120]
    part = grbb_objective(X, Y, graph=SMALL, teacher="graph").subset(rows)
    assert_array_equal(part.refinement_.plain.toarray(), knn_graph(X).toarray()[np.ix_(rows, rows)])


def test_the_fold_of_a_fold():
    obj = grbb_objective(X, Y, graph=SMALL, teacher="graph")
    rows = np.random.default_rng(2).permutation(N)[:130]
    once, twice = obj.subset(rows[:100]), obj.subset(rows).subset(np.arange(100))
    assert_array_equal(once.graph_.toarray(), twice.graph_.toarray())


def test_folds_of_duplicated_rows():
    rows = np.vstack([X, np.repeat(X[:4], 5, axis=0)])
    y = np.concatenate([Y, np.full(20, -1)])
    obj = grbb_objective(rows, y, graph=SMALL, teacher="graph")
    part = obj.subset(np.arange(2, 180))
    assert part.graph_.shape == (178, 178)
    assert abs(part.graph_ - part.graph_.T).max() == 0
    assert part.refinement_.settings == SMALL


def test_rows_of_a_fold_may_stand_in_any_order():
    y = np.where(np.arange(N) < 20, TRUTH, -1)
    obj = grbb_objective(X, y, teacher="graph")
    order = np.random.default_rng(1).permutation(N)
    assert_allclose(obj.subset(order).targets_, obj.targets_[order], atol=1e-6)
    part, again = np.sort(order[:120]), np.random.default_rng(2).permutation(120)
    assert_allclose(obj.subset(part[again]).targets_, obj.subset(part).targets_[again], atol=1e-6)
