"""The experts: what is averaged, which take part, and that labels left out do not count."""

import threading
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_blobs, make_moons
from sklearn.ensemble import HistGradientBoostingClassifier, StackingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import LinearSVC
from xgboost import XGBClassifier

from grbb_ext import GraphWarning, KNNGraph, Smooth, Targets, grbb_objective, knn_graph
from grbb_ext.labels import read_labels
from grbb_ext.losses import per_class
from grbb_ext.table import read_table
from grbb_ext.teacher import Committee, EstimatorExpert, ForestExpert, LinearExpert

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


def mixed(evidence, predicted):
    """Return targets of two classes by the definition: a weighted mean, then a mean of its powers."""
    q = sum(weight * one for weight, one in zip(evidence.weight, predicted, strict=True))
    return sum(share * q**s / (q**s + (1 - q) ** s) for s, share in zip(evidence.powers, evidence.shares, strict=True))


def test_targets_are_the_mixture_of_the_experts():
    y = labels_of(TRUTH, 20)
    obj = grbb_objective(MOONS, y, graph="knn")
    labels, table = read_labels(y, "auto", None, -1), read_table(MOONS)
    forest, _ = labeled_forest(MOONS, labels)
    linear = LinearExpert.fit(table, labels).predict(table)
    graph = grbb_objective(MOONS, y, graph="knn", teacher=Committee(experts=("graph",), sharpen=1)).targets_
    expected = mixed(obj.evidence_, [graph, forest, linear])
    expected[labels.labeled] = labels.targets
    assert_allclose(obj.targets_, expected, atol=1e-6)
    assert all(0 < weight < 1 for weight in obj.evidence_.weight)


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


def test_where_neighbors_say_nothing_the_others_decide():
    X, truth = one_column_among_noise()
    y = labels_of(truth, 40)
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


@pytest.mark.parametrize("arguments", [{"rule": "corrected"}, {"preset": "paper"}, {"rule": "labeled"}])
def test_no_teacher_where_there_are_no_targets(arguments):
    obj = grbb_objective(MOONS, labels_of(TRUTH, 20), **arguments)
    assert obj.evidence_ is None
    assert obj.teacher_ is None


def test_the_graph_alone_where_labels_cannot_be_held_out():
    obj = grbb_objective(MOONS, labels_of(TRUTH, 20), propagation="nonlocal")
    assert (obj.evidence_.experts, obj.evidence_.n_labels) == (("graph",), 0)


def test_the_graph_alone_without_columns_or_without_unlabeled_rows():
    y = labels_of(TRUTH, 20)
    assert grbb_objective(None, y, graph=knn_graph(MOONS)).evidence_.experts == ("graph",)
    whole = grbb_objective(MOONS, TRUTH)
    assert whole.evidence_.experts == ("graph",)
    assert_array_equal(whole.targets_, TRUTH)


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
    regression = grbb_objective(MOONS, y, loss="squared_error")
    assert np.sqrt(np.mean((regression.targets_ - MOONS[:, 0]) ** 2)) < 0.01  # a column itself is linear
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


@pytest.mark.parametrize("renamed", [["b", "a"], ["c", "a", "b"], ["b", "d", "a", "c"]])
def test_names_of_classes_do_not_change_the_targets(renamed):
    """The folds of the linear expert were dealt out in the order of the names."""
    X, truth = make_blobs(200, centers=len(renamed), cluster_std=4.0, n_features=5, random_state=0)
    code, names = labels_of(truth, 24), np.array(renamed)
    y = np.where(code >= 0, names[code], "")
    numbers, text = grbb_objective(X, code), grbb_objective(X, y, unlabeled="")
    assert_allclose(numbers.evidence_.weight, text.evidence_.weight, rtol=1e-6)
    of_class = per_class(text.targets_)[:, np.argsort(np.argsort(names))]
    assert_allclose(of_class, per_class(numbers.targets_), atol=1e-6)


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
    assert obj.evidence_.n_labels == 0
    assert obj.targets_[0] == 1


def test_the_warning_points_at_the_line_of_the_user():
    X, truth = one_column_among_noise()
    X[5, 5] = np.nan
    with pytest.warns(GraphWarning) as caught:
        grbb_objective(X, labels_of(truth, 40), teacher="graph")
    assert caught[0].filename == __file__


