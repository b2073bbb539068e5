"""The methods of the cost/accuracy curves: each gives several points of cost and test scores from one trial."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.paper.boosted import DEFAULT, GBRT, LAP_GBRT, PAPER, Boosted, Library, Method, Rows, Settings, fit
from benchmarks.paper.early_exit import early_exit, exit_unpromising
from benchmarks.paper.linear import Linear
from benchmarks.paper.tuning import MAX_TREES, N_PENALTIES, N_TRIALS, SMALLEST, path_of, tune, tune_manifold
from grbb_ext import FeatureCosts

#: The paper's values: nothing, and 4^-5 to 4^4.
MUS = (0.0, *(4.0**power for power in range(-5, 5)))
THRESHOLDS = (0.55, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
KEEPS = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0)
#: A Newton gain g²/h is at least four times the squared error g² that it stands for, as h is 1/4 at most. So mu means
#: nearly the same for all methods if those with Newton weights take four times as much.
NEWTON = 4.0
#: Trees between two points of GBRT, and between two exits.
STAGE = 10
UNIT_HESSIAN = (LAP_GBRT, PAPER)
#: A column of this many times the highest price enters no path.
CLOSED = 1e9

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """Rows to learn from and to test on, and prices.

    Attributes
    ----------
    X, y : ndarray
        Training rows; y is -1 where there is no label.
    X_test, truth : ndarray
        Test rows and their classes, which only the metrics see.
    costs : FeatureCosts
        Prices by column number.
    queries, test_queries : ndarray or None
        The query of each row, for ranking.
    """

    X: NDArray[Any]
    y: NDArray[Any]
    X_test: NDArray[Any]
    truth: NDArray[Any]
    costs: FeatureCosts
    queries: NDArray[Any] | None = None
    test_queries: NDArray[Any] | None = None


@dataclass(frozen=True)
class Plan:
    """The grids of the curves.

    Attributes
    ----------
    n_trees : int
        Trees of every boosted model; prices may end training earlier.
    mus : tuple of float
        Trade-offs, in squared error per mean price of a feature that is bought alone.
    budgets : tuple of float
        Hard budgets: where there are any, methods that can keep to one have a point for each, and `mus` are not used.
    per_row : bool
        Whether `mus` are multiplied by the number of rows that a method learns from; gains are sums over these.
    exits : tuple of float
        Thresholds of Early-exit, or shares of documents to keep.
    is_ranking : bool
        Whether unpromising documents leave rather than decided rows.
    n_penalties : int
        Models on the path of a linear method.
    n_trials : int
        Trials of the search of hyper-parameters.
    max_bin : int
        Of the boosters.
    """

    n_trees: int = 200
    mus: tuple[float, ...] = MUS
    budgets: tuple[float, ...] = ()
    per_row: bool = False
    exits: tuple[float, ...] = THRESHOLDS
    is_ranking: bool = False
    n_penalties: int = N_PENALTIES
    n_trials: int = N_TRIALS
    max_bin: int = 64

    @property
    def stages(self) -> list[int]:
        """Numbers of trees after which GBRT is read and rows may leave."""
        return list(range(STAGE, self.n_trees + 1, STAGE))

    @property
    def limits(self) -> list[dict[str, float]]:
        """Budgets, or values of mu, of the points of a method that pays for features."""
        return [{"budget": budget} for budget in self.budgets] or [{"mu": mu} for mu in self.mus]


class Point(NamedTuple):
    """A point of a curve: what a row costs on average, the scores of the test rows, and what was chosen."""

    cost: float
    scores: NDArray[np.float64]
    details: dict[str, Any]


class Trial:
    """One split, with what its methods share: searched settings and models.

    Parameters
    ----------
    problem : Problem
        The split.
    plan : Plan
        The grids.
    seed : int
        Of the search.
    """

    def __init__(self, problem: Problem, plan: Plan, seed: int) -> None:
        self.problem, self.plan, self.seed = problem, plan, seed
        self.rows = Rows(problem.X, problem.y, plan.max_bin)
        #: Price of each column when it is bought alone.
        self.prices = problem.costs.marginals()
        share = float(np.mean(problem.y[problem.y >= 0]))
        self.log_odds = float(np.log(share / (1 - share)))
        self.tuned = cache(self._tuned)
        self.model = cache(self._model)

    def _tuned(self, method: Method) -> tuple[Settings, float]:
        p, plan = self.problem, self.plan
        found, loss = tune(p.X, p.y, method, plan.n_trees, self.seed, groups=p.queries, n_trials=plan.n_trials)
        # The search grows fewer trees: the steps of all trees together are to be as long as there.
        return replace(found, eta=found.eta * min(1.0, MAX_TREES / plan.n_trees)), loss

    def _model(
        self, method: Method, library: Library = "xgboost", *, mu: float = 0.0, budget: float | None = None
    ) -> Boosted:
        scaled = mu / float(self.prices.mean()) * (1.0 if method in UNIT_HESSIAN else NEWTON)
        if self.plan.per_row:
            scaled *= np.sum(self.problem.y >= 0) if method.objective is None else self.problem.y.size
        settings = self.tuned(method)[0]
        limits: dict[str, Any] = {"costs": self.problem.costs, "mu": scaled, "budget": budget}
        return fit(self.rows, method, settings, self.plan.n_trees, library=library, **limits)

    def chosen(self, method: Method) -> dict[str, Any]:
        """Return what the search has found, for the details of a row."""
        settings, loss = self.tuned(method)
        found = {name: getattr(settings, name) for name in method.space}
        return {name: _short(value) for name, value in (found | {"loss": loss}).items()}

    def point(self, used: list[int], scores: NDArray[np.float64], details: dict[str, Any]) -> Point:
        """Return the point of a model that asks for some columns.

        A model that asks for nothing says what the labels say, whatever the method: the class that most of them have.
        """
        if not used:
            scores = np.full(len(self.problem.X_test), self.log_odds)
        return Point(self.problem.costs.total(used), scores, details | {"features": len(used)})


class CurveMethod(NamedTuple):
    """A method: the settings of its points, from dear to cheap or from cheap to dear, and the points in this order."""

    settings: Callable[[Plan], list[dict[str, Any]]]
    points: Callable[[Trial], Iterator[Point]]


def _nothing(trial: Trial) -> Iterator[Point]:
    everything = trial.problem.costs.total(range(trial.problem.costs.n_features))
    yield trial.point([], np.empty(0), {"everything": everything, "mean price": _short(float(trial.prices.mean()))})


def _by_trees(trial: Trial) -> Iterator[Point]:
    model, chosen = trial.model(GBRT), trial.chosen(GBRT)
    for trees, scores in zip(trial.plan.stages, model.margins(trial.problem.X_test, trial.plan.stages), strict=True):
        yield trial.point(model.features(trees), scores, chosen)


def _early_exit(trial: Trial) -> Iterator[Point]:
    problem, model, stages = trial.problem, trial.model(GBRT), trial.plan.stages
    margins, used = model.margins(problem.X_test, stages), [model.features(trees) for trees in stages]
    for limit in trial.plan.exits:
        if trial.plan.is_ranking:
            found = exit_unpromising(margins, used, problem.costs.total, limit, problem.test_queries)
        else:
            found = early_exit(margins, used, problem.costs.total, limit)
        details = trial.chosen(GBRT) | {"mean stage": _short(float(found.stages.mean()))}
        yield Point(float(found.costs.mean()), found.scores, details)


def _swept(method: Method, library: Library = "xgboost") -> CurveMethod:
    def points(trial: Trial) -> Iterator[Point]:
        for limit in trial.plan.limits:
            model = trial.model(method, library, **limit)
            trees = trial.plan.n_trees
            scores = model.margins(trial.problem.X_test, [trees])[0]
            yield trial.point(model.features(trees), scores, trial.chosen(method) | {"grown": model.n_trees})

    return CurveMethod(lambda plan: [{"trees": plan.n_trees} | limit for limit in plan.limits], points)


def _linear(trial: Trial) -> Iterator[Point]:
    return _path(trial, lambda prices: path_of(trial.rows, prices, n_penalties=trial.plan.n_penalties), {})


def _manifold(trial: Trial) -> Iterator[Point]:
    p, plan = trial.problem, trial.plan
    chosen, loss = tune_manifold(p.X, p.y, trial.prices, trial.seed, groups=p.queries, n_trials=plan.n_trials)
    details = {name: _short(value) for name, value in (chosen._asdict() | {"loss": loss}).items()}
    yield from _path(trial, lambda prices: path_of(trial.rows, prices, chosen, plan.n_penalties), details)


def _path(trial: Trial, path: Callable[[Floats], list[Linear]], details: dict[str, Any]) -> Iterator[Point]:
    budgets, prices = trial.plan.budgets, trial.prices
    models = [within(path, prices, trial.problem.costs, budget) for budget in budgets] if budgets else path(prices)
    for model in models:
        yield trial.point(model.features(), model.scores(trial.problem.X_test), details)


def within(path: Callable[[Floats], list[Linear]], prices: Floats, costs: FeatureCosts, budget: float) -> Linear:
    """Return the last model of a path of l1 penalties on which nothing is bought that does not fit into the budget.

    Columns are bought in the order in which the path asks for them. Where one does not fit, it is closed, and the path
    goes on without it.
    """
    closed = np.zeros(prices.size, dtype=bool)
    while True:
        models = path(np.where(closed, CLOSED * prices.max(), prices))
        bought: list[int] = []
        refused = closed.copy()
        for model in models:
            new = [j for j in model.features() if j not in bought and not refused[j]]
            for j in sorted(new, key=lambda j: -abs(model.weights[j])):
                if costs.total([*bought, j]) <= budget:
                    bought.append(j)
                else:
                    refused[j] = True
        if np.array_equal(refused, closed):
            # The first model has no columns; where nothing else is left, the path ends in closed ones.
            return [model for model in models if not closed[model.features()].any()][-1]
        # Each of the others would be refused in a round of its own.
        closed = refused | np.array([costs.total([*bought, j]) > budget for j in range(prices.size)])


def _penalties(plan: Plan) -> list[dict[str, Any]]:
    if plan.budgets:
        return [*plan.limits]
    # As shares of the largest penalty, which depends on the data.
    return [{"penalty": _short(share)} for share in np.geomspace(1.0, SMALLEST, plan.n_penalties).tolist()]


def _exits(plan: Plan) -> list[dict[str, Any]]:
    name = "keep" if plan.is_ranking else "threshold"
    return [{"trees": plan.n_trees, name: limit} for limit in plan.exits]


def _short(value: Any) -> Any:
    return float(f"{value:.4g}") if isinstance(value, float) else value


NOTHING = "no features"
METHODS: dict[str, CurveMethod] = {
    NOTHING: CurveMethod(lambda plan: [{}], _nothing),
    "GBRT": CurveMethod(lambda plan: [{"trees": plan.n_trees, "first": t} for t in plan.stages], _by_trees),
    "Early-exit": CurveMethod(_exits, _early_exit),
    "Greedy Miser": _swept(GBRT),
    "CEGB": _swept(GBRT, "lightgbm"),
    "LRL1": CurveMethod(_penalties, _linear),
    "LapLRL1": CurveMethod(_penalties, _manifold),
    "LapGBRT": _swept(LAP_GBRT),
    "GRBB (paper)": _swept(PAPER),
    "GRBB (default)": _swept(DEFAULT),
}
