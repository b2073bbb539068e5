"""scikit-learn estimators: GRBB around the booster estimator that a user already has."""

from grbb_ext.estimators._classifier import GRBBClassifier
from grbb_ext.estimators._load import load
from grbb_ext.estimators._regressor import GRBBRegressor

__all__ = ["GRBBClassifier", "GRBBRegressor", "load"]
