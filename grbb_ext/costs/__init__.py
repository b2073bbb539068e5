"""Feature costs: the sources that features need and their prices, and a ledger of what a model has paid.

Greedy Miser: which features a boosting round should buy, for a booster that grows trees on masked columns.

Nothing here imports a booster. A tree is grown through a callable, the *probe*, so that every decision can be tested
with plain arrays; :mod:`grbb_ext.adapters.xgboost` supplies one for XGBoost.
"""

from grbb_ext.costs._engine import PriceEngine
from grbb_ext.costs._feature_costs import FeatureCosts, ForestLike
from grbb_ext.costs._judge import Choice, Groups, Growth, Judge, Mask, gain_bound
from grbb_ext.costs._ledger import BudgetError, Ledger, Purchase
from grbb_ext.costs._reading import check_budget, check_price, shorten, unknown_name
from grbb_ext.costs._strategies import Schedule, choose_by_interaction, choose_by_levels, stop_reason

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
    "PriceEngine",
    "Purchase",
    "Schedule",
    "check_budget",
    "check_price",
    "choose_by_interaction",
    "choose_by_levels",
    "gain_bound",
    "shorten",
    "stop_reason",
    "unknown_name",
]
