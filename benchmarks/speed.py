"""What the objective costs: time per boosting round, set-up time, growth with rows and memory.

``python -m benchmarks speed`` writes ``docs/results/speed.csv`` (one row per measurement) and ``docs/results/speed.md``
(the tables of the documentation). ``--quick`` stops at 10,000 rows and writes nothing. ``--check`` measures the default
set-up up to 10,000 rows, and compares its ratio to 100 rounds with the one in the CSV. Nothing else should run
meanwhile: the numbers are ratios within one interleaved run, but two cores are soon disturbed.
"""

from __future__ import annotations

import csv
import json
import multiprocessing
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
import xgboost as xgb
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from tqdm import tqdm

from benchmarks import tables
from benchmarks.options import Options
from benchmarks.results import ResultTable
from grbb_ext import GRBBObjective, KNNGraph, grbb_objective, knn_graph

N_COLUMNS, N_LABELED = 50, 100
RULES: dict[str, dict[str, Any]] = {"default": {}, "paper": {"preset": "paper"}, "corrected": {"rule": "corrected"}}
WARM_UP = 3  # the first rounds allocate
TIME_LIMIT = 600
ROUND_SIZES, SETUP_SIZES, QUICK_UP_TO = (10_000, 100_000), (1_000, 10_000, 100_000, 1_000_000), 10_000
N_ROUNDS, N_RUNS = 100, 3
QUALITY = ("accuracy", "auc", "log_loss")
# A set-up is too slow beyond this multiple of the committed ratio, and this much more: machines differ.
CHECK_FACTOR, CHECK_ROOM, CHECK_SIZES = 2.0, 0.1, (1_000, 10_000)

Rows = NDArray[np.float32]


def rows_and_labels(n_rows: int) -> tuple[Rows, NDArray[np.int64], NDArray[np.int64]]:
    """Return rows on a curved 6-dimensional surface in 50 columns, with noise; their classes; and y with 100 labels."""
    random = np.random.default_rng(0)
    latent = random.normal(size=(n_rows, 6)).astype(np.float32)
    lift = random.normal(size=(6, N_COLUMNS)).astype(np.float32)
    X = np.empty((n_rows, N_COLUMNS), dtype=np.float32)
    for start in range(0, n_rows, 10_000):  # blocks, so that the peak is that of what is measured
        bent = np.tanh(latent[start : start + 10_000] @ lift)
        X[start : start + 10_000] = bent + 0.1 * random.normal(size=bent.shape).astype(np.float32)
    truth = (latent[:, 0] + np.sin(2 * latent[:, 1]) > 0).astype(np.int64)
    y = np.full(n_rows, -1)
    labeled = random.choice(n_rows, N_LABELED, replace=False)
    y[labeled] = truth[labeled]
    return X, truth, y


# --- time per round ---------------------------------------------------------------------------------------------------


class Replay:
    """The floor: a Python objective that hands out ready arrays, those of an earlier run, so that trees are equal."""

    def __init__(self, obj: GRBBObjective) -> None:
        self._obj, self._ready, self._next = obj, list[Any](), 0

    def record(self, scores: Any, data: Any) -> Any:
        """Ask the objective and keep what it says."""
        self._ready.append(self._obj(scores, data))
        return self._ready[-1]

    def __call__(self, scores: Any, data: Any) -> Any:
        """Say it again."""
        self._next += 1
        return self._ready[self._next - 1]


def xgboost_round(X: Rows, obj: Any, soft: NDArray[np.float32]) -> Callable[[int], None]:
    data = xgb.QuantileDMatrix(X, label=soft if obj is None else None)
    start = {"objective": "binary:logistic", "base_score": 0.5} if obj is None else {"base_score": 0}
    booster = xgb.Booster({"max_depth": 6, "eta": 0.1, "tree_method": "hist"} | start, cache=[data])
    return lambda i: booster.update(data, i, fobj=obj)


def lightgbm_round(X: Rows, obj: Any, soft: NDArray[np.float32]) -> Callable[[int], None]:
    data = lgb.Dataset(X, label=soft if obj is None else None)
    start = {"objective": "cross_entropy" if obj is None else "none", "boost_from_average": False}
    booster = lgb.Booster({"num_leaves": 63, "max_depth": 6, "learning_rate": 0.1, "verbosity": -1} | start, data)

    def step(i: int) -> None:
        booster.update(fobj=obj)

    return step


