"""Feature costs: what features need, what that costs, and a ledger of what a model has paid."""

from grbb_ext.costs._feature_costs import FeatureCosts, ForestLike
from grbb_ext.costs._ledger import BudgetError, Ledger, Purchase

__all__ = ["BudgetError", "FeatureCosts", "ForestLike", "Ledger", "Purchase"]
