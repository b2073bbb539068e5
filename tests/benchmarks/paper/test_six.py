from __future__ import annotations

import csv
import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.data import load
from benchmarks.options import Options
from benchmarks.paper import six, six_report
from benchmarks.paper.boosted import METHODS
from benchmarks.paper.six import TREES, UNTUNED, Task
from benchmarks.paper.six_report import Curves
from benchmarks.ranking import RankingSet
from benchmarks.results import COLUMNS, ROW, ResultTable
from benchmarks.runner import run_tasks
from benchmarks.splits import draw

FAST = ("GBRT", "GRBB (paper)")


def row(data: str, method: str, seed: int, value: float, trees: int = 200, metric: str = "accuracy") -> dict[str, str]:
    fields = {"data": data, "method": method, "seed": seed, "value": value, "trees": trees, "metric": metric}
    return {name: str(v) for name, v in (fields | {"seconds": 2.0, "grbb_ext": "1", "xgboost": "2"}).items()}


def small_results() -> list[dict[str, str]]:
    """Return ten seeds: GRBB (paper) leads GBRT on "a" by .1 or .3, and on "b" by .1 and -.1 in turn."""
    rows = []
    for seed, trees in product(range(10), (10, 200)):
        late = 0.05 * (trees == 200)
        rows.append(row("a", "GBRT", seed, 0.5 + seed / 100 + late, trees))
        rows.append(row("a", "GRBB (paper)", seed, 0.5 + seed / 100 + (0.1 if seed % 2 else 0.3), trees))
        rows.append(row("b", "GBRT", seed, 0.6, trees, "precision@5"))
        rows.append(row("b", "GRBB (paper)", seed, 0.6 + (0.1 if seed % 2 else -0.1), trees, "precision@5"))
    return rows


def test_the_best_is_bold_only_beyond_two_errors() -> None:
    curves = Curves(small_results())
    # Leads of .1 and .3: mean .2, error .1 / 3, so it is six errors; on "b" the mean lead is 0.
    assert curves.lead("a", "GRBB (paper)", "GBRT", 10) == pytest.approx((0.2, 0.1 / 3, 10))
    assert curves.winner("a", 10) == "GRBB (paper)"
    assert curves.winner("b", 10) is None
    header, _, first, second = six_report.means_table(curves, 10)
    assert header == "| 10 trees | GBRT | GRBB (paper) |"
    assert first.startswith("| a (10) | 0.545 ± 0.010 | **0.745 ± ")
    assert second.startswith("| b, precision@5 (10) | 0.600 ± 0.000 | 0.600 ± 0.033 |")


def test_a_winner_has_to_be_beyond_the_second_not_the_last() -> None:
    rows = small_results() + [row("a", "LapGBRT", seed, 0.745, 10) for seed in range(10)]
    curves = Curves(rows)
    assert curves.methods == ["GBRT", "LapGBRT", "GRBB (paper)"]  # as in the paper, whatever the order of the file
    assert curves.lead("a", "GRBB (paper)", "GBRT", 10).verdict == "ahead"
    assert curves.winner("a", 10) is None


def test_few_seeds_have_no_winner() -> None:
    assert Curves([r for r in small_results() if int(r["seed"]) < 4]).winner("a", 10) is None


def test_leads_over_the_baselines_and_trees_near_the_top() -> None:
    curves = Curves(small_results())
    header, _, first, second = six_report.leads_table(curves, 200)
    assert header == "| 200 trees | paper over GBRT |"
    assert first == "| a (10) | **+0.150 ± 0.033** |"
    assert second == "| b, precision@5 (10) | +0.000 ± 0.033 |"
    swapped = {"GBRT": "GRBB (paper)", "GRBB (paper)": "GBRT"}
    behind = Curves([r | {"method": swapped[r["method"]]} for r in small_results()])
    assert six_report.leads_table(behind, 200)[2] == "| a (10) | *-0.150 ± 0.033* (!) |"
    assert six_report.claims_table(curves)[2] == "| GRBB (paper) | 1 / 1 / 0 | 1 / 1 / 0 |"
    assert six_report.claims_table(behind)[0].endswith("| over GBRT, 10 trees | over GBRT, 200 trees |")
    assert six_report.claims_table(behind)[2] == "| GRBB (paper) | 0 / 1 / 1 | 0 / 1 / 1 |"
    # GBRT gains .05 between 10 and 200 trees, the other nothing.
    assert (curves.near_top("a", "GBRT"), curves.near_top("a", "GRBB (paper)")) == (200, 10)
    assert curves.near_top("a", "LapGBRT") is None
    assert six_report.near_top_table(curves)[2] == "| a (10) | 200 | 10 |"
    assert six_report.leads_table(Curves([row("a", "GBRT", 0, 1.0)]), 200) == []


def test_table_and_picture_are_made_from_the_rows_alone(tmp_path: Path) -> None:
    text = six_report.write(small_results(), tmp_path)
    assert (tmp_path / "six.md").read_text() == text
    assert "| 10 trees |" in text
    assert "| 50 trees |" not in text  # has not run
    assert (tmp_path / "six.png").read_bytes().startswith(b"\x89PNG")


def test_seeds_come_first_and_all_methods_have_the_same_trials(tmp_path: Path) -> None:
    table = ResultTable(tmp_path / "six.csv", row=ROW)
    tasks = six.missing(table, Options(data=("wine", "digits"), seeds=2))
    assert [task[:2] for task in tasks] == [("wine", 0), ("digits", 0), ("wine", 1), ("digits", 1)]
    assert {task.methods for task in tasks} == {(*METHODS, UNTUNED)}
    assert len({task.n_trials for task in tasks}) == 1
    quick = six.missing(table, Options(quick=True))
    assert {task.n_trials for task in quick} == {six.QUICK_TRIALS}
    assert {task.data for task in quick} == set(six.QUICK)


