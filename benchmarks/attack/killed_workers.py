"""Worker processes that are killed while the graph or the targets are made, or during boosting, on Dask."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from asyncio import CancelledError
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import xgboost as xgb
from numpy.typing import NDArray

from benchmarks.attack import Attack, Case

#: The functions with which each stage begins; it lasts until the next one begins.
STAGES = {
    "graph": (("grbb_ext.adapters.dask._prepare", "read_parts"),),
    "targets": (
        ("grbb_ext.adapters.dask._prepare", "teach"),
        ("grbb_ext.adapters.dask._operators", "spread_by_graph"),
        ("grbb_ext.adapters.dask._operators", "spread_by_anchors"),
    ),
    "rounds": (("xgboost.dask", "train"),),
}
_KINDS = [("targets", "table"), ("targets", "knn"), ("corrected", "knn"), ("corrected", "anchors")]
_N_ROWS, _N_LABELED, _ROUNDS = 2000, 20, 100
#: Seconds in which training ends, one way or another.
_LIMIT = 120.0


@contextmanager
def _cluster() -> Iterator[Any]:
    """Start two worker processes, yield a client, and end them."""
    from distributed import Client, LocalCluster

    settings: dict[str, Any] = {"dashboard_address": None, "memory_limit": None, "silence_logs": 60}
    with LocalCluster(n_workers=2, threads_per_worker=1, **settings) as cluster, Client(cluster) as client:
        client.wait_for_workers(2)
        yield client


@contextmanager
def _watched(begins: Callable[[str], None]) -> Iterator[None]:
    """Call a function with the name of each stage that begins."""

    def first(stage: str, function: Any, *args: Any, **settings: Any) -> Any:
        begins(stage)
        return function(*args, **settings)

    with ExitStack() as patches:
        for stage, functions in STAGES.items():
            for module, name in functions:
                function = getattr(import_module(module), name)
                patches.enter_context(patch(f"{module}.{name}", partial(first, stage, function)))
        yield


def _train(client: Any, rule: str, graph: str, storage: str) -> NDArray[np.float32]:
    """Return the scores of a model on binned columns: how rows are spread over the workers does not change it."""
    import dask.array as da

    from grbb_ext.adapters.dask import train

    X = np.random.default_rng(0).integers(0, 32, (_N_ROWS, 5)).astype(np.float32)
    y = np.where(np.arange(_N_ROWS) < _N_LABELED, X[:, 0] + X[:, 1] > 31, -1)
    rows = da.from_array(X, chunks=(_N_ROWS // 4, 5))
    settings: dict[str, Any] = {"num_boost_round": _ROUNDS, "graph": graph, "rule": rule, "storage": storage}
    model = train(client, {"max_depth": 3, "nthread": 1}, rows, y, **settings)
    return np.asarray(model["booster"].predict(xgb.DMatrix(X), output_margin=True))


def _ended(client: Any, kind: tuple[str, str], storage: str, expected: NDArray[np.float32]) -> tuple[str, str]:
    """Train, and return how that ended."""
    from grbb_ext.adapters.dask import WorkerLostError

    try:
        scores = _train(client, *kind, storage)
    except WorkerLostError as error:
        return "refused", str(error)
    except (Exception, CancelledError) as error:
        return "foreign", f"{type(error).__name__}: {error}"
    return ("equal" if np.array_equal(scores, expected) else "different"), ""


def kills(stage: str, folder: Path) -> Case:
    """Kill one of two workers at a random moment of a stage: training ends with the same model, or says what happened.

    Every second worker that is killed comes back, as a nanny of Dask starts it again; the others stay away.
    """
    expected, seconds = {}, {}
    with _cluster() as client:
        for kind in _KINDS * 2:  # the second time everything is imported
            times: list[tuple[str, float]] = []
            with _watched(lambda name, times=times: times.append((name, time.perf_counter()))):  # type: ignore[misc]
                expected[kind] = _train(client, *kind, "workers")
            times.append(("end", time.perf_counter()))
            here = [name for name, _ in times].index(stage)
            seconds[kind] = times[here + 1][1] - times[here][1]

    def case(random: np.random.Generator) -> tuple[str, str]:
        kind, returns = _KINDS[random.integers(len(_KINDS))], random.random() < 0.5
        delay = float(random.uniform(0, seconds[kind]))
        with _cluster() as client, tempfile.TemporaryDirectory(dir=folder) as shared:
            storage = str(random.choice(["workers", shared]))
            for nanny in client.cluster.workers.values():
                nanny.auto_restart = returns
            client.run(import_module, "xgboost.dask")
            victim = int(random.choice(sorted(client.run(os.getpid).values())))
            killed = threading.Event()

            def kill(victim: int = victim, killed: threading.Event = killed) -> None:
                os.kill(victim, signal.SIGKILL)
                killed.set()

            while not killed.is_set():  # a faster training than the one that was measured is over before
                killer = threading.Timer(delay, kill)
                with _watched(lambda name, killer=killer: killer.start() if name == stage else None):  # type: ignore[misc]
                    started = time.perf_counter()
                    end, word = _ended(client, kind, storage, expected[kind])
                    took = time.perf_counter() - started
                killer.cancel()
                if killer.is_alive():
                    killer.join()
                delay = delay if killed.is_set() else delay / 2
            end = "hang" if took > _LIMIT else end
        about = f"{'/'.join(kind)}, {'folder' if storage == shared else storage}, {'' if returns else 'not '}restarted"
        return end, f"{about}, {delay:.2f} s into {stage}, ended after {took:.1f} s: {word}"

    return case


ATTACKS = {
    f"workers killed during {stage}": Attack(partial(kills, stage), 1, 20, patience=1.5 * _LIMIT) for stage in STAGES
}
