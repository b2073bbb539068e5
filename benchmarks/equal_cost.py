"""Accuracy, AUC and log-loss at equal feature cost: every method under the same hard budget, with the same prices.

Heart disease and thyroid have published prices (Turney 1995). The prices of credit_g and ilpd are made up by kind of
column, and were written down before anything was run: what is in the application or can be asked costs 1, a document or
a blood test 5, a report of the credit bureau 10, an appraisal 20; what comes together is one source and paid once.

What a method does in training is its own business: the teacher and the first booster of *pseudo-labels* see all
columns. The bill is that of the model that predicts new rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import lightgbm as lgb
import numpy as np
import xgboost as xgb
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import LabelSpreading

from benchmarks import data as sets
from benchmarks.equal_cost_report import report
from benchmarks.options import Options
from benchmarks.results import ResultTable, package_versions
from benchmarks.runner import Row, run_tasks
from benchmarks.tables import Floats, Problem, boosters, draw, measures, numbers, student, tables
from grbb_ext import FeatureCosts, GRBBClassifier
from grbb_ext.adapters.lightgbm import train as train_lightgbm
from grbb_ext.adapters.xgboost import GreedyMiser

#: From the cheapest source to nearly all. Breast cancer stands in where the files are not there.
BUDGETS: dict[str, tuple[float, ...]] = {
    "heart_disease": (1.0, 4.0, 12.0, 40.0, 130.0, 230.0),
    "thyroid": (1.0, 4.0, 12.0, 25.0, 40.0, 60.0),
    "credit_g": (1.0, 3.0, 8.0, 20.0, 35.0, 50.0),
    "ilpd": (1.0, 2.0, 7.0, 13.0, 24.0, 34.0),
    "breast_cancer": (3.0, 10.0, 25.0),
}
TRIAL = ("data", "method", "seed", "n_labels", "budget")
MEASURES = ("accuracy", "auc", "log_loss")
COLUMNS = (*TRIAL, "cost", *MEASURES, "seconds", "grbb_ext", "xgboost", "lightgbm", "numpy", "scikit-learn")
LABELS, N_SEEDS, QUICK_SEEDS = (20, 100), 10, 2
# scikit-learn before 1.8 reads l1_ratio with another penalty alone.
_L1: dict[str, Any] = {"l1_ratio": 1.0} if LogisticRegression().penalty == "deprecated" else {"penalty": "l1"}

_CREDIT: dict[str, tuple[float, tuple[str, ...]]] = {
    "application": (1.0, ("duration", "credit_amount", "purpose", "installment_commitment")),
    "credit bureau": (10.0, ("credit_history", "existing_credits", "other_payment_plans")),
    "appraisal": (20.0, ("property_magnitude",)),
    **{name: (5.0, (name,)) for name in ("checking_status", "savings_status", "employment", "other_parties")},
    **{name: (1.0, (name,)) for name in ("age", "personal_status", "num_dependents", "residence_since", "housing")},
    **{name: (1.0, (name,)) for name in ("job", "own_telephone", "foreign_worker")},
}
#: Age and sex are asked. Blood is drawn once for 2, and each of seven tests costs 5; the last column is a ratio of two.
_LIVER: dict[str, list[str]] = {
    "V1": ["V1"],
    "V2": ["V2"],
    **{f"V{j}": ["blood", f"V{j}"] for j in range(3, 10)},
    "V10": ["blood", "V8", "V9"],
}


def costs_of(data: sets.DataSet) -> FeatureCosts:
    """Return the published prices; for breast cancer ours: ten measurements at 1 to 10, each giving three columns."""
    if data.costs is not None:
        return data.costs
    assert data.name == "breast_cancer"
    needs = [[f"measurement {i % 10}"] for i in range(30)]
    return FeatureCosts(needs=needs, prices={f"measurement {i}": i + 1.0 for i in range(10)})


def prices_of(name: str) -> FeatureCosts:
    """Return the prices of a set of this question.

    Examples
    --------
    >>> prices_of("ilpd").total(["V3"]), prices_of("ilpd").total(["V3", "V10"])
    (7.0, 17.0)
    """
    if name == "credit_g":
        needs = {column: [source] for source, (_, columns) in _CREDIT.items() for column in columns}
        return FeatureCosts(needs=needs, prices={source: price for source, (price, _) in _CREDIT.items()})
    if name == "ilpd":
        tests = {f"V{j}": 5.0 for j in range(3, 10)}
        return FeatureCosts(needs=_LIVER, prices={"V1": 1.0, "V2": 1.0, "blood": 2.0, **tests})
    return costs_of(sets.load(name))


class Limited(NamedTuple):
    """A split with prices by column number, and the most that a model may spend."""

    problem: Problem
    costs: FeatureCosts
    budget: float


class Model(NamedTuple):
    """Probabilities of the test rows, and the columns that they need."""

    p: Floats
    used: list[int]


def grbb(library: str, **shape: int) -> Callable[[Limited], Model]:
    """Fit this package around a booster, as it comes or with trees of another shape, with prices and a budget."""

    def method(limited: Limited) -> Model:
        problem = limited.problem
        model = GRBBClassifier(
            student(library, problem.seed, costs=True).set_params(**shape),
            feature_costs=limited.costs,
            budget=limited.budget,
            random_state=0,
            n_jobs=1,
        ).fit(problem.X, problem.y)
        assert model.ledger_ is not None
        return Model(model.predict_proba(problem.X_test), np.flatnonzero(model.ledger_.used).tolist())

    return method


def miser(library: str) -> Callable[[Limited], Model]:
    """Train a booster on the labelled rows alone, under the budget."""
    return lambda limited: _boosted(library, limited, *limited.problem.labeled)


def pseudo_labels(library: str) -> Callable[[Limited], Model]:
    """Let a booster on all columns label all rows, and train another on them under the budget."""

    def method(limited: Limited) -> Model:
        problem = limited.problem
        first = boosters(problem.seed)[library]().fit(*problem.labeled)
        guessed = np.where(problem.y >= 0, problem.y, first.predict(problem.X))
        return _boosted(library, limited, problem.X, guessed)

    return method


def spread_labels(limited: Limited) -> Model:
    """Spread labels over neighbours in all columns, and train XGBoost on them under the budget."""
    problem = limited.problem
    X = numbers("passthrough").fit_transform(problem.X)
    spread = LabelSpreading(kernel="knn", n_neighbors=9, alpha=0.9, max_iter=300).fit(X, problem.y)
    return _boosted("XGBoost", limited, problem.X, spread.transduction_)


def _boosted(library: str, limited: Limited, X: Any, y: NDArray[Any]) -> Model:
    """Train the boosters of `tables` under the budget.

    Without their sampling of columns: what a round may not see it cannot buy, and a budget samples enough.
    """
    problem, costs, budget = limited
    model = boosters(problem.seed)[library]().set_params(colsample_bytree=1.0)
    booster: Any
    if library == "XGBoost":
        data = xgb.DMatrix(X, label=y, enable_categorical=True, nthread=1)
        params = {"objective": "binary:logistic", "nthread": 1, "verbosity": 0} | model.get_xgb_params()
        callbacks = [GreedyMiser(costs, "binary:logistic", data, budget=budget)]
        booster = xgb.train(params, data, model.n_estimators, callbacks=callbacks)
        p = booster.predict(xgb.DMatrix(problem.X_test, enable_categorical=True, nthread=1))
    else:
        params = model.get_params() | {"objective": "binary", "num_threads": 1}
        for name in ("n_estimators", "n_jobs", "class_weight", "importance_type"):
            params.pop(name)
        params = {name: value for name, value in params.items() if value is not None}
        booster = train_lightgbm(params, lgb.Dataset(X, y), model.n_estimators, costs=costs, budget=budget)
        p = booster.predict(problem.X_test, num_threads=1)
    return Model(np.column_stack([1.0 - p, p]), np.flatnonzero(booster.ledger_.used).tolist())


def l1_path(limited: Limited) -> Model:
    """Buy sources in the order in which an l1 path asks for them, where they fit, and fit l2 on what is bought.

    The path has only columns that the budget could buy alone: others would take the place of those that can be bought.
    It goes on after a source that does not fit.
    """
    problem, costs, budget = limited
    X, y = problem.labeled
    columns = numbers("passthrough").fit(problem.X)
    source = _column_of(columns, problem)
    open_ = np.flatnonzero((costs.marginals() <= budget)[source])
    Z, bought = columns.transform(X), list[int]()
    for C in np.geomspace(0.01, 100.0, 40) if open_.size else ():
        fitted = LogisticRegression(**_L1, C=C, solver="liblinear", random_state=0).fit(Z[:, open_], y)
        size = np.abs(fitted.coef_[0])
        for j in source[open_[np.argsort(-size)[: np.count_nonzero(size)]]].tolist():
            if j not in bought and costs.total([*bought, j]) <= budget:
                bought.append(j)
    if not bought:
        share = np.bincount(y, minlength=2) / y.size
        return Model(np.tile(share, (len(problem.X_test), 1)), [])
    # A paid source may give more columns than the path asked for.
    paid = costs.total(bought)
    bought = [j for j in range(len(problem.X.columns)) if costs.total([*bought, j]) == paid]
    kept = np.isin(source, bought)
    final = LogisticRegression(max_iter=1_000).fit(Z[:, kept], y)
    return Model(final.predict_proba(columns.transform(problem.X_test)[:, kept]), bought)


def _column_of(columns: Any, problem: Problem) -> NDArray[np.intp]:
    """Return the column of the table that each column for the linear model is made of."""
    place = {name: j for j, name in enumerate(problem.X.columns)}
    found: list[int] = []
    transformer = columns[0]
    for _, steps, names in transformer.transformers_:
        for position, name in enumerate(names):
            many = hasattr(steps[-1], "categories_")
            found += [place[name]] * (len(steps[-1].categories_[position]) if many else 1)
    return np.array(found, dtype=np.intp)


METHODS: dict[str, Callable[[Limited], Model]] = {
    "GRBB, XGBoost": grbb("XGBoost"),
    "GRBB, LightGBM": grbb("LightGBM"),
    "GRBB, XGBoost, depth 3": grbb("XGBoost", max_depth=3),
    "GRBB, LightGBM, 8 leaves": grbb("LightGBM", num_leaves=8),
    "LR, l1 path": l1_path,
    "Greedy Miser, XGBoost": miser("XGBoost"),
    "Greedy Miser, LightGBM": miser("LightGBM"),
    "pseudo-labels, XGBoost": pseudo_labels("XGBoost"),
    "pseudo-labels, LightGBM": pseudo_labels("LightGBM"),
    "LabelSpreading, XGBoost": spread_labels,
}


class Task(NamedTuple):
    """The methods that are missing of one split and budget."""

    data: str
    budget: float
    n_labels: int
    seed: int
    methods: tuple[str, ...]


def key(method: str, data: str, budget: float, n_labels: int, seed: int) -> dict[str, Any]:
    """Return what identifies a trial in the CSV."""
    return {"data": data, "method": method, "seed": seed, "n_labels": n_labels, "budget": budget}


def missing(table: ResultTable, options: Options) -> Iterator[Task]:
    """Return the splits and budgets with methods that have not run, seed by seed."""
    known = [name for name in BUDGETS if name in tables() or sets.is_available(name)]
    names = options.data or (("breast_cancer",) if options.quick else tuple(n for n in known if n != "breast_cancer"))
    for n_labels in options.labels or (LABELS[:1] if options.quick else LABELS):
        for seed in range(options.seeds or (QUICK_SEEDS if options.quick else N_SEEDS)):
            for name in names:
                for budget in BUDGETS[name]:
                    split = name, budget, n_labels, seed
                    left = tuple(m for m in options.choose(METHODS) if not table.has(key(m, *split)))
                    if left:
                        yield Task(*split, left)


def limited_of(task: Task) -> Limited:
    """Draw the split of a task."""
    problem = draw(task.data, "random", task.n_labels, task.seed)
    names = [] if task.data in tables() else sets.load(task.data).names
    if names:
        problem = problem._replace(X=problem.X.set_axis(names, axis=1), X_test=problem.X_test.set_axis(names, axis=1))
    return Limited(problem, prices_of(task.data).bind([str(name) for name in problem.X.columns]), task.budget)


def work(task: Task) -> list[Row]:
    """Run the methods of a split under a budget."""
    limited = limited_of(task)
    rows: list[Row] = []
    for method in task.methods:
        start = time.process_time()
        model = METHODS[method](limited)
        cost = limited.costs.total(model.used)
        assert cost <= task.budget + 1e-9, (method, cost)
        found = measures(model.p, limited.problem.truth)
        values = {name: round(found[name], 5) for name in MEASURES}
        seconds = round(time.process_time() - start, 3)
        trial = {**key(method, *task[:-1]), "cost": round(cost, 2)}
        rows.append({**trial, **values, "seconds": seconds, **package_versions()})
    return rows


def run(options: Options) -> int:
    """Run what is missing, write tables and picture, and return how many tasks failed."""
    table = ResultTable(options.folder / "equal_cost.csv", COLUMNS, TRIAL)
    for method in options.forget:
        print(f"forgot {table.forget(method=method)} rows of {method}")
    failures = 0
    if not options.report:
        failures = run_tasks(table, list(missing(table, options)), work, "equal cost", options.jobs)
    if rows := table.read():
        print(report(rows, table.path))
    return failures
