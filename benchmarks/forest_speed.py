"""Speed of a Forest's predictions, and of on-demand predictions, beside those of the libraries.

``python -m benchmarks.forest_speed`` takes 10,000 rows, 30 columns and 100 trees of depth 6, everything on one thread.
Runs are interleaved and timed in CPU seconds, so that a busy machine slows all alike; the table, which also goes to
``docs/results/forest_speed.md``, has medians. The raw times are in ``docs/results/forest_speed.csv``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
import xgboost as xgb
from numpy.typing import NDArray

from benchmarks.results import RESULTS, ResultTable
from grbb_ext import FeatureCosts, Forest, OnDemandPredictor
from grbb_ext.forest import _compiled

NATIVE = "the library"
Task = Callable[[], Any]
Rows = NDArray[Any]


def make_data(n: int, d: int, seed: int = 0) -> tuple[Rows, Rows]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X[:, :8] @ rng.normal(size=8) + X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + rng.normal(size=n)
    return X, score > 0


@contextmanager
def without_numba() -> Iterator[None]:
    """Use the numpy walk."""
    kept = _compiled.is_available
    _compiled.is_available = lambda: False
    try:
        yield
    finally:
        _compiled.is_available = kept


def with_numpy(task: Task) -> Task:
    def run() -> Any:
        with without_numba():
            return task()

    return run


def tasks_of(booster: Any, native: Task, X: Rows) -> dict[str, Task]:
    """Return what is timed for one model: the library first."""
    forest = Forest.from_booster(booster)
    costs = FeatureCosts(np.ones(X.shape[1]))
    fetch = {j: (lambda rows, j=j: X[rows, j]) for j in range(X.shape[1])}
    on_demand = OnDemandPredictor(forest, costs, fetch, verbose=False)
    by_decision = OnDemandPredictor(forest, costs, fetch, early_exit="decision", verbose=False)
    rows = np.arange(len(X))
    ours: dict[str, Task] = {
        "predict": lambda: forest.predict(X),
        "features_touched": lambda: forest.features_touched(X),
        "on demand": lambda: on_demand.predict(rows).raw_scores,
        "on demand, decision": lambda: by_decision.predict(rows).raw_scores,
    }
    tasks: dict[str, Task] = {NATIVE: native}
    for name, task in ours.items():
        tasks[f"{name}, numba"] = task
        tasks[f"{name}, numpy"] = with_numpy(task)
    return tasks


def measure(tasks: dict[str, Task], repeats: int) -> list[dict[str, float]]:
    """Time all tasks in turn, `repeats` times, after one warm-up each."""
    for task in tasks.values():
        task()
    trials = []
    for _ in range(repeats):
        trial = {}
        for name, task in tasks.items():
            start = time.process_time()
            task()
            trial[name] = time.process_time() - start
        trials.append(trial)
    return trials


def train_models(X: Rows, y: Rows, trees: int, depth: int) -> dict[str, tuple[Any, Task]]:
    """Return a model of each library and its own prediction."""
    settings = {"objective": "binary:logistic", "max_depth": depth, "eta": 0.1, "nthread": 1}
    by_xgboost = xgb.train(settings, xgb.DMatrix(X, label=y), trees)
    settings = {
        "objective": "binary",
        "max_depth": depth,
        "num_leaves": 2**depth - 1,
        "num_threads": 1,
        "verbosity": -1,
    }
    by_lightgbm = lgb.train(settings, lgb.Dataset(X, label=y), trees)
    return {
        "XGBoost": (by_xgboost, lambda: by_xgboost.predict(xgb.DMatrix(X, nthread=1), output_margin=True)),
        "LightGBM": (by_lightgbm, lambda: by_lightgbm.predict(X, raw_score=True, num_threads=1)),
    }


def table(times: dict[str, list[dict[str, float]]]) -> str:
    """Return medians, and in brackets how many times the library's own prediction they are."""
    lines = ["| | " + " | ".join(times) + " |", "|---|" + "---|" * len(times)]
    for task in next(iter(times.values()))[0]:
        cells = []
        for trials in times.values():
            median, native = (np.median([trial[name] for trial in trials]) for name in (task, NATIVE))
            cells.append(f"{1e3 * median:.0f} ms ({median / native:.1f})")
        lines.append(f"| {task} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--columns", type=int, default=30)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()

    X, y = make_data(options.rows, options.columns)
    times = {}
    for library, (model, native) in train_models(X, y, options.trees, options.depth).items():
        tasks = tasks_of(model, native, X)
        for name in ("predict, numba", "predict, numpy", "on demand, numba", "on demand, numpy"):
            assert np.array_equal(tasks[name](), native()), f"{name} differs from {library}"
        times[library] = measure(tasks, options.repeats)
    options.results.mkdir(parents=True, exist_ok=True)
    (options.results / "forest_speed.md").write_text(table(times) + "\n", encoding="utf-8")
    columns = ["library", "task", "trial", "seconds"]
    ResultTable(options.results / "forest_speed.csv", columns, columns[:3]).replace(
        dict(zip(columns, (library, task, i, f"{seconds:.6f}"), strict=True))
        for library, trials in times.items()
        for i, trial in enumerate(trials)
        for task, seconds in trial.items()
    )
    print(table(times))


if __name__ == "__main__":
    main()
