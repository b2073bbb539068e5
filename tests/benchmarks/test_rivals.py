from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import xgboost as xgb
from numpy.typing import NDArray

from benchmarks.data import load
from benchmarks.rivals import METHODS, TREES, Fitted, Problem, _methods, bins, parameters
from benchmarks.rivals._methods import class_1, pca_graph, plain_and_learned, propagated, spread
from benchmarks.splits import Split, draw
from grbb_ext import Committee, Targets, grbb_objective, knn_graph


def two_blobs(n: int = 60) -> Problem:
    """Return two groups far apart with two labels each; the second column says nothing.

    Test rows lie in the middle of the groups: XGBoost's thresholds are values of training rows, not between them.
    """
    random = np.random.default_rng(0)
    truth = np.arange(2 * n) % 2
    X = np.column_stack([10.0 * truth + random.normal(size=2 * n), random.normal(size=2 * n)]).astype(np.float32)
    X[n:, 0] = 10 * truth[n:]
    y = np.full(n, -1)
    for label in (0, 1):  # the rows nearest to the middle, so that labels alone are enough
        nearest = np.argsort(np.where(truth[:n] == label, np.abs(X[:n, 0] - 5), np.inf))[:2]
        y[nearest] = label
    return Problem(Split(X[:n], y, X[n:], truth[n:]))


@cache
def digits() -> Problem:
    return Problem(draw(load("digits1v8"), 0, 20))


def accuracy(fitted: Fitted, problem: Problem, trees: int = 50) -> float:
    return float(np.mean(fitted.classes(trees) == problem.split.truth))


def by_hand(problem: Problem, X: NDArray[np.float32], obj: Callable[..., object] | None, **info: object) -> list[int]:
    """Train without the code of the rivals and return the predicted classes after 10 trees."""
    data = xgb.QuantileDMatrix(X, max_bin=problem.max_bin, **info)
    start = {"base_score": 0} if obj else {"base_score": 0.5, "objective": "binary:logistic"}
    booster = xgb.train(parameters(problem.max_bin) | start, data, 10, obj=obj)
    scores = booster.predict(xgb.DMatrix(problem.split.X_test), output_margin=True)
    return list((scores > 0).astype(int))


@pytest.mark.parametrize("method", METHODS)
def test_every_method_tells_two_groups_apart(method: str) -> None:
    problem = two_blobs()
    fitted = METHODS[method](problem)
    for trees in TREES:
        assert accuracy(fitted, problem, trees) == 1.0
        assert set(fitted.features(trees) or []) <= {0, 1}


def test_labeled_only_is_the_booster_on_the_labeled_rows() -> None:
    problem = digits()
    rows = problem.split.y >= 0
    expected = by_hand(problem, problem.split.X[rows], None, label=problem.split.y[rows])
    assert METHODS["labeled only"](problem).classes(10).tolist() == expected


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("hard", {"propagation": "nonlocal", "rule": Targets(hard=True)}),
        ("soft", {"propagation": "nonlocal", "teacher": Committee(sharpen=1.0)}),
        ("knn smooth", {"teacher": Committee(sharpen=3.0), "propagation": "smooth"}),
    ],
)
def test_a_member_of_the_family_is_what_the_package_gives(method: str, settings: dict[str, object]) -> None:
    problem = digits()
    obj = grbb_objective(None, problem.split.y, graph=knn_graph(problem.split.X), **settings)  # type: ignore[arg-type]
    expected = by_hand(problem, problem.split.X, obj)
    assert np.mean(METHODS[method](problem).classes(10) == expected) > 0.995  # rounding may turn a tie


def test_the_default_and_the_paper_are_called_as_a_user_would() -> None:
    problem = digits()
    for method, settings in (("default", {}), ("paper", {"preset": "paper"})):
        obj = grbb_objective(problem.split.X, problem.split.y, **settings)  # type: ignore[arg-type]
        assert METHODS[method](problem).classes(10).tolist() == by_hand(problem, problem.split.X, obj)


def test_refined_graph_is_the_mean_of_what_the_two_operators_see() -> None:
    problem = digits()
    plain, learned = plain_and_learned(problem)
    alone = propagated(problem, (plain + learned) / 2, propagation="smooth", sharpen=3.0)
    assert METHODS["refined graph alone"](problem).classes(10).tolist() == by_hand(
        problem, problem.split.X, None, label=alone
    )
    assert abs(plain - learned).sum() > 0.1 * plain.sum()
    for graph in (plain, learned):  # nine neighbours of a row, and the rows that have it as a neighbour
        assert graph.min() == 0
        assert np.diff(graph.indptr).min() >= 9


def test_two_operators_are_averaged_before_they_are_sharpened() -> None:
    problem = digits()
    a, b = (propagated(problem, W, propagation="smooth", sharpen=1.0) for W in plain_and_learned(problem))
    q = (a + b) / 2
    expected = by_hand(problem, problem.split.X, None, label=q**3 / (q**3 + (1 - q) ** 3))
    assert np.mean(METHODS["two operators"](problem).classes(10) == expected) > 0.995


