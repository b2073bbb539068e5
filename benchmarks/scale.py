"""What a million rows cost: time and peak memory of each stage from 10,000 to 1,000,000 rows of 50 columns, 200 labels.

``python -m benchmarks scale`` appends to ``docs/results/scale.csv``, one row per stage, size and run (``--seeds``, 3),
each measured in a process of its own; what is there is not measured again. Accuracy on the flights set of the folder
GRBB_DATA (default ``../shared/data``), three draws, goes to ``docs/results/scale_flights.csv``. The tables are printed,
and written next to the raw numbers. ``--quick`` stops at 10,000 rows and writes nothing. Nothing else should run
meanwhile.
"""

from __future__ import annotations

import csv
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from benchmarks.options import Options
from grbb_ext import GRBBObjective, TableGraph, Targets, grbb_objective, knn_graph

DATA = Path(os.environ.get("GRBB_DATA", "../shared/data"))
SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
N_COLUMNS, N_LABELED, N_CLUSTERS, N_ROUNDS, N_RUNS = 50, 200, 40, 100, 3
TIME_LIMIT = 120
FIELDS = [
    *("stage", "rows", "run", "seconds", "cpu_seconds", "peak_mb", "start_mb", "X_mb", "graph_mb"),
    *("objective_seconds", "tree_seconds", "accuracy", "note"),
]
FLIGHTS_FIELDS = ["method", "seed", "rows", "accuracy", "seconds"]

Rows = NDArray[np.float32]
Classes = NDArray[np.int64]


def rows_and_labels(n_rows: int) -> tuple[Rows, Classes, Classes]:
    """Return rows in 40 overlapping clusters, 8 dimensions bent into 50 columns; their classes; y with 200 labels."""
    random = np.random.default_rng(0)
    centers = 2.2 * random.normal(size=(N_CLUSTERS, 8))
    class_of = np.arange(N_CLUSTERS) % 2
    lift = random.normal(size=(8, N_COLUMNS)) / 4
    X, truth = np.empty((n_rows, N_COLUMNS), dtype=np.float32), np.empty(n_rows, dtype=np.int64)
    for start in range(0, n_rows, 10_000):  # blocks, so that the peak is that of what is measured
        cluster = random.integers(N_CLUSTERS, size=min(10_000, n_rows - start))
        block = slice(start, start + cluster.size)
        bent = np.tanh((centers[cluster] + random.normal(size=(cluster.size, 8))) @ lift)
        X[block] = bent + 0.1 * random.normal(size=bent.shape)
        truth[block] = class_of[cluster]
    y = np.full(n_rows, -1)
    labeled = random.choice(n_rows, N_LABELED, replace=False)
    y[labeled] = truth[labeled]
    return X, truth, y


# --- the stages, each in a fresh process ------------------------------------------------------------------------------


class Timed:
    """An objective that adds up its own time."""

    def __init__(self, obj: GRBBObjective) -> None:
        self._obj, self.seconds = obj, 0.0

    def __call__(self, scores: Any, data: Any) -> Any:
        """Ask the objective."""
        start = time.perf_counter()
        answer = self._obj(scores, data)
        self.seconds += time.perf_counter() - start
        return answer

    def __deepcopy__(self, memo: Any) -> Timed:
        # lgb.train copies its parameters, and a copy would count in vain.
        return self


def size_of(*matrices: Any) -> int:
    return sum(M.data.nbytes + M.indices.nbytes + M.indptr.nbytes for M in matrices if M is not None)


def graph_size(obj: GRBBObjective) -> int:
    return size_of(obj.graph_, getattr(obj.propagation_, "Z", None))


def plain_graph(X: Rows, truth: Classes, y: Classes) -> dict[str, Any]:
    return {"graph_mb": size_of(knn_graph(X)) / 1e6}


