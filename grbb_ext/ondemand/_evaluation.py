"""The evaluation of one batch: descend the trees, stop rows that are done, choose what the others buy."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grbb_ext.forest import Forest, ForestCursor
from grbb_ext.losses import class_probabilities
from grbb_ext.ondemand._batch import BUDGET, CONFIDENT, DECIDED, FAILED, FINISHED, Batch, Bools, Rows

if TYPE_CHECKING:
    from grbb_ext.ondemand._predictor import OnDemandPredictor

Floats = NDArray[np.floating[Any]]


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
    return np.asarray(class_probabilities(np.abs(scores) if scores.ndim == 1 else scores).max(axis=1))


def checks(forest: Forest, every: int) -> list[int]:
    """Return after how many trees the probability of a class is looked at: each has about `every` more of them.

    Classes are compared where they have equally many trees, which of a random forest only all trees are.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> checks(SimpleNamespace(tree_output=np.array([0, 1, 0, 1, 0, 1]), trees_per_round=2, n_trees=6), 2)
    [4]
    >>> checks(SimpleNamespace(tree_output=np.array([0, 0, 0, 1, 1, 1]), trees_per_round=2, n_trees=6), 2)
    []
    """
    grown = np.cumsum(forest.tree_output[:, None] == np.arange(forest.trees_per_round), axis=0)
    even = np.flatnonzero((grown == grown[:, :1]).all(axis=1))
    due = np.diff(grown[even, 0] // every, prepend=0) > 0
    return [tree + 1 for tree in even[due].tolist() if tree + 1 < forest.n_trees]


class Evaluation:
    """Evaluates one batch.

    Parameters
    ----------
    settings : OnDemandPredictor
        The model, and when rows stop.
    batch : Batch
        The rows, with what is free.
    budget : ndarray of shape (n,) or None
        The most to spend on each row.

    Attributes
    ----------
    scores : ndarray of shape (n, n_outputs)
        Raw scores; NaN for failed rows.
    status : ndarray of str of shape (n,)
        Why the evaluation of a row ended.
    trees : ndarray of int of shape (n,)
        Trees evaluated before the first open one, or those in the score of a confident row.
    """

    def __init__(self, settings: OnDemandPredictor, batch: Batch, budget: NDArray[np.float64] | None) -> None:
        self.settings, self.forest, self.batch, self.budget = settings, settings.forest, batch, budget
        n, n_trees = len(batch.ids), self.forest.n_trees
        self.scores = np.full((n, self.forest.n_outputs), np.nan, dtype=self.forest.base.dtype)
        self.status = np.full(n, "", dtype="<U9")
        self.trees = np.zeros(n, dtype=np.intp)
        # Trees before each check of the probability, all of them last; the other exits look at all trees at once.
        stepwise = settings.early_exit not in (None, "decision")
        self._checks = [*checks(self.forest, settings.exit_every), n_trees] if stepwise else [n_trees]
        # Rows, which of them are still active, their places in the trees, and the trees to descend now.
        self._rows = np.arange(n)
        self._active = np.ones(n, dtype=bool)
        self._cursor = ForestCursor(self.forest, n)
        self._horizon = np.full(n, self._checks[0], dtype=np.intp)

    def run(self) -> None:
        """Evaluate all rows as far as the early exit and the budget allow."""
        while self._active.any():
            self._drop()
            at = self.batch.at(self._rows)
            if self.batch.known.any():
                stop = int(self._horizon.max())
                self._cursor.advance(self.batch.X[at], self.batch.known[at], stop_tree=stop)
            self._let_leave()
            wanted = self._choose()
            sources = self.batch.costs.union(wanted) & ~self.batch.fetched[at]
            for source in np.flatnonzero(sources.any(axis=0)):
                self.batch.buy(int(source), self._rows[sources[:, source]])
            self.batch.complete(self._rows, wanted)

    def _drop(self) -> None:
        """Forget rows that have left, once they are a quarter: places in the trees are long to copy."""
        if 4 * np.count_nonzero(self._active) > 3 * self._rows.size:
            return
        stay = np.flatnonzero(self._active)
        self._rows, self._horizon, self._active = self._rows[stay], self._horizon[stay], self._active[stay]
        self._cursor = self._cursor.take(stay)

    def _let_leave(self) -> None:
        """Let rows leave that are done."""
        if self.batch.errors:
            failed = np.flatnonzero(self._active & self.batch.failed[self._rows])
            self._leave(failed, FAILED, np.nan, self._cursor.take(failed).finished_trees())
        early_exit = self.settings.early_exit
        # Before a row is finished: the walks of a batch go on together, further than one of its rows would alone.
        if early_exit is not None:
            for horizon, following in pairwise(self._checks):
                self._leave_confident(horizon, following, float(early_exit))
        finished = np.flatnonzero(self._active & self._cursor.finished)
        # Rows of which a part has left are worth a copy only if few finish.
        few = 2 * finished.size < self._rows.size
        if finished.size:
            scores = self._cursor.take(finished).raw_scores() if few else self._cursor.raw_scores()[finished]
            self._leave(finished, FINISHED, scores, self.forest.n_trees)
        if early_exit == "decision" and self._active.any():
            certain = decided(*self._cursor.bounds(), self.settings.decision_threshold)
            self._leave_estimated(np.flatnonzero(self._active & certain), DECIDED)

    def _leave_confident(self, horizon: int, following: int, least: float) -> None:
        """Stop rows whose first `horizon` trees give a class a probability above `least`; the others get more trees."""
        reached = self._active & (self._horizon == horizon)
        if not reached.any() or not (reached := reached & (self._cursor.finished_trees() >= horizon)).any():
            return
        self._horizon[reached] = following
        scores = self._cursor.raw_scores(stop_tree=horizon)
        n_rounds = horizon / self.forest.trees_per_round if self.forest.averaged else 1.0
        sure = np.flatnonzero(reached)
        sure = sure[confidence(scores[sure] / n_rounds) > least]
        self._leave(sure, CONFIDENT, scores[sure], horizon)  # more trees may be done, but they are not in the score

    def _choose(self) -> Bools:
        """Return the features to buy now, shape (rows, d); rows that can afford none of those they need stop."""
        needed = self._cursor.needed(self._horizon)
        if not self._active.all():
            needed &= self._active[:, None]
        if self.budget is None and self.settings.early_exit != "decision":
            return needed  # each of them will be read in any case
        if self.budget is not None:
            needed &= self.batch.costs.affordable(self.batch.fetched[self._rows], self.budget[self._rows])
            self._leave_estimated(np.flatnonzero(self._active & ~needed.any(axis=1)), BUDGET)
        chosen = np.zeros_like(needed)
        feature = self._first(needed) if self.settings.order == "trees" else self._worthiest(needed)
        chosen[np.arange(len(feature)), feature] = self._active
        return chosen

    def _worthiest(self, allowed: Bools) -> Rows:
        """Return for each row the feature that removes the most uncertainty for its price."""
        price = self.batch.costs.marginals(self.batch.fetched[self._rows])
        # Features that cost nothing now come first, in any order.
        worth = np.full(allowed.shape, np.inf)
        np.divide(self._cursor.spread(self._horizon), price, out=worth, where=price > 0)
        worth[~allowed] = -1.0
        return np.asarray(worth.argmax(axis=1))

    def _first(self, allowed: Bools) -> Rows:
        """Return for each row the first allowed feature, in the order of the trees, at which it stopped."""
        feature = self.forest.feature[self._cursor.nodes]
        row = np.arange(self._rows.size)
        candidate = (feature >= 0) & allowed[row, feature] & (np.arange(len(feature))[:, None] < self._horizon)
        return np.asarray(feature[candidate.argmax(axis=0), row])

    def _leave_estimated(self, at: Rows, status: str) -> None:
        """Let rows leave that have not finished all trees."""
        if at.size == 0:
            return
        cursor, rows = self._cursor.take(at), self._rows[at]
        trees = cursor.finished_trees()
        # Trees beyond the horizon have not been descended, but part of their features may be known.
        cursor.advance(self.batch.X[rows], self.batch.known[rows])
        if self.settings.unknown == "missing":
            cursor.advance(np.where(self.batch.known[rows], self.batch.X[rows], np.nan))
        self._leave(at, status, cursor.expected_scores(), trees)

    def _leave(self, at: Rows, status: str, scores: Floats | float, trees: int | Rows) -> None:
        """Record the results of some rows: they are not active any more."""
        leaving = self._rows[at]
        self._active[at] = False
        self.status[leaving] = status
        self.trees[leaving] = trees
        self.scores[leaving] = np.reshape(scores, (-1, self.forest.n_outputs)) if np.ndim(scores) else scores
