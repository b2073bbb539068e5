"""Boosting rounds of LightGBM under feature costs: penalties, a strict mask, and regrowth where CEGB errs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import lightgbm as lgb
import numpy as np
from numpy.typing import NDArray

from grbb_ext.costs import Ledger


@dataclass(frozen=True)
class Growth:
    """What one round grew.

    Attributes
    ----------
    sound : list of int
        Columns bought before the first split that the fault of CEGB may have touched, in growth order.
    doubtful : list of int
        Columns bought after it.
    touched : bool
        Whether there is such a split.
    gain : float
        Sum of the recorded gains of all splits.
    """

    sound: list[int]
    doubtful: list[int]
    touched: bool
    gain: float

    @property
    def bought(self) -> list[int]:
        """All columns bought, in growth order."""
        return self.sound + self.doubtful


def used_columns(booster: lgb.Booster) -> NDArray[np.intp]:
    """Return how many splits of a booster, among those with a recorded gain above 0, read each column."""
    return np.asarray(booster.feature_importance("split", iteration=0), dtype=np.intp)


def columns_in_text(booster: lgb.Booster) -> NDArray[np.bool_]:
    """Return which columns a booster uses, read from its model text: exact, and slower than :func:`used_columns`."""
    used = np.zeros(booster.num_feature(), dtype=bool)
    for line in re.findall(r"^split_feature=(.*)$", booster.model_to_string(num_iteration=-1), re.MULTILINE):
        used[[int(column) for column in line.split()]] = True
    return used


def read_growth(booster: lgb.Booster, unpaid: NDArray[np.bool_], watched: NDArray[np.bool_]) -> Growth:
    """Read the newest round of a booster.

    When a tree first uses feature f in one leaf, CEGB of LightGBM 4.7.0 raises the cached candidate of f in every
    other open leaf by the penalty, which this candidate never carried, and offers it even where interaction constraints
    or column sampling forbid f. A split is touched by the fault only if it reads f in a leaf that was open at the
    time: one made by an earlier split than the first use, and split later. Without such a split the trees are those
    that CEGB means to grow, for a raised candidate that was not taken would not have been taken unraised.

    Parameters
    ----------
    booster : lightgbm.Booster
        After the round.
    unpaid : ndarray of bool
        Columns that the model did not use before the round.
    watched : ndarray of bool
        Columns whose first use can set off the fault.

    Returns
    -------
    Growth
    """
    start = booster.current_iteration() - 1
    dump = booster.dump_model(num_iteration=1, start_iteration=start)
    sound: list[int] = []
    doubtful: list[int] = []
    touched = False
    gain = 0.0
    seen: set[int] = set()
    for tree in dump["tree_info"]:
        first_use: dict[int, int] = {}
        for order, parent, column, split_gain in sorted(_splits(tree["tree_structure"], -1)):
            gain += split_gain
            if watched[column] and parent < first_use.get(column, -1):
                touched = True
            if column in seen:
                continue
            seen.add(column)
            first_use[column] = order
            if unpaid[column]:
                (doubtful if touched else sound).append(column)
    return Growth(sound, doubtful, touched, gain)


def _splits(node: dict[str, Any], parent: int) -> Iterator[tuple[int, int, int, float]]:
    """Yield (growth order, growth order of the parent, column, gain) of the splits below a node."""
    stack = [(node, parent)]
    while stack:
        node, parent = stack.pop()
        if "split_index" in node:
            order = node["split_index"]
            yield order, parent, node["split_feature"], float(node["split_gain"])
            stack += [(node["left_child"], order), (node["right_child"], order)]


Mask = NDArray[np.bool_]


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
    objective : callable or None
        The custom objective.
    contri : ndarray or None
        The user's ``feature_contri``.
    leaky : bool
        Whether leaves refuse or discount columns for other reasons: the fault passes over these.
    reseed : int or None
        Start of seeds for row sampling that a change of parameters would set back; None where it does not.
    """

    def __init__(
        self,
        booster: lgb.Booster,
        ledger: Ledger,
        mu: float,
        objective: Callable[..., Any] | None,
        contri: NDArray[np.float64] | None,
        leaky: bool,
        reseed: int | None,
    ) -> None:
        self.ledger = ledger
        self._booster = booster
        self._mu = mu
        self._objective = objective
        n = ledger.costs.n_features
        self._contri = np.ones(n) if contri is None else contri
        self._leaky = leaky and mu > 0
        self._reseed = reseed
        self._open: Mask = np.ones(n, dtype=bool)
        self._penalty = np.zeros(n)
        self._pardoned: Mask = np.zeros(n, dtype=bool)
        self._wait = np.ones(n, dtype=np.intp)
        self._due = np.zeros(n, dtype=np.intp)
        self._n_splits = int(used_columns(booster).sum())

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
                before = growth if growth is None else self._read(in_full=True)
                growth = self._try(before, [], candidates)
                changed = True
        if growth is None:
            return True, changed
        self._n_splits = int(used_columns(self._booster).sum())
        self.ledger.buy(growth.bought, round=self._booster.current_iteration() - 1)
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
        self._put_off(more)
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
            growth = self._read(in_full=True)
            if growth is None or not growth.touched:
                return growth
            # A free column, used for the first time, may have leaked into a leaf that refuses it: only once.
            self._take_back(growth)

    def _read(self, in_full: bool = False) -> Growth | None:
        """Return what the newest round grew, or None if it found no split; gains only on demand or where it buys."""
        splits = used_columns(self._booster)
        if splits.sum() == self._n_splits:
            return None
        used = splits > 0
        unpaid, watched = ~self.ledger.used, ~self._pardoned & ((self._penalty > 0) | self._leaky)
        growth = Growth([], [], False, 0.0)
        if in_full or (used & (unpaid | watched)).any():
            growth = read_growth(self._booster, unpaid, watched)
        if self._mu > 0:
            self._pardoned |= used
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

    def _put_off(self, columns: list[int]) -> None:
        self._wait[columns] *= 2
        self._due[columns] = self._booster.current_iteration() + self._wait[columns]

    def _set(self, allowed: Mask, penalty: NDArray[np.float64]) -> None:
        """Change mask and penalties of the booster where they differ from the present ones."""
        changes: dict[str, Any] = {}
        if not np.array_equal(allowed, self._open):
            changes["feature_contri"] = np.where(allowed, self._contri, 0.0).tolist()
        if not np.array_equal(penalty, self._penalty):
            changes["cegb_tradeoff"] = 1.0
            changes["cegb_penalty_feature_coupled"] = penalty.tolist()
        if changes:
            if self._reseed is not None:
                self._reseed += 1
                changes["bagging_seed"] = self._reseed
            self._booster.reset_parameter(changes)
            self._open, self._penalty = allowed, penalty
