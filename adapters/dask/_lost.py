"""Workers that die: the caller is told so, soon, and never gets a model."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from asyncio import CancelledError
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any, Self

import distributed
import xgboost as xgb

from grbb_ext.adapters.dask._rows import Rows

# Seconds until the scheduler knows of a loss that others have noticed, and until those that wait for it are let go.
_UNTIL_KNOWN, _UNTIL_CANCELLED = 3.0, 20.0


class WorkerLostError(RuntimeError):
    """A worker died during training. There is no model; train again on the workers that are left."""


def holders_of(client: distributed.Client, kept: Rows | None) -> set[str]:
    """Return the workers that hold targets or rows of the operator; those of a dead worker do not come back."""
    alive = set(client.nthreads())
    held = [] if kept is None else [alive.intersection(workers) for workers in kept.holders]
    if not all(held):
        raise RuntimeError("What the objective needs of some rows is gone.")
    return set().union(*held)


@contextmanager
def naming_the_lost(client: distributed.Client, before: set[str], needed: Collection[str] = ()) -> Iterator[None]:
    """Turn what fails because a worker is gone into an error that says so: others report a broken socket, or wait.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    before : set of str
        The workers that were there.
    needed : collection of str, default=()
        Workers without which nothing goes on. XGBoost may wait for them for minutes or forever: its futures are
        cancelled some time after one of these workers is gone. So are those for which nobody works any more, because
        what they need was on a worker that is gone.
    """
    others, done = set(client.futures), threading.Event()

    def lost() -> list[str]:
        return sorted(before - set(client.nthreads()))

    def in_vain() -> bool:
        pending = any(f.status == "pending" for key, f in list(client.futures.items()) if key not in others)
        return pending and not any(client.processing().values())

    def let_go() -> None:
        seconds = 0.0
        while not done.wait(1.0):
            gone = set(lost())
            seconds = seconds + 1.0 if gone and (gone & set(needed) or in_vain()) else 0.0
            if seconds > _UNTIL_CANCELLED:
                waiting = [distributed.Future(key, client) for key in list(client.futures) if key not in others]
                client.cancel(waiting)

    watch = threading.Thread(target=let_go, name="grbb_ext-lost-workers", daemon=True)
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
            "usual cause is memory, for which more workers may help."
        ) from error
    finally:
        done.set()
        watch.join(5.0)


# Through XGBoost's C interface, for its package takes a hundred times as long to import. The process ends when the last
# worker has left the tracker, or with the scheduler, which holds the other end of its input.
_TRACKER = """
import ctypes, os, sys, threading
library, handle, args = ctypes.CDLL(sys.argv[1]), ctypes.c_void_p(), ctypes.c_char_p()
library.XGBGetLastError.restype = ctypes.c_char_p
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
if all(library.XGTrackerCreate(settings.encode(), ctypes.byref(handle)) for settings in sys.argv[2:]):
    sys.exit(library.XGBGetLastError().decode())
library.XGTrackerRun(handle, b"{}")
library.XGTrackerWorkerArgs(handle, ctypes.byref(args))
print(args.value.decode(), flush=True)
library.XGTrackerWaitFor(handle, b"{}")
"""
_trackers: dict[int, subprocess.Popen[str]] = {}  # by process id, on the scheduler


async def _start_tracker(
    n_workers: int, of_scheduler: str | None, of_user: tuple[str, int] | None, timeout: int | None = None
) -> tuple[int, dict[str, Any]]:
    """Start a tracker beside the scheduler, on which this runs; return its process and what workers have to know."""
    # In the order of XGBoost, whose guess None is.
    addresses = [of_user or (None, 0), (of_scheduler, 0)]
    kind = {"dmlc_communicator": "rabit", "n_workers": n_workers, "sortby": 1, "timeout": timeout or 0}
    settings = [json.dumps({**kind, "host": host, "port": port}) for host, port in addresses]
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _TRACKER, xgb.build_info()["libxgboost"], *settings],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    said = ""
    while line := await asyncio.to_thread(process.stdout.readline):
        if line.startswith("{"):
            _trackers[process.pid] = process
            threading.Thread(target=_forward, args=(process,), name="grbb_ext-tracker", daemon=True).start()
            return process.pid, json.loads(line)
        said += line
    process.communicate()
    raise RuntimeError(f"XGBoost's tracker has not started on the machine of the scheduler: {said}")


def _forward(process: subprocess.Popen[str]) -> None:
    """Print what workers report to the tracker, such as metrics, where XGBoost would print it."""
    assert process.stdout is not None
    with process:
        for line in process.stdout:
            print(line, end="", flush=True)
    del _trackers[process.pid]


async def _stop_tracker(pid: int, seconds: float) -> None:
    """End a tracker that has not ended by itself after some time."""
    end = time.monotonic() + seconds
    while pid in _trackers and time.monotonic() < end:
        await asyncio.sleep(0.01)
    if pid in _trackers:
        _trackers[pid].kill()


class TrackerApart:
    """A client with which ``xgboost.dask.train`` has its tracker in a process of its own, inside a ``with`` block.

    XGBoost runs the tracker, to which workers connect before the first round, in the scheduler, and so in the process
    of the caller where that has made a LocalCluster. It throws in a thread of C++ if it cannot send to a worker that
    died meanwhile, which ends the process; and it waits forever for a worker that died before it connected, and others
    wait with it. There is no setting for that: here is all of the client but for the one method that XGBoost calls.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    """

    def __init__(self, client: distributed.Client) -> None:
        self._client, self._pids = client, list[int]()

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # which XGBoost checks
        return type(self._client)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def run_on_scheduler(self, start: Any, *asked: Any, **more: Any) -> Any:
        """Start a tracker, as XGBoost asks for one; return what workers have to know of it."""
        if len(asked) not in (3, 4) or more:  # a release that asks otherwise has its own tracker
            return await self._client.run_on_scheduler(start, *asked, **more)
        pid, args = await self._client.run_on_scheduler(_start_tracker, *asked)
        self._pids.append(pid)
        return args

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failed: type[BaseException] | None, *about: Any) -> None:
        for pid in self._pids:
            self._client.run_on_scheduler(_stop_tracker, pid, 5.0 if failed is None else 0.0)
