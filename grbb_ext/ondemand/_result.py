"""The result of a prediction on demand, and the rules by which a row stops early."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from grbb_ext._checks import positive_int
from grbb_ext.forest import Forest, ForestCursor

Floats = NDArray[np.floating[Any]]
Bools = NDArray[np.bool_]
Horizon = NDArray[np.intp]

FINISHED, DECIDED, CONFIDENT, BUDGET, FAILED = "finished", "decided", "confident", "budget", "failed"


class StoppingRule(Protocol):
    """A rule by which rows stop early.

    Attributes
    ----------
    status : str
        The status of rows that stop.
    step : int
        A row is checked again after this many more trees.
    one_by_one : bool
        Whether each single purchase may be the last one.
    """

    status: str
    step: int
    one_by_one: bool

    def leaves(self, cursor: ForestCursor, stop_tree: int) -> tuple[Bools, Floats | None]:
        """Return which rows stop, and their scores unless those are to be estimated.

        Parameters
        ----------
        cursor : ForestCursor
            Rows, all with the first `stop_tree` trees evaluated unless the rule has `one_by_one`.
        stop_tree : int
            That many trees.
        """


class DecisionRule:
    """Stop once all reachable leaves give the same class.

    With one output the class is positive above `threshold`; with more it is the first of the largest, as by ``argmax``.
    """

    status = DECIDED
    one_by_one = True

    def __init__(self, forest: Forest, threshold: float) -> None:
        self.step, self.threshold = forest.n_trees, threshold

    def leaves(self, cursor: ForestCursor, stop_tree: int) -> tuple[Bools, Floats | None]:
        """Return which rows have a certain class."""
        return decided(*cursor.bounds(), self.threshold), None


class ConfidenceRule:
    """Stop once the probability of a class, checked every `exit_every` rounds of trees, exceeds `confidence`."""

    status = CONFIDENT
    one_by_one = False

    def __init__(self, forest: Forest, confidence: float, exit_every: int) -> None:
        self.forest, self.confidence = forest, confidence
        self.step = exit_every * forest.trees_per_round

    def leaves(self, cursor: ForestCursor, stop_tree: int) -> tuple[Bools, Floats | None]:
        """Return the rows above the probability, and their scores so far."""
        scores = cursor.raw_scores(stop_tree=stop_tree)
        n_rounds = stop_tree / self.forest.trees_per_round if self.forest.averaged else 1.0
        return confidence(scores / n_rounds) > self.confidence, scores


def decided(lowest: Floats, highest: Floats, threshold: float = 0.0) -> Bools:
    """Return which rows have a certain class, given bounds of their scores.

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
    """Return the rule that `early_exit` names; None is no rule."""
    if early_exit is None:
        return None
    if isinstance(early_exit, str):
        if early_exit != "decision":
            raise ValueError(f"early_exit must be 'decision', a probability or None, got {early_exit!r}.")
        return DecisionRule(forest, float(decision_threshold))
    if not 0 < float(early_exit) < 1:
        raise ValueError(f"early_exit must be a probability between 0 and 1, got {early_exit!r}.")
    return ConfidenceRule(forest, float(early_exit), positive_int(exit_every, "exit_every"))


@dataclass(frozen=True, eq=False, repr=False)
class OnDemandResult:
    """Predictions of rows, and what was bought for them.

    Attributes
    ----------
    rows : ndarray of shape (N,)
        The row ids.
    raw_scores : ndarray of shape (N,), or (N, K) with K outputs
        Raw scores; NaN for failed rows. What they are depends on `status`.
    status : ndarray of str of shape (N,)
        ``"finished"``: every tree was evaluated, the score is bit-equal to the booster's. ``"decided"``: the class is
        certain, the score is an estimate on its side. ``"confident"``: the score of the trees that were evaluated.
        ``"budget"``: the budget ran out, the score is an estimate from what is known. ``"failed"``: a source failed.
    trees : ndarray of int of shape (N,)
        How many trees were evaluated before the first open one; all of them for finished rows, and those that make up
        the score for confident ones.
    fetched : ndarray of bool of shape (N, n_sources)
        Which sources were called for which row, those that failed among them.
    spent : ndarray of shape (N,)
        Their price.
    sources : tuple of str or int
        Names of the sources.
    errors : tuple of FetchError
        What went wrong.
    """

    rows: NDArray[Any]
    raw_scores: NDArray[np.floating[Any]]
    status: NDArray[np.str_]
    trees: NDArray[np.intp]
    fetched: NDArray[np.bool_]
    spent: NDArray[np.float64]
    sources: tuple[Any, ...]
    errors: tuple[FetchError, ...] = ()

    @property
    def complete(self) -> NDArray[np.bool_]:
        """Which rows have the score of the whole forest."""
        return np.asarray(self.status == FINISHED)

    def rows_fetched(self) -> dict[Any, int]:
        """Return for how many rows each source was called."""
        return dict(zip(self.sources, self.fetched.sum(axis=0).tolist(), strict=True))

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        kinds, counts = np.unique(self.status, return_counts=True)
        listed = ", ".join(f"{count} {kind}" for kind, count in zip(kinds, counts, strict=True))
        mean = f", {self.spent.mean():g} spent per row" if len(self) else ""
        return f"OnDemandResult({len(self)} rows: {listed}{mean})"


class FetchError(RuntimeError):
    """A source raised, or returned something that cannot be used.

    Attributes
    ----------
    source : str or int
        The source, or the derived feature.
    failed_rows : ndarray
        Ids of the rows that it was called for.
    result : OnDemandResult or None
        The result for all rows. Those of failed calls have status ``"failed"``; all others were evaluated to the end.
    """

    def __init__(self, message: str, source: Any, failed_rows: NDArray[Any]) -> None:
        super().__init__(message)
        self.source, self.failed_rows = source, failed_rows
        self.result: OnDemandResult | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return FetchError, (str(self), self.source, self.failed_rows), {"result": self.result}


def list_rows(rows: NDArray[Any], most: int = 5) -> str:
    """Write row ids into a message.

    Examples
    --------
    >>> list_rows(np.arange(7), most=2)
    '7 rows (0, 1, ...)'
    """
    ids = [str(row) for row in rows[:most].tolist()] + (["..."] if len(rows) > most else [])
    return f"{len(rows)} row{'s' if len(rows) != 1 else ''} ({', '.join(ids)})"


def join(results: Sequence[OnDemandResult]) -> OnDemandResult:
    """Put the results of batches together."""
    joined = {
        name: np.concatenate([getattr(result, name) for result in results])
        for name in ("rows", "raw_scores", "status", "trees", "fetched", "spent")
    }
    errors = tuple(error for result in results for error in result.errors)
    return OnDemandResult(**joined, sources=results[0].sources, errors=errors)
