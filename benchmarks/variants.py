"""The question `variants`: other teachers on the sets of `tables`, 20 random labels, chosen on half of the sets.

Every variant is an option of :func:`grbb_ext.grbb_objective`, and is measured by its targets for test rows, without a
booster, on draws that `tables` does not use. The sets at even places of the alphabet choose; the others confirm.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from benchmarks import data as sets
from benchmarks.options import Options
from benchmarks.paired import mean_of
from benchmarks.results import ResultTable, package_versions
from benchmarks.runner import Row, run_tasks
from benchmarks.study import INSIDE, OUTSIDE
from benchmarks.tables import QUICK, QUICK_SEEDS, draw, measures, numbers, tables
from grbb_ext import Committee, grbb_objective

N_LABELS, FIRST_SEED, N_SEEDS = 20, 100, 3
METRICS = ("accuracy", "auc", "log_loss")
TRIAL = ("data", "variant", "seed")
COLUMNS = (*TRIAL, *METRICS, "seconds", *package_versions())
ALL = ("graph", "forest", "linear")
DEFAULT = "the default"


def beside(make: Callable[[], Any]) -> Callable[[], dict[str, Any]]:
    """Put an estimator beside the three experts."""
    return lambda: {"teacher": Committee(experts=(*ALL, numbers(make())))}


def only(*experts: str) -> Callable[[], dict[str, Any]]:
    """Ask some of the three experts."""
    return lambda: {"teacher": Committee(experts=experts)}


VARIANTS: dict[str, Callable[[], dict[str, Any]]] = {
    DEFAULT: dict,
    **{f"{name} alone": only(name) for name in ALL},
    **{f"without {name}": only(*(other for other in ALL if other != name)) for name in ALL},
    "beside them: random forest": beside(
        lambda: RandomForestClassifier(100, min_samples_leaf=2, random_state=0, n_jobs=1)
    ),
    "beside them: shallow random forest": beside(
        lambda: RandomForestClassifier(100, max_depth=2, max_features=0.3, random_state=0, n_jobs=1)
    ),
    "beside them: gradient boosting": beside(
        lambda: HistGradientBoostingClassifier(max_iter=50, min_samples_leaf=2, max_depth=3, random_state=0)
    ),
    "beside them: naive Bayes": beside(lambda: GaussianNB(var_smoothing=0.1)),
    "beside them: discriminant analysis": beside(lambda: LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")),
    "beside them: Gaussian process": beside(lambda: GaussianProcessClassifier(1.0 * RBF(5.0), random_state=0)),
    "beside them: five nearest labels": beside(lambda: KNeighborsClassifier(5, weights="distance")),
    "no power": lambda: {"teacher": Committee(sharpen=1.0)},
    "power 2": lambda: {"teacher": Committee(sharpen=2.0)},
    "the refined graph": lambda: {"graph": "refined"},
    "the plain graph": lambda: {"graph": "knn"},
}


class Task(NamedTuple):
    """The variants that are missing of one draw."""

    data: str
    seed: int
    variants: tuple[str, ...]


def trial(task: Task) -> list[Row]:
    """Return the rows of a draw."""
    problem = draw(task.data, "random", N_LABELS, task.seed)
    rows: list[Row] = []
    for variant in task.variants:
        start = time.process_time()
        fitted = grbb_objective(problem.X, problem.y, n_jobs=1, verbose=False, **VARIANTS[variant]()).teacher_
        assert fitted is not None
        q = fitted.predict(problem.X_test, n_jobs=1)
        found = measures(np.column_stack([1.0 - q, q]) if q.ndim == 1 else q, problem.truth)
        values = {name: round(found[name], 5) for name in METRICS}
        key = dict(zip(TRIAL, (task.data, variant, task.seed), strict=True))
        rows.append({**key, **values, "seconds": round(time.process_time() - start, 3), **package_versions()})
    return rows


def report(rows: Sequence[Mapping[str, str]]) -> str:
    """Return a table of both halves, with the lead over the default in log-loss and its standard error over sets.

    Draws that not all variants have do not count.
    """
    names = sorted({row["data"] for row in rows})
    halves = {"even": names[::2], "odd": names[1::2]}
    values = {(row["variant"], row["data"], row["seed"]): [float(row[m]) for m in METRICS] for row in rows}
    variants = list(dict.fromkeys(row["variant"] for row in rows))
    seeds = sorted(
        seed
        for seed in {row["seed"] for row in rows}
        if all((one, name, seed) in values for one in variants for name in names)
    )
    lines = [
        "| teacher | " + " | ".join(f"{half} sets | lead in log-loss" for half in halves) + " | CPU seconds |",
        "|---" * 6 + "|",
    ]
    best = dict.fromkeys(halves, ("", -np.inf))
    for variant in variants:
        cells = []
        for half, members in halves.items():
            own, first = (
                np.mean([[values[one, name, seed] for seed in seeds] for name in members], axis=1)
                for one in (variant, DEFAULT)
            )
            means, lead = own.mean(axis=0), mean_of(first[:, -1] - own[:, -1])
            best[half] = max(best[half], (variant, lead.value), key=lambda found: found[1])
            cells += [" / ".join(f"{value:.3f}" for value in means), str(lead)]
        seconds = np.mean([float(row["seconds"]) for row in rows if row["variant"] == variant])
        lines.append(f"| {variant} | {' | '.join(cells)} | {seconds:.2f} |")
    chosen = {half: name if lead > 0 else DEFAULT for half, (name, lead) in best.items()}
    lines.append(
        f"\nAccuracy / AUC / log-loss; {len(names)} sets, {len(seeds)} draws each. By log-loss the even sets choose "
        f"*{chosen['even']}*, the odd ones would have chosen *{chosen['odd']}*."
    )
    return "\n".join(lines) + "\n"


def run(options: Options) -> int:
    """Run what is missing and write the table."""
    table = ResultTable(options.folder / "variants.csv", COLUMNS, TRIAL)
    names = list(QUICK) if options.quick else [*tables(), *filter(sets.is_available, (*INSIDE, *OUTSIDE))]
    failures = 0
    if not options.report:
        tasks = []
        for seed in range(FIRST_SEED, FIRST_SEED + (options.seeds or (QUICK_SEEDS if options.quick else N_SEEDS))):
            for name in options.data or names:
                missing = [
                    one
                    for one in options.choose(VARIANTS)
                    if not table.has(dict(zip(TRIAL, (name, one, seed), strict=True)))
                ]
                if missing:
                    tasks.append(Task(name, seed, tuple(missing)))
        failures = run_tasks(table, tasks, trial, "variants", options.jobs)
    (options.folder / "variants.md").write_text(report(table.read()))
    return failures
