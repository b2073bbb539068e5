"""What an estimator asks an adapter to train, and what it gets back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grbb_ext.costs import FeatureCosts, Ledger
from grbb_ext.evaluation import Evaluation, evaluate
from grbb_ext.frames import Table
from grbb_ext.labels import is_unlabeled
from grbb_ext.losses._base import Floats
from grbb_ext.objective import GRBBObjective


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
