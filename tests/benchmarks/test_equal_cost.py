from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks import equal_cost
from benchmarks.equal_cost import COLUMNS, METHODS, TRIAL, Limited, Task
from benchmarks.equal_cost_report import Trials, leads_table, summary
from benchmarks.options import Options
from benchmarks.results import ResultTable
from benchmarks.tables import Problem
from grbb_ext import FeatureCosts


def problem() -> Problem:
    """Return rows where `a` is the class, `b` (a category) nearly, and `c` (0 or 1) says nothing."""
    random = np.random.default_rng(0)
    truth = np.arange(200) % 2
    swapped = np.where(random.random(200) < 0.1, 1 - truth, truth)
    X = pd.DataFrame({"a": truth + random.normal(0, 0.1, 200), "b": pd.Categorical(["x", "y", "z"])[swapped]})
    X["c"] = random.integers(0, 2, 200).astype(float)
    y = np.where(np.arange(100) < 20, truth[:100], -1)
    return Problem(X[:100].reset_index(drop=True), y, X[100:].reset_index(drop=True), truth[100:], 0)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_buys_the_best_that_it_can_pay(method: str) -> None:
    costs = FeatureCosts({"a": 5.0, "b": 2.0, "c": 2.0}).bind(["a", "b", "c"])
    for budget, used, least in ((5.0, {0}, 0.98), (3.0, {1}, 0.8)):
        model = METHODS[method](Limited(problem(), costs, budget))
        assert set(model.used) == used
        assert model.p.shape == (100, 2)
        np.testing.assert_allclose(model.p.sum(axis=1), 1, atol=1e-6)
        assert np.mean(model.p.argmax(axis=1) == problem().truth) >= least


def test_the_path_takes_all_that_a_paid_source_gives() -> None:
    # The path asks for a first; c comes with it.
    costs = FeatureCosts(needs={"a": ["test"], "b": ["b"], "c": ["test"]}, prices={"test": 1.0, "b": 1.0})
    costs = costs.bind(["a", "b", "c"])
    assert equal_cost.l1_path(Limited(problem(), costs, 1.0)).used == [0, 2]
    assert equal_cost.l1_path(Limited(problem(), costs, 2.0)).used == [0, 1, 2]


def test_the_path_without_a_source_it_can_pay_says_the_shares_of_the_labels() -> None:
    model = equal_cost.l1_path(
        Limited(problem(), FeatureCosts({"a": 5.0, "b": 5.0, "c": 5.0}).bind(["a", "b", "c"]), 1.0)
    )
    assert model.used == []
    np.testing.assert_allclose(model.p, 0.5)


def test_made_up_prices() -> None:
    credit, liver = (equal_cost.prices_of(name) for name in ("credit_g", "ilpd"))
    assert len(credit.features) == 20
    assert credit.total(credit.features) == 59
    assert credit.total(["duration", "purpose", "age"]) == 2  # one application
    assert len(liver.features) == 10
    assert liver.total(liver.features) == 39
    assert liver.total(["V8", "V9"]) == liver.total(["V10"]) == 12
    for name, budgets in equal_cost.BUDGETS.items():
        if name in ("credit_g", "ilpd"):
            costs = equal_cost.prices_of(name)
            assert costs.marginals().min() <= min(budgets)
            assert max(budgets) < costs.total(costs.features)


def test_a_task_names_columns_as_the_prices_do() -> None:
    limited = equal_cost.limited_of(Task("breast_cancer", 3.0, 20, 0, ()))
    assert [str(name) for name in limited.costs.features] == list(limited.problem.X.columns)
    assert limited.costs.total([0, 10, 20]) == 1  # mean, error and worst of the first measurement


def test_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    methods = ("GRBB, XGBoost", "LR, l1 path", "Greedy Miser, LightGBM")
    options = Options(quick=True, seeds=2, methods=methods, output=tmp_path)
    assert equal_cost.run(options) == 0
    table = ResultTable(tmp_path / "equal_cost.csv", COLUMNS, TRIAL)
    rows = table.read()
    assert len(rows) == 2 * 3 * 3  # seeds, budgets, methods
    for row in rows:
        assert 0 < float(row["cost"]) <= float(row["budget"])
        assert float(row["auc"]) > 0.6
    assert list(equal_cost.missing(table, options)) == []
    assert "| breast_cancer, 3 |" in capsys.readouterr().out
    assert (tmp_path / "equal_cost.png").exists()


def test_the_tables_by_hand() -> None:
    rows = []
    for seed in range(6):
        for method, accuracy, loss in (("GRBB, XGBoost", 0.8, 0.5), ("LR, l1 path", 0.7 + 0.01 * (seed % 2), 0.4)):
            row = {"data": "heart", "method": method, "seed": str(seed), "budget": "5.0", "cost": "4"}
            rows.append(row | {"accuracy": str(accuracy), "auc": str(accuracy), "log_loss": str(loss)})
    trials = Trials(rows)
    # Leads .1 and .09 in turn: mean .095, error .005 * sqrt(6 / 5) / sqrt(6) = .00224.
    assert "| heart, 5 | 0.800 (4.0) | **+0.095 ± 0.002** |" in leads_table(trials, "GRBB, XGBoost", "accuracy")
    assert "| heart, 5 | 0.500 (4.0) | *-0.100 ± 0.000* (!) |" in leads_table(trials, "GRBB, XGBoost", "log_loss")
    ahead, behind = "**+0.095 ± 0.002** | 1 / 0 / 0", "*-0.100 ± 0.000* (!) | 0 / 0 / 1"
    assert f"| LR, l1 path | {ahead} | {ahead} | {behind} |" in summary(trials)
