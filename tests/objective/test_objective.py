import copy
import pickle
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import xgboost as xgb
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_moons
from sklearn.naive_bayes import GaussianNB

from grbb_ext import (
    Committee,
    Corrected,
    Labeled,
    Paper,
    SharedGraph,
    Smooth,
    TableGraph,
    Targets,
    grbb_objective,
    knn_graph,
)
from grbb_ext.evaluation import evaluate

X, TRUTH = make_moons(120, noise=0.1, random_state=0)
Y = np.where(np.arange(120) % 12 == 0, TRUTH, -1)
THREE = np.where(np.arange(120) % 6 == 0, np.arange(120) // 6 % 3, -1)
H = np.random.default_rng(0).normal(size=120)
RULES = {
    "paper": {"preset": "paper"},
    "corrected": {"rule": "corrected"},
    "targets": {},
    "laplacian": {"rule": "laplacian", "lam": 0.1},
    "labeled": {"rule": "labeled"},
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("y", [Y, THREE])
def test_shapes_precision_and_independence_of_calls(rule, y):
    teacher = {"teacher": "graph"} if rule == "targets" else {}
    obj = grbb_objective(X, y, **RULES[rule], **teacher)
    scores = H if obj.n_outputs_ == 1 else np.column_stack([H, -H, 0 * H])
    gradient, hessian = obj(scores)
    assert gradient.shape == hessian.shape == scores.shape
    assert gradient.dtype == hessian.dtype == np.float64
    kept = gradient.copy()
    obj(scores + 1)
    assert_array_equal(gradient, kept)  # a later call does not write into an earlier result
    single = obj(scores.astype(np.float32))[0]
    assert single.dtype == np.float32
    assert_allclose(single, gradient, atol=1e-5)


@pytest.mark.parametrize("rule", RULES)
def test_a_permutation_of_rows_permutes_the_gradient(rule):
    p = np.random.default_rng(1).permutation(120)
    gradient, hessian = grbb_objective(X, Y, **RULES[rule])(H)
    permuted_gradient, permuted_hessian = grbb_objective(X[p], Y[p], **RULES[rule])(H[p])
    assert_allclose(permuted_gradient, gradient[p], atol=1e-5)
    assert_allclose(permuted_hessian, hessian[p], atol=1e-5)


@pytest.mark.parametrize("rule", RULES)
def test_it_pickles_and_copies(rule):
    obj = grbb_objective(X, Y, **RULES[rule])
    expected = obj(H)
    for other in (pickle.loads(pickle.dumps(obj)), copy.copy(obj), copy.deepcopy(obj)):
        assert_array_equal(other(H), expected)
    assert_allclose(
        pickle.loads(pickle.dumps(obj)).subset(np.arange(100))(H[:100]), obj.subset(np.arange(100))(H[:100])
    )


def test_the_graph_alone_gives_smooth_sharpened_targets():
    obj = grbb_objective(X, Y, graph="knn", teacher=Committee(("graph",), sharpen=3))
    P = Smooth().on(knn_graph(X), np.flatnonzero(Y >= 0))
    q = np.clip((1 + P.extend(2.0 * Y[Y >= 0] - 1)) / 2, 0, 1)
    q = q**3 / (q**3 + (1 - q) ** 3)
    q[Y >= 0] = Y[Y >= 0]
    assert_allclose(obj.targets_, q, atol=1e-6)
    assert "smooth" in repr(obj)


def test_the_papers_preset_uses_binary_weights_unless_a_graph_is_given():
    assert_array_equal(np.unique(grbb_objective(X, Y, preset="paper").graph_.data), [1.0])
    W = knn_graph(X)
    assert_allclose(grbb_objective(None, Y, graph=W, preset="paper").graph_.toarray(), W.toarray())


def test_the_settings_of_an_operator_are_used():
    W = knn_graph(X)
    smooth = Smooth(tau=0.5)
    obj = grbb_objective(None, Y, graph=W, propagation=smooth, teacher=Committee(sharpen=1))
    assert obj.propagation_.spec is smooth
    values = 2.0 * Y[Y >= 0] - 1
    assert_array_equal(obj.propagation_.extend(values), smooth.on(W, np.flatnonzero(Y >= 0)).extend(values))
    part = obj.subset(np.arange(60))
    assert part.propagation_.tau_ == 0.5
    assert part.propagation_.n_rows == 60


def test_a_subset_is_the_objective_of_the_cut_graph_and_forgets_the_other_labels():
    W = knn_graph(X)
    rows = np.random.default_rng(0).permutation(120)[:90]
    expected = grbb_objective(None, Y[rows], graph=W[rows][:, rows])
    part = grbb_objective(None, Y, graph=W).subset(rows)
    assert_allclose(part(H[rows]), expected(H[rows]))
    mask = np.zeros(120, dtype=bool)
    mask[rows] = True
    assert grbb_objective(None, Y, graph=W).subset(mask).n_rows_ == 90
    only_one_class = np.flatnonzero(Y != 1)
    with pytest.warns(UserWarning, match="Only the class 0"):
        assert grbb_objective(None, Y, graph=W).subset(only_one_class).classes_.tolist() == [0, 1]


def test_weights_multiply_gradient_and_hessian():
    weight = np.random.default_rng(0).uniform(0.5, 2, 120)
    plain, weighted = grbb_objective(X, Y), grbb_objective(X, Y, sample_weight=weight)
    for a, b in zip(plain(H), weighted(H), strict=True):
        assert_allclose(b, weight * a, rtol=1e-5)
    plain, weighted = (
        grbb_objective(X, Y, preset="paper"),
        grbb_objective(X, Y, preset="paper", sample_weight=2 * weight),
    )
    labeled = Y >= 0
    # In the paper's rule a weight belongs to the loss; unlabelled rows get what their neighbours' weighted losses say.
    assert_allclose(weighted(H)[0][labeled], 2 * (weight * plain(H)[0])[labeled], rtol=1e-5)
    assert_array_equal(weighted(H)[1][labeled], 1)
    assert_allclose(weighted(H)[1][~labeled], 2 * weight[~labeled], rtol=1e-6)


def test_class_weights_reach_soft_targets_in_proportion():
    plain, weighted = grbb_objective(X, Y), grbb_objective(X, Y, class_weight={0: 1.0, 1: 3.0})
    q, sigma = plain.targets_, 1 / (1 + np.exp(-H))
    assert_allclose(weighted(H)[0], 3 * q * (sigma - 1) + (1 - q) * sigma, rtol=1e-5, atol=1e-6)
    assert_allclose(weighted(H)[1], (1 + 2 * q) * sigma * (1 - sigma), rtol=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_in_place_of_raw_scores_are_noticed(n_classes):
    """What an XGBoost model of the pages predicts: taken for raw scores, every row would be of the second class."""
    X, truth = np.arange(60.0)[:, None], np.arange(60) * n_classes // 60
    obj = grbb_objective(X, np.where(np.arange(60) % 4 == 0, truth, -1))
    named = {"objective": "binary:logistic", "base_score": 0.5}
    if n_classes == 3:
        named = {"objective": "multi:softprob", "base_score": 0, "num_class": 3}
    booster = xgb.train({**named, "nthread": 1}, xgb.DMatrix(X), 5, obj=obj)
    for answer in (obj.predict, obj.predict_proba):
        with pytest.warns(UserWarning, match="look like probabilities"):
            answer(booster.predict(xgb.DMatrix(X)))
    with warnings.catch_warnings(action="error"):
        obj.predict(booster.predict(xgb.DMatrix(X), output_margin=True))


def test_predictions_from_raw_scores():
    obj = grbb_objective(X, np.where(Y >= 0, np.array([3, 8])[Y], -1))
    assert_allclose(obj.predict_proba([0.0, 2.0]), [[0.5, 0.5], [1 / (1 + np.exp(2)), 1 / (1 + np.exp(-2))]])
    assert_array_equal(obj.predict([-1.0, 1.0]), [3, 8])
    three = grbb_objective(X, THREE, teacher="graph")
    assert_array_equal(three.predict(np.eye(3) * 5), [0, 1, 2])
    regression = grbb_objective(X, np.where(Y >= 0, Y, np.nan), loss="squared_error")
    assert_array_equal(regression.predict([1.5]), [1.5])
    with pytest.raises(ValueError, match="raw scores are predictions"):
        regression.predict_proba([1.5])


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (np.zeros(119), r"must have shape \(120,\), got \(119,\).*use cv of grbb_ext\.adapters\.xgboost"),
        (np.zeros((120, 2)), "leave num_class out"),
        (np.full(120, np.nan), "not finite.*lower the learning rate"),
        (np.where(np.arange(120) == 7, np.inf, 0.0), "first at row 7"),
    ],
)
def test_wrong_scores(scores, message):
    with pytest.raises(ValueError, match=message):
        grbb_objective(X, Y)(scores)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (np.zeros(120), "num_class=3"),
        (np.zeros((3, 120)), r"\(classes, rows\): pass the transpose"),
        (np.zeros((120, 4)), r"must have shape \(120, 3\)"),
    ],
)
def test_wrong_scores_of_several_classes(scores, message):
    with pytest.raises(ValueError, match=message):
        grbb_objective(X, THREE, teacher="graph")(scores)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rule": "magic"}, "rule must be one of"),
        ({"preset": "nips"}, "preset must be"),
        ({"preset": "paper", "rule": "targets"}, "preset='paper' means rule='paper'"),
        ({"preset": "paper", "propagation": "smooth"}, "preset='paper' means propagation='harmonic'"),
        ({"preset": "paper", "rule": Targets()}, "preset='paper' means rule='paper'"),
        ({"rule": "laplacian"}, r"needs lam > 0.*rule=Laplacian\(lam=0\.1\)"),
        ({"rule": "corrected", "propagation": "smooth"}, "Use propagation='nonlocal'.*hessian='unit'"),
        ({"rule": "corrected", "propagation": "poisson"}, "which 'poisson' can turn negative"),
        ({"rule": "paper", "teacher": "graph"}, "rule='paper' has no teacher"),
        ({"rule": "labeled", "teacher": Committee()}, "rule='labeled' has no teacher"),
        ({"teacher": "forests"}, "teacher must be one of.*or a Committee or a fitted Teacher"),
        ({"teacher": ["graph", "graph"]}, "experts must be some of"),
        ({"lam": -1.0}, "lam must be a finite number of at least 0"),
        ({"lam": np.nan}, "lam must be a finite number"),
        ({"propagation": "magic"}, "propagation must be one of"),
        ({"X": None}, "Pass X, or a ready affinity"),
        ({"X": X[:50]}, "X has 50 rows but y has 120"),
        ({"graph": np.eye(3)}, "graph has 3 rows but y has 120"),
        ({"X": X[:50], "graph": np.eye(120)}, "X has 50 rows but y has 120"),
        ({"y": np.full(120, -1)}, "no labelled row"),
        ({"sample_weight": np.ones(3)}, "each of the 120 rows"),
        ({"sample_weight": np.zeros(120)}, "all labelled rows are zero.* Give some of them a weight above 0"),
        ({"sample_weight": np.where(Y < 0, 1.0, 0.0)}, "all labelled rows are zero"),
        *(({"n_jobs": value}, "n_jobs must be a positive integer, -1 or None") for value in (0, "all", 2.0, True)),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        grbb_objective(**({"X": X, "y": Y} | arguments))