def made(obj: GRBBObjective, truth: Classes, y: Classes) -> dict[str, Any]:
    assert obj.targets_ is not None
    free = y < 0
    return {"graph_mb": graph_size(obj) / 1e6, "accuracy": float(np.mean((obj.targets_[free] > 0.5) == truth[free]))}


def graph_and_operator(X: Rows, truth: Classes, y: Classes) -> dict[str, Any]:
    return made(grbb_objective(X, y, teacher="graph"), truth, y)


def every_row_a_node(X: Rows, truth: Classes, y: Classes) -> dict[str, Any]:
    return made(grbb_objective(X, y, graph=TableGraph(max_nodes=None), teacher="graph"), truth, y)


def objective(X: Rows, truth: Classes, y: Classes) -> dict[str, Any]:
    return made(grbb_objective(X, y), truth, y)


def xgboost(X: Rows, truth: Classes, y: Classes) -> dict[str, Any]:
    import xgboost as xgb

    obj = grbb_objective(X, y)
    timed, data = Timed(obj), xgb.QuantileDMatrix(X)
    start = time.perf_counter()
    booster = xgb.train({"base_score": 0, "max_depth": 6, "eta": 0.1}, data, N_ROUNDS, obj=timed)
    rounds = time.perf_counter() - start
    return trained(obj, booster.predict(data), timed, rounds, truth, y)


def lightgbm(X: Rows, truth: Classes, y: Classes) -> dict[str, Any]:
    import lightgbm as lgb

    obj = grbb_objective(X, y)
    timed, data = Timed(obj), lgb.Dataset(X).construct()
    start = time.perf_counter()
    params = {"objective": timed, "learning_rate": 0.1, "verbosity": -1}
    booster = lgb.train(params, data, N_ROUNDS)
    rounds = time.perf_counter() - start
    raw = np.concatenate([booster.predict(X[i : i + 100_000], raw_score=True) for i in range(0, y.size, 100_000)])
    return trained(obj, raw, timed, rounds, truth, y)


def trained(
    obj: GRBBObjective, raw: NDArray[Any], timed: Timed, rounds: float, truth: Classes, y: Classes
) -> dict[str, Any]:
    free = y < 0
    return {
        "graph_mb": graph_size(obj) / 1e6,
        "objective_seconds": timed.seconds,
        "tree_seconds": rounds - timed.seconds,
        "accuracy": float(np.mean((raw[free] > 0) == truth[free])),
    }


def label_spreading(X: Rows, truth: Classes, y: Classes) -> dict[str, Any]:
    from sklearn.semi_supervised import LabelSpreading

    found = LabelSpreading(kernel="knn", n_neighbors=9, n_jobs=-1).fit(X, y).transduction_
    return {"accuracy": float(np.mean(found[y < 0] == truth[y < 0]))}


def graphlearning(X: Rows, truth: Classes, y: Classes) -> dict[str, Any]:
    import graphlearning as gl

    labeled = np.flatnonzero(y >= 0)
    found = gl.ssl.poisson(gl.weightmatrix.knn(X, 9)).fit_predict(labeled, y[labeled])
    return {"accuracy": float(np.mean(found[y < 0] == truth[y < 0]))}


Stage = Callable[[Rows, Classes, Classes], dict[str, Any]]
# The largest size of each: the rivals and the full graph are not taken further.
STAGES: dict[str, tuple[Stage, int]] = {
    "objective": (objective, 1_000_000),
    "graph and operator": (graph_and_operator, 1_000_000),
    "plain graph": (plain_graph, 100_000),
    "XGBoost, 100 rounds": (xgboost, 1_000_000),
    "LightGBM, 100 rounds": (lightgbm, 1_000_000),
    "every row a node": (every_row_a_node, 100_000),
    "LabelSpreading": (label_spreading, 100_000),
    "graphlearning": (graphlearning, 100_000),
}


