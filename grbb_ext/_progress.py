"""What a user sees of long work: warnings at their own line, progress bars, and threads that share the rows."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

T = TypeVar("T")
R = TypeVar("R")

#: Rows of a block: large enough that a loop over blocks costs nothing, small enough for a cache.
ROWS_PER_BLOCK = 2**14


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn at the first line up the stack that is not of this package.

    Parameters
    ----------
    message : str
        What to say.
    category : type
        Class of the warning.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_caller("Look here.", UserWarning)
    >>> str(caught[0].message)
    'Look here.'
    """
    package = __name__.partition(".")[0]
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == package:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


_SECONDS_BEFORE_A_BAR = 2.0


def progress(items: Iterable[T], total: int, description: str, verbose: bool) -> Iterable[T]:
    """Return `items`, with a bar on standard error once it has taken more than two seconds.

    Parameters
    ----------
    items : iterable
        What to iterate over.
    total : int
        Number of items.
    description : str
        Text in front of the bar.
    verbose : bool
        False draws nothing.

    Returns
    -------
    iterable
        The items, unchanged.

    Examples
    --------
    >>> list(progress(range(3), total=3, description="solving", verbose=False))
    [0, 1, 2]
    """
    if not verbose:
        return items
    try:
        from tqdm.auto import tqdm
    except ImportError:  # a bar is a courtesy: without the library the work is the same
        return items
    bar: Iterable[T] = tqdm(items, total=total, desc=description, delay=_SECONDS_BEFORE_A_BAR, leave=False)
    return bar


@contextmanager
def timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    """Add the time that a block of code takes to that of a stage.

    Examples
    --------
    >>> seconds: dict[str, float] = {}
    >>> with timed(seconds, "forest"):
    ...     pass
    >>> list(seconds), seconds["forest"] >= 0
    (['forest'], True)
    """
    start = time.perf_counter()
    yield
    seconds[stage] = seconds.get(stage, 0.0) + time.perf_counter() - start


def n_threads(n_jobs: Any) -> int:
    """Return the number of threads, or of fits at a time, that `n_jobs` asks for: None and negative are all cores.

    Examples
    --------
    >>> n_threads(3), n_threads(None) == n_threads(-1) == os.cpu_count()
    (3, True)
    >>> n_threads(0)
    Traceback (most recent call last):
    ...
    ValueError: n_jobs must be a positive integer, -1 or None, got 0.
    """
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs must be a positive integer, -1 or None, got {n_jobs!r}.")
    given = 0 if n_jobs is None else int(n_jobs)
    return given if given > 0 else os.cpu_count() or 1


def one_thread_of_blas() -> AbstractContextManager[Any]:
    """Keep BLAS to one thread: those of small matrices wait for one another, and for ours, longer than they work."""
    limited: AbstractContextManager[Any] = _libraries("faiss" in sys.modules).limit(limits=1, user_api="blas")
    return limited


@cache
def _libraries(with_faiss: bool) -> ThreadpoolController:
    """Look for the libraries of the process, once; faiss brings one of its own."""
    # Before threadpoolctl 3.8 a look may wait for ever for a thread that loads a library.
    return ThreadpoolController()


def row_blocks(n_rows: int, size: int = ROWS_PER_BLOCK) -> list[slice]:
    """Cut rows into blocks.

    Examples
    --------
    >>> row_blocks(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def in_threads(
    work: Callable[[T], R],
    items: Iterable[T],
    *,
    n_jobs: int | None = None,
    description: str = "",
    verbose: bool = False,
) -> list[R]:
    """Do `work` on each item, in threads, and return the results in the order of the items.

    Parameters
    ----------
    work : callable
        What to do; it should spend its time in code that releases the interpreter, as numpy and scipy do.
    items : iterable
        What to do it on, such as :func:`row_blocks`.
    n_jobs : int or None, default=None
        Threads; None takes all cores, 1 stays on the calling thread.
    description : str, default=""
        Text in front of the progress bar.
    verbose : bool, default=False
        Whether there is a bar on what takes more than two seconds.

    Returns
    -------
    list
        The results.

    Examples
    --------
    >>> in_threads(lambda rows: rows.stop - rows.start, row_blocks(5, 2), n_jobs=2)
    [2, 2, 1]
    """
    todo = list(items)
    n_workers = n_threads(n_jobs) if len(todo) > 1 else 1
    if n_workers == 1:
        return list(progress(map(work, todo), len(todo), description, verbose))
    with ThreadPoolExecutor(n_workers) as pool:
        return list(progress(pool.map(work, todo), len(todo), description, verbose))


def over_rows(
    work: Callable[[slice], NDArray[Any]], n_rows: int, size: int = ROWS_PER_BLOCK, **settings: Any
) -> NDArray[Any]:
    """Do `work` on blocks of rows, in threads, and return the results below each other.

    Parameters
    ----------
    work : callable
        Makes an array with a line for each row of a block.
    n_rows : int
        N.
    size : int
        Rows of a block.
    **settings
        As in :func:`in_threads`.

    Examples
    --------
    >>> over_rows(lambda rows: np.full(rows.stop - rows.start, rows.stop), 5, 2, n_jobs=2).tolist()
    [2, 2, 4, 4, 5]
    """
    blocks = row_blocks(n_rows, size)
    if len(blocks) == 1:
        return work(blocks[0])
    like = work(slice(0, 1))
    # Filled block by block: with a list of blocks, all rows would be in memory twice.
    made = np.empty((n_rows, *like.shape[1:]), like.dtype)

    def fill(block: slice) -> None:
        made[block] = work(block)

    in_threads(fill, blocks, **settings)
    return made
