"""Tables and picture of the rivals question, from the CSV alone."""

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
