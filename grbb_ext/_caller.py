"""Warnings that point at the line of the user, however deep in the package they arise."""

from __future__ import annotations

import sys
import warnings


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
