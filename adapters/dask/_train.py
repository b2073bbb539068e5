"""Semi-supervised training over ``xgboost.dask``."""

from __future__ import annotations

import threading
import time
from asyncio import CancelledError
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import distributed
import numpy as np
from xgboost import dask as xgb_dask

from grbb_ext.adapters.dask._labels import MetricName, WorkerMetric, evaluation_labels
from grbb_ext.adapters.dask._objective import CostedTraining
from grbb_ext.adapters.dask._parts import read_parts
from grbb_ext.adapters.dask._prepare import check_booster, complete_params, prepare, quantile_matrix, read_recipe
from grbb_ext.adapters.dask._rows import ResidentRows, Rows, release_rows
from grbb_ext.adapters.xgboost import Strategy
from grbb_ext.costs import FeatureCosts
from grbb_ext.losses import class_probabilities

# Seconds until the scheduler knows of a loss that others have noticed, and until those that wait for it are let go.
_UNTIL_KNOWN, _UNTIL_CANCELLED = 3.0, 20.0


class WorkerLostError(RuntimeError):
    """A worker died during training. There is no model; train again on the workers that are left."""


def train(
    client: distributed.Client,
    params: Mapping[str, Any],
    X: Any,
    y: Any,
    *,
    num_boost_round: int = 100,
    graph: Any = "auto",
    row_ids: Any = None,
    sample_weight: Any = None,
    classes: Any = None,
    n_anchors: int = 1000,
    storage: str | Path = "workers",
    costs: FeatureCosts | None = None,
    mu: float = 0.0,
    budget: float | None = None,
    strategy: Strategy = "levels",
    probe_every: int | Literal["auto"] = "auto",
    evals: Sequence[tuple[Any, Any, str]] = (),
    eval_metric: MetricName = "loss",
    early_stopping_rounds: int | None = None,
    xgb_model: Any = None,
    callbacks: Sequence[Any] | None = None,
    verbose_eval: bool | int = False,
    missing: float = np.nan,
    enable_categorical: bool = False,
    coll_cfg: Any = None,
    **settings: Any,
) -> dict[str, Any]:
    """Train XGBoost on labelled and unlabelled rows that lie on many workers.

    The model is that of ``xgboost.train`` with :func:`grbb_ext.grbb_objective` on one machine, with ``graph="knn"`` and
    ``teacher="graph"``, up to the quantile sketch of XGBoost, which depends on how rows are spread (no difference where
    features have at most ``max_bin`` values). The page "From one machine to many" tells what is sent when.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    params : mapping
        Parameters of XGBoost. ``base_score`` is 0 unless given, ``num_class`` follows from y.
    X : dask Array or DataFrame of shape (N, d)
        All rows. Partitions may be of any size, also empty.
    y : dask Array, dask Series or array-like of shape (N,)
        Labels in the order of X; `unlabeled` (-1), NaN or None marks a row without one.
    num_boost_round : int, default=100
        Rounds.
    graph : sparse matrix of shape (N, N), "auto", "knn", "anchors" or KNNGraph, default="auto"
        A ready affinity on the client; ``"knn"``, or a KNNGraph, brings X to the client and builds that graph;
        ``"anchors"`` brings a sample and uses :class:`~grbb_ext.propagation.AnchorNodes`. ``"auto"`` is ``"knn"``
        to 50,000 rows, then ``"anchors"``.
    row_ids : dask Array, dask Series or array-like of shape (N,) or None, default=None
        Which row of `graph` each row of X is; None where both have the same order. Every row of the graph must be there
        once, which all workers check together before the first round.
    sample_weight : dask Array, dask Series or array-like of shape (N,) or None, default=None
        As in :func:`grbb_ext.grbb_objective`, in the order of X.
    classes : array-like or None, default=None
        All classes, where y may miss some.
    n_anchors : int, default=1000
        Anchors of ``graph="anchors"``.
    storage : "workers" or path, default="workers"
        Where targets, or rows of the operator, wait for training: in the workers' memory, or in a folder that client
        and workers share.
    costs : FeatureCosts or None, default=None
        Prices of the columns. All workers probe and buy in step, as :class:`grbb_ext.adapters.xgboost.GreedyMiser` does
        on one machine; the trained booster has a ``ledger_``.
    mu, budget, strategy, probe_every
        As in :class:`grbb_ext.adapters.xgboost.GreedyMiser`.
    evals : sequence of (X, y, name), default=()
        Evaluation sets, each of a dask Array or DataFrame, its labels, and a name.
    eval_metric : {"loss", "error", "rmse"}, default="loss"
        The mean over the labelled rows of an evaluation set on all workers.
    early_stopping_rounds, xgb_model, callbacks, verbose_eval, coll_cfg
        Passed to ``xgboost.dask.train``. Callbacks run on every worker.
    missing, enable_categorical
        Passed to ``xgboost.dask.DaskQuantileDMatrix``.
    **settings
        Of :func:`grbb_ext.grbb_objective`: `preset`, `rule` (not ``"laplacian"``), `propagation`, `teacher` (the graph
        alone teaches here), `lam`, `loss`, `unlabeled`, `class_weight`, `random_state`, `n_jobs`, `verbose`.

    Returns
    -------
    dict
        ``"booster"`` and ``"history"``, as ``xgboost.dask.train`` returns them; ``"labels"``, the loss and the
        classes; ``"info"``: numbers of rows, labelled and unreachable rows, the form of the graph, and the bytes that a
        worker adds to a sum over all workers in each round, beside XGBoost's own histograms; and the seconds of each
        stage: ``"read"`` (X onto the workers), ``"operator"`` (labels, graph, solves, targets), ``"matrix"`` (the
        partitions of the DMatrix) and ``"rounds"`` (binning and boosting).

    Raises
    ------
    ValueError
        If ids are missing or there twice, on whichever workers, or settings contradict each other.
    WorkerLostError
        If a worker dies during training.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from distributed import Client
    >>> from sklearn.datasets import make_moons
    >>> X, truth = make_moons(200, noise=0.05, random_state=0)
    >>> y = np.where(np.arange(200) < 4, truth, -1)
    >>> with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as client:
    ...     model = train(client, {"max_depth": 3}, da.from_array(X, chunks=(50, 2)), y, num_boost_round=10)
    ...     predicted = predict(client, model, da.from_array(X, chunks=(50, 2)), kind="class").compute()
    >>> float(np.mean(predicted == truth)), model["info"]["bytes_per_round"]
    (1.0, 0)
    """
    check_booster(params, X)
    if eval_metric not in ("loss", "error", "rmse"):
        raise ValueError(
            f"eval_metric must be 'loss', 'error' or 'rmse', got {eval_metric!r}: others are no means over rows, and "
            "cannot be put together from the workers' parts."
        )
    if client.asynchronous:
        raise ValueError("train waits for its results: give it a client made without asynchronous=True.")
    if costs is None and (mu != 0 or budget is not None):
        raise ValueError("mu and budget need prices: pass costs=FeatureCosts(...).")
    of_rows = {name: settings.pop(name) for name in ("loss", "unlabeled", "n_jobs", "verbose") if name in settings}
    recipe = read_recipe(graph, settings)
    workers, clock = set(client.nthreads()), [time.perf_counter()]
    with _naming_the_lost(client, workers):
        parts = read_parts(client, X)
        clock.append(time.perf_counter())
        prepared = prepare(
            parts,
            y,
            recipe,
            graph=graph,
            row_ids=row_ids,
            sample_weight=sample_weight,
            n_anchors=n_anchors,
            storage=storage,
            classes=classes,
            **of_rows,
        )
    clock.append(time.perf_counter())
    objective, labels = prepared.objective, prepared.labels
    try:
        full = complete_params(params, objective.n_outputs)
        metric = WorkerMetric(labels, eval_metric)
        layout = {"missing": missing, "enable_categorical": enable_categorical}
        sets = []
        with _naming_the_lost(client, workers):
            dtrain = quantile_matrix(client, prepared.data, full, **layout)
            for X_of_set, y_of_set, name in evals:
                of_set = read_parts(client, X_of_set)
                aligned = of_set.align(y_of_set, "y of an evaluation set")
                data = {"data": of_set.X, "label": of_set.series(aligned, evaluation_labels, labels=labels)}
                sets.append((quantile_matrix(client, data, full, ref=dtrain, **layout), name))
            needed = {*dtrain.worker_map, *_holders(client, objective.rows.values())}
        clock.append(time.perf_counter())
        costed = []
        if costs is not None:
            miser = {"mu": mu, "budget": budget, "strategy": strategy, "probe_every": probe_every}
            costed = [CostedTraining(objective, costs, miser)]
        with _naming_the_lost(client, workers | needed, needed):
            result = xgb_dask.train(
                client,
                full,
                dtrain,
                num_boost_round,
                evals=sets or None,
                obj=costed[0] if costed else objective,
                custom_metric=metric if sets else None,
                early_stopping_rounds=early_stopping_rounds,
                xgb_model=xgb_model,
                callbacks=[*(callbacks or ()), *costed] or None,
                verbose_eval=verbose_eval,
                **({} if coll_cfg is None else {"coll_cfg": coll_cfg}),  # since XGBoost 3.0
            )
    finally:
        release_rows(client, objective.rows.values())
    clock.append(time.perf_counter())
    seconds = dict(zip(("read", "operator", "matrix", "rounds"), np.diff(clock).tolist(), strict=True))
    return {**result, "labels": labels, "info": {**prepared.info, "seconds": seconds}}


