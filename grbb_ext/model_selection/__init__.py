"""Model selection with few labels: folds and scores of labelled rows, one graph for all fits, choice under a budget."""

from grbb_ext.model_selection._cost_path import CostPath, CostPoint, cost_path
from grbb_ext.model_selection._curve import CurvePoint, ScoreCostCurve
from grbb_ext.model_selection._score_cost_curve import score_cost_curve, score_name, staged_scores
from grbb_ext.model_selection._scorer import LabeledScorer, labeled_scorer
from grbb_ext.model_selection._share_graph import share_graph
from grbb_ext.model_selection._split import SemiSupervisedSplit

__all__ = [
    "CostPath",
    "CostPoint",
    "CurvePoint",
    "LabeledScorer",
    "ScoreCostCurve",
    "SemiSupervisedSplit",
    "cost_path",
    "labeled_scorer",
    "score_cost_curve",
    "score_name",
    "share_graph",
    "staged_scores",
]
