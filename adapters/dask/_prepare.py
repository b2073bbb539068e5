"""From dask collections to an objective and a DaskDMatrix: everything before the first round."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from xgboost import dask as xgb_dask

from grbb_ext.adapters.dask._labels import Known, collect_labels
from grbb_ext.adapters.dask._objective import WorkerObjective
from grbb_ext.adapters.dask._operators import Told, tell_by_anchors, tell_by_graph
from grbb_ext.adapters.dask._parts import Parts, dense
from grbb_ext.graph import check_graph, knn_graph
from grbb_ext.objective import Settings, choose_rule
from grbb_ext.propagation import Propagation

_LIGHTGBM_ONLY = {
    "bagging_fraction",
    "boosting",
    "boosting_type",
    "feature_fraction",
    "lambda_l1",
    "lambda_l2",
    "local_listen_port",
    "machines",
    "min_data_in_leaf",
    "num_leaves",
    "num_machines",
    "tree_learner",
}

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
    theirs = sorted(name for name in params if name in _LIGHTGBM_ONLY or name.startswith("cegb_"))
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
    full = dict(params)
    full.setdefault("base_score", 0)
    # XGBoost's own default metric would take the marker of unlabelled rows for a class.
    full.setdefault("disable_default_eval_metric", 1)
    if n_outputs > 1:
        full.setdefault("num_class", n_outputs)
    if full.get("num_class", n_outputs if n_outputs > 1 else 0) not in ({n_outputs} if n_outputs > 1 else {0, 1}):
        raise ValueError(
            f"num_class={full['num_class']}, but y has {max(n_outputs, 2)} classes: take it out of params."
        )
    return full


_LOG = logging.getLogger("grbb_ext")

# Up to here the client builds the neighbour graph of all rows: a second of brute force, or a few of faiss.
_GRAPH_UP_TO = 50_000

_SOLVER = {"solver": "auto", "tol": 1e-8, "memory_limit": 2e9, "n_jobs": None, "verbose": False}
_GRAPH = {"n_neighbors": 9, "weights": None, "metric": "euclidean", "method": "auto", "scale": "auto"}
_RULE = {
    "preset": None,
    "rule": None,
    "propagation": None,
    "hessian": None,
    "loss": "auto",
    "unlabeled": -1,
    "class_weight": None,
    "lam": 0.0,
    "correction": 1.0,
    "sharpen": 3.0,
    "hard": False,
}


@dataclass(frozen=True)
class Prepared:
    """What a training needs.

    Attributes
    ----------
    parts : Parts
        The rows.
    objective : WorkerObjective
        For all workers.
    known : Known
        The labelled rows.
    settings : Settings
        Of the objective.
    graph : {"given", "knn", "anchors", "none"}
        What the operator was made from.
    told : Told
        What the workers were told.
    data : dict
        Arguments of a DaskDMatrix: X, ids, weights.
    """

    parts: Parts
    objective: WorkerObjective
    known: Known
    settings: Settings
    graph: str
    told: Told
    data: dict[str, Any]


def read_settings(given: dict[str, Any]) -> tuple[Settings, dict[str, Any]]:
    """Return the settings of the objective and those of the graph; raise at names that are neither."""
    unknown = sorted(set(given) - set(_SOLVER) - set(_GRAPH) - set(_RULE))
    if unknown:
        raise TypeError(f"train got settings that grbb_objective does not have: {unknown}.")
    values = {**_RULE, **{name: value for name, value in given.items() if name in _RULE}}
    rule, propagation, hessian = choose_rule(
        values.pop("preset"), values.pop("rule"), values.pop("propagation"), values.pop("hessian")
    )
    solver = {**_SOLVER, **{name: value for name, value in given.items() if name in _SOLVER}}
    settings = Settings(rule=rule, propagation=propagation, hessian=hessian, solver_settings=solver, **values)
    settings.check()
    _check_curvature(settings)
    if rule == "laplacian":
        raise ValueError(
            "rule='laplacian' is not for several machines: each row needs the scores of its neighbours, N numbers from "
            "all over the cluster in each round. Use 'corrected', its preconditioned form, which needs n."
        )
    graph = {**_GRAPH, **{name: value for name, value in given.items() if name in _GRAPH}}
    if graph["weights"] is None:
        graph["weights"] = "binary" if given.get("preset") == "paper" else "self-tuning"
    return settings, graph


def _check_curvature(settings: Settings) -> None:
    kind = settings.propagation
    stochastic = kind.stochastic if isinstance(kind, Propagation) else kind in ("harmonic", "nonlocal")
    if settings.rule == "corrected" and settings.hessian == "newton" and not stochastic:
        raise ValueError(
            f"rule='corrected' propagates curvatures, which {kind!r} can turn negative. "
            "Use propagation='nonlocal' or 'harmonic', or hessian='unit'."
        )


def prepare(
    parts: Parts,
    y: Any,
    *,
    row_ids: Any,
    sample_weight: Any,
    classes: Any,
    graph: Any,
    n_anchors: int,
    storage: str | Path,
    settings: Settings,
    graph_settings: dict[str, Any],
) -> Prepared:
    """Read labels and ids, make the operator, and tell the workers."""
    form = _form(graph, parts, settings)
    if row_ids is not None and form in ("knn", "anchors"):
        raise ValueError("row_ids say which row of graph= each row of X is: pass a graph, or leave row_ids out.")
    W = None if form != "given" else check_graph(graph, None)
    if W is not None and W.shape[0] != parts.n_rows:
        raise ValueError(f"graph has {W.shape[0]} rows but X has {parts.n_rows}: each row must be there, once.")
    ids, weights = parts.ids(row_ids), parts.weights(sample_weight)
    known = collect_labels(parts, parts.align(y, "y"), ids, weights, settings, classes, form == "anchors")
    folder = None if storage == "workers" else Path(storage)
    if form == "anchors":
        told = tell_by_anchors(
            parts,
            known,
            settings,
            folder,
            n_anchors=n_anchors,
            n_neighbors=graph_settings["n_neighbors"],
            scale=graph_settings["scale"],
        )
    elif form == "none":
        told = Told({}, None, np.empty(0, dtype=np.int64), None, 0)
    else:
        if W is None:
            rows = np.concatenate([dense(piece) for piece in parts.client.gather(list(parts.pieces))])
            solver = settings.solver_settings
            W = knn_graph(rows, **graph_settings, n_jobs=solver["n_jobs"], verbose=solver["verbose"])
        told = tell_by_graph(parts.client, W, known, settings, folder)
    labels = known.labels
    objective = WorkerObjective(
        n_rows=parts.n_rows,
        n_outputs=1 if labels.targets.ndim == 1 else labels.targets.shape[1],
        loss=labels.loss,
        labeled=known.rows,
        rule=settings.rule,
        newton=settings.hessian == "newton",
        correction=settings.correction,
        rows=told.rows,
        P_A=told.P_A,
        unreachable=told.unreachable,
        lam=settings.lam,
        L_l=told.L_l,
        weighted=weights is not None,
    )
    data = {"data": parts.X, **parts.bounds(ids)}
    if weights is not None:
        data["label"] = parts.series(weights)
    return Prepared(parts, objective, known, settings, form, told, data)


def quantile_matrix(parts: Parts, data: dict[str, Any], params: dict[str, Any], **more: Any) -> Any:
    """Return the data as XGBoost trains on it: binned at once where the tree method allows."""
    if params.get("tree_method", "hist") in ("hist", "auto"):
        return xgb_dask.DaskQuantileDMatrix(parts.client, **data, max_bin=params.get("max_bin", 256), **more)
    more.pop("ref", None)
    return xgb_dask.DaskDMatrix(parts.client, **data, **more)


def _form(graph: Any, parts: Parts, settings: Settings) -> Literal["given", "knn", "anchors", "none"]:
    needs_graph = settings.rule != "labeled" or settings.lam > 0
    if not isinstance(graph, str):
        if graph is None:
            raise ValueError("graph must be an affinity, 'knn', 'anchors' or 'auto'.")
        return "given"
    if graph not in ("auto", "knn", "anchors"):
        raise ValueError(f"graph must be an affinity, 'knn', 'anchors' or 'auto', got {graph!r}.")
    if not needs_graph:
        return "none"
    if graph == "anchors" and settings.lam > 0:
        raise ValueError("lam > 0 needs the graph of all rows, which anchors do without: use graph='knn' or lam=0.")
    if graph != "auto":
        return "knn" if graph == "knn" else "anchors"
    form: Literal["knn", "anchors"] = "knn" if parts.n_rows <= _GRAPH_UP_TO or settings.lam > 0 else "anchors"
    _LOG.info("graph='auto': %s for %d rows.", form, parts.n_rows)
    return form
