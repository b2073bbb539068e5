"""Test log-loss at equal feature cost: Greedy Miser on XGBoost, CEGB on LightGBM, plain boosting on chosen features.

``python -m benchmarks.budget`` adds one row per trial to ``docs/results/budget.csv`` (trials that are there are not
run again) and writes the summary ``docs/results/budget.md``. Heart disease, thyroid and scene15 are read from
``$GRBB_DATA`` (default ``../shared/data``).

A trial trains on 60 % of the rows with one mu or one budget. The number of rounds with the least log-loss on another
20 % is kept, and the model is charged for what these rounds use. At a cost limit B each method gives the model with the
least validation log-loss among its trials that cost at most B, or the class frequencies where there is none.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import lightgbm as lgb
import numpy as np
import xgboost as xgb
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.metrics import log_loss

from benchmarks.data import DATA
from benchmarks.results import RESULTS, ResultTable
from benchmarks.runner import Row, run_tasks
from grbb_ext.adapters.lightgbm._train import train as lgb_train
from grbb_ext.adapters.xgboost._miser import GreedyMiser
from grbb_ext.costs import FeatureCosts, Ledger

ROUNDS, LEARNING_RATE, DEPTH = 100, 0.1, 4
KEPT = [*range(1, 20), *range(20, ROUNDS + 1, 4)]  # numbers of rounds to choose from
MUS = [4.0**k for k in range(-5, 4)]
SHARES = [0.03, 0.1, 0.25, 0.5]  # of the price of all features
METHODS = ("xgb levels", "xgb levels, every round", "xgb interaction", "lgb", "xgb selected", "lgb selected")
FIELDS = ["data", "method", "seed", "mu", "budget", "rounds", "cost", "valid", "test", "prior", "seconds"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """Rows, classes and prices."""

    X: Floats
    y: NDArray[np.intp]
    costs: FeatureCosts

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.y.max()) + 1


def heart_disease() -> Problem:
    """Disease or not, with Turney's prices."""
    table = np.load(DATA / "heart_disease.npz")
    costs = FeatureCosts.from_csv(DATA / "heart_disease_costs.csv").bind(table["feature_names"].tolist())
    return Problem(table["X"].astype(float), (table["y"] > 0).astype(np.intp), costs)


def thyroid() -> Problem:
    """Disease or not, with Turney's prices."""
    table = np.load(DATA / "thyroid.npz")
    costs = FeatureCosts.from_csv(DATA / "thyroid_costs.csv").bind(table["feature_names"].tolist())
    return Problem(table["X"].astype(float), (table["y"] < 3).astype(np.intp), costs)


def scene15() -> Problem:
    """Half of the scene classes against the other; a filter bank costs 30, each of its outputs 1 (our prices)."""
    table = np.load(DATA / "scene15.npz")
    views = [str(view) for view in table["groups"]]
    needs = [[view, f"output {i}"] for i, view in enumerate(views)]
    prices = dict.fromkeys(views, 30.0) | {f"output {i}": 1.0 for i in range(len(views))}
    return Problem(table["X"].astype(float), (table["y"] > 8).astype(np.intp), FeatureCosts(needs=needs, prices=prices))


def breast_cancer() -> Problem:
    """Ten measurements at 1 to 10, in the order of the data; mean, error and worst of each share it (our prices)."""
    data = load_breast_cancer()
    needs = [[f"measurement {i % 10}"] for i in range(30)]
    costs = FeatureCosts(needs=needs, prices={f"measurement {i}": i + 1.0 for i in range(10)})
    return Problem(data.data, data.target.astype(np.intp), costs)


def wine() -> Problem:
    """Three classes; thirteen analyses at 1 to 13, in the order of the data (our prices)."""
    data = load_wine()
    return Problem(data.data, data.target.astype(np.intp), FeatureCosts(np.arange(1.0, 14.0)))


