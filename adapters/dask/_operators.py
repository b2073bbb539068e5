"""The operator, made on a graph that the client holds or through anchors: its rows are made by the workers."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import dask
import dask.array as da
import distributed
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext.adapters.dask._labels import Known
from grbb_ext.adapters.dask._parts import Parts, part_table
from grbb_ext.adapters.dask._rows import Ids, Rows, keep_rows
from grbb_ext.graph import KNNGraph, laplacian
from grbb_ext.labels import Labels, mixed_weight
from grbb_ext.objective import Recipe, UnreachableRowsWarning
from grbb_ext.propagation import AnchorNodes, Propagation, node_matrix
from grbb_ext.rules import Targets
from grbb_ext.table import Schema, Table, stack_tables
from grbb_ext.teacher import Committee, centered_labels, finish_targets, sharpened

_COLUMNS_PER_TASK = 16
_BYTES_PER_BLOCK = 2**26
# Rows of the sample for each anchor: beyond that k-means centres hardly move.
_ROWS_PER_ANCHOR = 20


class Spread(NamedTuple):
    """What the workers get for their rows; see :class:`WorkerObjective`."""

    rows: Mapping[str, Rows]
    P_nodes: NDArray[np.float32] | None
    unreachable: Ids
    L_l: sp.csr_array | None
    n_unreachable: int


NOTHING = Spread({}, None, np.empty(0, dtype=np.int64), None, 0)


@dataclass(frozen=True)  # scattering a tuple would scatter its entries
class TargetMaker:
    """Turns extended labels of some rows into their targets and weights, as on one machine.

    Attributes
    ----------
    mean : ndarray
        What the labels were centred by.
    labels : Labels
        The labels.
    ids : ndarray of int64
        Ids of the labelled rows.
    of_class : ndarray of shape (K,) or None
        Weights of the classes.
    sharpen : float
        Power by which probabilities are sharpened.
    hard : bool
        Whether they are rounded.
    extended : ndarray or None
        Values on the nodes, where rows hang on nodes.
    """

    mean: Any
    labels: Labels
    ids: Ids
    of_class: NDArray[np.float64] | None
    sharpen: float
    hard: bool
    extended: NDArray[np.float64] | None = None

    def __call__(
        self, extended: NDArray[np.float64], start: int, reachable: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return targets and weights of rows the ids of which begin at `start`."""
        q = finish_targets(extended, self.mean, self.labels.loss)
        if self.labels.classes is not None:
            q = sharpened(q, 1.0, hard=True) if self.hard else sharpened(q, self.sharpen)
        here = np.flatnonzero((self.ids >= start) & (self.ids < start + q.shape[0]))
        q[self.ids[here] - start] = self.labels.targets[here]
        weight = np.ones(q.shape[0]) if self.of_class is None else mixed_weight(q, self.of_class)
        weight[~reachable] = 0.0
        return q.astype(np.float32), weight.astype(np.float32)


def _target_maker(known: Known, recipe: Recipe) -> tuple[NDArray[np.float64], TargetMaker]:
    """Return the centred labels, and what makes targets of their extension."""
    assert isinstance(recipe.rule, Targets)
    assert isinstance(recipe.teacher, Committee)
    values, mean = centered_labels(known.labels.targets, known.labels.loss)
    return values, TargetMaker(
        mean, known.labels, known.rows.ids, known.of_class, recipe.teacher.sharpen, recipe.rule.hard
    )