def time_rounds(n_rows: int, n_rounds: int) -> list[dict[str, Any]]:
    """Time one round of each variant in turn, again and again; return the medians."""
    X, _, y = rows_and_labels(n_rows)
    graph = knn_graph(X)
    rules = {name: grbb_objective(None, y, graph=graph, **keywords) for name, keywords in RULES.items()}
    soft = rules["default"].targets_
    assert soft is not None
    table = []
    for library, make in (("XGBoost", xgboost_round), ("LightGBM", lightgbm_round)):
        steps = {"built-in": make(X, None, soft)}
        for name, obj in rules.items():
            replay = Replay(obj)
            recording = make(X, replay.record, soft)
            for i in range(n_rounds + WARM_UP):
                recording(i)
            steps[name], steps[f"floor of {name}"] = make(X, obj, soft), make(X, replay, soft)
        seconds: dict[str, list[float]] = {name: [] for name in steps}
        for i in tqdm(range(n_rounds + WARM_UP), desc=f"{library} rounds at {n_rows:,}", leave=False):
            for name, step in steps.items():
                start = time.perf_counter()
                step(i)
                if i >= WARM_UP:
                    seconds[name].append(time.perf_counter() - start)
        median = {name: float(np.median(values)) for name, values in seconds.items()}
        for name in ("built-in", *rules):
            floor = median.get(f"floor of {name}", median[name])
            table.append(
                {
                    "question": "round",
                    "library": library,
                    "method": name,
                    "rows": n_rows,
                    "seconds": median[name],
                    "over_built_in": median[name] / median["built-in"],
                    "over_floor": median[name] / floor,
                }
            )
    return table


# --- set-up -----------------------------------------------------------------------------------------------------------


def setup_default(X: Rows, y: NDArray[np.int64]) -> Any:
    return grbb_objective(X, y, verbose=False).targets_


def setup_plain_graph(X: Rows, y: NDArray[np.int64]) -> Any:
    return grbb_objective(X, y, graph="knn", teacher="graph", verbose=False).targets_


def setup_paper(X: Rows, y: NDArray[np.int64]) -> Any:
    grbb_objective(X, y, preset="paper", verbose=False)


def setup_brute_force(X: Rows, y: NDArray[np.int64]) -> Any:
    return grbb_objective(X, y, graph=KNNGraph(method="brute"), teacher="graph", verbose=False).targets_


def setup_logistic_regression(X: Rows, y: NDArray[np.int64]) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression().fit(X[y >= 0], y[y >= 0]).predict_proba(X)[:, 1]


def setup_graph_only(X: Rows, y: NDArray[np.int64]) -> Any:
    knn_graph(X, verbose=False)


def setup_label_spreading(X: Rows, y: NDArray[np.int64]) -> Any:
    from sklearn.semi_supervised import LabelSpreading

    return LabelSpreading(kernel="knn", n_neighbors=9, n_jobs=-1).fit(X, y).label_distributions_[:, 1]


def setup_graphlearning(X: Rows, y: NDArray[np.int64]) -> Any:
    import graphlearning as gl

    labeled = np.flatnonzero(y >= 0)
    scores = gl.ssl.poisson(gl.weightmatrix.knn(X, 9)).fit(labeled, y[labeled])
    return scores[:, 1] - scores[:, 0]


#: What is set up, and the most rows; its soft labels are returned, where there are any.
SETUPS: dict[str, tuple[Callable[[Rows, NDArray[np.int64]], Any], int]] = {
    "grbb_ext, default": (setup_default, 1_000_000),
    "logistic regression, soft labels": (setup_logistic_regression, 1_000_000),
    "scikit-learn LabelSpreading(knn)": (setup_label_spreading, 100_000),  # it needs more memory than there is beyond
    "graphlearning Poisson": (setup_graphlearning, 1_000_000),
    "grbb_ext, plain graph": (setup_plain_graph, 100_000),
    "grbb_ext, plain graph, exact neighbours": (setup_brute_force, 100_000),
    "grbb_ext, paper preset": (setup_paper, 100_000),
    "grbb_ext, neighbours alone": (setup_graph_only, 100_000),
}


