"""Values that belong to rows, on the workers or in a shared file, from which each worker takes those of its ids."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import distributed
import numpy as np
from numpy.typing import NDArray

from grbb_ext.adapters._dask_ids import Ids

Array = NDArray[Any]


class Rows(Protocol):
    """Values of all rows, somewhere."""

    def take(self, ids: Ids) -> Array:
        """Return the values of some rows, in the order of the ids. Called on a worker."""


@dataclass(frozen=True)
class ResidentRows:
    """Blocks of rows in the memory of the workers.

    Attributes
    ----------
    starts : ndarray of int64
        The first id of each block; block b holds the ids from there to the start of the next.
    name : str
        The published dataset of blocks, tuples of arrays that were made together.
    part : int
        Which array of a tuple.
    """

    starts: Ids
    name: str
    part: int

    def take(self, ids: Ids) -> Array:
        """Fetch the blocks that hold the ids, one at a time, from the workers that have them."""
        client = distributed.get_client()
        blocks = client.get_dataset(self.name)
        of_block = np.searchsorted(self.starts, ids, side="right") - 1
        taken: Array | None = None
        # An empty partition needs the shape of a row all the same.
        for number in np.unique(of_block).tolist() or [0]:
            values = client.gather(blocks[number], direct=True)[self.part]
            if taken is None:
                taken = np.empty((ids.size, *values.shape[1:]), dtype=values.dtype)
            here = np.flatnonzero(of_block == number)
            taken[here] = values[ids[here] - self.starts[number]]
        assert taken is not None
        return taken


@dataclass(frozen=True)
class FileRows:
    """A ``.npy`` file on a file system that all workers see, row i of which belongs to id i."""

    path: str

    def take(self, ids: Ids) -> Array:
        """Read the rows of the ids, in the order of the file."""
        stored = np.load(self.path, mmap_mode="r")
        order = np.argsort(ids, kind="stable")
        taken = np.empty((ids.size, *stored.shape[1:]), dtype=stored.dtype)
        taken[order] = stored[ids[order]]
        return taken


def keep_rows(
    client: distributed.Client,
    blocks: Sequence[distributed.Future],
    lengths: Sequence[int],
    names: Sequence[str],
    folder: Path | None,
) -> dict[str, Rows]:
    """Keep blocks of rows where training finds them.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    blocks : sequence of Future
        Tuples of arrays, one for each name, with as many rows as `lengths` says.
    lengths : sequence of int
        Rows of each block.
    names : sequence of str
        What the arrays are.
    folder : Path or None
        A folder that all workers and the client see; None leaves the blocks in the workers' memory.

    Returns
    -------
    dict of str to Rows
        By name.
    """
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    if folder is None:
        # A published dataset outlives the client's own references, and its name is all that the workers need.
        published = f"grbb_ext-{uuid.uuid4().hex}"
        client.publish_dataset(list(blocks), name=published)
        return {name: ResidentRows(starts[:-1], published, part) for part, name in enumerate(names)}
    folder.mkdir(parents=True, exist_ok=True)
    kept: dict[str, Rows] = {}
    for part, name in enumerate(names):
        path = str(folder / f"{name}.npy")
        shape, dtype = client.submit(_row_shape, blocks[0], part).result()
        np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=(int(starts[-1]), *shape)).flush()
        # Each block is a run of the file of its own, so that the workers write side by side.
        done = [
            client.submit(_write, block, part, path, int(start), pure=False)
            for block, start in zip(blocks, starts[:-1], strict=True)
        ]
        client.gather(done)
        kept[name] = FileRows(path)
    return kept


def release_rows(client: distributed.Client, kept: Iterable[Rows]) -> None:
    """Let go of the workers' memory."""
    for name in {rows.name for rows in kept if isinstance(rows, ResidentRows)}:
        client.unpublish_dataset(name)


def _row_shape(block: tuple[Array, ...], part: int) -> tuple[tuple[int, ...], np.dtype[Any]]:
    return block[part].shape[1:], block[part].dtype


def _write(block: tuple[Array, ...], part: int, path: str, start: int) -> None:
    values = block[part]
    if values.shape[0]:
        stored = np.load(path, mmap_mode="r+")
        stored[start : start + values.shape[0]] = values
        stored.flush()
