"""Which strategy picks the better labels, and how far the forecast of the variance lies from retraining.

Each trial starts from one random label per class and grows to 5, 10, 20 and 40 labels by one strategy, training anew at
each size. All strategies of a seed share rows, graph and first labels, so their differences are paired. Data sets are
scikit-learn's and those of the folder GRBB_DATA (default ``../shared/data``) that exist there.

``python -m benchmarks.label_suggestions`` appends to ``docs/results/label_suggestions.csv``, a row per trial and size;
a finished trial is not run again. The tables are printed and written to ``docs/results/label_suggestions.md``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, cast

import lightgbm as lgb
import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits

from benchmarks.data import DATA
from benchmarks.results import RESULTS, ResultTable
from benchmarks.runner import Row, run_tasks
from grbb_ext import GRBBObjective, grbb_objective, knn_graph, prediction_variance, suggest_labels
from grbb_ext.propagation import Smooth, SmoothPropagation
from grbb_ext.variance import Strategy

SIZES = (5, 10, 20, 40)
N_TRAIN, N_TEST, N_TREES = 800, 1000, 50
# "k-means, graph" does not look at the rows but at a projection of the graph's kernel.
STRATEGIES = ("a-optimal", "k-means", "k-means, graph", "uncertainty", "random")
FIELDS = [
    "data",
    "strategy",
    "seed",
    "n_labels",
    "accuracy",
    "balanced_accuracy",
    "lam",
    "forecast",
    "retrained",
    "lightgbm",
]
FIRST_OF: dict[str, float] = {"usps": 4, "coil20": 10, "mnist3v8": 5, "scene15": 8, "cbcl_faces": 0, "heart_disease": 0}


def load(name: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return rows and a binary label, split as the paper does where it uses the data."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return X, (y > 4).astype(np.int64)
    if name == "breast_cancer":
        X, y = load_breast_cancer(return_X_y=True)
        return X, y.astype(np.int64)
    with np.load(DATA / f"{name}.npz") as file:
        return file["X"].astype(np.float64), (file["y"] > FIRST_OF[name]).astype(np.int64)


def train(obj: GRBBObjective, X: NDArray[np.float64]) -> lgb.Booster:
    params = {
        "objective": obj,
        "num_leaves": 15,
        "max_depth": 4,
        "learning_rate": 0.3,
        "verbosity": -1,
        "num_threads": 1,
    }
    return lgb.train(params, lgb.Dataset(X), N_TREES)


def balanced(truth: NDArray[np.int64], predicted: NDArray[np.int64]) -> float:
    return float(np.mean([np.mean(predicted[truth == k] == k) for k in (0, 1)]))


def same_prior(old: GRBBObjective, y: NDArray[np.int64], lam: float) -> tuple[GRBBObjective, float]:
    """Return the objective with more labels but the old kernel, and lam in its units.

    Length scale and scale of the kernel follow the labels; the forecast knows only the old ones.
    """
    before = old.propagation_
    assert isinstance(before, SmoothPropagation)
    grown = grbb_objective(None, y, graph=before.W, propagation=Smooth(tau=before.tau_), verbose=False)
    after = grown.propagation_
    assert isinstance(after, SmoothPropagation)
    return grown, lam * after.kernel_scale / before.kernel_scale


def trials(name: str, seed: int, strategies: list[str]) -> list[dict[str, Any]]:
    X, truth = load(name)
    random = np.random.default_rng(seed)
    order = random.permutation(truth.size)
    n_train = min(N_TRAIN, int(0.7 * truth.size))
    rows, test = order[:n_train], order[n_train : n_train + N_TEST]
    graph = knn_graph(X[rows], verbose=False)
    first = [int(random.choice(np.flatnonzero(truth[rows] == k))) for k in (0, 1)]
    table = []
    for strategy in strategies:
        y = np.full(n_train, -1)
        y[first] = truth[rows][first]
        obj = grbb_objective(None, y, graph=graph, verbose=False)
        for size in SIZES:
            scores = train(obj, X[rows]).predict(X[rows], raw_score=True)
            kind = cast(Strategy, strategy.split(",")[0])
            X_seen = None if strategy.endswith("graph") else X[rows]
            found = suggest_labels(obj, scores, size - obj.labeled_.size, kind, X=X_seen, random_state=seed)
            before = prediction_variance(obj, scores, lam=found.lam, kind="fisher").mean
            y[found.rows] = truth[rows][found.rows]
            grown = obj.with_labels(y)
            booster = train(grown, X[rows])
            frozen, lam = same_prior(obj, y, found.lam)
            scores = booster.predict(X[rows], raw_score=True)
            predicted = (np.asarray(booster.predict(X[test], raw_score=True)) > 0).astype(np.int64)
            table.append(
                {
                    "data": name,
                    "strategy": strategy,
                    "seed": seed,
                    "n_labels": size,
                    "accuracy": float(np.mean(predicted == truth[test])),
                    "balanced_accuracy": balanced(truth[test], predicted),
                    "lam": found.lam,
                    "forecast": before - float(found.expected_drop.sum()),
                    "retrained": prediction_variance(frozen, scores, lam=lam, kind="fisher").mean,
                    "lightgbm": lgb.__version__,
                }
            )
            obj = grown
    return table


def work(task: tuple[str, int, str]) -> list[Row]:
    name, seed, strategy = task
    return list(trials(name, seed, [strategy]))


def write_tables(rows: list[dict[str, str]]) -> str:
    """Return mean accuracy and the paired difference from random labels, and the error of the forecast."""
    accuracy = {(r["data"], r["strategy"], int(r["seed"]), int(r["n_labels"])): float(r["accuracy"]) for r in rows}
    names = sorted({r["data"] for r in rows})
    seeds = sorted({int(r["seed"]) for r in rows})
    lines = ["Test accuracy minus that of random labels, paired by seed, in points, +- one standard error.", ""]
    for size in SIZES:
        others = [s for s in STRATEGIES if s != "random"]
        lines += [f"| {size} labels | random | {' | '.join(others)} |", "|---|---|" + "---|" * len(others)]
        pooled: dict[str, list[float]] = {s: [] for s in others}
        for name in names:
            complete = [s for s in seeds if all((name, strategy, s, size) in accuracy for strategy in STRATEGIES)]
            if len(complete) < 2:
                continue
            base = np.array([accuracy[name, "random", s, size] for s in complete])
            cells = [f"{base.mean():.3f}"]
            for strategy in others:
                d = 100 * (np.array([accuracy[name, strategy, s, size] for s in complete]) - base)
                pooled[strategy].append(float(d.mean()))
                cells.append(f"{d.mean():+.1f} +- {d.std(ddof=1) / np.sqrt(d.size):.1f}")
            lines.append(f"| {name} ({len(complete)}) | {' | '.join(cells)} |")
        means = " | ".join(f"{np.mean(pooled[s]):+.1f}" if pooled[s] else "" for s in others)
        lines += [f"| mean | | {means} |", ""]
    lines += [
        "Forecast of the mean posterior variance divided by its value after retraining: median and quartiles.",
        "",
    ]
    lines += ["| strategy | " + " | ".join(f"{size} labels" for size in SIZES) + " |", "|---|" + "---|" * len(SIZES)]
    for picked in STRATEGIES:
        cells = []
        for size in SIZES:
            ratio = [
                float(r["forecast"]) / float(r["retrained"])
                for r in rows
                if r["strategy"] == picked and int(r["n_labels"]) == size
            ]
            low, middle, high = np.quantile(ratio, [0.25, 0.5, 0.75]) if ratio else (np.nan,) * 3
            cells.append(f"{middle:.2f} ({low:.2f}-{high:.2f})")
        lines.append(f"| {picked} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="*", default=["digits", "breast_cancer", *FIRST_OF])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--strategies", nargs="*", default=STRATEGIES)
    parser.add_argument("--output", type=Path, default=RESULTS / "label_suggestions.csv")
    arguments = parser.parse_args()
    table = ResultTable(arguments.output, FIELDS, ["data", "strategy", "seed"], ["n_labels"])
    names = [n for n in arguments.data if n in ("digits", "breast_cancer") or (DATA / f"{n}.npz").exists()]
    tasks = [
        (name, seed, strategy)
        for seed in range(arguments.seeds)
        for name in names
        for strategy in arguments.strategies
        if not table.has({"data": name, "strategy": strategy, "seed": seed}, len(SIZES))
    ]
    run_tasks(table, tasks, work, "label suggestions")
    text = write_tables(table.read())
    print(text)
    (RESULTS / "label_suggestions.md").write_text(text)


if __name__ == "__main__":
    main()
