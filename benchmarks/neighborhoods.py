"""Neighbours of the plain and of the refined graph, on two moons among irrelevant columns.

``python -m benchmarks.neighborhoods`` draws ``docs/images/neighborhoods.png`` and prints what it shows.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.datasets import make_moons

from grbb_ext import grbb_objective

N_ROWS, N_LABELS, N_IRRELEVANT, SEED = 400, 20, 8, 0
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "neighborhoods.png"
Rows = NDArray[np.float64]


def moons_among_noise(seed: int) -> tuple[Rows, NDArray[np.int64], NDArray[np.int64]]:
    """Return rows, true classes and 20 labels; the first two columns are the moons, the others say nothing."""
    X, truth = make_moons(N_ROWS, noise=0.1, random_state=seed)
    random = np.random.default_rng(seed)
    X = np.hstack([X / X.std(axis=0), random.normal(size=(N_ROWS, N_IRRELEVANT))])
    y = np.full(N_ROWS, -1)
    labeled = random.choice(N_ROWS, N_LABELS, replace=False)
    y[labeled] = truth[labeled]
    return X, truth, y


def within(W: sp.csr_array, truth: NDArray[np.int64]) -> float:
    """Return the share of the affinity that joins rows of one class."""
    edges = W.tocoo()
    return float(edges.data[truth[edges.row] == truth[edges.col]].sum() / edges.data.sum())


def draw(ax: Axes, W: sp.csr_array, X: Rows, truth: NDArray[np.int64], y: NDArray[np.int64], title: str) -> None:
    """Draw the edges on the two columns that matter, the darker the stronger; red ones join the moons."""
    edges = sp.triu(W).tocoo()
    between = truth[edges.row] != truth[edges.col]
    strength = np.clip(edges.data / np.quantile(edges.data, 0.95), 0.0, 1.0)
    colors = np.where(between[:, None], [0.84, 0.15, 0.16, 1.0], [0.25, 0.25, 0.25, 1.0])
    colors[:, 3] = 0.45 * strength
    lines = np.stack([X[edges.row, :2], X[edges.col, :2]], axis=1)
    ax.add_collection(LineCollection(list(lines), colors=colors, linewidths=0.7))
    for label, color in ((0, "tab:blue"), (1, "tab:orange")):
        of_class = truth == label
        ax.scatter(*X[of_class, :2].T, s=7, color=color, zorder=2)
        ax.scatter(*X[of_class & (y >= 0), :2].T, s=55, color=color, edgecolor="black", zorder=3)
    ax.set_title(f"{title}: {within(W, truth):.0%} of the weight within a moon", fontsize=10)
    ax.set_xticks([])
    ax.set_yticks([])


def main() -> None:
    """Draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=PICTURE)
    X, truth, y = moons_among_noise(SEED)
    found = grbb_objective(X, y, graph="refined", guard=False).refinement_
    assert found is not None
    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw(left, found.plain, X, truth, y, "plain graph")
    draw(right, found.graph, X, truth, y, "refined graph")
    figure.savefig(parser.parse_args().out, dpi=150)
    free = y < 0
    for name, targets in (("plain", found.plain_targets), ("refined", found.targets)):
        print(f"{name}: {np.mean((targets > 0.5)[free] == truth[free]):.3f} of the unlabelled rows right")
    shares = np.array([shares_of(seed) for seed in range(20)])
    print("20 seeds, weight within a moon and rows right, plain and refined:", shares.mean(axis=0).round(3))


def shares_of(seed: int) -> list[float]:
    """Return the affinity within a class and the share of unlabelled rows that is right, plain and refined."""
    X, truth, y = moons_among_noise(seed)
    found = grbb_objective(X, y, graph="refined", guard=False).refinement_
    assert found is not None
    right = [float(np.mean((q > 0.5)[y < 0] == truth[y < 0])) for q in (found.plain_targets, found.targets)]
    return [within(found.plain, truth), within(found.graph, truth), *right]


if __name__ == "__main__":
    main()
