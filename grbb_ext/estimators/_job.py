"""The protocol between estimators and adapters: what to train, who trains it, and what comes back."""

from __future__ import annotations

import importlib
import importlib.util
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from grbb_ext.costs import FeatureCosts, Ledger
from grbb_ext.labels import Labels
from grbb_ext.objective import GRBBObjective
from grbb_ext.table import Table, Unseen


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


Task = Literal["classification", "regression"]

_LOG = logging.getLogger("grbb_ext")

# Wrapped estimators, in the order in which libraries are looked for.
_CLASS_OF_TASK: dict[Task, dict[str, str]] = {
    "classification": {"lightgbm": "LGBMClassifier", "xgboost": "XGBClassifier"},
    "regression": {"lightgbm": "LGBMRegressor", "xgboost": "XGBRegressor"},
}


@dataclass(frozen=True)
class Job:
    """A training.

    Attributes
    ----------
    task : {"classification", "regression"}
        What is learned.
    estimator : object
        The wrapped estimator, whose parameters drive the training.
    obj : GRBBObjective
        The objective.
    table : Table
        All rows.
    names : tuple of str or None
        Names of the columns, if the boosters can take them.
    weight : ndarray or None
        Weights of the rows, as the user gave them. The objective holds them too; XGBoost's bins need them.
    start : float
        Raw score before the first tree.
    evaluation : sequence of (Table, ndarray)
        Labelled rows to watch, and their labels as the user gave them.
    callbacks : sequence
        Callbacks of the library.
    costs, mu, budget
        Prices of the columns, and how they count.
    seed : int or None
        For an estimator without a seed of its own.
    init_model : xgboost.Booster, lightgbm.Booster or None
        The model to continue. Its scores are the start.
    """

    task: Task
    estimator: Any
    obj: GRBBObjective
    table: Table
    names: tuple[str, ...] | None
    weight: NDArray[np.float64] | None = None
    start: float = 0.0
    evaluation: Sequence[tuple[Table, NDArray[Any]]] = ()
    callbacks: Sequence[Any] = ()
    costs: FeatureCosts | None = None
    mu: float = 0.0
    budget: float | None = None
    seed: int | None = None
    init_model: Any = None


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


class BoosterAdapter(Protocol):
    """What :mod:`grbb_ext.estimators` asks of a library. Adapters hold no state: one instance serves all models."""

    #: Name of the library, ``"lightgbm"`` or ``"xgboost"``.
    library: ClassVar[str]
    #: Its version.
    version: ClassVar[str]
    #: Name of its model file in a saved folder.
    model_file: ClassVar[str]
    #: The estimators that can be wrapped, by name.
    estimators: ClassVar[Mapping[str, type]]
    #: What the library does with a category that it has not seen.
    unseen: ClassVar[Unseen]

    def check_type(self, estimator: Any, task: Task) -> None:
        """Refuse estimators for other tasks and for clusters with a TypeError."""

    def clone(self, estimator: Any, task: Task, *, costs: bool) -> Any:
        """Return an unfitted copy of an estimator; None is one that suits a student, or the library's with `costs`."""

    def fix_rounds(self, estimator: Any, n_rounds: int | None) -> None:
        """Make an estimator train for a number of rounds, None being its own, without early stopping."""

    def categorical(self, estimator: Any) -> list[Any]:
        """Return the columns, by position or name, that the estimator's own parameters call categorical."""

    def missing(self, estimator: Any) -> float:
        """Return the number that stands for a missing value, beside NaN."""

    def class_weight(self, estimator: Any, own: Any, labels: Labels) -> Any:
        """Return the weights of the classes: `own`, or those among the estimator's parameters."""

    def train(self, job: Job) -> Trained:
        """Train a booster as the estimator's ``fit`` would, with our objective, metrics and costs."""

    def raw_scores(self, booster: Any, estimator: Any, table: Table, names: tuple[str, ...] | None) -> NDArray[Any]:
        """Return the raw scores of rows."""

    def importances(self, booster: Any, estimator: Any, n_features: int) -> NDArray[np.float64]:
        """Return how much each column matters, by the estimator's ``importance_type``."""

    def to_bytes(self, booster: Any) -> bytes:
        """Return the library's model file."""

    def from_bytes(self, data: bytes, best_iteration: int | None) -> Any:
        """Read the library's model file."""

    def best_iteration(self, booster: Any) -> int | None:
        """Return the best round of an early stop, as the library counts it."""

    def size(self, booster: Any) -> tuple[int, int]:
        """Return the numbers of rounds and of columns."""


def adapter_of(estimator: Any, task: Task) -> BoosterAdapter:
    """Return the adapter of a wrapped estimator's library; None is whichever library is installed.

    Parameters
    ----------
    estimator : LGBMClassifier, XGBClassifier, LGBMRegressor, XGBRegressor or None
        What the user wrapped.
    task : {"classification", "regression"}
        What it has to do.

    Raises
    ------
    TypeError
        If it is something else.
    ImportError
        If there is no library.

    Examples
    --------
    >>> from lightgbm import LGBMClassifier
    >>> adapter_of(LGBMClassifier(), "classification").library
    'lightgbm'
    """
    if estimator is None:
        for library, name in _CLASS_OF_TASK[task].items():
            if importlib.util.find_spec(library) is not None:
                _LOG.info("estimator=None: %s is installed, so %s() is used.", library, name)
                return adapter_named(library)
        raise ImportError("No booster is installed: pip install 'grbb_ext[lightgbm]' or 'grbb_ext[xgboost]'.")
    if isinstance(estimator, type):
        raise TypeError(f"estimator must be an instance, not the class: pass {estimator.__name__}().")
    roots = {cls.__module__.partition(".")[0] for cls in type(estimator).__mro__}
    found = next((library for library in _CLASS_OF_TASK[task] if library in roots), None)
    if found is None or not hasattr(estimator, "get_params"):
        wanted = " or ".join(_CLASS_OF_TASK[task].values())
        raise TypeError(f"estimator must be {wanted}, or None for the one installed; got {type(estimator).__name__}.")
    adapter = adapter_named(found)
    adapter.check_type(estimator, task)
    return adapter


def adapter_named(library: str) -> BoosterAdapter:
    """Return the adapter of a library; an ImportError says how to install it."""
    try:
        return cast(BoosterAdapter, importlib.import_module(f"grbb_ext.adapters.{library}").ADAPTER)
    except ImportError as error:
        raise ImportError(f"The model is one of {library}: pip install 'grbb_ext[{library}]'.") from error
