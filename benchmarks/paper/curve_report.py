"""Tables and pictures of cost/accuracy curves, from the CSV alone."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.paired import Mean, difference, mean_of

OURS = ("GRBB (default)", "GRBB (paper)")
#: The paper's comparisons: who is ahead of whom, it says, or which are close.
PAIRS = (
    ("GRBB (paper)", "Greedy Miser"),
    ("GRBB (paper)", "LapLRL1"),
    ("GRBB (default)", "Greedy Miser"),
    ("GRBB (default)", "LapLRL1"),
    ("GRBB (default)", "GRBB (paper)"),
    ("LRL1", "GBRT"),
    ("LRL1", "Greedy Miser"),
    ("LapLRL1", "LRL1"),
    ("Greedy Miser", "GBRT"),
    ("Greedy Miser", "CEGB"),
    ("Early-exit", "GBRT"),
)
STYLES = {
    "LRL1": ("#a6a6a6", "v"),
    "LapLRL1": ("#5f5f5f", "^"),
    "GBRT": ("#9ecae1", "."),
    "Early-exit": ("#3182bd", "x"),
    "Greedy Miser": ("#31a354", "s"),
    "CEGB": ("#a1d99b", "D"),
    "LapGBRT": ("#e8a33d", "P"),
    "GRBB (paper)": ("#8856a7", "o"),
    "GRBB (default)": ("#d1495b", "o"),
}


class Measured(NamedTuple):
    """A point of one run. Of points that cost the same, the one with the larger effort counts as the dearer."""

    cost: float
    effort: float
    value: float
    settings: str


def effort(settings: str) -> float:
    """Return a number that grows with trees, threshold, share kept and budget, and falls with mu and penalty.

    Examples
    --------
    >>> effort('{"trees": 200, "first": 50}'), effort('{"trees": 200, "mu": 4.0}'), effort('{"penalty": 0.1}')
    (50.0, -4.0, -0.1)
    """
    point = json.loads(settings)
    for name, sign in (("first", 1), ("threshold", 1), ("keep", 1), ("budget", 1), ("mu", -1), ("penalty", -1)):
        if name in point:
            return float(sign * point[name])
    return 0.0


def at_budget(points: Iterable[Measured], budget: float, nothing: float) -> float:
    """Return the value of the dearest point that the budget allows, `nothing` where it allows none.

    No test label takes part in this choice.

    Examples
    --------
    >>> curve = [Measured(2, 10, 0.7, ""), Measured(5, 20, 0.9, ""), Measured(5, 30, 0.8, "")]
    >>> at_budget(curve, 1, 0.5), at_budget(curve, 4, 0.5), at_budget(curve, 5, 0.5)
    (0.5, 0.7, 0.8)
    """
    allowed = [point for point in points if point.cost <= budget + 1e-9]
    # By cost and effort alone: a maximum over whole points would let the test value decide between equals.
    return max(allowed, key=lambda point: (point.cost, point.effort)).value if allowed else nothing


class Curves:
    """The curves of one set, number of labels and metric: by method and seed, the points.

    Parameters
    ----------
    rows : iterable of dict
        Rows of the CSV.
    nothing : str
        The method that asks for no feature.
    """

    def __init__(self, rows: Iterable[Mapping[str, str]], nothing: str) -> None:
        self.points: dict[str, dict[int, list[Measured]]] = defaultdict(lambda: defaultdict(list))
        self.everything = 0.0
        for row in rows:
            point = Measured(float(row["cost"]), effort(row["settings"]), float(row["value"]), row["settings"])
            self.points[row["method"]][int(row["seed"])].append(point)
            if row["method"] == nothing:
                self.everything = float(json.loads(row["details"])["everything"])
        self.nothing = {seed: points[0].value for seed, points in self.points.pop(nothing, {}).items()}
        self.methods = [method for method in STYLES if method in self.points]
        self.seeds = sorted({seed for runs in self.points.values() for seed in runs})

    @property
    def n_runs(self) -> str:
        """How many runs there are, in words."""
        return f"{len(self.seeds)} run{'s' if len(self.seeds) > 1 else ''}"

    def at(self, method: str, budget: float) -> dict[int, float]:
        """Return the value of each run under a budget."""
        return {
            seed: at_budget(points, budget, self.nothing.get(seed, float("nan")))
            for seed, points in self.points[method].items()
        }

    def lead(self, ours: str, theirs: str, budgets: Iterable[float]) -> Mean:
        """Return ours minus theirs, averaged over budgets, paired by run."""
        budgets = list(budgets)
        means = []
        for method in (ours, theirs):
            values = [self.at(method, budget) for budget in budgets]
            means.append({seed: float(np.mean([value[seed] for value in values])) for seed in values[0]})
        return difference(means[0], means[1])

    def mean_curve(self, method: str) -> tuple[list[float], list[float]]:
        """Return mean cost and mean value over the runs, for each setting in turn, as the paper draws them."""
        by_setting: dict[str, list[Measured]] = defaultdict(list)
        for points in self.points[method].values():
            for point in points:
                by_setting[point.settings].append(point)
        order = sorted(by_setting, key=effort)
        costs = [float(np.mean([point.cost for point in by_setting[setting]])) for setting in order]
        values = [float(np.mean([point.value for point in by_setting[setting]])) for setting in order]
        return costs, values


def curves_of(rows: Iterable[Mapping[str, str]], nothing: str) -> dict[tuple[str, int, str], Curves]:
    """Return the curves by set, number of labels and metric."""
    parts: dict[tuple[str, int, str], list[Mapping[str, str]]] = defaultdict(list)
    for row in rows:
        parts[row["data"], int(row["n_labels"]), row["metric"]].append(row)
    return {part: Curves(of_part, nothing) for part, of_part in parts.items()}


def budget_table(curves: Curves, budgets: Iterable[float]) -> list[str]:
    """Return methods by budgets: mean ± standard error, bold where it is two errors ahead of every other method."""
    budgets = list(budgets)
    lines = ["| cost at most | " + " | ".join(f"{budget:g}" for budget in budgets) + " |"]
    lines.append("|---" * (1 + len(budgets)) + "|")
    values = {(method, budget): curves.at(method, budget) for method in curves.methods for budget in budgets}
    for method in curves.methods:
        cells = []
        for budget in budgets:
            mean = mean_of(values[method, budget].values())
            others = [other for other in curves.methods if other != method]
            leads = [difference(values[method, budget], values[other, budget]) for other in others]
            text = f"{mean.value:.3f} ± {mean.error:.3f}" if mean.n > 1 else f"{mean.value:.3f}"
            wins = bool(leads) and all(lead.verdict == "ahead" for lead in leads)
            cells.append(f"**{text}**" if wins else text)
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    nothing = mean_of(curves.nothing.values())
    if nothing.n:
        lines.append(f"| no features | {nothing.value:.3f} |" + " |" * (len(budgets) - 1))
    return lines


def lead_table(curves: Curves, budgets: Iterable[float]) -> list[str]:
    """Return the leads of GRBB over every other method, averaged over the budgets."""
    budgets = list(budgets)
    ours = [method for method in OURS if method in curves.methods]
    if not ours:
        return []
    lines = ["| mean lead over | " + " | ".join(ours) + " |", "|---" * (1 + len(ours)) + "|"]
    for other in curves.methods:
        cells = ["" if method == other else _lead(curves.lead(method, other, budgets)) for method in ours]
        if any(cells):
            lines.append(f"| {other} | " + " | ".join(cells) + " |")
    return lines


def pairs_table(parts: Mapping[tuple[str, int], Curves], budgets: Mapping[tuple[str, int], list[float]]) -> list[str]:
    """Return the paper's comparisons, one method minus another, by set and number of labels."""
    heads = [f"{data}, {n_labels}" for data, n_labels in parts]
    lines = ["| first minus second | " + " | ".join(heads) + " |", "|---" * (1 + len(heads)) + "|"]
    for first, second in PAIRS:
        cells = [
            _lead(curves.lead(first, second, budgets[part])) if {first, second} <= set(curves.methods) else ""
            for part, curves in parts.items()
        ]
        if any(cells):
            lines.append(f"| {first} - {second} | " + " | ".join(cells) + " |")
    return lines


