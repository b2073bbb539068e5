"""What a search costs beside its boosters, and what one graph for all of its fits saves (:func:`share_graph`).

``python -m benchmarks.graph_sharing`` writes ``docs/results/graph_sharing.csv`` (one row per data set and variant) and
``docs/results/graph_sharing.md``. The fits of the variants take turns, so that whatever else runs disturbs all alike,
and processor seconds are counted beside those of the clock. All variants train on the same folds; *training* is what
the library itself takes in the fits with a shared graph.
"""

from __future__ import annotations

import argparse
import csv
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import lightgbm as lgb
import numpy as np
import sklearn
from lightgbm import LGBMClassifier
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import ParameterGrid
from tqdm import tqdm

from benchmarks.speed import rows_and_labels
from grbb_ext import GRBBClassifier, SemiSupervisedSplit, UnreachableRowsWarning, share_graph
from grbb_ext.adapters.lightgbm import ADAPTER

RESULTS = Path("docs/results")
GRID = {"teacher__sharpen": [1.0, 2.0, 3.0, 5.0, 8.0], "estimator__num_leaves": [4, 8, 16, 31]}
FOLDS = 5


Data = tuple[NDArray[Any], NDArray[np.int64]]


def surface(n_rows: int) -> Data:
    """Return rows of 50 columns on a curved surface and y with 100 labels."""
    X, _, y = rows_and_labels(n_rows)
    return X, y


def digits() -> Data:
    """Return the digits and y with 50 labels."""
    X, truth = load_digits(return_X_y=True)
    y = np.full(truth.size, -1)
    rows = np.random.default_rng(0).choice(truth.size, 50, replace=False)
    y[rows] = truth[rows]
    return X, y


# Rows, and how many settings of the grid; with 5 folds, 100 and 20 fits.
DATA: dict[str, tuple[Callable[[], Data], int]] = {
    "surface": (lambda: surface(2_000), 20),
    "digits, 10 classes": (digits, 20),
    "larger surface": (lambda: surface(10_000), 4),
}


def settings(n_settings: int) -> Iterator[dict[str, Any]]:
    grid = list(ParameterGrid(GRID))
    yield from (grid[i] for i in np.linspace(0, len(grid) - 1, n_settings).round().astype(int))


class Stopwatch:
    """Seconds of the clock and of the processor, added up."""

    def __init__(self) -> None:
        self.clock = self.processor = 0.0

    def __enter__(self) -> Stopwatch:
        self._start = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *exception: object) -> None:
        self.clock += time.perf_counter() - self._start[0]
        self.processor += time.process_time() - self._start[1]


def measure(name: str, quick: bool) -> list[dict[str, Any]]:
    """Time a grid search's fits of one data set, the variants in turn."""
    load, n_settings = DATA[name]
    X, y = load()
    booster = LGBMClassifier(n_jobs=1, verbosity=-1)
    plain = GRBBClassifier(booster, teacher="committee", n_jobs=1)
    folds = list(SemiSupervisedSplit(FOLDS, shuffle=True, random_state=0).split(X, y))
    plain.fit(X[:300], np.where(np.arange(300) < 50, np.arange(300) % 2, -1))  # imports are not what is measured
    watches = {"training": Stopwatch(), "rebuilt": Stopwatch(), "shared": Stopwatch()}
    adapter = type(ADAPTER)
    train_plainly = adapter.train

    def train_timed(self: Any, job: Any) -> Any:
        with watches["training"]:
            return train_plainly(self, job)

    agreement = []
    with watches["shared"]:
        shared = share_graph(plain, X)
    models = {"rebuilt": plain, "shared": shared}
    chosen = list(settings(1 if quick else n_settings))
    for setting in tqdm(chosen, desc=name, leave=False):
        for train, test in folds:
            predicted = {}
            for variant, model in models.items():
                training = train_timed if variant == "shared" else train_plainly
                with patch.object(adapter, "train", training), watches[variant]:
                    fitted = clone(model).set_params(**setting).fit(X[train], y[train])
                predicted[variant] = fitted.predict(X[test])
            agreement.append(np.mean(predicted["shared"] == predicted["rebuilt"]))
    return [
        {
            "data": name,
            "rows": X.shape[0],
            "columns": X.shape[1],
            "fits": len(chosen) * FOLDS,
            "variant": variant,
            "clock_seconds": round(watch.clock, 3),
            "processor_seconds": round(watch.processor, 3),
            "over_training": round(watch.processor / watches["training"].processor, 4),
            "same_test_predictions": round(float(np.mean(agreement)), 4) if variant == "shared" else "",
        }
        for variant, watch in watches.items()
    ]


def report(table: list[dict[str, Any]]) -> str:
    """Write the table of the documentation."""
    lines = [
        f"Python {platform.python_version()}, scikit-learn {sklearn.__version__}, lightgbm {lgb.__version__}, one "
        "thread; 100 rounds, fits of the variants in turn; in brackets the ratio to training.",
        "",
        "| data | fits | training (s) | a graph for each fit (s) | shared (s) | same test predictions |",
        "|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(row["data"] for row in table):
        of = {row["variant"]: row for row in table if row["data"] == name}
        seconds = " | ".join(
            f"{of[variant]['processor_seconds']:.1f} ({of[variant]['over_training']:.2f})"
            for variant in ("rebuilt", "shared")
        )
        shared = of["shared"]
        lines.append(
            f"| {name}, {shared['rows']:,} x {shared['columns']} | {shared['fits']} | "
            f"{of['training']['processor_seconds']:.1f} | {seconds} | "
            f"{shared['same_test_predictions']:.1%} |".replace("%", " %")
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one setting of the surface; prints and writes nothing")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", UnreachableRowsWarning)
    warnings.filterwarnings("ignore", message="The least populated class")
    table = [row for name in (["surface"] if arguments.quick else DATA) for row in measure(name, arguments.quick)]
    print(report(table))
    if arguments.quick:
        return
    RESULTS.mkdir(parents=True, exist_ok=True)
    with (RESULTS / "graph_sharing.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(table[0]))
        writer.writeheader()
        writer.writerows(table)
    (RESULTS / "graph_sharing.md").write_text(report(table))


if __name__ == "__main__":
    main()