def peak() -> float:
    """Return the peak memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(stage: str, n_rows: int) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    before = peak()
    X, truth, y = rows_and_labels(n_rows)
    start, cpu = time.perf_counter(), time.process_time()
    found = STAGES[stage][0](X, truth, y)
    return found | {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - cpu,
        "peak_mb": peak(),
        "start_mb": before,
        "X_mb": X.nbytes / 1e6,
    }


def in_fresh_process(stage: str, n_rows: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.scale", stage, str(n_rows)]
    ours = STAGES[stage][1] > 100_000
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=None if ours else TIME_LIMIT)
    except subprocess.TimeoutExpired:
        return {"note": f"over {TIME_LIMIT} s"}
    if done.returncode:
        return {"note": f"failed with code {done.returncode}"}
    return {
        name: round(value, 4) if isinstance(value, float) else value
        for name, value in json.loads(done.stdout.splitlines()[-1]).items()
    }


# --- flights ----------------------------------------------------------------------------------------------------------

METHODS: dict[str, dict[str, Any]] = {
    "default": {},
    "labelled rows only": {"rule": "labeled"},
    "guard=False": {"teacher": "graph"},
    "plain graph, hard labels": {"graph": "knn", "rule": Targets(hard=True), "teacher": "graph"},
}
#: What the table calls a method whose name in the CSV is that of version 0.1.
TITLES = {"guard=False": '`teacher="graph"`'}


def flights(method: str, seed: int) -> dict[str, Any]:
    """Return the accuracy of 100 rounds of XGBoost on the unlabelled rows."""
    import xgboost as xgb

    warnings.simplefilter("ignore")
    with np.load(DATA / "flights.npz") as file:
        X, truth = file["X"].astype(np.float32), (file["y"] == 1).astype(np.int64)
    y = np.full(truth.size, -1)
    labeled = np.random.default_rng(seed).choice(truth.size, N_LABELED, replace=False)
    y[labeled] = truth[labeled]
    start = time.perf_counter()
    obj = grbb_objective(X, y, random_state=seed, **METHODS[method])
    data = xgb.QuantileDMatrix(X)
    booster = xgb.train({"base_score": 0, "max_depth": 6, "eta": 0.1}, data, N_ROUNDS, obj=obj)
    seconds = time.perf_counter() - start
    right = (booster.predict(data) > 0) == truth
    return {"rows": truth.size, "accuracy": round(float(right[y < 0].mean()), 4), "seconds": round(seconds, 1)}


# --- files and tables -------------------------------------------------------------------------------------------------


def rows_of(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open() as file:
        return list(csv.DictReader(file))


def resume(path: Path, fields: list[str], wanted: list[tuple[Any, ...]], work: Callable[..., Any]) -> None:
    """Append what `work` says of each wanted key that is not in the file yet."""
    names = fields[: len(wanted[0])]
    done = {tuple(row[name] for name in names) for row in rows_of(path)}
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, fields)
        if not done:
            writer.writeheader()
        for key in tqdm([key for key in wanted if tuple(map(str, key)) not in done], desc=path.stem):
            writer.writerow(dict(zip(names, key, strict=True)) | work(*key))
            file.flush()


def exponent(rows: list[dict[str, str]], column: str) -> str:
    """Return the slope of the logarithm of a column over that of the rows, by least squares."""
    points = np.log([(float(row["rows"]), float(row[column])) for row in rows if row[column]])
    return f"{np.polyfit(points[:, 0], points[:, 1], 1)[0]:.2f}" if len(points) > 1 else ""


def medians(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return one row for each stage and size: the median of its runs in every column, or the note of a failure.

    Examples
    --------
    >>> run = dict.fromkeys(FIELDS, "") | {"stage": "objective", "rows": "10000"}
    >>> [row["seconds"] for row in medians([run | {"seconds": s} for s in ("1.0", "9.0", "2.0")])]
    ['2.0']
    """
    groups: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows:
        groups.setdefault((row["stage"], row["rows"]), []).append(row)
    found = []
    for (stage, size), runs in groups.items():
        row = dict.fromkeys(FIELDS, "") | {"stage": stage, "rows": size}
        row["note"] = next((run["note"] for run in runs if run["note"]), "")
        for name in FIELDS[3:-1]:
            values = [float(run[name]) for run in runs if run[name]]
            row[name] = str(float(np.median(values))) if values else ""
        found.append(row)
    return found