def digits() -> Problem:
    """Digits above 4 against the others; a row of the sensor costs 8, each of its pixels 1 (our prices)."""
    data = load_digits()
    needs = [[f"row {i // 8}", f"pixel {i}"] for i in range(64)]
    prices = {f"row {i}": 8.0 for i in range(8)} | {f"pixel {i}": 1.0 for i in range(64)}
    return Problem(data.data, (data.target > 4).astype(np.intp), FeatureCosts(needs=needs, prices=prices))


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "heart_disease": heart_disease,
    "wine": wine,
    "breast_cancer": breast_cancer,
    "digits": digits,
    "thyroid": thyroid,
    "scene15": scene15,
}


@dataclass(frozen=True)
class Parts:
    """Row numbers of a split."""

    train: NDArray[np.intp]
    valid: NDArray[np.intp]
    test: NDArray[np.intp]


def split(problem: Problem, seed: int) -> Parts:
    """Shuffle within classes: 60 % training, 20 % validation, 20 % test."""
    random = np.random.default_rng(seed)
    part = np.empty(problem.y.size, dtype=np.intp)
    for label in range(problem.n_classes):
        rows = random.permutation(np.flatnonzero(problem.y == label))
        part[rows] = np.searchsorted([0.6, 0.8], (np.arange(rows.size) + 0.5) / rows.size)
    return Parts(*(np.flatnonzero(part == k) for k in range(3)))


Predict = Callable[[Floats, int], Floats]


def train_xgb(
    problem: Problem, rows: NDArray[np.intp], mu: float, budget: float | None, **settings: Any
) -> tuple[Predict, Ledger]:
    several = problem.n_classes > 2
    objective = "multi:softprob" if several else "binary:logistic"
    params = {"objective": objective, "eta": LEARNING_RATE, "max_depth": DEPTH, "nthread": 1}
    if several:
        params["num_class"] = problem.n_classes
    dtrain = xgb.DMatrix(problem.X[rows], label=problem.y[rows])
    miser = GreedyMiser(problem.costs, objective, dtrain, mu=mu, budget=budget, **settings)
    booster = xgb.train(params, dtrain, ROUNDS, callbacks=[miser])
    n = booster.num_boosted_rounds()
    return lambda X, k: np.asarray(booster.predict(xgb.DMatrix(X), iteration_range=(0, min(k, n)))), miser.ledger_


def train_lgb(problem: Problem, rows: NDArray[np.intp], mu: float, budget: float | None) -> tuple[Predict, Ledger]:
    several = problem.n_classes > 2
    params = {
        "objective": "multiclass" if several else "binary",
        "learning_rate": LEARNING_RATE,
        "max_depth": DEPTH,
        "num_leaves": 2**DEPTH,
        "min_data_in_leaf": 1,
        "min_sum_hessian_in_leaf": 1,
        "lambda_l2": 1,
        "verbosity": -1,
        "num_threads": 1,
    }
    if several:
        params["num_class"] = problem.n_classes
    data = lgb.Dataset(problem.X[rows], label=problem.y[rows])
    booster = lgb_train(params, data, ROUNDS, costs=problem.costs, mu=mu, budget=budget)
    return lambda X, k: np.asarray(booster.predict(X, num_iteration=k)), booster.ledger_  # type: ignore[attr-defined]


def train_selected(problem: Problem, rows: NDArray[np.intp], budget: float, library: str) -> tuple[Predict, Ledger]:
    """Plain boosting on the features that fit, chosen by the gain of a plain model for the money."""
    objective = "multi:softprob" if problem.n_classes > 2 else "binary:logistic"
    params: dict[str, Any] = {"objective": objective, "eta": LEARNING_RATE, "max_depth": DEPTH, "nthread": 1}
    if problem.n_classes > 2:
        params["num_class"] = problem.n_classes
    plain = xgb.train(params, xgb.DMatrix(problem.X[rows], label=problem.y[rows]), ROUNDS)
    gain = np.zeros(problem.X.shape[1])
    for name, value in plain.get_score(importance_type="total_gain").items():
        gain[int(name[1:])] = value
    ledger = Ledger(problem.costs, budget)
    while (open_ := ledger.affordable() & ~ledger.used & (gain > 0)).any():
        worth = np.where(open_, gain / np.maximum(ledger.marginals(), 1e-9), -1)
        ledger.buy([int(worth.argmax())])
    if not ledger.used.any():
        prior = np.bincount(problem.y[rows]) / rows.size
        return lambda X, k: np.tile(prior if prior.size > 2 else prior[1], (len(X), 1)).squeeze(), ledger
    kept = np.flatnonzero(ledger.used)
    cut = Problem(problem.X[:, kept], problem.y, FeatureCosts(np.zeros(kept.size)))
    predict, used = (train_xgb if library == "xgb" else train_lgb)(cut, rows, 0.0, None)
    bought = Ledger(problem.costs, budget)
    bought.buy(kept[used.used])
    return lambda X, k: predict(X[:, kept], k), bought