def predict(client: distributed.Client, model: Any, X: Any, *, kind: str = "margin", **settings: Any) -> Any:
    """Predict as ``xgboost.dask.predict`` does.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    model : dict, xgboost.Booster or Future
        What :func:`train` returned; a bare booster knows margins only.
    X : dask Array, DataFrame or DaskDMatrix
        Rows.
    kind : {"margin", "probability", "class"}, default="margin"
        Raw scores, the only thing that XGBoost knows of a model with a custom objective (for regression they are the
        predictions); probabilities, of shape (M, K); or classes.
    **settings
        Passed to ``xgboost.dask.predict``.

    Returns
    -------
    dask Array or Series
        Lazy, like all of dask. Probabilities and classes are Arrays.
    """
    if kind not in ("margin", "probability", "class"):
        raise ValueError(f"kind must be 'margin', 'probability' or 'class', got {kind!r}.")
    margin = xgb_dask.predict(client, model, X, **{"output_margin": True, **settings})
    if kind == "margin":
        return margin
    labels = model.get("labels") if isinstance(model, dict) else None
    if labels is None or labels.classes is None:
        raise ValueError(f"kind={kind!r} is for classification, with what train() returned as model.")
    scores = margin if hasattr(margin, "map_blocks") else margin.to_dask_array()
    probability = scores.map_blocks(
        class_probabilities,
        new_axis=1 if scores.ndim == 1 else None,
        chunks=(scores.chunks[0], (labels.classes.size,)),
        dtype=np.float64,
    )
    if kind == "probability":
        return probability
    return probability.map_blocks(lambda p: labels.classes[p.argmax(axis=1)], drop_axis=1, dtype=labels.classes.dtype)


