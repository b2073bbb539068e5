"""Semi-supervised training over ``lightgbm.dask``: its own loss on the targets of the teacher."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from operator import itemgetter
from typing import Any

import dask
import dask.array as da
import distributed
import numpy as np

from grbb_ext.adapters.dask._lost import naming_the_lost
from grbb_ext.adapters.dask._model import Model, connected
from grbb_ext.adapters.dask._parts import Parts, read_parts
from grbb_ext.adapters.dask._prepare import read_recipe
from grbb_ext.adapters.dask._teach import Taught, teach
from grbb_ext.rules import Targets

#: LightGBM's losses that take soft labels. A model that is trained with one of them carries its link.
_OBJECTIVES = {"logistic": "cross_entropy", "squared_error": "regression"}

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
    of_rows = {name: settings.pop(name) for name in ("loss", "unlabeled", "n_jobs", "verbose") if name in settings}
    recipe = read_recipe(graph, settings)
    if not isinstance(recipe.rule, Targets) or recipe.rule.lam > 0 or not recipe.rule.newton:
        raise ValueError(
            "LightGBM on many machines takes fixed targets: its Dask estimators tell an objective neither which rows "
            "it has nor what other workers have. Use rule='targets' and lam=0, or train() for XGBoost."
        )
    client = connected(client)
    workers, clock = set(client.nthreads()), [time.perf_counter()]
    with naming_the_lost(client, workers):
        parts = read_parts(client, X)
        clock.append(time.perf_counter())
        taught = teach(
            parts, y, recipe, {"graph": graph, **settings}, sample_weight=sample_weight, classes=classes, **of_rows
        )
    if taught.labels.n_outputs > 1:
        raise ValueError(
            f"y has {taught.labels.n_outputs} classes, and the softmax of LightGBM takes no soft labels. Use train(), "
            "for XGBoost, or LightGBM on one machine with grbb_objective."
        )
    objective = _OBJECTIVES[taught.labels.loss.name]
    if params.get("objective", objective) != objective:
        raise ValueError(f"objective={params['objective']!r}, but the loss is {objective!r}: take it out of params.")
    start = time.perf_counter()
    # Scores start at 0, as with the objective on one machine, and not at the mean of the targets.
    chosen = {"boost_from_average": False, **params, "objective": objective, "n_estimators": num_boost_round}
    q, weight = (_column(parts, taught, part) for part in (0, 1))
    with naming_the_lost(client, workers), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Parameter n_jobs will be ignored")  # which nobody has given
        fitted = DaskLGBMRegressor(client=client, **chosen).fit(
            parts.X, q, sample_weight=weight if taught.weighted else None
        )
    seconds = {"read": clock[1] - clock[0], **taught.seconds, "rounds": time.perf_counter() - start}
    info = {
        "n_rows": parts.n_rows,
        "n_labeled": taught.labeled.ids.size,
        "n_unreachable": taught.n_unreachable,
        "n_sample": taught.n_sample,
        "rule": recipe.rule.name,
        "seconds": seconds,
    }
    # Converters do not know cross_entropy.
    booster = add_link(fitted.booster_) if objective == "cross_entropy" else fitted.booster_
    return Model(
        booster=booster,
        classes=taught.labels.classes,
        teacher=taught.teacher,
        evidence=taught.teacher.evidence,
        schema=parts.schema,
        info=info,
    )


def _column(parts: Parts, taught: Taught, part: int) -> Any:
    """Return targets or weights as LightGBM wants them: of the kind of X."""
    if not isinstance(parts.X, da.Array):
        return parts.series(taught.blocks, itemgetter(part))
    made = parts.client.map(lambda block, piece: block[part], taught.blocks, parts.pieces, pure=False)
    arrays = [
        da.from_delayed(dask.delayed(one), (length,), np.float32)
        for one, length in zip(made, parts.lengths, strict=True)
    ]
    return da.concatenate(arrays)
