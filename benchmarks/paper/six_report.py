"""Tables and picture of :mod:`benchmarks.paper.six`, from the CSV alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.paired import Mean, difference, mean_of

SHOWN_TREES = (10, 50, 200)
#: Colours that are told apart with any eyes (Okabe and Ito); the default without a search is its broken line.
STYLES: dict[str, tuple[str, str]] = {
    "GBRT": ("#555555", "-"),
    "LapGBRT": ("#e69f00", "-"),
    "GRBB (paper)": ("#cc79a7", "-"),
    "GRBB (corrected)": ("#009e73", "-"),
    "GRBB (default)": ("#0072b2", "-"),
    "GRBB (default, untuned)": ("#56b4e9", "--"),
}
BASELINES = ("GBRT", "LapGBRT")
#: A mean this close to the best mean of its curve is near the top.
NEAR = 0.01


class Curves:
    """Values by set, method, number of trees and seed.

    Parameters
    ----------
    rows : list of dict
        Of the CSV.
    """

    def __init__(self, rows: list[dict[str, str]]) -> None:
        self.values: dict[tuple[str, str, int], dict[int, float]] = defaultdict(dict)
        self.seconds: dict[str, dict[tuple[str, str], float]] = defaultdict(dict)
        self.metric: dict[str, str] = {}
        self.versions = Counter(f"grbb_ext {row['grbb_ext']}, xgboost {row['xgboost']}" for row in rows)
        for row in rows:
            self.values[row["data"], row["method"], int(row["trees"])][int(row["seed"])] = float(row["value"])
            self.seconds[row["method"]][row["data"], row["seed"]] = float(row["seconds"])
            self.metric[row["data"]] = row["metric"]
        found = {row["method"] for row in rows}
        self.data = list(dict.fromkeys(row["data"] for row in rows))
        self.methods = [*(m for m in STYLES if m in found), *sorted(found - STYLES.keys())]
        self.trees = sorted({trees for *_, trees in self.values})

    def seeds(self, data: str, method: str, trees: int) -> Mapping[int, float]:
        """Return the values of a cell by seed, none where it has not run."""
        return self.values.get((data, method, trees), {})

    def mean(self, data: str, method: str, trees: int) -> Mean:
        """Return the mean of a cell."""
        return mean_of(self.seeds(data, method, trees).values())

    def lead(self, data: str, method: str, rival: str, trees: int) -> Mean:
        """Return the paired difference of two methods."""
        return difference(self.seeds(data, method, trees), self.seeds(data, rival, trees))

    def winner(self, data: str, trees: int) -> str | None:
        """Return the method with the best mean, if it is beyond two errors of the paired difference from the second."""
        ranked = sorted(
            (m for m in self.methods if self.seeds(data, m, trees)),
            key=lambda m: self.mean(data, m, trees).value,
            reverse=True,
        )
        if len(ranked) > 1 and self.lead(data, ranked[0], ranked[1], trees).verdict == "ahead":
            return ranked[0]
        return None

    def near_top(self, data: str, method: str) -> int | None:
        """Return the fewest trees whose mean is within `NEAR` of the best mean of the curve."""
        means = {trees: self.mean(data, method, trees).value for trees in self.trees if self.seeds(data, method, trees)}
        return min((trees for trees, value in means.items() if value >= max(means.values()) - NEAR), default=None)

    def title(self, data: str) -> str:
        """Return the set, with the metric where it is not accuracy, and how many seeds it has."""
        n = max(len(seeds) for (name, *_), seeds in self.values.items() if name == data)
        metric = "" if self.metric[data] == "accuracy" else f", {self.metric[data]}"
        return f"{data}{metric} ({n})"


def means_table(curves: Curves, trees: int) -> list[str]:
    """Return a table of means, sets by methods."""
    lines = [f"| {trees} trees | " + " | ".join(curves.methods) + " |", "|---" * (1 + len(curves.methods)) + "|"]
    for data in curves.data:
        winner, cells = curves.winner(data, trees), []
        for method in curves.methods:
            mean = curves.mean(data, method, trees)
            text = f"{mean.value:.3f}" + (f" ± {mean.error:.3f}" if mean.n > 1 else "") if mean.n else ""
            cells.append(f"**{text}**" if method == winner else text)
        lines.append(f"| {curves.title(data)} | " + " | ".join(cells) + " |")
    return lines


def leads_table(curves: Curves, trees: int) -> list[str]:
    """Return a table of the paired leads of every GRBB over the baselines."""
    pairs = [
        (method, rival)
        for rival in BASELINES
        for method in curves.methods
        if method not in BASELINES and rival in curves.methods
    ]
    if not pairs:
        return []
    names = [f"{method.removeprefix('GRBB ').strip('()')} over {rival}" for method, rival in pairs]
    lines = [f"| {trees} trees | " + " | ".join(names) + " |", "|---" * (1 + len(names)) + "|"]
    for data in curves.data:
        leads = [curves.lead(data, *pair, trees) for pair in pairs]
        cells = [
            {"ahead": f"**{x}**", "behind": f"*{x}* (!)", "level": str(x) if x.n > 1 else ""}[x.verdict] for x in leads
        ]
        lines.append(f"| {curves.title(data)} | " + " | ".join(cells) + " |")
    return lines


def claims_table(curves: Curves) -> list[str]:
    """Return a table of the sets on which every GRBB is ahead of, level with and behind each baseline."""
    shown = [trees for trees in SHOWN_TREES if trees in curves.trees]
    rivals = [rival for rival in BASELINES if rival in curves.methods]
    names = [f"over {rival}, {trees} trees" for rival in rivals for trees in shown]
    lines = ["| sets ahead / level / behind | " + " | ".join(names) + " |", "|---" * (1 + len(names)) + "|"]
    for method in (method for method in curves.methods if method not in BASELINES):
        cells = []
        for rival, trees in ((rival, trees) for rival in rivals for trees in shown):
            leads = [curves.lead(data, method, rival, trees) for data in curves.data]
            counts = Counter(lead.verdict for lead in leads if lead.n)
            cells.append(f"{counts['ahead']} / {counts['level']} / {counts['behind']}")
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return lines


def near_top_table(curves: Curves) -> list[str]:
    """Return a table of the trees that each method needs to be near the top of its own curve."""
    lines = ["| | " + " | ".join(curves.methods) + " |", "|---" * (1 + len(curves.methods)) + "|"]
    for data in curves.data:
        found = [curves.near_top(data, method) for method in curves.methods]
        lines.append(f"| {curves.title(data)} | " + " | ".join("" if n is None else str(n) for n in found) + " |")
    seconds = [np.median([*curves.seconds[method].values()]) for method in curves.methods]
    lines.append("| seconds of search and training, median | " + " | ".join(f"{s:.1f}" for s in seconds) + " |")
    return lines


def markdown(curves: Curves) -> str:
    """Return the tables."""
    versions = "; ".join(f"{version} ({n} rows)" for version, n in curves.versions.most_common())
    lines = [
        "Means ± one standard error; in brackets after a set: seeds. Bold: the best of its row, where its paired "
        f"difference from the second is beyond two standard errors. {versions}.",
        "",
    ]
    for trees in (trees for trees in SHOWN_TREES if trees in curves.trees):
        lines += [*means_table(curves, trees), ""]
    lines += [
        f"Paired differences from the baselines with {curves.trees[-1]} trees. Bold: ahead by more than two standard "
        "errors; italic with (!): behind by more than two.",
        "",
        *leads_table(curves, curves.trees[-1]),
        "",
        "The same, counted over the sets:",
        "",
        *claims_table(curves),
        "",
    ]
    lines += [
        f"The fewest trees whose mean is within {NEAR:g} of the best mean of the same curve:",
        "",
        *near_top_table(curves),
        "",
    ]
    return "\n".join(lines)


def draw(curves: Curves, path: Path) -> None:
    """Draw a panel for each set: mean against trees, with a band of one standard error."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    columns = min(3, len(curves.data))
    rows = -(-len(curves.data) // columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(1 + 3.7 * columns, 0.9 + 3 * rows), layout="constrained", squeeze=False, sharex=True
    )
    for ax, data in zip(axes.flat, curves.data, strict=False):
        for method in curves.methods:
            color, line = STYLES.get(method, ("#000000", ":"))
            trees = [k for k in curves.trees if curves.seeds(data, method, k)]
            means = [curves.mean(data, method, k) for k in trees]
            value, error = np.array([(m.value, m.error) for m in means]).reshape(-1, 2).T
            ax.plot(trees, value, color=color, linestyle=line, lw=1.8, label=method)
            ax.fill_between(trees, value - error, value + error, color=color, alpha=0.13, lw=0)
        ax.set(xscale="log", title=curves.title(data), ylabel=curves.metric[data])
        marks = [k for k in (1, 3, 10, 30, 100, 200) if k in curves.trees]
        ax.set_xticks(marks, [str(k) for k in marks])
        ax.minorticks_off()
        ax.grid(alpha=0.3)
    for ax in axes.flat[len(curves.data) :]:
        ax.set_visible(False)
    for ax in axes[-1]:
        ax.set_xlabel("trees")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2 * columns, fontsize=9)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def write(rows: list[dict[str, str]], folder: Path) -> str:
    """Write ``six.md`` and ``six.png``, and return the first."""
    curves = Curves(rows)
    (folder / "six.md").write_text(text := markdown(curves))
    draw(curves, folder / "six.png")
    return text