@pytest.mark.parametrize(
    ("spec", "arguments", "message"),
    [
        (Committee, {"sharpen": 0.5}, "sharpen must be a finite number of at least 1"),
        (Corrected, {"correction": -1.0}, "correction must be"),
        (Corrected, {"hessian": "full"}, "hessian must be"),
        (Targets, {"hessian": "full"}, "hessian must be"),
        (Paper().replace, {"hessian": "newton"}, "Paper has no parameter 'hessian'"),  # it is defined with hessian 1
    ],
)
def test_wrong_fields(spec, arguments, message):
    with pytest.raises(ValueError, match=message):
        spec(**arguments)


def test_labelled_only_needs_no_rows():
    obj = grbb_objective(None, Y, rule="labeled")
    assert obj.graph_ is None
    assert obj.propagation_ is None
    assert_array_equal(obj.subset(np.arange(60))(H[:60]), np.array(obj(H))[:, :60])


def test_the_call_order_of_scikit_learns_wrappers_is_refused():
    with pytest.raises(TypeError, match=r"called as \(labels, scores\)"):
        grbb_objective(X, Y)(Y, np.zeros(120))


def test_a_graph_in_any_sparse_format():
    W = knn_graph(X)
    expected = grbb_objective(None, Y, graph=W)(H)
    for given in (sp.coo_matrix(W), W.toarray(), W.tocsc()):
        assert_allclose(grbb_objective(None, Y, graph=given)(H), expected)


