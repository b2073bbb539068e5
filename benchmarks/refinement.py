"""Does the refined graph propagate labels better than the plain one? Accuracy on unlabelled rows, without a booster.

Three of scikit-learn's data sets, and those in the folder GRBB_DATA (default ``../shared/data``) that exist; each also
with as many Gaussian columns as it has features. 20 labels, at most 1400 rows.

``python -m benchmarks.refinement`` appends to ``docs/results/refinement.csv``, one row per trial; a finished trial is
not run again. The table is printed.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from tqdm import tqdm

from grbb_ext import GraphWarning, grbb_objective

CSV = Path("docs/results/refinement.csv")
DATA = Path(os.environ.get("GRBB_DATA", "../shared/data"))
N_LABELED, MOST_ROWS = 20, 1400
INCLUDED = {"digits": load_digits, "wine": load_wine, "breast_cancer": load_breast_cancer}
# The second class of each set: labels above a number, or those listed.
POSITIVE: dict[str, Any] = {
    "digits": range(5, 10),
    "wine": (1, 2),
    "breast_cancer": (1,),
    "scene15": range(9, 16),
    "usps": range(5, 10),
    "coil20": range(11, 21),
    "mnist3v8": (8,),
    "cbcl_faces": (1,),
    "isolet": range(14, 27),
    "heart_disease": range(1, 5),
    "thyroid": (1, 2),
    "flights": (1,),
}
GRAPHS = ("knn", "refined")
FIELDS = ["data", "noise", "graph", "seed", "rows", "accuracy", "agreement", "seconds", "scikit-learn"]


def load(name: str) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return rows and whether they are of the second class."""
    if name in INCLUDED:
        X, y = INCLUDED[name](return_X_y=True)
    else:
        with np.load(DATA / f"{name}.npz") as file:
            X, y = file["X"].astype(np.float32), file["y"]
    return X, np.isin(y, list(POSITIVE[name]))


def trial(name: str, noise: bool, graph: str, seed: int) -> dict[str, Any]:
    X, truth = load(name)
    random = np.random.default_rng(seed)
    train = random.permutation(truth.size)[: min(MOST_ROWS, int(0.7 * truth.size))]
    X, truth = X[train], truth[train]
    if noise:
        deviation = np.nanstd(X, axis=0)
        X = np.hstack([X, np.median(deviation[deviation > 0]) * random.normal(size=X.shape)])
    y = np.full(truth.size, -1)
    while np.unique(y).size < 3:  # both classes
        y[:] = -1
        labeled = random.choice(truth.size, N_LABELED, replace=False)
        y[labeled] = truth[labeled]
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphWarning)
        obj = grbb_objective(X, y, graph=graph, random_state=seed, verbose=False)
    assert obj.targets_ is not None
    free = y < 0
    return {
        "rows": truth.size,
        "accuracy": round(float(np.mean((obj.targets_[free] > 0.5) == truth[free])), 4),
        "agreement": "" if obj.refinement_ is None else round(obj.refinement_.agreement, 4),
        "seconds": round(time.perf_counter() - start, 2),
        "scikit-learn": sklearn.__version__,
    }


def run(n_seeds: int) -> None:
    CSV.parent.mkdir(parents=True, exist_ok=True)
    done = {(row["data"], row["noise"], row["graph"], row["seed"]) for row in rows_of()}
    names = [name for name in POSITIVE if name in INCLUDED or (DATA / f"{name}.npz").exists()]
    wanted = [
        (name, noise, graph, seed)
        for seed in range(n_seeds)
        for name in names
        for noise in (False, True)
        for graph in GRAPHS
        if (name, str(noise), graph, str(seed)) not in done
    ]
    with CSV.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not done:
            writer.writeheader()
        for key in tqdm(wanted, desc="refinement"):
            writer.writerow(dict(zip(FIELDS, key, strict=False)) | trial(*key))
            file.flush()


def rows_of() -> list[dict[str, str]]:
    if not CSV.exists():
        return []
    with CSV.open() as file:
        return list(csv.DictReader(file))


def report() -> str:
    """Return a table: mean accuracy of both graphs, and the gain with its standard error over the seeds of both."""
    accuracy: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    for row in rows_of():
        accuracy.setdefault((row["data"], row["noise"]), {})[row["graph"], row["seed"]] = float(row["accuracy"])
    lines = ["| data | irrelevant columns | seeds | knn | refined | gain |", "|---|---|---|---|---|---|"]
    for (name, noise), found in sorted(accuracy.items()):
        seeds = [seed for graph, seed in found if graph == "refined" and ("knn", seed) in found]
        pairs = np.array([[found[graph, seed] for graph in GRAPHS] for seed in seeds])
        if len(seeds) < 2:
            continue
        gain = pairs[:, 1] - pairs[:, 0]
        error = gain.std(ddof=1) / np.sqrt(len(seeds))
        knn, refined = pairs.mean(axis=0)
        lines.append(
            f"| {name} | {noise} | {len(seeds)} | {knn:.3f} | {refined:.3f} | {gain.mean():+.3f} ({error:.3f}) |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    run(parser.parse_args().seeds)
    print(report())


if __name__ == "__main__":
    main()
