import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import expit, softmax

from grbb_ext import grbb_objective
from grbb_ext.objective import UnreachableRowsWarning
from grbb_ext.propagation import PROPAGATIONS, SolverError
from grbb_ext.variance import VacuousVarianceWarning, prediction_variance
from grbb_ext.variance._prior import information_factor

KINDS = ["sandwich", "fisher"]
OPERATORS = ["harmonic", "nonlocal", "poisson", "smooth"]
pytestmark = pytest.mark.filterwarnings("ignore::grbb_ext.variance.VacuousVarianceWarning")


def random_problem(seed, n_rows=25, n_labeled=6, connected=True):
    random = np.random.default_rng(seed)
    W = np.triu(random.uniform(0.1, 2, (n_rows, n_rows)) * (random.random((n_rows, n_rows)) < 4 / n_rows), 1)
    if connected:
        W[np.arange(n_rows - 1), np.arange(1, n_rows)] += 0.3
    W = W + W.T
    labeled = np.sort(random.permutation(n_rows)[:n_labeled])
    y = np.full(n_rows, -1)
    y[labeled] = np.arange(n_labeled) % 2
    return W, y, labeled, 1.5 * random.normal(size=n_rows), random


def precision(operator, W, labeled, n_rows):
    """Return Q by its definition."""
    if operator == "smooth":
        root = 1 / np.sqrt(np.where(W.sum(1) > 0, W.sum(1), np.inf))
        M = np.eye(n_rows) - root[:, None] * W * root + 0.05 * np.eye(n_rows)
        K = np.linalg.matrix_power(np.linalg.inv(M), 3)
        return np.linalg.matrix_power(M, 3) * K[labeled, labeled].mean()
    if operator == "nonlocal":
        touched = np.isin(np.arange(n_rows), labeled)
        W = W * np.where(touched[:, None] | touched[None, :], n_rows / labeled.size, 1.0)
    return np.diag(W.sum(1)) - W


def reference(Q, labeled, p, lam, kind, curvature, weight=1.0):
    """Return slope^2 times the diagonal of inverse(I) J inverse(I), or of inverse(I)."""
    n_rows = p.size
    delta, middle = np.zeros(n_rows), np.zeros(n_rows)
    at = p[labeled] ** (2 if curvature == "paper" else 1) * (1 - p[labeled])
    delta[labeled], middle[labeled] = weight * at, weight**2 * at
    inverse = np.linalg.inv(np.diag(delta) + lam * Q)
    V = inverse if kind == "fisher" else inverse @ np.diag(middle) @ inverse
    return (p * (1 - p)) ** 2 * V.diagonal()


def variance(obj, H, **keywords):
    return prediction_variance(obj, H, **{"lam": 0.7, "per_row": True} | keywords)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("curvature", ["logistic", "paper"])
