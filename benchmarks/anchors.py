"""How far the anchor operator is from the operator on the graph of all rows.

``python -m benchmarks.anchors`` writes ``docs/results/anchors.csv``, one row for each draw of labels.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.datasets import load_digits, make_classification, make_moons
from tqdm import tqdm

from grbb_ext import Smooth, knn_graph
from grbb_ext.propagation import AnchorNodes
from grbb_ext.table import read_table

RESULTS = Path("docs/results")
N_ANCHORS = (300, 1000)
N_LABELED = (20, 100)
N_DRAWS = 8

Rows = NDArray[np.float64]


def data_sets() -> Iterator[tuple[str, Rows, NDArray[np.int64]]]:
    X, digit = load_digits(return_X_y=True)
    yield "digits", X, (digit >= 5).astype(np.int64)
    yield "moons", *make_moons(8000, noise=0.15, random_state=0)
    clusters = {"n_informative": 8, "n_clusters_per_class": 3, "class_sep": 1.5}
    yield "clusters", *make_classification(8000, 20, random_state=0, **clusters)


def trial(X: Rows, truth: NDArray[np.int64], W: sp.csr_array, n: int, seed: int) -> dict[str, Any]:
    """Propagate one draw of labels by all operators, and score the signs on the other rows."""
    labeled = np.random.default_rng(seed).choice(len(X), n, replace=False)
    rest = np.setdiff1d(np.arange(len(X)), labeled)
    values = 2.0 * truth[labeled] - 1.0
    full = Smooth().on(W, labeled, verbose=False).extend(values)[rest]
    table = read_table(X)
    result: dict[str, Any] = {"labels": n, "seed": seed, "full": float(np.mean((full > 0) == truth[rest]))}
    for n_anchors in N_ANCHORS:
        P = AnchorNodes(table, table.take(labeled), n_anchors=n_anchors, random_state=seed)
        f = P.extend(table.take(rest), values)
        result[f"anchors_{n_anchors}"] = float(np.mean((f > 0) == truth[rest]))
        result[f"agreement_{n_anchors}"] = float(np.mean((f > 0) == (full > 0)))
        result[f"difference_{n_anchors}"] = float(np.abs(f - full).mean())
    return result


def main() -> None:
    results = []
    for name, X, truth in data_sets():
        W = knn_graph(X, verbose=False)
        for n in N_LABELED:
            for seed in tqdm(range(N_DRAWS), desc=f"{name}, {n} labels"):
                scores = trial(X, truth, W, n, seed)
                results.append(
                    {"data": name, **{k: v if isinstance(v, int) else round(v, 4) for k, v in scores.items()}}
                )
    with (RESULTS / "anchors.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, results[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(results)


if __name__ == "__main__":
    main()
