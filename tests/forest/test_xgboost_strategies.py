"""The strategies that XGBoost ships for its own tests, against Forest."""

from __future__ import annotations

import numpy as np
import pytest
import xgboost as xgb
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grbb_ext import Forest

strategies = pytest.importorskip("xgboost.testing.params")

few = settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])


def rows(seed, n=80, missing=0.15):
    """Draw two columns of codes and three of numbers on a grid."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 5)), 1)
    X[:, 0], X[:, 1] = rng.integers(0, 9, n), rng.integers(0, 60, n)
    X[rng.random(X.shape) < missing] = np.nan
    filled = np.nan_to_num(X)
    return X, filled[:, 0] % 3 + filled[:, 1] % 2 + filled[:, 2] * filled[:, 3] + rng.normal(size=n)


def check(params, label, X, qid=None, **data):
    """Train a few rounds and compare raw scores bit by bit, from the booster and from its JSON."""
    dtrain = xgb.DMatrix(X, label=label, nthread=1, qid=qid, **data)
    booster = xgb.train({"verbosity": 0, **params, "nthread": 1}, dtrain, 3)
    forest = Forest.from_booster(booster)
    T = np.vstack([rows(99)[0], forest.rows_at_splits(40)])
    expected = booster.predict(xgb.DMatrix(T, nthread=1, **data), output_margin=True)
    np.testing.assert_array_equal(forest.predict(T), expected)
    np.testing.assert_array_equal(Forest.from_bytes(bytes(booster.save_raw("json"))).predict(T), expected)


@few
@given(strategies.exact_parameter_strategy, st.integers(0, 50))
def test_exact(params, seed):
    X, y = rows(seed)
    check(params | {"tree_method": "exact"}, y, X)


@few
@given(strategies.hist_parameter_strategy, strategies.hist_cache_strategy, st.integers(0, 50))
def test_hist(params, cache, seed):
    X, y = rows(seed)
    check(params | cache | {"tree_method": "hist", "objective": "binary:logistic"}, y > 0, X)


@few
@given(strategies.hist_parameter_strategy, strategies.cat_parameter_strategy, st.integers(0, 50), st.booleans())
def test_categories(params, categories, seed, dart):
    X, y = rows(seed)
    dropout = {"booster": "dart", "rate_drop": 0.5, "one_drop": 1} if dart else {}
    kinds = {"feature_types": ["c", "c", "q", "q", "q"], "enable_categorical": True}
    check(params | categories | dropout | {"tree_method": "hist"}, y, X, **kinds)


@few
@given(strategies.hist_multi_parameter_strategy, st.integers(0, 50))
def test_several_outputs(params, seed):
    X, y = rows(seed)
    check(params | {"tree_method": "hist"}, np.column_stack([y, -y, np.nan_to_num(X[:, 2])]), X)


@few
@given(strategies.lambdarank_parameter_strategy, st.integers(0, 50))
def test_ranking(params, seed):
    X, y = rows(seed)
    check(params | {"max_depth": 4}, y > 1, X, qid=np.repeat([0, 1], 40))
