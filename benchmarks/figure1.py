"""The paper's Figure 1 on stock boosters: two labels, accuracy after every tree and decision surfaces.

``make demo`` writes ``demo.png`` and ``demo.csv`` and prints the table. ``python -m benchmarks figure1`` also runs all
trials of :mod:`benchmarks.two_moons`.
"""

from __future__ import annotations

import argparse
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from benchmarks import two_moons
from benchmarks.options import Options
from benchmarks.results import ResultTable
from benchmarks.two_moons import BOOSTERS, METHODS, Scores, moons, train
from grbb_ext import grbb_objective

SHOWN = ("GBRT", "LapGBRT", "GRBB (paper)", "GRBB (default)")
TREES = (1, 10, 100, 1000)
IMAGES = Path("docs/images")


def fit_all(seed: int) -> dict[tuple[str, str], Scores]:
    X, _, y = moons(seed)
    return {
        (booster, method): train(booster, grbb_objective(X, y, verbose=False, **METHODS[method]), X, max(TREES))
        for booster, method in tqdm(list(product(BOOSTERS, SHOWN)), desc="training")
    }


def draw(models: dict[tuple[str, str], Scores], seed: int, path: Path) -> list[dict[str, Any]]:
    """Draw one surface per method, booster and number of trees; return the accuracies."""
    import matplotlib.pyplot as plt

    X, truth, y = moons(seed)
    low, high = X.min(axis=0) - 0.35, X.max(axis=0) + 0.35
    horizontal, vertical = np.linspace(low[0], high[0], 160), np.linspace(low[1], high[1], 120)
    plane: NDArray[np.float64] = np.column_stack([a.ravel() for a in np.meshgrid(horizontal, vertical)])

    table: list[dict[str, Any]] = []
    figure, axes = plt.subplots(len(SHOWN), 2 * len(TREES), figsize=(15, 6.6), layout="constrained")
    for row, method in enumerate(SHOWN):
        for column, (booster, k) in enumerate(product(BOOSTERS, TREES)):
            scores, ax = models[booster, method], axes[row, column]
            probability = (1 / (1 + np.exp(-np.clip(scores(plane, k), -30, 30)))).reshape(vertical.size, -1)
            accuracy = float(np.mean((scores(X, k) > 0) == truth))
            table.append({"method": method, "booster": booster, "trees": k, "accuracy": round(accuracy, 4)})
            ax.imshow(
                probability,
                origin="lower",
                extent=(*horizontal[[0, -1]], *vertical[[0, -1]]),
                cmap="RdBu",
                vmin=0,
                vmax=1,
                aspect="auto",
                alpha=0.75,
            )
            ax.scatter(*X.T, c=truth, cmap="RdBu", s=2.5, alpha=0.8, linewidths=0)
            for label, color in ((0, "#b2182b"), (1, "#2166ac")):
                ax.scatter(*X[y == label].T, marker="*", s=150, color=color, edgecolor="white", linewidth=0.9)
            ax.set(xticks=[], yticks=[], xlim=horizontal[[0, -1]], ylim=vertical[[0, -1]])
            strong = accuracy >= 0.99
            ax.text(
                0.97,
                0.95,
                f"{accuracy:.1%}",
                transform=ax.transAxes,
                ha="right",
                va="top",
                fontsize=9,
                fontweight="bold" if strong else "normal",
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1.5},
            )
            if row == 0:
                ax.set_title(f"{booster}, {k} tree{'s' * (k > 1)}", fontsize=9)
            if column == 0:
                ax.set_ylabel(method, fontsize=10)
    figure.suptitle("Two labels (stars), 398 unlabelled rows: what the booster learns", fontsize=12)
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return table


def run(options: Options) -> int:
    """Run the trials that are missing, and draw both pictures."""
    n_seeds = options.seeds or (1 if options.quick else 5)
    trees = [k for k in two_moons.TREES if not options.quick or k <= 100]
    if options.report:
        n_seeds = 0
    table, failures = two_moons.run(options.folder, n_seeds, trees, options.jobs)
    print(f"wrote {table.path} and {two_moons.draw(table)}")
    if not (options.quick or options.report):
        draw(fit_all(0), 0, IMAGES / "figure1.png")  # surfaces need the models themselves
    return failures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path("demo.png"))
    arguments = parser.parse_args()
    start = time.perf_counter()
    table = draw(fit_all(arguments.seed), arguments.seed, arguments.output)
    demo = ResultTable(arguments.output.with_suffix(".csv"), list(table[0]), ["method", "booster", "trees"])
    demo.replace(table)

    print(f"\nAccuracy on all rows from two labels\n\n{'':16}" + "".join(f"{booster:^32}" for booster in BOOSTERS))
    print(f"{'trees':16}" + "".join(f"{k:>8}" for _, k in product(BOOSTERS, TREES)))
    for method in SHOWN:
        print(f"{method:16}" + "".join(f"{row['accuracy']:>8.3f}" for row in table if row["method"] == method))
    seconds = time.perf_counter() - start
    print(f"\nwrote {arguments.output} and {arguments.output.with_suffix('.csv')} in {seconds:.0f} s")


if __name__ == "__main__":
    main()
