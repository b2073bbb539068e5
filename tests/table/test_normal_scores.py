"""Normal scores beside columns."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm, rankdata

from grbb_ext.table._components import NormalScores


def scores_of(X):
    scores = NormalScores(X)
    return scores(X)[:, X.shape[1] :] / scores.factor


@given(st.lists(st.integers(-5, 5), min_size=2, max_size=40).filter(lambda values: len(set(values)) > 1))
def test_they_are_those_of_mean_ranks(values):
    X = np.array(values, dtype=float)[:, None]
    expected = norm.ppf((rankdata(X[:, 0]) - 0.5) / len(values))
    assert_allclose(scores_of(X)[:, 0], expected, atol=1e-12)


def test_they_do_not_depend_on_the_unit_of_a_column():
    X = np.random.default_rng(0).lognormal(size=(60, 3))
    assert_allclose(scores_of(X), scores_of(np.log(X) * [1.0, 100.0, 0.01]))


def test_columns_and_scores_have_the_same_variance():
    X = np.random.default_rng(0).lognormal(size=(60, 3)).astype(np.float32)
    both = NormalScores(X)(X)
    assert both.dtype == np.float32
    assert_array_equal(both[:, :3], X)
    assert_allclose(both[:, 3:].var(axis=0).sum(), X.var(axis=0).sum(), rtol=1e-4)


def test_other_rows_are_placed_between_those_that_were_seen():
    scores = NormalScores(np.arange(5.0)[:, None])
    seen = scores(np.arange(5.0)[:, None])[:, 1]
    assert_allclose(scores(np.array([[1.5], [-9.0], [9.0]]))[:, 1], [(seen[1] + seen[2]) / 2, seen[0], seen[4]])


def test_constant_columns_say_nothing():
    X = np.column_stack([np.ones(6), np.arange(6.0)])
    assert np.ptp(NormalScores(X)(X)[:, 2]) == 0
    assert_array_equal(NormalScores(X[:, :1])(X[:, :1]), np.column_stack([np.ones(6), np.zeros(6)]))


def test_a_sample_and_few_knots_are_enough(monkeypatch: pytest.MonkeyPatch):
    X = np.random.default_rng(0).lognormal(size=(5000, 1))
    exact = scores_of(X)
    monkeypatch.setattr("grbb_ext.table._components.MOST_ROWS", 2000)
    monkeypatch.setattr("grbb_ext.table._components._MOST_KNOTS", 200)
    assert abs(np.clip(exact, -2, 2) - np.clip(scores_of(X), -2, 2)).max() < 0.15


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_even_grid_is_as_good_as_a_search(dtype):
    random = np.random.default_rng(0)
    columns = [random.normal(size=5000), random.exponential(size=5000), random.integers(7, size=5000), np.ones(5000)]
    X = np.column_stack([*columns, random.standard_cauchy(size=5000) ** 3]).astype(dtype)
    scores = NormalScores(X)
    assert [grid is not None for grid in scores._grids] == [True, True, True, False, False]
    other = np.vstack([X[:100], X.min(axis=0) - 1, X.max(axis=0) + 1, np.full(5, -3e38), np.full(5, 3e38)]).astype(
        dtype
    )
    searched = [np.interp(column, *knots) for column, knots in zip(other.T, scores._knots, strict=True)]
    found = scores(other)[:, 5:] / scores.factor
    assert abs(found - np.transpose(searched)).mean() < 0.005
    assert_allclose(found[-4:], np.transpose(searched)[-4:], atol=1e-5)
    for column, score in zip(other.T, found.T, strict=True):
        assert (np.diff(score[np.argsort(column, kind="stable")]) >= -1e-6).all()
    again = pickle.loads(pickle.dumps(scores))
    assert "_grids" not in vars(again)
    assert_array_equal(again(other), scores(other))
