"""The table of the README: method by data set, from the CSV alone.

The rivals question writes it to ``docs/results/rivals_readme.md``; a test keeps the README equal to that file.
"""

from __future__ import annotations

from benchmarks.paired import difference, mean_of
from benchmarks.study_report import Setting, Study

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


def readme_tables(study: Study) -> str:
    """Return means with standard errors, and the winner of a set in bold if it is beyond two errors of every other.

    Sets that lack a method are left out.

    Examples
    --------
    >>> same = {"n_labels": "20", "noise": "none", "trees": "50", "metric": "accuracy", "seconds": "1"}
    >>> same |= {"grbb_ext": "1", "xgboost": "2"}
    >>> rows = [
    ...     same | {"data": "a", "method": method, "seed": str(seed), "value": str(value + seed / 100)}
    ...     for seed in range(5) for value, method in enumerate(ROWS)
    ... ]
    >>> print(readme_tables(Study(rows)).splitlines()[-1])
    | **grbb_ext default** | **6.020** (.007) |
    """
    values = study.values
    complete = [data for data in study.data if all(len(values[SETTING, method, data]) > 1 for method in ROWS)]
    lines: list[str] = []
    for start in range(0, len(complete), SETS_PER_TABLE):
        sets = complete[start : start + SETS_PER_TABLE]
        lines += ["", "| | " + " | ".join(sets) + " |", "|---" * (1 + len(sets)) + "|"]
        for method, words in ROWS.items():
            lines.append(f"| {words} | " + " | ".join(_cell(study, method, data) for data in sets) + " |")
    return "\n".join(lines[1:]) + "\n"


def _cell(study: Study, method: str, data: str) -> str:
    of = {other: study.values[SETTING, other, data] for other in ROWS}
    mean = mean_of(of[method].values())
    wins = all(difference(of[method], of[other]).verdict == "ahead" for other in ROWS if other != method)
    value = f"{mean.value:.3f}".lstrip("0")
    return (f"**{value}**" if wins else value) + " (" + f"{mean.error:.3f}".lstrip("0") + ")"