def trial(problem: Problem, method: str, seed: int, mu: float, budget: float | None) -> dict[str, Any]:
    """Train, keep the best number of rounds, and return a row."""
    parts = split(problem, seed)
    start = time.perf_counter()
    if method == "lgb":
        predict, ledger = train_lgb(problem, parts.train, mu, budget)
    elif method.endswith("selected"):
        assert budget is not None
        predict, ledger = train_selected(problem, parts.train, budget, method[:3])
    else:
        settings: dict[str, Any] = {"strategy": "interaction" if "interaction" in method else "levels"}
        if "every" in method:
            settings["probe_every"] = 1
        predict, ledger = train_xgb(problem, parts.train, mu, budget, **settings)
    seconds = time.perf_counter() - start

    def loss(rows: NDArray[np.intp], k: int) -> float:
        p = predict(problem.X[rows], k)
        if p.ndim == 1:
            p = np.column_stack([1 - p, p])
        p = np.clip(p, 1e-6, 1)
        return float(log_loss(problem.y[rows], p / p.sum(axis=1, keepdims=True), labels=range(problem.n_classes)))

    rounds = min(KEPT, key=lambda k: loss(parts.valid, k))
    prior = np.bincount(problem.y[parts.train]) / parts.train.size
    bought = ledger.before(rounds) if not method.endswith("selected") else ledger
    return {
        "rounds": rounds,
        "cost": round(bought.spent, 4),
        "valid": round(loss(parts.valid, rounds), 5),
        "test": round(loss(parts.test, rounds), 5),
        "prior": round(-float(np.log(prior[problem.y[parts.test]]).mean()), 5),
        "seconds": round(seconds, 3),
    }


class Task(NamedTuple):
    """A trial by the columns of the CSV."""

    data: str
    method: str
    seed: int
    mu: float
    budget: float | str


@cache
def load(name: str) -> Problem:
    return PROBLEMS[name]()


def work(task: Task) -> list[Row]:
    budget = None if isinstance(task.budget, str) else task.budget
    return [task._asdict() | trial(load(task.data), task.method, task.seed, task.mu, budget)]


def run(table: ResultTable, names: list[str], n_seeds: int, methods: list[str], mus: list[float]) -> None:
    for name in names:
        problem = load(name)
        everything = problem.costs.total(range(problem.X.shape[1]))
        budgets = [round(share * everything, 2) for share in SHARES]
        limits: list[tuple[float, float | str]] = [(0.0, budget) for budget in budgets]
        tasks = [
            Task(name, method, seed, mu, budget)
            for seed, method in itertools.product(range(n_seeds), methods)
            for mu, budget in (limits if method.endswith("selected") else [*limits, *((mu, "") for mu in mus)])
        ]
        run_tasks(table, [task for task in tasks if not table.has(task._asdict())], work, name)


def at_equal_cost(rows: list[dict[str, str]]) -> dict[tuple[str, float, str], dict[int, float]]:
    """Return the test log-loss by data set, share of the full price, method and seed."""
    trials = defaultdict(list)
    for row in rows:
        trials[row["data"], row["method"], int(row["seed"])].append(row)
    result: dict[tuple[str, float, str], dict[int, float]] = defaultdict(dict)
    for name in dict.fromkeys(data for data, _, _ in trials):
        problem = PROBLEMS[name]()
        everything = problem.costs.total(range(problem.X.shape[1]))
        for (data, method, seed), of_trial in trials.items():
            for share in SHARES if data == name else ():
                fitting = [row for row in of_trial if float(row["cost"]) <= round(share * everything, 2)]
                best = min(fitting, key=lambda row: float(row["valid"]), default=None)
                loss = float(of_trial[0]["prior"]) if best is None else min(float(best["test"]), 99.0)
                result[name, share, method][seed] = loss
    return result