def two_islands():
    """Two clouds far apart, with labels in one of them, of a class that a column tells in both."""
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 3))
    truth = (X[:, 0] > 0).astype(int)
    X[100:, 2] += 1e3
    y = np.full(200, -1)
    y[:30] = truth[:30]
    return X, truth, y


def test_a_row_that_no_label_reaches_is_taught_by_the_other_experts():
    X, truth, y = two_islands()
    obj = grbb_objective(X, y, graph=KNNGraph(scale=None), teacher=Committee(class_prior=None))
    gradient, _ = obj(np.zeros(200))
    assert obj.unreachable_.size == 0
    assert (gradient[100:] != 0).all()
    assert np.mean((obj.targets_[100:] > 0.5) == truth[100:]) > 0.75
    others = grbb_objective(X, y, graph=KNNGraph(scale=None), teacher=Committee(("forest", "linear"), sharpen=1))
    forest, linear = (one.predict(read_table(X)) for one in others.teacher_.experts)
    w = obj.evidence_.weights
    expected = mixed(
        replace(obj.evidence_, experts=("a",), weight=(1.0,)),
        [(w["forest"] * forest + w["linear"] * linear) / (w["forest"] + w["linear"])],
    )
    assert_allclose(obj.targets_[100:], expected[100:], atol=1e-6)
    assert_allclose(obj.teacher_.predict(X[100:] + 1e-9), expected[100:], atol=1e-3)
    with pytest.warns(UserWarning, match="without a label"):
        alone = grbb_objective(X, y, graph=KNNGraph(scale=None), teacher="graph")
    assert_array_equal(alone.unreachable_, np.arange(100, 200))


def test_a_graph_without_edges_leaves_the_rows_to_the_other_experts():
    X, truth, y = two_islands()
    obj = grbb_objective(X, y, graph=sp.csr_array((200, 200)))
    assert obj.unreachable_.size == 0
    assert obj.evidence_.weights["graph"] < 0.1
    assert np.mean((obj.targets_[100:] > 0.5) == truth[100:]) > 0.75


@pytest.mark.parametrize("model", [GaussianNB(), FrozenEstimator(GaussianNB().fit(MOONS, np.array(["a", "b"])[TRUTH]))])
def test_any_classifier_is_an_expert(model):
    y = np.where(labels_of(TRUTH, 20) < 0, None, np.array(["a", "b"])[TRUTH])
    obj = grbb_objective(MOONS, y, teacher=["graph", model], unlabeled=None)
    assert obj.evidence_.experts == ("graph", type(model).__name__)
    known = obj.teacher_.experts[1]
    assert_allclose(known.predict(read_table(MOONS)), known.model.predict_proba(MOONS)[:, 1])
    if isinstance(model, FrozenEstimator):  # it knows none of these labels, so nothing has to be held out
        assert_allclose(known.held_out, model.predict_proba(MOONS[obj.labeled_])[:, 1])


def test_an_expert_may_get_its_methods_by_fitting():
    stacked = StackingClassifier([("bayes", GaussianNB())], cv=2)
    assert not hasattr(stacked, "predict_proba")
    obj = grbb_objective(MOONS, labels_of(TRUTH, 40), teacher=Committee(experts=(stacked,), sharpen=1))
    alone = obj.teacher_.experts[0].model
    unlabeled = np.setdiff1d(np.arange(300), obj.labeled_)
    assert_allclose(obj.targets_[unlabeled], alone.predict_proba(MOONS)[unlabeled, 1], rtol=1e-6)


def test_held_out_predictions_of_a_classifier_have_not_seen_the_label():
    # Labels by lot, which only a row itself could tell: the nearest row of each is the row itself.
    y = np.where(np.arange(300) < 60, np.random.default_rng(0).integers(2, size=300), -1)
    labels, table = read_labels(y), read_table(MOONS)
    expert = EstimatorExpert.fit(KNeighborsClassifier(1), "nearest", table, labels)
    assert_array_equal(expert.predict(table)[labels.labeled], labels.targets)
    assert np.isin(expert.held_out, (0.0, 1.0)).all()
    assert np.mean(expert.held_out == labels.targets) < 0.75


