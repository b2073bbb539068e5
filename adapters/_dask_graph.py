"""The operator on a graph that the client holds: its rows are made by the workers, and never in one place."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import dask
import dask.array as da
import distributed
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext.adapters._dask_ids import Ids
from grbb_ext.adapters._dask_labels import Known
from grbb_ext.adapters._dask_rows import Rows, keep_rows
from grbb_ext.graph import laplacian
from grbb_ext.objective import UnreachableRowsWarning
from grbb_ext.objective._settings import Settings
from grbb_ext.propagation import Propagation, make_propagation
from grbb_ext.row_weights import mixed_weight
from grbb_ext.rules import soft_targets

_COLUMNS_PER_TASK = 16
_BYTES_PER_BLOCK = 2**26


class Told(NamedTuple):
    """What the workers are told about their rows; see :class:`WorkerObjective`."""

    rows: Mapping[str, Rows]
    P_A: NDArray[np.float32] | None
    unreachable: Ids
    L_l: sp.csr_array | None
    n_unreachable: int


def tell_by_graph(
    client: distributed.Client, W: sp.csr_array, known: Known, settings: Settings, folder: Path | None
) -> Told:
    """Make the operator on a graph, and hand its rows to the workers.

    For ``"targets"`` the client propagates the labels, a few right-hand sides, and sends each row its target. For
    ``"paper"`` and ``"corrected"`` every worker gets the graph and solves for some columns of P; dask then cuts the
    columns into rows. The client holds the graph, never P.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    W : csr_array of shape (N, N)
        The affinity.
    known : Known
        The labelled rows.
    settings : Settings
        Of the objective.
    folder : Path or None
        Where the rows are kept; None is the workers' memory.
    """
    labeled = known.rows.ids.astype(np.intp)
    L_l = sp.csr_array(laplacian(W)[labeled]) if settings.lam > 0 else None
    if settings.rule == "labeled":
        return Told({}, None, np.empty(0, dtype=np.int64), L_l, 0)
    operator = _operator(W, labeled, settings)
    unreachable = np.flatnonzero(~operator.reachable).astype(np.int64)
    if unreachable.size:
        warn_unreachable(unreachable.size, operator.n_rows)
    if settings.rule == "targets":
        blocks, lengths = _target_blocks(client, operator, known, settings)
        rows = keep_rows(client, blocks, lengths, ("targets", "weight"), folder)
    else:
        blocks, lengths = _operator_blocks(client, operator)
        rows = keep_rows(client, blocks, lengths, ("P",), folder)
    return Told(rows, None, unreachable, L_l, unreachable.size)


def warn_unreachable(n_unreachable: int, n_rows: int) -> None:
    """Warn about rows that no label reaches."""
    warnings.warn(
        f"{n_unreachable} of {n_rows} rows lie in a component of the graph without a label and get gradient 0. Raise "
        "n_neighbors, or label a row of each component.",
        UnreachableRowsWarning,
        stacklevel=5,
    )


def _operator(W: sp.csr_array, labeled: NDArray[np.intp], settings: Settings) -> Propagation:
    kind = settings.propagation
    if isinstance(kind, Propagation):
        same = kind.n_rows == W.shape[0] and np.array_equal(kind.labeled, labeled)
        return kind if same else kind.on(W, labeled)
    return make_propagation(kind, W, labeled, **settings.solver_settings)


def _target_blocks(
    client: distributed.Client, operator: Propagation, known: Known, settings: Settings
) -> tuple[list[distributed.Future], list[int]]:
    labels = known.labels
    q = soft_targets(operator, labels.targets, labels.loss, sharpen=settings.sharpen, hard=settings.hard)
    weight = np.ones(operator.n_rows) if known.of_class is None else mixed_weight(q, known.of_class)
    weight[~operator.reachable] = 0.0
    spans = _spans(client, operator.n_rows, 4 * (1 + q[0].size))
    targets, weight = q.astype(np.float32), weight.astype(np.float32)
    blocks = client.scatter([(targets[start:stop], weight[start:stop]) for start, stop in spans])
    return list(blocks), [stop - start for start, stop in spans]


def _operator_blocks(client: distributed.Client, operator: Propagation) -> tuple[list[distributed.Future], list[int]]:
    n, n_rows = operator.labeled.size, operator.n_rows
    everywhere = client.scatter(operator, broadcast=True)
    columns = [
        da.from_delayed(
            dask.delayed(client.submit(_columns, everywhere, start, min(start + _COLUMNS_PER_TASK, n), pure=False)),
            (n_rows, min(_COLUMNS_PER_TASK, n - start)),
            np.float32,
        )
        for start in range(0, n, _COLUMNS_PER_TASK)
    ]
    lengths = [stop - start for start, stop in _spans(client, n_rows, 4 * n)]
    P = client.persist(da.concatenate(columns, axis=1).rechunk((tuple(lengths), (n,))))
    distributed.wait(P)
    return list(client.map(_alone, client.futures_of(P), pure=False)), lengths


def _columns(operator: Propagation, start: int, stop: int) -> NDArray[np.float32]:
    """Return some columns of P_bar, as :meth:`Propagation.dense` has them."""
    P = operator.extend(np.eye(operator.labeled.size)[:, start:stop]).astype(np.float32)
    return np.maximum(P, 0.0) if operator.stochastic else P


def _alone(block: NDArray[np.float32]) -> tuple[NDArray[np.float32]]:
    return (np.ascontiguousarray(block),)


def _spans(client: distributed.Client, n_rows: int, bytes_per_row: int) -> list[tuple[int, int]]:
    """Cut rows into blocks of at most 64 MB, at least two for each worker."""
    n_workers = max(1, len(client.nthreads()))
    height = max(1, min(_BYTES_PER_BLOCK // bytes_per_row, -(-n_rows // (2 * n_workers))))
    return [(start, min(start + height, n_rows)) for start in range(0, n_rows, height)]
