"""Training over Dask on this machine: whether the model is the same, time and memory of each stage, and accuracy.

``python -m benchmarks.many_machines PART ...`` starts clusters of two processes and writes ``docs/results/``:

- ``rules``: every rule on 10,000 rows, against one process (``many_machines.csv``);
- ``parquet``: 2 million rows x 30 columns from files on two workers of 3 GB each, beside plain ``xgboost.dask``
  (``many_machines_parquet.csv``; ``--rows`` takes another number);
- ``flights``: accuracy and AUC on 200,000 rows with 200 labels, beside one process and beside XGBoost on the labels
  (``many_machines_flights.csv``; the set is in the folder GRBB_DATA, default ``../shared/data``).
"""

from __future__ import annotations

import argparse
import csv
import logging
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import xgboost as xgb
from distributed import Client, LocalCluster, wait
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from tqdm import tqdm
from xgboost import dask as xgb_dask

from grbb_ext import grbb_objective, knn_graph
from grbb_ext.adapters.dask import predict, train

RESULTS = Path("docs/results")
DATA = Path(os.environ.get("GRBB_DATA", "../shared/data"))
N_LABELED = 200
PARAMS = {"max_depth": 6, "eta": 0.3}
SOFT = {"objective": "binary:logistic", "base_score": 0.5}


@contextmanager
def cluster(memory: str = "auto") -> Iterator[Client]:
    """Start two worker processes of one thread each."""
    settings = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    with LocalCluster(n_workers=2, memory_limit=memory, **settings) as machines, Client(machines) as client:
        client.wait_for_workers(2)
        yield client


class BothTakePart(xgb.callback.TrainingCallback):
    """Makes sure that the rows are spread over both workers."""

    def before_training(self, model: Any) -> Any:
        """Look at the number of workers that train."""
        if xgb.collective.get_world_size() != 2:
            raise RuntimeError("All rows are on one worker.")
        return model


# --- rules ------------------------------------------------------------------------------------------------------------


def make_rows(n_rows: int, n_columns: int = 20) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return two classes of three blobs each, in values that any sketch bins alike."""
    random = np.random.default_rng(n_rows)
    centers = 1.1 * np.random.default_rng(0).standard_normal((6, n_columns))
    blob = random.integers(0, 6, n_rows)
    X = np.round((centers[blob] + random.standard_normal((n_rows, n_columns))) * 8) / 8
    return X.astype(np.float32), blob % 2


def labels_of(truth: NDArray[np.int64], seed: int = 0) -> NDArray[np.int64]:
    """Return y with 200 labels, -1 elsewhere."""
    y = np.full(truth.size, -1)
    labeled = np.random.default_rng(seed).choice(truth.size, N_LABELED, replace=False)
    y[labeled] = truth[labeled]
    return y


def rules(_: argparse.Namespace) -> list[dict[str, Any]]:
    """Train by each rule on both, and compare."""
    X, truth = make_rows(10_000)
    y, W, results = labels_of(truth), knn_graph(X, verbose=False), []
    rows = da.from_array(X, chunks=(1250, X.shape[1]))
    with cluster() as client:
        for graph, rule in tqdm([(g, r) for r in ("targets", "paper", "corrected") for g in ("given", "default")]):
            settings = {"rule": rule, **({"graph": W} if graph == "given" else {})}
            model = train(client, PARAMS, rows, y, num_boost_round=50, callbacks=[BothTakePart()], **settings)
            margin = model["booster"].predict(xgb.DMatrix(X), output_margin=True)
            obj = grbb_objective(None if graph == "given" else X, y, verbose=False, **settings)
            data = xgb.QuantileDMatrix(X)
            if rule == "targets":
                data.set_info(label=obj.targets_)
                one = xgb.train({**PARAMS, **SOFT}, data, 50)
            else:
                one = xgb.train({**PARAMS, "base_score": 0}, data, 50, obj=obj)
            difference = np.abs(one.predict(xgb.DMatrix(X), output_margin=True) - margin).max()
            results.append(
                {
                    "rows": len(X),
                    "graph": graph,
                    "rule": rule,
                    "accuracy": round(float(np.mean((margin > 0) == truth)), 4),
                    "bytes_per_round": model["info"]["bytes_per_round"],
                    "largest_difference": float(difference),
                }
            )
    return results


# --- parquet ----------------------------------------------------------------------------------------------------------


def write_files(folder: Path, n_rows: int, n_columns: int = 30, n_files: int = 16) -> None:
    """Write rows, their labels and the true classes; none of it is kept in memory."""
    y = labels_of(np.zeros(n_rows, dtype=np.int64))
    for i, part in enumerate(np.array_split(np.arange(n_rows), n_files)):
        X, truth = make_rows(part.size + i, n_columns)  # another seed for each file
        frame = pd.DataFrame(X[: part.size], columns=[f"x{j}" for j in range(n_columns)])
        frame["truth"] = truth[: part.size]
        frame["y"] = np.where(y[part] < 0, -1, frame["truth"]).astype(np.int8)
        frame.to_parquet(folder / f"{i:02d}.parquet")


def ours(client: Client, X: Any, frame: Any) -> tuple[Any, dict[str, float]]:
    """Train with the teacher, on 200 labels."""
    model = train(client, PARAMS, X, frame["y"], num_boost_round=100, callbacks=[BothTakePart()])
    return model["booster"], model["info"]["seconds"]


def plain(client: Client, X: Any, frame: Any) -> tuple[Any, dict[str, float]]:
    """Train ``xgboost.dask`` itself, on the true classes of all rows."""
    clock = [time.perf_counter()]
    # Persisted together: dask would read one column in other partitions than thirty.
    both = client.persist(frame[[*X.columns, "truth"]])
    wait(both)
    clock.append(time.perf_counter())
    data = xgb_dask.DaskQuantileDMatrix(client, both[list(X.columns)], both["truth"])
    clock.append(time.perf_counter())
    callbacks = [BothTakePart()]
    booster = xgb_dask.train(client, {**PARAMS, **SOFT}, data, num_boost_round=100, callbacks=callbacks)["booster"]
    clock.append(time.perf_counter())
    return booster, dict(zip(("read", "matrix", "rounds"), np.diff(clock).tolist(), strict=True))


def peak_memory() -> float:
    """Return the peak of this process, in GB."""
    # What getrusage reports begins with the process that started this one.
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1e6 for line in lines if line.startswith("VmHWM"))


def parquet(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Train both ways, each on workers of their own, and return time, memory and accuracy."""
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder), options.rows)
        X_new, truth_new = make_rows(50_000, 30)
        for name, way in {"grbb_ext, 200 labels": ours, "xgboost.dask, all labels": plain}.items():
            with cluster("3GB") as client:
                client.run(__import__, "grbb_ext.adapters.dask")
                before = client.run(peak_memory)
                frame = dd.read_parquet(folder)
                start = time.perf_counter()
                booster, seconds = way(client, frame[[f"x{j}" for j in range(30)]], frame)
                took = time.perf_counter() - start
                peaks = client.run(peak_memory)
            right = np.mean((booster.inplace_predict(X_new) > 0.5) == truth_new)
            stages = ("read", "teacher", "targets", "matrix", "rounds")
            results.append(
                {
                    "way": name,
                    "rows": options.rows,
                    **{stage: round(seconds[stage], 1) if stage in seconds else "" for stage in stages},
                    "seconds": round(took, 1),
                    "worker_start_gb": round(max(before.values()), 2),
                    "worker_peak_gb": round(max(peaks.values()), 2),
                    "client_peak_gb": round(peak_memory(), 2),
                    "accuracy": round(float(right), 4),
                    "load": round(os.getloadavg()[0], 1),
                }
            )
    return results


