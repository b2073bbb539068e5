"""Boosting rounds of LightGBM under feature costs: penalties, a strict mask, and regrowth where CEGB errs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import lightgbm as lgb
import numpy as np
from numpy.typing import NDArray

from grbb_ext.adapters.lightgbm import _params as parameters
from grbb_ext.adapters.lightgbm._trees import Growth, read_growth
from grbb_ext.costs import Ledger, Mask


class Rounds:
    """Keep the rounds of one booster within the costs of a ledger.

    Before a round, :meth:`prepare` gives each column the penalty mu * (marginal price) and closes columns that the
    budget does not allow. After it, :meth:`settle` reads the new trees. They stand if their purchases fit together and
    no split was touched by the fault of CEGB (:func:`read_growth`). Otherwise the round is taken back and grown again
    on the columns that are paid and those bought soundly: nothing is bought in that growth, so that no gain can carry
    a penalty or a refund. Columns that were bought after a touched split are given a second chance in yet another
    growth, kept if it lowers eq. 7 of the tree, i.e. if gain - mu * price rises.

    LightGBM forgets the penalty of a column once it has been in a tree, also in one that was taken back. Such columns
    (`pardoned`) are closed in ordinary rounds, and tried as above from time to time, one by one.

    Parameters
    ----------
    booster : lightgbm.Booster
        At the start of training.
    ledger : Ledger
        What is paid already, bound to the columns of the booster.
    mu : float
        Trade-off of eq. 1.
    params : dict
        The user's parameters.
    """

    def __init__(self, booster: lgb.Booster, ledger: Ledger, mu: float, params: dict[str, Any]) -> None:
        self.ledger, self._booster, self._mu = ledger, booster, mu
        objective = parameters.get(params, "objective")
        self._objective = objective if callable(objective) else None
        n = ledger.costs.n_features
        self._contri = parameters.user_contri(params, n)
        # Where leaves refuse or discount columns for other reasons, the fault passes over these.
        self._leaky = mu > 0 and parameters.restricts_leaves(params)
        # A change of parameters would set back the seeds of row sampling by gradient.
        self._seed = int(parameters.get(params, "bagging_seed", 3)) if parameters.is_goss(params) else None
        # LightGBM drops columns that cannot be split, and fails where parameters of a data set without any are changed.
        self._is_empty = not any(map(booster.train_set.feature_num_bin, range(n)))
        self._open: Mask = np.ones(n, dtype=bool)
        self._penalty = np.zeros(n)
        self._pardoned: Mask = np.zeros(n, dtype=bool)
        self._wait = np.ones(n, dtype=np.intp)
        self._due = np.zeros(n, dtype=np.intp)
        self._n_rounds = booster.current_iteration()

    def prepare(self) -> None:
        """Set penalties and mask of the coming round."""
        self._set(self.ledger.affordable() & ~self._shut(), self._mu * self.ledger.marginals())

    def settle(self) -> tuple[bool, bool]:
        """Judge the round that was grown, grow it again where needed, and pay.

        Returns
        -------
        empty, changed : bool
            Whether the round found no split; whether its trees are others than those it grew first.
        """
        growth = self._read()
        changed = False
        if growth is not None and (growth.touched or not self.ledger.fits(growth.bought)):
            self._take_back(growth)
            growth = self._choose(growth.sound, growth.doubtful)
            changed = True
        elif growth is None or not growth.bought:
            candidates = self._candidates(at_once=growth is None)
            if candidates:
                growth = self._try(growth, [], candidates)
                changed = True
        if growth is None:
            return True, changed
        self._n_rounds = self._booster.current_iteration()
        self.ledger.buy(growth.bought, round=self._n_rounds - 1)
        return False, changed

    def _choose(self, sound: list[int], doubtful: list[int]) -> Growth | None:
        """Grow on what was bought soundly, and with the doubtful too if that is better."""
        base = self._fitting(sound)
        growth = self._grow(base)
        more = [column for column in self._fitting([*base, *doubtful]) if column not in base]
        return self._try(growth, base, more) if more else growth

    def _try(self, growth: Growth | None, base: list[int], more: list[int]) -> Growth | None:
        """Grow the round with more columns open, and keep that if gain - mu * price rises."""
        self._take_back(growth)
        larger = self._grow([*base, *more])
        if larger is not None and self._value(larger) > self._value(growth):
            return larger
        self._take_back(larger)
        self._wait[more] *= 2
        self._due[more] = self._booster.current_iteration() + self._wait[more]
        return None if growth is None else self._grow(base)

    def _value(self, growth: Growth | None) -> float:
        return 0.0 if growth is None else growth.gain - self._mu * self.ledger.price(growth.bought)

    def _fitting(self, columns: Iterable[int]) -> list[int]:
        """Return the columns that fit into the budget together, first come, first served."""
        chosen: list[int] = []
        for column in columns:
            if self.ledger.fits([*chosen, column]):
                chosen.append(column)
        return chosen

    def _grow(self, bought: list[int]) -> Growth | None:
        """Grow a round on the columns that cost nothing now and on some that are about to be bought."""
        allowed = self.ledger.marginals() == 0
        allowed[bought] = True
        # Columns about to be bought have been in a tree, so that their penalty is gone; the rest is closed.
        self._set(allowed, self._penalty)
        while True:
            self._booster.update(fobj=self._objective)
            growth = self._read()
            if growth is None or not growth.touched:
                return growth
            # A free column, used for the first time, may have leaked into a leaf that refuses it: only once.
            self._take_back(growth)

    def _read(self) -> Growth | None:
        """Return what the newest round grew, or None if it found no split, for which LightGBM may keep no tree."""
        if self._booster.current_iteration() == self._n_rounds:
            return None
        watched = ~self._pardoned & ((self._penalty > 0) | self._leaky)
        growth = read_growth(self._booster, ~self.ledger.used, watched)
        if growth is not None and self._mu > 0:
            self._pardoned[growth.used] = True
        return growth

    def _take_back(self, growth: Growth | None) -> None:
        if growth is not None:
            self._booster.rollback_one_iter()

    def _shut(self) -> Mask:
        """Return the columns whose penalty LightGBM has forgotten although they are not paid."""
        return self._pardoned & ~self.ledger.used & (self.ledger.marginals() > 0)

    def _candidates(self, at_once: bool) -> list[int]:
        """Return the columns to try now: the first one due, or all of them when training would end otherwise."""
        shut = np.flatnonzero(self._shut() & self.ledger.affordable())
        if at_once:
            return self._fitting(shut.tolist())
        now = self._booster.current_iteration()
        due = shut[self._due[shut] <= now]
        return [int(due[np.argmin(self._due[due])])] if due.size else []

    def _set(self, allowed: Mask, penalty: NDArray[np.float64]) -> None:
        """Change mask and penalties of the booster where they differ from the present ones."""
        changes: dict[str, Any] = {}
        if not np.array_equal(allowed, self._open):
            changes["feature_contri"] = np.where(allowed, self._contri, 0.0).tolist()
        if not np.array_equal(penalty, self._penalty):
            changes["cegb_tradeoff"] = 1.0
            changes["cegb_penalty_feature_coupled"] = penalty.tolist()
        if changes and not self._is_empty:
            if self._seed is not None:
                self._seed += 1
                changes["bagging_seed"] = self._seed
            self._booster.reset_parameter(changes)
            self._open, self._penalty = allowed, penalty
