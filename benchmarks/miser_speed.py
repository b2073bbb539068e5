"""Time per round of training with costs over that of plain training: GreedyMiser on XGBoost, and LightGBM's train.

``python -m benchmarks.miser_speed`` writes ``docs/results/miser_speed.csv``, a row for each case with medians over
interleaved trainings: CPU time on one thread, and wall time on two (``--threads 2``).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import lightgbm as lgb
import numpy as np
import xgboost as xgb

from benchmarks.results import RESULTS, ResultTable
from grbb_ext.adapters.lightgbm import train as train_lightgbm
from grbb_ext.adapters.xgboost import GreedyMiser
from grbb_ext.costs import FeatureCosts, Ledger

CASE = ["library", "rows", "columns", "rounds", "threads", "mu", "budget", "strategy"]
FIELDS = [*CASE, "plain_ms", "costs_ms", "ratio", "probes", "features", "spent", "version"]
CASES: tuple[dict[str, Any], ...] = (
    {"mu": 1.0},
    {"mu": 10.0},
    {"mu": 100.0},
    {"share": 0.2},
    {"mu": 10.0, "share": 0.2},
    {"mu": 10.0, "strategy": "interaction"},
)
# Trains with some costs, or plainly with None; returns the rounds, the ledger and the trees that were only looked at.
Train = Callable[[dict[str, Any] | None], tuple[int, Ledger | None, int]]


def make_data(n_rows: int, n_columns: int) -> tuple[Any, Any, FeatureCosts]:
    """Return rows, labels and prices; half of the columns matter, four of them in pairs."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n_rows, n_columns)).astype(np.float32)
    weights = random.exponential(size=n_columns) * (random.random(n_columns) < 0.5)
    score = X @ weights * 0.3 + X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] + random.normal(size=n_rows)
    return X, (score > 0).astype(np.float32), FeatureCosts(np.round(random.uniform(1, 20, n_columns), 1))


def with_xgboost(X: Any, y: Any, costs: FeatureCosts, rounds: int, threads: int) -> Train:
    dtrain = xgb.DMatrix(X, label=y)
    params = {"objective": "binary:logistic", "max_depth": 6, "eta": 0.1, "nthread": threads}

    def train(case: dict[str, Any] | None) -> tuple[int, Ledger | None, int]:
        miser = None if case is None else GreedyMiser(costs, "binary:logistic", dtrain, **case)
        booster = xgb.train(params, dtrain, rounds, callbacks=[] if miser is None else [miser])
        n_rounds = booster.num_boosted_rounds()
        return (n_rounds, None, 0) if miser is None else (n_rounds, miser.ledger_, miser.n_probes_)

    return train


def with_lightgbm(X: Any, y: Any, costs: FeatureCosts, rounds: int, threads: int) -> Train:
    data = lgb.Dataset(X, label=y, free_raw_data=False)
    params = {"objective": "binary", "num_leaves": 63, "max_depth": 6, "verbosity": -1, "num_threads": threads}
    params["force_col_wise"] = True

    def train(case: dict[str, Any] | None) -> tuple[int, Ledger | None, int]:
        booster = train_lightgbm(params, data, rounds, **({} if case is None else {"costs": costs, **case}))
        return booster.current_iteration(), getattr(booster, "ledger_", None), 0

    return train


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cases", type=int, nargs="*", default=list(range(len(CASES))))
    options = parser.parse_args()
    X, y, costs = make_data(options.rows, options.columns)
    everything = costs.total(range(options.columns))
    table = ResultTable(RESULTS / "miser_speed.csv", FIELDS, CASE)
    clock = time.process_time if options.threads == 1 else time.perf_counter
    for library, make, version in (
        ("XGBoost", with_xgboost, xgb.__version__),
        ("LightGBM", with_lightgbm, lgb.__version__),
    ):
        train = make(X, y, costs, options.rounds, options.threads)
        train(None)  # makes the histograms, which all trainings share
        for i in options.cases:
            case = {name: value for name, value in CASES[i].items() if name != "share"}
            if "share" in CASES[i]:
                case["budget"] = round(CASES[i]["share"] * everything, 1)
            if "strategy" in case and library == "LightGBM":
                continue
            times = []
            for _ in range(options.repeats):
                pair = []
                for costs_of_run in (None, case):
                    start = clock()
                    n_rounds, ledger, probes = train(costs_of_run)
                    pair.append(1e3 * (clock() - start) / n_rounds)
                times.append(pair)
            assert ledger is not None
            plain, with_costs = np.median(times, axis=0)
            ratio = np.median([after / before for before, after in times])
            row = [library, options.rows, options.columns, options.rounds, options.threads, case.get("mu", 0)]
            row += [case.get("budget"), case.get("strategy", "levels" if library == "XGBoost" else "")]
            row += [f"{plain:.1f}", f"{with_costs:.1f}", f"{ratio:.2f}", probes, int(ledger.used.sum()), ledger.spent]
            table.append([dict(zip(FIELDS, [*row, version], strict=True))])
            print(*row, flush=True)


if __name__ == "__main__":
    main()
