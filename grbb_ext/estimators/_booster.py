"""Which booster an estimator wraps, and the adapter that trains it."""

from __future__ import annotations

import importlib
import importlib.util
import logging
from typing import Any, Literal

from sklearn.base import clone

Task = Literal["classification", "regression"]

_LOG = logging.getLogger("grbb_ext")

_CLASS_OF_TASK = {
    ("lightgbm", "classification"): "LGBMClassifier",
    ("lightgbm", "regression"): "LGBMRegressor",
    ("xgboost", "classification"): "XGBClassifier",
    ("xgboost", "regression"): "XGBRegressor",
}


def library_of(estimator: Any) -> str | None:
    """Return the library that an estimator, or a class that it derives from, belongs to.

    Examples
    --------
    >>> from lightgbm import LGBMClassifier
    >>> library_of(LGBMClassifier()), library_of("no estimator")
    ('lightgbm', None)
    """
    roots = {cls.__module__.partition(".")[0] for cls in type(estimator).__mro__}
    return next((library for library in ("lightgbm", "xgboost") if library in roots), None)


def adapter_of(library: str) -> Any:
    """Import the module of ``grbb_ext.adapters`` that trains the estimators of a library."""
    return importlib.import_module(f"grbb_ext.adapters._sklearn_{library}")


def own_copy(estimator: Any, task: Task) -> Any:
    """Return an unfitted copy of the wrapped estimator, or a new one of whichever library is installed.

    Parameters
    ----------
    estimator : LGBMClassifier, XGBClassifier, LGBMRegressor, XGBRegressor or None
        What the user wrapped. It is not changed.
    task : {"classification", "regression"}
        What it has to do.

    Raises
    ------
    TypeError
        If it is something else.
    ImportError
        If there is no library.
    """
    if estimator is None:
        return _default(task)
    library = library_of(estimator)
    wanted = " or ".join(_CLASS_OF_TASK[name, task] for name in ("lightgbm", "xgboost"))
    if isinstance(estimator, type):
        raise TypeError(f"estimator must be an instance, not the class: pass {estimator.__name__}().")
    if library is None or not hasattr(estimator, "get_params"):
        raise TypeError(f"estimator must be {wanted}, or None for the one installed; got {type(estimator).__name__}.")
    adapter_of(library).check_type(estimator, task)
    return clone(estimator)


def _default(task: Task) -> Any:
    for library in ("lightgbm", "xgboost"):
        if importlib.util.find_spec(library) is not None:
            name = _CLASS_OF_TASK[library, task]
            _LOG.info("estimator=None: %s is installed, so %s() is used.", library, name)
            return getattr(importlib.import_module(library), name)()
    raise ImportError("No booster is installed: pip install 'grbb_ext[lightgbm]' or 'grbb_ext[xgboost]'.")
