"""The objective: one callable that makes a stock booster semi-supervised."""

from grbb_ext.objective._make import grbb_objective
from grbb_ext.objective._objective import GRBBObjective, UnreachableRowsWarning
from grbb_ext.objective._raw_scores import check_raw_scores
from grbb_ext.objective._settings import RuleName, Settings, choose_graph, choose_rule

__all__ = [
    "GRBBObjective",
    "RuleName",
    "Settings",
    "UnreachableRowsWarning",
    "check_raw_scores",
    "choose_graph",
    "choose_rule",
    "grbb_objective",
]
