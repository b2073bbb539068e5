"""Training over Dask on this machine: whether the model is the same, the time of each stage, and what is sent.

``python -m benchmarks.many_machines`` starts a cluster of two processes and writes ``docs/results/many_machines.csv``.
``--rows`` chooses the sizes.
"""

from __future__ import annotations

import argparse
import csv
import logging
import time
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import xgboost as xgb
from distributed import Client, LocalCluster
from numpy.typing import NDArray
from tqdm import tqdm

from grbb_ext import grbb_objective, knn_graph
from grbb_ext.adapters.dask import train

RESULTS = Path("docs/results")
N_COLUMNS, N_LABELED, ROUNDS = 20, 200, 50
PARAMS = {"max_depth": 6, "eta": 0.3}
STAGES = ("read", "operator", "matrix", "rounds")
RULES = ("targets", "paper", "corrected")


def make_rows(n_rows: int) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]:
    """Return two classes of three blobs each, in values that any sketch bins alike, with 200 labels."""
    random = np.random.default_rng(0)
    centers = 1.1 * random.standard_normal((6, N_COLUMNS))
    blob = random.integers(0, 6, n_rows)
    X = np.round((centers[blob] + random.standard_normal((n_rows, N_COLUMNS))) * 8) / 8
    truth = blob % 2
    y = np.full(n_rows, -1)
    labeled = random.choice(n_rows, N_LABELED, replace=False)
    y[labeled] = truth[labeled]
    return X.astype(np.float32), y, truth


class BothTakePart(xgb.callback.TrainingCallback):
    """Makes sure that the rows are spread over both workers."""

    def before_training(self, model: Any) -> Any:
        """Look at the number of workers that train."""
        if xgb.collective.get_world_size() != 2:
            raise RuntimeError("All rows are on one worker.")
        return model


def measure(client: Client, n_rows: int, graph: str, rule: str, compare: bool) -> dict[str, Any]:
    """Train once, and compare with one process where that is asked for."""
    X, y, truth = make_rows(n_rows)
    rows = da.from_array(X, chunks=(-(-n_rows // 8), N_COLUMNS))
    W = knn_graph(X, verbose=False) if graph == "given" else graph
    model = train(client, PARAMS, rows, y, graph=W, rule=rule, num_boost_round=ROUNDS, callbacks=[BothTakePart()])
    margin = model["booster"].predict(xgb.DMatrix(X), output_margin=True)
    result: dict[str, Any] = {
        "rows": n_rows,
        "graph": graph,
        "rule": rule,
        "accuracy": round(float(np.mean((margin > 0) == truth)), 4),
        "bytes_per_round": model["info"]["bytes_per_round"],
        **{stage: round(model["info"]["seconds"][stage], 2) for stage in STAGES},
        "largest_difference": "",
        "rounds_on_one_process": "",
    }
    if compare:
        obj = grbb_objective(None, y, graph=W, rule=rule, verbose=False)
        dtrain = xgb.QuantileDMatrix(X, nthread=1)
        start = time.perf_counter()
        one = xgb.train({"base_score": 0, "nthread": 1, **PARAMS}, dtrain, ROUNDS, obj=obj)
        result["rounds_on_one_process"] = round(time.perf_counter() - start, 2)
        difference = np.abs(one.predict(xgb.DMatrix(X), output_margin=True) - margin).max()
        result["largest_difference"] = float(difference)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    sizes = parser.parse_args().rows
    plan = [
        (n_rows, graph, rule)
        for n_rows in sizes
        for graph in ("given", "anchors")
        for rule in RULES
        # One process would need hours for the dense operator, and the exact graph of all rows, beyond that.
        if graph == "anchors" or n_rows <= 10_000
    ]
    settings = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    with LocalCluster(n_workers=2, **settings) as cluster, Client(cluster) as client:
        measure(client, 2000, "anchors", "targets", compare=False)  # the workers import and compile
        results = [measure(client, n_rows, graph, rule, compare=graph == "given") for n_rows, graph, rule in tqdm(plan)]
    with (RESULTS / "many_machines.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, results[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(results)


if __name__ == "__main__":
    main()
