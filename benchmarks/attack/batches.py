"""Batches of cases in processes of their own, and the table of how they ended."""

from __future__ import annotations

import json
import os
import queue
import resource
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.attack import BAD, ENDS
from benchmarks.attack.killed_workers import ATTACKS as ON_WORKERS
from benchmarks.attack.model_files import ATTACKS as ON_MODEL_FILES
from benchmarks.attack.training import ATTACKS as ON_TRAINING
from benchmarks.results import PACKAGES, package_versions

#: All kinds; another one is a dict like that of :mod:`benchmarks.attack.model_files`.
ATTACKS = {**ON_MODEL_FILES, **ON_TRAINING, **ON_WORKERS}
COLUMNS = ("attack", "batch", "cases", *ENDS, "seconds", "details", *PACKAGES)
_MEMORY = 6 * 2**30


def work(name: str, batch: int, first: int, cases: int) -> None:
    """Run cases of a batch in this process; a line for each."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    warnings.simplefilter("ignore")
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the libraries print
    with tempfile.TemporaryDirectory() as folder:
        case = ATTACKS[name].prepare(Path(folder))
        print("ready", file=out, flush=True)
        for i in range(first, cases):
            try:
                end, word = case(np.random.default_rng([*name.encode(), batch, i]))
            except Exception as error:
                end, word = "foreign", f"{type(error).__name__}: {error}"
            print(json.dumps([i, end, word[:300]]), file=out, flush=True)


def _forward(stream: Any, lines: queue.Queue[str]) -> None:
    """Put the lines of a process into a queue, and an empty one at its end."""
    for line in stream:
        lines.put(line)
    lines.put("")


def run_batch(name: str, batch: int, cases: int) -> dict[str, Any]:
    """Run a batch in other processes, and count how its cases end."""
    started, ends, details, i = time.perf_counter(), Counter[str](), [], 0
    while i < cases:
        command = [sys.executable, "-m", "benchmarks.attack", "--work", name, str(batch), str(i), str(cases)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        hung, prepared = False, False
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        ) as process:
            lines: queue.Queue[str] = queue.Queue()
            threading.Thread(target=_forward, args=(process.stdout, lines), daemon=True).start()
            while True:
                try:
                    line = lines.get(timeout=ATTACKS[name].patience * (1 if prepared else 10))
                except queue.Empty:
                    hung = True
                    process.kill()
                    break
                if not line:
                    break
                if line == "ready\n":
                    prepared = True
                    continue
                i, end, word = json.loads(line)
                i += 1
                ends[end] += 1
                if end in BAD:
                    details.append(f"{i - 1} {end}: {word}")
        if i < cases:
            if not prepared:
                raise RuntimeError(f"{name} cannot be prepared: run {' '.join(command)}")
            end = "hang" if hung else "abort"
            ends[end] += 1
            details.append(f"{i} {end}")
            i += 1
    return {
        "attack": name, "batch": batch, "cases": cases, **{end: ends[end] for end in ENDS},
        "seconds": f"{time.perf_counter() - started:.1f}", "details": "; ".join(details)[:2000], **package_versions(),
    }  # fmt: skip


def report(rows: list[dict[str, str]]) -> str:
    """Return the table: what was attacked, how often, what came through."""
    lines = ["| attack | cases | " + " | ".join(ENDS) + " |", "|---|" + "---|" * (1 + len(ENDS))]
    for name in dict.fromkeys(row["attack"] for row in rows):
        of_attack = [row for row in rows if row["attack"] == name]
        sums = [sum(int(row[column]) for row in of_attack) for column in ("cases", *ENDS)]
        lines.append(f"| {name} | " + " | ".join(f"{value:,}" for value in sums) + " |")
    return "\n".join(lines)
