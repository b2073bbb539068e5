"""The paper's Figure 5: prediction variance against the number of labels for several mu.

MQ2008 stands in for the Yahoo! data (2, 4 and 16 labelled queries out of 60, every feature at price 1), heart disease
has real prices (10 to 80 labelled rows). LightGBM with the paper's rule, 1,000 trees, 10 runs; lam = 1 at all sizes.

``python -m benchmarks variance`` appends to ``docs/results/variance_figure5.csv``, one row per trial; a finished trial
is not run again. It then draws ``docs/images/variance_figure5.png``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
from numpy.typing import NDArray

from benchmarks.data import DATA, is_available
from benchmarks.options import Options
from benchmarks.results import ResultTable
from benchmarks.runner import Row, run_tasks
from grbb_ext import FeatureCosts, grbb_objective, knn_graph, prediction_variance
from grbb_ext.adapters.lightgbm import train

IMAGES = Path("docs/images")
N_TREES, LAM, N_QUERIES = 1000, 1.0, 60
SIZES = {"mq2008": (2, 4, 16), "heart_disease": (10, 20, 40, 80)}
MUS = {"mq2008": (0.0, 0.1, 0.5, 2.0), "heart_disease": (0.0, 0.01, 0.1, 0.5)}
NUMBERS = ["sandwich", "fisher", "fisher_paper"]
FIELDS = ["data", "size", "mu", "seed", "n_rows", "n_labels", "n_features", "cost", *NUMBERS, "accuracy", "lightgbm"]


def rows_and_labels(name: str, size: int, seed: int) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
    """Return rows, true classes and y; the labels of a seed are nested as the size grows."""
    random = np.random.default_rng(seed)
    with np.load(DATA / f"{name}.npz") as file:
        X, truth = file["X"], (file["y"] > 0).astype(np.int64)
        if name == "mq2008":
            relevant = [q for q in np.unique(file["qid"]) if np.unique(truth[file["qid"] == q]).size == 2]
            queries = random.permutation(relevant)[:N_QUERIES]
            chosen = np.isin(file["qid"], queries)
            X, truth, qid = X[chosen], truth[chosen], file["qid"][chosen]
            return X, truth, np.where(np.isin(qid, queries[:size]), truth, -1)
    while True:
        order = random.permutation(truth.size)
        if np.unique(truth[order[:10]]).size == 2:
            break
    y = np.full(truth.size, -1)
    y[order[:size]] = truth[order[:size]]
    return X, truth, y


def prices(name: str, n_columns: int) -> FeatureCosts:
    """Return the published prices, by column number, or 1 for every column."""
    if name == "mq2008":
        return FeatureCosts(dict.fromkeys(range(n_columns), 1.0))
    return FeatureCosts.from_csv(DATA / f"{name}_costs.csv")


def trial(name: str, size: int, mu: float, seed: int) -> dict[str, Any]:
    X, truth, y = rows_and_labels(name, size, seed)
    graph = knn_graph(X, weights="binary", verbose=False)
    obj = grbb_objective(None, y, graph=graph, preset="paper", verbose=False)
    costs = prices(name, X.shape[1])
    with np.load(DATA / f"{name}.npz") as file:
        names = [str(n) for n in file["feature_names"]]
    params = {"objective": obj, "num_leaves": 15, "max_depth": 4, "learning_rate": 0.1}
    params |= {"verbosity": -1, "num_threads": 1}
    data = lgb.Dataset(X, feature_name="auto" if name == "mq2008" else names)
    booster = train(params, data, N_TREES, costs=costs, mu=mu)
    H = np.asarray(booster.predict(X, raw_score=True), dtype=np.float64)
    free = y < 0
    used = np.flatnonzero(booster.feature_importance() > 0)
    row = {
        "data": name,
        "size": size,
        "mu": mu,
        "seed": seed,
        "n_rows": y.size,
        "n_labels": int((~free).sum()),
        "n_features": used.size,
        "cost": costs.total([int(i) for i in used] if name == "mq2008" else [names[i] for i in used]),
        "sandwich": prediction_variance(obj, H, lam=LAM).mean,
        "fisher": prediction_variance(obj, H, lam=LAM, kind="fisher").mean,
        "fisher_paper": prediction_variance(obj, H, lam=LAM, kind="fisher", curvature="paper").mean,
        "accuracy": float(np.mean((H > 0)[free] == truth[free])),
        "lightgbm": lgb.__version__,
    }
    return row


def draw(rows: list[dict[str, str]]) -> None:
    """Draw one panel for each data set and kind: a line for each mu, with standard errors over the runs."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(9, 6.5), layout="constrained")
    for panels, (name, sizes) in zip(axes, SIZES.items(), strict=True):
        for ax, kind in zip(panels, ("fisher", "sandwich"), strict=True):
            for mu in MUS[name]:
                means, errors = [], []
                for size in sizes:
                    chosen = [
                        float(r[kind]) for r in rows if (r["data"], int(r["size"]), float(r["mu"])) == (name, size, mu)
                    ]
                    means.append(np.mean(chosen) if chosen else np.nan)
                    errors.append(np.std(chosen, ddof=1) / np.sqrt(len(chosen)) if len(chosen) > 1 else 0.0)
                ax.errorbar(sizes, means, errors, marker="o", ms=3, capsize=2, label=f"mu = {mu:g}")
            ax.set_xscale("log", base=2)
            ax.set_xticks(sizes, [str(size) for size in sizes])
            ax.minorticks_off()
            ax.set_ylim(bottom=0)
            ax.set_title(f"{name}: {kind}")
            ax.set_xlabel("labelled queries" if name == "mq2008" else "labelled rows")
            ax.set_ylabel("mean variance of the probability")
        panels[0].legend()
    IMAGES.mkdir(exist_ok=True, parents=True)
    figure.savefig(IMAGES / "variance_figure5.png", dpi=110)


def work(task: tuple[str, int, float, int]) -> list[Row]:
    return [trial(*task)]


def run(options: Options) -> int:
    """Run the trials that are missing on the sets that are there, and draw."""
    table = ResultTable(options.folder / "variance_figure5.csv", FIELDS, FIELDS[:4])
    tasks = [
        (name, size, mu, seed)
        for seed in range(options.seeds or 10)
        for name in options.data or SIZES
        if is_available(name)
        for size in SIZES[name]
        for mu in MUS[name]
        if not table.has({"data": name, "size": size, "mu": mu, "seed": seed})
    ]
    failures = 0 if options.report else run_tasks(table, tasks, work, "Figure 5", options.jobs)
    draw(table.read())
    return failures
