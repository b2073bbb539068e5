"""The interface of a rule."""

from __future__ import annotations

from typing import Protocol

from grbb_ext.losses._base import Floats


class Rule(Protocol):
    """A rule without state between rounds: gradient and hessian for all rows, from raw scores alone."""

    def __call__(self, H: Floats) -> tuple[Floats, Floats]:
        """Return gradient and hessian, new arrays of H's shape."""
