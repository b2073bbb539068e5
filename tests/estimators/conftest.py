from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from numpy.typing import NDArray
from sklearn.datasets import make_moons
from xgboost import XGBClassifier, XGBRegressor

_DEFAULTS = {
    "lightgbm": {"n_estimators": 10, "num_leaves": 7, "min_child_samples": 5, "n_jobs": 1},
    "xgboost": {"n_estimators": 10, "max_depth": 3, "n_jobs": 1},
}
_CLASSES = {
    ("lightgbm", "classifier"): LGBMClassifier,
    ("lightgbm", "regressor"): LGBMRegressor,
    ("xgboost", "classifier"): XGBClassifier,
    ("xgboost", "regressor"): XGBRegressor,
}


@pytest.fixture(params=["lightgbm", "xgboost"])
def library(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def classifier(library: str) -> Callable[..., Any]:
    return lambda **settings: _CLASSES[library, "classifier"](**{**_DEFAULTS[library], **settings})


@pytest.fixture
def regressor(library: str) -> Callable[..., Any]:
    return lambda **settings: _CLASSES[library, "regressor"](**{**_DEFAULTS[library], **settings})


@pytest.fixture
def moons() -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Two moons: rows, true classes, and 20 labels."""
    X, truth = make_moons(200, noise=0.1, random_state=0)
    return X, truth, np.where(np.arange(200) < 20, truth, -1)