def test_an_expert_sees_the_frame_that_was_passed():
    frame = pd.DataFrame({"left": MOONS[:, 0], "kind": pd.Categorical(np.where(TRUTH, "x", "z"), ["z", "y", "x"])})
    pipeline = make_pipeline(
        make_column_transformer((OneHotEncoder(categories=[["z", "y", "x"]]), ["kind"]), remainder="passthrough"),
        GaussianNB(),
    )
    obj = grbb_objective(frame, labels_of(TRUTH, 20), teacher=["graph", pipeline])
    assert obj.evidence_.weights["Pipeline"] > 0.5
    assert_array_equal(obj.targets_ > 0.5, TRUTH == 1)


@pytest.mark.parametrize(
    ("expert", "error", "message"),
    [
        (GaussianNB, TypeError, "Pass an instance as expert: GaussianNB"),
        (3, TypeError, "An expert is 'graph', 'forest', 'linear' or an estimator"),
        (LinearSVC(), TypeError, r"needs predict_proba; LinearSVC has none.*CalibratedClassifierCV"),
        ("boosting", ValueError, "experts must be some of"),
        (
            FrozenEstimator(GaussianNB().fit(MOONS, TRUTH + 5)),
            ValueError,
            r"knows the classes \[5, 6\], which y has not",
        ),
    ],
)
def test_experts_that_are_none(expert, error, message):
    with pytest.raises(error, match=message):
        grbb_objective(MOONS, labels_of(TRUTH, 20), teacher=["graph", expert])


@pytest.mark.filterwarnings("ignore::grbb_ext.GraphWarning")
def test_an_expert_that_cannot_be_fitted_is_named():
    y = labels_of(TRUTH, 20)
    with pytest.raises(ValueError, match=r"The expert XGBClassifier cannot be fitted: .* number them 0, 1, \.\.\. if"):
        grbb_objective(MOONS, np.where(y < 0, -1, y + 5), teacher=["graph", XGBClassifier(n_estimators=2)])
    holes = np.where(np.arange(300)[:, None] % 7, MOONS, np.nan)
    with pytest.raises(ValueError, match=r"The expert GaussianNB cannot be fitted: .*NaN") as raised:
        grbb_objective(holes, y, teacher=[GaussianNB()])
    assert "number them" not in str(raised.value)
    with pytest.raises(ValueError, match=r"The expert HistGradientBoostingClassifier cannot be fitted: .*dense"):
        grbb_objective(sp.csr_array(MOONS), y, teacher=[HistGradientBoostingClassifier()])


class _Unnamed(BaseEstimator):
    """A classifier that does not say which column is which class."""

    def fit(self, X, y):
        self.known = GaussianNB().fit(X, y)
        return self

    def predict_proba(self, X):
        return self.known.predict_proba(X)


def test_a_regression_on_zero_and_one_is_one():
    y = np.where(np.arange(300) % 10 == 0, np.arange(300) == 0, np.nan)  # a single 1
    one, two = (
        grbb_objective(MOONS, unit * y, loss="squared_error", teacher=["graph", Ridge()]).evidence_ for unit in (1, 2)
    )
    assert one.n_labels == two.n_labels == 30
    assert_allclose(one.weight, two.weight)


def test_one_expert_comes_in_a_list():
    with pytest.raises(TypeError, match=r"experts must be a list or a tuple, .*got GaussianNB\(\)"):
        Committee(experts=GaussianNB())


def test_an_expert_that_cannot_predict_is_named():
    y = labels_of(TRUTH, 20)
    with pytest.raises(ValueError, match=r"The expert KNeighborsClassifier cannot predict: .*n_neighbors = 50"):
        grbb_objective(MOONS, y, teacher=["graph", KNeighborsClassifier(50)])
    with pytest.raises(TypeError, match=r"needs classes_, in the order .*; _Unnamed has none"):
        grbb_objective(MOONS, y, teacher=["graph", _Unnamed()])


def test_experts_of_one_class_are_numbered():
    obj = grbb_objective(MOONS, labels_of(TRUTH, 20), teacher=[GaussianNB(), GaussianNB(var_smoothing=1e-3)])
    assert obj.evidence_.experts == ("GaussianNB 1", "GaussianNB 2")