# --- flights ----------------------------------------------------------------------------------------------------------


def flights(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return accuracy and AUC on the unlabelled rows, for some draws of the labels."""
    results = []
    with np.load(DATA / "flights.npz") as file:
        rows = np.sort(np.random.default_rng(0).choice(file["y"].size, 200_000, replace=False))
        X, truth = file["X"][rows].astype(np.float32), (file["y"][rows] == 1).astype(np.int64)
    with cluster() as client:
        for seed in tqdm(range(options.seeds)):
            y = labels_of(truth, seed)
            free, scores = y < 0, {}
            some = xgb.QuantileDMatrix(X[~free], truth[~free])
            scores["XGBoost on the labels"] = xgb.train({**PARAMS, **SOFT, "eta": 0.1}, some, 100).inplace_predict(X)
            obj = grbb_objective(X, y, random_state=seed, verbose=False)
            data = xgb.QuantileDMatrix(X, label=obj.targets_)
            scores["one process"] = xgb.train({**PARAMS, **SOFT, "eta": 0.1}, data, 100).inplace_predict(X)
            lazy = da.from_array(X, chunks=(25_000, X.shape[1]))
            settings: dict[str, Any] = {"num_boost_round": 100, "random_state": seed, "callbacks": [BothTakePart()]}
            model = train(client, {**PARAMS, "eta": 0.1}, lazy, y, **settings)
            scores["Dask"] = predict(client, model, lazy, kind="probability").compute()[:, 1]
            for way, score in scores.items():
                right = np.mean((score[free] > 0.5) == truth[free])
                area = roc_auc_score(truth[free], score[free])
                results.append(
                    {"way": way, "seed": seed, "accuracy": round(float(right), 4), "auc": round(float(area), 4)}
                )
    return results


# --- files and tables -------------------------------------------------------------------------------------------------

PARTS: dict[str, tuple[str, Callable[[argparse.Namespace], list[dict[str, Any]]]]] = {
    "rules": ("many_machines", rules),
    "parquet": ("many_machines_parquet", parquet),
    "flights": ("many_machines_flights", flights),
}


def table(results: list[dict[str, Any]]) -> str:
    """Return a Markdown table; of several seeds the mean with its standard error."""
    if "seed" in results[0]:
        frame = pd.DataFrame(results).drop(columns="seed").groupby("way", sort=False)
        mean, error = frame.mean(), frame.sem()
        results = [
            {"way": way} | {name: f"{mean[name][way]:.4f} ± {error[name][way]:.4f}" for name in mean}
            for way in mean.index
        ]
    lines = [list(results[0]), ["---"] * len(results[0]), *(list(map(str, row.values())) for row in results)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--rows", type=int, default=2_000_000, help="of the files")
    parser.add_argument("--seeds", type=int, default=5, help="draws of labels of flights")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}")
    for part in options.parts or PARTS:
        name, measure = PARTS[part]
        results = measure(options)
        with (options.output / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, results[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(results)
        (options.output / f"{name}.md").write_text(table(results) + "\n", encoding="utf-8")
        print(table(results))


if __name__ == "__main__":
    main()
