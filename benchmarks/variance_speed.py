"""What the variance costs, beside the graph that it needs anyway.

``python -m benchmarks.variance_speed`` writes ``docs/results/variance_speed.csv``: for 10,000 and 100,000 rows with
100 labels the time of the neighbour graph, of the mean by either kind (with lam chosen by evidence) and of the exact
sandwich, measured in turn, three times each; the estimates, their intervals and the exact value; and the largest
memory of the process."""

from __future__ import annotations

import csv
import resource
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.speed import rows_and_labels
from grbb_ext import grbb_objective, knn_graph, prediction_variance
from grbb_ext.variance import PredictionVariance

RESULTS = Path("docs/results")
FIELDS = ["rows", "operator", "what", "repeat", "seconds", "mean", "low", "high", "peak_gigabytes"]


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def measure(n_rows: int, operator: str, repeats: int) -> list[dict[str, Any]]:
    X, truth, y = rows_and_labels(n_rows)
    H = 2.0 * truth - 1.0 + np.random.default_rng(1).normal(size=n_rows)
    table = []
    for repeat in range(repeats):
        works: dict[str, Callable[[Any], Any]] = {
            "graph": lambda _: knn_graph(X, verbose=False),
            "objective": lambda graph: grbb_objective(None, y, graph=graph, propagation=operator, verbose=False),
            "sandwich": lambda obj, s=repeat: prediction_variance(obj, H, method="stochastic", random_state=s),
            "fisher": lambda obj, s=repeat: prediction_variance(
                obj, H, kind="fisher", method="stochastic", random_state=s
            ),
            "sandwich, exact": lambda obj: prediction_variance(obj, H, method="schur"),
        }
        made: Any = None
        for what, work in works.items():
            seconds, result = timed(lambda work=work, made=made: work(made))
            if what in ("graph", "objective"):
                made = result
            row = {"rows": n_rows, "operator": operator, "what": what, "repeat": repeat, "seconds": round(seconds, 3)}
            if isinstance(result, PredictionVariance):
                row |= dict(zip(("mean", "low", "high"), (result.mean, *result.confidence_interval), strict=True))
            row["peak_gigabytes"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2)
            print(row, flush=True)
            table.append(row)
    return table


def main() -> None:
    warnings.simplefilter("ignore")
    table = []
    for n_rows in (10_000, 100_000):
        table += measure(n_rows, "smooth", 3)
    RESULTS.mkdir(exist_ok=True, parents=True)
    with (RESULTS / "variance_speed.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(table)


if __name__ == "__main__":
    main()
