"""Pictures, in scikit-learn's Display style; matplotlib is imported when one is drawn."""

from grbb_ext.plotting._cost_accuracy_display import CostAccuracyDisplay
from grbb_ext.plotting._propagation_display import PropagationDisplay
from grbb_ext.plotting._trees_accuracy_display import TreesAccuracyDisplay
from grbb_ext.plotting._variance_display import VarianceDisplay

__all__ = ["CostAccuracyDisplay", "PropagationDisplay", "TreesAccuracyDisplay", "VarianceDisplay"]
