"""The methods of this package."""

from __future__ import annotations

import scipy.sparse as sp

from benchmarks.rivals._booster import Fitted, fit_objective, fit_targets
from benchmarks.rivals._problem import Problem
from benchmarks.rivals._propagate import propagated
from grbb_ext import Committee, grbb_objective, knn_graph
from grbb_ext.teacher import sharpened

SHARPEN = 3.0


def default(problem: Problem) -> Fitted:
    """Take what ``grbb_objective(X, y)`` gives."""
    return fit_objective(problem, grbb_objective(problem.split.X, problem.split.y, verbose=False))


def refined_alone(problem: Problem) -> Fitted:
    """Trust the refined graph alone."""
    alone = Committee(("graph",), sharpen=SHARPEN)
    X, y = problem.split.X, problem.split.y
    return fit_objective(problem, grbb_objective(X, y, graph="refined", teacher=alone, verbose=False))


def refined_distances(problem: Problem) -> Fitted:
    """Take the distances of the refined graph (components and ranks), and no trees: the graph that is refined."""
    plain, _ = plain_and_learned(problem)
    return fit_targets(problem, propagated(problem, plain, "smooth", sharpen=SHARPEN))


def two_operators(problem: Problem) -> Fitted:
    """Propagate on the plain and on the re-ranked graph and average, where the refined graph averages affinities."""
    q = [propagated(problem, graph, "smooth", sharpen=1.0) for graph in plain_and_learned(problem)]
    return fit_targets(problem, sharpened((q[0] + q[1]) / 2, SHARPEN))


def plain_and_learned(problem: Problem) -> tuple[sp.csr_array, sp.csr_array]:
    """Return the graph that is refined, and that of the neighbours which trees chose."""
    made = grbb_objective(problem.split.X, problem.split.y, graph="refined", teacher="graph", verbose=False)
    refinement = made.refinement_
    assert refinement is not None
    return refinement.plain, sp.csr_array(2 * refinement.graph - refinement.plain)


def knn_smooth(problem: Problem) -> Fitted:
    """Sharpened smooth targets on the plain graph."""
    teacher = Committee(sharpen=SHARPEN)
    obj = grbb_objective(None, problem.split.y, graph=problem.graph, teacher=teacher, verbose=False)
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
