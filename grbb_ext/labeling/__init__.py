"""Which rows to label next, and how many labels are worth their price."""

from grbb_ext.labeling._frozen_posterior import FrozenPosterior
from grbb_ext.labeling._plan import LabelCurve, LabelPlan, plan_labels
from grbb_ext.labeling._suggest import LabelSuggestions, Strategy, suggest_labels

__all__ = [
    "FrozenPosterior",
    "LabelCurve",
    "LabelPlan",
    "LabelSuggestions",
    "Strategy",
    "plan_labels",
    "suggest_labels",
]
