"""What an estimator asks an adapter to train, which adapter that is, and what it gets back."""

from __future__ import annotations

import importlib
import importlib.util
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from grbb_ext.costs import FeatureCosts, Ledger
from grbb_ext.evaluation import Evaluation, evaluate
from grbb_ext.labels import is_unlabeled
from grbb_ext.losses import Floats
from grbb_ext.objective import GRBBObjective
from grbb_ext.table import Table


def check_callbacks(callbacks: Any) -> list[Any]:
    """Return the callbacks as a list; entries are functions (LightGBM) or TrainingCallbacks (XGBoost)."""
    if callbacks is None:
        return []
    if not isinstance(callbacks, (list, tuple)):
        raise TypeError(f"callbacks must be a list, got {callbacks!r}. Put it in a list.")
    for entry in callbacks:
        if not (callable(entry) or hasattr(entry, "after_iteration")):
            raise TypeError(f"callbacks must hold callbacks of the booster's library, got {entry!r}.")
    return list(callbacks)


def check_rounds(value: Any) -> int:
    """Return the number of rounds."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"n_estimators of the wrapped estimator must be a positive integer, got {value!r}.")
    return int(value)


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
    return importlib.import_module(f"grbb_ext.adapters.{library}._estimator")


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


@dataclass(frozen=True)
class EvaluationSet:
    """Rows on which training is watched.

    Attributes
    ----------
    table : Table
        The labelled rows.
    y : ndarray
        Their labels, as the user gave them.
    """

    table: Table
    y: NDArray[Any]


@dataclass(frozen=True)
class Job:
    """A training.

    Attributes
    ----------
    estimator : object
        The wrapped estimator, whose parameters drive the training.
    obj : GRBBObjective
        The objective.
    table : Table
        All rows.
    names : tuple of str or None
        Names of the columns, if the boosters can take them.
    start : float
        Raw score before the first tree.
    evaluation : sequence of EvaluationSet
        Rows to watch.
    callbacks : sequence
        Callbacks of the library.
    costs, mu, budget
        Prices of the columns, and how they count.
    seed : int or None
        For an estimator without a seed of its own.
    """

    estimator: Any
    obj: GRBBObjective
    table: Table
    names: tuple[str, ...] | None
    start: float = 0.0
    evaluation: Sequence[EvaluationSet] = ()
    callbacks: Sequence[Any] = ()
    costs: FeatureCosts | None = None
    mu: float = 0.0
    budget: float | None = None
    seed: int | None = None

    def score(self, index: int, raw_scores: NDArray[Any], metric: Any) -> Evaluation:
        """Score raw predictions of an evaluation set by the name of a metric, or by a function of (y, prediction)."""
        y = self.evaluation[index].y
        if not callable(metric):
            return evaluate(self.obj, raw_scores, y, metric)
        predicted: Floats = np.asarray(raw_scores)
        if self.obj.classes_ is not None:
            predicted = self.obj.predict_proba(raw_scores)
            predicted = predicted[:, 1] if predicted.shape[1] == 2 else predicted
        return Evaluation(getattr(metric, "__name__", "metric"), float(metric(y, predicted)), False)


@dataclass(frozen=True)
class Trained:
    """A trained booster.

    Attributes
    ----------
    booster : xgboost.Booster or lightgbm.Booster
        Cut to its best round where training was stopped early.
    n_iter : int
        Its rounds.
    stop_reason : str
        Why training ended, in a sentence.
    ledger : Ledger or None
        What it bought.
    history : dict
        Metrics of the evaluation sets, by set and name, a value for each round.
    """

    booster: Any
    n_iter: int
    stop_reason: str
    ledger: Ledger | None = None
    history: dict[str, dict[str, list[float]]] = field(default_factory=dict)


def labeled_only(table: Table, y: NDArray[Any], unlabeled: Any) -> EvaluationSet:
    """Leave out the rows of an evaluation set that have no label."""
    keep = ~is_unlabeled(y, unlabeled)
    if not keep.any():
        raise ValueError("A set of eval_set has no labelled row: watch rows that have labels.")
    return EvaluationSet(Table(table.values[np.flatnonzero(keep)], table.schema), y[keep])
