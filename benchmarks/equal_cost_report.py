"""Tables and picture of `equal_cost`, from the CSV alone: paired leads at every budget."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.paired import Mean, difference, mean_of

DEFAULTS = ("GRBB, XGBoost", "GRBB, LightGBM")
OURS = (*DEFAULTS, "GRBB, XGBoost, depth 3", "GRBB, LightGBM, 8 leaves")
#: What is measured, and whether more is better.
SIGNS = {"accuracy": 1.0, "auc": 1.0, "log_loss": -1.0}
TITLES = {"accuracy": "accuracy", "auc": "AUC", "log_loss": "log-loss"}
COLORS = {
    "GRBB, XGBoost": "#d1495b",
    "GRBB, LightGBM": "#8f2d56",
    "GRBB, XGBoost, depth 3": "#f08a9b",
    "GRBB, LightGBM, 8 leaves": "#c77dab",
    "LR, l1 path": "#5f5f5f",
    "Greedy Miser, XGBoost": "#31a354",
    "Greedy Miser, LightGBM": "#a1d99b",
    "pseudo-labels, XGBoost": "#3182bd",
    "pseudo-labels, LightGBM": "#9ecae1",
    "LabelSpreading, XGBoost": "#e8a33d",
}


class Cell(NamedTuple):
    """A set under a budget."""

    data: str
    budget: float


class Trials:
    """The trials of one number of labels.

    Parameters
    ----------
    rows : iterable of dict
        Rows of the CSV.
    """

    def __init__(self, rows: Iterable[Mapping[str, str]]) -> None:
        self._values: dict[tuple[Cell, str, str], dict[int, float]] = defaultdict(dict)
        names, cells = dict.fromkeys(COLORS), set()
        for row in rows:
            cell = Cell(row["data"], float(row["budget"]))
            cells.add(cell)
            names.setdefault(row["method"])
            for what in (*SIGNS, "cost"):
                self._values[cell, row["method"], what][int(row["seed"])] = float(row[what])
        self.cells = sorted(cells)
        self.methods = [name for name in names if any((cell, name, "cost") in self._values for cell in self.cells)]
        self.ours = [method for method in OURS if method in self.methods]
        self.rivals = [method for method in self.methods if method not in OURS]

    def mean(self, cell: Cell, method: str, what: str) -> Mean:
        """Return the mean over the trials."""
        return mean_of(self._values[cell, method, what].values())

    def lead(self, cell: Cell, ours: str, theirs: str, what: str) -> Mean:
        """Return by how much ours is better, paired by seed."""
        values = [
            {seed: SIGNS[what] * value for seed, value in self._values[cell, method, what].items()}
            for method in (ours, theirs)
        ]
        return difference(*values)

    def overall(self, ours: str, theirs: str, what: str) -> Mean:
        """Return the lead averaged over sets and budgets first, so that its error is that between seeds."""
        means: list[dict[int, float]] = []
        for method in (ours, theirs):
            values = [self._values[cell, method, what] for cell in self.cells]
            seeds = set.intersection(*(set(of_cell) for of_cell in values))
            means.append({seed: SIGNS[what] * float(np.mean([value[seed] for value in values])) for seed in seeds})
        return difference(*means)


def summary(trials: Trials) -> list[str]:
    """Return for each rival the mean lead over all sets and budgets, and how many are ahead, level and behind."""
    lines = []
    for ours in trials.ours:
        titles = " | ".join(f"{title} | " for title in TITLES.values())
        lines += [f"| *{ours}* over | {titles} |", "|---" * (1 + 2 * len(SIGNS)) + "|"]
        plain = [method for method in trials.ours if ours.startswith(f"{method}, ")]
        for rival in [*plain, *trials.rivals]:
            parts = []
            for what in SIGNS:
                found = Counter(trials.lead(cell, ours, rival, what).verdict for cell in trials.cells)
                tally = f"{found['ahead']} / {found['level']} / {found['behind']}"
                parts.append(f"{_text(trials.overall(ours, rival, what))} | {tally}")
            lines.append(f"| {rival} | " + " | ".join(parts) + " |")
        lines.append("")
    return lines


def leads_table(trials: Trials, ours: str, what: str) -> list[str]:
    """Return a line for each set and budget: our mean, and the lead over each rival."""
    lines = [f"| {TITLES[what]} | *{ours}* | " + " | ".join(trials.rivals) + " |"]
    lines.append("|---" * (2 + len(trials.rivals)) + "|")
    for cell in trials.cells:
        own, spent = trials.mean(cell, ours, what), trials.mean(cell, ours, "cost")
        parts = [f"{own.value:.3f} ({spent.value:.1f})"]
        for rival in trials.rivals:
            lead = trials.lead(cell, ours, rival, what)
            parts.append(_text(lead) if lead.n > 1 else "")
        lines.append(f"| {cell.data}, {cell.budget:g} | " + " | ".join(parts) + " |")
    return [*lines, ""]


def _text(lead: Mean) -> str:
    return {"ahead": f"**{lead}**", "behind": f"*{lead}* (!)", "level": str(lead)}[lead.verdict]


def markdown(rows: Sequence[Mapping[str, str]]) -> str:
    """Return all tables."""
    lines = []
    for n_labels in sorted({int(row["n_labels"]) for row in rows}):
        trials = Trials(row for row in rows if int(row["n_labels"]) == n_labels)
        seeds = {row["seed"] for row in rows if int(row["n_labels"]) == n_labels}
        lines += [
            f"### {n_labels} labels",
            "",
            f"Mean lead over the {len(trials.cells)} pairs of set and budget ({len(seeds)} seeds; positive is better, "
            "also for log-loss), ± one standard error between seeds, and in how many pairs it is ahead / level / "
            "behind by more than two standard errors:",
            "",
            *summary(trials),
            "By set and budget: the mean, in brackets what was spent, and the lead over each rival under the same "
            "budget, paired by seed, ± one standard error. Bold: ahead, italic with (!): behind by more than two.",
            "",
        ]
        for ours in [method for method in trials.ours if method in DEFAULTS]:
            for what in SIGNS:
                lines += leads_table(trials, ours, what)
    return "\n".join(lines)


def draw(trials: Trials, path: Path, what: str = "auc") -> None:
    """Draw a panel for each set: the mean against the budget, a line for each method."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter, ScalarFormatter

    names = list(dict.fromkeys(cell.data for cell in trials.cells))
    columns = min(2, len(names))
    n_rows = -(-len(names) // columns)
    figure, axes = plt.subplots(
        n_rows, columns, figsize=(5.2 * columns, 3.2 * n_rows + 0.8), layout="constrained", squeeze=False
    )
    lines = []
    for ax, name in zip(axes.flat, names, strict=False):
        cells = [cell for cell in trials.cells if cell.data == name]
        budgets = [cell.budget for cell in cells]
        lines = [
            ax.plot(
                budgets,
                [trials.mean(cell, method, what).value for cell in cells],
                marker="o",
                ms=4,
                lw=2.2 if method in OURS else 1.2,
                color=COLORS.get(method),
                label=method,
            )[0]
            for method in trials.methods
        ]
        ax.set(title=name, xlabel="budget", ylabel=TITLES[what], xscale="log")
        ax.set_xticks(budgets)
        ax.xaxis.set_major_formatter(ScalarFormatter())
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.grid(alpha=0.3)
    for ax in list(axes.flat)[len(names) :]:
        ax.set_visible(False)
    figure.legend(handles=lines, loc="outside lower center", ncols=2 * columns, fontsize=9)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def report(rows: Sequence[Mapping[str, str]], path: Path) -> str:
    """Write tables, and the picture of the fewest labels, next to the CSV, and return the tables."""
    text = markdown(rows)
    path.with_suffix(".md").write_text(text)
    fewest = min(int(row["n_labels"]) for row in rows)
    draw(Trials(row for row in rows if int(row["n_labels"]) == fewest), path.with_suffix(".png"))
    return text
