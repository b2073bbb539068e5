from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.results import COLUMNS, ROW, TRIAL, ResultTable, package_versions
from benchmarks.runner import run_tasks

COLUMNS_HERE = ("seed", "trees", "value")


def table_in(folder: Path) -> ResultTable:
    return ResultTable(folder / "deep" / "trials.csv", COLUMNS_HERE, ["seed"], ["trees"])


def two_rows(seed: int) -> list[dict[str, float]]:
    return [{"seed": seed, "trees": trees, "value": seed + trees / 100} for trees in (10, 50)]


def test_a_trial_is_finished_once_all_of_its_rows_are_there(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    assert not table.has({"seed": 0}, 2)
    table.append(two_rows(0))
    table.append(two_rows(1)[:1])
    again = table_in(tmp_path)
    assert again.has({"seed": 0}, 2)
    assert not again.has({"seed": 1}, 2)
    assert [row["value"] for row in again.read()] == ["0.1", "0.5", "1.1"]


@pytest.mark.parametrize("cut", range(1, 14))
def test_wherever_the_file_is_cut_the_next_run_repairs_it(tmp_path: Path, cut: int) -> None:
    table = table_in(tmp_path)
    table.append(two_rows(0))
    table.append(two_rows(1))
    os.truncate(table.path, table.path.stat().st_size - cut)
    again = table_in(tmp_path)
    missing = [seed for seed in (0, 1) if not again.has({"seed": seed}, 2)]
    assert missing == [1]
    again.append(two_rows(1))
    whole = table_in(tmp_path)
    assert sorted((row["seed"], row["trees"], row["value"]) for row in whole.read()) == [
        ("0", "10", "0.1"),
        ("0", "50", "0.5"),
        ("1", "10", "1.1"),
        ("1", "50", "1.5"),
    ]
    assert whole.path.read_text().count("seed") == 1


def test_a_file_cut_within_the_header_starts_anew(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    table.append(two_rows(0))
    os.truncate(table.path, 7)
    again = table_in(tmp_path)
    assert again.read() == []
    again.append(two_rows(3))
    assert [row["seed"] for row in again.read()] == ["3", "3"]


def test_the_later_of_two_equal_rows_holds(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    table.append(two_rows(0))
    table.append([{"seed": 0, "trees": 50, "value": 9}])
    assert [row["value"] for row in table.read()] == ["0.1", "9"]


def test_other_columns_are_refused(tmp_path: Path) -> None:
    table_in(tmp_path).append(two_rows(0))
    with pytest.raises(ValueError, match="move it away"):
        ResultTable(tmp_path / "deep" / "trials.csv", ("seed", "value"), ["seed"]).read()


def test_forgetting_a_method_keeps_the_others(tmp_path: Path) -> None:
    table = ResultTable(tmp_path / "a.csv", row=ROW)
    for method in ("default", "hard"):
        table.append([dict.fromkeys(TRIAL, "x") | {"method": method, "trees": 10, "metric": "accuracy"}])
    assert table.has(dict.fromkeys(TRIAL, "x") | {"method": "default"})
    assert table.forget(method="default") == 1
    assert [row["method"] for row in table.read()] == ["hard"]
    assert not table.has(dict.fromkeys(TRIAL, "x") | {"method": "default"})
    assert list(tmp_path.iterdir()) == [table.path]


def test_rows_name_the_packages() -> None:
    versions = package_versions()
    assert set(versions) <= set(COLUMNS)
    assert all(versions.values())


KILLED = """
import os, signal, sys
from pathlib import Path
from benchmarks.results import ResultTable
from benchmarks.runner import run_tasks

table = ResultTable(Path(sys.argv[1]), ("seed", "trees", "value"), ["seed"], ["trees"])

def work(seed):
    if seed == 3 and sys.argv[2] == "kill":
        with table.path.open("a") as file:
            file.write("3,10,0.")  # half a line
        os.kill(os.getpid(), signal.SIGKILL)
    print(seed)
    return [{"seed": seed, "trees": trees, "value": seed} for trees in (10, 50)]

run_tasks(table, [seed for seed in range(5) if not table.has({"seed": seed}, 2)], work, "test")
"""


def test_a_killed_run_is_taken_up_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "trials.csv"

    def start(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", KILLED, str(path), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])

    assert start("kill").returncode == -signal.SIGKILL
    second = start("finish")
    assert second.returncode == 0, second.stderr
    assert second.stdout.split() == ["3", "4"]
    rows = ResultTable(path, COLUMNS_HERE, ["seed"], ["trees"]).read()
    assert [(row["seed"], row["trees"]) for row in rows] == [(str(s), t) for s in range(5) for t in ("10", "50")]


def test_a_task_that_fails_is_counted_and_does_not_end_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = table_in(tmp_path)

    def work(seed: int) -> list[dict[str, float]]:
        if seed == 1:
            raise RuntimeError("no such luck")
        return two_rows(seed)

    assert run_tasks(table, [0, 1, 2], work, "test") == 1
    assert "no such luck" in capsys.readouterr().err
    again = table_in(tmp_path)
    assert [again.has({"seed": seed}, 2) for seed in range(3)] == [True, False, True]
