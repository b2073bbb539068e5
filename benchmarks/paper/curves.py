"""The machine behind the cost/accuracy figures: cases, trials with several points each, the CSV, and the report.

A question (`scene15`, `ltr`, `prices`) says which rows, prices, labels and metrics; everything else is here. The points
of a trial are rows of the CSV, told apart by their settings; a trial counts as finished once all of them are there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from benchmarks.data import is_available
from benchmarks.options import Options
from benchmarks.paper import curve_report
from benchmarks.paper.curve_methods import METHODS, NOTHING, Plan, Point, Problem, Trial
from benchmarks.paper.queries import precision_at
from benchmarks.results import ROW, ResultTable, package_versions
from benchmarks.runner import Row, run_tasks

METRICS: dict[str, Callable[[NDArray[np.float64], Problem], float]] = {
    "accuracy": lambda scores, problem: float(np.mean((scores > 0) == problem.truth)),
    "auc": lambda scores, problem: float(roc_auc_score(problem.truth, scores)),
    "precision@5": lambda scores, problem: precision_at(scores, problem.truth, problem.test_queries),
}


@dataclass(frozen=True)
class Case:
    """A set and a number of labels (or labelled queries), with the grids.

    `methods` and `n_seeds` are for a case that is too large for all methods or runs; `is_last` lets it wait for others.
    """

    data: str
    n_labels: int
    plan: Plan
    methods: tuple[str, ...] = tuple(METHODS)
    n_seeds: int | None = None
    is_last: bool = False


@dataclass(frozen=True)
class Question:
    """What a figure asks.

    Attributes
    ----------
    name : str
        Of the command and of the files.
    problem : callable
        ``problem(data, n_labels, seed)`` draws a split.
    cases, quick_cases : tuple of Case
        In full, and on data that every machine has.
    metrics : tuple of str
        Names in `METRICS`; the first is drawn.
    n_seeds : int
        Runs of each case.
    budgets : dict
        For each set, the costs at which methods are compared.
    what : str
        What is labelled: labels or queries.
    can_read : callable
        Whether a set can be read.
    """

    name: str
    problem: Callable[[str, int, int], Problem]
    cases: tuple[Case, ...]
    quick_cases: tuple[Case, ...]
    metrics: tuple[str, ...]
    n_seeds: int
    budgets: dict[str, tuple[float, ...]]
    what: str = "labels"
    can_read: Callable[[str], bool] = is_available


class Task(NamedTuple):
    """The methods that are missing of one split."""

    case: Case
    seed: int
    methods: tuple[str, ...]


def key(case: Case, method: str, seed: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Return what identifies a point in the CSV."""
    return {
        "data": case.data,
        "method": method,
        "seed": seed,
        "n_labels": case.n_labels,
        "noise": "none",
        "settings": json.dumps(settings),
    }


def missing(question: Question, table: ResultTable, options: Options) -> list[Task]:
    """Return the splits with methods that lack points, seed by seed, so that a stopped run has the same seeds."""
    cases = question.quick_cases if options.quick else question.cases
    cases = tuple(
        case
        for case in cases
        if (not options.data or case.data in options.data)
        and (not options.labels or case.n_labels in options.labels)
        and question.can_read(case.data)
    )
    most = max((_seeds(question, case, options) for case in cases), default=0)
    asked = options.choose(METHODS)
    tasks = []
    for seed, case in product(range(most), cases):
        if seed < _seeds(question, case, options):
            lacking = tuple(m for m in asked if m in case.methods and not _has(table, question, case, m, seed))
            if lacking:
                tasks.append(Task(case, seed, lacking))
    return sorted(tasks, key=lambda task: task.case.is_last)


def _seeds(question: Question, case: Case, options: Options) -> int:
    return options.seeds or (1 if options.quick else case.n_seeds or question.n_seeds)


def _has(table: ResultTable, question: Question, case: Case, method: str, seed: int) -> bool:
    settings = METHODS[method].settings(case.plan)
    return all(table.has(key(case, method, seed, point), len(question.metrics)) for point in settings)


def work(question: Question, task: Task) -> list[Row]:
    """Run the methods of a split and return a row for each point and metric."""
    case, seed, _ = task
    problem = question.problem(case.data, case.n_labels, seed)
    trial = Trial(problem, case.plan, seed)
    rows: list[Row] = []
    for method in task.methods:
        settings = METHODS[method].settings(case.plan)
        for point, (found, seconds) in zip(settings, _timed(METHODS[method].points(trial)), strict=True):
            shared = {
                **key(case, method, seed, point),
                "trees": point.get("first", point.get("trees", 0)),
                "cost": round(found.cost, 3),
                "seconds": round(seconds, 3),
                "details": json.dumps(found.details),
                **package_versions(),
            }
            values = {metric: METRICS[metric](found.scores, problem) for metric in question.metrics}
            rows += [shared | {"metric": metric, "value": round(value, 5)} for metric, value in values.items()]
    return rows


def _timed(points: Iterator[Point]) -> Iterator[tuple[Point, float]]:
    """Yield points with the seconds they took; a search counts for the first point that needs it."""
    start = time.perf_counter()
    for point in points:
        yield point, time.perf_counter() - start
        start = time.perf_counter()


def run(question: Question, work: Callable[[Task], list[Row]], options: Options) -> int:
    """Run what is missing, write tables and picture, and return how many tasks failed.

    `work` is that of the question's module, so that other processes can find it.
    """
    path = options.folder / f"{question.name}.csv"
    table = ResultTable(path, row=ROW)
    for method in options.forget:
        print(f"forgot {table.forget(method=method)} rows of {method}")
    failures = 0
    if not options.report:
        failures = run_tasks(table, missing(question, table, options), work, question.name, options.jobs)
    if rows := table.read():
        budgets = {case.data: question.budgets[case.data] for case in (*question.quick_cases, *question.cases)}
        print(curve_report.write(rows, path, budgets, question.metrics, question.what, NOTHING))
    return failures
