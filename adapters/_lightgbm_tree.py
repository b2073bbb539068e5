"""Read what the newest round of a LightGBM booster bought, in the order in which its trees grew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import lightgbm as lgb
import numpy as np
from numpy.typing import NDArray


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
    """Return how many splits of a booster read each column."""
    return np.asarray(booster.feature_importance("split", iteration=0), dtype=np.intp)


def read_growth(booster: lgb.Booster, unpaid: NDArray[np.bool_], penalised: NDArray[np.bool_]) -> Growth:
    """Read the newest round of a booster.

    When CEGB buys feature f in one leaf, LightGBM 4.7.0 raises the cached candidate of f in every other open leaf by
    the penalty that this candidate never carried. A split is touched by the fault only if it reads f in a leaf that
    was open at the time: one made by an earlier split than the purchase, and split later. Without such a split the
    trees are those that CEGB means to grow, for a raised candidate that was not taken would not have been taken
    unraised.

    Parameters
    ----------
    booster : lightgbm.Booster
        After the round.
    unpaid : ndarray of bool
        Columns that the model did not use before the round.
    penalised : ndarray of bool
        Columns that carried a penalty in the round.

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
    for tree in dump["tree_info"]:
        bought_here: dict[int, int] = {}
        for order, parent, column, split_gain in sorted(_splits(tree["tree_structure"], -1)):
            gain += split_gain
            if column in bought_here and parent < bought_here[column] and penalised[column]:
                touched = True
            if unpaid[column] and column not in sound and column not in doubtful:
                bought_here[column] = order
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
