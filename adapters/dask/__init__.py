"""Dask: semi-supervised XGBoost and LightGBM on rows that lie on many machines."""

from __future__ import annotations

try:
    import dask  # noqa: F401
    import distributed  # noqa: F401
    import xgboost.dask  # noqa: F401
except ImportError as error:
    raise ImportError("grbb_ext.adapters.dask needs Dask and XGBoost: pip install 'grbb_ext[dask,xgboost]'.") from error

from grbb_ext.adapters.dask._lightgbm import train_lightgbm
from grbb_ext.adapters.dask._lost import WorkerLostError
from grbb_ext.adapters.dask._model import Model, predict
from grbb_ext.adapters.dask._train import train

__all__ = ["Model", "WorkerLostError", "predict", "train", "train_lightgbm"]