def summary(rows: list[dict[str, str]]) -> str:
    """Write mean and standard error as tables."""
    result = at_equal_cost(rows)
    lines = [
        "Test log-loss at equal cost, mean and standard error over seeds; cost limit as a share of the price of all "
        "features.",
        "",
        "| data | limit | " + " | ".join(METHODS) + " |",
        "|" + "---|" * (len(METHODS) + 2),
    ]
    cases = list(dict.fromkeys((data, share) for data, share, _ in result))
    for data, share in cases:
        cells = []
        for method in METHODS:
            values = np.array(list(result[data, share, method].values()))
            error = values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else np.nan
            cells.append(f"{values.mean():.3f} ± {error:.3f}" if values.size else "")
        lines.append(f"| {data} | {share:g} | " + " | ".join(cells) + " |")
    lines += ["", "Differences, paired by seed, mean over limits and seeds ± standard error over seeds:", ""]
    lines += ["| data | " + " | ".join(f"{a} - {b}" for a, b in PAIRS) + " |", "|" + "---|" * (len(PAIRS) + 1)]
    for only in [*dict.fromkeys(data for data, _ in cases), None]:
        cells = []
        for a, b in PAIRS:
            of_seed = defaultdict(list)
            for name, share in cases:
                if only in (name, None):
                    ours, theirs = result[name, share, a], result[name, share, b]
                    for seed in ours.keys() & theirs.keys():
                        of_seed[name, seed].append(ours[seed] - theirs[seed])
            means = np.array([np.mean(values) for values in of_seed.values()])
            error = means.std(ddof=1) / np.sqrt(means.size) if means.size > 1 else np.nan
            cells.append(f"{means.mean():+.4f} ± {error:.4f}" if means.size else "")
        lines.append(f"| {only or 'all'} | " + " | ".join(cells) + " |")
    lines += ["", "Plain training on all features, which has no limit, for comparison of the libraries:", ""]
    lines += ["| data | XGBoost | LightGBM | difference |", "|---|---|---|---|"]
    plain = plain_losses(rows)
    for data in dict.fromkeys(data for data, _ in cases):
        ours, theirs = plain[data, "xgb levels"], plain[data, "lgb"]
        seeds = sorted(ours.keys() & theirs.keys())
        difference = np.array([ours[seed] - theirs[seed] for seed in seeds])
        error = difference.std(ddof=1) / np.sqrt(len(seeds)) if len(seeds) > 1 else np.nan
        xgb_mean, lgb_mean = (np.mean([losses[seed] for seed in seeds]) for losses in (ours, theirs))
        lines.append(f"| {data} | {xgb_mean:.4f} | {lgb_mean:.4f} | {difference.mean():+.4f} ± {error:.4f} |")
    return "\n".join(lines) + "\n"


def plain_losses(rows: list[dict[str, str]]) -> dict[tuple[str, str], dict[int, float]]:
    """Return the test log-loss of trials without mu and budget, by data set, method and seed."""
    losses: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for row in rows:
        if float(row["mu"]) == 0 and not row["budget"]:
            losses[row["data"], row["method"]][int(row["seed"])] = float(row["test"])
    return losses


PAIRS = (
    ("xgb levels", "lgb"),
    ("xgb interaction", "lgb"),
    ("xgb levels", "xgb interaction"),
    ("xgb levels", "xgb levels, every round"),
    ("xgb levels", "xgb selected"),
    ("lgb", "lgb selected"),
    ("xgb selected", "lgb selected"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="*", default=list(PROBLEMS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--mus", nargs="*", type=float, default=[0.0, *MUS])
    parser.add_argument("--summary", action="store_true", help="only write the summary of the trials that are there")
    arguments = parser.parse_args()
    table = ResultTable(RESULTS / "budget.csv", FIELDS, FIELDS[:5])
    if not arguments.summary:
        run(table, arguments.data, arguments.seeds, arguments.methods, arguments.mus)
    text = summary(table.read())
    table.path.with_suffix(".md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
