"""Semi-supervised training over ``lightgbm.dask``: its own loss on the targets of the teacher."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import dask.array as da
import distributed

from grbb_ext._progress import timed
from grbb_ext.adapters.dask._lost import naming_the_lost
from grbb_ext.adapters.dask._model import Model, connected
from grbb_ext.adapters.dask._prepare import check_weights, prepare, read_recipe
from grbb_ext.adapters.dask._rows import release_rows
from grbb_ext.rules import Targets

#: LightGBM's losses that take soft labels. A model that is trained with one of them carries its link.
_OBJECTIVES = {"logistic": "cross_entropy", "squared_error": "regression"}

_NAMES_OF_OBJECTIVE = ("objective", "objective_type", "app", "application", "loss")

_NO_COSTS = (
    "With prices (coupled CEGB) the distributed trainer of LightGBM 4.7.0 silently returns corrupted models, different "
    "on each worker. Use grbb_ext.adapters.dask.train, for XGBoost, or LightGBM on one machine."
)


def train_lightgbm(
    client: distributed.Client | None,
    params: Mapping[str, Any],
    X: Any,
    y: Any,
    *,
    num_boost_round: int = 100,
    graph: Any = None,
    sample_weight: Any = None,
    classes: Any = None,
    costs: Any = None,
    **settings: Any,
) -> Model:
    """Train LightGBM on labelled and unlabelled rows that lie on many workers.

    The teacher is that of :func:`train`. ``lightgbm.dask.DaskLGBMRegressor`` then trains on the targets, with the
    objective ``cross_entropy`` or, for regression, ``regression``.

    Parameters
    ----------
    client, X, y, sample_weight, classes
        As in :func:`train`.
    params : mapping
        Parameters of LightGBM.
    num_boost_round : int, default=100
        Rounds.
    graph : {"table", "knn", "refined"}, spec or sparse matrix, default=None
        As in :func:`grbb_ext.grbb_objective`.
    costs
        Refused: distributed LightGBM corrupts models with prices.
    **settings
        As in :func:`train`; the rule is ``"targets"``.

    Returns
    -------
    Model
        ``"booster"``, a ``lightgbm.Booster`` whose ``predict`` gives probabilities, and the rest as in :func:`train`.
    """
    try:
        from lightgbm.dask import DaskLGBMRegressor

        from grbb_ext.adapters.lightgbm import add_link
    except ImportError as error:
        raise ImportError("train_lightgbm needs LightGBM: pip install 'grbb_ext[dask,lightgbm]'.") from error
    if costs is not None or any(name.startswith("cegb_") for name in params):
        raise ValueError(f"costs are not for LightGBM on many machines. {_NO_COSTS}")
    check_weights(params)
    for name in {"boosting", "boosting_type", "boost"} & {*params}:
        if params[name] in ("rf", "random_forest"):
            raise ValueError(
                f"{name}={params[name]!r} is not for many machines: the raw scores that predict() reads are sums over "
                "trees, and a forest needs their mean. Use 'gbdt'."
            )
    recipe = read_recipe(graph, settings)
    if not isinstance(recipe.rule, Targets) or recipe.rule.lam > 0 or not recipe.rule.newton:
        raise ValueError(
            "LightGBM on many machines takes fixed targets: its Dask estimators tell an objective neither which rows "
            "it has nor what other workers have. Use rule='targets' and lam=0, or train() for XGBoost."
        )
    client = connected(client)
    workers = set(client.nthreads())
    with naming_the_lost(client, workers):
        prepared = prepare(client, X, y, recipe, graph, settings, sample_weight=sample_weight, classes=classes)
    labels = prepared.labels
    if prepared.objective is not None:
        release_rows(client, prepared.objective.rows)
        raise ValueError(
            f"y has {labels.n_outputs} classes, and the softmax of LightGBM takes no soft labels. Use train(), "
            "for XGBoost, or LightGBM on one machine with grbb_objective."
        )
    objective = _OBJECTIVES[labels.loss.name]
    for name in {*_NAMES_OF_OBJECTIVE} & {*params}:
        if params[name] != objective:
            raise ValueError(f"{name}={params[name]!r}, but the loss is {objective!r}: take it out of params.")
    # Scores start at 0, as with the objective on one machine, and not at the mean of the targets.
    chosen = {"boost_from_average": False, "n_estimators": num_boost_round, **params, "objective": objective}
    rows, columns = prepared.data["data"], [prepared.data["label"], prepared.data.get("weight")]
    if isinstance(rows, da.Array):  # LightGBM wants all of one kind
        columns = [None if column is None else column.to_dask_array(prepared.parts.lengths) for column in columns]
    with naming_the_lost(client, workers), warnings.catch_warnings(), timed(prepared.info["seconds"], "rounds"):
        warnings.filterwarnings("ignore", "Parameter n_jobs will be ignored")  # which nobody has given
        fitted = DaskLGBMRegressor(client=client, **chosen).fit(rows, columns[0], sample_weight=columns[1])
    # Converters do not know cross_entropy.
    booster = add_link(fitted.booster_) if objective == "cross_entropy" else fitted.booster_
    return prepared.model({"booster": booster})
