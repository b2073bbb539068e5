from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import xgboost as xgb
from numpy.testing import assert_allclose, assert_array_equal

from benchmarks.paper import boosted
from benchmarks.paper.boosted import CORRECTED, DEFAULT, GBRT, LAP_GBRT, METHODS, PAPER, Boosted, Rows, Settings, fit
from grbb_ext import FeatureCosts

TREES = (1, 2, 5, 8)
LIBRARIES: tuple[boosted.Library, ...] = ("xgboost", "lightgbm")


def small(seed: int = 0, n: int = 60) -> Rows:
    """Return two clouds apart in the first of four columns, with six labels."""
    random = np.random.default_rng(seed)
    truth = np.arange(n) % 2
    X = random.standard_normal((n, 4)).astype(np.float32)
    X[:, 0] += 4 * truth
    return Rows(X, np.where(np.arange(n) < 6, truth, -1))


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Collect the boosters that `fit` trains."""
    boosters: list[Any] = []

    class Collecting(Boosted):
        def __init__(self, booster: Any) -> None:
            boosters.append(booster)
            super().__init__(booster)

    monkeypatch.setattr(boosted, "Boosted", Collecting)
    return boosters


@pytest.mark.parametrize("method", [GBRT, PAPER])
@pytest.mark.parametrize("library", LIBRARIES)
def test_margins_of_the_first_trees_are_those_of_the_library(
    trained: list[Any], library: boosted.Library, method: boosted.Method
) -> None:
    rows = small()
    model = fit(rows, method, Settings(eta=0.3, depth=2), max(TREES), library=library)
    margins = model.margins(rows.X, TREES)
    assert model.n_trees == max(TREES)
    (booster,) = trained
    for own, trees in zip(margins, TREES, strict=True):
        if library == "xgboost":
            expected = booster.predict(xgb.DMatrix(rows.X), output_margin=True, iteration_range=(0, trees))
        else:
            expected = booster.predict(rows.X, raw_score=True, num_iteration=trees)
        assert_allclose(own, expected, rtol=1e-5, atol=1e-6)
    # The numbers of trees are told apart, and more than there are is all.
    assert np.abs(margins[0] - margins[-1]).max() > 0.1
    assert_array_equal(model.margins(rows.X, [99])[0], model.margins(rows.X, [max(TREES)])[0])


def test_a_start_that_is_not_zero_counts_once() -> None:
    rows = small()
    y = np.arange(60) % 3 == 0
    booster = xgb.train({"objective": "binary:logistic", "base_score": 0.8, "nthread": 1}, xgb.DMatrix(rows.X, y), 4)
    margins = Boosted(booster).margins(rows.X, [1, 3, 4])
    for own, trees in zip(margins, (1, 3, 4), strict=True):
        expected = booster.predict(xgb.DMatrix(rows.X), output_margin=True, iteration_range=(0, trees))
        assert_allclose(own, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("library", LIBRARIES)
def test_features_of_a_prefix_are_the_columns_its_trees_split_on(trained: list[Any], library: boosted.Library) -> None:
    model = fit(small(), PAPER, Settings(eta=0.3, depth=3), max(TREES), library=library)
    (booster,) = trained
    found = [model.features(trees) for trees in TREES]
    for columns, trees in zip(found, TREES, strict=True):
        if library == "xgboost":
            expected = {int(name[1:]) for name in booster[:trees].get_score(importance_type="weight")}
        else:
            expected = set(np.flatnonzero(booster.feature_importance("split", iteration=trees)).tolist())
        assert set(columns) == expected
    assert all(set(a) <= set(b) for a, b in pairwise(found))
    assert model.features(99) == found[-1]
    assert model.features(0) == []


@pytest.mark.parametrize("name", METHODS)
def test_every_method_tells_two_clouds_apart(name: str) -> None:
    rows = small()
    model = fit(rows, METHODS[name], Settings(eta=0.3, depth=2, lam=0.1), 20)
    margin = model.margins(rows.X, [20])[0]
    assert np.mean((margin > 0) == np.arange(60) % 2) > 0.85


@pytest.mark.parametrize("library", LIBRARIES)
def test_without_an_objective_unlabeled_rows_play_no_part(library: boosted.Library) -> None:
    rows = small()
    known = rows.y >= 0
    alone = Rows(rows.X[known], rows.y[known])
    settings = Settings(eta=0.3, depth=2)
    margins = [fit(r, GBRT, settings, 5, library=library).margins(rows.X, [5]) for r in (rows, alone)]
    assert_array_equal(*margins)
    assert rows.objective(GBRT, settings) is None


def test_settings_outside_the_space_of_a_method_do_not_change_it() -> None:
    rows = small()
    plain = fit(rows, LAP_GBRT, Settings(), 3).margins(rows.X, [3])
    other = fit(small(), LAP_GBRT, Settings(correction=0.2), 3).margins(rows.X, [3])
    assert_array_equal(plain, other)
    lam = fit(small(), LAP_GBRT, Settings(lam=0.2), 3).margins(rows.X, [3])
    assert np.abs(plain - lam).max() > 1e-6
    corrections = [fit(small(), CORRECTED, Settings(correction=c), 3).margins(rows.X, [3]) for c in (0.2, 1.0)]
    assert np.abs(corrections[0] - corrections[1]).max() > 1e-6


def test_hidden_labels_share_graphs_but_not_objectives() -> None:
    rows = small()
    settings = Settings()
    before = rows.objective(PAPER, settings)
    hidden = rows.hide(np.array([0, 1]))
    assert_array_equal(hidden.y[:3], [-1, -1, 0])
    assert rows.y[0] == 0  # a copy
    assert hidden.graph(9) is rows.graph(9)
    objective = hidden.objective(PAPER, settings)
    assert objective is not before
    assert hidden.objective(PAPER, settings) is objective
    assert rows.objective(PAPER, settings) is before
    assert int((objective.y_ >= 0).sum()) == 4
    # A graph that is first asked for with labels hidden is there for all.
    assert rows.graph(5) is hidden.graph(5) is rows.hide(np.array([2])).graph(5)


def test_objectives_are_made_once_for_what_they_depend_on() -> None:
    rows = small()
    first = rows.objective(PAPER, Settings(eta=0.1, depth=2))
    assert rows.objective(PAPER, Settings(eta=0.5, depth=6)) is first
    assert rows.objective(PAPER, Settings(lam=0.3)) is not first
    assert rows.objective(LAP_GBRT, Settings(eta=0.1, depth=2)) is not first


def test_an_objective_that_is_used_twice_gives_the_same_model() -> None:
    rows = small()
    for method in (PAPER, DEFAULT):
        first, second = (fit(rows, method, Settings(), 5).margins(rows.X, [5]) for _ in range(2))
        assert_array_equal(first, second)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_high_price_keeps_the_model_off_a_column(library: boosted.Library) -> None:
    costs = FeatureCosts([1000.0, 1.0, 1.0, 1.0])
    free = fit(small(), GBRT, Settings(depth=2), 10, library=library)
    paid = fit(small(), GBRT, Settings(depth=2), 10, costs=costs, mu=0.01, library=library)
    assert 0 in free.features(10)
    assert 0 not in paid.features(10)
