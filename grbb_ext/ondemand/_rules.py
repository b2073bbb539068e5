"""When a row may leave before all of its trees are evaluated."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from grbb_ext.forest import Forest, ForestCursor
from grbb_ext.ondemand._result import CONFIDENT, DECIDED

Floats = NDArray[np.floating[Any]]
Bools = NDArray[np.bool_]
Horizon = NDArray[np.intp]


class StoppingRule(Protocol):
    """A rule for leaving early.

    Attributes
    ----------
    status : str
        The status of rows that leave.
    step : int
        A row that has evaluated this many more trees is looked at again.
    one_by_one : bool
        Whether each single purchase may be the last one.
    """

    status: str
    step: int
    one_by_one: bool

    def leaves(self, cursor: ForestCursor, stop_tree: int) -> tuple[Bools, Floats | None]:
        """Return which rows may leave, and their scores unless those are to be estimated.

        Parameters
        ----------
        cursor : ForestCursor
            Rows, all with the first `stop_tree` trees evaluated unless the rule has `one_by_one`.
        stop_tree : int
            That many trees.
        """


class DecisionRule:
    """Leave once the reachable leaves leave no doubt about the class.

    With one output the class is positive above `threshold`; with more it is the first of the largest, as by ``argmax``.
    """

    status = DECIDED
    one_by_one = True

    def __init__(self, forest: Forest, threshold: float) -> None:
        self.step, self.threshold = forest.n_trees, threshold

    def leaves(self, cursor: ForestCursor, stop_tree: int) -> tuple[Bools, Floats | None]:
        """Return which rows have their class."""
        return decided(*cursor.bounds(), self.threshold), None


class ConfidenceRule:
    """Leave once the probability of a class, after every `exit_every` rounds of trees, exceeds `confidence`."""

    status = CONFIDENT
    one_by_one = False

    def __init__(self, forest: Forest, confidence: float, exit_every: int) -> None:
        self.forest, self.confidence = forest, confidence
        self.step = exit_every * forest.trees_per_round

    def leaves(self, cursor: ForestCursor, stop_tree: int) -> tuple[Bools, Floats | None]:
        """Return which rows are sure enough, and their scores so far."""
        scores = cursor.raw_scores(stop_tree=stop_tree)
        n_rounds = stop_tree / self.forest.trees_per_round if self.forest.averaged else 1.0
        return confidence(scores / n_rounds) > self.confidence, scores


def decided(lowest: Floats, highest: Floats, threshold: float = 0.0) -> Bools:
    """Return which rows have their class, given bounds of their scores.

    Examples
    --------
    >>> decided(np.array([-2.0, 0.1, -3.0]), np.array([1.0, 5.0, 0.0])).tolist()
    [False, True, True]
    >>> decided(np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([[2.0, 1.0], [2.0, 1.0]])).tolist()
    [True, False]
    """
    if lowest.ndim == 1:
        return np.asarray((lowest > threshold) | (highest <= threshold))
    n, k = lowest.shape
    winner = lowest.argmax(axis=1)
    best = lowest[np.arange(n), winner][:, None]
    rivals = highest.copy()
    rivals[np.arange(n), winner] = -np.inf
    # On a tie argmax takes the first class, so an earlier rival has to stay below.
    beaten = np.where(np.arange(k) < winner[:, None], rivals < best, rivals <= best)
    return np.asarray(beaten.all(axis=1))


def confidence(scores: Floats) -> NDArray[np.float64]:
    """Return the largest class probability: logistic for one score, softmax for more.

    Examples
    --------
    >>> confidence(np.array([0.0, -3.0])).round(3).tolist()
    [0.5, 0.953]
    """
    H = scores.astype(np.float64)
    if H.ndim == 1:
        return np.asarray(1.0 / (1.0 + np.exp(-np.abs(H))))
    return np.asarray(1.0 / np.exp(H - H.max(axis=1, keepdims=True)).sum(axis=1))


def make_rule(forest: Forest, early_exit: Any, exit_every: int, decision_threshold: float) -> StoppingRule | None:
    """Return the rule that `early_exit` names, None for none."""
    if early_exit is None:
        return None
    if isinstance(early_exit, str):
        if early_exit != "decision":
            raise ValueError(f"early_exit must be 'decision', a probability or None, got {early_exit!r}.")
        return DecisionRule(forest, float(decision_threshold))
    if not 0 < float(early_exit) < 1:
        raise ValueError(f"early_exit must be a probability between 0 and 1, got {early_exit!r}.")
    if exit_every < 1:
        raise ValueError(f"exit_every must be at least 1, got {exit_every!r}.")
    return ConfidenceRule(forest, float(early_exit), int(exit_every))
