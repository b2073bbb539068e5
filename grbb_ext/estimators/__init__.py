"""scikit-learn estimators: GRBB around the booster estimator that a user already has."""

from grbb_ext.estimators._classifier import GRBBClassifier
from grbb_ext.estimators._job import Job, Trained, check_rounds
from grbb_ext.estimators._persistence import load
from grbb_ext.estimators._regressor import GRBBRegressor

__all__ = [
    "GRBBClassifier",
    "GRBBRegressor",
    "Job",
    "Trained",
    "check_rounds",
    "load",
]