def test_what_the_search_finds_does_not_identify_a_trial() -> None:
    key = six.key("GRBB (paper)", "wine", 0, 8)
    assert json.loads(key["settings"])["trials"] == 8
    assert not {"eta", "depth", "lam", "n_neighbors"} & json.loads(key["settings"]).keys()
    untuned = json.loads(six.key(UNTUNED, "wine", 0, 8)["settings"])
    assert (untuned["eta"], untuned["depth"]) == (0.3, 4)
    assert "trials" not in untuned


def test_a_stopped_run_goes_on_and_gives_the_same_rows(tmp_path: Path) -> None:
    options = Options(quick=True, data=("wine",), methods=FAST, seeds=1)
    whole = ResultTable(tmp_path / "whole.csv", row=ROW)
    tasks = six.missing(whole, options)
    assert run_tasks(whole, tasks, six.work, "whole") == 0
    assert six.missing(ResultTable(whole.path, row=ROW), options) == []
    rows = whole.read()
    assert len(rows) == 2 * len(TREES)
    assert {r["metric"] for r in rows} == {"accuracy"}
    assert all(set(json.loads(r["details"])) == {*METHODS[r["method"]].space, "loss"} for r in rows)

    # Killed while the last row was written: only its method runs again.
    text = whole.path.read_bytes().splitlines(keepends=True)
    torn = tmp_path / "torn.csv"
    torn.write_bytes(b"".join(text[: len(text) - 1]) + text[-1][:30])
    part = ResultTable(torn, row=ROW)
    again = six.missing(part, options)
    assert again == [Task("wine", 0, six.QUICK_TRIALS, ("GRBB (paper)",))]
    assert run_tasks(part, again, six.work, "rest") == 0

    def content(table: ResultTable) -> set[tuple[tuple[str, str], ...]]:
        return {tuple((k, v) for k, v in r.items() if k != "seconds") for r in table.read()}

    assert content(part) == content(whole)


def test_one_finished_method_is_not_run_again(tmp_path: Path) -> None:
    table = ResultTable(tmp_path / "six.csv", row=ROW)
    key = six.key("GBRT", "wine", 0, six.QUICK_TRIALS)
    blank = dict.fromkeys(COLUMNS, "")
    table.append([blank | key | {"trees": trees, "metric": "accuracy"} for trees in TREES])
    (task,) = six.missing(table, Options(quick=True, data=("wine",), methods=FAST, seeds=1))
    assert task.methods == ("GRBB (paper)",)


def test_neither_hidden_labels_nor_test_labels_reach_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turn every class that no method may see: the search finds the same, and predictions are judged the other way."""
    task = Task("wine", 0, 2, FAST)
    before = six.work(task)
    true = load("wine")
    ids = draw(replace(true, X=np.arange(true.y.size)[:, None]), 0, six.N_LABELS)
    labeled = ids.X[ids.y >= 0, 0].astype(int)
    assert labeled.size == six.N_LABELS
    y = 1 - true.y
    y[labeled] = true.y[labeled]
    monkeypatch.setattr(six, "load", lambda name: replace(true, y=y))
    after = six.work(task)
    assert [r["details"] for r in after] == [r["details"] for r in before]
    assert [r["value"] for r in after] == pytest.approx([1 - r["value"] for r in before], abs=2e-5)


def test_the_ranking_set_is_judged_by_precision_and_tuned_by_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    qid = np.repeat(np.arange(40), 8)
    relevance = (random.random(qid.size) < 0.3).astype(np.int64)
    X = np.column_stack([relevance + random.standard_normal(qid.size), random.standard_normal(qid.size)])
    data = RankingSet(X.astype(np.float32), relevance, qid, qid >= 25)
    monkeypatch.setattr(six, "load_mq2008", lambda: data)
    monkeypatch.setattr(six, "load", lambda name: load("wine"))  # for its number of columns
    hidden: list[Any] = []
    tune = six.tuning.tune

    def spy(*arguments: Any, **named: Any) -> Any:
        hidden.append(named["groups"])
        return tune(*arguments, **named)

    monkeypatch.setattr(six.tuning, "tune", spy)
    rows = six.work(Task("mq2008", 0, 2, ("GBRT",)))
    trial = six.trial_of("mq2008", 0)
    assert hidden[0] is not None
    assert np.unique(trial.qid[trial.y >= 0]).size == 2  # type: ignore[index]
    assert {r["metric"] for r in rows} == {"precision@5"}
    assert {r["n_labels"] for r in rows} == {2}
    assert [r["trees"] for r in rows] == list(TREES)
    # A score that knows the answer finds all that five places can hold; there are 8 documents to a query.
    test = data.is_test & np.isin(data.qid, np.unique(qid[relevance == 1]))
    best = [min(5, int(relevance[qid == q].sum())) / 5 for q in np.unique(qid[test])]
    assert trial.judge(relevance[test].astype(float)) == pytest.approx(np.mean(best))
    assert all(0 < r["value"] <= np.mean(best) + 1e-5 for r in rows)


def test_a_quick_run_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = Options(quick=True, data=("wine",), methods=("GBRT", UNTUNED), seeds=1, output=tmp_path)
    assert six.run(options) == 0
    assert "| 200 trees | GBRT | GRBB (default, untuned) |" in capsys.readouterr().out
    with (tmp_path / "six.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {r["details"] == "" for r in rows if r["method"] == UNTUNED} == {True}
    assert six.run(Options(report=True, forget=("GBRT",), output=tmp_path)) == 0
    assert f"forgot {len(TREES)} rows of GBRT" in capsys.readouterr().out