def spread_by_graph(
    client: distributed.Client,
    W: sp.csr_array,
    known: Known,
    recipe: Recipe,
    folder: Path | None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Spread:
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
    recipe : Recipe
        The options of the objective.
    folder : Path or None
        Where the rows are kept; None is the workers' memory.
    n_jobs, verbose
        As in :func:`grbb_ext.grbb_objective`.
    """
    labeled = known.rows.ids.astype(np.intp)
    L_l = sp.csr_array(laplacian(W)[labeled]) if recipe.rule.lam > 0 else None
    if recipe.rule.propagation is None:
        return NOTHING._replace(L_l=L_l)
    operator = recipe.propagation.operator(W, labeled, n_jobs=n_jobs, verbose=verbose)
    unreachable = np.flatnonzero(~operator.reachable).astype(np.int64)
    warn_unreachable(unreachable.size, operator.n_rows)
    if isinstance(recipe.rule, Targets):
        blocks, lengths = _target_blocks(client, operator, known, recipe)
        rows = keep_rows(client, blocks, lengths, ("targets", "weight"), folder)
    else:
        blocks, lengths = _operator_blocks(client, operator)
        rows = keep_rows(client, blocks, lengths, ("P",), folder)
    return Spread(rows, None, unreachable, L_l, unreachable.size)


def warn_unreachable(n_unreachable: int, n_rows: int) -> None:
    """Warn about rows that no label reaches."""
    if n_unreachable:
        warnings.warn(
            f"{n_unreachable} of {n_rows} rows lie in a component of the graph without a label and get gradient 0. "
            "Raise n_neighbors, or label a row of each component.",
            UnreachableRowsWarning,
            stacklevel=5,
        )


def _target_blocks(
    client: distributed.Client, operator: Propagation, known: Known, recipe: Recipe
) -> tuple[list[distributed.Future], list[int]]:
    values, make = _target_maker(known, recipe)
    targets, weight = make(operator.extend(values), 0, operator.reachable)
    spans = _spans(client, operator.n_rows, 4 * (1 + targets[0].size))
    blocks = client.scatter([(targets[start:stop], weight[start:stop]) for start, stop in spans])
    return list(blocks), [stop - start for start, stop in spans]


def _operator_blocks(client: distributed.Client, operator: Propagation) -> tuple[list[distributed.Future], list[int]]:
    n, n_rows = operator.labeled.size, operator.n_rows
    everywhere = client.scatter(operator)
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


def spread_by_anchors(
    parts: Parts,
    known: Known,
    recipe: Recipe,
    folder: Path | None,
    *,
    n_anchors: int,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Spread:
    """Make anchors from a sample, and let the workers find those of their rows.

    For ``"targets"`` the labels are propagated to the anchors, and each worker makes the targets of its rows from
    these. For ``"paper"`` and ``"corrected"`` each row keeps its anchors and their shares, 8 bytes each; the product
    with the operator on the anchors is done anew on all workers in each round.
    """
    client = parts.client
    assert known.X is not None
    assert isinstance(recipe.graph, KNNGraph)
    anchors = AnchorNodes(
        _sample(parts, n_anchors * _ROWS_PER_ANCHOR, recipe.random_state),
        known.X,
        recipe.propagation,
        n_anchors=n_anchors,
        n_neighbors=recipe.graph.n_neighbors,
        scale=recipe.graph.scale,
        random_state=recipe.random_state,
        n_jobs=n_jobs,
        verbose=verbose,
    )
    everywhere = client.scatter(anchors)
    blocks = client.map(_nearest, parts.pieces, schema=parts.schema, anchors=everywhere, pure=False)
    n_unreachable = sum(client.gather(client.map(_n_unreachable, blocks, pure=False)))
    warn_unreachable(n_unreachable, parts.n_rows)
    P_nodes, names = None, ("index", "share")
    if isinstance(recipe.rule, Targets):
        values, make = _target_maker(known, recipe)
        make = replace(make, extended=anchors.operator.extend(values))
        blocks = client.map(_targets, blocks, parts.starts, make=client.scatter(make), pure=False)
        names = ("targets", "weight")
    else:
        P_nodes = anchors.operator.dense()
    rows = keep_rows(client, blocks, parts.lengths, names, folder)
    return Spread(rows, P_nodes, np.empty(0, dtype=np.int64), None, n_unreachable)


def _sample(parts: Parts, size: int, seed: int) -> Table:
    """Return about `size` rows, from each partition in proportion to its length."""
    share = min(1.0, size / parts.n_rows)
    sizes = [round(share * n) for n in parts.lengths]
    if sum(sizes) == 0:
        sizes = parts.lengths
    seeds = list(range(seed, seed + len(sizes)))
    drawn = parts.client.map(_draw, parts.pieces, sizes, seeds, schema=parts.schema, pure=False)
    return stack_tables(parts.client.gather(drawn))


def _draw(piece: Any, size: int, seed: int, schema: Schema) -> Table:
    rows = np.sort(np.random.default_rng(seed).choice(piece.shape[0], size, replace=False))
    return part_table(piece, schema, rows)


def _nearest(piece: Any, schema: Schema, anchors: AnchorNodes) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    return anchors.nearest(part_table(piece, schema))


def _n_unreachable(block: tuple[NDArray[np.int32], NDArray[np.float32]]) -> int:
    return int((~block[1].any(axis=1)).sum())


def _targets(
    block: tuple[NDArray[np.int32], NDArray[np.float32]], start: int, make: TargetMaker
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return targets and weights of the rows of a partition, the ids of which begin at `start`."""
    index, share = block
    assert make.extended is not None
    Z = node_matrix(index, share, make.extended.shape[0])
    return make(np.asarray(Z @ make.extended), start, np.asarray(share.any(axis=1)))
