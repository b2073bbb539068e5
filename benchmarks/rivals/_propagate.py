"""Propagate, then train: targets from a graph for the same booster."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from benchmarks.rivals._booster import Fitted, fit_targets
from benchmarks.rivals._problem import N_NEIGHBORS, Problem
from grbb_ext import Committee, Targets, grbb_objective, knn_graph

PCA_VARIANCE, PCA_MOST = 0.95, 50


def propagated(
    problem: Problem, graph: sp.csr_array, propagation: str, *, sharpen: float = 1.0, hard: bool = False
) -> NDArray[np.float64]:
    """Return the targets of ``rule="targets"`` on a graph; NaN where no label reaches."""
    obj = grbb_objective(
        None,
        problem.split.y,
        graph=graph,
        teacher=Committee(sharpen=sharpen),
        propagation=propagation,
        rule=Targets(hard=hard),
        n_jobs=1,
        verbose=False,
    )
    assert obj.targets_ is not None
    q = obj.targets_.astype(np.float64)
    q[obj.unreachable_] = np.nan
    return q


def pca_graph(problem: Problem) -> sp.csr_array:
    """Build the graph on principal components: standardised columns, 95 % of the variance, 50 components at most."""
    X = problem.columns[0].astype(np.float64)
    deviation = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    # The full decomposition is exact; the number of components that explain 95 % is known after it.
    pca = PCA(svd_solver="covariance_eigh" if X.shape[0] > X.shape[1] else "full").fit(X)
    enough = 1 + int(np.searchsorted(pca.explained_variance_ratio_.cumsum(), PCA_VARIANCE))
    scores = pca.transform(X)[:, : min(enough, PCA_MOST)]
    return knn_graph(scores, N_NEIGHBORS, scale=None, verbose=False, n_jobs=1)


def hard(problem: Problem) -> Fitted:
    """Hard pseudo-labels from the plain graph."""
    return fit_targets(problem, propagated(problem, problem.graph, "nonlocal", hard=True))


def soft(problem: Problem) -> Fitted:
    """Soft pseudo-labels from the plain graph."""
    return fit_targets(problem, propagated(problem, problem.graph, "nonlocal"))


def hard_pca(problem: Problem) -> Fitted:
    """Hard pseudo-labels from a graph on principal components."""
    return fit_targets(problem, propagated(problem, pca_graph(problem), "nonlocal", hard=True))