def measure_setup(name: str, n_rows: int) -> None:
    """Print seconds of a set-up, its ratio to 100 rounds (medians of three), added peak memory and AUC, as JSON.

    Runs in a process of its own, with set-up and rounds in turn.
    """
    X, truth, y = rows_and_labels(n_rows)
    few, theirs, their_labels = rows_and_labels(2000)
    set_up = SETUPS[name][0]
    set_up(few, their_labels)  # imports and thread pools are not what is measured
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak, seconds, rounds = before, list[float](), list[float]()
    for _ in range(N_RUNS):
        start = time.perf_counter()
        soft = set_up(X, y)
        seconds.append(time.perf_counter() - start)
        if not rounds:  # the booster's own memory is not ours
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            xgboost_rounds(few, theirs)
        rounds.append(xgboost_rounds(X, truth))
    found = {
        "seconds": float(np.median(seconds)),
        "over_rounds": float(np.median(np.divide(seconds, rounds))),
        "megabytes": peak / 1024,
        "added_megabytes": (peak - before) / 1024,
    }
    if soft is not None:
        found["auc"] = float(roc_auc_score(truth[y < 0], soft[y < 0]))
    print(json.dumps(found))


def xgboost_rounds(X: Rows, truth: NDArray[np.int64]) -> float:
    """Return the time of 100 rounds of XGBoost with its own objective on rows that are all labelled."""
    start = time.perf_counter()
    step = xgboost_round(X, None, truth.astype(np.float32))
    for i in range(N_ROUNDS):
        step(i)
    return time.perf_counter() - start


def time_setups(sizes: Sequence[int], names: Iterable[str] = tuple(SETUPS)) -> list[dict[str, Any]]:
    table = []
    for name in tqdm(names, desc="set-up", leave=False):
        for n_rows in [size for size in sizes if size <= SETUPS[name][1]]:
            row: dict[str, Any] = {"question": "set-up", "method": name, "rows": n_rows}
            command = [sys.executable, "-m", "benchmarks.speed", name, str(n_rows)]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT, check=True)
                row |= json.loads(done.stdout.strip().splitlines()[-1])
            except subprocess.TimeoutExpired:
                row["failure"] = f"over {TIME_LIMIT} s"
            except subprocess.CalledProcessError as error:
                row["failure"] = (error.stderr.strip().splitlines() or ["killed"])[-1][:200]
            table.append(row)
            if "failure" in row:
                break
    return table


def exponent(rows: list[int], seconds: list[float]) -> float:
    """Return the slope of log time over log rows."""
    return float(np.polyfit(np.log(rows), np.log(seconds), 1)[0])


# --- report -----------------------------------------------------------------------------------------------------------


