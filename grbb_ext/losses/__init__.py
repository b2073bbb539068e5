"""Losses as functions of raw scores and targets: value, gradient and curvature."""

from grbb_ext.losses._base import Loss
from grbb_ext.losses._logistic import LogisticLoss
from grbb_ext.losses._probabilities import class_probabilities
from grbb_ext.losses._softmax import SoftmaxLoss
from grbb_ext.losses._squared_error import SquaredErrorLoss

__all__ = ["LogisticLoss", "Loss", "SoftmaxLoss", "SquaredErrorLoss", "class_probabilities"]
