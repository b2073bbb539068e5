"""The evaluation of one batch: descend the trees, stop rows that are done, choose what the others buy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from grbb_ext.forest import ForestCursor
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
    H = scores.astype(np.float64)
    return np.asarray(expit(np.abs(H)) if H.ndim == 1 else softmax(H, axis=1).max(axis=1))


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
        # Trees between two checks of the probability; the other exits look at all trees at once.
        stepwise = settings.early_exit not in (None, "decision")
        self._step = min(settings.exit_every * self.forest.trees_per_round, n_trees) if stepwise else n_trees
        # The active rows, their places in the trees, the trees that they finished, and those to descend now.
        self._rows = np.arange(n)
        self._cursor = ForestCursor(self.forest, n)
        self._done = np.zeros(n, dtype=np.intp)
        self._horizon = np.full(n, self._step, dtype=np.intp)

    def run(self) -> None:
        """Evaluate all rows as far as the early exit and the budget allow."""
        while self._rows.size:
            at = self.batch.at(self._rows)
            if self.batch.known.any():
                stop = int(self._horizon.max())
                self._cursor.advance(self.batch.X[at], self.batch.known[at], stop_tree=stop)
            self._done = self._cursor.finished_trees()
            self._let_leave()
            wanted = self._choose()
            sources = self.batch.costs.union(wanted) & ~self.batch.fetched[self.batch.at(self._rows)]
            for source in np.flatnonzero(sources.any(axis=0)):
                self.batch.buy(int(source), self._rows[sources[:, source]])
            self.batch.complete(self._rows, wanted)

    def _let_leave(self) -> None:
        """Remove rows that are done from the active ones."""
        self._leave(np.flatnonzero(self.batch.failed[self._rows]), FAILED)
        finished = np.flatnonzero(self._done == self.forest.n_trees)
        if finished.size:
            self._leave(finished, FINISHED, self._cursor.take(finished).raw_scores())
        early_exit = self.settings.early_exit
        if early_exit == "decision":
            certain = np.flatnonzero(decided(*self._cursor.bounds(), self.settings.decision_threshold))
            self._leave(certain, DECIDED, self._estimate(certain))
        elif early_exit is not None:
            for horizon in range(self._step, self.forest.n_trees, self._step):
                self._leave_confident(horizon, float(early_exit))

    def _leave_confident(self, horizon: int, least: float) -> None:
        """Stop rows whose first `horizon` trees give a class a probability above `least`; the others get more trees."""
        at = np.flatnonzero((self._horizon == horizon) & (self._done >= horizon))
        if at.size == 0:
            return
        self._horizon[at] = min(horizon + self._step, self.forest.n_trees)
        scores = self._cursor.take(at).raw_scores(stop_tree=horizon)
        n_rounds = horizon / self.forest.trees_per_round if self.forest.averaged else 1.0
        sure = confidence(scores / n_rounds) > least
        self._done[at[sure]] = horizon  # more may be done, but they are not in the score
        self._leave(at[sure], CONFIDENT, scores[sure])

    def _choose(self) -> Bools:
        """Return the features to buy now, shape (rows, d); rows that can afford none of those they need stop."""
        needed = self._cursor.needed(self._horizon)
        if self.budget is None and self.settings.early_exit != "decision":
            return needed  # each of them will be read in any case
        if self.budget is not None:
            needed &= self.batch.costs.affordable(self.batch.fetched[self._rows], self.budget[self._rows])
            poor = np.flatnonzero(~needed.any(axis=1))
            self._leave(poor, BUDGET, self._estimate(poor))
            needed = np.delete(needed, poor, axis=0)
        chosen = np.zeros_like(needed)
        feature = self._first(needed) if self.settings.order == "trees" else self._worthiest(needed)
        chosen[np.arange(len(feature)), feature] = True
        return chosen

    def _worthiest(self, allowed: Bools) -> Rows:
        """Return for each row the feature that removes the most uncertainty for its price."""
        price = self.batch.costs.marginals(self.batch.fetched[self._rows])
        spread = np.where(allowed, self._cursor.spread(self._horizon), -1.0)
        # Features that cost nothing now come first, in any order.
        worth = np.where(price > 0, spread / np.where(price > 0, price, 1.0), np.where(allowed, np.inf, -1.0))
        return np.asarray(worth.argmax(axis=1))

    def _first(self, allowed: Bools) -> Rows:
        """Return for each row the first allowed feature, in the order of the trees, at which it stopped."""
        feature = self.forest.feature[self._cursor.nodes]
        row = np.arange(self._rows.size)
        candidate = (feature >= 0) & allowed[row, feature] & (np.arange(len(feature))[:, None] < self._horizon)
        return np.asarray(feature[candidate.argmax(axis=0), row])

    def _estimate(self, at: Rows) -> Floats:
        """Return estimates for rows that have not finished all trees."""
        cursor, rows = self._cursor.take(at), self._rows[at]
        # Trees beyond the horizon have not been descended, but part of their features may be known.
        cursor.advance(self.batch.X[rows], self.batch.known[rows])
        if self.settings.unknown == "missing":
            cursor.advance(np.where(self.batch.known[rows], self.batch.X[rows], np.nan))
        return cursor.expected_scores()

    def _leave(self, at: Rows, status: str, scores: Floats | None = None) -> None:
        """Record the results of some rows, and remove them from the active ones."""
        if at.size == 0:
            return
        leaving, staying = self._rows[at], np.delete(np.arange(self._rows.size), at)
        self.status[leaving] = status
        self.trees[leaving] = self._done[at]
        if scores is not None:
            self.scores[leaving] = scores.reshape(-1, self.forest.n_outputs)
        self._rows, self._done, self._horizon = self._rows[staying], self._done[staying], self._horizon[staying]
        self._cursor = self._cursor.take(staying)
