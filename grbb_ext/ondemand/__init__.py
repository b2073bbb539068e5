"""Prediction with features that are fetched, and paid, only for the rows that need them."""

from grbb_ext.ondemand._predictor import OnDemandPredictor
from grbb_ext.ondemand._result import FetchError, OnDemandResult

__all__ = [
    "FetchError",
    "OnDemandPredictor",
    "OnDemandResult",
]
