"""From dask collections to an objective and a DaskDMatrix: everything before the first round."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import distributed
import numpy as np
from xgboost import Booster
from xgboost import dask as xgb_dask

from grbb_ext._progress import timed
from grbb_ext.adapters.dask._model import Prepared, Problem, own_classes
from grbb_ext.adapters.dask._operators import spread
from grbb_ext.adapters.dask._parts import read_parts
from grbb_ext.adapters.dask._teach import teach
from grbb_ext.graph import KNNGraph, RefinedGraph, SharedGraph, check_graph
from grbb_ext.labels import Labels
from grbb_ext.objective import Recipe
from grbb_ext.rules import Laplacian, Targets

_OF_LIGHTGBM = """
bagging_fraction boosting boosting_type feature_fraction lambda_l1 lambda_l2 local_listen_port machines min_data_in_leaf
num_leaves num_machines tree_learner
"""

#: XGBoost's names of the losses. A model that is trained with one of them carries its link: it predicts probabilities.
OBJECTIVES = {"logistic": "binary:logistic", "softmax": "multi:softprob", "squared_error": "reg:squarederror"}


def check_booster(params: Mapping[str, Any]) -> None:
    """Refuse what belongs to LightGBM, weights of classes, and other boosters than trees.

    Examples
    --------
    >>> check_booster({"num_leaves": 31})
    Traceback (most recent call last):
        ...
    ValueError: num_leaves is a parameter of LightGBM, and train() is for XGBoost: use train_lightgbm().
    """
    theirs = sorted(name for name in params if name in _OF_LIGHTGBM.split() or name.startswith("cegb_"))
    if theirs:
        raise ValueError(f"{theirs[0]} is a parameter of LightGBM, and train() is for XGBoost: use train_lightgbm().")
    if params.get("booster", "gbtree") != "gbtree":
        raise ValueError(f"booster={params['booster']!r} is not tested on several machines: use 'gbtree'.")
    check_weights(params)


# Parameters of both libraries that weigh classes, with their aliases and the values that change nothing.
_WEIGHTS = {
    "class_weight": None,
    "scale_pos_weight": 1,
    "is_unbalance": False,
    "unbalance": False,
    "unbalanced_sets": False,
}


def check_weights(params: Mapping[str, Any]) -> None:
    """Refuse weights of classes among the parameters: boosters look for them in labels, and get targets."""
    for name, neutral in _WEIGHTS.items():
        if params.get(name) not in (None, neutral):
            raise ValueError(
                f"{name} weighs rows by hard labels, and the booster gets targets: take it out of params, and pass "
                "class_weight= (sample_weight= for regression)."
            )


def complete_params(params: Mapping[str, Any], labels: Labels, before: Booster | None = None) -> dict[str, Any]:
    """Return the parameters with the loss, a start at 0 and the number of classes; refuse others.

    Where training continues from the booster `before`, the start is that of the booster.

    Examples
    --------
    >>> from grbb_ext.labels import read_labels
    >>> complete_params({"eta": 0.1}, read_labels([0, 1, 2]))  # doctest: +NORMALIZE_WHITESPACE
    {'eta': 0.1, 'objective': 'multi:softprob', 'base_score': 0.0, 'disable_default_eval_metric': 1, 'num_class': 3}
    """
    n_outputs, objective = labels.n_outputs, OBJECTIVES[labels.loss.name]
    if params.get("objective", objective) != objective:
        raise ValueError(
            f"objective={params['objective']!r}, but the loss is {objective!r}, by loss= and y: take it out of params."
        )
    if params.get("num_class", n_outputs) not in ((n_outputs,) if n_outputs > 1 else (0, 1)):
        raise ValueError(
            f"num_class={params['num_class']}, but y has {max(n_outputs, 2)} classes: take it out of params."
        )
    # For two classes the start is a probability.
    logistic = objective == "binary:logistic"
    defaults = {"objective": objective, "base_score": 0.5 if logistic else 0.0, "disable_default_eval_metric": 1}
    asked = params.get("base_score")
    if before is not None:
        if asked is not None:
            raise ValueError("base_score would take the place of that of xgb_model: take it out of params.")
        _check_continued(before, objective, labels)
        del defaults["base_score"]
    elif logistic and asked is not None:
        starts = np.asarray(asked.strip("[]") if isinstance(asked, str) else asked, dtype=float)
        if not ((starts > 0) & (starts < 1)).all():
            raise ValueError(
                f"base_score={asked!r}, but with 'binary:logistic' it is a probability between 0 and 1: set it to 0.5, "
                "which is a raw score of 0, or take it out of params."
            )
    if n_outputs > 1:
        defaults["num_class"] = n_outputs
    return {**params, **defaults, **params}


def _check_continued(before: Booster, objective: str, labels: Labels) -> None:
    """Refuse a booster of other classes, and one whose base_score the objective would read in another way."""
    known, _ = own_classes(before)
    classes = None if labels.classes is None else labels.classes.tolist()
    if known is not None and known.tolist() != classes:
        raise ValueError(
            f"xgb_model has the classes {known.tolist()}, but y has {classes or 'numbers'}: continue with the same "
            "classes, in classes= where y misses some, or train anew."
        )
    named = json.loads(before.save_config())["learner"]["objective"]["name"]
    if named != objective and "binary:logistic" in (named, objective):
        raise ValueError(
            f"xgb_model has the objective {named!r}, and the loss here is {objective!r}, which reads its base_score in "
            "another way. For the same raw scores, set both in xgb_model first: xgb_model.set_param({'objective': "
            f"{objective!r}, 'base_score': ...}}), for 'binary:logistic' a probability (0.5 for a score of 0)."
        )


# Settings of grbb_objective that make a recipe, beside the graph; and the others, about labels and threads.
_OF_RECIPE = {"class_weight", "lam", "preset", "propagation", "random_state", "rule", "teacher"}
_OTHERS = {"loss", "unlabeled", "n_jobs", "verbose"}


def read_recipe(graph: Any, settings: dict[str, Any]) -> Recipe:
    """Read the options of the objective, and refuse what several machines cannot do.

    For the rules that need an operator, None, ``"auto"`` and ``"anchors"`` are read as ``"knn"``: anchors take
    n_neighbors and scale of that graph.
    """
    if "guard" in settings:
        raise TypeError("guard= is now teacher=: 'committee' is guard=True, the default, and 'graph' is guard=False.")
    unknown = sorted(set(settings) - _OF_RECIPE - _OTHERS)
    if unknown:
        raise TypeError(f"train got settings that grbb_objective does not have: {unknown}.")
    names = ("table", "knn", "refined", "anchors", "auto")
    name = graph if isinstance(graph, str) else None
    if name not in (None, *names):
        raise ValueError(f"graph must be an affinity, a spec, or one of {', '.join(map(repr, names))}; got {graph!r}.")
    graph = None if name == "auto" else graph
    rule = Recipe.parts(rule=settings.get("rule"))["rule"]
    by_targets = settings.get("preset") is None and isinstance(rule, Targets)
    if name == "anchors" and by_targets:
        raise ValueError("graph='anchors' is for rule='paper' and 'corrected': here a teacher learns from a sample.")
    if not by_targets and (graph is None or name == "anchors"):
        graph = "knn"
    recipe = Recipe.read(graph=graph, **{name: settings[name] for name in _OF_RECIPE & set(settings)})
    if isinstance(recipe.rule, Laplacian):
        raise ValueError(
            "rule='laplacian' is not for several machines: each row needs the scores of its neighbours, N numbers from "
            "all over the cluster in each round. Use 'corrected', its preconditioned form, which needs n."
        )
    if isinstance(recipe.graph, SharedGraph) or (isinstance(recipe.graph, RefinedGraph) and not by_targets):
        raise ValueError(
            "A shared graph, and a refined one without targets, is not for several machines: use graph='knn', "
            "'anchors' or an affinity."
        )
    return recipe


def prepare(
    client: distributed.Client,
    X: Any,
    y: Any,
    recipe: Recipe,
    graph: Any,
    settings: Mapping[str, Any],
    *,
    row_ids: Any = None,
    storage: str | Path = "workers",
    missing: float | None = None,
    **more: Any,
) -> Prepared:
    """Load X, make targets or an operator, and send the workers what belongs to their rows.

    Parameters
    ----------
    client, X, y, graph, settings, row_ids, storage, missing
        As in :func:`grbb_ext.adapters.dask.train`.
    recipe : Recipe
        Graph and settings as :func:`read_recipe` reads them.
    **more
        `sample_weight`, `classes`, `n_anchors` and `custom` of the :class:`Problem`.
    """
    seconds: dict[str, float] = {}
    with timed(seconds, "read"):
        parts = read_parts(client, X, missing)
    if isinstance(recipe.graph, KNNGraph):
        if row_ids is not None:
            raise ValueError("row_ids say which row of graph= each row of X is: pass a graph, or leave row_ids out.")
    elif (n_rows := check_graph(recipe.graph, None).shape[0]) != parts.n_rows:
        raise ValueError(f"graph has {n_rows} rows but X has {parts.n_rows}: each row must be there, once.")
    folder = None if storage == "workers" else Path(storage).absolute()
    asked = {**settings, "graph": None if isinstance(graph, str) and graph == "auto" else graph}
    problem = Problem(parts, y, recipe, asked, row_ids, folder, **more)
    if isinstance(recipe.rule, Targets):
        made = teach(problem, seconds)
    else:
        with timed(seconds, "operator"):
            made = spread(problem)
    sent = 0 if made.objective is None else made.objective.numbers_per_round * (8 if recipe.rule.lam > 0 else 4)
    info = {
        "n_rows": parts.n_rows,
        "n_labeled": made.labels.targets.shape[0],
        "rule": recipe.rule.name,
        "bytes_per_round": sent,
        **made.info,
        "seconds": seconds,
    }
    return made._replace(info=info)


def quantile_matrix(client: distributed.Client, data: dict[str, Any], params: dict[str, Any], **more: Any) -> Any:
    """Return the data as XGBoost trains on it: binned at once where the tree method allows."""
    if params.get("tree_method", "hist") in ("hist", "auto"):
        return xgb_dask.DaskQuantileDMatrix(client, **data, max_bin=params.get("max_bin", 256), **more)
    more.pop("ref", None)
    return xgb_dask.DaskDMatrix(client, **data, **more)
