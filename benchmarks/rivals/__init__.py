"""What people do today with few labels and a booster, and what this package does, behind one signature."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.rivals import _graphlearning, _ours, _propagate, _scikit
from benchmarks.rivals._booster import DEPTH, LEARNING_RATE, TREES, Fitted, fit_labeled, fit_targets, parameters
from benchmarks.rivals._problem import Limit, Problem, bins

__all__ = [
    "DEPTH",
    "LEARNING_RATE",
    "METHODS",
    "OURS",
    "TREES",
    "UNDER_BUDGET",
    "Fitted",
    "Limit",
    "Problem",
    "bins",
    "fit_labeled",
    "fit_targets",
    "parameters",
]

Method = Callable[[Problem], Fitted]

#: This package: what a user gets without a thought comes first.
OURS: dict[str, Method] = {
    "default": _ours.default,
    "refined graph alone": _ours.refined_alone,
    "two operators": _ours.two_operators,
    "refined distances": _ours.refined_distances,
    "knn smooth": _ours.knn_smooth,
    "paper": _ours.paper,
}

#: All methods, in the order of the tables.
METHODS: dict[str, Method] = OURS | {
    "labeled only": fit_labeled,
    "hard": _propagate.hard,
    "soft": _propagate.soft,
    "hard, PCA graph": _propagate.hard_pca,
    "self-training": _scikit.self_training,
    "spreading, booster": _scikit.spread_then_train,
    "spreading": _scikit.spreading,
}
if _graphlearning.is_installed():
    METHODS |= {"laplace, booster": _graphlearning.laplace, "poisson, booster": _graphlearning.poisson}

#: The methods that can train under a budget: all that end in our own call of the booster.
UNDER_BUDGET: dict[str, Method] = {
    "default": METHODS["default"],
    "default, affordable graph": _ours.default_affordable,
    **{
        name: METHODS[name]
        for name in ("knn smooth", "labeled only", "hard", "soft", "hard, PCA graph", "spreading, booster")
    },
}
