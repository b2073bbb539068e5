"""Feature costs: what features need, what that costs, a ledger of what a model has paid, and the sweep of mu.

Greedy Miser: which features a boosting round should buy, for a booster that grows trees on masked columns.

Nothing here knows a booster. A tree is grown through a callable, the *probe*, so that every decision can be tested with
plain arrays; :mod:`grbb_ext.adapters.xgboost` supplies one for XGBoost.
"""

from grbb_ext.costs._feature_costs import FeatureCosts, ForestLike
from grbb_ext.costs._judge import Choice, Groups, Growth, Judge, Mask, Probe, gain_bound
from grbb_ext.costs._ledger import BudgetError, Ledger, Purchase
from grbb_ext.costs._prices import check_price, decimal, exact_sum, shorten, unknown_name
from grbb_ext.costs._schedule import Schedule, stop_reason
from grbb_ext.costs._strategies import choose_by_interaction, choose_by_levels, path_groups, price_levels

__all__ = [
    "BudgetError",
    "Choice",
    "FeatureCosts",
    "ForestLike",
    "Groups",
    "Growth",
    "Judge",
    "Ledger",
    "Mask",
    "Probe",
    "Purchase",
    "Schedule",
    "check_price",
    "choose_by_interaction",
    "choose_by_levels",
    "decimal",
    "exact_sum",
    "gain_bound",
    "path_groups",
    "price_levels",
    "shorten",
    "stop_reason",
    "unknown_name",
]