def test_soft_targets_solve_the_nonlocal_equations() -> None:
    problem = two_blobs(40)
    labeled = problem.labeled
    W = problem.graph.toarray()
    W[labeled] *= 40 / 4
    W[:, labeled] = W[labeled].T
    L = np.diag(W.sum(axis=1)) - W
    others = np.setdiff1d(np.arange(40), labeled)
    expected = -np.linalg.solve(L[np.ix_(others, others)], L[np.ix_(others, labeled)] @ problem.split.y[labeled])
    q = propagated(problem, problem.graph, propagation="nonlocal", sharpen=1.0)
    assert q[others] == pytest.approx(expected, abs=1e-5)


def test_rows_that_no_label_reaches_are_left_out() -> None:
    # Three groups, the third without a label: a tree may not learn from its rows, wherever they lie.
    X = np.concatenate([np.arange(15) / 15, 100 + np.arange(15) / 15, 200 + np.arange(15) / 15])[:, None]
    y = np.full(45, -1)
    y[[0, 15]] = 0, 1
    problem = Problem(Split(X.astype(np.float32), y, X.astype(np.float32), y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        q = propagated(problem, problem.graph, propagation="nonlocal", hard=True)
        by_spreading = class_1(spread(problem).label_distributions_)
        assert METHODS["hard"](problem).classes(50)[:30].tolist() == [0] * 15 + [1] * 15
        assert METHODS["spreading, booster"](problem).classes(50)[:30].tolist() == [0] * 15 + [1] * 15
    for targets in (q, by_spreading):
        assert np.isnan(targets[30:]).all()
        assert (targets[:30] > 0.5).tolist() == [False] * 15 + [True] * 15


def test_the_pca_graph_is_that_of_standardised_scores() -> None:
    problem = digits()
    X = problem.split.X.astype(np.float64)
    deviation = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1)
    U, singular, _ = np.linalg.svd(Z, full_matrices=False)
    share = np.cumsum(singular**2) / np.sum(singular**2)
    n = 1 + int(np.argmax(share >= 0.95))
    assert 20 < n < 50
    expected = knn_graph(U[:, :n] * singular[:n], scale=None)
    assert np.abs((pca_graph(problem) - expected).toarray()).max() < 1e-6


def test_at_most_fifty_components() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(150, 120)).astype(np.float32)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    U, singular, _ = np.linalg.svd(Z.astype(np.float64), full_matrices=False)
    y = np.where(np.arange(150) < 4, np.arange(150) % 2, -1)
    found = pca_graph(Problem(Split(X, y, X, y)))
    assert np.abs((found - knn_graph(U[:, :50] * singular[:50], scale=None)).toarray()).max() < 1e-4


def test_self_training_adds_what_it_is_sure_of_and_fits_again() -> None:
    problem = digits()
    X, y = problem.split.X, problem.split.y.copy()
    for _ in range(11):
        known = y >= 0
        logistic = {"objective": "binary:logistic", "base_score": 0.5}
        data = xgb.QuantileDMatrix(X[known], label=y[known], max_bin=problem.max_bin)
        booster = xgb.train(parameters(problem.max_bin) | logistic, data, 50)
        p = booster.predict(xgb.DMatrix(X))
        sure = ~known & (np.abs(p - 0.5) > 0.25)
        if not sure.any():
            break
        y[sure] = p[sure] > 0.5
    expected = booster.predict(xgb.DMatrix(problem.split.X_test)) > 0.5
    assert np.array_equal(METHODS["self-training"](problem).classes(50), expected)


def test_label_spreading_repeats_its_fixed_point() -> None:
    """F = (1 - alpha) (I - alpha S)^-1 Y, alpha = .2, S the neighbours' matrix as scikit-learn makes it."""
    problem = two_blobs(40)
    model = spread(problem)
    S = np.asarray(model._build_graph().todense() if hasattr(model._build_graph(), "todense") else model._build_graph())
    Y = np.zeros((40, 2))
    Y[problem.labeled, problem.split.y[problem.labeled]] = 1
    F = 0.8 * np.linalg.solve(np.eye(40) - 0.2 * S, Y)
    expected = F[:, 1] / F.sum(axis=1)
    assert class_1(model.label_distributions_) == pytest.approx(expected, abs=0.02)
    assert METHODS["spreading"](problem).features(10) is None


def test_graphlearning_where_it_is_installed() -> None:
    if not _methods.is_installed():
        assert "poisson, booster" not in METHODS
        return
    # A quarter of the labels are of class 1: without the right constant Poisson learning is at one half here.
    problem = digits()
    for method in ("laplace, booster", "poisson, booster"):
        assert accuracy(METHODS[method](problem), problem) > 0.85


def test_the_time_of_what_is_shared_is_charged_to_every_user() -> None:
    problem = two_blobs()

    def use_graph(problem: Problem) -> int:
        return int(problem.graph.nnz)

    (first, once), (second, again) = problem.timed(use_graph), problem.timed(use_graph)
    assert first == second
    built = problem._seconds["graph"]
    assert once >= built > 0
    assert again >= built


def test_wide_sets_have_fewer_bins() -> None:
    assert (bins(64), bins(128), bins(617)) == (256, 256, 64)
