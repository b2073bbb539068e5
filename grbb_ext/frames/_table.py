"""What is kept of a data set: its numbers, and what its columns mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

# A dense float array or a csr_array, which has no types upstream.
Matrix: TypeAlias = Any


@dataclass(frozen=True)
class Schema:
    """What the columns of a data set mean.

    Attributes
    ----------
    categorical : tuple of int
        Positions of the categorical columns.
    categories : mapping of int to tuple
        Their categories by position, in the order of their codes, where they come from a frame; columns of an array
        hold codes already.
    """

    categorical: tuple[int, ...] = ()
    categories: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """A data set as numbers.

    Attributes
    ----------
    values : ndarray or csr_array of shape (N, d)
        float32 or float64. NaN is a missing value. A categorical column holds codes 0, 1, ...
    schema : Schema
        What the columns mean.
    """

    values: Matrix
    schema: Schema = field(default_factory=Schema)

    @property
    def n_rows(self) -> int:
        """N."""
        return int(self.values.shape[0])
