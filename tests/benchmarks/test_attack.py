from __future__ import annotations

import os

import numpy as np
import pytest

from benchmarks.attack import BAD, ENDS, Attack, batches
from benchmarks.attack.random_files import changed_document, damaged


@pytest.mark.parametrize("name", ["mutated XGBoost files", "mutated LightGBM files", "forged saved models"])
def test_a_few_cases_of_each_attack(name):
    row = batches.run_batch(name, 123, 6)
    assert sum(row[end] for end in ENDS) == 6
    assert [row["details"], *(row[end] for end in BAD)] == ["", 0, 0, 0, 0]


def test_aborts_hangs_and_exceptions_are_counted(monkeypatch):
    program = (
        "import os, time\n"
        "from benchmarks import attack\n"
        "from benchmarks.attack import batches\n"
        "def case(rng, calls=[]):\n"
        "    i = int(os.environ['CASE']) if 'CASE' in os.environ else FIRST + len(calls)\n"
        "    calls.append(i)\n"
        "    if i == 1: os.abort()\n"
        "    if i == 2: time.sleep(60)\n"
        "    if i == 3: raise KeyError('a')\n"
        "    return 'equal', ''\n"
        "batches.ATTACKS['test'] = attack.Attack(lambda folder: case, 1, 5)\n"
        "batches.work('test', 0, FIRST, 5)\n"
    )
    popen = batches.subprocess.Popen

    def start(command, **options):
        if "--work" not in command:  # git tells the version
            return popen(command, **options)
        return popen([command[0], "-c", program.replace("FIRST", command[6])], **options)

    monkeypatch.setattr(batches.subprocess, "Popen", start)
    monkeypatch.setitem(batches.ATTACKS, "test", Attack(lambda folder: None, 1, 5, patience=3.0))
    monkeypatch.setitem(os.environ, "PYTHONPATH", os.pathsep.join(batches.sys.path))
    row = batches.run_batch("test", 0, 5)
    assert {end: row[end] for end in ENDS if row[end]} == {"equal": 2, "foreign": 1, "abort": 1, "hang": 1}
    assert row["details"] == "1 abort; 2 hang; 3 foreign: KeyError: 'a'"


def test_the_table():
    rows = [{"attack": "a", "cases": "10", **dict.fromkeys(ENDS, "1")} for _ in range(200)]
    assert batches.report(rows).splitlines()[-1] == "| a | 2,000 | " + " | ".join(["200"] * len(ENDS)) + " |"


def test_documents_and_bytes_are_changed():
    rng = np.random.default_rng(0)
    document = {"a": [1, 2.5, {"b": "x"}], "c": None}
    assert sum(changed_document(document, rng) != document for _ in range(50)) > 40
    assert document == {"a": [1, 2.5, {"b": "x"}], "c": None}
    assert sum(damaged(b"abc 123\ndef", rng) != b"abc 123\ndef" for _ in range(50)) > 30
