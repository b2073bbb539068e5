from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import study
from benchmarks.options import Options
from benchmarks.paired import Mean, difference, mean_of
from benchmarks.results import ROW, ResultTable
from benchmarks.runner import run_tasks
from benchmarks.study_report import Setting, Study, detail_table, draw, markdown, means_table, summary_table, write

CLEAN = Setting(20, "none", 50)


def row(data: str, method: str, seed: int, value: float, **more: object) -> dict[str, str]:
    fields: dict[str, object] = {"data": data, "method": method, "seed": seed, "value": value, "n_labels": 20}
    fields |= {"noise": "none", "trees": 50, "metric": "accuracy", "seconds": 1, "grbb_ext": "1", "xgboost": "2"}
    return {name: str(v) for name, v in (fields | {"cost": 0, "settings": "{}"} | more).items()}


def small_study() -> list[dict[str, str]]:
    """Return 20 seeds on two sets. The default leads by .01 or .03 on one, and on the other by .1 and -.1 in turn."""
    rows = []
    for seed in range(20):
        rows += [row("a", "hard", seed, 0.5 + seed / 100), row("b", "hard", seed, 0.6)]
        rows += [row("a", "default", seed, 0.5 + seed / 100 + (0.01 if seed % 2 else 0.03))]
        rows += [row("b", "default", seed, 0.6 + (0.1 if seed % 2 else -0.1))]
    return rows


def test_mean_and_error_by_hand() -> None:
    # Deviations -1, 0, 1: variance 1 over n - 1 = 2 degrees of freedom, error 1 / sqrt(3).
    assert mean_of([1, 2, 3]) == pytest.approx((2, 3**-0.5, 3))
    assert mean_of([]).n == 0
    assert np.isnan(mean_of([5]).error)
    assert difference({0: 1.0, 1: 2.0, 7: 9.0}, {0: 0.5, 1: 0.5}) == pytest.approx((1.0, 0.5, 2))
    assert difference({0: 1.0, 1: 2.0}, {0: 0.5, 1: 0.5}, seeds=[1]).value == 1.5


def test_verdicts_need_two_errors_and_five_trials() -> None:
    assert Mean(0.021, 0.01, 10).verdict == "ahead"
    assert Mean(-0.021, 0.01, 10).verdict == "behind"
    assert Mean(0.019, 0.01, 10).verdict == "level"
    assert Mean(1.0, 0.01, 4).verdict == "level"
    assert Mean(0.0, 0.0, 10).verdict == "level"


def test_leads_and_scores_by_hand() -> None:
    compared = Study(small_study())
    assert compared.reference == "default"
    lead = compared.lead(CLEAN, "hard", "a")
    # Half of the leads are .01, half .03: deviation .01 from .02, so the variance is 20 * .01^2 / 19.
    assert lead == pytest.approx((0.02, 0.01 / 19**0.5, 20))
    assert compared.lead(CLEAN, "hard", "b") == pytest.approx((0.0, 0.1 / 19**0.5, 20))
    assert compared.lead(CLEAN, "hard", "a", range(10)).n == 10
    counts, mean = compared.score(CLEAN, "hard")
    assert (counts["ahead"], counts["level"], counts["behind"]) == (1, 1, 0)
    assert mean.value == pytest.approx(0.01)
    assert compared.confirmation == set(range(10, 20))


def test_tables_hold_the_numbers() -> None:
    compared = Study(small_study())
    assert summary_table(compared, CLEAN)[2] == "| hard | 1 / 1 / 0, +0.010 | 1 / 1 / 0, +0.010 | 1 / 1 / 0, +0.010 |"
    details = detail_table(compared, CLEAN)
    assert details[2].endswith("| **+0.020 ± 0.002** |")
    assert details[2].startswith("| a (20) | 0.615 ± ")
    assert details[3] == "| b (20) | 0.600 ± 0.023 | +0.000 ± 0.023 |"
    assert detail_table(compared, CLEAN, range(10))[2].startswith("| a (10) | 0.565")
    assert "| hard | 0.595 ± 0.013 | 0.600 ± 0.000 |" in means_table(compared, CLEAN)
    behind = [r | {"method": {"hard": "default", "default": "hard"}[r["method"]]} for r in small_study()]
    assert detail_table(Study(behind), CLEAN)[2].endswith("| *-0.020 ± 0.002* (!) |")


def test_without_the_default_the_plain_graph_is_the_reference() -> None:
    rows = [r | {"method": r["method"].replace("default", "knn smooth")} for r in small_study()]
    assert Study(rows).reference == "knn smooth"