@pytest.mark.parametrize("method", ["dense", "schur"])
@pytest.mark.parametrize("seed", range(5))
def test_exact_forms_equal_the_dense_formula(operator, kind, curvature, method, seed):
    W, y, labeled, H, _ = random_problem(seed)
    obj = grbb_objective(None, y, graph=W, propagation=operator)
    found = variance(obj, H, kind=kind, curvature=curvature, method=method)
    expected = reference(precision(operator, W, labeled, y.size), labeled, expit(H), 0.7, kind, curvature)
    assert_allclose(found.per_row, expected, rtol=1e-10, atol=1e-12)
    assert_allclose(found.mean, expected.mean(), rtol=1e-10)


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.floats(0.01, 100), st.sampled_from(OPERATORS), st.sampled_from(KINDS))
def test_dense_and_schur_agree_on_any_graph(seed, lam, operator, kind):
    W, y, _, H, _ = random_problem(seed, n_labeled=int(seed % 20) + 2, connected=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        obj = grbb_objective(None, y, graph=W, propagation=operator)
        a, b = (variance(obj, H, lam=lam, kind=kind, method=method) for method in ("dense", "schur"))
    reached = np.isfinite(a.per_row)
    assert np.array_equal(reached, np.isfinite(b.per_row))
    assert_allclose(a.per_row[reached], b.per_row[reached], rtol=1e-7, atol=1e-11)


@pytest.mark.parametrize("operator", OPERATORS)
def test_weights_scale_curvature_once_and_score_variance_twice(operator):
    W, y, labeled, H, random = random_problem(1)
    weight = random.uniform(0.5, 2, y.size)
    obj = grbb_objective(None, y, graph=W, propagation=operator, sample_weight=weight)
    Q = precision(operator, W, labeled, y.size)
    for kind in KINDS:
        expected = reference(Q, labeled, expit(H), 0.7, kind, "logistic", weight[labeled])
        for method in ("dense", "schur"):
            assert_allclose(variance(obj, H, kind=kind, method=method).per_row, expected, rtol=1e-9)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("kind", KINDS)
def test_several_classes_are_the_mean_over_each_against_the_rest(operator, kind):
    W, y, labeled, _, random = random_problem(2)
    y[labeled] = np.arange(labeled.size) % 3
    H = random.normal(size=(y.size, 3))
    obj = grbb_objective(None, y, graph=W, propagation=operator)
    p, Q = softmax(H, axis=1), precision(operator, W, labeled, y.size)
    expected = np.mean([reference(Q, labeled, p[:, k], 0.7, kind, "logistic") for k in range(3)], axis=0)
    assert_allclose(variance(obj, H, kind=kind, method="schur").per_row, expected, rtol=1e-9)


@pytest.mark.parametrize("operator", ["smooth", "harmonic"])
@pytest.mark.parametrize("kind", KINDS)
def test_twenty_classes_equal_the_dense_formula(operator, kind):
    W, _, _, _, random = random_problem(3, n_rows=60)
    labeled = np.arange(0, 60, 2)
    y = np.full(60, -1)
    y[labeled] = np.arange(30) % 20
    H = 2 * random.normal(size=(60, 20))
    obj = grbb_objective(None, y, graph=W, propagation=operator)
    p, Q = softmax(H, axis=1), precision(operator, W, labeled, 60)
    found = variance(obj, H, lam=None, kind=kind)
    expected = np.mean([reference(Q, labeled, p[:, k], found.lam, kind, "logistic") for k in range(20)], axis=0)
    assert found.method == "schur"
    assert_allclose(found.per_row, expected, rtol=1e-8)
    assert_allclose(variance(obj, H, lam=None, kind=kind, method="dense").per_row, expected, rtol=1e-8)


def test_two_classes_give_the_same_in_either_form():
    W, y, _, H, _ = random_problem(3)
    binary = grbb_objective(None, y, graph=W)
    multi = grbb_objective(None, y, graph=W, loss="softmax")
    expected = variance(binary, H).per_row
    assert_allclose(variance(multi, np.column_stack([-H / 2, H / 2])).per_row, expected, rtol=1e-9)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("kind", KINDS)
def test_swapping_the_names_of_the_classes_changes_nothing_but_for_the_papers_curvature(operator, kind):
    W, y, _, H, _ = random_problem(4)
    swapped = np.where(y < 0, -1, 1 - y)
    one = grbb_objective(None, y, graph=W, propagation=operator)
    other = grbb_objective(None, swapped, graph=W, propagation=operator)
    keywords = {"lam": None, "kind": kind}
    assert_allclose(variance(one, H, **keywords).per_row, variance(other, -H, **keywords).per_row, rtol=1e-5)
    keywords = {"kind": kind, "curvature": "paper"}
    assert abs(variance(one, H, **keywords).mean / variance(other, -H, **keywords).mean - 1) > 0.01


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from(["harmonic", "poisson"]))
def test_another_label_never_raises_fisher_at_fixed_scores(seed, operator):
    W, y, _, H, random = random_problem(seed)
    more = y.copy()
    more[random.choice(np.flatnonzero(y < 0))] = 1
    before = variance(grbb_objective(None, y, graph=W, propagation=operator), H, kind="fisher").per_row
    after = variance(grbb_objective(None, more, graph=W, propagation=operator), H, kind="fisher").per_row
    assert (after <= before * (1 + 1e-9)).all()


