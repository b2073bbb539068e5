"""Pictures, in scikit-learn's Display style; matplotlib is imported when one is drawn."""

from grbb_ext.plotting._curves import CostAccuracyDisplay, TreesAccuracyDisplay
from grbb_ext.plotting._propagation import PropagationDisplay
from grbb_ext.plotting._variance import VarianceDisplay

__all__ = [
    "CostAccuracyDisplay",
    "PropagationDisplay",
    "TreesAccuracyDisplay",
    "VarianceDisplay",
]
