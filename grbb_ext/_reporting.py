"""Warnings that point at the user's line, and progress bars."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from typing import TypeVar


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