def test_another_label_never_raises_fisher_of_a_fixed_kernel():
    # The kernel is scaled to a mean diagonal of 1 on labelled rows: at a fixed kernel lam has to follow the scale.
    for seed in range(20):
        W, y, _, H, random = random_problem(seed)
        more = y.copy()
        more[random.choice(np.flatnonzero(y < 0))] = 1
        one, other = (grbb_objective(None, labels, graph=W) for labels in (y, more))
        ratio = other.propagation_.kernel_scale / one.propagation_.kernel_scale
        before = variance(one, H, kind="fisher", lam=1.0).per_row
        assert (variance(other, H, kind="fisher", lam=ratio).per_row <= before * (1 + 1e-9)).all()


@pytest.mark.filterwarnings("ignore:Only the class")
def test_by_hand_two_rows_one_label():
    # I = [[1/4 + 1, -1], [-1, 1]] has the inverse [[4, 4], [4, 5]]; slopes are 1/4.
    obj = grbb_objective(None, [1, -1], graph=[[0, 1], [1, 0]], propagation="harmonic", classes=[0, 1], loss="logistic")
    found = prediction_variance(obj, np.zeros(2), lam=1.0, kind="fisher", per_row=True)
    assert_allclose(found.per_row, [4 / 16, 5 / 16])
    found = prediction_variance(obj, np.zeros(2), lam=1.0, per_row=True)
    assert_allclose(found.per_row, [0.25, 0.25])  # 4^2 / 4 / 16


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("method", ["dense", "schur", "stochastic"])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_no_label_reaches_are_infinite_and_left_out(operator, method, kind):
    W, y, _, H, _ = random_problem(5)
    with_island = sp.block_diag([W, np.ones((3, 3)) - np.eye(3), np.zeros((1, 1))]).toarray()
    direct = PROPAGATIONS[operator].replace(solver="direct")
    with pytest.warns(UnreachableRowsWarning):
        obj = grbb_objective(None, np.concatenate([y, [-1] * 4]), graph=with_island, propagation=direct)
    alone = grbb_objective(None, y, graph=W, propagation=operator)
    scores = np.concatenate([H, [0.3] * 4])
    found = variance(obj, scores, kind=kind, method=method, per_row=method != "stochastic")
    assert found.n_unreachable == 4
    if method == "stochastic":
        exact = variance(obj, scores, kind=kind)
        assert abs(found.mean - exact.mean) <= 6 * found.standard_error + 1e-3 * exact.mean
        return
    assert np.isinf(found.per_row[-4:]).all()
    assert_allclose(found.mean, found.per_row[:-4].mean())
    if operator != "nonlocal":  # its weights grow with N
        assert_allclose(found.per_row[:-4], variance(alone, H, kind=kind, method=method).per_row, rtol=1e-9)


@pytest.mark.parametrize("operator", OPERATORS)
def test_all_rows_labelled(operator):
    W, _, _, H, _ = random_problem(6, n_rows=8)
    y = np.arange(8) % 2
    obj = grbb_objective(None, y, graph=W, propagation=operator)
    Q = precision(operator, W, np.arange(8), 8)
    for kind in KINDS:
        expected = reference(Q, np.arange(8), expit(H), 0.7, kind, "logistic")
        assert_allclose(variance(obj, H, kind=kind, method="schur").per_row, expected, rtol=1e-9)


def test_saturated_scores_stay_finite():
    W, y, _, H, _ = random_problem(7)
    for operator in OPERATORS:
        obj = grbb_objective(None, y, graph=W, propagation=operator)
        for kind in KINDS:
            found = variance(obj, 1000 * np.sign(H), kind=kind, method="schur")
            assert found.mean == 0


