"""Prediction with features that are fetched, and paid, only for the rows that need them."""

from grbb_ext.ondemand._batch import FetchError, OnDemandResult
from grbb_ext.ondemand._predictor import OnDemandPredictor

__all__ = ["FetchError", "OnDemandPredictor", "OnDemandResult"]
