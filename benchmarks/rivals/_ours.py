"""The methods of this package."""

from __future__ import annotations

from benchmarks.rivals._booster import Fitted, fit_objective
from benchmarks.rivals._problem import Problem
from grbb_ext import grbb_objective, knn_graph


def default(problem: Problem) -> Fitted:
    """Take what ``grbb_objective(X, y)`` gives."""
    return fit_objective(problem, grbb_objective(problem.split.X, problem.split.y, verbose=False))


def refined_alone(problem: Problem) -> Fitted:
    """Trust the refined graph: the default without its guard."""
    return fit_objective(problem, grbb_objective(problem.split.X, problem.split.y, guard=False, verbose=False))


def knn_smooth(problem: Problem) -> Fitted:
    """Sharpened smooth targets on the plain graph."""
    obj = grbb_objective(
        None, problem.split.y, graph=problem.graph, rule="targets", propagation="smooth", sharpen=3.0, verbose=False
    )
    return fit_objective(problem, obj)


def paper(problem: Problem) -> Fitted:
    """Follow the paper: binary weights, harmonic propagation, hessian 1."""
    graph = knn_graph(problem.split.X, weights="binary", verbose=False, n_jobs=1)
    return fit_objective(problem, grbb_objective(None, problem.split.y, graph=graph, preset="paper", verbose=False))


def default_affordable(problem: Problem) -> Fitted:
    """Take the default, with a graph on the columns that the budget could buy one by one."""
    assert problem.limit is not None
    costs, budget = problem.limit.costs, problem.limit.budget
    columns = [j for j in range(problem.split.X.shape[1]) if costs.total([j]) <= budget]
    return fit_objective(problem, grbb_objective(problem.split.X[:, columns], problem.split.y, verbose=False))
