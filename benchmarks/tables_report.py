"""Tables of `tables` and `few_shot`: means, paired leads over every rival, and both halves of the tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.paired import Mean, mean_of

METRICS = ("accuracy", "auc", "average_precision", "log_loss", "brier", "calibration_error")
TITLES = ("accuracy", "AUC", "average precision", "log-loss", "Brier", "calibration error")
# The smaller the better.
LOSSES = ("log_loss", "brier", "calibration_error")
OURS = ("GRBB, XGBoost", "GRBB, LightGBM", "teacher alone")

Row = Mapping[str, str]
Values = dict[tuple[str, str, int], float]


def report(rows: Sequence[Row], path: Path, published: Mapping[str, Mapping[int, Mapping[str, float]]]) -> None:
    """Write the tables of a question, one section for each number of labels.

    Parameters
    ----------
    rows : sequence of dict
        Rows of the CSV.
    path : Path
        The file.
    published : mapping
        Accuracies of others, by table, labels of each class and method; empty for `tables`.
    """
    parts = []
    for n_labels in sorted({int(row["n_labels"]) for row in rows}):
        chosen = [row for row in rows if int(row["n_labels"]) == n_labels]
        by_class = "label of each class" if n_labels == 1 else "labels of each class"
        kind = by_class if chosen[0]["labels"] == "by class" else "random labels"
        parts.append(f"## {n_labels} {kind}\n\n{section(chosen)}")
        if published:
            parts.append(published_means(chosen, n_labels, published))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(parts))


def section(rows: Sequence[Row]) -> str:
    """Return means of all methods, leads over each, and leads in both halves of the sets."""
    names = sorted({row["data"] for row in rows})
    methods = methods_of(rows)
    lines = ["| method | " + " | ".join(TITLES) + " | CPU seconds |", "|---" * (len(METRICS) + 2) + "|"]
    seeds = defaultdict[tuple[str, str], set[str]](set)
    for row in rows:
        seeds[row["data"], row["method"]].add(row["seed"])
    n_draws = {method: min(len(seeds[name, method]) for name in names) for method in methods}
    # One that was run seldom does not take the draws of the others away.
    many = [method for method in methods if 2 * n_draws[method] > max(n_draws.values())]
    common = {n: set.intersection(*(seeds[n, method] for method in many)) for n in names}
    for method in methods:
        own = [row for row in rows if row["method"] == method and row["seed"] in common[row["data"]]]
        by_set = [
            np.mean([[float(row[m]) for m in METRICS] for row in own if row["data"] == n], axis=0)
            for n in names
            if any(row["data"] == n for row in own)
        ]
        means = " | ".join(f"{value:.3f}" for value in np.mean(by_set, axis=0))
        seconds = np.mean([float(row["seconds"]) for row in own])
        draws = "" if method in many else f" ({n_draws[method]} draws)"
        lines.append(f"| {method}{draws} | {means} | {seconds:.1f} |")
    fewest, most = min(map(len, common.values())), max(map(len, seeds.values()))
    of_all = f"{fewest} of {most} draws, those that all methods have" if fewest < most else f"{fewest} draws"
    lines.append(f"\nMeans over {len(names)} sets and {of_all}. Leads are over all draws that both have.\n")
    rivals = [name for name in methods if name not in OURS]
    lines += [leads(rows, ours, rivals, names) for ours in OURS if ours in methods]
    return "\n".join(lines)


def methods_of(rows: Sequence[Row]) -> list[str]:
    """Return the methods, ours first."""
    return sorted(dict.fromkeys(row["method"] for row in rows), key=lambda method: method not in OURS)


def leads(rows: Sequence[Row], ours: str, rivals: Sequence[str], names: Sequence[str]) -> str:
    """Return a table of paired leads of one method."""
    lines = [
        f"Lead of *{ours}* (positive is better), with sets ahead / level / behind by more than two standard errors:\n",
        "| over | accuracy | | AUC | | log-loss | | even sets: all three | odd sets | behind in accuracy |",
        "|---" * 10 + "|",
    ]
    for rival in rivals:
        cells: list[str] = []
        halves: tuple[list[str], list[str]] = ([], [])
        behind: list[str] = []
        for metric in ("accuracy", "auc", "log_loss"):
            by_set = {name: _lead(rows, name, ours, rival, metric) for name in names}
            found = {name: mean for name, mean in by_set.items() if mean.n}
            verdicts = [mean.verdict for mean in found.values()]
            overall = mean_of(mean.value for mean in found.values())
            tally = " / ".join(str(verdicts.count(word)) for word in ("ahead", "level", "behind"))
            cells += [f"{overall.value:+.3f}", tally]
            for half in (0, 1):
                part = [mean.value for place, (_, mean) in enumerate(sorted(found.items())) if place % 2 == half]
                halves[half].append(f"{np.mean(part):+.3f}" if part else "")
            if metric == "accuracy":
                behind = [f"{name} {mean.value:+.3f}" for name, mean in found.items() if mean.verdict == "behind"]
        lines.append(
            f"| {rival} | {' | '.join(cells)} | {', '.join(halves[0])} | {', '.join(halves[1])} | {'; '.join(behind)} |"
        )
    return "\n".join(lines) + "\n"


def _lead(rows: Sequence[Row], name: str, ours: str, rival: str, metric: str) -> Mean:
    values: dict[str, dict[str, float]] = {ours: {}, rival: {}}
    for row in rows:
        if row["data"] == name and row["method"] in values:
            values[row["method"]][row["seed"]] = float(row[metric])
    sign = -1.0 if metric in LOSSES else 1.0
    both = values[ours].keys() & values[rival].keys()
    return mean_of(sign * (values[ours][seed] - values[rival][seed]) for seed in sorted(both))


def published_means(
    rows: Sequence[Row], n_labels: int, published: Mapping[str, Mapping[int, Mapping[str, float]]]
) -> str:
    """Return mean accuracies of ours beside those that others have published, on the same tables."""
    names = [name for name in sorted({row["data"] for row in rows}) if n_labels in published.get(name, {})]
    lines = ["Mean accuracy beside the published columns (their splits, not ours):\n", "| method | accuracy | tables |"]
    lines.append("|---|---|---|")
    for method in methods_of(rows):
        means = [
            np.mean([float(row["accuracy"]) for row in rows if row["method"] == method and row["data"] == name])
            for name in names
            if any(row["method"] == method and row["data"] == name for row in rows)
        ]
        lines.append(f"| {method} | {np.mean(means):.3f} | {len(means)} |")
    for method in published[names[0]][n_labels] if names else ():
        values = [published[name][n_labels][method] for name in names]
        known = [value for value in values if np.isfinite(value)]
        lines.append(f"| published: {method} | {np.mean(known):.3f} | {len(known)} |")
    return "\n".join(lines) + "\n"
