"""The rivals under a budget: accuracy at equal feature cost, on the sets with published prices.

Every method trains XGBoost with GreedyMiser and a hard budget. The graph is a thing of training: it may use columns
that no new row will be asked to pay for. What that gains is the difference from "default, affordable graph".
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.data import DataSet, is_available, load
from benchmarks.options import Options
from benchmarks.paired import Mean, difference, mean_of
from benchmarks.results import ROW, ResultTable
from benchmarks.rivals import DEPTH, LEARNING_RATE, TREES, UNDER_BUDGET, Limit, Problem, bins
from benchmarks.runner import Row, run_tasks
from benchmarks.splits import draw
from benchmarks.study import missing_of, rows_of
from grbb_ext import FeatureCosts

#: Dollars, from the cheapest questions to most of the tests. Breast cancer stands in where the files are not there.
BUDGETS: dict[str, tuple[float, ...]] = {
    "heart_disease": (4.0, 12.0, 40.0, 130.0),
    "thyroid": (10.0, 25.0, 40.0, 60.0),
    "breast_cancer": (3.0, 10.0, 25.0),
}
N_LABELS, N_SEEDS, QUICK_SEEDS = (20, 100), 20, 2


class Task(NamedTuple):
    """The methods that are missing of one split and budget."""

    data: str
    budget: float
    n_labels: int
    seed: int
    methods: tuple[str, ...]


def costs_of(data: DataSet) -> FeatureCosts:
    """Return the published prices; for breast cancer ours: ten measurements at 1 to 10, each giving three columns."""
    if data.costs is not None:
        return data.costs
    assert data.name == "breast_cancer"
    needs = [[f"measurement {i % 10}"] for i in range(30)]
    return FeatureCosts(needs=needs, prices={f"measurement {i}": i + 1.0 for i in range(10)})


def key(method: str, data: str, budget: float, n_labels: int, seed: int) -> dict[str, Any]:
    """Return what identifies a trial in the CSV."""
    settings = json.dumps({"depth": DEPTH, "eta": LEARNING_RATE, "budget": budget})
    return {"data": data, "method": method, "seed": seed, "n_labels": n_labels, "noise": "none", "settings": settings}


def missing(table: ResultTable, options: Options) -> list[Task]:
    """Return the splits and budgets with methods that have not run."""
    names = options.data or (("breast_cancer",) if options.quick else ("heart_disease", "thyroid"))
    n_seeds = options.seeds or (QUICK_SEEDS if options.quick else N_SEEDS)
    labels = options.labels or (N_LABELS[:1] if options.quick else N_LABELS)
    methods = options.choose(UNDER_BUDGET)
    tasks = []
    for n_labels, seed, name in product(labels, range(n_seeds), (name for name in names if is_available(name))):
        for budget in BUDGETS[name]:
            split = name, budget, n_labels, seed
            if wanted := missing_of(table, [key(method, *split) for method in methods]):
                tasks.append(Task(*split, wanted))
    return tasks


def work(task: Task) -> list[Row]:
    """Run the methods of a split under a budget."""
    data = load(task.data)
    split = draw(data, task.seed, task.n_labels)
    costs = costs_of(data)
    problem = Problem(split, bins(data.X.shape[1]), Limit(costs, task.budget))
    rows: list[Row] = []
    for method in task.methods:
        fitted, seconds = problem.timed(UNDER_BUDGET[method])
        rows += rows_of(key(method, *task[:-1]), fitted, seconds, split.truth, costs.total)
    return rows


def report(rows: Iterable[dict[str, str]]) -> str:
    """Return a table for each number of labels: accuracy at each budget, and its difference from the default."""
    values: dict[tuple[int, str, float, str], dict[int, float]] = defaultdict(dict)
    spent: dict[tuple[int, str, float, str], list[float]] = defaultdict(list)
    for row in rows:
        if int(row["trees"]) == max(TREES):
            budget = float(json.loads(row["settings"])["budget"])
            cell = int(row["n_labels"]), row["data"], budget, row["method"]
            values[cell][int(row["seed"])] = float(row["value"])
            spent[cell].append(float(row["cost"]))
    methods = list(dict.fromkeys(method for *_, method in values))
    reference = "default" if "default" in methods else "knn smooth"
    lines = [
        f"Test accuracy with {max(TREES)} trees of *{reference}* under a budget, and its lead over each rival under "
        "the same budget, paired by seed, ± one standard error; in brackets what the models spent on average.",
        "",
    ]
    rivals = [method for method in methods if method != reference]
    for n_labels in sorted({n for n, *_ in values}):
        lines += [f"| {n_labels} labels | {reference} | " + " | ".join(rivals) + " |", "|---" * (2 + len(rivals)) + "|"]
        for data, budget in dict.fromkeys((d, b) for n, d, b, _ in sorted(values) if n == n_labels):
            own = mean_of(values[n_labels, data, budget, reference].values())
            cells = [f"{own.value:.3f} ({mean_of(spent[n_labels, data, budget, reference]).value:.1f})"]
            for rival in rivals:
                cell = n_labels, data, budget, rival
                lead = difference(values[n_labels, data, budget, reference], values[cell])
                cells.append(_cell(lead, mean_of(spent[cell]).value))
            lines.append(f"| {data}, {budget:g} | " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)


def _cell(lead: Mean, spent: float) -> str:
    if lead.n < 2:
        return ""
    text = f"{lead} ({spent:.1f})"
    return {"ahead": f"**{text}**", "behind": f"*{text}* (!)", "level": text}[lead.verdict]


def run(options: Options) -> int:
    """Run what is missing, write the table, and return how many tasks failed."""
    path: Path = options.folder / "equal_cost.csv"
    table = ResultTable(path, row=ROW)
    for method in options.forget:
        print(f"forgot {table.forget(method=method)} rows of {method}")
    failures = 0 if options.report else run_tasks(table, missing(table, options), work, "equal cost", options.jobs)
    if rows := table.read():
        path.with_suffix(".md").write_text(text := report(rows))
        print(text)
    return failures
