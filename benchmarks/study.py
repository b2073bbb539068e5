"""The rivals question: every method on every set, clean and with irrelevant columns, with 5, 20 and 100 labels.

Half of the seeds (0-9) may be used to choose between variants of a method, the other half (10-19) confirms the choice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from benchmarks import study_report
from benchmarks.data import Labels, is_available, load
from benchmarks.options import Options
from benchmarks.results import ROW, ResultTable, package_versions
from benchmarks.rivals import DEPTH, LEARNING_RATE, METHODS, TREES, Fitted, Problem, bins
from benchmarks.runner import Row, run_tasks
from benchmarks.splits import MAX_TRAIN, NOISES, Noise, draw
from benchmarks.study_report import readme_tables, steps_table


def missing_of(table: ResultTable, keys: Iterable[Mapping[str, Any]], n_rows: int = len(TREES)) -> tuple[str, ...]:
    """Return the methods of those trials that have not all of their rows."""
    return tuple(key["method"] for key in keys if not table.has(key, n_rows))


def rows_of(
    key: Mapping[str, Any], fitted: Fitted, seconds: float, truth: Labels, price: Callable[[list[int]], float] | None
) -> list[Row]:
    """Return accuracy and cost of the first 10 trees, and of all 50.

    Parameters
    ----------
    key : mapping
        What identifies the trial.
    fitted : Fitted
        The model.
    seconds : float
        What it took.
    truth : ndarray of int
        The classes of the test rows.
    price : callable or None
        The price of a list of columns; None where there are no prices.

    Returns
    -------
    list of dict
        Rows for :class:`benchmarks.results.ResultTable`.
    """
    rows: list[Row] = []
    for trees in TREES:
        used = fitted.features(trees)
        measured = {
            "trees": trees,
            "metric": "accuracy",
            "cost": "" if price is None or used is None else round(price(used), 2),
            "value": round(float(np.mean(fitted.classes(trees) == truth)), 5),
            "seconds": round(seconds, 3),
            "details": json.dumps(fitted.details) if fitted.details else "",
        }
        rows.append({**key, **measured, **package_versions()})
    return rows


#: The sets of the prototype, then sets on which nobody tuned, but for mq2008: it was among those on which the number of
#: components of the refined graph was chosen.
INSIDE = ("digits", "scene15", "coil20", "usps", "mnist3v8", "cbcl_faces", "isolet", "heart_disease", "thyroid")
OUTSIDE = ("wine", "breast_cancer", "flights", "mq2008", "digits1v8", "digits4v9", "usps3v5")
QUICK = ("digits1v8", "wine")
LABELS = (20, 5, 100)
SLOW = ("self-training", "paper", "laplace, booster", "poisson, booster")
N_SEEDS, QUICK_SEEDS = 20, 4


class Task(NamedTuple):
    """The methods that are missing of one split."""

    data: str
    noise: Noise
    n_labels: int
    seed: int
    rows: int
    methods: tuple[str, ...]


def splits(options: Options) -> Iterator[tuple[list[str], tuple[str, Noise, int, int, int]]]:
    """Return methods, and data set, noise, number of labels, seed and most training rows, the most important first.

    First 20 labels on clean columns, for all sets, seed by seed; then with irrelevant columns, which the sets `OUTSIDE`
    do not get unless they are asked for by name; then 5 and 100 labels. In each stage the methods that take longest
    come last. A run that is stopped early has the same seeds for all sets.
    """
    names = options.data or (QUICK if options.quick else (*INSIDE, *OUTSIDE))
    known = [name for name in names if options.data or is_available(name)]
    n_seeds = options.seeds or (QUICK_SEEDS if options.quick else N_SEEDS)
    labels = options.labels or ((20,) if options.quick else LABELS)
    clean: tuple[Noise, ...] = ("none",)
    stages = [(n_labels, noises) for noises in (clean, NOISES[1:]) for n_labels in labels]
    asked = options.choose(METHODS)
    # 20 labels with irrelevant columns matter more than other numbers of labels without.
    stages.sort(key=lambda stage: (stage[0] != LABELS[0], stage[1] != clean))
    for n_labels, noises in stages:
        for slow in (False, True):
            methods = [m for m in asked if (m in SLOW) == slow]
            every_set = noises == clean or options.data or options.quick
            sets = [name for name in known if every_set or name in INSIDE]
            wanted = [noise for noise in noises if not options.noise or noise in options.noise]
            for seed, noise, name in product(range(n_seeds), wanted, sets):
                yield methods, (name, noise, n_labels, seed, options.rows or MAX_TRAIN)


def key(method: str, data: str, noise: str, n_labels: int, seed: int, rows: int = MAX_TRAIN) -> dict[str, Any]:
    """Return what identifies a trial in the CSV."""
    settings: dict[str, Any] = {} if rows == MAX_TRAIN else {"rows": rows}
    settings |= {"depth": DEPTH, "eta": LEARNING_RATE, "max_bin": bins(load(data).X.shape[1])}
    return {
        "data": data,
        "method": method,
        "seed": seed,
        "n_labels": n_labels,
        "noise": noise,
        "settings": json.dumps(settings),
    }


def missing(table: ResultTable, options: Options) -> list[Task]:
    """Return the splits with methods that have not run."""
    tasks = []
    for methods, split in splits(options):
        if wanted := missing_of(table, [key(method, *split) for method in methods]):
            tasks.append(Task(*split, wanted))
    return tasks


def work(task: Task) -> list[Row]:
    """Run the methods of a split and return a row for each method and number of trees."""
    data = load(task.data)
    split = draw(data, task.seed, task.n_labels, task.noise, max_train=task.rows)
    problem = Problem(split, bins(data.X.shape[1]))
    costs, n_real = data.costs, data.X.shape[1]
    # Irrelevant columns come after the real ones and are free.
    price = None if costs is None else lambda columns: costs.total([j for j in columns if j < n_real])
    rows: list[Row] = []
    for method in task.methods:
        fitted, seconds = problem.timed(METHODS[method])
        rows += rows_of(key(method, *task[:-1]), fitted, seconds, split.truth, price)
    return rows


def run(options: Options) -> int:
    """Run what is missing, write tables and picture, and return how many tasks failed."""
    name = "rivals" if options.rows is None else f"rivals_{options.rows}"
    table = ResultTable(options.folder / f"{name}.csv", row=ROW)
    for method in options.forget:
        print(f"forgot {table.forget(method=method)} rows of {method}")
    failures = 0 if options.report else run_tasks(table, missing(table, options), work, "rivals", options.jobs)
    if rows := table.read():
        print(study_report.write(rows, options.folder, name))
        if options.rows is None:
            study = study_report.Study(rows)
            (options.folder / "rivals_readme.md").write_text(readme_tables(study))
            (options.folder / "rivals_steps.md").write_text(steps_table(study))
    return failures
