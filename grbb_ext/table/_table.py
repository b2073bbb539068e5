"""A data set as numbers, with what its columns mean; and a key for each row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

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


_SIZE = 16
_ROWS_PER_BLOCK = 65_536


def row_keys(table: Table) -> list[bytes]:
    """Return a 128-bit key of each row.

    Categories count by name, not by code, so that a subset that counts its categories anew has the same keys. Two
    different rows have the same key with a probability of about N^2 / 2^129, i.e. never.

    Examples
    --------
    >>> rows = np.array([[1.0, 0.0], [2.0, np.nan], [1.0, -0.0]])
    >>> first, second, third = row_keys(Table(rows))
    >>> first == third, first == second, row_keys(Table(rows[1:]))[0] == second
    (True, False, True)
    """
    if sp.issparse(table.values):
        return _sparse_keys(table.values)
    keys: list[bytes] = []
    for start in range(0, table.n_rows, _ROWS_PER_BLOCK):
        values = table.values[start : start + _ROWS_PER_BLOCK]
        bits = _bits(values)
        for j, categories in table.schema.categories.items():
            names = np.array([_name_bits(category) for category in categories] + [0], dtype=np.uint64)
            bits[:, j] = names[np.where(np.isnan(values[:, j]), -1, values[:, j]).astype(np.intp)]
        keys += [blake2b(row.tobytes(), digest_size=_SIZE).digest() for row in bits]
    return keys


def _bits(values: NDArray[Any]) -> NDArray[np.uint64]:
    # -0.0 + 0.0 is 0.0, and all NaN are made the same: numbers that are equal have equal bits.
    numbers = np.ascontiguousarray(values, dtype=np.float64) + 0.0
    numbers[np.isnan(numbers)] = np.nan
    return numbers.view(np.uint64)


def _name_bits(category: Any) -> int:
    return int.from_bytes(blake2b(repr(category).encode(), digest_size=8).digest(), "little")


def _sparse_keys(values: Any) -> list[bytes]:
    matrix = sp.csr_array(values, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    indices, bits = matrix.indices.astype(np.int64), _bits(matrix.data)
    return [
        blake2b(indices[a:b].tobytes() + bits[a:b].tobytes(), digest_size=_SIZE).digest()
        for a, b in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)
    ]