def _holders(client: distributed.Client, kept: Iterable[Rows]) -> set[str]:
    """Return the workers that hold targets or rows of the operator; those of a dead worker do not come back."""
    held = [each for rows in kept if isinstance(rows, ResidentRows) for each in rows.holders]
    alive = set(client.nthreads())
    if not all(alive.intersection(workers) for workers in held):
        raise RuntimeError("What the objective needs of some rows is gone.")
    return {worker for workers in held for worker in alive.intersection(workers)}


@contextmanager
def _naming_the_lost(client: distributed.Client, before: set[str], needed: Collection[str] = ()) -> Iterator[None]:
    """Turn what fails because a worker is gone into an error that says so: others report a broken socket, or wait.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    before : set of str
        The workers that were there.
    needed : collection of str, default=()
        Workers without which nothing goes on. XGBoost may wait for them for minutes or forever: its futures are
        cancelled some time after one of these workers is gone.
    """
    others, done = set(client.futures), threading.Event()

    def lost() -> list[str]:
        return sorted(before - set(client.nthreads()))

    def let_go() -> None:
        while not done.wait(1.0):
            if set(needed) & set(lost()) and not done.wait(_UNTIL_CANCELLED):
                waiting = [distributed.Future(key, client) for key in list(client.futures) if key not in others]
                client.cancel(waiting)

    watch = threading.Thread(target=let_go, name="grbb_ext-lost-workers", daemon=True)
    if needed:
        watch.start()
    try:
        yield
    except (Exception, CancelledError) as error:
        ours = type(error) in (ValueError, TypeError)  # about what the caller gave
        end = time.monotonic() + (0.0 if ours else _UNTIL_KNOWN)
        while not (gone := lost()) and time.monotonic() < end:
            time.sleep(0.1)
        if not gone or (ours and not set(needed) & set(gone)):
            raise
        raise WorkerLostError(
            f"{len(gone)} of {len(before)} workers died during training ({', '.join(gone[:3])}), and with them "
            "their rows and trees. There is no model: XGBoost cannot go on without them. Call train() again; the "
            "usual cause is memory, for which more workers or graph='anchors' may help."
        ) from error
    finally:
        done.set()
        if needed:
            watch.join(5.0)
