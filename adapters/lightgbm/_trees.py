"""A LightGBM booster as its model text: every split in growth order, and the objective whose link it carries."""

from __future__ import annotations

from dataclasses import dataclass

import lightgbm as lgb
import numpy as np
from numpy.typing import NDArray

from grbb_ext.objective import GRBBObjective


@dataclass(frozen=True)
class Splits:
    """The splits of one tree, in the order in which it grew.

    Attributes
    ----------
    column : list of int
        The column that each split reads.
    gain : list of float
        Its recorded gain, to six digits; 0 where it is below 1e-45.
    parent : list of int
        Number of the split above it; -1 for the root.
    """

    column: list[int]
    gain: list[float]
    parent: list[int]


def read_trees(booster: lgb.Booster, first_round: int = 0, n_rounds: int = -1) -> list[Splits]:
    """Read the trees of some rounds; -1 is all that follow.

    The text of one round takes LightGBM 0.06 to 0.14 ms, where ``dump_model`` takes 0.6 to 7; and it shows splits
    without a gain, which ``feature_importance`` does not count.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> data = lgb.Dataset(X, [0.0, 1.0, 4.0, 9.0], params={"min_data_in_bin": 1})
    >>> booster = lgb.train({"min_data_in_leaf": 1, "verbosity": -1}, data, 1)
    >>> read_trees(booster)
    [Splits(column=[0, 1, 1], gain=[36.0, 12.5, 0.5], parent=[-1, 0, 0])]
    """
    text = booster.model_to_string(num_iteration=n_rounds, start_iteration=first_round)
    trees: list[Splits] = []
    for block in text[: text.index("\nend of trees")].split("\nTree=")[1:]:
        fields = dict(line.split("=", 1) for line in block.split("\n")[1:] if "=" in line)
        column = list(map(int, fields["split_feature"].split()))
        parent = [-1] * len(column)
        for side in ("left_child", "right_child"):
            for order, child in enumerate(map(int, fields[side].split())):
                if child >= 0:
                    parent[child] = order
        trees.append(Splits(column, list(map(float, fields["split_gain"].split())), parent))
    return trees


def columns_of(booster: lgb.Booster) -> NDArray[np.bool_]:
    """Return which columns some split of a booster reads."""
    used = np.zeros(booster.num_feature(), dtype=bool)
    used[[column for tree in read_trees(booster) for column in tree.column]] = True
    return used


@dataclass(frozen=True)
class Growth:
    """What one round grew.

    Attributes
    ----------
    used : list of int
        Columns that its splits read.
    sound : list of int
        Columns bought before the first split that the fault of CEGB may have touched, in growth order.
    doubtful : list of int
        Columns bought after it.
    touched : bool
        Whether there is such a split.
    gain : float
        Sum of the recorded gains of all splits.
    """

    used: list[int]
    sound: list[int]
    doubtful: list[int]
    touched: bool
    gain: float

    @property
    def bought(self) -> list[int]:
        """All columns bought, in growth order."""
        return self.sound + self.doubtful


def read_growth(booster: lgb.Booster, unpaid: NDArray[np.bool_], watched: NDArray[np.bool_]) -> Growth | None:
    """Read the newest round of a booster; None if it has no split.

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
    Growth or None
    """
    sound: list[int] = []
    doubtful: list[int] = []
    touched = False
    gain = 0.0
    used: dict[int, None] = {}
    for tree in read_trees(booster, booster.current_iteration() - 1, 1):
        gain += sum(tree.gain)
        first_use: dict[int, int] = {}
        for order, (column, parent) in enumerate(zip(tree.column, tree.parent, strict=True)):
            if watched[column] and parent < first_use.get(column, -1):
                touched = True
            if column in used:
                continue
            used[column] = None
            first_use[column] = order
            if unpaid[column]:
                (doubtful if touched else sound).append(column)
    return Growth(list(used), sound, doubtful, touched, gain) if used else None


# What LightGBM writes for its own objectives with the same link.
_OBJECTIVES = {"logistic": "binary sigmoid:1", "softmax": "multiclass num_class:{}", "squared_error": "regression"}


def add_link(booster: lgb.Booster, obj: GRBBObjective | None = None) -> lgb.Booster:
    """Make a booster that was trained with a GRBB objective a model that predicts probabilities.

    A model that was trained with a callable names no objective, so that ``predict`` gives raw scores, here and wherever
    its file is read. Afterwards it names the LightGBM objective that has the same link (``binary``, ``multiclass`` or
    ``regression``). Trees and raw scores stay the same, bit by bit. So does ``cross_entropy``, the loss of soft labels,
    become ``binary``: the link is the same, and converters such as that to ONNX know it.

    Parameters
    ----------
    booster : lightgbm.Booster
        Trained with ``params["objective"] = obj``, or with ``cross_entropy``. It is changed.
    obj : GRBBObjective or None, default=None
        The objective; None after ``cross_entropy``.

    Returns
    -------
    lightgbm.Booster
        The booster itself.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from grbb_ext import grbb_objective
    >>> X, truth = make_moons(300, noise=0.1, random_state=0)
    >>> obj = grbb_objective(X, np.where(np.arange(300) < 10, truth, -1))
    >>> booster = lgb.train({"objective": obj, "verbosity": -1}, lgb.Dataset(X), 20)
    >>> raw_scores = booster.predict(X)
    >>> bool(np.allclose(add_link(booster, obj).predict(X), obj.predict_proba(raw_scores)[:, 1]))
    True
    """
    header, names, trees = booster.model_to_string(num_iteration=-1).partition("\nfeature_names=")
    soft = "objective=cross_entropy" in header.split("\n")  # not always the last line: forests have one more
    if "\nobjective=" in header and not soft:
        raise ValueError("The booster names an objective already, so its predictions have a link. Use it as it is.")
    if obj is None and not soft:
        raise ValueError("The booster was trained with a callable: pass its objective too, add_link(booster, obj).")
    if obj is not None and booster.num_model_per_iteration() != obj.n_outputs_:
        raise ValueError(
            f"The booster has {booster.num_model_per_iteration()} scores per row, the objective {obj.n_outputs_}. Pass "
            "the objective that it was trained with."
        )
    name = _OBJECTIVES["logistic" if obj is None else obj.loss_.name].format(booster.num_model_per_iteration())
    header = header.replace("\nobjective=cross_entropy", "")
    # Converters read the parameters instead, in the file or of the object.
    trained_with = "cross_entropy" if soft else "custom"
    trees = trees.replace(f"\n[objective: {trained_with}]\n", f"\n[objective: {name.split()[0]}]\n")
    booster.model_from_string(f"{header}\nobjective={name}{names}{trees}")
    booster.params = {**booster.params, "objective": name.split()[0]}
    return booster
