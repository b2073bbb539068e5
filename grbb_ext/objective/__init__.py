"""The objective: one callable that makes a stock booster semi-supervised."""

from grbb_ext.objective._make import Recipe, grbb_objective
from grbb_ext.objective._objective import GRBBObjective, UnreachableRowsWarning
from grbb_ext.objective._raw_scores import check_raw_scores

__all__ = ["GRBBObjective", "Recipe", "UnreachableRowsWarning", "check_raw_scores", "grbb_objective"]
