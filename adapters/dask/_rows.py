"""Row ids that travel with the rows, and values from which each worker takes those of its ids."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import distributed
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

    All workers have to call it; on the client it looks at the ids there alone. The workers' bitmaps are joined, N / 8
    bytes in all: if N ids set N different bits, each is there once. Only when that fails are they counted, to name some
    of the culprits.

    Parameters
    ----------
    ids : ndarray of int64
        Ids of this worker's rows.
    n_rows : int
        N.
    """
    inside = ids[(ids >= 0) & (ids < n_rows)]
    total, n_inside = collective.allreduce(np.array([ids.size, inside.size]), collective.Op.SUM).tolist()
    full = total == n_inside == n_rows
    for start, block in _blocks(inside, n_rows) if full else ():
        bits = np.zeros(min(_IDS_PER_BLOCK, n_rows - start), dtype=bool)
        bits[block] = True
        joined = collective.allreduce(np.packbits(bits), collective.Op.BITWISE_OR)
        full = full and bool(np.unpackbits(joined, count=bits.size).all())
    if full:
        return
    missing: list[int] = []
    twice: list[int] = []
    for start, block in _blocks(inside, n_rows):
        count = np.bincount(block, minlength=min(_IDS_PER_BLOCK, n_rows - start))
        count = collective.allreduce(count.astype(np.int64), collective.Op.SUM)
        missing += (start + np.flatnonzero(count == 0)[:_NAMED]).tolist()
        twice += (start + np.flatnonzero(count > 1)[:_NAMED]).tolist()
    largest = collective.allreduce(np.array([ids.max(initial=0)]), collective.Op.MAX)[0]
    also = f"{total - n_inside} ids are not in 0..{n_rows - 1} ({largest})" if n_inside < total else ""
    raise ValueError(ids_message(n_rows, total, missing[:_NAMED], twice[:_NAMED], also))


def ids_message(n_rows: int, total: int, missing: list[int], twice: list[int], also: str = "") -> str:
    """Say what is wrong with the ids of the rows."""
    faults = [f"{fault}: {ids}" for fault, ids in (("missing", missing), ("more than once", twice)) if ids]
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


Array = NDArray[Any]


@dataclass(frozen=True)
class Rows:
    """What belongs to each row, as arrays that were made together, block by block.

    Attributes
    ----------
    starts : ndarray of int64
        The first id of each block; block b holds the ids from there to the start of the next.
    names : tuple of str
        What the arrays are.
    folder : Path or None
        On a file system that all workers see: ``name/b.npy`` has an array of block b. None where the blocks are in the
        memory of the workers.
    published : str
        There, the published dataset of blocks, tuples of arrays.
    holders : tuple of tuples of str
        The workers that got each block.
    """

    starts: Ids
    names: tuple[str, ...]
    folder: Path | None = None
    published: str = ""
    holders: tuple[tuple[str, ...], ...] = ()

    def take(self, ids: Ids) -> list[Array]:
        """Return the values of some rows, in the order of the ids; blocks are fetched one at a time, on a worker."""
        of_block, fetch = np.searchsorted(self.starts, ids, side="right") - 1, self._fetch()
        taken: list[Array] = []
        # An empty partition needs the shape of a row all the same.
        for number in np.unique(of_block).tolist() or [0]:
            block = fetch(number)
            taken = taken or [np.empty((ids.size, *values.shape[1:]), dtype=values.dtype) for values in block]
            here = np.flatnonzero(of_block == number)
            for made, values in zip(taken, block, strict=True):
                made[here] = values[ids[here] - self.starts[number]]
        return taken

    def _fetch(self) -> Callable[[int], Sequence[Array]]:
        """Return a function that reads a block, or gets it from a worker that has it."""
        if self.folder is not None:
            paths = [self.folder / name for name in self.names]
            return lambda number: [np.load(path / f"{number}.npy", mmap_mode="r") for path in paths]
        client = distributed.get_client()
        blocks = client.get_dataset(self.published)
        return lambda number: client.gather(blocks[number], direct=True)


def finish(made: Sequence[distributed.Future]) -> None:
    """Wait until all is made, and raise what went wrong: who takes a failed future later hears of it in other words."""
    distributed.wait(list(made))
    for one in made:
        if one.status == "error":
            one.result()


def keep_rows(
    client: distributed.Client,
    blocks: Sequence[distributed.Future],
    lengths: Sequence[int],
    names: tuple[str, ...],
    folder: Path | None,
) -> Rows:
    """Keep blocks of rows where training finds them.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    blocks : sequence of Future
        Tuples of arrays, one for each name, with as many rows as `lengths` says.
    lengths : sequence of int
        Rows of each block.
    names : tuple of str
        What the arrays are.
    folder : Path or None
        A folder that all workers and the client see; None leaves the blocks in the workers' memory.
    """
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    if folder is None:
        # A published dataset outlives the client's own references, and its name is all that the workers need.
        finish(blocks)
        published = f"grbb_ext-{uuid.uuid4().hex}"
        client.publish_dataset(list(blocks), name=published)
        holders = tuple(tuple(workers) for workers in client.who_has(list(blocks)).values())
        return Rows(starts, names, None, published, holders)
    for name in names:
        (folder / name).mkdir(parents=True, exist_ok=True)
    client.gather(client.map(_write, blocks, range(len(blocks)), folders=[folder / name for name in names], pure=False))
    return Rows(starts, names, folder)


def release_rows(client: distributed.Client, kept: Rows | None) -> None:
    """Let go of the workers' memory."""
    if kept is not None and kept.folder is None:
        client.unpublish_dataset(kept.published)


def _write(block: tuple[Array, ...], number: int, folders: list[Path]) -> None:
    for values, folder in zip(block, folders, strict=True):
        np.save(folder / f"{number}.npy", values)