def test_class_weights_move_the_operating_point():
    y = labels_of(TRUTH, 20)
    q, weighted = (grbb_objective(MOONS, y, class_weight=w).targets_ for w in (None, {0: 1.0, 1: 1000.0}))
    assert_allclose(weighted, 1000.0 * q / (1000.0 * q + 1 - q), atol=1e-6)
    assert np.mean(weighted > 0.5) > np.mean(q > 0.5) + 0.2
    # The gradient is that of the weighted loss: q w_1 (sigma - 1) + (1 - q) w_0 sigma.
    H = np.random.default_rng(0).normal(size=300)
    sigma = 1 / (1 + np.exp(-H))
    gradient, _ = grbb_objective(MOONS, y, class_weight={0: 1.0, 1: 1000.0})(H)
    assert_allclose(gradient, q * 1000.0 * (sigma - 1) + (1 - q) * sigma, rtol=1e-4, atol=1e-4)


def test_an_estimator_gets_labels_of_one_type():
    rows = np.random.default_rng(0).normal(size=(60, 3))
    y = [int(x > 0) if i < 20 else None for i, x in enumerate(rows[:, 0])]
    found = grbb_objective(rows, y, teacher=["graph", GaussianNB()])
    expected = grbb_objective(rows, [-1 if one is None else one for one in y], teacher=["graph", GaussianNB()])
    np.testing.assert_array_equal(found.targets_, expected.targets_)


@pytest.mark.parametrize("teacher", ["forest", ["linear", GaussianNB()]])
def test_experts_without_the_graph_are_never_replaced_by_it(teacher):
    y = labels_of(TRUTH, 20)
    names = ("forest",) if teacher == "forest" else ("linear", "GaussianNB")
    known = grbb_objective(MOONS[y >= 0], y[y >= 0], teacher=teacher)  # every row has a label
    assert known.evidence_.experts == names
    taught = grbb_objective(MOONS, y, teacher=known.teacher_)
    assert_allclose(taught.targets_[y < 0], known.teacher_.predict(MOONS)[y < 0], atol=1e-6)
    with pytest.raises(ValueError, match="'harmonic' is for the graph, which is none of the experts"):
        grbb_objective(MOONS, y, teacher=teacher, propagation="harmonic")
    with pytest.raises(ValueError, match="learn from the columns of X: pass X"):
        grbb_objective(None, y, teacher=teacher, graph=knn_graph(MOONS))


class _OneThread(GaussianNB):
    """A classifier that remembers the threads that asked it."""

    def predict_proba(self, X):
        self.threads_ = {*getattr(self, "threads_", ()), threading.get_ident()}
        return super().predict_proba(X)


def test_a_users_model_is_asked_by_one_thread():
    teacher = grbb_objective(MOONS, labels_of(TRUTH, 20), teacher=["graph", _OneThread()]).teacher_
    many = np.tile(MOONS, (1 + 40_000 // len(MOONS), 1))  # more than two blocks
    teacher.predict(many, n_jobs=4)
    assert teacher.experts[1].model.threads_ == {threading.get_ident()}


class _Wrong(GaussianNB):
    """A classifier that returns votes, fewer rows, or NaN."""

    def __init__(self, change=None):
        super().__init__()
        self.change = change

    def predict_proba(self, X):
        return self.change(super().predict_proba(X))


@pytest.mark.parametrize("change", [lambda p: 7.0 * p, lambda p: p[:-1], lambda p: p - 0.5, lambda p: p * np.nan])
def test_experts_return_probabilities(change):
    with pytest.raises(ValueError, match="predict_proba of the expert _Wrong has to return probabilities"):
        grbb_objective(MOONS, labels_of(TRUTH, 20), teacher=["graph", _Wrong(change)])


def test_the_unit_of_y_does_not_stop_the_trees():
    y = np.where(labels_of(TRUTH, 60) >= 0, MOONS[:, 0], np.nan)
    settings = {"loss": "squared_error", "teacher": "forest"}
    first, tiny = (grbb_objective(MOONS, unit * y, **settings).targets_ / unit for unit in (1.0, 2.0**-60))
    assert np.unique(tiny).size > 30
    assert np.corrcoef(first, tiny)[0, 1] > 0.9
    constant = grbb_objective(MOONS, np.where(np.isnan(y), np.nan, 1e10), **settings).targets_
    assert_allclose(constant, 1e10)
