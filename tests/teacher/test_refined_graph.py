"""The refined graph against a dense reference, and what must hold for any of them."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.metrics import euclidean_distances

from grbb_ext import RefinedGraph, Smooth, grbb_objective, knn_graph, prediction_variance, suggest_labels

RANDOM = np.random.default_rng(0)
N = 150
TRUTH = np.arange(N) % 2
X = np.column_stack([2.5 * TRUTH, np.zeros(N)]) + RANDOM.normal(size=(N, 2))
NOISY = np.hstack([X, RANDOM.normal(size=(N, 6))])
Y = np.where(np.arange(N) < 12, TRUTH, -1)
SMALL = RefinedGraph(n_passes=2, n_trees=20, n_candidates=30, normal_scores=False)


def dense_self_tuning(M, k=9):
    """The union k-nearest-neighbour affinity of a matrix of squared lengths."""
    M = M + np.diag(np.full(len(M), np.inf))
    order = np.argsort(M, axis=1)[:, :k]
    radius = np.sqrt(np.take_along_axis(M, order, axis=1)[:, -1])
    joined = np.zeros(M.shape, dtype=bool)
    np.put_along_axis(joined, order, True, axis=1)
    joined |= joined.T
    return np.where(joined, np.exp(-np.minimum(M / np.outer(radius, radius), 20.0)), 0.0)


def dense_targets(W, y):
    labeled = np.flatnonzero(y >= 0)
    t = 2.0 * y[labeled] - 1
    mean = t.mean()
    mean = mean * max(0.0, 1 - 4 / (len(t) * mean**2)) if mean else 0.0
    f = mean + Smooth().on(W, labeled).extend(t - mean)
    q = (1 + np.clip(f, -1, 1)) / 2
    q[labeled] = y[labeled]
    return q


def dense_refined(X, y, n_trees, n_passes, seed):
    """The recipe with all pairs of rows, straight from its description."""
    squared = euclidean_distances(X / X.std(axis=0), squared=True)
    plain = W = dense_self_tuning(squared)
    random = np.random.default_rng(seed)
    for _ in range(n_passes):
        trees = ExtraTreesRegressor(
            n_trees,
            min_samples_leaf=min(30, len(X) // 40),
            max_features=3,  # of 8 columns
            random_state=int(random.integers(2**31)),
        )
        target = dense_targets(W, y)
        target = (target - target.min()) / np.ptp(target)
        leaves = trees.fit(X, np.round(2**16 * target) / 2**16).apply(X)
        S = (leaves[:, None, :] == leaves[None, :, :]).mean(axis=2)
        W = (plain + dense_self_tuning(squared * (1.1 - S))) / 2
    return W


@pytest.mark.parametrize("n_passes", [1, 2])
def test_with_all_rows_as_candidates_it_is_the_dense_recipe(n_passes):
    settings = SMALL.replace(n_passes=n_passes, n_candidates=N - 1, scale="standard")
    obj = grbb_objective(NOISY, Y, graph=settings, random_state=3, teacher="graph")
    assert_allclose(obj.graph_.toarray(), dense_refined(NOISY, Y, 20, n_passes, 3), atol=1e-6)
    assert_allclose(obj.refinement_.targets, dense_targets(obj.graph_, Y), atol=1e-6)


@pytest.mark.parametrize("duplicates", [0, 30])
def test_the_affinity_is_symmetric_non_negative_and_hollow(duplicates):
    rows = np.vstack([NOISY, np.repeat(NOISY[:3], 10, axis=0)[:duplicates]])
    y = np.concatenate([Y, np.full(duplicates, -1)])
    W = grbb_objective(rows, y, graph=SMALL, teacher="graph").graph_
    assert W.shape == (N + duplicates, N + duplicates)
    assert abs(W - W.T).max() == 0
    assert W.data.min() > 0
    assert W.data.max() <= 1
    assert_array_equal(W.diagonal(), 0)
    assert (W > 0).sum(axis=1).min() >= 9


def test_it_depends_on_the_seed_alone():
    first, again, other = (grbb_objective(NOISY, Y, graph=SMALL, random_state=seed).graph_ for seed in (1, 1, 2))
    assert_array_equal(first.toarray(), again.toarray())
    assert abs(first - other).max() > 0
    threads = grbb_objective(NOISY, Y, graph=SMALL, random_state=1, n_jobs=1).graph_
    assert_array_equal(first.toarray(), threads.toarray())


def test_a_permutation_of_rows_permutes_the_graph():
    p = np.random.default_rng(5).permutation(N)
    W = grbb_objective(NOISY, Y, graph=SMALL, teacher="graph").graph_.toarray()
    permuted = grbb_objective(NOISY[p], Y[p], graph=SMALL, teacher="graph").graph_.toarray()
    assert_allclose(permuted, W[np.ix_(p, p)], atol=1e-9)


def test_evidence():
    obj = grbb_objective(NOISY, Y, graph=SMALL)
    found = obj.refinement_
    plain = knn_graph(NOISY)
    assert_allclose(found.plain.toarray(), plain.toarray())
    free = Y < 0
    same = (dense_targets(plain, Y)[free] > 0.5) == (dense_targets(obj.graph_, Y)[free] > 0.5)
    assert found.agreement == pytest.approx(same.mean())
    learned = (2 * obj.graph_ - plain).toarray() > 1e-12
    assert found.edges_kept == pytest.approx(learned[plain.toarray() > 0].mean())
    assert 0 < found.edges_kept < 1
    assert found.seconds > 0
    assert found.settings == SMALL
    assert "agreement=" in repr(found)
    assert grbb_objective(NOISY, Y, graph="knn").refinement_ is None


def test_irrelevant_columns_hurt_it_less():
    gains = []
    for seed in range(4):
        random = np.random.default_rng(seed)
        truth = random.integers(2, size=300)
        rows = np.hstack([2.0 * truth[:, None] + random.normal(size=(300, 3)), random.normal(size=(300, 60))])
        y = np.full(300, -1)
        y[:20] = truth[:20]
        plain, refined = (
            np.mean((grbb_objective(rows, y, graph=graph, teacher="graph").targets_[20:] > 0.5) == truth[20:])
            for graph in ("knn", RefinedGraph(n_trees=50, normal_scores=False))
        )
        gains.append(refined - plain)
    assert np.mean(gains) > 0.05
    assert min(gains) > 0


def test_several_classes_and_regression():
    three = np.where(np.arange(N) < 30, np.arange(N) % 3, -1)
    obj = grbb_objective(NOISY, three, graph=SMALL, teacher="graph")
    assert obj.targets_.shape == (N, 3)
    assert 0 < obj.refinement_.agreement <= 1
    values = np.where(np.arange(N) < 30, X[:, 0], np.nan)
    obj = grbb_objective(NOISY, values, graph=SMALL, loss="squared_error", teacher="graph")
    assert_allclose(obj.targets_[:30], values[:30], rtol=1e-6)
    plain = grbb_objective(NOISY, values, graph="knn", loss="squared_error", teacher="graph")
    error = [np.mean((o.targets_[30:] - X[30:, 0]) ** 2) for o in (plain, obj)]
    assert error[1] < error[0]
    assert -1 <= obj.refinement_.agreement <= 1


def test_with_two_classes_softmax_sees_the_graph_of_the_logistic_loss():
    logistic = grbb_objective(NOISY, Y, graph=SMALL)
    softmax = grbb_objective(NOISY, Y, graph=SMALL, loss="softmax")
    # Trees fitted to (1 - q, q) are those fitted to q.
    assert_allclose(softmax.graph_.toarray(), logistic.graph_.toarray(), atol=1e-6)


@pytest.mark.parametrize("rule", ["targets", "corrected", "laplacian"])
def test_every_rule_takes_it(rule):
    obj = grbb_objective(NOISY, Y, graph=SMALL, rule=rule, lam=0.1)
    assert_array_equal(obj.graph_.toarray(), obj.refinement_.graph.toarray())
    assert np.isfinite(obj(np.linspace(-1, 1, N))).all()


def test_variance_and_suggestions_use_its_laplacian():
    obj = grbb_objective(NOISY, Y, graph=SMALL, lam=0.1)
    same = grbb_objective(None, Y, graph=obj.graph_, lam=0.1)
    H = np.linspace(-1, 1, N)
    assert prediction_variance(obj, H).mean == pytest.approx(prediction_variance(same, H).mean)
    assert_array_equal(suggest_labels(obj, H, 3).rows, suggest_labels(same, H, 3).rows)


def test_the_settings_of_an_operator_are_used_on_it():
    obj = grbb_objective(NOISY, Y, graph=SMALL, propagation=Smooth(tau=0.5), teacher="graph")
    assert obj.propagation_.tau_ == 0.5
    assert_array_equal(obj.propagation_.W.toarray(), obj.refinement_.graph.toarray())


def test_it_pickles():
    obj = grbb_objective(NOISY, Y, graph=SMALL)
    other = pickle.loads(pickle.dumps(obj))
    H = np.linspace(-1, 1, N)
    assert_array_equal(other(H), obj(H))
    assert_array_equal(other.subset(np.arange(100))(H[:100]), obj.subset(np.arange(100))(H[:100]))


def test_names_and_defaults():
    refined = grbb_objective(NOISY, Y, graph="refined")
    assert refined.refinement_.settings == RefinedGraph(n_passes=2, n_trees=100)
    default = grbb_objective(NOISY, Y)
    assert default.refinement_ is None
    assert_array_equal(default.graph_.toarray(), refined.refinement_.plain.toarray())
    assert grbb_objective(NOISY, Y, preset="paper").refinement_ is None
    assert sp.issparse(grbb_objective(NOISY, Y, graph="knn").graph_)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"graph": "kernel"}, "graph must be 'table', 'knn', 'refined'"),
        ({"graph": "refined", "preset": "paper"}, "preset='paper' means graph='knn'"),
        ({"graph": "refined", "rule": "labeled"}, "no graph can be refined"),
        ({"graph": "refined", "X": None}, "Pass X, or a ready affinity"),
        ({"graph": "refined", "X": np.empty((N, 0))}, r"0 feature\(s\)"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        grbb_objective(**({"X": NOISY, "y": Y} | arguments))


@pytest.mark.parametrize(
    "name", ["n_passes", "n_trees", "n_candidates", "n_components", "min_samples_leaf", "max_samples"]
)
def test_wrong_settings(name):
    with pytest.raises(ValueError, match=f"{name} must be a positive integer"):
        RefinedGraph(**{name: 0})
    for wrong in (0.0, "sqrt"):
        with pytest.raises(ValueError, match="max_features is a share"):
            RefinedGraph(max_features=wrong)
    with pytest.raises(ValueError, match="normal_scores must be True or False"):
        RefinedGraph(normal_scores="yes")


def test_at_most_all_other_rows_are_neighbours():
    obj = grbb_objective(NOISY, Y, graph=SMALL.replace(n_neighbors=N), teacher="graph")
    assert obj.refinement_.settings.n_neighbors == N - 1
    assert_array_equal(np.diff(obj.graph_.indptr), N - 1)


def test_many_rows_are_refined_by_trees_of_a_sample():
    random = np.random.default_rng(0)
    truth = random.integers(2, size=600)
    rows = np.hstack([2.0 * truth[:, None] + random.normal(size=(600, 3)), random.normal(size=(600, 60))])
    y = np.where(np.arange(600) < 20, truth, -1)
    plain = grbb_objective(rows, y, graph="knn", teacher="graph")
    settings = RefinedGraph(n_trees=50, n_components=None, normal_scores=False, max_samples=300)
    sampled = grbb_objective(rows, y, graph=settings, teacher="graph")
    found = sampled.refinement_
    assert found.rows.size == found.plain_targets.size == 300
    assert_array_equal(found.rows[:20], np.arange(20))
    assert found.targets.size == 600
    assert found.settings.n_passes == 1
    assert_array_equal(found.plain.toarray(), plain.graph_.toarray())
    accuracy = [np.mean((obj.targets_[20:] > 0.5) == truth[20:]) for obj in (plain, sampled)]
    assert accuracy[1] > accuracy[0] + 0.02
    # Labels beyond the sample's size are all kept.
    many = np.where(np.arange(600) < 500, truth, -1)
    assert (
        grbb_objective(
            rows, many, graph=RefinedGraph(n_trees=5, max_samples=300), teacher="graph"
        ).refinement_.rows.size
        == 600
    )
