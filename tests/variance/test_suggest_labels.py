import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.special import expit
from sklearn.datasets import make_blobs, make_moons

from grbb_ext import RefinedGraph, grbb_objective, plan_labels, prediction_variance, suggest_labels
from grbb_ext.variance import FrozenPosterior, prior_of

OPERATORS = ["harmonic", "nonlocal", "poisson", "smooth"]
pytestmark = pytest.mark.filterwarnings("ignore::grbb_ext.variance.VacuousVarianceWarning")


def moons(n_rows=60, n_labeled=6, **keywords):
    X, truth = make_moons(n_rows, noise=0.15, random_state=0)
    y = np.where(np.arange(n_rows) < n_labeled, truth, -1)
    H = 1.5 * truth - 0.75 + 0.5 * np.random.default_rng(0).normal(size=n_rows)
    return X, truth, y, H, grbb_objective(X, y, graph=RefinedGraph(n_neighbors=5), **keywords)


def dense_posterior(obj, H, lam, extra):
    """Return inverse(I) with curvature on labelled and extra rows, by dense algebra."""
    prior = prior_of(obj)
    p = expit(H)
    delta = np.zeros(H.size)
    delta[np.concatenate([obj.labeled_, extra]).astype(int)] = 1.0
    delta *= p * (1 - p)
    before = np.linalg.inv(prior.dense_covariance((p * (1 - p))[obj.labeled_], lam))
    added = np.zeros(H.size)
    added[np.asarray(extra, dtype=int)] = (p * (1 - p))[np.asarray(extra, dtype=int)]
    return np.linalg.inv(before + np.diag(added))


def mean_fisher(obj, H, lam, extra):
    p = expit(H)
    return float(np.mean((p * (1 - p)) ** 2 * dense_posterior(obj, H, lam, extra).diagonal()))


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("strategy", ["a-optimal", "uncertainty", "random", "k-means"])
def test_drops_equal_recomputation(operator, strategy):
    X, _, _, H, obj = moons(propagation=operator)
    found = suggest_labels(obj, H, 6, strategy, lam=0.5, X=X)
    values = [mean_fisher(obj, H, 0.5, found.rows[:i]) for i in range(7)]
    assert_allclose(values[0], prediction_variance(obj, H, lam=0.5, kind="fisher").mean, rtol=1e-8)
    assert_allclose(found.expected_drop, -np.diff(values), rtol=1e-6)
    assert np.unique(found.rows).size == 6
    assert not np.isin(found.rows, obj.labeled_).any()


@pytest.mark.parametrize("operator", ["harmonic", "smooth"])
def test_greedy_takes_the_largest_drop_each_time(operator):
    _, _, _, H, obj = moons(n_rows=25, propagation=operator)
    found = suggest_labels(obj, H, 3, "a-optimal", lam=0.5)
    chosen = []
    for row, drop in zip(found.rows, found.expected_drop, strict=True):
        now = mean_fisher(obj, H, 0.5, chosen)
        others = [j for j in range(6, 25) if j not in chosen]
        drops = {j: now - mean_fisher(obj, H, 0.5, [*chosen, j]) for j in others}
        assert_allclose(max(drops.values()), drop, rtol=1e-6)
        assert_allclose(drops[row], drop, rtol=1e-6)
        chosen.append(row)


@pytest.mark.parametrize("strategy", ["a-optimal", "random"])
def test_a_label_counts_with_the_weight_of_its_row(strategy):
    rng = np.random.default_rng(0)
    W = np.triu(rng.random((30, 30)) * (rng.random((30, 30)) < 0.3), 1)
    y = np.where(np.arange(30) < 8, np.arange(30) % 2, -1)
    weight, H = rng.uniform(0.05, 4.0, 30), rng.normal(size=30)
    weight[20:] = 0.0
    obj = grbb_objective(None, y, graph=W + W.T, propagation="harmonic", sample_weight=weight)
    found = suggest_labels(obj, H, 5, strategy, lam=1.0)
    variance = [prediction_variance(obj, H, lam=1.0, kind="fisher").mean]
    for row in found.rows:
        y[row] = 1
        variance.append(prediction_variance(obj.with_labels(y), H, lam=1.0, kind="fisher").mean)
    assert_allclose(found.expected_drop, -np.diff(variance), atol=1e-12)
    assert strategy == "random" or (weight[found.rows] > 0).all()


