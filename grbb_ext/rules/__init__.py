"""Gradient rules: what the unlabelled rows are told in each round. The page on mathematics compares them."""

from grbb_ext.rules._base import Rule
from grbb_ext.rules._corrected import CorrectedRule
from grbb_ext.rules._labeled import LabeledRule
from grbb_ext.rules._labeled_gradient import LabeledGradient
from grbb_ext.rules._laplacian import LaplacianRule
from grbb_ext.rules._laplacian_term import LaplacianTerm
from grbb_ext.rules._paper import PaperRule
from grbb_ext.rules._soft_targets import soft_targets
from grbb_ext.rules._targets import TargetsRule

__all__ = [
    "CorrectedRule",
    "LabeledGradient",
    "LabeledRule",
    "LaplacianRule",
    "LaplacianTerm",
    "PaperRule",
    "Rule",
    "TargetsRule",
    "soft_targets",
]
