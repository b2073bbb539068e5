"""The evaluation of one batch: descend the trees, stop rows that are done, choose what the others buy."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from grbb_ext.forest import Forest, ForestCursor
from grbb_ext.ondemand._result import BUDGET, FAILED, FINISHED, StoppingRule
from grbb_ext.ondemand._sources import Batch, Bools

Floats = NDArray[np.floating[Any]]
Unknown = Literal["mean", "missing"]
Order = Literal["worth", "trees"]


class Evaluation:
    """Evaluates one batch.

    Parameters
    ----------
    forest : Forest
        The model.
    batch : Batch
        The rows, with what is free.
    rule : StoppingRule or None
        When rows stop early.
    budget : ndarray of shape (n,) or None
        The most to spend on each row.
    unknown, order
        As for :class:`~grbb_ext.OnDemandPredictor`.

    Attributes
    ----------
    scores : ndarray of shape (n, n_outputs)
        Raw scores; NaN for failed rows.
    status : ndarray of str of shape (n,)
        Why the evaluation of a row ended.
    trees : ndarray of int of shape (n,)
        Trees evaluated before the first open one, or those in the score of a confident row.
    """

    def __init__(
        self,
        forest: Forest,
        batch: Batch,
        rule: StoppingRule | None,
        budget: NDArray[np.float64] | None,
        unknown: Unknown,
        order: Order,
    ) -> None:
        self.forest, self.batch, self.rule, self.budget = forest, batch, rule, budget
        self.unknown, self.order = unknown, order
        n = len(batch.ids)
        self.scores = np.full((n, forest.n_outputs), np.nan, dtype=forest.base.dtype)
        self.status = np.full(n, "", dtype="<U9")
        self.trees = np.zeros(n, dtype=np.intp)
        # The active rows, their places in the trees, the trees that they finished, and those to descend now.
        self._rows = np.arange(n)
        self._cursor = ForestCursor(forest, n)
        self._done = np.zeros(n, dtype=np.intp)
        self._horizon = np.full(n, forest.n_trees if rule is None else min(rule.step, forest.n_trees), dtype=np.intp)

    def run(self) -> None:
        """Evaluate all rows as far as the rule and the budget allow."""
        while self._rows.size:
            self._advance()
            self._let_leave()
            wanted = self._choose()
            sources = self.batch.costs.union(wanted) & ~self.batch.fetched[self.batch.at(self._rows)]
            for source in np.flatnonzero(sources.any(axis=0)):
                self.batch.buy(int(source), self._rows[sources[:, source]])
            self.batch.complete(self._rows, wanted)

    def _advance(self) -> None:
        at, stop = self.batch.at(self._rows), int(self._horizon.max())
        if self.batch.known.any():
            self._cursor.advance(self.batch.X[at], self.batch.known[at], stop_tree=stop)
        self._done = self._cursor.finished_trees()

    @property
    def _buys_all(self) -> bool:
        """Whether a row buys all features at which it stopped, because each of them will be read in any case."""
        return self.budget is None and not (self.rule is not None and self.rule.one_by_one)

    def _let_leave(self) -> None:
        """Remove rows that are done from the active ones."""
        self._leave(self.batch.failed[self._rows], FAILED, None)
        finished = self._done == self.forest.n_trees
        if finished.any():
            self._leave(finished, FINISHED, self._cursor.take(np.flatnonzero(finished)).raw_scores())
        if self.rule is None:
            return
        if self.rule.one_by_one:
            self._apply(self.rule, np.ones(self._rows.size, dtype=bool), self.forest.n_trees)
            return
        for horizon in range(self.rule.step, self.forest.n_trees, self.rule.step):
            at_horizon = (self._horizon == horizon) & (self._done >= horizon)
            self._horizon[at_horizon] = min(horizon + self.rule.step, self.forest.n_trees)
            self._apply(self.rule, at_horizon, horizon)

    def _apply(self, rule: StoppingRule, candidates: Bools, stop_tree: int) -> None:
        """Stop those of the candidates that the rule stops."""
        at = np.flatnonzero(candidates)
        if at.size == 0:
            return
        leaves, scores = rule.leaves(self._cursor.take(at), stop_tree)
        mask = np.zeros(self._rows.size, dtype=bool)
        mask[at[leaves]] = True
        if scores is None:
            self._leave(mask, rule.status, self._estimate(at[leaves]))
        else:
            self._done[mask] = stop_tree  # more may be done, but they are not in the score
            self._leave(mask, rule.status, scores[leaves])

    def _choose(self) -> Bools:
        """Return the features to buy now, shape (rows, d); rows that can afford none of those they need stop."""
        needed = self._cursor.needed(self._horizon)
        if self._buys_all:
            return needed
        if self.budget is not None:
            needed &= self.batch.costs.affordable(self.batch.fetched[self._rows], self.budget[self._rows])
            poor = np.asarray(~needed.any(axis=1))
            self._leave(poor, BUDGET, self._estimate(np.flatnonzero(poor)))
            needed = needed[~poor]
        return self._first(needed) if self.order == "trees" else self._worthiest(needed)

    def _worthiest(self, allowed: Bools) -> Bools:
        """Mark for each row the feature that removes the most uncertainty for its price."""
        price = self.batch.costs.marginals(self.batch.fetched[self._rows])
        spread = np.where(allowed, self._cursor.spread(self._horizon), -1.0)
        # Features that cost nothing now come first, in any order.
        worth = np.where(price > 0, spread / np.where(price > 0, price, 1.0), np.where(allowed, np.inf, -1.0))
        chosen = np.zeros_like(allowed)
        chosen[np.arange(len(worth)), worth.argmax(axis=1)] = True
        return chosen

    def _first(self, allowed: Bools) -> Bools:
        """Mark for each row the first allowed feature, in the order of the trees, at which it stopped."""
        feature = self.forest.feature[self._cursor.nodes]
        row = np.arange(self._rows.size)
        candidate = (feature >= 0) & allowed[row, feature] & (np.arange(len(feature))[:, None] < self._horizon)
        chosen = np.zeros_like(allowed)
        chosen[row, feature[candidate.argmax(axis=0), row]] = True
        return chosen

    def _estimate(self, at: NDArray[np.intp]) -> Floats:
        """Return estimates for rows that have not finished all trees."""
        cursor, rows = self._cursor.take(at), self._rows[at]
        # Trees beyond the horizon have not been descended, but part of their features may be known.
        cursor.advance(self.batch.X[rows], self.batch.known[rows])
        if self.unknown == "missing":
            cursor.advance(np.where(self.batch.known[rows], self.batch.X[rows], np.nan))
        return cursor.expected_scores()

    def _leave(self, mask: Bools, status: str, scores: Floats | None) -> None:
        """Record the results of some rows, and remove them from the active ones."""
        if not mask.any():
            return
        leaving = self._rows[mask]
        self.status[leaving] = status
        self.trees[leaving] = self._done[mask]
        if scores is not None:
            self.scores[leaving] = scores.reshape(-1, self.forest.n_outputs)
        staying = np.flatnonzero(~mask)
        self._rows, self._done, self._horizon = self._rows[staying], self._done[staying], self._horizon[staying]
        self._cursor = self._cursor.take(staying)