def test_squared_error_is_ridge_regression_on_the_graph():
    W, y, labeled, H, random = random_problem(8)
    t = np.full(y.size, np.nan)
    t[labeled] = random.normal(3, 2, labeled.size)
    obj = grbb_objective(None, t, graph=W, loss="squared_error", propagation="harmonic")
    Q = precision("harmonic", W, labeled, y.size)
    selection = np.zeros((labeled.size, y.size))
    selection[np.arange(labeled.size), labeled] = 1
    hat = np.linalg.solve(selection.T @ selection + 0.7 * Q, selection.T)  # scores = hat t
    found = variance(obj, H)
    assert_allclose(found.per_row, found.noise_variance * (hat**2).sum(axis=1), rtol=1e-9)
    assert found.noise_variance > 0


def test_noise_variance_is_recovered():
    random = np.random.default_rng(0)
    n_rows = 300
    path = sp.diags_array([np.ones(n_rows - 1), np.ones(n_rows - 1)], offsets=[1, -1])
    noise = random.normal(0, 0.3, n_rows)
    t = np.sin(np.arange(n_rows) / 30) + noise
    obj = grbb_objective(None, t, graph=path, loss="squared_error")
    found = prediction_variance(obj, t)
    assert found.lam_chosen
    assert 0.07 < found.noise_variance < 0.115


def test_lam_is_given_or_the_objectives_or_by_evidence():
    W, y, _, H, _ = random_problem(9)
    with_lam = grbb_objective(None, y, graph=W, lam=0.3)
    assert variance(with_lam, H, lam=None).lam == 0.3
    assert variance(with_lam, H, lam=2.0).lam == 2.0
    found = prediction_variance(grbb_objective(None, y, graph=W), H)
    assert found.lam_chosen
    assert "chosen by the marginal likelihood" in found.message
    assert not variance(with_lam, H).lam_chosen


def test_result_is_frozen_and_says_what_was_used():
    W, y, _, H, _ = random_problem(10)
    found = prediction_variance(grbb_objective(None, y, graph=W), H, lam=1.0)
    assert (found.method, found.kind, found.curvature) == ("dense", "sandwich", "logistic")
    assert found.per_row is None
    assert found.standard_error == 0
    assert found.confidence_interval == (found.mean, found.mean)
    assert "method='auto' took 'dense'" in found.message
    with pytest.raises(AttributeError):
        found.mean = 0.0


def test_choices_are_logged(caplog):
    W, y, _, H, _ = random_problem(11)
    with caplog.at_level("INFO", logger="grbb_ext"):
        prediction_variance(grbb_objective(None, y, graph=W), H)
    assert "chosen by the marginal likelihood" in caplog.text


@pytest.mark.filterwarnings("error::grbb_ext.variance.VacuousVarianceWarning")
def test_warns_when_vacuous():
    W, y, _, _, _ = random_problem(12)
    obj = grbb_objective(None, y, graph=W, propagation="harmonic")
    with pytest.warns(VacuousVarianceWarning, match=r"cannot vary by more than 0\.25"):
        prediction_variance(obj, np.zeros(y.size), lam=1e-3, kind="fisher")


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"kind": "bayes"}, "kind must be 'sandwich' or 'fisher'"),
        ({"curvature": "softmax"}, "curvature must be 'logistic' or 'paper'"),
        ({"method": "lu"}, "method must be 'auto', 'dense', 'schur' or 'stochastic'"),
        ({"lam": 0.0}, "lam must be a positive number"),
        ({"lam": np.nan}, "lam must be a positive number"),
        ({"n_probes": 1}, "n_probes must be an integer of at least 2"),
        ({"n_probes": True}, "n_probes must be an integer"),
        ({"method": "stochastic", "per_row": True}, "estimates the mean only"),
    ],
)
def test_wrong_arguments_are_named(keywords, message):
    W, y, _, H, _ = random_problem(13)
    with pytest.raises(ValueError, match=message):
        prediction_variance(grbb_objective(None, y, graph=W), H, **keywords)


