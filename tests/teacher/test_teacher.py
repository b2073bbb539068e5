"""A fitted teacher: its predictions are the targets of the objective, for any rows and in any blocks."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_moons

from grbb_ext import (
    Committee,
    GRBBClassifier,
    KNNGraph,
    RefinedGraph,
    Smooth,
    Targets,
    Teacher,
    grbb_objective,
    knn_graph,
)
from grbb_ext.table import read_table
from grbb_ext.teacher import teach

N = 240
ROWS, TRUTH = make_moons(N + 60, noise=0.1, random_state=0)
X, NEW = ROWS[:N], ROWS[N:]
LABELED = np.arange(N) < 24
THREE = np.where(TRUTH == 1, 1 + (ROWS[:, 0] > 1), 0)
TASKS = {
    "binary": (np.where(LABELED, TRUTH[:N], -1), {}),
    "three classes": (np.where(LABELED, THREE[:N], -1), {}),
    "regression": (np.where(LABELED, ROWS[:N, 1], np.nan), {"loss": "squared_error"}),
}
GRAPHS = {
    "refined": RefinedGraph(n_trees=20),
    "knn": KNNGraph(),
    "heat": KNNGraph(weights="heat"),
    "nodes": RefinedGraph(n_trees=20, max_nodes=100),
}


def exact_targets(obj):
    """The targets in double precision: those of the objective are single."""
    recipe = obj._recipe
    lesson = teach(obj._prepared, obj._labels, recipe.teacher, recipe.propagation, random_state=recipe.random_state)
    assert_allclose(lesson.targets, obj.targets_, rtol=1e-6, atol=1e-7)
    return lesson.targets


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("teacher", ["committee", "graph", "forest"])
def test_on_the_rows_of_the_fit_it_predicts_the_targets(graph, task, teacher):
    y, settings = TASKS[task]
    obj = grbb_objective(X, y, graph=GRAPHS[graph], teacher=teacher, **settings)
    predicted = obj.teacher_.predict(X)
    assert_allclose(predicted[~LABELED], exact_targets(obj)[~LABELED], rtol=0, atol=1e-12)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])  # a row's distance to itself may be 1e-16 by the cosine
def test_on_sparse_rows_of_the_fit_it_predicts_the_targets(metric):
    rows = sp.csr_array(sp.random(N, 30, density=0.2, random_state=0, format="csr"))
    obj = grbb_objective(rows, TASKS["binary"][0], graph=KNNGraph(metric=metric, scale=None))
    assert_allclose(obj.teacher_.predict(rows)[~LABELED], exact_targets(obj)[~LABELED], rtol=0, atol=1e-12)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("graph", GRAPHS)
def test_blocks_and_copies_predict_what_all_rows_do(graph, task, monkeypatch):
    y, settings = TASKS[task]
    teacher = grbb_objective(X, y, graph=GRAPHS[graph], **settings).teacher_
    whole = teacher.predict(NEW)
    parts = [teacher.predict(NEW[rows]) for rows in (slice(0, 1), slice(1, 20), slice(20, 60))]
    assert_allclose(np.concatenate(parts), whole, rtol=0, atol=1e-12)
    travelled = pickle.loads(pickle.dumps(teacher))
    assert_array_equal(travelled.predict(NEW, n_jobs=2), whole)
    assert repr(travelled) == repr(teacher)
    monkeypatch.setattr("grbb_ext._progress.row_blocks", lambda n, _: [slice(i, i + 7) for i in range(0, n, 7)])
    assert_allclose(teacher.predict(NEW), whole, rtol=0, atol=1e-12)


def test_predictions_of_new_rows_are_those_of_their_neighbours():
    y, _ = TASKS["binary"]
    obj = grbb_objective(X, y, graph="knn", teacher=Committee(experts=("graph",), sharpen=1))
    index = np.argsort(((NEW[:1, None] - X[None]) ** 2).sum(axis=2), axis=1)[0, :9]
    distance = np.linalg.norm(NEW[0] - X[index], axis=1)
    radius = np.sort(np.linalg.norm(X[index, None] - X[None], axis=2), axis=1)[:, 9]
    weight = np.exp(-(distance**2) / (distance[-1] * radius))
    values = 2.0 * y[LABELED] - 1
    mean = values.mean() * max(0.0, 1 - 4 / (values.size * values.mean() ** 2)) if values.mean() else 0.0
    extended = Smooth().on(knn_graph(X), np.flatnonzero(LABELED)).extend(values - mean)
    f = np.clip(mean + weight @ extended[index] / weight.sum(), -1, 1)
    assert obj.teacher_.predict(NEW[:1])[0] == pytest.approx((1 + f) / 2, abs=1e-7)
    assert np.mean((obj.teacher_.predict(NEW) > 0.5) == TRUTH[N:]) > 0.97


def test_the_weights_of_the_experts_are_those_of_the_evidence():
    teacher = grbb_objective(X, TASKS["binary"][0]).teacher_
    assert [expert.name for expert in teacher.experts] == list(teacher.evidence.experts)
    predicted = [expert.predict(read_table(NEW)) for expert in teacher.experts]
    q = np.tensordot(teacher.evidence.weight, predicted, axes=1)
    sharp = [q**s / (q**s + (1 - q) ** s) for s in teacher.evidence.powers]
    assert_allclose(teacher.predict(NEW), np.tensordot(teacher.evidence.shares, sharp, axes=1))


@pytest.mark.parametrize("task", TASKS)
def test_an_objective_of_other_rows_uses_its_predictions(task):
    y, settings = TASKS[task]
    teacher = grbb_objective(X, y, **settings).teacher_
    truth = {"binary": TRUTH, "three classes": THREE, "regression": ROWS[:, 1]}[task][N:]
    some = np.arange(60) < 12
    y_new = np.where(some, truth, y[-1])
    obj = grbb_objective(NEW, y_new, teacher=teacher, **settings)
    assert obj.teacher_ is teacher
    assert obj.propagation_ is None
    assert obj.graph_ is None
    assert_allclose(obj.targets_[~some], teacher.predict(NEW)[~some], atol=1e-6)
    if task == "three classes":
        assert_array_equal(obj.targets_[some], np.eye(3)[truth[some]])
    else:
        assert_allclose(obj.targets_[some], truth[some], rtol=1e-6)
    H = np.zeros(obj.targets_.shape)
    assert np.isfinite(obj(H)).all()
    part = obj.subset(np.arange(50))
    assert_allclose(part.targets_, obj.targets_[:50], atol=1e-6)


def test_hard_targets_of_a_fitted_teacher():
    y, _ = TASKS["binary"]
    teacher = grbb_objective(X, y).teacher_
    y_new = np.where(np.arange(60) < 12, TRUTH[N:], -1)
    hard = grbb_objective(NEW, y_new, teacher=teacher, rule=Targets(hard=True)).targets_
    assert set(np.unique(hard)) <= {0.0, 1.0}


def test_an_estimator_takes_a_fitted_teacher():
    from lightgbm import LGBMClassifier

    y, _ = TASKS["binary"]
    teacher = grbb_objective(X, y).teacher_
    y_new = np.where(np.arange(60) < 12, TRUTH[N:], -1)
    model = GRBBClassifier(LGBMClassifier(n_estimators=20, min_child_samples=3, verbosity=-1), teacher=teacher)
    model.fit(NEW, y_new)
    assert model.objective_.teacher_ is teacher
    assert model.score(NEW, TRUTH[N:]) > 0.9


def test_a_laplacian_term_needs_a_graph_all_the_same():
    y, _ = TASKS["binary"]
    teacher = grbb_objective(X, y).teacher_
    y_new = np.where(np.arange(60) < 12, TRUTH[N:], -1)
    obj = grbb_objective(NEW, y_new, teacher=teacher, graph="knn", lam=0.1)
    plain = grbb_objective(NEW, y_new, teacher=teacher)
    H = np.linspace(-1, 1, 60)
    W = knn_graph(NEW).toarray()
    slope = 0.1 * ((np.diag(W.sum(axis=1)) - W) @ H)
    difference = obj(H)[0] - plain(H)[0]
    assert_allclose(difference, np.where(np.arange(60) < 12, slope, 0.0), atol=1e-6)


def test_other_classes_are_refused():
    teacher = grbb_objective(X, TASKS["binary"][0]).teacher_
    y_new = np.where(np.arange(60) < 12, TRUTH[N:] + 5, -1)
    with pytest.raises(ValueError, match=r"fitted to the classes \[0, 1\], but y has \[5, 6\]"):
        grbb_objective(NEW, y_new, teacher=teacher)
    with pytest.raises(ValueError, match=r"fitted to the classes \[0, 1\], but y has None"):
        grbb_objective(NEW, np.where(y_new > 0, 1.5, np.nan), teacher=teacher, loss="squared_error")
    only = np.where(np.arange(60) < 3, 1, -1)
    with pytest.warns(UserWarning, match="Only the class 1"):
        obj = grbb_objective(NEW, only, teacher=teacher, classes=[0, 1])
    assert obj.classes_.tolist() == [0, 1]


def test_rows_are_needed():
    teacher = grbb_objective(X, TASKS["binary"][0]).teacher_
    with pytest.raises(ValueError, match="from the columns of X: pass X"):
        grbb_objective(None, [0, 1, -1], teacher=teacher)
    with pytest.raises(ValueError, match="expecting 2 features"):
        teacher.predict(np.zeros((3, 5)))
    with pytest.raises(ValueError, match="fitted to 2 columns"):
        teacher.predict(read_table(np.zeros((3, 5))))


def test_a_graph_of_the_users_own_has_no_place_for_new_rows():
    y, _ = TASKS["binary"]
    obj = grbb_objective(None, y, graph=knn_graph(X))
    with pytest.raises(ValueError, match=r"given as a matrix.*graph='table'"):
        obj.teacher_.predict(NEW)
    with pytest.raises(ValueError, match="given as a matrix"):
        grbb_objective(X, y, graph=knn_graph(X)).teacher_.predict(NEW)
    forest = grbb_objective(X, y, graph=knn_graph(X), teacher="forest").teacher_  # which needs no graph
    assert np.mean((forest.predict(NEW) > 0.5) == TRUTH[N:]) > 0.8


def test_operators_without_a_closed_form_teach_by_the_graph_alone():
    y, _ = TASKS["binary"]
    teacher = grbb_objective(X, y, graph="knn", propagation="harmonic").teacher_
    assert isinstance(teacher, Teacher)
    assert (teacher.evidence.experts, teacher.evidence.n_labels) == (("graph",), 0)
    assert np.mean((teacher.predict(NEW) > 0.5) == TRUTH[N:]) > 0.9


def test_sparse_rows():
    y, _ = TASKS["binary"]
    obj = grbb_objective(sp.csr_array(X), y, graph=RefinedGraph(n_trees=20))
    assert_allclose(obj.teacher_.predict(sp.csr_array(X))[~LABELED], exact_targets(obj)[~LABELED], rtol=0, atol=1e-12)


@pytest.fixture
def frame():
    random = np.random.default_rng(0)
    kind = np.where(random.uniform(size=N + 60) < 0.9, TRUTH, 1 - TRUTH)
    kind = np.array([["red", "blue"], ["green", "yellow"]])[kind, random.integers(2, size=N + 60)]
    return pd.DataFrame(ROWS, columns=["a", "b"]).assign(kind=kind.astype(object))


@pytest.mark.parametrize("graph", ["refined", "knn"])
def test_frames_with_categories(frame, graph):
    y, _ = TASKS["binary"]
    obj = grbb_objective(frame[:N], y, graph=GRAPHS[graph])
    teacher = obj.teacher_
    assert_allclose(teacher.predict(frame[:N])[~LABELED], exact_targets(obj)[~LABELED], rtol=0, atol=1e-12)
    expected = teacher.predict(frame[N:])
    # Some categories alone, in their own order: they mean what they meant to the teacher.
    part = frame[N:][frame[N:]["kind"].isin(["green", "yellow"])]
    rows = part.index.to_numpy() - N
    # Products with other rows beside them may differ in their last digit.
    for some in (part, part.assign(kind=part["kind"].astype("category")), read_table(part)):
        assert_allclose(teacher.predict(some), expected[rows], rtol=1e-13)
    y_new = np.full(rows.size, -1)
    y_new[[0, 1]] = [0, 1]
    assert_allclose(grbb_objective(part, y_new, teacher=teacher).targets_[2:], expected[rows][2:], atol=1e-6)


def test_a_category_that_the_teacher_has_not_seen_is_missing(frame):
    teacher = grbb_objective(frame[:N], TASKS["binary"][0]).teacher_
    unseen, missing = (frame[N:].assign(kind=np.array([value] * 60, dtype=object)) for value in ("black", None))
    unseen.loc[N, "kind"] = missing.loc[N, "kind"] = "red"
    assert_array_equal(teacher.predict(unseen), teacher.predict(missing))
    assert_array_equal(teacher.predict(read_table(unseen)), teacher.predict(missing))


def test_other_columns_are_refused(frame):
    teacher = grbb_objective(frame[:N], TASKS["binary"][0]).teacher_
    with pytest.raises(ValueError, match="same order"):
        teacher.predict(frame[["b", "a", "kind"]])
    for other in (frame[["b", "a", "kind"]], frame.assign(kind=0.0)):
        with pytest.raises(ValueError, match="Pass the columns of the teacher"):
            teacher.predict(read_table(other))
