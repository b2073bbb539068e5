"""LightGBM's model file, for models that :mod:`grbb_ext.persistence` keeps."""

from __future__ import annotations

import lightgbm as lgb

NAME = "model.txt"
VERSION: str = lgb.__version__
ESTIMATORS = {cls.__name__: cls for cls in (lgb.LGBMClassifier, lgb.LGBMRegressor)}


def to_bytes(booster: lgb.Booster) -> bytes:
    """Return what ``save_model`` writes: text, with every number in full."""
    text: str = booster.model_to_string()
    return text.encode()


def from_bytes(data: bytes, best_iteration: int | None) -> lgb.Booster:
    """Read the model; the file does not hold the best round of an early stop."""
    booster = lgb.Booster(model_str=data.decode())
    booster.best_iteration = -1 if best_iteration is None else best_iteration
    return booster


def best_iteration(booster: lgb.Booster) -> int | None:
    """Return the best round of an early stop, counted from 1."""
    return booster.best_iteration if booster.best_iteration > 0 else None


def size(booster: lgb.Booster) -> tuple[int, int]:
    """Return the numbers of rounds and of columns."""
    return booster.current_iteration(), booster.num_feature()
