"""Model selection with few labels: folds and scores of labelled rows, one graph for all fits, choice under a budget."""

from grbb_ext.model_selection._cost_curve import cost_curve, staged_curve
from grbb_ext.model_selection._curve import CostCurve, CostPoint
from grbb_ext.model_selection._held_out import HeldOut, held_out_predict
from grbb_ext.model_selection._scorer import LabeledScorer, labeled_scorer
from grbb_ext.model_selection._split import SemiSupervisedSplit, folds_of_model, share_graph

__all__ = [
    "CostCurve",
    "CostPoint",
    "HeldOut",
    "LabeledScorer",
    "SemiSupervisedSplit",
    "cost_curve",
    "folds_of_model",
    "held_out_predict",
    "labeled_scorer",
    "share_graph",
    "staged_curve",
]
