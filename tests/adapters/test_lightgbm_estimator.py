"""Training through the LightGBM adapter where LightGBM alone would fail."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from lightgbm import LGBMClassifier, LGBMRegressor

from grbb_ext import GRBBClassifier, GRBBRegressor

N = 60
Y = np.where(np.arange(N) < 20, np.arange(N) % 2, -1)
MISSING = np.full((N, 2), np.nan)
HALF_MISSING = np.where(np.arange(2 * N).reshape(N, 2) % 3 == 0, np.nan, 0.0)
NORMAL = np.random.default_rng(0).normal(size=(N, 2))
FILTER = {"feature_pre_filter": True}


@pytest.mark.parametrize("costs", [{}, {"feature_costs": [1.0, 1.0], "budget": 1.0}], ids=["free", "costs"])
@pytest.mark.parametrize(
    ("X", "params", "categorical"),
    [
        pytest.param(MISSING, {}, [0, 1], id="missing categories"),
        pytest.param(np.c_[MISSING[:, 0], np.zeros(N)], {}, [0], id="missing categories and zeros"),
        pytest.param(NORMAL * 1e-37, {}, [], id="tiny numbers"),
        pytest.param(sp.csr_array(np.full((N, 2), 1e-36)), {}, [], id="tiny numbers, sparse"),
        pytest.param(np.full((N, 2), 5.0), FILTER, [], id="constants"),
        pytest.param(sp.csr_array(np.full((N, 2), 5.0)), FILTER, [], id="constants, sparse"),
        pytest.param(MISSING, FILTER, [], id="missing numbers"),
        pytest.param(NORMAL, {**FILTER, "min_child_samples": 100}, [], id="leaves too large"),
        pytest.param(HALF_MISSING, {"use_missing": False}, [], id="missing is zero"),
        pytest.param(HALF_MISSING, {"zero_as_missing": True}, [], id="zero is missing"),
        pytest.param(np.zeros((N, 2)), {}, [], id="zeros"),
        pytest.param(sp.csr_array((N, 2)), {}, [], id="zeros, sparse"),
    ],
)
def test_where_lightgbm_drops_every_column_the_model_is_constant(
    X: Any, params: dict[str, Any], categorical: list[int], costs: dict[str, Any]
) -> None:
    wrapped = LGBMClassifier(n_estimators=3, n_jobs=1, **params)
    model = GRBBClassifier(wrapped, rule="labeled", categorical_features=categorical, **costs)
    model.fit(X, Y, eval_set=[(X[:20], Y[:20])])
    assert np.ptp(model.decision_function(X)) == 0
    np.testing.assert_array_equal(model.forest_.predict(X), model.decision_function(X))
    assert model.feature_importances_.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("how", ["columns", "budget"])
def test_a_model_that_can_split_nothing_predicts_the_shares_of_the_targets(n_classes: int, how: str) -> None:
    X = np.random.default_rng(0).normal(size=(120, 2))
    y = np.where(np.arange(120) < 40, np.minimum(np.arange(120) % 7, n_classes - 1), -1)
    costs = {} if how == "columns" else {"feature_costs": [5.0, 5.0], "budget": 1.0}
    X = np.zeros_like(X) if how == "columns" else X
    model = GRBBClassifier(LGBMClassifier(n_estimators=5), teacher=["linear"], **costs).fit(X, y)
    q, weight = model.objective_.soft_labels()
    q = np.column_stack([1 - q, q]) if n_classes == 2 else q
    shares = np.average(q, axis=0, weights=weight)
    np.testing.assert_allclose(model.predict_proba(X), np.tile(shares, (120, 1)), atol=1e-5)
    assert model.forest_.features_used().size == 0


def test_a_constant_regression_is_the_mean() -> None:
    y = np.where(np.arange(N) < 20, np.arange(N) % 3, np.nan)
    model = GRBBRegressor(LGBMRegressor(n_estimators=3, n_jobs=1), rule="labeled", categorical_features=[0, 1])
    np.testing.assert_allclose(model.fit(MISSING, y).predict(MISSING), np.nanmean(y))


def test_purchases_of_rows_with_tiny_weights_are_seen() -> None:
    y = np.where(np.arange(N) < 30, NORMAL[:, 0] > 0, -1)
    wrapped = LGBMClassifier(n_estimators=5, n_jobs=1, min_child_samples=5)
    model = GRBBClassifier(wrapped, graph="knn", rule="paper", feature_costs=[1.0, 2.0], budget=2.0)
    model.fit(NORMAL, y, sample_weight=np.full(N, 1e-30))
    used = set(model.booster_.trees_to_dataframe()["split_feature"].dropna())
    assert used
    assert used == {f"Column_{j}" for j in np.flatnonzero(model.ledger_.used)}


def test_weights_that_lightgbm_fails_on_are_refused_with_advice() -> None:
    random = np.random.default_rng(0)
    X, y, weight = random.normal(size=(120, 1)), np.arange(120) % 40, 10.0 ** random.uniform(-30, 25, 120)
    booster = LGBMClassifier(n_estimators=5, min_child_samples=1, n_jobs=1)
    with pytest.raises(ValueError, match="Bring sample_weight and class_weight within a factor of 1e12"):
        GRBBClassifier(booster, rule="labeled").fit(X, y, sample_weight=weight)
    GRBBClassifier(booster, rule="labeled").fit(X, y, sample_weight=np.clip(weight, 1e-6, 1e6))


def test_no_number_of_threads_is_that_of_lightgbm():
    X, y = np.arange(40.0)[:, None], np.arange(40) // 20
    for n_jobs in (0, None):
        model = GRBBClassifier(LGBMClassifier(n_estimators=1, n_jobs=n_jobs), rule="labeled").fit(X, y)
        assert model.booster_.params["num_threads"] == 0


def test_seeds_and_categories_as_lightgbm_takes_them():
    X, y = np.column_stack([np.arange(40) % 4, np.arange(40.0)]), np.arange(40) % 2
    most = np.iinfo(np.int32).max
    for make, drawn in (
        (np.random.default_rng, np.random.default_rng(0).integers(most)),
        (np.random.RandomState, np.random.RandomState(0).randint(most)),
    ):
        booster = LGBMClassifier(n_estimators=1, n_jobs=1, random_state=make(0), categorical_feature=0)
        model = GRBBClassifier(booster, rule="labeled").fit(X, y)
        assert model.booster_.params["seed"] == drawn
        assert model.read_rows(X).schema.categorical == (0,)


def test_early_stopping_cuts_to_the_trees_of_the_best_score():
    """Rounds whose random splits are all refused leave no tree."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 8))
    y = X @ rng.normal(size=8) + rng.normal(size=120)
    booster = LGBMRegressor(
        n_estimators=200, n_jobs=1, extra_trees=True, colsample_bynode=0.5, early_stopping_round=10, random_state=0
    )
    model = GRBBRegressor(booster, rule="labeled")
    model.fit(X, np.where(np.arange(120) < 80, y, np.nan), eval_set=[(X[80:], y[80:])])
    (scores,) = model.evals_result_["validation_0"].values()
    assert model.n_iter_ < np.argmin(scores) + 1
    staged = [np.mean((prediction - y[80:]) ** 2) for prediction in model.staged_predict(X[80:])]
    np.testing.assert_allclose([staged[-1], min(staged)], np.mean((model.predict(X[80:]) - y[80:]) ** 2))
