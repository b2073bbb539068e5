"""Work on blocks of rows, shared by threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from grbb_ext._reporting import progress

T = TypeVar("T")
R = TypeVar("R")

#: Rows of a block: large enough that a loop over blocks costs nothing, small enough for a cache.
ROWS_PER_BLOCK = 2**14


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads that `n_jobs` asks for: None and negative numbers are all cores.

    Examples
    --------
    >>> n_threads(3), n_threads(None) == n_threads(-1) == os.cpu_count()
    (3, True)
    """
    return n_jobs if n_jobs is not None and n_jobs > 0 else os.cpu_count() or 1


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
    if n_threads(n_jobs) == 1 or len(todo) < 2:
        return list(progress(map(work, todo), len(todo), description, verbose))
    with ThreadPoolExecutor(n_threads(n_jobs)) as pool:
        return list(progress(pool.map(work, todo), len(todo), description, verbose))