def report(rows: list[dict[str, str]]) -> str:
    rows = medians(rows)
    lines = [
        "| stage | rows | seconds | CPU seconds | peak, MB | peak / (X + graph) | outside the trees | accuracy |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for stage in STAGES:
        of_stage = sorted((row for row in rows if row["stage"] == stage), key=lambda row: int(row["rows"]))
        for row in of_stage:
            if row["note"]:
                lines.append(f"| {stage} | {int(row['rows']):,} | {row['note']} | | | | | |")
                continue
            seconds = float(row["seconds"])
            size = float(row["X_mb"]) + float(row["graph_mb"] or "nan")
            ratio = "" if np.isnan(size) else f"{float(row['peak_mb']) / size:.1f}"
            outside = f"{1 - float(row['tree_seconds']) / seconds:.0%}" if row["tree_seconds"] else ""
            accuracy = f"{float(row['accuracy']):.3f}" if row["accuracy"] else ""
            lines.append(
                f"| {stage} | {int(row['rows']):,} | {seconds:.1f} | {float(row['cpu_seconds']):.1f} | "
                f"{float(row['peak_mb']):.0f} | {ratio} | {outside} | {accuracy} |"
            )
        # Below 20,000 rows every row is a node, and the exponent would be that of another method.
        large = [row for row in of_stage if int(row["rows"]) >= 30_000 and not row["note"]]
        slopes = exponent(of_stage, "cpu_seconds"), exponent(large, "cpu_seconds")
        if slopes[0]:
            lines.append(f"| {stage} | exponent | | {slopes[0]}; {slopes[1] or '-'} from 30,000 | | | | |")
    return "\n".join(lines)


def report_flights(rows: list[dict[str, str]]) -> str:
    lines = ["| method | seeds | accuracy | seconds |", "|---|---|---|---|"]
    for method in METHODS:
        found = [row for row in rows if row["method"] == method]
        if found:
            accuracy = [float(row["accuracy"]) for row in found]
            seconds = np.mean([float(row["seconds"]) for row in found])
            spread = f"{min(accuracy):.3f} to {max(accuracy):.3f}"
            title = TITLES.get(method, method)
            lines.append(f"| {title} | {len(found)} | {np.mean(accuracy):.3f} ({spread}) | {seconds:.0f} |")
    return "\n".join(lines)


def publish(path: Path, table: str) -> None:
    """Print a table and write it next to its raw numbers."""
    path.with_suffix(".md").write_text(table + "\n")
    print(table)


def run(options: Options) -> int:
    """Measure what is missing, and write the tables."""
    if options.quick:
        found = [
            dict.fromkeys(FIELDS, "") | {"stage": s, "rows": SIZES[0]} | in_fresh_process(s, SIZES[0]) for s in STAGES
        ]
        print(report([{name: str(value) for name, value in row.items()} for row in found]))
        return 0
    path, flights_path = options.folder / "scale.csv", options.folder / "scale_flights.csv"
    if not options.report:
        runs = range(options.seeds or N_RUNS)
        keys = [(s, size, run) for run in runs for size in SIZES for s in STAGES if size <= STAGES[s][1]]
        resume(path, FIELDS, keys, lambda stage, size, _: in_fresh_process(stage, size))
        if (DATA / "flights.npz").exists():
            resume(flights_path, FLIGHTS_FIELDS, [(m, seed) for seed in range(N_RUNS) for m in METHODS], flights)
    publish(path, report(rows_of(path)))
    publish(flights_path, report_flights(rows_of(flights_path)))
    return 0


if __name__ == "__main__":  # a stage in a process of its own
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
