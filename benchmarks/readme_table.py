"""The tables of the README, from the CSV alone: method by data set, and the leads over each rival.

The rivals question writes them to ``docs/results/rivals_readme.md``; a test keeps the README equal to that file.
"""

from __future__ import annotations

from benchmarks.paired import difference, mean_of
from benchmarks.study_report import Setting, Study, score_text

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
