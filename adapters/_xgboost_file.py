"""XGBoost's model file, for models that :mod:`grbb_ext.persistence` keeps."""

from __future__ import annotations

import xgboost as xgb

NAME = "model.ubj"
VERSION: str = xgb.__version__
ESTIMATORS = {
    cls.__name__: cls for cls in (xgb.XGBClassifier, xgb.XGBRegressor, xgb.XGBRFClassifier, xgb.XGBRFRegressor)
}


def to_bytes(booster: xgb.Booster) -> bytes:
    """Return what ``save_model`` writes: binary JSON, with every bit of every number."""
    return bytes(booster.save_raw("ubj"))


def from_bytes(data: bytes, best_iteration: int | None) -> xgb.Booster:
    """Read the model; the best round of an early stop is among its attributes."""
    return xgb.Booster(model_file=bytearray(data))


def best_iteration(booster: xgb.Booster) -> int | None:
    """Return the best round of an early stop, counted from 0."""
    best = booster.attr("best_iteration")
    return None if best is None else int(best)


def size(booster: xgb.Booster) -> tuple[int, int]:
    """Return the numbers of rounds and of columns."""
    return booster.num_boosted_rounds(), booster.num_features()
