"""Settings of an XGBoost booster that costs have to know, read from its own configuration; some are refused."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import xgboost as xgb


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
        return min(self.colsample_bytree, self.colsample_bylevel, self.colsample_bynode) < 1

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
    if name == "dart":
        raise ValueError(
            "booster='dart' does not go with costs: its rounds follow other gradients than those that can be probed. "
            "Use 'gbtree'."
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
        colsample_bytree=float(tree["colsample_bytree"]),
        colsample_bylevel=float(tree["colsample_bylevel"]),
        colsample_bynode=float(tree["colsample_bynode"]),
        subsample=float(tree["subsample"]),
        gamma=float(tree["gamma"]),
        interaction_constraints=tree["interaction_constraints"],
        num_class=int(learner["learner_model_param"]["num_class"]),
        config=config,
    )
