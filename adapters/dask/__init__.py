"""Dask: semi-supervised XGBoost on rows that lie on many machines."""

from __future__ import annotations

try:
    import dask  # noqa: F401
    import distributed  # noqa: F401
    import xgboost.dask  # noqa: F401
except ImportError as error:
    raise ImportError("grbb_ext.adapters.dask needs Dask and XGBoost: pip install 'grbb_ext[dask,xgboost]'.") from error

from grbb_ext.adapters.dask._train import WorkerLostError, predict, train

__all__ = ["WorkerLostError", "predict", "train"]
