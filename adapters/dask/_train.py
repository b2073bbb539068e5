"""Semi-supervised training over ``xgboost.dask``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import distributed
import numpy as np
from xgboost import Booster
from xgboost import dask as xgb_dask

from grbb_ext._progress import timed
from grbb_ext.adapters.dask._labels import check_metrics, evaluation_fields, metric_name
from grbb_ext.adapters.dask._lost import TrackerApart, holders_of, naming_the_lost
from grbb_ext.adapters.dask._model import Model, connected, name_classes
from grbb_ext.adapters.dask._objective import CostedTraining
from grbb_ext.adapters.dask._parts import read_parts, with_categories
from grbb_ext.adapters.dask._prepare import check_booster, complete_params, prepare, quantile_matrix, read_recipe
from grbb_ext.adapters.dask._rows import release_rows
from grbb_ext.adapters.xgboost import Strategy
from grbb_ext.costs import FeatureCosts


def train(
    client: distributed.Client | None,
    params: Mapping[str, Any],
    X: Any,
    y: Any,
    *,
    num_boost_round: int = 100,
    graph: Any = None,
    row_ids: Any = None,
    sample_weight: Any = None,
    classes: Any = None,
    n_anchors: int = 1000,
    storage: str | Path = "workers",
    costs: Any = None,
    mu: float = 0.0,
    budget: float | None = None,
    strategy: Strategy = "levels",
    probe_every: int | Literal["auto"] = "auto",
    evals: Sequence[tuple[Any, Any, str]] = (),
    eval_metric: str = "loss",
    early_stopping_rounds: int | None = None,
    xgb_model: Any = None,
    callbacks: Sequence[Any] | None = None,
    verbose_eval: bool | int = False,
    missing: float | None = np.nan,
    enable_categorical: bool = True,
    coll_cfg: Any = None,
    **settings: Any,
) -> Model:
    """Train XGBoost on labelled and unlabelled rows that lie on many workers.

    The default is that of one machine. The labelled rows and a sample of the others come to the client, which fits the
    teacher of :func:`grbb_ext.grbb_objective`; the teacher is sent to the workers and predicts the targets of each
    partition in place. For two classes and regression ``xgboost.dask.train`` then does the rest with its own loss. The
    page "Many machines: Dask and Spark" lists what is sent when.

    Parameters
    ----------
    client : distributed.Client or None
        The cluster; None takes the client that is open.
    params : mapping
        Parameters of XGBoost. ``objective``, ``base_score`` and ``num_class`` follow from y.
    X : dask Array or DataFrame of shape (N, d)
        All rows. Partitions may be of any size, also empty, and divisions unknown.
    y : dask Array, dask Series or array-like of shape (N,)
        Labels in the order of X; `unlabeled` (-1), NaN or None marks a row without one. A dask Series must have the
        index of X, and may be cut otherwise.
    num_boost_round : int, default=100
        Rounds.
    graph : {"table", "knn", "refined", "anchors", "auto"}, KNNGraph or sparse matrix of shape (N, N), default=None
        For ``rule="targets"`` the graph of the teacher, as in :func:`grbb_ext.grbb_objective`; it joins the sample, of
        at most 20,000 rows or the ``max_nodes`` of a TableGraph. For ``"paper"`` and ``"corrected"`` that of all
        rows: ``"knn"``, or a KNNGraph, brings X to the client, ``"anchors"`` brings a sample and uses
        :class:`~grbb_ext.propagation.AnchorNodes`, and ``"auto"``, their default, is ``"knn"`` to 50,000 rows, then
        ``"anchors"``. A matrix is a ready affinity on the client, for any rule; it teaches alone, without X.
    row_ids : dask Array, dask Series or array-like of shape (N,) or None, default=None
        Which row of a ready affinity each row of X is; None where both have the same order. Every row of the affinity
        must be there once.
    sample_weight : dask Array, dask Series or array-like of shape (N,) or None, default=None
        As in :func:`grbb_ext.grbb_objective`, in the order of X.
    classes : array-like or None, default=None
        All classes, where y may miss some.
    n_anchors : int, default=1000
        Anchors of ``graph="anchors"``.
    storage : "workers" or path, default="workers"
        Where what an objective of ours needs of each row waits for training (rows of the operator, or targets of
        several classes): in the workers' memory, or in a folder that client and workers share.
    costs : FeatureCosts, mapping, array-like or None, default=None
        Prices of the columns. All workers probe and buy in step, as :class:`grbb_ext.adapters.xgboost.GreedyMiser` does
        on one machine; the trained booster has a ``ledger_``.
    mu, budget, strategy, probe_every
        As in :class:`grbb_ext.adapters.xgboost.GreedyMiser`.
    evals : sequence of (X, y, name), default=()
        Evaluation sets, each of a dask Array or DataFrame, its labels, and a name. Rows without a label do not count.
    eval_metric : {"loss", "error", "rmse"} or XGBoost's name of one of these, default="loss"
        The mean over the labelled rows of an evaluation set on all workers.
    early_stopping_rounds, xgb_model, callbacks, verbose_eval, coll_cfg
        Passed to ``xgboost.dask.train``. Callbacks run on every worker.
    missing : float, default=nan
        A number that stands for a missing value, beside NaN, for the teacher as for XGBoost. :func:`predict` takes it
        from the Model; ``xgboost.dask.predict`` has to be told.
    enable_categorical
        Passed to ``xgboost.dask.DaskQuantileDMatrix``.
    **settings
        Of :func:`grbb_ext.grbb_objective`: `preset`, `rule` (not ``"laplacian"``), `propagation`, `teacher` (a fitted
        one is used as it is), `lam`, `loss`, `unlabeled`, `class_weight`, `random_state`, `n_jobs`, `verbose`.

    Returns
    -------
    Model
        A dict: ``"booster"`` and ``"history"``, as ``xgboost.dask.train`` returns them; ``"classes"``, which the
        booster and its file have too; ``"teacher"`` and its ``"evidence"``, None without targets; ``"schema"``, the
        columns; and ``"info"``: numbers of rows, labelled and unreachable rows, rows on the client,
        the bytes that a worker adds to a sum over all workers in each round, beside XGBoost's own histograms, and the
        seconds of each stage: ``"read"`` (X onto the workers), ``"teacher"`` (labels, sample and fit) and ``"targets"``
        (on the workers), or ``"operator"``, ``"matrix"`` (the partitions of the DMatrix) and ``"rounds"`` (binning and
        boosting).

    Raises
    ------
    ValueError
        If y does not follow X, ids are missing or there twice, or settings contradict each other.
    WorkerLostError
        If a worker dies during training.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import make_moons
    >>> X, truth = make_moons(200, noise=0.05, random_state=0)
    >>> y = np.where(np.arange(200) < 4, truth, -1)
    >>> with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as client:
    ...     model = train(client, {"max_depth": 3}, da.from_array(X, chunks=(50, 2)), y, num_boost_round=10)
    >>> probability = model["booster"].inplace_predict(X)
    >>> float(np.mean((probability > 0.5) == truth)), model["info"]["bytes_per_round"]
    (0.995, 0)
    """
    client = connected(client)
    check_booster(params)
    if costs is None and (mu != 0 or budget is not None):
        raise ValueError("mu and budget need prices: pass costs=FeatureCosts(...).")
    recipe, workers = read_recipe(graph, settings), set(client.nthreads())
    of_rows: dict[str, Any] = {"row_ids": row_ids, "sample_weight": sample_weight, "classes": classes}
    of_rows |= {"n_anchors": n_anchors, "storage": storage, "missing": missing, "custom": costs is not None}
    with naming_the_lost(client, workers):
        prepared = prepare(client, X, y, recipe, graph, settings, **of_rows)
    objective, labels, seconds = prepared.objective, prepared.labels, prepared.info["seconds"]
    kept = None if objective is None else objective.rows
    try:
        if xgb_model is not None and not isinstance(xgb_model, Booster):
            xgb_model = Booster(model_file=xgb_model)
        full = complete_params(params, labels, xgb_model)
        layout = {"enable_categorical": enable_categorical}
        sets = []
        if evals:
            check_metrics(full.setdefault("eval_metric", metric_name(eval_metric, labels)))
        with naming_the_lost(client, workers), timed(seconds, "matrix"):
            dtrain = quantile_matrix(client, prepared.data, full, **layout)
            for X_of_set, y_of_set, name in evals:
                of_set = read_parts(client, with_categories(X_of_set, prepared.parts.schema, "error"), missing)
                data = {"data": of_set.X, **evaluation_fields(of_set, y_of_set, labels)}
                sets.append((quantile_matrix(client, data, full, ref=dtrain, **layout), name))
            needed = {*dtrain.worker_map, *holders_of(client, kept)}
        callbacks = [*(callbacks or ())]
        if costs is not None:
            prices = costs if isinstance(costs, FeatureCosts) else FeatureCosts(costs)
            miser = {"mu": mu, "budget": budget, "strategy": strategy, "probe_every": probe_every}
            callbacks.append(CostedTraining(prices, miser))
        lost = naming_the_lost(client, workers | needed, needed)
        with lost, TrackerApart(client) as apart, timed(seconds, "rounds"):
            result = xgb_dask.train(
                apart,
                full,
                dtrain,
                num_boost_round,
                evals=sets or None,
                obj=objective,
                early_stopping_rounds=early_stopping_rounds,
                xgb_model=xgb_model,
                callbacks=callbacks or None,
                verbose_eval=verbose_eval,
                **({} if coll_cfg is None else {"coll_cfg": coll_cfg}),  # since XGBoost 3.0
            )
    finally:
        release_rows(client, kept)
    name_classes(result["booster"], labels.classes)
    return prepared.model(result)
