"""Time per round of XGBoost with GreedyMiser over that of plain XGBoost, measured side by side in one process.

``python -m benchmarks.miser_speed`` writes ``docs/results/miser_speed.csv``, one row per training.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import xgboost as xgb

from benchmarks.results import RESULTS, ResultTable
from grbb_ext.adapters.xgboost import GreedyMiser
from grbb_ext.costs import FeatureCosts

FIELDS = ["rows", "columns", "rounds", "threads", "mu", "budget", "strategy", "plain_ms", "miser_ms", "ratio", "probes"]
FIELDS += ["features", "spent", "xgboost"]
CASES: tuple[dict[str, Any], ...] = (
    {"mu": 1.0},
    {"mu": 10.0},
    {"mu": 100.0},
    {"share": 0.2},
    {"mu": 10.0, "share": 0.2},
    {"mu": 10.0, "strategy": "interaction"},
)


def make_data(n_rows: int, n_columns: int) -> tuple[Any, Any, FeatureCosts]:
    """Return rows, labels and prices; half of the columns matter, four of them in pairs."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n_rows, n_columns)).astype(np.float32)
    weights = random.exponential(size=n_columns) * (random.random(n_columns) < 0.5)
    score = X @ weights * 0.3 + X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] + random.normal(size=n_rows)
    return X, (score > 0).astype(np.float32), FeatureCosts(np.round(random.uniform(1, 20, n_columns), 1))


def seconds_per_round(params: dict[str, Any], dtrain: xgb.DMatrix, rounds: int, miser: GreedyMiser | None) -> float:
    start = time.perf_counter()
    booster = xgb.train(params, dtrain, rounds, callbacks=[] if miser is None else [miser])
    return (time.perf_counter() - start) / booster.num_boosted_rounds()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cases", type=int, nargs="*", default=list(range(len(CASES))))
    arguments = parser.parse_args()
    X, y, costs = make_data(arguments.rows, arguments.columns)
    everything = costs.total(range(arguments.columns))
    dtrain = xgb.DMatrix(X, label=y)
    params = {"objective": "binary:logistic", "max_depth": 6, "eta": 0.1, "nthread": arguments.threads}
    xgb.train(params, dtrain, 2)  # makes the histogram index, which all trainings share
    table = ResultTable(RESULTS / "miser_speed.csv", FIELDS, FIELDS)
    for i in arguments.cases:
        case = dict(CASES[i])
        budget = round(case.pop("share") * everything, 1) if "share" in case else None
        miser = GreedyMiser(costs, "binary:logistic", dtrain, budget=budget, **case)
        plain = seconds_per_round(params, dtrain, arguments.rounds, None)
        with_costs = seconds_per_round(params, dtrain, arguments.rounds, miser)
        plain = (plain + seconds_per_round(params, dtrain, arguments.rounds, None)) / 2
        ledger = miser.ledger_
        row = [arguments.rows, arguments.columns, arguments.rounds, arguments.threads, case.get("mu", 0), budget]
        row += [case.get("strategy", "levels"), round(1e3 * plain, 1), round(1e3 * with_costs, 1)]
        row += [round(with_costs / plain, 2), miser.n_probes_, int(ledger.used.sum()), ledger.spent, xgb.__version__]
        table.append([dict(zip(FIELDS, row, strict=True))])
        print(row)


if __name__ == "__main__":
    main()
