"""A shared graph is the graph of all rows, cut; what is equal to the model without sharing, and what is not."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from numpy.testing import assert_array_equal
from sklearn.datasets import load_wine, make_moons
from sklearn.model_selection import GridSearchCV
from xgboost import XGBClassifier

from grbb_ext import (
    GRBBClassifier,
    KNNGraph,
    RefinedGraph,
    SemiSupervisedSplit,
    grbb_objective,
    knn_graph,
    labeled_scorer,
    share_graph,
)
from grbb_ext.graph import SharedGraph, _prepared
from grbb_ext.graph._prepared import Kept
from grbb_ext.propagation import Smooth
from grbb_ext.teacher import _graph
from grbb_ext.teacher._forest import ForestExpert

X, TRUTH = load_wine(return_X_y=True)
Y = np.where(np.random.default_rng(0).random(TRUTH.size) < 0.3, TRUTH, -1)
BOOSTERS = [
    LGBMClassifier(n_estimators=5, num_leaves=4, n_jobs=1, verbosity=-1),
    XGBClassifier(n_estimators=5, max_depth=2, n_jobs=1),
]


def knn(booster=None, *, categorical_features="from_dtype", **fields):
    """The plain graph alone: the forest is not the matter here."""
    graph = KNNGraph(**fields)
    return GRBBClassifier(booster, graph=graph, teacher="graph", categorical_features=categorical_features)


@pytest.fixture
def searches(monkeypatch):
    """Count how often neighbours are searched."""
    calls, search = [], KNNGraph.search

    def counting(*arguments, **keywords):
        calls.append(1)
        return search(*arguments, **keywords)

    monkeypatch.setattr(KNNGraph, "search", counting)
    return calls


@pytest.mark.parametrize("booster", BOOSTERS, ids=["lightgbm", "xgboost"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"graph": "knn", "teacher": "graph"},
        {"rule": "paper"},
        {"graph": KNNGraph(n_neighbors=5, scale=None, weights="heat"), "teacher": "graph"},
        {"graph": RefinedGraph(n_neighbors=5, n_trees=20, max_nodes=100), "teacher": "graph"},
    ],
    ids=["default", "knn", "paper", "heat", "nodes"],
)
def test_a_fit_to_all_rows_is_equal(booster, settings):
    plain = GRBBClassifier(booster, **settings).fit(X, Y)
    shared = share_graph(GRBBClassifier(booster, **settings), X).fit(X, Y)
    assert isinstance(shared.graph, SharedGraph)
    assert (plain.graph_ != shared.graph_).nnz == 0
    assert_array_equal(plain.predict_proba(X), shared.predict_proba(X))


@pytest.mark.parametrize("booster", BOOSTERS, ids=["lightgbm", "xgboost"])
def test_a_fit_to_a_fold_is_that_of_the_graph_cut_by_hand(booster):
    W = knn_graph(X, 9)
    rebuilt = []
    for train, test in SemiSupervisedSplit(3).split(X, Y):
        cut = GRBBClassifier(booster, graph=W[train][:, train], teacher="graph").fit(X[train], Y[train])
        shared = share_graph(knn(booster), X).fit(X[train], Y[train])
        assert (cut.graph_ != shared.graph_).nnz == 0
        assert_array_equal(cut.predict_proba(X[test]), shared.predict_proba(X[test]))
        rebuilt.append((knn_graph(X[train], 9) != shared.graph_).nnz)
    assert min(rebuilt) > 0  # the graph of the fold alone is another one


def test_folds_and_rows_in_any_order_give_the_same_predictions():
    model = share_graph(knn(BOOSTERS[0]), X)
    rows = np.random.default_rng(1).permutation(178)
    fitted, again = model.fit(X, Y).objective_, model.fit(X[rows], Y[rows]).objective_
    np.testing.assert_allclose(fitted.targets_[rows], again.targets_, atol=1e-5)


def test_labels_left_out_have_no_say():
    train, test = next(iter(SemiSupervisedSplit(3).split(X, Y)))
    model = share_graph(knn(BOOSTERS[0]), X)
    other = Y.copy()
    other[test] = (other[test] + 1) % 3
    first = model.fit(X[train], Y[train]).predict_proba(X)
    assert_array_equal(first, model.fit(X[train], other[train]).predict_proba(X))


@pytest.mark.parametrize("graph", [None, "knn"], ids=["default", "knn"])
def test_the_graph_is_built_once_in_a_search(searches, graph):
    model = share_graph(GRBBClassifier(BOOSTERS[0], graph=graph), X)
    search = GridSearchCV(
        model,
        {"teacher__sharpen": [1.0, 3.0], "estimator__num_leaves": [3, 4]},
        cv=SemiSupervisedSplit(3),
        scoring=labeled_scorer("accuracy"),
        error_score="raise",
    ).fit(X, Y)
    assert len(searches) == 1
    assert search.best_estimator_.graph is model.graph
    assert isinstance(model.graph, SharedGraph)


def test_settings_of_the_graph_are_the_estimators():
    shared = share_graph(knn(n_neighbors=4, weights="binary", metric="manhattan", scale="standard"), X)
    expected = knn_graph(X, 4, weights="binary", metric="manhattan", scale="standard")
    assert (expected != shared.graph.prepared(X).W).nnz == 0


@pytest.mark.parametrize("columns", ["from_dtype", ["kind"], [2], [False, False, True]])
def test_categories(columns):
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "kind": np.where(TRUTH == 1, 0, 1)})
    if columns == "from_dtype":
        frame = frame.astype({"kind": "category"})
    model = knn(BOOSTERS[0], categorical_features=columns)
    shared, plain = share_graph(model, frame).fit(frame, Y), model.fit(frame, Y)
    assert (plain.graph_ != shared.graph_).nnz == 0


def test_a_ready_affinity_is_cut():
    W = knn_graph(X, 9)
    shared = share_graph(GRBBClassifier(BOOSTERS[0], graph=W, teacher="graph"), X)
    assert (shared.fit(X[:100], Y[:100]).graph_ != W[:100][:, :100]).nnz == 0


def test_a_shared_graph_is_left_alone():
    once = share_graph(knn(), X)
    assert share_graph(once, X).graph is once.graph


def test_every_rule_with_a_graph_shares_it():
    for settings in ({}, {"graph": "refined"}, {"rule": "paper"}, {"rule": "corrected"}):
        assert isinstance(share_graph(GRBBClassifier(**settings), X).graph, SharedGraph)
    assert share_graph(GRBBClassifier(rule="labeled"), X).graph is None


def test_what_learns_from_labels_is_not_shared():
    train = np.arange(20, 178)
    shared = share_graph(GRBBClassifier(BOOSTERS[0], graph="refined", teacher="graph"), X)
    fold = shared.fit(X[train], Y[train])
    expected = grbb_objective(X, Y, graph="refined", teacher="graph").subset(
        train
    )  # refined again, from the labels of these rows
    assert_array_equal(fold.graph_.toarray(), expected.graph_.toarray())
    assert_array_equal(fold.objective_.targets_, expected.targets_)
    assert_array_equal(fold.objective_.refinement_.plain.toarray(), shared.graph.prepared(X[train]).W.toarray())


def test_the_forest_is_fitted_to_the_rows_of_the_fit():
    rows, truth = make_moons(200, noise=0.1, random_state=0)
    y = np.where(np.arange(200) < 20, truth, -1)
    train = np.arange(4, 200)
    shared = share_graph(GRBBClassifier(BOOSTERS[0], graph="knn"), rows).fit(rows[train], y[train])
    W = knn_graph(rows, 9)[train][:, train]
    assert shared.evidence_ == grbb_objective(rows[train], y[train], graph=W).evidence_
    assert shared.evidence_.n_labels == 16


def test_bad_calls():
    with pytest.raises(TypeError, match="must be GRBBClassifier"):
        share_graph(LGBMClassifier(), X)
    with pytest.raises(TypeError, match="must be GRBBClassifier"):
        share_graph(GRBBClassifier, X)
    with pytest.raises(ValueError, match="names column 'color', but X has no such column"):
        share_graph(knn(categorical_features=["color"]), X)


@pytest.fixture
def fits(monkeypatch):
    """Count how often forests are grown and labels spread."""
    calls, fit, spread = {"forest": 0, "graph": 0}, ForestExpert.fit, _graph._spread

    def counting_fit(*arguments, **keywords):
        calls["forest"] += 1
        return fit(*arguments, **keywords)

    def counting_spread(*arguments, **keywords):
        calls["graph"] += 1
        return spread(*arguments, **keywords)

    monkeypatch.setattr(ForestExpert, "fit", counting_fit)
    monkeypatch.setattr(_graph, "_spread", counting_spread)
    return calls


def test_experts_are_fitted_once_for_each_fold(fits, monkeypatch):
    """A search over settings of booster and teacher, with and without what the shared graph keeps."""
    grid = {"estimator__num_leaves": [2, 4, 8], "teacher__sharpen": ["auto", 2.0]}
    folds = SemiSupervisedSplit(3, shuffle=True, random_state=0)

    def search():
        model = share_graph(GRBBClassifier(BOOSTERS[0], n_jobs=1, verbose=False), X)
        found = GridSearchCV(model, grid, cv=folds, scoring=labeled_scorer("neg_log_loss")).fit(X, Y)
        counted = dict(fits)
        fits.update(forest=0, graph=0)
        return found, counted

    kept, few = search()
    assert few == {"forest": 4, "graph": 4}  # three folds, and all rows for the best setting
    monkeypatch.setattr(Kept, "get", lambda self, key, make: make())
    anew, many = search()
    assert many == {"forest": 19, "graph": 19}
    assert_array_equal(kept.cv_results_["mean_test_score"], anew.cv_results_["mean_test_score"])
    assert_array_equal(kept.best_estimator_.predict_proba(X), anew.best_estimator_.predict_proba(X))


def test_what_is_kept_is_not_mistaken_for_other_labels_or_settings(fits):
    shared = SharedGraph(X)
    others = [
        {},
        {"y": np.where(Y >= 0, (Y + 1) % 3, -1)},
        {"y": np.where(np.arange(Y.size) == np.flatnonzero(Y >= 0)[0], -1, Y)},
        {"y": Y.astype(float)},
        {"random_state": 1},
        {"propagation": Smooth(tau=0.01)},
        {"teacher": ["graph", "linear"]},
    ]
    for _ in range(2):
        for changes in others:
            settings = {"y": Y, "verbose": False, **changes}
            again = grbb_objective(X, graph=SharedGraph(X), **settings).targets_
            assert_array_equal(grbb_objective(X, graph=shared, **settings).targets_, again)
    order = np.random.default_rng(1).permutation(Y.size)
    mixed = grbb_objective(X[order], Y[order], graph=shared, verbose=False).targets_
    assert_array_equal(mixed, grbb_objective(X[order], Y[order], graph=SharedGraph(X), verbose=False).targets_)


def test_what_is_kept_stays_where_it_is():
    """Neither a pickle nor the objective of a fit carries the teachers of other fits."""
    shared = SharedGraph(X)
    empty = len(pickle.dumps(shared))
    obj = grbb_objective(X, Y, graph=shared, verbose=False)
    size = len(pickle.dumps(obj))
    for seed in range(1, 4):
        grbb_objective(X, Y, graph=shared, random_state=seed, verbose=False)
    assert len(pickle.dumps(shared)) == empty
    assert len(pickle.dumps(obj)) == size
    again = pickle.loads(pickle.dumps(shared))
    assert_array_equal(grbb_objective(X, Y, graph=again, verbose=False).targets_, obj.targets_)


def test_rows_that_take_much_memory_are_not_kept(fits, monkeypatch):
    monkeypatch.setattr(_prepared, "_NUMBERS_KEPT", X.size - 1)
    shared = SharedGraph(X)
    for _ in range(2):
        grbb_objective(X, Y, graph=shared, verbose=False)
    assert fits == {"forest": 2, "graph": 2}


@pytest.mark.parametrize(
    "booster",
    [
        LGBMClassifier(n_estimators=5, categorical_feature=[0], n_jobs=1, verbosity=-1),
        XGBClassifier(n_estimators=5, feature_types=["c", "q"], enable_categorical=True, n_jobs=1),
        XGBClassifier(n_estimators=5, missing=-999.0, n_jobs=1),
    ],
    ids=["lightgbm", "xgboost", "missing"],
)
def test_what_the_booster_calls_categorical_or_missing_counts(booster):
    rng = np.random.default_rng(0)
    code = rng.integers(0, 6, 150).astype(float)
    rows = np.column_stack([code, np.where(rng.random(150) < 0.2, -999.0, rng.normal(size=150))])
    y = np.where(rng.random(150) < 0.3, code % 2, -1).astype(int)
    model = GRBBClassifier(booster, n_jobs=1, verbose=False, random_state=0)
    shared = share_graph(model, rows).fit(rows, y)
    assert_array_equal(shared.raw_scores_, model.fit(rows, y).raw_scores_)


def test_a_teacher_that_has_seen_the_labels_is_named():
    fitted = grbb_objective(X, Y, verbose=False).teacher_
    with pytest.warns(UserWarning, match="scores of held-out rows are too good"):
        share_graph(GRBBClassifier(BOOSTERS[0], teacher=fitted), X)