def test_the_time_of_each_stage_is_kept():
    start = time.perf_counter()
    obj = grbb_objective(X, Y)
    took = time.perf_counter() - start
    assert list(obj.timings_) == ["table", "graph", "graph expert", "forest", "linear", "weights", "gradients"]
    assert min(obj.timings_.values()) > 0
    assert 0.5 * took < sum(obj.timings_.values()) < took  # the rest is the reading of labels and options
    assert list(obj.with_labels(Y).timings_) == ["graph expert", "forest", "linear", "weights", "gradients"]
    assert list(grbb_objective(X, Y, teacher=obj.teacher_).timings_) == ["table", "targets", "gradients"]
    assert list(grbb_objective(X, Y, preset="paper").timings_) == ["table", "graph", "propagation", "gradients"]
    assert "GaussianNB" in grbb_objective(X, Y, teacher=["graph", GaussianNB()]).timings_


@pytest.mark.filterwarnings("ignore::grbb_ext.UnreachableRowsWarning")
def test_weights_of_the_caller_are_not_touched():
    """Rows that no label reaches weigh nothing, in the objective alone; frames hand out read-only weights."""
    W = np.kron(np.eye(2), np.ones((3, 3)) - np.eye(3))
    weight = np.full(6, 2.0)
    obj = grbb_objective(None, [0, -1, 1, -1, -1, -1], graph=W, teacher="graph", sample_weight=weight)
    assert obj.soft_labels()[1].tolist() == [2, 2, 2, 0, 0, 0]
    assert (weight == 2.0).all()
    assert (obj.with_labels([0, -1, 1, 0, -1, 1]).soft_labels()[1] == 2.0).all()
    weight.setflags(write=False)
    grbb_objective(None, [0, -1, 1, -1, -1, -1], graph=W, teacher="graph", sample_weight=weight)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_of_another_shape_are_refused(n_classes):
    obj = grbb_objective(None, [*range(n_classes), -1], rule="labeled")
    right = (5,) if n_classes == 2 else (5, 3)
    assert len(obj.predict(np.zeros(right))) == 5
    for wrong in ((5, 1), (5, 4), (5, 3) if n_classes == 2 else (5,)):
        for answer in (obj.predict, obj.predict_proba):
            with pytest.raises(ValueError, match="raw_scores must have shape"):
                answer(np.zeros(wrong))
        with pytest.raises(ValueError, match="raw_scores"):
            evaluate(obj, np.zeros(wrong), [0, 1, 1, 0, 1], "accuracy")
    with pytest.raises(ValueError, match="not finite"):
        obj.predict(np.full(right, np.nan))


