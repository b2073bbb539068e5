"""Read what the newest round of a LightGBM booster bought, in the order in which its trees grew."""

from __future__ import annotations

import re
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
