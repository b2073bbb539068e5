"""Laplace and Poisson learning of the package graphlearning, whose labels train the same booster."""

from __future__ import annotations

import contextlib
import importlib.util
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from benchmarks.rivals._booster import Fitted, fit_targets
from benchmarks.rivals._problem import N_NEIGHBORS, Problem


def is_installed() -> bool:
    """Return whether graphlearning, which is no dependency, can be used."""
    return importlib.util.find_spec("graphlearning") is not None


def labels_of(problem: Problem, kind: str) -> NDArray[np.float64]:
    """Return the labels that graphlearning gives all training rows, on its own Gaussian weights.

    Its neighbour search is approximate and random; exact neighbours are handed to it instead. Poisson learning runs the
    published iteration: the package's default, conjugate gradients, leaves the constant of the solution free, which
    with skewed labels costs up to 40 points (digits 1 and 8), and does not converge on a graph of several components.
    """
    import graphlearning as gl

    X = problem.columns[0]
    distance, neighbors = NearestNeighbors(n_neighbors=N_NEIGHBORS + 1, n_jobs=1).fit(X).kneighbors(X)
    W = gl.weightmatrix.knn(X, N_NEIGHBORS, knn_data=(neighbors, distance))
    model: Any = gl.ssl.laplace(W) if kind == "laplace" else gl.ssl.poisson(W, solver="gradient_descent")
    rows = problem.labeled
    with contextlib.redirect_stdout(io.StringIO()):
        labels = model.fit_predict(rows, problem.split.y[rows])
    return np.asarray(labels, dtype=np.float64)


def laplace(problem: Problem) -> Fitted:
    """Laplace learning, then the booster."""
    return fit_targets(problem, labels_of(problem, "laplace"))


def poisson(problem: Problem) -> Fitted:
    """Poisson learning, then the booster."""
    return fit_targets(problem, labels_of(problem, "poisson"))