def test_one_block_of_columns_gives_the_drops_of_one_after_the_other():
    _, _, _, H, obj = moons()
    slope = (expit(H) * (1 - expit(H)))[:, None]
    rows = np.array([20, 9, 41, 33])
    posterior = FrozenPosterior(prior_of(obj), slope[:6], slope, slope, 0.5, rows)
    at_once = posterior.drops_in_order(rows)
    assert_allclose([posterior.label(i) for i in range(4)], at_once, rtol=1e-9)
    # After these labels the posterior has moved on, and so have the drops of others.
    later = posterior.drops_in_order(np.array([12]))[0]
    expected = mean_fisher(obj, H, 0.5, rows) - mean_fisher(obj, H, 0.5, [*rows, 12])
    assert_allclose(later, expected, rtol=1e-6)


def test_several_classes_add_up():
    X, _, y, _, _ = moons()
    y[:6] = [0, 1, 2, 0, 1, 2]
    obj = grbb_objective(X, y, graph=RefinedGraph(n_neighbors=5))
    H = np.random.default_rng(1).normal(size=(60, 3))
    found = suggest_labels(obj, H, 2, "a-optimal", lam=1.0)
    before = prediction_variance(obj, H, lam=1.0, kind="fisher").mean
    prior = prior_of(obj)
    p = np.exp(H) / np.exp(H).sum(axis=1, keepdims=True)
    after = []
    for k in range(3):
        at = p[:, k] * (1 - p[:, k])
        added = np.zeros(60)
        added[found.rows] = at[found.rows]
        inverse = np.linalg.inv(np.linalg.inv(prior.dense_covariance(at[:6], 1.0)) + np.diag(added))
        after.append(np.mean(at**2 * inverse.diagonal()))
    assert_allclose(found.expected_drop.sum(), before - np.mean(after), rtol=1e-6)


def test_squared_error_drop_is_in_squared_units():
    X, _, _, H, _ = moons()
    t = np.full(60, np.nan)
    t[:10] = H[:10]
    one = suggest_labels(
        grbb_objective(X, t, graph=RefinedGraph(n_neighbors=5), loss="squared_error"), H, 2, "a-optimal", lam=1.0
    )
    ten = suggest_labels(
        grbb_objective(X, 10 * t, graph=RefinedGraph(n_neighbors=5), loss="squared_error"),
        10 * H,
        2,
        "a-optimal",
        lam=1.0,
    )
    assert one.rows.tolist() == ten.rows.tolist()
    assert_allclose(ten.expected_drop, 100 * one.expected_drop, rtol=1e-8)


def test_large_graphs_look_at_a_sample_in_single_precision(monkeypatch):
    X, truth = make_moons(3100, noise=0.1, random_state=0)
    y = np.where(np.arange(3100) < 10, truth, -1)
    obj = grbb_objective(X, y, teacher="graph", verbose=False)
    H = 2.0 * truth - 1.0
    found = suggest_labels(obj, H, 3, "a-optimal", lam=1.0, n_candidates=20)
    assert found.n_candidates == 20
    assert "20 of 3090 unlabelled rows" in found.message
    prior = prior_of(obj)
    slope = (expit(H) * (1 - expit(H)))[:, None]
    monkeypatch.setattr("grbb_ext.variance._posterior._EXACT_UP_TO", 10_000)
    exact = FrozenPosterior(prior, slope[obj.labeled_], slope, slope, 1.0, found.rows)
    assert_allclose([exact.label(i) for i in range(3)], found.expected_drop, rtol=1e-2)


def test_uncertainty_takes_the_smallest_margin():
    _, _, _, H, obj = moons()
    found = suggest_labels(obj, H, 4, "uncertainty", lam=1.0)
    expected = 6 + np.argsort(np.abs(H[6:]), kind="stable")[:4]
    assert found.rows.tolist() == expected.tolist()


