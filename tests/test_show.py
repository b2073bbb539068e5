"""Results that people read: tables as text and in notebooks."""

from __future__ import annotations

import re

import numpy as np
import pytest
from lightgbm import LGBMClassifier
from sklearn.datasets import make_moons

from grbb_ext import FeatureCosts, GRBBClassifier, cost_curve, plan_labels
from grbb_ext.costs import Ledger

X, TRUTH = make_moons(120, noise=0.1, random_state=0)
Y = np.where(np.arange(120) % 6 == 0, TRUTH, -1)


@pytest.fixture(scope="module")
def model():
    booster = LGBMClassifier(n_estimators=5, n_jobs=1, verbosity=-1)
    return GRBBClassifier(booster, feature_costs=[1.0, 2.0], n_jobs=1).fit(X, Y)


def cells(html: str) -> list[str]:
    return re.findall(r"<td[^>]*>([^<]*)</td>", html)


def test_a_ledger_escapes_names():
    costs = FeatureCosts(needs={"<b>x": ["<script>"], "y": ["<script>"]}, prices={"<script>": 2.5})
    ledger = Ledger(costs.bind(["<b>x", "y"]), budget=4)
    assert "0 of 2 features" in str(ledger)
    ledger.buy(["<b>x"], round=0)
    ledger.buy(["y"], round=3)
    assert str(ledger).splitlines()[2].split()[:2] == ["4", "y"]
    assert "paid before" in str(ledger)
    html = ledger._repr_html_()
    assert "<script>" not in html
    assert "<b>" not in html
    assert "1.5 left of the budget of 4" in html


def test_suggestions_and_plan(model):
    suggested = model.suggest_labels(3)
    assert cells(suggested._repr_html_())[1::3] == [str(row) for row in suggested.rows]
    assert len(str(suggested).splitlines()) == 5
    plan = model.plan_labels(8, 2.5)
    assert plan.recommendation == plan_labels(model.objective_, model.raw_scores_, 8, 2.5).recommendation
    assert str(plan).endswith(plan.recommendation)
    table = np.array(cells(plan._repr_html_())).reshape(-1, 3)
    assert {"0", str(plan.n_labels), "8"} <= set(table[:, 0])
    assert table[-1, 1] == "20"


def test_the_curve_as_a_method(model):
    settings = {"budgets": [1, 3], "cv": 2, "verbose": False}
    found, expected = model.cost_curve(X, Y, **settings), cost_curve(model, X, Y, **settings)
    np.testing.assert_array_equal(found.score, expected.score)
    np.testing.assert_array_equal(found.cost, expected.cost)
