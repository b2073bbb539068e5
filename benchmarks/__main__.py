"""``python -m benchmarks QUESTION``: run what is missing of a question, then make its tables and pictures."""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

#: Each question is a module with ``run(options) -> number of failures``; its docstring says what is asked.
QUESTIONS = {
    "figure1": "benchmarks.figure1",
    "variance": "benchmarks.variance",
    "rivals": "benchmarks.study",
    "tables": "benchmarks.tables",
    "few_shot": "benchmarks.few_shot",
    "unseen": "benchmarks.unseen",
    "regression": "benchmarks.regression",
    "variants": "benchmarks.variants",
    "equal_cost": "benchmarks.equal_cost",
    "six": "benchmarks.paper.six",
    "scene15": "benchmarks.paper.scene15",
    "ltr": "benchmarks.paper.ltr",
    "prices": "benchmarks.paper.prices",
    "speed": "benchmarks.speed",
    "scale": "benchmarks.scale",
}
#: Questions about time use all cores; the others run trials with one thread each, so that --jobs divides the machine.
ALL_THREADS = {"speed", "scale"}


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    result = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    result.add_argument("question", choices=[*QUESTIONS, "all"])
    result.add_argument("--quick", action="store_true", help="a few minutes, on data that every machine has")
    result.add_argument("--seeds", type=int, help="trials of each kind")
    result.add_argument("--jobs", type=int, default=1, help="processes, each with one thread")
    result.add_argument("--methods", nargs="+", default=[], help="only these methods")
    result.add_argument("--without", nargs="+", default=[], help="leave these methods out")
    result.add_argument("--data", nargs="+", default=[], help="only these data sets")
    result.add_argument("--labels", nargs="+", type=int, default=[], help="only these numbers of labels")
    # NOISES of benchmarks.splits, which imports numpy: too early here.
    kinds = ("none", "gaussian", "permuted")
    result.add_argument("--noise", nargs="+", choices=kinds, default=[], help="only these kinds of irrelevant columns")
    result.add_argument("--rows", type=int, help="the most training rows; the results get files of their own")
    result.add_argument("--report", action="store_true", help="only make tables and pictures from the CSV")
    result.add_argument("--forget", nargs="+", default=[], help="remove the rows of these methods first")
    result.add_argument("--check", action="store_true", help="speed: compare ratios with the committed ones")
    result.add_argument("--output", type=Path, help="folder of the results (default: docs/results)")
    return result


def run_all(words: list[str]) -> int:
    """Run the questions one after another, each in a process of its own, and return how many failed."""
    failed = []
    for question in QUESTIONS:
        print(f"--- {question}", flush=True)
        start = time.perf_counter()
        command = [sys.executable, "-m", "benchmarks", *(question if word == "all" else word for word in words)]
        if subprocess.run(command, check=False).returncode:
            failed.append(question)
        print(f"--- {question} took {time.perf_counter() - start:.0f} s", flush=True)
    if failed:
        print(f"Not all trials of {', '.join(failed)} could be run: see the messages above.", file=sys.stderr)
    return len(failed)


def main() -> int:
    """Run a question, or all of them one after another."""
    arguments = vars(parser().parse_args())
    question = arguments.pop("question")
    if question == "all":
        return run_all(sys.argv[1:])
    if question not in ALL_THREADS:
        # Before numpy is imported, and inherited by the processes of --jobs.
        os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    from benchmarks.options import Options

    given: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in arguments.items()}
    options = Options(**given)
    if options.check and question != "speed":
        raise SystemExit("--check is for the question speed.")
    return 1 if importlib.import_module(QUESTIONS[question]).run(options) else 0


if __name__ == "__main__":
    sys.exit(main())
