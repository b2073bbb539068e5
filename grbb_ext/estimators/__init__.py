"""scikit-learn estimators: GRBB around the booster estimator that a user already has."""

from grbb_ext.estimators._classifier import GRBBClassifier
from grbb_ext.estimators._job import BoosterAdapter, Job, Task, Trained
from grbb_ext.estimators._persistence import load
from grbb_ext.estimators._regressor import GRBBRegressor

__all__ = ["BoosterAdapter", "GRBBClassifier", "GRBBRegressor", "Job", "Task", "Trained", "load"]
