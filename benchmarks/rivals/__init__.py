"""What people do today with few labels and a booster, and what this package does, behind one signature."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.rivals import _methods
from benchmarks.rivals._problem import (
    DEPTH,
    LEARNING_RATE,
    TREES,
    Fitted,
    Problem,
    bins,
    fit_labeled,
    fit_targets,
    parameters,
)

__all__ = [
    "DEPTH",
    "LEARNING_RATE",
    "METHODS",
    "OURS",
    "TREES",
    "Fitted",
    "Problem",
    "bins",
    "fit_labeled",
    "fit_targets",
    "parameters",
]

Method = Callable[[Problem], Fitted]

#: This package: what a user gets without a thought comes first.
OURS: dict[str, Method] = {
    "default": _methods.default,
    "refined graph alone": _methods.refined_alone,
    "two operators": _methods.two_operators,
    "refined distances": _methods.refined_distances,
    "knn smooth": _methods.knn_smooth,
    "paper": _methods.paper,
}

#: All methods, in the order of the tables.
METHODS: dict[str, Method] = OURS | {
    "labeled only": fit_labeled,
    "hard": _methods.hard,
    "soft": _methods.soft,
    "hard, PCA graph": _methods.hard_pca,
    "self-training": _methods.self_training,
    "spreading, booster": _methods.spread_then_train,
    "spreading": _methods.spreading,
}
if _methods.is_installed():
    METHODS |= {"laplace, booster": _methods.laplace, "poisson, booster": _methods.poisson}
