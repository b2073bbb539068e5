"""The methods: propagate and train, this package, scikit-learn, and graphlearning where it is installed."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
import xgboost as xgb
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NearestNeighbors
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from benchmarks.rivals._problem import (
    BINS,
    LOGISTIC,
    N_NEIGHBORS,
    TREES,
    Fitted,
    Problem,
    fit_objective,
    fit_targets,
    of_booster,
    parameters,
)
from grbb_ext import Committee, Targets, grbb_objective, knn_graph
from grbb_ext.teacher import sharpened

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


class SharedBooster(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The booster of the study with the two methods that self-training asks for, on any version of XGBoost."""

    def __init__(self, max_bin: int = BINS) -> None:
        self.max_bin = max_bin

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> SharedBooster:
        """Train on rows of class 0 and 1."""
        self.classes_ = np.array([0, 1])
        data = xgb.QuantileDMatrix(X, label=y, max_bin=self.max_bin, nthread=1)
        self.booster_ = xgb.train(parameters(self.max_bin) | LOGISTIC, data, max(TREES))
        return self

    def predict_proba(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return the probability of both classes."""
        p = self.booster_.predict(xgb.DMatrix(X, nthread=1)).astype(np.float64)
        return np.column_stack([1 - p, p])


def self_training(problem: Problem) -> Fitted:
    """Self-training as it comes (threshold .75, ten iterations at most) over the same booster."""
    model = SelfTrainingClassifier(SharedBooster(problem.max_bin)).fit(problem.split.X, problem.split.y)
    return of_booster(model.estimator_.booster_, problem)


def spread(problem: Problem) -> LabelSpreading:
    """Fit label spreading on the graph's neighbours and columns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LabelSpreading(kernel="knn", n_neighbors=N_NEIGHBORS, max_iter=100, n_jobs=1).fit(
            problem.columns[0], problem.split.y
        )


def class_1(distributions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of class 1; NaN for rows that no label reached."""
    total = distributions.sum(axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(total > 0, distributions[:, 1] / total, np.nan))


def spread_then_train(problem: Problem) -> Fitted:
    """Hard labels of label spreading train the same booster."""
    q = class_1(spread(problem).label_distributions_)
    return fit_targets(problem, np.where(np.isnan(q), np.nan, q > 0.5))


def spreading(problem: Problem) -> Fitted:
    """Label spreading itself predicts the test rows; there are no trees."""
    model = spread(problem)
    with np.errstate(invalid="ignore", divide="ignore"):
        classes = model.predict(problem.columns[1])
    return Fitted(lambda trees: classes)


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
