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

from grbb_ext import Refinement, grbb_objective

N_ROWS, N_LABELS, N_IRRELEVANT, N_CENTERS, SEED = 400, 20, 8, 14, 0
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
    """Draw the edges of a few rows on the two columns that matter; red ones join the moons."""
    centers = np.random.default_rng(SEED).choice(np.flatnonzero(y < 0), N_CENTERS, replace=False)
    edges = W[centers].tocoo()
    start, end = centers[edges.row], edges.col
    between = truth[start] != truth[end]
    lines = np.stack([X[start, :2], X[end, :2]], axis=1)
    ax.add_collection(
        LineCollection(list(lines), colors=np.where(between, "tab:red", "0.3"), linewidths=0.9, alpha=0.8)
    )
    is_center = np.isin(np.arange(y.size), centers)
    for label, color in ((0, "tab:blue"), (1, "tab:orange")):
        of_class = truth == label
        dots, hubs, stars = (X[of_class & mask] for mask in (np.ones_like(is_center), is_center, y >= 0))
        ax.scatter(dots[:, 0], dots[:, 1], s=5, color=color, alpha=0.5, zorder=2)
        ax.scatter(hubs[:, 0], hubs[:, 1], s=45, color=color, zorder=3)
        ax.scatter(stars[:, 0], stars[:, 1], s=60, color=color, edgecolor="black", marker="*", zorder=3)
    ax.set_title(f"{title}: {within(W, truth):.0%} of all weight within a moon", fontsize=10)
    ax.set_xticks([])
    ax.set_yticks([])


def refine(seed: int) -> tuple[Refinement, sp.csr_array, Rows, NDArray[np.int64], NDArray[np.int64]]:
    """Return the refinement, the graph of the trees' own choice, and the data."""
    X, truth, y = moons_among_noise(seed)
    found = grbb_objective(X, y, graph="refined", teacher="graph").refinement_
    assert found is not None
    chosen = sp.csr_array(2.0 * found.graph - found.plain)  # the refined graph is the mean of the two
    chosen.data[np.abs(chosen.data) < 1e-12] = 0.0
    chosen.eliminate_zeros()
    return found, chosen, X, truth, y


def shares_of(seed: int) -> list[float]:
    """Return the affinity within a class and the share of unlabelled rows that is right, plain and refined."""
    found, _, _, truth, y = refine(seed)
    right = [float(np.mean((q > 0.5)[y < 0] == truth[y < 0])) for q in (found.plain_targets, found.targets)]
    return [within(found.plain, truth), within(found.graph, truth), *right]


def main() -> None:
    """Draw the picture and print what 20 seeds say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=PICTURE)
    out = parser.parse_args().out
    found, chosen, X, truth, y = refine(SEED)
    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw(left, found.plain, X, truth, y, "by distance")
    draw(right, chosen, X, truth, y, "ranked by the trees")
    figure.savefig(out, dpi=150)
    shares = np.mean([shares_of(seed) for seed in range(20)], axis=0)
    print("20 seeds: weight within a moon {:.3f} plain, {:.3f} refined; rows right {:.3f}, {:.3f}".format(*shares))


if __name__ == "__main__":
    main()
