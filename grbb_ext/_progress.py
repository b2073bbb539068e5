"""Progress bars, drawn by tqdm where it is installed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

_SECONDS_BEFORE_A_BAR = 2.0


def progress(items: Iterable[T], total: int, description: str, verbose: bool) -> Iterator[T]:
    """Yield `items`, with a bar on standard error once it has taken more than two seconds.

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

    Yields
    ------
    object
        The items, unchanged.

    Examples
    --------
    >>> list(progress(range(3), total=3, description="solving", verbose=False))
    [0, 1, 2]
    """
    if verbose:
        try:
            from tqdm.auto import tqdm
        except ImportError:  # a bar is a courtesy: without the library the work is the same
            pass
        else:
            items = tqdm(items, total=total, desc=description, delay=_SECONDS_BEFORE_A_BAR, leave=False)
    yield from items
