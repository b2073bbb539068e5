"""Greedy Miser: which features a boosting round should buy, for a booster that grows trees on masked columns.

Nothing here knows a booster. A tree is grown through a callable, the *probe*, so that every decision can be tested with
plain arrays; :mod:`grbb_ext.adapters.xgboost` supplies one for XGBoost.
"""

from grbb_ext.miser._bound import gain_bound
from grbb_ext.miser._choice import Choice, Growth, Judge, Probe
from grbb_ext.miser._interaction import choose_by_interaction, path_groups
from grbb_ext.miser._levels import choose_by_levels, price_levels
from grbb_ext.miser._schedule import Schedule
from grbb_ext.miser._stop import stop_reason

__all__ = [
    "Choice",
    "Growth",
    "Judge",
    "Probe",
    "Schedule",
    "choose_by_interaction",
    "choose_by_levels",
    "gain_bound",
    "path_groups",
    "price_levels",
    "stop_reason",
]
