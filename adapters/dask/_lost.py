"""Workers that die: the caller is told so, soon, and never gets a model."""

from __future__ import annotations

import threading
import time
from asyncio import CancelledError
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

import distributed

from grbb_ext.adapters.dask._rows import ResidentRows, Rows

# Seconds until the scheduler knows of a loss that others have noticed, and until those that wait for it are let go.
_UNTIL_KNOWN, _UNTIL_CANCELLED = 3.0, 20.0


class WorkerLostError(RuntimeError):
    """A worker died during training. There is no model; train again on the workers that are left."""


def holders_of(client: distributed.Client, kept: Iterable[Rows]) -> set[str]:
    """Return the workers that hold targets or rows of the operator; those of a dead worker do not come back."""
    held = [each for rows in kept if isinstance(rows, ResidentRows) for each in rows.holders]
    alive = set(client.nthreads())
    if not all(alive.intersection(workers) for workers in held):
        raise RuntimeError("What the objective needs of some rows is gone.")
    return {worker for workers in held for worker in alive.intersection(workers)}


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
