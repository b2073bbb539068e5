"""Row ids that travel with the rows of a DMatrix, and the check that every row is there exactly once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xgboost as xgb
from numpy.typing import NDArray
from xgboost import collective

Ids = NDArray[np.int64]

# A DMatrix keeps single precision, which is exact to 2^24: two numbers below that make ids up to 2^44.
_BASE = 2**20
LARGEST_ID = 2**44 - 1
# Ids per collective operation of the check: 2 MB of bits.
_IDS_PER_BLOCK = 2**24
_NAMED = 5


def split_ids(ids: Ids) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the ids as two exact floats, for ``label_lower_bound`` and ``label_upper_bound``.

    Examples
    --------
    >>> [part.tolist() for part in split_ids(np.array([7, 2**40 + 3]))]
    [[0.0, 1048576.0], [7.0, 3.0]]
    """
    return (ids // _BASE).astype(np.float32), (ids % _BASE).astype(np.float32)


def read_ids(data: xgb.DMatrix) -> Ids:
    """Return the ids that a DMatrix carries.

    Examples
    --------
    >>> lower, upper = split_ids(np.array([7, 2**40 + 3]))
    >>> data = xgb.DMatrix(np.zeros((2, 1)), label_lower_bound=lower, label_upper_bound=upper)
    >>> read_ids(data).tolist()
    [7, 1099511627779]
    """
    high = data.get_float_info("label_lower_bound").astype(np.int64)
    return np.asarray(high * _BASE + data.get_float_info("label_upper_bound").astype(np.int64))


def check_ids(ids: Ids, n_rows: int) -> None:
    """Raise on all workers alike unless their ids together are 0, ..., N - 1, each once.

    All workers have to call it. The workers' bitmaps are joined, N / 8 bytes in all: if N ids set N different bits,
    each is there once. Only when that fails are they counted, to name some of the culprits.

    Parameters
    ----------
    ids : ndarray of int64
        Ids of this worker's rows.
    n_rows : int
        N.
    """
    outside = ids[(ids < 0) | (ids >= n_rows)]
    total, n_outside = collective.allreduce(np.array([ids.size, outside.size]), collective.Op.SUM)
    if n_outside:
        worst = int(collective.allreduce(np.array([ids.max(initial=0)]), collective.Op.MAX)[0])
        raise ValueError(
            ids_message(n_rows, int(total), [], [], f"{n_outside} ids are not in 0..{n_rows - 1} ({worst})")
        )
    full = True
    for start, block in _blocks(ids, n_rows):
        bits = np.zeros(min(_IDS_PER_BLOCK, n_rows - start), dtype=bool)
        bits[block] = True
        joined = collective.allreduce(np.packbits(bits), collective.Op.BITWISE_OR)
        full = full and bool(np.unpackbits(joined, count=bits.size).all())
    if full and total == n_rows:
        return
    missing: list[int] = []
    twice: list[int] = []
    for start, block in _blocks(ids, n_rows):
        count = np.bincount(block, minlength=min(_IDS_PER_BLOCK, n_rows - start))
        count = collective.allreduce(count.astype(np.int64), collective.Op.SUM)
        missing += (start + np.flatnonzero(count == 0)[:_NAMED]).tolist()
        twice += (start + np.flatnonzero(count > 1)[:_NAMED]).tolist()
    raise ValueError(ids_message(n_rows, int(total), missing[:_NAMED], twice[:_NAMED]))


def ids_message(n_rows: int, total: int, missing: list[int], twice: list[int], also: str = "") -> str:
    """Say what is wrong with the ids of the rows."""
    faults = [f"missing: {missing}"] if missing else []
    faults += [f"more than once: {twice}"] if twice else []
    faults += [also] if also else []
    return (
        f"The {total} rows of X must have the ids 0..{n_rows - 1}, each once, over all workers; "
        f"{'; '.join(faults) or 'their number is wrong'}. Check row_ids, or leave it out where the rows are in order."
    )


def _blocks(ids: Ids, n_rows: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield ranges of ids, the same on all workers, with this worker's ids in each, counted from its start."""
    ordered = np.sort(ids)
    for start in range(0, n_rows, _IDS_PER_BLOCK):
        first, last = np.searchsorted(ordered, [start, start + _IDS_PER_BLOCK])
        yield start, ordered[first:last] - start
