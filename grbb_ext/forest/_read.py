"""Where a model comes from: a booster in memory or a saved file. No library is imported; its document is read."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from grbb_ext.forest._lightgbm_text import read_lightgbm
from grbb_ext.forest._xgboost_model import read_ubjson, read_xgboost

_DAMAGE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
)


def _careful(read: Callable[[], dict[str, Any]], what: str) -> dict[str, Any]:
    """Turn whatever a damaged document provokes into one clear error."""
    try:
        return read()
    except KeyError as error:
        raise ValueError(f"{what} cannot be read: the entry {error} is missing.") from error
    except _DAMAGE as error:
        raise ValueError(f"{what} cannot be read: {error}") from error


def fields_from_booster(booster: Any, iterations: int | None, missing: float | None) -> dict[str, Any]:
    """Return the fields of a forest from a booster or a scikit-learn wrapper around one.

    A booster is known by its methods: ``save_raw`` is XGBoost's, ``model_to_string`` LightGBM's.
    """
    if hasattr(booster, "get_booster"):
        inner = booster.get_booster()
        best = inner.attributes().get("best_iteration")
        if iterations is None and best is not None:  # the wrapper predicts with the best round, the booster with all
            iterations = int(best) + 1
        if missing is None:
            missing = float(booster.missing)
        booster = inner
    elif hasattr(booster, "booster_"):
        booster = booster.booster_
    if hasattr(booster, "save_raw"):
        document = bytes(booster.save_raw("ubj"))
        fields = _careful(lambda: read_xgboost(read_ubjson(document), iterations), "The XGBoost model")
    elif hasattr(booster, "model_to_string"):
        # None keeps the best round where early stopping found one, as predict does.
        text = booster.model_to_string(num_iteration=iterations)
        fields = _careful(lambda: read_lightgbm(text, iterations), "The LightGBM model")
    else:
        raise TypeError(
            "booster must be an xgboost.Booster, a lightgbm.Booster or a fitted scikit-learn wrapper of one, got "
            f"{type(booster).__name__}."
        )
    return _with_missing(fields, missing)


def fields_from_file(path: str | PathLike[str], iterations: int | None, missing: float | None) -> dict[str, Any]:
    """Return the fields of a forest from a saved model: XGBoost's .json or .ubj, LightGBM's .txt."""
    data = Path(path).read_bytes()
    what = f"{Path(path).name!r}"
    start = data[:64].lstrip()
    if start.startswith(b"tree"):
        fields = _careful(lambda: read_lightgbm(data.decode("utf-8").replace("\r\n", "\n"), iterations), what)
    elif data.startswith(b"{L"):
        fields = _careful(lambda: read_xgboost(read_ubjson(data), iterations), what)
    elif start.startswith(b"{"):
        document = _careful(lambda: _json_object(data), what)
        if "learner" not in document:
            raise ValueError(
                f"{what} is JSON, but not a saved XGBoost model. Save with Booster.save_model: the output of "
                "dump_model lacks what predictions need."
            )
        fields = _careful(lambda: read_xgboost(document, iterations), what)
    else:
        raise ValueError(
            f"{what} is no saved model that can be read: XGBoost's .json and .ubj and LightGBM's .txt are. Load other "
            "formats with their library and use Forest.from_booster."
        )
    return _with_missing(fields, missing)


def _json_object(data: bytes) -> dict[str, Any]:
    document = json.loads(data)
    if not isinstance(document, dict):
        raise ValueError("the document is not an object.")
    return document


def _with_missing(fields: dict[str, Any], missing: float | None) -> dict[str, Any]:
    value = np.nan if missing is None else float(missing)
    if fields["library"] == "lightgbm" and not np.isnan(value):
        raise ValueError("missing= is for XGBoost. LightGBM's missing values (NaN, zero_as_missing) are in its model.")
    return fields | {"missing": value}
