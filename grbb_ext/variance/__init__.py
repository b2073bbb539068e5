"""How far the predictions would move with other labels: variance of the predicted probabilities (paper, section 5)."""

from grbb_ext.variance._evidence import Evidence, choose_lam
from grbb_ext.variance._kernel_prior import KernelPrior
from grbb_ext.variance._laplacian_prior import LaplacianPrior
from grbb_ext.variance._prediction_variance import prediction_variance
from grbb_ext.variance._prior import GraphPrior
from grbb_ext.variance._prior_of import prior_of
from grbb_ext.variance._result import PredictionVariance, VacuousVarianceWarning

__all__ = [
    "Evidence",
    "GraphPrior",
    "KernelPrior",
    "LaplacianPrior",
    "PredictionVariance",
    "VacuousVarianceWarning",
    "choose_lam",
    "prediction_variance",
    "prior_of",
]