def test_wrong_scores_are_refused():
    W, y, _, H, _ = random_problem(13)
    with pytest.raises(ValueError, match="raw_scores must have shape"):
        prediction_variance(grbb_objective(None, y, graph=W), H[:-1])


def test_labeled_rule_has_no_operator():
    W, y, _, H, _ = random_problem(13)
    with pytest.raises(ValueError, match="rule='labeled' or with a fitted teacher has no operator"):
        prediction_variance(grbb_objective(None, y, graph=W, rule="labeled"), H)


def test_dense_is_refused_where_it_would_not_fit():
    n_rows = 20_001
    ring = sp.diags_array([np.ones(n_rows - 1), np.ones(n_rows - 1)], offsets=[1, -1])
    y = np.full(n_rows, -1)
    y[[0, 10_000]] = 0, 1
    obj = grbb_objective(None, y, graph=ring, rule="laplacian", lam=1.0, propagation="harmonic")
    with pytest.raises(ValueError, match="method='dense' inverts an N x N matrix"):
        prediction_variance(obj, np.zeros(n_rows), method="dense")


def test_one_value_is_not_enough_for_a_noise_variance():
    obj = grbb_objective(None, [1.0, np.nan], graph=[[0, 1], [1, 0]], loss="squared_error")
    with pytest.raises(ValueError, match="at least two labelled rows"):
        prediction_variance(obj, np.zeros(2), lam=1.0)


@pytest.mark.parametrize("operator", ["harmonic", "smooth"])
def test_memory_limit_of_the_objective_is_kept(operator):
    n_rows = 600
    path = sp.diags_array([np.ones(n_rows - 1), np.ones(n_rows - 1)], offsets=[1, -1])
    y = np.full(n_rows, -1)
    y[::100] = np.arange(6) % 2
    tight, roomy = (PROPAGATIONS[operator].replace(memory_limit=limit) for limit in (8 * 600 * 6 - 1, 8 * 600 * 6))
    obj = grbb_objective(None, y, graph=path, propagation=tight)
    assert prediction_variance(obj, np.zeros(n_rows), lam=1.0).method == "stochastic"
    with pytest.raises(MemoryError, match="Use method='stochastic'"):
        prediction_variance(obj, np.zeros(n_rows), lam=1.0, method="schur")
    obj = grbb_objective(None, y, graph=path, propagation=roomy)
    assert prediction_variance(obj, np.zeros(n_rows), lam=1.0).method == "schur"


def test_auto_takes_probes_where_the_exact_form_is_too_much_work(monkeypatch):
    W, y, labeled, _, random = random_problem(2)
    y[labeled] = np.arange(labeled.size) % 3
    H = random.normal(size=(y.size, 3))
    obj = grbb_objective(None, y, graph=W)
    work = 3 * y.size * labeled.size**2
    for limit, method in ((work, "schur"), (work - 1, "stochastic")):
        monkeypatch.setattr("grbb_ext.variance._prediction_variance._WORK_UP_TO", limit)
        assert prediction_variance(obj, H, lam=1.0).method == method


def test_curvatures_beyond_double_precision_are_refused_with_advice():
    W, y, labeled, H, _ = random_problem(2)
    weight = np.ones(y.size)
    weight[labeled[::2]], weight[labeled[1::2]] = 1e25, 1e-25
    obj = grbb_objective(None, y, graph=W, sample_weight=weight)
    with pytest.raises(SolverError, match="Pass another lam, or sample weights that differ less"):
        prediction_variance(obj, H, lam=1.0)
    with pytest.raises(SolverError, match="Pass another lam"):
        information_factor(np.ones((2, 2)))
