"""Two half-moons with one label each: accuracy after every tree, for every rule, on both boosters.

``python -m benchmarks.two_moons`` writes ``docs/results/two_moons.csv`` (one row per trial) and the picture of it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
import xgboost as xgb
from numpy.typing import NDArray
from sklearn.datasets import make_moons

from benchmarks.results import RESULTS, ResultTable
from benchmarks.runner import Row, run_tasks
from grbb_ext import GRBBObjective, KNNGraph, grbb_objective

N_ROWS, NOISE, LEARNING_RATE, DEPTH = 400, 0.05, 0.3, 4
LAPLACIAN_LAM = 0.3  # the best of .03, .1, .3, 1 for LapGBRT after 1,000 trees; at 1 it diverges

#: The paper's Figure 1 and the default.
METHODS: dict[str, dict[str, Any]] = {
    "GBRT": {"rule": "labeled"},
    "LapGBRT": {"rule": "laplacian", "lam": LAPLACIAN_LAM, "graph": KNNGraph(weights="binary")},
    "GRBB (paper)": {"preset": "paper"},
    "GRBB (corrected)": {"rule": "corrected"},
    "GRBB (default)": {},
}
BOOSTERS = ("XGBoost", "LightGBM")
TREES = [1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000]
COLUMNS = ["booster", "method", "seed", "trees", "accuracy", "xgboost", "lightgbm"]
Scores = Callable[[NDArray[np.float64], int], NDArray[np.float64]]


def moons(seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Return rows, their true classes, and y with one label per class."""
    X, truth = make_moons(N_ROWS, noise=NOISE, random_state=seed)
    random = np.random.default_rng(seed)
    y = np.full(N_ROWS, -1)
    for label in (0, 1):
        y[random.choice(np.flatnonzero(truth == label))] = label
    return X, truth, y


def train(booster: str, obj: GRBBObjective, X: NDArray[np.float64], n_trees: int) -> Scores:
    """Train and return the raw scores as a function of rows and number of trees."""
    # Leaves of a single row: two labels must be enough for a leaf each. One thread: 400 rows are too few for more.
    if booster == "XGBoost":
        parameters: dict[str, Any] = {
            "base_score": 0,
            "eta": LEARNING_RATE,
            "max_depth": DEPTH,
            "lambda": 1,
            "nthread": 1,
            "min_child_weight": 0,
        }
        trees = xgb.train(parameters, xgb.DMatrix(X), n_trees, obj=obj)
        return lambda rows, k: trees.predict(xgb.DMatrix(rows), output_margin=True, iteration_range=(0, k))
    parameters = {
        "objective": obj,
        "learning_rate": LEARNING_RATE,
        "num_leaves": 2**DEPTH,
        "max_depth": DEPTH,
        "lambda_l2": 1,
        "min_data_in_leaf": 1,
        "min_data_in_bin": 1,
        "num_threads": 1,
        "verbosity": -1,
    }
    model = lgb.train(parameters, lgb.Dataset(X), n_trees)
    return lambda rows, k: np.asarray(model.predict(rows, raw_score=True, num_iteration=k))


def accuracy_by_tree(booster: str, method: str, seed: int, trees: list[int]) -> list[float]:
    X, truth, y = moons(seed)
    scores = train(booster, grbb_objective(X, y, verbose=False, **METHODS[method]), X, max(trees))
    return [float(np.mean((scores(X, k) > 0) == truth)) for k in trees]


def work(task: tuple[str, str, int, list[int]]) -> list[Row]:
    booster, method, seed, trees = task
    key = {"booster": booster, "method": method, "seed": seed}
    versions = {"xgboost": xgb.__version__, "lightgbm": lgb.__version__}
    return [
        key | {"trees": k, "accuracy": round(accuracy, 4)} | versions
        for k, accuracy in zip(trees, accuracy_by_tree(booster, method, seed, trees), strict=True)
    ]


def run(folder: Path, n_seeds: int, trees: list[int], jobs: int = 1) -> tuple[ResultTable, int]:
    """Run what is missing; return the table and how many trials failed."""
    table = ResultTable(folder / "two_moons.csv", COLUMNS, ["booster", "method", "seed"], ["trees"])
    tasks = [
        (booster, method, seed, trees)
        for booster in BOOSTERS
        for method in METHODS
        for seed in range(n_seeds)
        if not table.has({"booster": booster, "method": method, "seed": seed}, len(trees))
    ]
    return table, run_tasks(table, tasks, work, "two moons", jobs)


def draw(table: ResultTable) -> Path:
    """Draw accuracy against trees, mean and range over seeds, from the CSV alone."""
    import matplotlib.pyplot as plt

    rows = table.read()
    figure, axes = plt.subplots(1, 2, figsize=(11, 4), sharey=True, layout="constrained")
    for ax, booster in zip(axes, BOOSTERS, strict=True):
        for method in METHODS:
            of_method = [r for r in rows if r["booster"] == booster and r["method"] == method]
            trees = sorted({int(r["trees"]) for r in of_method})
            accuracy = np.array([[float(r["accuracy"]) for r in of_method if int(r["trees"]) == k] for k in trees])
            (line,) = ax.plot(trees, accuracy.mean(axis=1), marker="o", markersize=3, label=method)
            ax.fill_between(trees, accuracy.min(axis=1), accuracy.max(axis=1), color=line.get_color(), alpha=0.15)
        ax.set(xscale="log", xlabel="trees", title=booster)
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("accuracy on all rows (mean and range of seeds)")
    axes[1].legend(loc="lower right", fontsize=8)
    picture = table.path.with_suffix(".png")
    figure.savefig(picture, dpi=110)
    plt.close(figure)
    return picture


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    table, _ = run(RESULTS, parser.parse_args().seeds, TREES)
    print(f"wrote {table.path} and {draw(table)}")


if __name__ == "__main__":
    main()