def _lead(lead: Mean) -> str:
    if lead.n == 0:
        return ""
    text = str(lead) if lead.n > 1 else f"{lead.value:+.3f}"
    return {"ahead": f"**{text}**", "behind": f"*{text}* (!)", "level": text}[lead.verdict]


def reach_table(parts: Mapping[tuple[str, int], Curves]) -> list[str]:
    """Return what the ends of each method's grid cost on average: whether it spans from nothing to everything."""
    names = list(dict.fromkeys(method for curves in parts.values() for method in curves.methods))
    heads = [f"{data}, {n_labels}" for data, n_labels in parts]
    lines = ["| | " + " | ".join(heads) + " |", "|---" * (1 + len(heads)) + "|"]
    lines.append("| all features | " + " | ".join(f"{curves.everything:g}" for curves in parts.values()) + " |")
    for method in names:
        cells = []
        for curves in parts.values():
            costs = curves.mean_curve(method)[0] if method in curves.methods else []
            cells.append(f"{min(costs):.1f} to {max(costs):.1f}" if costs else "")
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return lines


def markdown(
    rows: list[dict[str, str]],
    budgets: Mapping[str, tuple[float, ...]],
    metrics: Iterable[str],
    what: str,
    nothing: str,
) -> str:
    """Return all tables."""
    found = curves_of(rows, nothing)
    versions = Counter(
        f"grbb_ext {row['grbb_ext']}, xgboost {row['xgboost']}, lightgbm {row['lightgbm']}" for row in rows
    )
    lines = [
        "A cell is the mean over the runs of the value of the dearest point that costs no more, ± one standard error; "
        "a run without such a point counts as the model without features. Bold: ahead of every other method by more "
        "than two standard errors of the difference, paired by run. Leads are averaged over the costs of the table "
        "first; bold: ahead, italic with (!): behind by more than two standard errors. With five runs an error is "
        "itself known only to about a third, with ten to a quarter, so single bold cells mean little. "
        + "; ".join(f"{version} ({n} rows)" for version, n in versions.most_common())
        + ".",
        "",
    ]
    for metric in metrics:
        parts = {(data, n): curves for (data, n, of), curves in sorted(found.items()) if of == metric}
        lines += [f"## Summary: {metric}", "", "Leads at low cost, over the cheaper half of the costs:", ""]
        lines += [*pairs_table(parts, {part: cheaper_half(budgets[part[0]]) for part in parts}), ""]
        lines += ["Leads over all costs:", ""]
        lines += [*pairs_table(parts, {part: list(budgets[part[0]]) for part in parts}), ""]
        for (data, n_labels), curves in parts.items():
            lines += [f"## {data}, {n_labels} {what}: {metric} ({curves.n_runs})", ""]
            lines += [*budget_table(curves, budgets[data]), "", *lead_table(curves, budgets[data]), ""]
    first = next(iter(metrics))
    parts = {(data, n): curves for (data, n, of), curves in sorted(found.items()) if of == first}
    lines += ["## What the grids buy", "", "Mean cost of the cheapest and of the dearest point:", ""]
    lines += [*reach_table(parts), ""]
    return "\n".join(lines)


