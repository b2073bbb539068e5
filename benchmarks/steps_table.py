"""What each step from pseudo-labels on the plain graph to the default adds, from the CSV of the rivals alone."""

from __future__ import annotations

from collections import Counter

from benchmarks.paired import difference, mean_of
from benchmarks.study_report import WORDS, Setting, Study

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
        cells = [_cell(study, setting, method, before) for setting in columns]
        lines.append(f"| {'+ ' if before else ''}{words} | " + " | ".join(cells) + " |")
        before = method
    return "\n".join(lines) + "\n"


def _complete(study: Study, setting: Setting) -> list[str]:
    return [data for data in study.data if all(study.values[setting, step, data] for step in STEPS)]


def _cell(study: Study, setting: Setting, method: str, before: str | None) -> str:
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
