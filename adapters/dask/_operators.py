"""The operator, made on a graph that the client holds or through anchors: its rows are made by the workers."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import dask
import dask.array as da
import distributed
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext.adapters.dask._labels import Known
from grbb_ext.adapters.dask._parts import Parts, dense
from grbb_ext.adapters.dask._rows import Ids, Rows, keep_rows
from grbb_ext.graph import laplacian
from grbb_ext.labels import Labels, mixed_weight
from grbb_ext.objective import Settings, UnreachableRowsWarning
from grbb_ext.propagation import AnchorPropagation, Propagation, anchor_matrix, make_propagation
from grbb_ext.teacher import centered_labels, finish_targets, soft_targets

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


# Rows of the sample for each anchor: beyond that k-means centres hardly move.
_ROWS_PER_ANCHOR = 20
_SEED = 0


def tell_by_anchors(
    parts: Parts,
    known: Known,
    settings: Settings,
    folder: Path | None,
    *,
    n_anchors: int,
    n_neighbors: int,
    scale: Any,
) -> Told:
    """Make anchors from a sample, and let the workers find those of their rows.

    For ``"targets"`` the labels are propagated to the anchors, and each worker makes the targets of its rows from
    these. For ``"paper"`` and ``"corrected"`` each row keeps its anchors and their shares, 8 bytes each; the product
    with P_A is done anew on all workers in each round.
    """
    client = parts.client
    if isinstance(settings.propagation, Propagation):
        raise ValueError("graph='anchors' makes an operator of its own: pass propagation by name, or graph=W.")
    assert known.X is not None
    anchors = AnchorPropagation(
        _sample(parts, n_anchors * _ROWS_PER_ANCHOR),
        known.X,
        kind=settings.propagation,
        n_anchors=n_anchors,
        n_neighbors=n_neighbors,
        scale=scale,
        random_state=_SEED,
        **settings.solver_settings,
    )
    everywhere = client.scatter(anchors, broadcast=True)
    blocks = client.map(_nearest, parts.pieces, anchors=everywhere, pure=False)
    n_unreachable = sum(client.gather(client.map(_n_unreachable, blocks, pure=False)))
    if n_unreachable:
        warn_unreachable(n_unreachable, parts.n_rows)
    P_A, names = None, ("index", "share")
    if settings.rule == "targets":
        values, mean = centered_labels(known.labels.targets, known.labels.loss)
        told = _ToldToAnchors(
            anchors.extend_to_anchors(values), mean, known.rows.ids, known.labels, known.of_class, settings
        )
        spread = client.scatter(told, broadcast=True)
        blocks = client.map(_targets, blocks, parts.starts, told=spread, pure=False)
        names = ("targets", "weight")
    else:
        P_A = anchors.P_A
    rows = keep_rows(client, blocks, parts.lengths, names, folder)
    return Told(rows, P_A, np.empty(0, dtype=np.int64), None, n_unreachable)


@dataclass(frozen=True)  # scattering a tuple would scatter its entries
class _ToldToAnchors:
    """What turns the anchors of a row into its target."""

    extended: NDArray[np.float64]
    mean: Any
    labeled: Ids
    labels: Labels
    of_class: NDArray[np.float64] | None
    settings: Settings


def _sample(parts: Parts, size: int) -> NDArray[Any]:
    """Return about `size` rows, from each partition in proportion to its length."""
    share = min(1.0, size / parts.n_rows)
    sizes = [round(share * n) for n in parts.lengths]
    if sum(sizes) == 0:
        sizes = parts.lengths
    seeds = list(range(_SEED, _SEED + len(sizes)))
    drawn = parts.client.gather(parts.client.map(_draw, parts.pieces, sizes, seeds, pure=False))
    return np.asarray(np.concatenate(drawn))


def _draw(piece: Any, size: int, seed: int) -> NDArray[Any]:
    rows = np.sort(np.random.default_rng(seed).choice(piece.shape[0], size, replace=False))
    return np.asarray(dense(piece.iloc[rows] if hasattr(piece, "iloc") else piece[rows]))


def _nearest(piece: Any, anchors: AnchorPropagation) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    index, share = anchors.nearest(dense(piece))
    return index, share


def _n_unreachable(block: tuple[NDArray[np.int32], NDArray[np.float32]]) -> int:
    return int((~block[1].any(axis=1)).sum())


def _targets(
    block: tuple[NDArray[np.int32], NDArray[np.float32]], start: int, told: _ToldToAnchors
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return target and weight of the rows of a partition, the ids of which begin at `start`."""
    index, share = block
    settings, labels = told.settings, told.labels
    Z = anchor_matrix(index, share, told.extended.shape[0])
    extended = np.asarray(Z @ told.extended)
    q = finish_targets(extended, told.mean, labels.loss, sharpen=settings.sharpen, hard=settings.hard)
    here = np.flatnonzero((told.labeled >= start) & (told.labeled < start + index.shape[0]))
    q[told.labeled[here] - start] = labels.targets[here]
    weight = np.ones(index.shape[0]) if told.of_class is None else mixed_weight(q, told.of_class)
    weight[~share.any(axis=1)] = 0.0
    return q.astype(np.float32), weight.astype(np.float32)
