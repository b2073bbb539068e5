"""Tables and picture of the rivals question, of the README, and of the steps to the default, from the CSV alone.

The main tables are written to ``docs/results/rivals_readme.md``, which ``docs/graph_results.md`` includes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import NamedTuple

from benchmarks.paired import Mean, difference, mean_of

#: Seeds on which variants may be chosen, and seeds that confirm the choice.
TUNING = range(10)
MAIN_RIVALS = ("hard", "soft", "hard, PCA graph", "self-training", "labeled only", "spreading, booster")
WORDS = {"none": "clean columns", "gaussian": "Gaussian irrelevant columns", "permuted": "permuted irrelevant columns"}


class Setting(NamedTuple):
    """What is held fixed in a table."""

    n_labels: int
    noise: str
    trees: int

    def __str__(self) -> str:
        return f"{self.n_labels} labels, {WORDS[self.noise]}, {self.trees} trees"


def _order(setting: Setting) -> tuple[bool, int, int, int]:
    """Put 20 labels first, then clean columns, then 50 trees."""
    return setting.n_labels != 20, setting.n_labels, list(WORDS).index(setting.noise), -setting.trees


class Study:
    """The accuracies of a CSV: by setting, method and data set, a mapping from seed to accuracy.

    Parameters
    ----------
    rows : iterable of dict
        Rows of the CSV.
    reference : str or None, default=None
        The method that the others are compared with; None is "default" if it has run, else "knn smooth".
    """

    def __init__(self, rows: Iterable[dict[str, str]], reference: str | None = None) -> None:
        self.values: dict[tuple[Setting, str, str], dict[int, float]] = defaultdict(dict)
        self.seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
        self.versions: Counter[str] = Counter()
        for row in rows:
            if row["metric"] != "accuracy":
                continue
            setting = Setting(int(row["n_labels"]), row["noise"], int(row["trees"]))
            self.values[setting, row["method"], row["data"]][int(row["seed"])] = float(row["value"])
            self.seconds[row["method"], row["data"]].append(float(row["seconds"]))
            self.versions[f"grbb_ext {row['grbb_ext']}, xgboost {row['xgboost']}"] += 1
        self.methods = list(dict.fromkeys(method for _, method, _ in self.values))
        self.data = list(dict.fromkeys(data for _, _, data in self.values))
        self.settings = sorted({setting for setting, _, _ in self.values}, key=_order)
        self.reference = reference or ("default" if "default" in self.methods else "knn smooth")

    def lead(self, setting: Setting, rival: str, data: str, seeds: Iterable[int] | None = None) -> Mean:
        """Return the reference minus a rival on a data set."""
        return difference(self.values[setting, self.reference, data], self.values[setting, rival, data], seeds)

    def score(self, setting: Setting, rival: str, seeds: Iterable[int] | None = None) -> tuple[Counter[str], Mean]:
        """Return on how many sets the reference is ahead, level and behind, and its mean lead over the sets."""
        chosen = None if seeds is None else set(seeds)
        leads = [lead for data in self.data if (lead := self.lead(setting, rival, data, chosen)).n > 1]
        return Counter(lead.verdict for lead in leads), mean_of(lead.value for lead in leads)

    @property
    def rivals(self) -> list[str]:
        """All methods but the reference."""
        return [method for method in self.methods if method != self.reference]

    @property
    def confirmation(self) -> set[int]:
        """The seeds that no choice was made on."""
        return {seed for seeds in self.values.values() for seed in seeds} - set(TUNING)


def score_text(study: Study, setting: Setting, rival: str, seeds: Iterable[int] | None = None) -> str:
    """Return on how many sets the reference is ahead / level / behind, and its mean lead; nothing without trials."""
    counts, mean = study.score(setting, rival, seeds)
    verdicts = " / ".join(str(counts[verdict]) for verdict in ("ahead", "level", "behind"))
    return f"{verdicts}, {mean.value:+.3f}" if mean.n else ""


def summary_table(study: Study, setting: Setting) -> list[str]:
    """Return a table with a row for each rival: sets ahead, level and behind, and mean lead, on both halves."""
    halves = {"all seeds": None, "tuning half": set(TUNING), "confirmation half": study.confirmation}
    lines = ["| " + study.reference + " against | " + " | ".join(halves) + " |", "|---" * (1 + len(halves)) + "|"]
    for rival in study.rivals:
        cells = [score_text(study, setting, rival, seeds) for seeds in halves.values()]
        if any(cells):
            lines.append(f"| {rival} | " + " | ".join(cells) + " |")
    return lines


def detail_table(study: Study, setting: Setting, seeds: Iterable[int] | None = None) -> list[str]:
    """Return a table with a row for each set: the accuracy of the reference, and its lead over each rival."""
    chosen = None if seeds is None else set(seeds)
    rivals = [rival for rival in study.rivals if any(study.lead(setting, rival, data).n for data in study.data)]
    lines = [f"| | {study.reference} | " + " | ".join(rivals) + " |", "|---" * (2 + len(rivals)) + "|"]
    for data in study.data:
        own = study.values[setting, study.reference, data]
        mean = mean_of(value for seed, value in own.items() if chosen is None or seed in chosen)
        if mean.n == 0:
            continue
        cells = [f"{mean.value:.3f} ± {mean.error:.3f}"]
        for rival in rivals:
            lead = study.lead(setting, rival, data, chosen)
            text = str(lead) if lead.n > 1 else ""
            cells.append({"ahead": f"**{text}**", "behind": f"*{text}* (!)", "level": text}[lead.verdict])
        lines.append(f"| {data} ({mean.n}) | " + " | ".join(cells) + " |")
    return lines


def means_table(study: Study, setting: Setting) -> list[str]:
    """Return a table of mean accuracies, methods by sets."""
    lines = ["| | " + " | ".join(study.data) + " |", "|---" * (1 + len(study.data)) + "|"]
    for method in study.methods:
        means = [mean_of(study.values[setting, method, data].values()) for data in study.data]
        if any(mean.n for mean in means):
            cells = [f"{mean.value:.3f} ± {mean.error:.3f}" if mean.n else "" for mean in means]
            lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return lines


def markdown(study: Study, everything: bool) -> str:
    """Return the tables: those of 20 labels, or all."""
    versions = "; ".join(f"{version} ({n} rows)" for version, n in study.versions.most_common())
    lines = [
        f"Test accuracy of *{study.reference}* minus that of each rival, paired by seed, ± one standard error. Bold: "
        "ahead by more than two standard errors; italic with (!): behind by more than two. In brackets after a set: "
        f"seeds. Seeds 0-{TUNING[-1]} are the tuning half. {versions}.",
        "",
    ]
    for setting in study.settings:
        if not everything and setting.n_labels != 20:
            continue
        lines += [f"## {setting}", "", "Sets ahead / level / behind, and mean lead over the sets:", ""]
        lines += [*summary_table(study, setting), ""]
        if not everything:
            lines += [*detail_table(study, setting), ""]
            continue
        lines += ["All seeds:", "", *detail_table(study, setting), ""]
        lines += ["Tuning half:", "", *detail_table(study, setting, TUNING), ""]
        lines += ["Confirmation half:", "", *detail_table(study, setting, study.confirmation), ""]
        lines += ["Mean accuracy:", "", *means_table(study, setting), ""]
    return "\n".join(lines)


def draw(study: Study, path: Path, n_labels: int = 20, trees: int = 50) -> None:
    """Draw the lead of the reference on every set, a panel for each rival and a colour for each kind of columns."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D
    from matplotlib.ticker import MaxNLocator

    rivals = [rival for rival in MAIN_RIVALS if rival in study.methods]
    if not rivals:
        return
    columns = min(3, len(rivals))
    rows = -(-len(rivals) // columns)
    size = (1.2 + 3.4 * columns, 0.9 + rows * (0.6 + 0.27 * len(study.data)))
    figure, axes = plt.subplots(
        rows, columns, figsize=size, sharey=True, sharex="row", layout="constrained", squeeze=False
    )
    styles = {"none": ("#1b6ca8", "o"), "gaussian": ("#d1495b", "s"), "permuted": ("#e8a33d", "^")}
    for ax, rival in zip(axes.flat, rivals, strict=False):
        for (noise, (color, marker)), (i, data) in product(styles.items(), enumerate(study.data)):
            lead = study.lead(Setting(n_labels, noise, trees), rival, data)
            if lead.n > 1:
                y = i + 0.25 * (list(styles).index(noise) - 1)
                ax.errorbar(lead.value, y, xerr=2 * lead.error, color=color, marker=marker, ms=4, lw=1.2)
        ax.axvline(0, color="black", lw=0.8)
        ax.set_title(f"over {rival}", fontsize=10)
        ax.set_yticks(range(len(study.data)), study.data, fontsize=8)
        ax.set_ylim(len(study.data) - 0.5, -0.5)
        ax.grid(axis="x", alpha=0.3)
        ax.xaxis.set_major_locator(MaxNLocator(5))
        for i in range(1, len(study.data), 2):
            ax.axhspan(i - 0.5, i + 0.5, color="black", alpha=0.04, lw=0)
    for ax in list(axes.flat)[len(rivals) :]:
        ax.set_visible(False)
    handles = [
        Line2D([], [], color=color, marker=marker, lw=1.2, ms=4, label=WORDS[noise])
        for noise, (color, marker) in styles.items()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=9)
    figure.suptitle(
        f"Accuracy of {study.reference} minus that of a rival, ± 2 standard errors: {n_labels} labels, {trees} trees",
        fontsize=11,
    )
    figure.savefig(path, dpi=110)
    plt.close(figure)


def write(rows: list[dict[str, str]], folder: Path, name: str = "rivals") -> str:
    """Write ``rivals.md`` (20 labels), ``rivals_all.md`` and ``rivals.png``, and return the first."""
    study = Study(rows)
    text = markdown(study, everything=False)
    (folder / f"{name}.md").write_text(text)
    (folder / f"{name}_all.md").write_text(markdown(study, everything=True))
    draw(study, folder / f"{name}.png")
    return text


SETTING = Setting(20, "none", 50)
#: Methods and what the README calls them; the last is ours.
ROWS = {
    "labeled only": "booster, labelled rows only",
    "self-training": "self-training (scikit-learn)",
    "spreading, booster": "LabelSpreading, then booster",
    "hard": "hard pseudo-labels, kNN graph",
    "hard, PCA graph": "hard pseudo-labels, PCA graph",
    "paper": "the paper's rule",
    "default": "**grbb_ext default**",
}
SETS_PER_TABLE = 8
#: Columns of the table of leads.
LEADS = {
    "20 labels": SETTING,
    "and Gaussian columns": Setting(20, "gaussian", 50),
    "and permuted columns": Setting(20, "permuted", 50),
    "5 labels": Setting(5, "none", 50),
    "100 labels": Setting(100, "none", 50),
}


def readme_tables(study: Study) -> str:
    """Return means with standard errors, and the winner of a set in bold if it is beyond two errors of every other.

    Sets that lack a method are left out. A last table has the leads of the default: sets ahead, level and behind, and
    the mean over sets.

    Examples
    --------
    >>> same = {"n_labels": "20", "noise": "none", "trees": "50", "metric": "accuracy", "seconds": "1"}
    >>> same |= {"grbb_ext": "1", "xgboost": "2"}
    >>> rows = [
    ...     same | {"data": "a", "method": method, "seed": str(seed), "value": str(value + seed / 100)}
    ...     for seed in range(5) for value, method in enumerate(ROWS)
    ... ]
    >>> lines = readme_tables(Study(rows)).splitlines()
    >>> print(lines[8])
    | **grbb_ext default** | **6.020** (.007) |
    >>> print(lines[-1])
    | the paper's rule | 1 / 0 / 0, +1.000 |  |  |  |  |
    """
    values = study.values
    complete = [data for data in study.data if all(len(values[SETTING, method, data]) > 1 for method in ROWS)]
    lines: list[str] = []
    for start in range(0, len(complete), SETS_PER_TABLE):
        sets = complete[start : start + SETS_PER_TABLE]
        lines += ["", "| | " + " | ".join(sets) + " |", "|---" * (1 + len(sets)) + "|"]
        for method, words in ROWS.items():
            lines.append(f"| {words} | " + " | ".join(_cell(study, method, data) for data in sets) + " |")
    return "\n".join([*lines[1:], "", *_leads(study)]) + "\n"


def _leads(study: Study) -> list[str]:
    lines = ["| ahead / level / behind, mean lead | " + " | ".join(LEADS) + " |", "|---" * (1 + len(LEADS)) + "|"]
    for method, words in ROWS.items():
        if method != "default":
            cells = [score_text(study, setting, method).replace("0.", ".") for setting in LEADS.values()]
            lines.append(f"| {words} | " + " | ".join(cells) + " |")
    return lines


def _cell(study: Study, method: str, data: str) -> str:
    of = {other: study.values[SETTING, other, data] for other in ROWS}
    mean = mean_of(of[method].values())
    wins = all(difference(of[method], of[other]).verdict == "ahead" for other in ROWS if other != method)
    value = f"{mean.value:.3f}".lstrip("0")
    return (f"**{value}**" if wins else value) + " (" + f"{mean.error:.3f}".lstrip("0") + ")"


#: A method, and what it adds to the one before.
STEPS = {
    "hard": "hard pseudo-labels, nonlocal operator, plain graph",
    "knn smooth": "smooth operator, sharpened targets",
    "refined distances": "distances of components and ranks",
    "two operators": "neighbours chosen by trees; mean of two operators",
    "refined graph alone": "mean of two affinities instead: one graph",
    "default": "forest, weighed by held-out labels",
}


def steps_table(study: Study, n_labels: int = 20, trees: int = 50) -> str:
    """Return mean accuracies over the sets, a row for each step; sets and seeds that lack a step are left out.

    In brackets: on how many sets a step is ahead of the one before and behind it, by more than two standard errors.

    Examples
    --------
    >>> same = {"n_labels": "20", "noise": "none", "trees": "50", "metric": "accuracy", "seconds": "1"}
    >>> same |= {"grbb_ext": "1", "xgboost": "2"}
    >>> rows = [
    ...     same | {"data": "a", "method": method, "seed": str(seed), "value": str(value / 10)}
    ...     for seed in range(5) for value, method in enumerate(STEPS)
    ... ]
    >>> print(steps_table(Study(rows)).splitlines()[-1])
    | + forest, weighed by held-out labels | .5000 (+1 -0) |
    """
    columns = [
        setting
        for noise in WORDS
        if (setting := Setting(n_labels, noise, trees)) in study.settings and _complete(study, setting)
    ]
    names = [f"{WORDS[setting.noise]}, {len(_complete(study, setting))} sets" for setting in columns]
    lines = ["| | " + " | ".join(names) + " |", "|---" * (1 + len(names)) + "|"]
    before: str | None = None
    for method, words in STEPS.items():
        cells = [_step_cell(study, setting, method, before) for setting in columns]
        lines.append(f"| {'+ ' if before else ''}{words} | " + " | ".join(cells) + " |")
        before = method
    return "\n".join(lines) + "\n"


def _complete(study: Study, setting: Setting) -> list[str]:
    return [data for data in study.data if all(study.values[setting, step, data] for step in STEPS)]


def _step_cell(study: Study, setting: Setting, method: str, before: str | None) -> str:
    sets = _complete(study, setting)
    means = []
    for data in sets:
        seeds = set.intersection(*(set(study.values[setting, step, data]) for step in STEPS))
        means.append(mean_of(study.values[setting, method, data][seed] for seed in seeds).value)
    text = f"{mean_of(means).value:.4f}".lstrip("0")
    if before is None:
        return text
    verdicts = Counter(
        difference(study.values[setting, method, data], study.values[setting, before, data]).verdict for data in sets
    )
    return f"{text} (+{verdicts['ahead']} -{verdicts['behind']})"
