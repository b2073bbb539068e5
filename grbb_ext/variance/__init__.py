"""Variance of the predicted probabilities (paper, section 5), which rows to label next, and how many labels to buy."""

from grbb_ext.variance._information import MarginalLikelihood, choose_lam, prior_of
from grbb_ext.variance._plan import LabelCurve, LabelPlan, plan_labels
from grbb_ext.variance._posterior import FrozenPosterior
from grbb_ext.variance._prediction_variance import PredictionVariance, VacuousVarianceWarning, prediction_variance
from grbb_ext.variance._prior import GraphPrior, KernelPrior, LaplacianPrior
from grbb_ext.variance._suggest import LabelSuggestions, Strategy, suggest_labels

__all__ = [
    "FrozenPosterior",
    "GraphPrior",
    "KernelPrior",
    "LabelCurve",
    "LabelPlan",
    "LabelSuggestions",
    "LaplacianPrior",
    "MarginalLikelihood",
    "PredictionVariance",
    "Strategy",
    "VacuousVarianceWarning",
    "choose_lam",
    "plan_labels",
    "prediction_variance",
    "prior_of",
    "suggest_labels",
]
