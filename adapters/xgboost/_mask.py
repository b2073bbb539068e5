"""A strict mask of columns for XGBoost, made of feature weights and column sampling."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import xgboost as xgb

from grbb_ext.costs import Groups, Mask

_COLUMN_SAMPLING = ("colsample_bytree", "colsample_bylevel", "colsample_bynode")


@dataclass(frozen=True)
class Settings:
    """What a booster is set to.

    Attributes
    ----------
    objective : str
        Name of the built-in objective; XGBoost has a default one beside a custom objective.
    scale_pos_weight : float
        Weight of positive rows in the logistic objectives.
    colsample_bytree, colsample_bylevel, colsample_bynode, subsample, gamma : float
        As in XGBoost.
    interaction_constraints : str
        The user's own, or an empty text.
    num_class : int
        Number of classes; 0 where there is one score per row.
    config : str
        The whole configuration, for ``Booster.load_config``.
    """

    objective: str
    scale_pos_weight: float
    colsample_bytree: float
    colsample_bylevel: float
    colsample_bynode: float
    subsample: float
    gamma: float
    interaction_constraints: str
    num_class: int
    config: str

    @property
    def samples_columns(self) -> bool:
        """Whether trees see a random part of the columns."""
        return any(getattr(self, name) < 1 for name in _COLUMN_SAMPLING)

    @property
    def random(self) -> bool:
        """Whether a round without a split may be followed by one with a split, by luck."""
        return self.samples_columns or self.subsample < 1


def read_settings(booster: xgb.Booster) -> Settings:
    """Read the settings of a booster, and refuse by name those under which costs cannot be kept."""
    config = booster.save_config()
    learner: dict[str, Any] = json.loads(config)["learner"]
    grower = learner["gradient_booster"]
    name = grower["name"]
    if name == "gblinear":
        raise ValueError("booster='gblinear' does not go with costs: it has no trees. Use 'gbtree'.")
    # From XGBoost 3.3 on DART is called gbtree, and is there where trees are dropped.
    dropped = grower.get("dart_train_param", {"rate_drop": 0, "one_drop": 0})
    if name == "dart" or float(dropped["rate_drop"]) > 0 or int(dropped["one_drop"]):
        raise ValueError(
            "booster='dart' does not go with costs: its rounds follow other gradients than those that can be probed. "
            "Use 'gbtree', without rate_drop and one_drop."
        )
    train, model = grower["gbtree_train_param"], grower["gbtree_model_param"]
    # The configuration hides process_type="update", but not the updaters, which then grow no tree.
    if not train["updater_seq"].startswith("grow_"):
        raise ValueError(
            f"updater={train['updater']!r} does not go with costs: it grows no tree. Take it and process_type out of "
            "the parameters."
        )
    if int(model["num_parallel_tree"]) > 1:
        raise ValueError(
            f"num_parallel_tree={model['num_parallel_tree']} does not go with costs: gains of trees that are averaged "
            "do not add up. Use 1."
        )
    if learner["learner_train_param"].get("multi_strategy", "one_output_per_tree") != "one_output_per_tree":
        raise ValueError(
            "multi_strategy='multi_output_tree' does not go with costs: it reports no gains. Use 'one_output_per_tree'."
        )
    device = learner["generic_param"]["device"]
    if device != "cpu":
        raise ValueError(f"device={device!r} does not go with costs: the mask of columns is for 'cpu'. Use that.")
    tree = grower["tree_train_param"]
    loss = learner["objective"].get("reg_loss_param", {})
    return Settings(
        objective=learner["objective"]["name"],
        scale_pos_weight=float(loss.get("scale_pos_weight", 1)),
        **{name: float(tree[name]) for name in (*_COLUMN_SAMPLING, "subsample", "gamma")},
        interaction_constraints=tree["interaction_constraints"],
        num_class=int(learner["learner_model_param"]["num_class"]),
        config=config,
    )


# No split gains this much, so that a tree is a single leaf.
_NO_SPLIT = 1e30


class ColumnMask:
    """Open some columns of a DMatrix to the next tree, and close the others.

    A column of weight 0 is never sampled as long as no more columns are asked for than have a weight, so weights 0 and
    1 with ``colsample_bytree = (k + .5) / d`` for k open columns open exactly these (k / d may lose one to rounding).
    Weights and sampling of the user are kept within what is open: weights are multiplied by the mask, and
    ``colsample_bytree = r`` samples r k columns; ``colsample_bylevel`` and ``colsample_bynode`` sample from these by
    themselves. Weights that are all 0 would be no mask at all: a round with nothing open is a single leaf.

    Parameters
    ----------
    dtrain : xgboost.DMatrix
        The training data.
    settings : Settings
        Of the user's booster.
    """

    def __init__(self, dtrain: xgb.DMatrix, settings: Settings) -> None:
        self._dtrain, self._settings = dtrain, settings
        self.weights = np.asarray(dtrain.get_float_info("feature_weights"), dtype=np.float32)
        self._n = int(dtrain.num_col())
        # Weights mean nothing to XGBoost unless it samples columns.
        sampled = settings.samples_columns and self.weights.size > 0
        self._weights = self.weights if sampled else np.ones(self._n, dtype=np.float32)
        self.usable: Mask = self._weights > 0

    @contextmanager
    def opened(
        self, booster: xgb.Booster, allowed: Mask, groups: Groups | None = None, *, sampling: bool = True
    ) -> Iterator[None]:
        """Open columns while a tree is grown; whatever happens, data set and booster are then as the user made them.

        Parameters
        ----------
        booster : xgboost.Booster
            The booster that grows the tree.
        allowed : ndarray of bool
            Columns to open.
        groups : tuple of tuple of int, or None
            Columns that may share a path; None leaves the user's own constraints.
        sampling : bool, default=True
            Whether the user's column sampling takes part.
        """
        settings, weights = self._settings, self.weights
        allowed = allowed & self.usable
        k = int(allowed.sum())
        ratio = settings.colsample_bytree if sampling else 1.0
        if 0 < k < self._n:
            ratio = min(1.0, (max(1, int(ratio * k)) + 0.5) / self._n)
            weights = np.where(allowed, self._weights, 0).astype(np.float32)
        changed = {
            "colsample_bytree": ratio,
            "gamma": settings.gamma if k else _NO_SPLIT,
            "interaction_constraints": settings.interaction_constraints if groups is None else json.dumps(groups),
        }
        try:
            self._dtrain.set_info(feature_weights=weights)
            booster.set_param(changed)
            yield
        finally:
            self._dtrain.set_info(feature_weights=self.weights)
            booster.set_param({name: getattr(settings, name) for name in changed})


#: The mask of a round, by booster, data set, and custom objective or None.
Opened = Callable[[xgb.Booster, xgb.DMatrix, Any], AbstractContextManager[None]]


class MaskedBooster(xgb.Booster):
    """What ``xgboost.train`` updates meanwhile: columns are chosen and opened for the time of an update only.

    XGBoost calls no callback when a training breaks off, by an error of the objective or of another callback or by the
    keyboard, so that a mask that outlived the update would stay in the user's data set.
    """

    _opened: Opened

    @classmethod
    def take(cls, booster: xgb.Booster, opened: Opened) -> None:
        """Make a booster a masked one, until :meth:`give_back`."""
        booster.__class__ = cls
        vars(booster)["_opened"] = opened

    @staticmethod
    def give_back(booster: Any) -> None:
        """Make it an ordinary booster again, if it is none."""
        if isinstance(booster, MaskedBooster):
            booster.__class__ = xgb.Booster  # type: ignore[assignment]
            del vars(booster)["_opened"]

    def update(self, dtrain: xgb.DMatrix, iteration: int, fobj: Any = None) -> None:
        """Grow a round on the columns that are open to it."""
        with self._opened(self, dtrain, fobj):
            super().update(dtrain, iteration, fobj)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_opened"}

    def __reduce_ex__(self, protocol: Any) -> Any:
        # Copies and checkpoints are ordinary boosters.
        return xgb.Booster, (), self.__getstate__()
