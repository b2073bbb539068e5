from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from benchmarks.paper.linear import FREE_SHARE, Linear, linear_path
from grbb_ext.graph import knn_graph, laplacian, normalized_laplacian

Array = NDArray[np.float64]


def problem(seed: int, n: int = 60, d: int = 8, n_labels: int = 16) -> tuple[Array, NDArray[np.int64], Array]:
    """Return rows on unequal scales, labels of which the first columns tell, and prices."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) * random.uniform(0.1, 10.0, d) + random.normal(size=d)
    slope = (X - X.mean(axis=0)) / X.std(axis=0) @ np.r_[2.0, -1.0, 1.0, np.zeros(d - 3)]
    y = np.full(n, -1)
    y[:n_labels] = slope[:n_labels] + random.normal(size=n_labels) > 0
    y[:2] = 0, 1
    return X, y, random.choice([1.0, 2.0, 5.0], d)


def graph(X: Array) -> sp.csr_array:
    return normalized_laplacian(knn_graph(X, 5, verbose=False, n_jobs=1))


def slopes(
    model: Linear, X: Array, y: NDArray[np.int64], L: sp.csr_array | None = None, gamma: float = 0.0
) -> tuple[Array, Array, float]:
    """Return weights of standardised columns, and the slope of the smooth part by them and by the intercept."""
    Z, rows = (X - X.mean(axis=0)) / X.std(axis=0), y >= 0
    w = model.weights * X.std(axis=0)
    wrong = expit(model.scores(X[rows])) - y[rows]
    by_weights = Z[rows].T @ wrong / rows.sum()
    if L is not None:
        by_weights = by_weights + gamma / len(Z) * Z.T @ (L @ (Z @ w))
    return w, by_weights, float(wrong.mean())


def is_optimal(w: Array, slope: Array, by_intercept: float, penalty: Array) -> bool:
    """Return whether 0 is a subgradient of the smooth part + penalty · |w|."""
    used = w != 0
    return (
        np.allclose(slope[used], -penalty[used] * np.sign(w[used]), rtol=0, atol=1e-7)
        and bool(np.all(np.abs(slope[~used]) <= penalty[~used] + 1e-7))
        and abs(by_intercept) < 1e-7
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("gamma", [0.0, 0.3, 30.0])
def test_every_model_of_the_path_is_optimal(seed: int, gamma: float) -> None:
    X, y, prices = problem(seed)
    L = graph(X)
    path = linear_path(X, y, prices, laplacian=L, manifold=gamma)
    assert len(path) == 20
    for model in path:
        assert is_optimal(*slopes(model, X, y, L, gamma), model.alpha * prices)
    assert len(path[-1].features()) > 3


@pytest.mark.parametrize("gamma", [0.0, 1.0])
def test_more_columns_than_labels_some_of_them_copies(gamma: float) -> None:
    X, y, prices = problem(5, d=40, n_labels=10)
    X, prices = np.hstack([X, X[:, :10]]), np.r_[prices, prices[:10]]
    L = graph(X)
    for model in linear_path(X, y, prices, laplacian=L, manifold=gamma):
        assert is_optimal(*slopes(model, X, y, L, gamma), model.alpha * prices)


@pytest.mark.parametrize("seed", range(3))
def test_lrl1_is_the_logistic_regression_of_scikit_learn_on_columns_divided_by_prices(seed: int) -> None:
    X, y, prices = problem(seed)
    rows = y >= 0
    scaled = (X - X.mean(axis=0)) / X.std(axis=0) / prices
    # Until scikit-learn 1.8, l1_ratio was read with this penalty only; since then the penalty is not to be given.
    l1 = {"penalty": "elasticnet"} if getattr(LogisticRegression(), "penalty", None) == "l2" else {}
    for model in linear_path(X, y, prices, n_penalties=5, smallest=0.02)[1:]:
        # scikit-learn minimises |w| + C * (sum of losses). Not liblinear, which penalises the intercept.
        theirs = LogisticRegression(
            **l1,
            l1_ratio=1.0,
            C=1 / (model.alpha * rows.sum()),
            solver="saga",
            tol=1e-11,
            max_iter=10**6,
            random_state=0,
        ).fit(scaled[rows], y[rows])
        np.testing.assert_allclose(model.scores(X), theirs.decision_function(scaled), atol=1e-5)
        assert model.features() == np.flatnonzero(theirs.coef_[0]).tolist()


@pytest.mark.parametrize("gamma", [0.0, 2.0])
def test_the_first_penalty_is_the_smallest_that_selects_nothing(gamma: float) -> None:
    X, y, prices = problem(1)
    L = graph(X)
    ends = {"laplacian": L, "manifold": gamma, "n_penalties": 2, "smallest": 1 - 1e-4}
    first, below = linear_path(X, y, prices, **ends)
    assert first.features() == []
    assert len(below.features()) == 1
    w, slope, by_intercept = slopes(first, X, y, L, gamma)
    assert is_optimal(w, slope, by_intercept, 1.0001 * first.alpha * prices)
    assert np.max(np.abs(slope) / prices) == pytest.approx(first.alpha, rel=1e-12)
    share = np.mean(y[y >= 0])
    np.testing.assert_allclose(first.scores(X), np.log(share / (1 - share)))


def test_first_penalty_by_hand() -> None:
    # Two labels of each class: the slope of the loss is half the mean of x (ȳ - y) over them, x = ±1 standardised.
    X = np.array([[1.0], [1.0], [3.0], [3.0]])
    path = linear_path(X, [0, 0, 1, 1], [4.0], n_penalties=2, smallest=0.5)
    assert path[0].alpha == pytest.approx(0.5 / 4)
    # At half of it: sigma(-w) = alpha c = 1/4, so w = log 3 on the scale ±1, where the deviation is 1.
    assert path[1].weights[0] == pytest.approx(np.log(3))
    np.testing.assert_allclose(path[1].scores(X), np.log(3) * np.array([-1, -1, 1, 1]), atol=1e-6)


def test_a_column_ten_times_dearer_enters_later() -> None:
    X, y, _ = problem(2)

    def enters(price: float) -> int:
        path = linear_path(X, y, [price, *[1.0] * 7], n_penalties=40, smallest=1e-4)
        return next(i for i, model in enumerate(path) if 0 in model.features())

    assert enters(10.0) > enters(1.0)


def test_without_weight_the_manifold_changes_nothing() -> None:
    X, y, prices = problem(3)
    plain = linear_path(X, y, prices)
    for one, other in zip(plain, linear_path(X, y, prices, laplacian=graph(X), manifold=0.0), strict=True):
        np.testing.assert_array_equal(one.weights, other.weights)
    tiny = linear_path(X, y, prices, laplacian=graph(X), manifold=1e-9)
    np.testing.assert_allclose(tiny[-1].scores(X), plain[-1].scores(X), rtol=1e-4, atol=1e-4)


def test_a_heavy_manifold_makes_scores_equal_inside_clusters() -> None:
    random = np.random.default_rng(0)
    cluster = np.arange(40) % 2
    X = np.column_stack([cluster + random.normal(scale=0.2, size=40), cluster, random.normal(size=40)])
    y = np.where(np.arange(40) < 12, cluster, -1)
    W = sp.csr_array((cluster[:, None] == cluster[None, :]).astype(float) - np.eye(40))
    prices = [1.0, 1.5, 1.0]

    def spread(gamma: float) -> tuple[float, float]:
        scores = linear_path(X, y, prices, laplacian=laplacian(W), manifold=gamma)[-1].scores(X)
        inside = max(np.ptp(scores[cluster == label]) for label in (0, 1))
        return float(inside), float(scores[cluster == 1].mean() - scores[cluster == 0].mean())

    inside, between = spread(1e4)
    assert inside < 1e-3
    assert between > 3
    assert spread(0.0)[0] > 0.3


def test_the_manifold_term_reads_unlabeled_rows() -> None:
    X, y, prices = problem(4)
    moved = X.copy()
    # Rows 20 to 59 are unlabelled; in another order columns keep their scale, but not the neighbours.
    moved[20:, 0] = moved[20:, 0][::-1]
    L = graph(X)
    assert np.allclose(linear_path(X, y, prices)[-1].weights, linear_path(moved, y, prices)[-1].weights)
    here, there = (linear_path(rows, y, prices, laplacian=L, manifold=1.0)[-1] for rows in (X, moved))
    assert not np.allclose(here.weights, there.weights)


def test_free_columns_cost_half_the_cheapest_and_all_free_ones_the_same() -> None:
    X, y, prices = problem(0)
    prices[[2, 3]] = 0.0
    priced = np.where(prices == 0, FREE_SHARE * prices[prices > 0].min(), prices)
    for one, other in zip(linear_path(X, y, prices), linear_path(X, y, priced), strict=True):
        np.testing.assert_array_equal(one.weights, other.weights)
    free, equal = linear_path(X, y, np.zeros(8))[-1], linear_path(X, y, np.ones(8))[-1]
    np.testing.assert_array_equal(free.weights, equal.weights)


def test_missing_values_are_medians_and_constant_columns_have_no_weight() -> None:
    X, y, prices = problem(6)
    X[:, 5], X[:, 6] = 3.0, np.nan
    X[[3, 30], 0] = np.nan
    filled = X.copy()
    filled[[3, 30], 0] = np.nanmedian(X[:, 0])
    filled[:, 6] = 0.0
    one, other = linear_path(X, y, prices)[-1], linear_path(filled, y, prices)[-1]
    np.testing.assert_array_equal(one.weights, other.weights)
    assert one.weights[5] == one.weights[6] == 0
    np.testing.assert_allclose(one.scores(X), one.scores(filled))
    np.testing.assert_allclose(one.scores(filled), filled @ one.weights + one.intercept)


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.floats(0.01, 100.0), st.floats(0.01, 100.0), st.sampled_from([0.0, 0.5]))
def test_units_of_columns_and_prices_do_not_matter(seed: int, unit: float, currency: float, gamma: float) -> None:
    X, y, prices = problem(seed, n=30)
    L = graph(X)
    one = linear_path(X, y, prices, laplacian=L, manifold=gamma, n_penalties=5)
    other = linear_path(3 - unit * X, y, currency * prices, laplacian=L, manifold=gamma, n_penalties=5)
    for a, b in zip(one, other, strict=True):
        assert b.alpha * currency == pytest.approx(a.alpha)
        np.testing.assert_allclose(a.scores(X), b.scores(3 - unit * X), atol=1e-4)


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.5]))
def test_classes_change_places_and_the_penalty_falls_as_alpha_rises(seed: int, gamma: float) -> None:
    X, y, prices = problem(seed, n=30)
    L = graph(X)
    path = linear_path(X, y, prices, laplacian=L, manifold=gamma, n_penalties=8)
    swapped = linear_path(X, np.where(y < 0, y, 1 - y), prices, laplacian=L, manifold=gamma, n_penalties=8)
    for a, b in zip(path, swapped, strict=True):
        np.testing.assert_allclose(a.scores(X), -b.scores(X), atol=1e-4)
    spent = [prices @ np.abs(model.weights * X.std(axis=0)) for model in path]
    assert np.all(np.diff(spent) >= -1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": [0, 0, -1]}, "both classes"),
        ({"y": [0, 2, -1]}, "both classes"),
        ({"prices": [1.0]}, "do not fit"),
        ({"prices": [1.0, -1.0]}, "at least 0"),
        ({"manifold": 1.0}, "needs laplacian"),
        ({"smallest": 1.5}, "between 0 and 1"),
        ({"X": [[1.0, 1.0], [1.0, 1.0], [2.0, 3.0]]}, "No column differs"),
        ({"X": np.ones((3, 2))}, "No column differs"),
        ({"X": [[0.0, 1.0], [np.inf, 0.0], [2.0, 2.0]]}, "infinite"),
        ({"laplacian": sp.eye_array(2), "manifold": 1.0}, "3 rows of X"),
    ],
)
def test_errors_say_what_to_do(change: dict[str, object], message: str) -> None:
    given_ = {"X": [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], "y": [0, 1, -1], "prices": [1.0, 1.0]} | change
    with pytest.raises(ValueError, match=message):
        linear_path(**given_)  # type: ignore[arg-type]
