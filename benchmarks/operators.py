"""Why the default departs from the paper: rules and operators with 20 labels on real data.

Three of scikit-learn's data sets, and thyroid.npz from the folder GRBB_DATA (default ``../shared/data``) if it exists.

``python -m benchmarks.operators`` appends to ``docs/results/operators.csv``, one row per trial; a finished trial is not
run again. The table is printed and written to ``docs/results/operators.md``.
"""

from __future__ import annotations

import argparse
import csv
import os
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
import xgboost as xgb
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from tqdm import tqdm

from grbb_ext import grbb_objective, knn_graph

RESULTS = Path("docs/results")
DATA = Path(os.environ.get("GRBB_DATA", "../shared/data"))
N_LABELED, N_TREES = 20, 50
METHODS: dict[str, dict[str, Any]] = {
    "labelled rows only": {"rule": "labeled"},
    "paper": {"preset": "paper"},
    "corrected, harmonic": {"rule": "corrected", "propagation": "harmonic"},
    "corrected, nonlocal": {"rule": "corrected", "propagation": "nonlocal"},
    "targets, harmonic": {"propagation": "harmonic"},
    "targets, nonlocal, hard": {"propagation": "nonlocal", "hard": True},
    "targets, Poisson": {"propagation": "poisson"},
    "targets, smooth, not sharpened": {"sharpen": 1.0},
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


def run(n_seeds: int) -> Path:
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / "operators.csv"
    done: set[tuple[str, str, int]] = set()
    if path.exists():
        with path.open() as file:
            done = {(row["data"], row["booster"], int(row["seed"])) for row in csv.DictReader(file)}
    wanted = [
        (name, booster, seed)
        for name in ("digits", "wine", "breast_cancer", *(["thyroid"] if (DATA / "thyroid.npz").exists() else []))
        for booster in ("XGBoost", "LightGBM")
        for seed in range(n_seeds)
    ]
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not done:
            writer.writeheader()
        for name, booster, seed in tqdm([t for t in wanted if t not in done], desc="operators"):
            for method, accuracy in trial(name, booster, seed).items():
                versions = {"lightgbm": lgb.__version__, "xgboost": xgb.__version__}
                key = {"data": name, "booster": booster, "method": method, "seed": seed}
                writer.writerow(key | {"accuracy": round(accuracy, 4)} | versions)
            file.flush()
    return path


def report(path: Path) -> str:
    """Write the table: mean accuracy and, in brackets, the standard error of the difference from the default."""
    with path.open() as file:
        rows = list(csv.DictReader(file))
    columns = list(dict.fromkeys((row["data"], row["booster"]) for row in rows))
    lines = [
        "| | " + " | ".join(f"{name}, {booster}" for name, booster in columns) + " |",
        "|---" * (len(columns) + 1) + "|",
    ]
    of = {(r["data"], r["booster"], r["method"], r["seed"]): float(r["accuracy"]) for r in rows}
    for method in METHODS:
        cells = []
        for name, booster in columns:
            seeds = sorted({r["seed"] for r in rows if (r["data"], r["booster"]) == (name, booster)})
            values = np.array([of[name, booster, method, seed] for seed in seeds])
            behind = np.array([of[name, booster, "targets, smooth (default)", seed] for seed in seeds]) - values
            error = behind.std(ddof=1) / np.sqrt(len(seeds))
            cells.append(f"{values.mean():.3f} ({error:.3f})")
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    path = run(parser.parse_args().seeds)
    text = report(path)
    path.with_suffix(".md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