def test_other_numbers_of_labels_are_in_the_long_report_only(tmp_path: Path) -> None:
    rows = small_study() + [r | {"n_labels": "5"} for r in small_study()]
    assert "5 labels" not in markdown(Study(rows), everything=False)
    assert "5 labels, clean columns, 50 trees" in markdown(Study(rows), everything=True)
    text = write(rows, tmp_path)
    assert (tmp_path / "rivals.md").read_text() == text
    assert (tmp_path / "rivals_all.md").stat().st_size > len(text)
    assert (tmp_path / "rivals.png").read_bytes().startswith(b"\x89PNG")


def test_the_picture_leaves_out_rivals_that_have_not_run(tmp_path: Path) -> None:
    draw(Study([r for r in small_study() if r["method"] == "default"]), tmp_path / "none.png")
    assert not (tmp_path / "none.png").exists()


def test_the_most_important_trials_come_first() -> None:
    order = [split for _, split in study.splits(Options(seeds=2, data=("wine", "digits")))]
    firsts = {split[1:3]: order.index(split) for split in reversed(order)}
    assert [(name, seed) for name, *_, seed, _ in order[:3]] == [("wine", 0), ("digits", 0), ("wine", 1)]
    assert firsts["none", 20] < firsts["gaussian", 20] < firsts["none", 5] < firsts["none", 100] < firsts["gaussian", 5]
    assert len(order) == 2 * 2 * 2 * 3 * 3  # fast and slow methods, sets, seeds, numbers of labels, kinds of columns


def test_irrelevant_columns_are_for_the_sets_inside() -> None:
    kinds = {(name, noise) for _, (name, noise, *_) in study.splits(Options(seeds=1))}
    assert {("digits", "none"), ("digits", "gaussian"), ("wine", "none")} <= kinds
    assert ("wine", "gaussian") not in kinds
    asked = {noise for _, (_, noise, *_) in study.splits(Options(seeds=1, data=("wine",), noise=("permuted",)))}
    assert asked == {"permuted"}


def test_only_missing_methods_run_and_two_processes_give_the_same_rows(tmp_path: Path) -> None:
    options = Options(methods=("labeled only", "hard"), data=("wine",), seeds=1, labels=(20,), output=tmp_path)
    table = ResultTable(tmp_path / "rivals.csv", row=ROW)
    tasks = study.missing(table, options)
    assert [task.noise for task in tasks] == ["none", "gaussian", "permuted"]
    assert run_tasks(table, tasks, study.work, "one process") == 0
    assert study.missing(ResultTable(table.path, row=ROW), options) == []
    more = Options(methods=("labeled only", "soft"), data=("wine",), seeds=1, labels=(20,), output=tmp_path)
    assert {task.methods for task in study.missing(ResultTable(table.path, row=ROW), more)} == {("soft",)}

    other = ResultTable(tmp_path / "other.csv", row=ROW)
    assert run_tasks(other, tasks, study.work, "two processes", jobs=2) == 0

    def content(rows: list[dict[str, str]]) -> set[tuple[tuple[str, str], ...]]:
        return {tuple((k, v) for k, v in r.items() if k != "seconds") for r in rows}

    assert content(other.read()) == content(table.read())
    assert len(table.read()) == 3 * 2 * 2  # kinds of columns, methods, numbers of trees


def test_a_quick_run_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = Options(quick=True, seeds=1, data=("wine",), methods=("default", "hard"), output=tmp_path)
    assert study.run(options) == 0
    assert "20 labels, clean columns, 50 trees" in capsys.readouterr().out
    with (tmp_path / "rivals.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {json.loads(r["settings"])["max_bin"] for r in rows} == {256}
    assert study.run(Options(report=True, forget=("hard",), output=tmp_path)) == 0
    assert "forgot 6 rows of hard" in capsys.readouterr().out


def test_more_training_rows_have_files_of_their_own(tmp_path: Path) -> None:
    options = Options(methods=("labeled only",), data=("wine",), seeds=1, labels=(20,), rows=60, output=tmp_path)
    assert study.run(options) == 0
    rows = ResultTable(tmp_path / "rivals_60.csv", row=ROW).read()
    assert {json.loads(r["settings"])["rows"] for r in rows} == {60}
    assert not (tmp_path / "rivals.csv").exists()
    assert "rows" not in study.key("hard", "wine", "none", 20, 0)["settings"]
