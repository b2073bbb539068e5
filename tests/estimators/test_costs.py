"""Prices, budgets and prediction on demand through the estimators."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from lightgbm import Dataset

from grbb_ext import FeatureCosts, GRBBClassifier, GRBBRegressor, OnDemandPredictor
from grbb_ext.adapters.lightgbm import train


@pytest.fixture
def lab():
    """Two tests that share a blood draw tell the class; a free column helps a little."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 4)), columns=["age", "chol", "fbs", "mri"])
    truth = (X["chol"] + X["fbs"] + 0.3 * X["age"] > 0).to_numpy().astype(int)
    costs = FeatureCosts(
        needs={"age": [], "chol": ["draw", "chol"], "fbs": ["draw", "fbs"], "mri": ["mri"]},
        prices={"draw": 2.0, "chol": 5.0, "fbs": 3.0, "mri": 100.0},
    )
    return X, truth, np.where(np.arange(300) < 60, truth, -1), costs


@pytest.mark.parametrize(("budget", "most"), [(0, 0.0), (5, 5.0), (10, 10.0), (50, 10.0)])
def test_the_budget_is_kept(classifier, lab, budget, most):
    X, _, y, costs = lab
    model = GRBBClassifier(classifier(), feature_costs=costs, budget=budget).fit(X, y)
    assert model.feature_cost_ <= most
    assert model.feature_cost_ == costs.bind(list(X.columns)).total(model.forest_)
    assert model.ledger_.spent == model.feature_cost_
    assert set(model.paid_) == set(costs.bind(list(X.columns)).paid_sources(model.forest_))


def test_an_infinite_budget_is_none(classifier, lab, tmp_path):
    """Curves have it where mu was swept: their columns can be set as parameters."""
    X, _, y, costs = lab
    unlimited = GRBBClassifier(classifier(), feature_costs=costs, mu=0.5)
    columns = unlimited.cost_curve(X, y, mus=[0.5], cv=2, verbose=False).to_dict()
    model = GRBBClassifier(classifier(), feature_costs=costs, mu=columns["mu"][0], budget=columns["budget"][0])
    model.fit(X, y)
    assert model.ledger_.budget is None
    np.testing.assert_array_equal(model.raw_scores_, unlimited.fit(X, y).raw_scores_)
    model.save(tmp_path / "model")
    assert GRBBClassifier.load(tmp_path / "model").fit(X, y).ledger_.budget is None


def test_mu_makes_models_cheaper(classifier, lab):
    X, _, y, costs = lab
    bills = [GRBBClassifier(classifier(), feature_costs=costs, mu=mu).fit(X, y).feature_cost_ for mu in (0.0, 1.0, 1e6)]
    assert bills[0] >= bills[1] >= bills[2] == 0 < bills[0]


def test_a_budget_that_buys_nothing_gives_finite_predictions_and_a_reason(classifier, regressor, lab):
    X, truth, y, _ = lab
    model = GRBBClassifier(classifier(), feature_costs=np.ones(4), budget=0.5).fit(X, y)
    assert (model.paid_, model.feature_cost_) == ((), 0)
    assert "budget of 0.5" in model.stop_reason_
    assert np.ptp(model.predict_proba(X), axis=0).max() == 0
    assert np.isfinite(model.predict_proba(X)).all()
    constant = GRBBRegressor(regressor(), feature_costs=np.ones(4), budget=0).fit(X, truth + 7.0)
    np.testing.assert_allclose(constant.predict(X), truth.mean() + 7.0, rtol=1e-5)


def test_on_demand(classifier, lab):
    X, _, y, costs = lab
    model = GRBBClassifier(classifier(), feature_costs=costs, budget=10).fit(X, y)
    fetch = {
        "draw": lambda rows: None,
        "chol": lambda rows: {"chol": X["chol"].to_numpy()[rows]},
        "fbs": lambda rows: {"fbs": X["fbs"].to_numpy()[rows]},
    }
    predictor = model.on_demand(fetch, verbose=False)
    assert isinstance(predictor, OnDemandPredictor)
    result = predictor.predict(np.arange(300), free=X)
    np.testing.assert_array_equal(result.raw_scores, model.decision_function(X))
    np.testing.assert_array_equal(result.spent, predictor.costs.per_row(model.forest_, X))
    model.set_params(feature_costs=np.full(4, 50.0))  # for the next fit
    np.testing.assert_array_equal(model.on_demand(fetch, verbose=False).predict(np.arange(300), X).spent, result.spent)
    with pytest.raises(ValueError, match="feature_costs="):
        GRBBClassifier(classifier()).fit(X, y).on_demand(fetch)


@pytest.mark.parametrize(
    ("settings", "error", "match"),
    [
        ({"budget": 3}, ValueError, "feature_costs="),
        ({"mu": 1.0}, ValueError, "feature_costs="),
        ({"feature_costs": 3.0}, TypeError, "feature_costs"),
        ({"feature_costs": "chol"}, TypeError, "feature_costs"),
        ({"feature_costs": {"chol": 1.0}}, ValueError, "No price for"),
        ({"feature_costs": {"cholesterol": 1.0}}, ValueError, "no such column"),
        ({"feature_costs": [1.0, 2.0]}, ValueError, "2 entries"),
        ({"feature_costs": np.ones(4), "budget": -1}, ValueError, "budget"),
        ({"feature_costs": np.ones(4), "budget": np.nan}, ValueError, "budget"),
        ({"feature_costs": np.ones(4), "mu": -1.0}, ValueError, "mu"),
        ({"feature_costs": [1.0, -2.0, 1.0, 1.0]}, ValueError, "-2"),
    ],
)
def test_refused(classifier, lab, settings, error, match):
    X, _, y, _ = lab
    with pytest.raises(error, match=match):
        GRBBClassifier(classifier(), **settings).fit(X, y)


def test_numbers_that_are_no_positions_are_refused(classifier, library, moons):
    X, truth, y = moons
    frame = pd.DataFrame(X, columns=[1, 0])
    prices = {1: 50.0, 0: 1.0}
    with pytest.raises(ValueError, match="Number the columns from 0"):
        GRBBClassifier(classifier(n_estimators=2), feature_costs=prices).fit(frame, y)
    if library == "lightgbm":
        with pytest.raises(ValueError, match="Number the columns from 0"):
            train({"objective": "binary", "verbosity": -1}, Dataset(frame, truth), 2, costs=FeatureCosts(prices))
    in_order = GRBBClassifier(classifier(n_estimators=2), feature_costs=prices, budget=9).fit(frame[[0, 1]], y)
    assert in_order.feature_cost_ == 1.0  # position 0 is label 0
