"""The objective: one callable that makes a stock booster semi-supervised."""

from grbb_ext.objective._make import grbb_objective
from grbb_ext.objective._objective import GRBBObjective, UnreachableRowsWarning

__all__ = ["GRBBObjective", "UnreachableRowsWarning", "grbb_objective"]