def report(table: list[dict[str, Any]]) -> str:
    """Write the tables of the documentation from the rows of the CSV."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    lines = [
        f"Measured on {date.today().isoformat()}: {os.cpu_count()} cores, {memory:.0f} GiB, "
        f"Python {platform.python_version()}, "
        f"xgboost {xgb.__version__}, lightgbm {lgb.__version__}, numpy {np.__version__}; "
        f"{N_COLUMNS} columns, {N_LABELED} labels.",
    ]
    setups = [row for row in table if row["question"] == "set-up"]
    sizes = sorted({row["rows"] for row in setups})
    lines += [
        "",
        "| set-up: seconds, ratio to 100 rounds of XGBoost, added memory; AUC of soft labels | "
        + " | ".join(f"{n:,} rows" for n in sizes)
        + " | exponent |",
        "|---" * (len(sizes) + 2) + "|",
    ]
    for name in SETUPS:
        of_size = {row["rows"]: row for row in setups if row["method"] == name}
        done = {n: row for n, row in of_size.items() if "failure" not in row}
        cells = [
            f"{done[n]['seconds']:.2f} s, {done[n]['over_rounds']:.2f}, {done[n]['added_megabytes']:.0f} MB"
            + (f"; {done[n]['auc']:.3f}" if "auc" in done[n] else "")
            if n in done
            else of_size[n]["failure"]
            if n in of_size
            else "not run"
            for n in sizes
        ]
        large = [n for n in done if n >= 10_000]
        slope = f"{exponent(large, [done[n]['seconds'] for n in large]):.2f}" if len(large) > 1 else ""
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {slope} |")
    lines += [
        "",
        "| time per round | rows | built-in (ms) | default / built-in | "
        + " | ".join(f"{rule} / its floor" for rule in RULES)
        + " |",
        "|---" * (4 + len(RULES)) + "|",
    ]
    rounds = [row for row in table if row["question"] == "round"]
    for library, n_rows in dict.fromkeys((row["library"], row["rows"]) for row in rounds):
        of = {row["method"]: row for row in rounds if (row["library"], row["rows"]) == (library, n_rows)}
        cells = [library, f"{n_rows:,}", f"{1e3 * of['built-in']['seconds']:.1f}"]
        cells += [f"{of['default']['over_built_in']:.2f}", *(f"{of[rule]['over_floor']:.2f}" for rule in RULES)]
        lines.append("| " + " | ".join(cells) + " |")
    if compared := [row for row in table if row["question"] == "quality"]:
        lines += ["", f"| `tables`, {compared[0]['rows']} draws | accuracy | AUC | log-loss |", "|---|---|---|---|"]
        lines += [
            f"| {row['method']} | " + " | ".join(f"{row[name]:.3f}" for name in QUALITY) + " |" for row in compared
        ]
    return "\n".join(lines) + "\n"


def quality(folder: Path) -> list[dict[str, Any]]:
    """Return the means over the draws of `tables` that both the default and the one before it have; none without."""
    rows = ResultTable(folder / "tables.csv", tables.COLUMNS, tables.TRIAL).read()
    draws = {
        method: {(row["data"], row["seed"], row["n_labels"]): row for row in rows if row["method"] == method}
        for method in ("default before, XGBoost", "GRBB, XGBoost")
    }
    both = sorted(set.intersection(*(set(of) for of in draws.values())))
    return [
        {"question": "quality", "method": method, "rows": len(both)}
        | {name: float(np.mean([float(of[key][name]) for key in both])) for name in QUALITY}
        for method, of in draws.items()
        if both
    ]


def too_slow(committed: Iterable[Mapping[str, Any]], measured: Iterable[Mapping[str, Any]]) -> list[str]:
    """Compare ratios of set-ups to 100 rounds with committed ones; return a line for each that fails.

    Examples
    --------
    >>> before = {"question": "set-up", "method": "grbb_ext, default", "rows": "1000", "over_rounds": "0.4"}
    >>> too_slow([before], [before | {"rows": 1000, "over_rounds": 0.8}])
    []
    >>> too_slow([before], [before | {"rows": 1000, "over_rounds": 1.0}])
    ['grbb_ext, default at 1,000 rows: 1.00 times 100 rounds; 0.40 was committed, 0.90 is allowed.']
    """
    known = {(row["method"], int(row["rows"])): row for row in committed if row["question"] == "set-up"}
    lines = []
    for row in measured:
        what = f"{row['method']} at {row['rows']:,} rows"
        before = known.get((row["method"], row["rows"]), {}).get("over_rounds")
        if "failure" in row:
            lines.append(f"{what}: {row['failure']}")
        elif not before:
            lines.append(f"{what}: no ratio was committed. Run the question without --check first.")
        elif row["over_rounds"] > CHECK_FACTOR * float(before) + CHECK_ROOM:
            allowed = CHECK_FACTOR * float(before) + CHECK_ROOM
            lines.append(
                f"{what}: {row['over_rounds']:.2f} times 100 rounds; {float(before):.2f} was committed, "
                f"{allowed:.2f} is allowed."
            )
    return lines


def check(options: Options) -> int:
    """Measure the default set-up where it is quick, and return how many ratios are far above the committed ones."""
    with (options.folder / "speed.csv").open() as file:
        committed = list(csv.DictReader(file))
    measured = time_setups(CHECK_SIZES, ["grbb_ext, default"])
    for row in measured:
        print(f"{row['method']} at {row['rows']:,} rows: {row.get('over_rounds', float('nan')):.2f} times 100 rounds")
    lines = too_slow(committed, measured)
    print("\n".join(lines) or "As fast as the committed numbers, within generous limits.")
    return len(lines)


def run(options: Options) -> int:
    """Measure and write; a quick run prints only, because its numbers are not to be quoted."""
    if options.check:
        return check(options)
    if options.report:
        print("Times are reported as they are measured: run the question again.")
        return 0
    largest, n_rounds = (QUICK_UP_TO, 20) if options.quick else (SETUP_SIZES[-1], 60)
    table = [row for n in ROUND_SIZES if n <= largest for row in _in_own_process(n, n_rounds)]
    table += time_setups([n for n in SETUP_SIZES if n <= largest])
    table += quality(options.folder)
    text = report(table)
    print(text)
    if not options.quick:
        columns = list(dict.fromkeys(key for row in table for key in row))
        ResultTable(options.folder / "speed.csv", columns, columns[:4]).replace(table)
        (options.folder / "speed.md").write_text(text)
    return 0


def _in_own_process(n_rows: int, n_rounds: int) -> list[dict[str, Any]]:
    """Time rounds in a fresh process, so that sizes do not share caches and heaps."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(time_rounds, (n_rows, n_rounds))


if __name__ == "__main__":  # a set-up in a process of its own
    measure_setup(sys.argv[1], int(sys.argv[2]))
