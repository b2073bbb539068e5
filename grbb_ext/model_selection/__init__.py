"""Model selection with few labels: folds and scores of labelled rows."""

from grbb_ext.model_selection._scorer import LabeledScorer, labeled_scorer
from grbb_ext.model_selection._split import SemiSupervisedSplit

__all__ = [
    "LabeledScorer",
    "SemiSupervisedSplit",
    "labeled_scorer",
]