def cheaper_half(budgets: Iterable[float]) -> list[float]:
    """Return the lower half of some costs, without the middle one.

    Examples
    --------
    >>> cheaper_half([5.0, 1.0, 9.0])
    [1.0]
    """
    ordered = sorted(budgets)
    return ordered[: len(ordered) // 2]


def draw(found: Mapping[tuple[str, int, str], Curves], metric: str, what: str, path: Path) -> None:
    """Draw a panel for each set and number of labels: mean value against mean cost, a line for each method."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D
    from matplotlib.ticker import MaxNLocator

    parts = {(data, n): curves for (data, n, of), curves in sorted(found.items()) if of == metric}
    columns = min(2, len(parts))
    n_rows = -(-len(parts) // columns)
    figure, axes = plt.subplots(
        n_rows, columns, figsize=(5.2 * columns, 3.9 * n_rows + 0.6), layout="constrained", squeeze=False
    )
    for ax, ((data, n_labels), curves) in zip(axes.flat, parts.items(), strict=False):
        for method in curves.methods:
            color, marker = STYLES[method]
            costs, values = curves.mean_curve(method)
            width = 2.0 if method in OURS else 1.1
            ax.plot(costs, values, color=color, marker=marker, ms=4, lw=width, zorder=3 if method in OURS else 2)
        ax.set_title(f"{data}: {n_labels} {what}, {curves.n_runs}", fontsize=10)
        ax.set_xscale("function", functions=_root())
        ax.xaxis.set_major_locator(MaxNLocator(5))
        ax.set_xlim(0, curves.everything * 1.02)
        ax.set_xlabel("mean cost of a test row")
        ax.set_ylabel(metric)
        ax.grid(alpha=0.3)
    for ax in list(axes.flat)[len(parts) :]:
        ax.set_visible(False)
    known = [method for method in STYLES if any(method in curves.methods for curves in parts.values())]
    handles = [Line2D([], [], color=STYLES[m][0], marker=STYLES[m][1], ms=4, label=m) for m in known]
    figure.legend(handles=handles, loc="outside lower center", ncols=3 if columns == 1 else 5, fontsize=9)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _root() -> tuple[Callable[..., object], Callable[..., object]]:
    """Return the scale of the cost axis, which shows cheap models as well as free ones: the square root."""
    return lambda cost: np.sqrt(np.maximum(cost, 0)), np.square


def write(
    rows: list[dict[str, str]],
    path: Path,
    budgets: Mapping[str, tuple[float, ...]],
    metrics: tuple[str, ...],
    what: str,
    nothing: str,
) -> str:
    """Write tables and picture next to the CSV, and return the tables."""
    text = markdown(rows, budgets, metrics, what, nothing)
    path.with_suffix(".md").write_text(text)
    draw(curves_of(rows, nothing), metrics[0], what, path.with_suffix(".png"))
    return text
