"""From dask collections to an objective and a DaskDMatrix: everything before the first round."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import distributed
from xgboost import dask as xgb_dask

from grbb_ext.adapters.dask._labels import collect_labels
from grbb_ext.adapters.dask._objective import WorkerObjective
from grbb_ext.adapters.dask._operators import spread_by_anchors, spread_by_graph
from grbb_ext.adapters.dask._parts import Parts, part_table
from grbb_ext.graph import KNNGraph, RefinedGraph, SharedGraph, check_graph, prepare_graph
from grbb_ext.labels import Labels
from grbb_ext.objective import Recipe
from grbb_ext.rules import Laplacian
from grbb_ext.table import stack_tables
from grbb_ext.teacher import Teacher

_OF_LIGHTGBM = """
bagging_fraction boosting boosting_type feature_fraction lambda_l1 lambda_l2 local_listen_port machines min_data_in_leaf
num_leaves num_machines tree_learner
"""

_WHY_NOT_LIGHTGBM = (
    "grbb_ext.adapters.dask trains XGBoost only. LightGBM's Dask estimators tell a custom objective neither which rows "
    "it has nor what other workers have, and with prices (coupled CEGB) its distributed trainer of version 4.7.0 "
    "silently returns corrupted models. Use XGBoost parameters here, or LightGBM on one machine with "
    "grbb_ext.adapters.lightgbm.train."
)


def check_booster(params: Mapping[str, Any], X: Any) -> None:
    """Refuse what belongs to LightGBM, and what contradicts the objective.

    Examples
    --------
    >>> check_booster({"num_leaves": 31}, None)
    Traceback (most recent call last):
        ...
    ValueError: num_leaves is a parameter of LightGBM. grbb_ext.adapters.dask trains XGBoost only. ...
    """
    if type(X).__module__.split(".")[0] == "lightgbm":
        raise TypeError(f"X is a {type(X).__name__} of LightGBM. {_WHY_NOT_LIGHTGBM}")
    theirs = sorted(name for name in params if name in _OF_LIGHTGBM.split() or name.startswith("cegb_"))
    if theirs:
        raise ValueError(f"{theirs[0]} is a parameter of LightGBM. {_WHY_NOT_LIGHTGBM}")
    if "objective" in params:
        raise ValueError("objective is set by rule= and loss=: take it out of params.")
    if params.get("booster", "gbtree") != "gbtree":
        raise ValueError(f"booster={params['booster']!r} is not tested on several machines: use 'gbtree'.")


def complete_params(params: Mapping[str, Any], n_outputs: int) -> dict[str, Any]:
    """Return the parameters with the start at 0 and the number of classes, or refuse another.

    Examples
    --------
    >>> complete_params({"eta": 0.1}, 3)
    {'eta': 0.1, 'base_score': 0, 'disable_default_eval_metric': 1, 'num_class': 3}
    """
    if params.get("num_class", n_outputs) not in ((n_outputs,) if n_outputs > 1 else (0, 1)):
        raise ValueError(
            f"num_class={params['num_class']}, but y has {max(n_outputs, 2)} classes: take it out of params."
        )
    # XGBoost's own default metric would take the marker of unlabelled rows for a class.
    defaults = {"base_score": 0, "disable_default_eval_metric": 1}
    if n_outputs > 1:
        defaults["num_class"] = n_outputs
    return {**params, **defaults, **params}


_LOG = logging.getLogger("grbb_ext")

# Up to here the client builds the neighbour graph of all rows: a second of brute force, or a few of faiss.
_GRAPH_UP_TO = 50_000

# Those of grbb_objective that do not depend on rows, beside the graph.
_SETTINGS = {"class_weight", "lam", "preset", "propagation", "random_state", "rule", "teacher"}


def read_recipe(graph: Any, settings: dict[str, Any]) -> Recipe:
    """Read the options of the objective, and refuse what several machines cannot do.

    ``"auto"`` and ``"anchors"`` are read as ``"knn"``: anchors take n_neighbors and scale of that graph.
    """
    unknown = sorted(set(settings) - _SETTINGS)
    if unknown:
        raise TypeError(f"train got settings that grbb_objective does not have: {unknown}.")
    if graph is None or (isinstance(graph, str) and graph not in ("auto", "knn", "anchors", "refined")):
        raise ValueError(f"graph must be an affinity, a KNNGraph, 'knn', 'anchors' or 'auto', got {graph!r}.")
    if isinstance(graph, str) and graph in ("auto", "anchors"):
        graph = "knn"
    recipe = Recipe.read(graph=graph, **settings)
    if isinstance(recipe.rule, Laplacian):
        raise ValueError(
            "rule='laplacian' is not for several machines: each row needs the scores of its neighbours, N numbers from "
            "all over the cluster in each round. Use 'corrected', its preconditioned form, which needs n."
        )
    if isinstance(recipe.graph, RefinedGraph | SharedGraph):
        raise ValueError(
            "A refined or shared graph is not for several machines: use graph='knn', 'anchors' or an affinity."
        )
    if isinstance(recipe.teacher, Teacher):
        raise ValueError("A fitted teacher is not for several machines: the graph alone teaches here. Leave it out.")
    return recipe


class Prepared(NamedTuple):
    """What a training needs.

    Attributes
    ----------
    labels : Labels
        Of the labelled rows.
    objective : WorkerObjective
        For all workers.
    data : dict
        Arguments of a DaskDMatrix: X, ids, weights.
    info : dict
        Numbers for the user: see :func:`grbb_ext.adapters.dask.train`.
    """

    labels: Labels
    objective: WorkerObjective
    data: dict[str, Any]
    info: dict[str, Any]


def prepare(
    parts: Parts,
    y: Any,
    recipe: Recipe,
    *,
    graph: Any,
    row_ids: Any,
    sample_weight: Any,
    n_anchors: int,
    storage: str | Path,
    n_jobs: int | None = None,
    verbose: bool = False,
    **of_labels: Any,
) -> Prepared:
    """Read labels and ids, make the operator, and send the workers what belongs to their rows."""
    form = _form(graph, parts, recipe)
    if row_ids is not None and form in ("knn", "anchors"):
        raise ValueError("row_ids say which row of graph= each row of X is: pass a graph, or leave row_ids out.")
    W = None if form != "given" else check_graph(graph, None)
    if W is not None and W.shape[0] != parts.n_rows:
        raise ValueError(f"graph has {W.shape[0]} rows but X has {parts.n_rows}: each row must be there, once.")
    ids, weights = parts.ids(row_ids), parts.weights(sample_weight)
    of_labels = {"class_weight": recipe.class_weight, "with_features": form == "anchors", **of_labels}
    labels, labeled, X_l = collect_labels(parts, parts.align(y, "y"), ids, weights, **of_labels)
    objective = WorkerObjective(
        parts.n_rows, labels.n_outputs, labels.loss, labeled, recipe.rule, weighted=weights is not None
    )
    n_unreachable = 0
    folder = None if storage == "workers" else Path(storage)
    threads: dict[str, Any] = {"n_jobs": n_jobs, "verbose": verbose}
    if form == "knn":
        pieces = parts.client.gather(list(parts.pieces))
        table = stack_tables([part_table(piece, parts.schema) for piece in pieces])
        W = prepare_graph(recipe.graph, table, parts.n_rows, **threads).W
    if X_l is not None:
        objective, n_unreachable = spread_by_anchors(
            parts, X_l, objective, labels, recipe, folder, n_anchors=n_anchors, **threads
        )
    elif W is not None:
        objective, n_unreachable = spread_by_graph(parts.client, W, objective, labels, recipe, folder, **threads)
    data = {"data": parts.X, **parts.id_fields(ids)}
    if weights is not None:
        data["label"] = parts.series(weights)
    info = {
        "n_rows": parts.n_rows,
        "n_labeled": labeled.ids.size,
        "n_unreachable": n_unreachable,
        "graph": form,
        "rule": recipe.rule.name,
        "bytes_per_round": objective.numbers_per_round * (8 if recipe.rule.lam > 0 else 4),
    }
    return Prepared(labels, objective, data, info)


def quantile_matrix(client: distributed.Client, data: dict[str, Any], params: dict[str, Any], **more: Any) -> Any:
    """Return the data as XGBoost trains on it: binned at once where the tree method allows."""
    if params.get("tree_method", "hist") in ("hist", "auto"):
        return xgb_dask.DaskQuantileDMatrix(client, **data, max_bin=params.get("max_bin", 256), **more)
    more.pop("ref", None)
    return xgb_dask.DaskDMatrix(client, **data, **more)


def _form(graph: Any, parts: Parts, recipe: Recipe) -> Literal["given", "knn", "anchors", "none"]:
    if not isinstance(graph, str | KNNGraph):
        return "given"
    if not recipe.rule.needs_graph:
        return "none"
    if graph == "anchors" and recipe.rule.lam > 0:
        raise ValueError("lam > 0 needs the graph of all rows, which anchors do without: use graph='knn' or lam=0.")
    if graph != "auto":
        return "anchors" if graph == "anchors" else "knn"
    form: Literal["knn", "anchors"] = "knn" if parts.n_rows <= _GRAPH_UP_TO or recipe.rule.lam > 0 else "anchors"
    _LOG.info("graph='auto': %s for %d rows.", form, parts.n_rows)
    return form