def test_a_teacher_of_another_loss_is_refused():
    soft = grbb_objective(X, Y, loss="softmax").teacher_
    with pytest.raises(ValueError, match="'softmax', but the labels have 'logistic'"):
        grbb_objective(X, Y, teacher=soft)


@pytest.mark.parametrize(("y", "weights"), [(Y, {0: 0.0, 1: 1.0}), (THREE, {0: 0.0, 1: 1.0, 2: 0.0})])
def test_a_class_that_weighs_nothing(y, weights):
    obj = grbb_objective(X, y, class_weight=weights)
    q, weight = obj.soft_labels()
    assert np.isfinite(q).all()
    of_first = weight[np.flatnonzero(y == 0)]
    assert (of_first == 0).all()


def test_metrics_take_what_the_objective_takes():
    obj = grbb_objective(X, np.where(Y < 0, np.nan, X[:, 0]), loss="squared_error")
    numbers = [None if mark < 0 else float(x) for mark, x in zip(Y, X[:, 0], strict=True)]
    assert evaluate(obj, X[:, 0], numbers, "rmse").value == 0.0
    with pytest.raises(ValueError, match="one weight for each of the 120 rows"):
        evaluate(grbb_objective(X, Y), X[:, 0], Y, "loss", np.ones(10))
    obj = grbb_objective(None, [0, 1, -1], rule="labeled")
    with pytest.raises(ValueError, match="weights of all labelled rows"):
        evaluate(obj, [0.0, 1.0, 2.0], [0, 1, -1], "loss", [0, 0, 1])


