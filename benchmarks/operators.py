"""Why the default departs from the paper: rules and operators with 20 labels on real data.

Three of scikit-learn's data sets, and thyroid.npz from the folder GRBB_DATA (default ``../shared/data``) if it exists.

``python -m benchmarks.operators`` appends to ``docs/results/operators.csv``, one row per trial; a finished trial is not
run again. The table is printed and written to ``docs/results/operators.md``.
"""

from __future__ import annotations

import argparse
from typing import Any

import lightgbm as lgb
import numpy as np
import xgboost as xgb
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from benchmarks.data import DATA
from benchmarks.results import RESULTS, ResultTable
from benchmarks.runner import Row, run_tasks
from grbb_ext import Committee, Targets, grbb_objective, knn_graph

N_LABELED, N_TREES = 20, 50
METHODS: dict[str, dict[str, Any]] = {
    "labelled rows only": {"rule": "labeled"},
    "paper": {"preset": "paper"},
    "corrected, harmonic": {"rule": "corrected", "propagation": "harmonic"},
    "corrected, nonlocal": {"rule": "corrected", "propagation": "nonlocal"},
    "targets, harmonic": {"propagation": "harmonic"},
    "targets, nonlocal, hard": {"propagation": "nonlocal", "rule": Targets(hard=True)},
    "targets, Poisson": {"propagation": "poisson"},
    "targets, smooth, not sharpened": {"teacher": Committee(sharpen=1.0)},
    "targets, smooth (default)": {},
}
FIELDS = ["data", "booster", "method", "seed", "accuracy", "lightgbm", "xgboost"]


def load(name: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return rows and a binary label: digits above 4, wine of class 0 against the others, benign tumours, disease."""
    if name == "thyroid":
        with np.load(DATA / "thyroid.npz") as file:
            some = np.random.default_rng(0).permutation(file["y"].size)[:2000]
            return file["X"][some], (file["y"][some] < 3).astype(np.int64)
    source = {"digits": load_digits, "wine": load_wine, "breast_cancer": load_breast_cancer}[name]
    X, y = source(return_X_y=True)
    return X, {"digits": y > 4, "wine": y > 0, "breast_cancer": y > 0}[name].astype(np.int64)


def trial(name: str, booster: str, seed: int) -> dict[str, float]:
    """Return the test accuracy of every method on one split: 70 % of the rows to train on, 20 of them labelled."""
    X, truth = load(name)
    random = np.random.default_rng(seed)
    order = random.permutation(truth.size)
    n_train = int(0.7 * truth.size)
    train, test = order[:n_train], order[n_train:]
    y = np.full(n_train, -1)
    while np.unique(y).size < 3:  # both classes
        y[:] = -1
        labeled = random.choice(n_train, N_LABELED, replace=False)
        y[labeled] = truth[train][labeled]
    graphs = {kind: knn_graph(X[train], weights=kind) for kind in ("self-tuning", "binary")}
    accuracy = {}
    for method, keywords in METHODS.items():
        graph = graphs["binary" if "preset" in keywords else "self-tuning"]
        obj = grbb_objective(None, y, graph=graph, verbose=False, **keywords)
        accuracy[method] = float(np.mean(obj.predict(fit(booster, obj, X[train], X[test])) == truth[test]))
    return accuracy


def fit(booster: str, obj: Any, X: NDArray[np.float64], test: NDArray[np.float64]) -> NDArray[np.float64]:
    if booster == "XGBoost":
        parameters: dict[str, Any] = {"base_score": 0, "max_depth": 4, "eta": 0.3, "min_child_weight": 0}
        trees = xgb.train(parameters, xgb.DMatrix(X), N_TREES, obj=obj)
        return np.asarray(trees.predict(xgb.DMatrix(test), output_margin=True))
    parameters = {"objective": obj, "num_leaves": 15, "learning_rate": 0.3, "min_data_in_leaf": 1, "verbosity": -1}
    return np.asarray(lgb.train(parameters, lgb.Dataset(X), N_TREES).predict(test, raw_score=True))


def work(task: tuple[str, str, int]) -> list[Row]:
    name, booster, seed = task
    key = {"data": name, "booster": booster, "seed": seed}
    versions = {"lightgbm": lgb.__version__, "xgboost": xgb.__version__}
    return [
        key | {"method": method, "accuracy": round(accuracy, 4)} | versions
        for method, accuracy in trial(name, booster, seed).items()
    ]


def run(n_seeds: int) -> ResultTable:
    table = ResultTable(RESULTS / "operators.csv", FIELDS, ["data", "booster", "seed"], ["method"])
    wanted = [
        (name, booster, seed)
        for name in ("digits", "wine", "breast_cancer", *(["thyroid"] if (DATA / "thyroid.npz").exists() else []))
        for booster in ("XGBoost", "LightGBM")
        for seed in range(n_seeds)
        if not table.has({"data": name, "booster": booster, "seed": seed}, len(METHODS))
    ]
    run_tasks(table, wanted, work, "operators")
    return table


def report(rows: list[dict[str, str]]) -> str:
    """Write a table for each booster: mean accuracy, and the standard error of the difference from the default."""
    names = list(dict.fromkeys(row["data"] for row in rows))
    lines: list[str] = []
    for booster in dict.fromkeys(row["booster"] for row in rows):
        accuracy = {
            (method, name): np.array(
                [
                    float(row["accuracy"])
                    for row in rows
                    if (row["booster"], row["method"], row["data"]) == (booster, method, name)
                ]
            )
            for method in METHODS
            for name in names
        }
        lines += [f"| {booster} | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
        for method in METHODS:
            cells = []
            for name in names:
                values = accuracy[method, name]
                behind = accuracy["targets, smooth (default)", name] - values
                cells.append(f"{values.mean():.3f} ({behind.std(ddof=1) / np.sqrt(values.size):.3f})")
            lines.append(f"| {method} | " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    table = run(parser.parse_args().seeds)
    text = report(table.read())
    table.path.with_suffix(".md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
