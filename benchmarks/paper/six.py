"""The paper's Figure 2: GBRT, LapGBRT and GRBB on six sets with 20 labels (2 queries), after every number of trees.

Hyper-parameters of every method are searched on the labelled rows, with as many trials for each
(:mod:`benchmarks.paper.tuning`). Then 200 trees are grown once, and the first of them are evaluated, too.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import Labels, is_available, load
from benchmarks.options import Options
from benchmarks.paper import six_report, tuning
from benchmarks.paper.boosted import DEFAULT, METHODS, Rows, Settings, fit
from benchmarks.paper.queries import N_QUERIES, draw_queries, precision_at
from benchmarks.ranking import load_mq2008
from benchmarks.results import ROW, ResultTable, package_versions
from benchmarks.rivals import DEPTH, LEARNING_RATE, bins
from benchmarks.runner import Row, run_tasks
from benchmarks.splits import draw
from benchmarks.study import missing_of

SETS = ("coil20", "usps", "isolet", "mnist3v8", "cbcl_faces", "mq2008")
QUICK = ("wine",)
RANKING = "mq2008"
TREES = (1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50, 70, 100, 150, 200)
N_LABELS, N_LABELED_QUERIES, N_SEEDS = 20, 2, 10
QUICK_SEEDS, QUICK_TRIALS = 2, 3
#: The package as it comes, with the booster's settings of the rivals: what the search gains is the difference.
UNTUNED = "GRBB (default, untuned)"
AS_IT_COMES = Settings(eta=LEARNING_RATE, depth=DEPTH)


class Task(NamedTuple):
    """The methods that are missing of one split."""

    data: str
    seed: int
    n_trials: int
    methods: tuple[str, ...]


class Trial(NamedTuple):
    """Rows to learn from, with their queries in a ranking, and how scores of the test rows are judged."""

    X: NDArray[Any]
    y: Labels
    qid: Labels | None
    X_test: NDArray[Any]
    metric: str
    judge: Callable[[NDArray[np.float64]], float]


def trial_of(data: str, seed: int) -> Trial:
    """Draw the rows of a trial; they are the same for all methods."""
    if data == RANKING:
        ranked = draw_queries(load_mq2008(), seed, N_LABELED_QUERIES)
        judge = partial(precision_at, relevant=ranked.relevant, qid=ranked.qid_test)
        return Trial(ranked.X, ranked.y, ranked.qid, ranked.X_test, "precision@5", judge)
    split = draw(load(data), seed, N_LABELS)
    return Trial(split.X, split.y, None, split.X_test, "accuracy", lambda m: float(np.mean((m > 0) == split.truth)))


def key(method: str, data: str, seed: int, n_trials: int) -> dict[str, Any]:
    """Return what identifies a trial in the CSV. What the search finds is a result, and stands in the details."""
    settings: dict[str, Any] = {"max_bin": bins(load(data).X.shape[1])}
    if data == RANKING:
        settings["queries"] = N_QUERIES
    if method == UNTUNED:
        settings |= {"depth": AS_IT_COMES.depth, "eta": AS_IT_COMES.eta}
    else:
        settings |= {"trials": n_trials, "folds": tuning.N_FOLDS, "rows": tuning.MAX_ROWS}
        settings |= {"search_trees": tuning.MAX_TREES, "search_bins": tuning.MAX_BIN}
    return {
        "data": data,
        "method": method,
        "seed": seed,
        "n_labels": N_LABELED_QUERIES if data == RANKING else N_LABELS,
        "noise": "none",
        "settings": json.dumps(settings),
    }


def missing(table: ResultTable, options: Options) -> list[Task]:
    """Return the splits with methods that have not run, seed by seed: a stopped run has the same seeds for all sets."""
    names = options.data or (QUICK if options.quick else SETS)
    n_trials = QUICK_TRIALS if options.quick else tuning.N_TRIALS
    methods = options.choose([*METHODS, UNTUNED])
    tasks = []
    for seed, name in product(range(options.seeds or (QUICK_SEEDS if options.quick else N_SEEDS)), names):
        if not (options.data or is_available(name)):
            continue
        keys = [key(method, name, seed, n_trials) for method in methods]
        if wanted := missing_of(table, keys, len(TREES)):
            tasks.append(Task(name, seed, n_trials, wanted))
    return tasks


def work(task: Task) -> list[Row]:
    """Tune and train the methods of a split, and return a row for each method and number of trees."""
    trial = trial_of(task.data, task.seed)
    rows: list[Row] = []
    for name in task.methods:
        method = METHODS.get(name, DEFAULT)
        identity = key(name, task.data, task.seed, task.n_trials)
        start = time.perf_counter()
        settings, details = AS_IT_COMES, {}
        if name != UNTUNED:
            settings, loss = tuning.tune(
                trial.X, trial.y, method, max(TREES), task.seed, groups=trial.qid, n_trials=task.n_trials
            )
            details = {chosen: _short(getattr(settings, chosen)) for chosen in method.space} | {"loss": _short(loss)}
        learned = Rows(trial.X, trial.y, json.loads(identity["settings"])["max_bin"])
        model = fit(learned, method, settings, max(TREES))
        seconds = time.perf_counter() - start
        for trees, margins in zip(TREES, model.margins(trial.X_test, TREES), strict=True):
            measured = {
                "trees": trees,
                "metric": trial.metric,
                "value": round(trial.judge(margins), 5),
                "seconds": round(seconds, 3),
                "details": json.dumps(details) if details else "",
            }
            rows.append({**identity, **measured, **package_versions()})
    return rows


def _short(value: float) -> float:
    return float(f"{value:.4g}") if isinstance(value, float) else value


def run(options: Options) -> int:
    """Run what is missing, write tables and picture, and return how many tasks failed."""
    table = ResultTable(options.folder / "six.csv", row=ROW)
    for method in options.forget:
        print(f"forgot {table.forget(method=method)} rows of {method}")
    failures = 0 if options.report else run_tasks(table, missing(table, options), work, "six sets", options.jobs)
    if rows := table.read():
        print(six_report.write(rows, options.folder))
    return failures
