"""The operator, made on a graph that the client holds or through anchors: its rows are made by the workers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import distributed
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext._progress import row_blocks, warn_caller
from grbb_ext.adapters.dask._objective import WorkerObjective
from grbb_ext.adapters.dask._parts import Parts, part_table
from grbb_ext.adapters.dask._rows import keep_rows
from grbb_ext.adapters.dask._teach import draw_rows
from grbb_ext.graph import laplacian
from grbb_ext.objective import Recipe, UnreachableRowsWarning
from grbb_ext.propagation import AnchorNodes, Propagation
from grbb_ext.table import Schema, Table, read_table

Float32 = NDArray[np.float32]

_COLUMNS_PER_TASK = 16
_BYTES_PER_BLOCK = 2**26
# Rows of the sample for each anchor: beyond that k-means centres hardly move.
_ROWS_PER_ANCHOR = 20


def spread_by_graph(
    parts: Parts, W: sp.csr_array, objective: WorkerObjective, recipe: Recipe, folder: Path | None, **threads: Any
) -> tuple[WorkerObjective, int]:
    """Make the operator on a graph, and hand its rows to the workers.

    Every worker gets the graph and solves for some columns of P; dask then cuts the columns into rows. The client holds
    the graph, never P.

    Parameters
    ----------
    parts : Parts
        The rows.
    W : csr_array of shape (N, N)
        The affinity.
    objective : WorkerObjective
        Without anything of the graph.
    recipe : Recipe
        The options of the objective.
    folder : Path or None
        Where the rows are kept; None is the workers' memory.
    **threads
        `n_jobs` and `verbose`, as in :func:`grbb_ext.grbb_objective`.

    Returns
    -------
    objective : WorkerObjective
        With all that the workers need for their rows.
    n_unreachable : int
        Number of rows that no label reaches.
    """
    labeled = objective.labeled.ids.astype(np.intp)
    if recipe.rule.lam > 0:
        objective = replace(objective, L_l=sp.csr_array(laplacian(W)[labeled]))
    if recipe.rule.propagation is None:
        return objective, 0
    operator = recipe.propagation.operator(W, labeled, **threads)
    unreachable = np.flatnonzero(~operator.reachable).astype(np.int64)
    _warn_unreachable(unreachable.size, operator.n_rows)
    # Blocks of at most 64 MB, at least two for each worker.
    most = -(-operator.n_rows // (2 * max(1, len(parts.client.nthreads()))))
    blocks = row_blocks(operator.n_rows, max(1, min(_BYTES_PER_BLOCK // (4 * labeled.size), most)))
    heights = [block.stop - block.start for block in blocks]
    rows = keep_rows(parts.client, _operator_blocks(parts.client, operator, heights), heights, ("P",), folder)
    return replace(objective, rows=rows, unreachable=unreachable), unreachable.size


def _warn_unreachable(n_unreachable: int, n_rows: int) -> None:
    if n_unreachable:
        warn_caller(
            f"{n_unreachable} of {n_rows} rows lie in a component of the graph without a label and get gradient 0. "
            "Raise n_neighbors, or label a row of each component.",
            UnreachableRowsWarning,
        )


def _operator_blocks(client: distributed.Client, operator: Propagation, heights: list[int]) -> Any:
    """Let the workers solve for columns of P_bar, and cut these into blocks of rows."""
    n, n_rows = operator.labeled.size, operator.n_rows
    everywhere = client.scatter(operator)
    columns = [
        da.from_delayed(
            dask.delayed(client.submit(_columns, everywhere, some, pure=False)),
            (n_rows, some.stop - some.start),
            np.float32,
        )
        for some in row_blocks(n, _COLUMNS_PER_TASK)
    ]
    P = client.persist(da.concatenate(columns, axis=1).rechunk((tuple(heights), (n,))))
    distributed.wait(P)
    return client.map(lambda block: (np.ascontiguousarray(block),), client.futures_of(P), pure=False)


def _columns(operator: Propagation, some: slice) -> Float32:
    """Return some columns of P_bar, as :meth:`Propagation.dense` has them."""
    P = operator.extend(np.eye(operator.labeled.size)[:, some]).astype(np.float32)
    return np.maximum(P, 0.0) if operator.stochastic else P


def spread_by_anchors(
    parts: Parts,
    X_l: Table,
    objective: WorkerObjective,
    recipe: Recipe,
    folder: Path | None,
    *,
    n_anchors: int,
    **threads: Any,
) -> tuple[WorkerObjective, int]:
    """Make anchors from a sample, and let the workers find those of their rows.

    Each row keeps its anchors and their shares, 8 bytes each; the product with the operator on the anchors is done anew
    on all workers in each round.

    Parameters and results are those of :func:`spread_by_graph`; `X_l` are the labelled rows.
    """
    nobody = [np.empty(0, dtype=np.intp)] * len(parts.lengths)
    _, sample = draw_rows(parts, nobody, n_anchors * _ROWS_PER_ANCHOR, recipe.random_state)
    anchors = AnchorNodes(
        read_table(sample, schema=parts.schema),
        X_l,
        recipe.propagation,
        n_neighbors=recipe.graph.n_neighbors,
        scale=recipe.graph.scale,
        random_state=recipe.random_state,
        n_anchors=n_anchors,
        **threads,
    )
    everywhere = parts.client.scatter(anchors)
    blocks = parts.map(_nearest, parts.pieces, schema=parts.schema, anchors=everywhere)
    n_unreachable = parts.n_rows - sum(parts.collect(lambda block: int(block[1].any(axis=1).sum()), blocks))
    _warn_unreachable(n_unreachable, parts.n_rows)
    rows = keep_rows(parts.client, blocks, parts.lengths, ("index", "share"), folder)
    return replace(objective, rows=rows, P_nodes=anchors.operator.dense()), n_unreachable


def _nearest(piece: Any, schema: Schema, anchors: AnchorNodes) -> tuple[NDArray[np.int32], Float32]:
    return anchors.nearest(part_table(piece, schema))