def test_k_means_goes_where_no_label_is():
    X, blob = make_blobs([20, 40, 60], centers=[[0, 0], [10, 0], [0, 10]], cluster_std=0.5, random_state=0)
    first = np.flatnonzero(blob == 0)[:2]
    y = np.full(120, -1)
    y[first] = [0, 1]
    obj = grbb_objective(X, y, graph=RefinedGraph(n_neighbors=60))
    for rows in (X, None):
        found = suggest_labels(obj, np.zeros(120), 2, "k-means", X=rows, lam=1.0)
        assert (blob[found.rows] != 0).any()


def test_k_means_of_a_sparse_matrix_is_that_of_the_array():
    X, _, _, H, obj = moons()
    dense, sparse = (suggest_labels(obj, H, 4, X=rows, lam=1.0) for rows in (X, sp.csr_array(X)))
    assert sparse.rows.tolist() == dense.rows.tolist()


@pytest.mark.parametrize("container", ["pandas", "polars", "list"])
def test_k_means_takes_the_frame_with_categories_that_the_objective_took(container):
    X, _, y, H, _ = moons()
    right = X[:, 0] > 0.5
    columns = {"a": X[:, 0], "b": X[:, 1], "side": np.where(right, "right", "left")}
    if container == "list":
        frame = [list(row) for row in zip(*columns.values(), strict=True)]
    else:
        frame = pytest.importorskip(container).DataFrame(columns)
    obj = grbb_objective(frame, y, verbose=False)
    found = suggest_labels(obj, H, 4, X=frame, lam=1.0)
    codes = np.column_stack([X / X.std(axis=0), ~right, right])
    assert found.rows.tolist() == suggest_labels(obj, H, 4, X=codes, lam=1.0).rows.tolist()
    assert plan_labels(obj, H, 4, price=1.0, X=frame, lam=1.0).curves[0].rows.tolist() == found.rows.tolist()


def test_random_depends_on_the_seed_alone():
    _, _, _, H, obj = moons()
    one, same, other = (suggest_labels(obj, H, 5, "random", lam=1.0, random_state=s).rows for s in (0, 0, 1))
    assert one.tolist() == same.tolist()
    assert one.tolist() != other.tolist()


@pytest.mark.filterwarnings("ignore::grbb_ext.objective.UnreachableRowsWarning")
@pytest.mark.parametrize("strategy", ["a-optimal", "uncertainty", "random"])
def test_rows_out_of_reach_are_not_suggested(strategy):
    path = np.diag(np.ones(5), 1) + np.diag(np.ones(5), -1)
    graph = sp.block_diag([path, np.ones((4, 4)) - np.eye(4)])
    obj = grbb_objective(None, [0, -1, -1, -1, -1, 1, -1, -1, -1, -1], graph=graph)
    found = suggest_labels(obj, np.zeros(10), 4, strategy, lam=1.0)
    assert sorted(found.rows.tolist()) == [1, 2, 3, 4]
    assert "4 rows in components without a label" in found.message


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"strategy": "best"}, "strategy must be"),
        ({"k": 0}, "k must be a positive integer"),
        ({"k": 2.5}, "k must be a positive integer"),
        ({"k": True}, "k must be a positive integer"),
        ({"k": 55}, "only 54 unlabelled rows are within reach"),
        ({"n_candidates": 1}, "n_candidates must be at least k=2"),
        ({"n_candidates": 10.5}, "n_candidates must be a positive integer"),
        ({"lam": -1.0}, "lam must be a positive number"),
        ({"lam": "auto"}, "lam must be a positive number or None"),
        ({"strategy": "k-means", "X": np.zeros((3, 2))}, "X has 3 rows but the objective has 60"),
    ],
)
def test_wrong_arguments_are_named(keywords, message):
    _, _, _, H, obj = moons()
    with pytest.raises(ValueError, match=message):
        suggest_labels(obj, H, **{"k": 2} | keywords)


def test_uncertainty_is_not_for_regression():
    obj = grbb_objective(None, [0.0, np.nan, 1.0], graph=np.ones((3, 3)) - np.eye(3), loss="squared_error")
    with pytest.raises(ValueError, match="For squared error use 'a-optimal'"):
        suggest_labels(obj, np.zeros(3), 1, "uncertainty")


def test_labeled_rule_has_no_operator():
    X, _, y, H, _ = moons()
    with pytest.raises(ValueError, match="has no operator"):
        suggest_labels(grbb_objective(X, y, rule="labeled"), H, 1)
