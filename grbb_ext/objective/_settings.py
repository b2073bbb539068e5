"""How an objective is made from a graph and labels."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, get_args

import numpy as np

from grbb_ext.labels import ClassWeight, LossName
from grbb_ext.propagation import Propagation, PropagationKind
from grbb_ext.teacher import RefinedGraph, RefinementBasis

RuleName = Literal["paper", "corrected", "targets", "laplacian", "labeled"]
Hessian = Literal["newton", "unit"]
GraphName = Literal["knn", "refined"]

# What graph=None builds from X: "knn" or "refined". The paper's preset and its rules always take "knn".
DEFAULT_GRAPH: GraphName = "refined"

PROPAGATION_OF_RULE: dict[str, PropagationKind] = {"paper": "harmonic", "corrected": "nonlocal", "targets": "smooth"}
HESSIAN_OF_RULE: dict[str, Hessian] = {
    "paper": "unit",
    "laplacian": "unit",
    "corrected": "newton",
    "targets": "newton",
    "labeled": "newton",
}


def choose_rule(
    preset: Literal["paper"] | None,
    rule: RuleName | None,
    propagation: PropagationKind | Propagation | None,
    hessian: Hessian | None,
) -> tuple[RuleName, PropagationKind | Propagation, Hessian]:
    """Fill in what a preset and a rule imply.

    Examples
    --------
    >>> choose_rule(None, None, None, None), choose_rule("paper", None, None, None)
    (('targets', 'smooth', 'newton'), ('paper', 'harmonic', 'unit'))
    """
    if preset not in (None, "paper"):
        raise ValueError(f"preset must be 'paper' or None, got {preset!r}.")
    if preset == "paper":
        for name, given, meant in (
            ("rule", rule, "paper"),
            ("propagation", propagation, "harmonic"),
            ("hessian", hessian, "unit"),
        ):
            if given not in (None, meant):
                raise ValueError(f"preset='paper' means {name}={meant!r}, got {given!r}. Leave one of them out.")
        rule = "paper"
    rule = rule or "targets"
    return (
        rule,
        propagation or PROPAGATION_OF_RULE.get(rule, "harmonic"),
        hessian or HESSIAN_OF_RULE.get(rule, "newton"),
    )


@dataclass(frozen=True)
class Settings:
    """What does not depend on the rows; kept with the objective, so that a subset can be made the same way."""

    rule: RuleName
    propagation: PropagationKind | Propagation
    hessian: Hessian
    loss: LossName
    unlabeled: Any
    class_weight: ClassWeight
    lam: float
    correction: float
    sharpen: float
    hard: bool
    solver_settings: dict[str, Any]
    guard: bool = False
    random_state: int = 0

    def check(self) -> None:
        """Raise where settings contradict each other."""
        if self.rule not in HESSIAN_OF_RULE:
            raise ValueError(f"rule must be one of {sorted(HESSIAN_OF_RULE)}, got {self.rule!r}.")
        if self.hessian not in ("newton", "unit"):
            raise ValueError(f"hessian must be 'newton' or 'unit', got {self.hessian!r}.")
        if self.hessian == "newton" and self.rule in ("paper", "laplacian"):
            raise ValueError(f"rule={self.rule!r} is defined with hessian 1: leave hessian out, or use 'corrected'.")
        for name, lowest in (("lam", 0.0), ("correction", 0.0), ("sharpen", 1.0)):
            value: Any = getattr(self, name)
            if not isinstance(value, Real):
                raise TypeError(f"{name} must be a number, got {value!r}.")
            if not (np.isfinite(float(value)) and float(value) >= lowest):
                raise ValueError(f"{name} must be a finite number of at least {lowest:g}, got {value!r}.")
        if not isinstance(self.guard, bool | np.bool_):
            raise ValueError(f"guard must be True or False, got {self.guard!r}.")
        if self.rule == "laplacian" and self.lam == 0:
            raise ValueError("rule='laplacian' needs lam > 0: with lam=0 the unlabelled rows are ignored.")


def choose_graph(graph: Any, preset: str | None, rule: RuleName) -> Any:
    """Fill in the default graph and read names: a RefinedGraph, ``"knn"``, or the matrix that was given.

    Examples
    --------
    >>> choose_graph(None, "paper", "paper"), choose_graph("refined", None, "targets").n_candidates
    ('knn', 30)
    """
    if graph is None:
        graph = DEFAULT_GRAPH if preset is None and rule == "targets" else "knn"
    if isinstance(graph, str) and graph not in get_args(GraphName):
        raise ValueError(f"graph must be 'knn', 'refined', a RefinedGraph or an affinity, got {graph!r}.")
    refined = isinstance(graph, RefinedGraph | RefinementBasis) or (isinstance(graph, str) and graph == "refined")
    if refined and preset == "paper":
        raise ValueError("preset='paper' means graph='knn', or a ready affinity. Leave one of them out.")
    if refined and rule == "labeled":
        raise ValueError(
            "rule='labeled' propagates nothing, so there is nothing to refine a graph by: use graph='knn'."
        )
    return RefinedGraph() if isinstance(graph, str) and graph == "refined" else graph
