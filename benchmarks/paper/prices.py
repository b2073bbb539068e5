"""Beyond the paper: the curves with real prices (heart disease and thyroid), and with acquisition groups (flights).

The prices of heart disease and thyroid are those of Turney (1995), in dollars, with shared blood draws and stress tests
paid once. Flights, 327,346 rows, has natural groups without published prices, so these are ours: the schedule is nearly
free, the aircraft and the weather are looked up, and what is known only at departure is dear.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import DATA, load
from benchmarks.equal_cost import costs_of
from benchmarks.options import Options
from benchmarks.paper import curves
from benchmarks.paper.curve_methods import NOTHING, Plan, Problem
from benchmarks.runner import Row
from benchmarks.splits import TRAIN_SHARE, choose_labels, draw
from grbb_ext import FeatureCosts

LABELS = (20, 80)
FLIGHTS_LABELS, FLIGHTS_SEEDS = 200, 3
FLIGHTS_PRICES = {"schedule": 1.0, "aircraft": 5.0, "weather": 10.0, "live": 50.0}


def problem(data: str, n_labels: int, seed: int) -> Problem:
    """Draw a split: at most 1,400 training rows, but all rows of flights."""
    if data == "flights":
        X, truth, groups = _flights()
        order = np.random.default_rng(seed).permutation(truth.size)
        n_train = int(TRAIN_SHARE * truth.size)
        train, test = order[:n_train], order[n_train:]
        y = choose_labels(truth[train], seed, n_labels)
        costs = FeatureCosts(needs=[[group] for group in groups], prices=FLIGHTS_PRICES)
        return Problem(X[train], y, X[test], truth[test], costs)
    source = load(data)
    split = draw(source, seed, n_labels)
    return Problem(split.X, split.y, split.X_test, split.truth, by_number(costs_of(source)))


def by_number(costs: FeatureCosts) -> FeatureCosts:
    """Return the same prices by column number, because the boosters here see arrays without names."""
    needs = [[str(source) for source in costs.sources_of(feature)] for feature in costs.features]
    prices = {str(source): float(price) for source, price in zip(costs.sources, costs.prices, strict=True)}
    return FeatureCosts(needs=needs, prices=prices)


@cache
def _flights() -> tuple[NDArray[np.float32], NDArray[np.int64], list[str]]:
    with np.load(DATA / "flights.npz") as file:
        truth: Any = (file["y"] == 1).astype(np.int64)
        return file["X"].astype(np.float32), truth, [str(group) for group in file["groups"]]


#: Of 229,142 training rows a unit of mu has to be a share: gains are sums over the rows.
FLIGHTS = curves.Case(
    "flights",
    FLIGHTS_LABELS,
    Plan(n_trees=100, mus=(0.0, *(4.0**power for power in range(-5, 0))), per_row=True),
    (NOTHING, "GBRT", "Early-exit", "Greedy Miser", "CEGB", "LRL1", "GRBB (default)"),
    FLIGHTS_SEEDS,
    is_last=True,
)
QUICK = Plan(n_trees=30, mus=(0.0, 0.25, 4.0), n_trials=2, n_penalties=8)
QUESTION = curves.Question(
    name="prices",
    problem=problem,
    cases=(
        *(curves.Case(data, n_labels, Plan()) for data in ("heart_disease", "thyroid") for n_labels in LABELS),
        FLIGHTS,
    ),
    quick_cases=(curves.Case("breast_cancer", 20, QUICK),),
    metrics=("auc", "accuracy"),
    n_seeds=10,
    budgets={
        "heart_disease": (4.0, 12.0, 40.0, 130.0, 324.0),
        "thyroid": (5.0, 25.0, 40.0, 60.0, 70.0),
        "flights": (1.0, 6.0, 16.0, 66.0),
        "breast_cancer": (3.0, 10.0, 25.0, 55.0),
    },
)


def work(task: curves.Task) -> list[Row]:
    """Run the methods of a split."""
    return curves.work(QUESTION, task)


def run(options: Options) -> int:
    """Run what is missing and write ``prices.csv``, ``.md`` and ``.png``."""
    return curves.run(QUESTION, work, options)
