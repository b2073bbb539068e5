"""How far the predictions would move with other labels: variance of the predicted probabilities (paper, section 5)."""

from grbb_ext.variance._evidence import Evidence, choose_lam
from grbb_ext.variance._prediction_variance import (
    PredictionVariance,
    VacuousVarianceWarning,
    lam_in_use,
    prediction_variance,
)
from grbb_ext.variance._prior import Array, GraphPrior, Index, curvatures
from grbb_ext.variance._priors import KernelPrior, LaplacianPrior, prior_of

__all__ = [
    "Array",
    "Evidence",
    "GraphPrior",
    "Index",
    "KernelPrior",
    "LaplacianPrior",
    "PredictionVariance",
    "VacuousVarianceWarning",
    "choose_lam",
    "curvatures",
    "lam_in_use",
    "prediction_variance",
    "prior_of",
]
