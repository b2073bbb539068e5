"""Spark: a teacher fitted on the driver teaches rows where they are, for ``xgboost.spark`` to train on."""

from __future__ import annotations

try:
    import pyspark  # noqa: F401
except ImportError as error:
    raise ImportError("grbb_ext.adapters.spark needs Spark: pip install 'grbb_ext[spark,xgboost]'.") from error

from grbb_ext.adapters.spark._spark import fit_teacher, teach

__all__ = ["fit_teacher", "teach"]
