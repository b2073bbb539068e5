"""What the variance costs, beside the graph that it needs anyway.

``python -m benchmarks.variance_speed`` writes ``docs/results/variance_speed.csv``: for 10,000 and 100,000 rows with
100 labels the time of the neighbour graph, of the mean by either kind (lam by marginal likelihood, once) and
of the exact sandwich, measured in turn, three times each; the estimates, their intervals and the exact value; and the
largest memory of the process.
"""

from __future__ import annotations

import resource
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.results import RESULTS, ResultTable
from benchmarks.speed import rows_and_labels
from grbb_ext import grbb_objective, knn_graph, prediction_variance
from grbb_ext.variance import PredictionVariance

FIELDS = ["rows", "what", "repeat", "seconds", "mean", "low", "high", "peak_gigabytes"]


def timed(work: Callable[..., Any], *arguments: Any, **keywords: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work(*arguments, **keywords)
    return time.perf_counter() - start, result


def measure(n_rows: int, repeats: int) -> list[dict[str, Any]]:
    X, truth, y = rows_and_labels(n_rows)
    H = 2.0 * truth - 1.0 + np.random.default_rng(1).normal(size=n_rows)
    table: list[dict[str, Any]] = []

    def note(what: str, repeat: int, seconds: float, found: Any) -> None:
        row = {"rows": n_rows, "what": what, "repeat": repeat, "seconds": round(seconds, 3)}
        if isinstance(found, PredictionVariance):
            row |= {"mean": found.mean, "low": found.confidence_interval[0], "high": found.confidence_interval[1]}
        row["peak_gigabytes"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2)
        print(row, flush=True)
        table.append(row)

    for repeat in range(repeats):
        settings: dict[str, Any] = {"method": "stochastic", "random_state": repeat}
        seconds, graph = timed(knn_graph, X, verbose=False)
        note("graph", repeat, seconds, graph)
        seconds, obj = timed(grbb_objective, None, y, graph=graph, verbose=False)
        note("objective", repeat, seconds, obj)
        note("sandwich", repeat, *timed(prediction_variance, obj, H, **settings))
        note("fisher", repeat, *timed(prediction_variance, obj, H, kind="fisher", **settings))
        note("sandwich, exact", repeat, *timed(prediction_variance, obj, H, method="schur"))
    return table


def main() -> None:
    warnings.simplefilter("ignore")
    table = []
    for n_rows in (10_000, 100_000):
        table += measure(n_rows, 3)
    ResultTable(RESULTS / "variance_speed.csv", FIELDS, FIELDS[:3]).replace(table)


if __name__ == "__main__":
    main()