def test_labels_that_the_caller_fills_in_later_are_not_those_of_the_objective():
    y, weight = Y.copy(), np.ones(120)
    obj = grbb_objective(X, y, sample_weight=weight)
    y[:60], weight[:] = TRUTH[:60], 9
    assert_array_equal(obj.y_, Y)
    assert obj.subset(np.arange(60)).labeled_.size == 5
    assert obj.subset(np.arange(60)).sample_weight_.sum() == 60


@pytest.mark.parametrize("y", [["no", -1, "yes"], [["no"], [None], ["yes"]]])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_metrics_read_labels_as_a_fit_does(y):
    obj = grbb_objective(X, np.where(Y < 0, None, np.array(["no", "yes"])[TRUTH]))
    assert evaluate(obj, [-1.0, 0.0, 1.0], y, "accuracy").value == 1


@pytest.mark.parametrize(
    "options",
    [
        {"rule": "paper"},
        {"rule": "corrected"},
        {"rule": "laplacian", "lam": 0.1},
        {"rule": Labeled(lam=0.1)},
        {"propagation": "nonlocal"},
    ],
)
def test_a_shared_graph_with_fewer_nodes_than_rows_serves_rules_that_need_them_all(options):
    few = TableGraph(max_nodes=60)
    obj = grbb_objective(X, Y, graph=SharedGraph(X, few), **options)
    assert_array_equal(obj(H), grbb_objective(X, Y, graph=few, **options)(H))
    assert obj.graph_.shape == (120, 120)
    assert np.diff(obj.graph_.indptr).min() > 0


def test_a_fitted_teacher_beside_the_laplacian_of_all_rows():
    teacher = grbb_objective(X, Y).teacher_
    obj = grbb_objective(X, Y, teacher=teacher, graph=TableGraph(max_nodes=60), lam=0.1)
    assert np.isfinite(obj(H)).all()


@pytest.mark.filterwarnings("error::grbb_ext.GraphWarning")  # the graph would warn of the missing values
@pytest.mark.parametrize("options", [{"class_weight": {5: 2.0}}, {"teacher": Committee(class_prior={0: 0.5, 5: 0.5})}])
def test_classes_that_y_does_not_have_are_found_before_the_graph(options):
    with pytest.raises(ValueError, match=r"names \["):
        grbb_objective(np.where(X > 1, np.nan, X), Y, **options)


@pytest.mark.parametrize("rows", [[], [0, 0, 1], [0, 10_000], [0.0, 1.0], np.ones(3, dtype=bool), np.ones(len(Y), int)])
def test_a_subset_is_of_rows_that_are_there_once(rows):
    with pytest.raises(ValueError, match="rows must be positions among the"):
        grbb_objective(X, Y, graph="knn").subset(rows)


@pytest.mark.parametrize("seed", [None, -1, 1.5, np.random.default_rng(0)])
def test_the_seed_is_a_number(seed):
    with pytest.raises(ValueError, match="random_state must be an integer of at least 0"):
        grbb_objective(X, Y, random_state=seed)
