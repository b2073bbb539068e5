"""Speed of a Forest's predictions, and of on-demand predictions, beside those of the libraries.

``python -m benchmarks.forest_speed`` takes 10,000 rows, 30 columns and 100 trees of depth 6, everything on one thread.
Runs are interleaved and timed in CPU seconds, so that a busy machine slows all alike; the table has medians. The raw
times go to ``docs/results/forest_speed.csv``.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
import xgboost as xgb

from grbb_ext import FeatureCosts, Forest, OnDemandPredictor
from grbb_ext.forest import _compiled

RESULTS = Path("docs/results/forest_speed.csv")
Task = Callable[[], Any]


def make_data(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
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


def tasks_of(booster: Any, native: Task, X: np.ndarray) -> dict[str, Task]:
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
    tasks: dict[str, Task] = {"native predict": native}
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--columns", type=int, default=30)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--csv", type=Path, default=RESULTS)
    options = parser.parse_args()

    X, y = make_data(options.rows, options.columns)
    settings = {"objective": "binary:logistic", "max_depth": options.depth, "eta": 0.1, "nthread": 1}
    xgboost_model = xgb.train(settings, xgb.DMatrix(X, label=y), options.trees)
    lightgbm_model = lgb.train(
        {
            "objective": "binary",
            "max_depth": options.depth,
            "num_leaves": 2**options.depth - 1,
            "num_threads": 1,
            "verbosity": -1,
        },
        lgb.Dataset(X, label=y),
        options.trees,
    )
    models: dict[str, tuple[Any, Task]] = {
        "xgboost": (
            xgboost_model,
            lambda: xgboost_model.predict(xgb.DMatrix(X, nthread=1), output_margin=True),
        ),
        "lightgbm": (lightgbm_model, lambda: lightgbm_model.predict(X, raw_score=True, num_threads=1)),
    }
    lines = []
    print(
        f"{options.rows} rows x {options.columns} columns, {options.trees} trees of depth {options.depth}, one thread"
    )
    for library, (model, native) in models.items():
        tasks = tasks_of(model, native, X)
        for name in ("predict, numba", "predict, numpy", "on demand, numba", "on demand, numpy"):
            assert np.array_equal(tasks[name](), native()), f"{name} differs from {library}"
        trials = measure(tasks, options.repeats)
        reference = np.median([trial["native predict"] for trial in trials])
        for name in tasks:
            seconds = np.array([trial[name] for trial in trials])
            ratio = np.median(seconds) / reference
            print(f"{library:9} {name:28} {1e3 * np.median(seconds):8.1f} ms   {ratio:5.1f} x native")
            lines += [
                {"library": library, "task": name, "trial": i, "seconds": round(float(s), 6)}
                for i, s in enumerate(seconds)
            ]
    options.csv.parent.mkdir(parents=True, exist_ok=True)
    with options.csv.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["library", "task", "trial", "seconds"])
        writer.writeheader()
        writer.writerows(lines)


if __name__ == "__main__":
    main()
