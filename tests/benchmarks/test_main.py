from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import __main__ as program
from benchmarks.options import QUICK_RESULTS, Options
from benchmarks.results import RESULTS
from benchmarks.splits import NOISES


def test_every_question_can_be_run() -> None:
    for module in program.QUESTIONS.values():
        assert callable(importlib.import_module(module).run)


def test_what_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        program.parser().parse_args(["six hundred"])
    assert "invalid choice" in capsys.readouterr().err


def test_kinds_of_irrelevant_columns_are_those_of_the_splits() -> None:
    assert program.parser().parse_args(["rivals", "--noise", *NOISES]).noise == list(NOISES)
    with pytest.raises(SystemExit):
        program.parser().parse_args(["rivals", "--noise", "loud"])


def test_all_asks_every_question_in_a_process_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = []

    def fake(command: list[str], check: bool) -> SimpleNamespace:
        commands.append(command[3:])
        return SimpleNamespace(returncode=int("variance" in command))

    monkeypatch.setattr(program.subprocess, "run", fake)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "all", "--quick", "--jobs", "2"])
    assert program.main() == 1
    assert commands == [[question, "--quick", "--jobs", "2"] for question in program.QUESTIONS]
    assert "variance" in capsys.readouterr().err


def test_trials_have_one_thread_and_the_speed_question_all() -> None:
    code = (
        "import os, sys, runpy; os.environ.pop('OMP_NUM_THREADS', None)\n"
        "import benchmarks.__main__ as program\n"
        "assert 'numpy' not in sys.modules, 'threads must be set before numpy is imported'\n"
        "class Nothing:\n"
        "    run = staticmethod(lambda options: print(os.environ.get('OMP_NUM_THREADS'), options.seeds))\n"
        "program.importlib.import_module = lambda name: Nothing\n"
        "for question in ('rivals', 'speed'):\n"
        "    os.environ.pop('OMP_NUM_THREADS', None); sys.argv = ['x', question, '--seeds', '3']\n"
        "    assert program.main() == 0\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2]
    )
    assert done.stdout.split() == ["1", "3", "None", "3"], done.stderr


def test_methods_are_chosen_by_name_and_unknown_ones_refused() -> None:
    assert Options().choose(["a", "b"]) == ["a", "b"]
    assert Options(without=("a",)).choose(["a", "b"]) == ["b"]
    assert Options(methods=("b",)).choose(["a", "b"]) == ["b"]
    for wrong in (Options(methods=("c",)), Options(without=("c",))):
        with pytest.raises(SystemExit, match=r"no method 'c'. Known are: a; b"):
            wrong.choose(["a", "b"])


def test_a_quick_run_does_not_touch_the_committed_results() -> None:
    assert Options().folder == RESULTS
    assert Options(quick=True).folder == QUICK_RESULTS != RESULTS
    assert Options(quick=True, output=Path("x")).folder == Path("x")
