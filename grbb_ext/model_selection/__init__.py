"""Model selection with few labels: folds and scores of labelled rows, one graph for all fits, choice under a budget."""

from grbb_ext.model_selection._curve import CurvePoint, ScoreCostCurve
from grbb_ext.model_selection._score_cost_curve import score_cost_curve
from grbb_ext.model_selection._scorer import LabeledScorer, labeled_scorer
from grbb_ext.model_selection._share_graph import share_graph
from grbb_ext.model_selection._split import SemiSupervisedSplit

__all__ = [
    "CurvePoint",
    "LabeledScorer",
    "ScoreCostCurve",
    "SemiSupervisedSplit",
    "labeled_scorer",
    "score_cost_curve",
    "share_graph",
]
