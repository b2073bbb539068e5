"""Feature costs: what features need, what that costs, a ledger of what a model has paid, and the sweep of mu."""

from grbb_ext.costs._cost_path import CostPath, CostPoint, cost_path
from grbb_ext.costs._feature_costs import FeatureCosts, ForestLike
from grbb_ext.costs._ledger import BudgetError, Ledger, Purchase

__all__ = [
    "BudgetError",
    "CostPath",
    "CostPoint",
    "FeatureCosts",
    "ForestLike",
    "Ledger",
    "Purchase",
    "cost_path",
]
