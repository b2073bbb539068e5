"""The operator, made on a graph that the client holds or through anchors: its rows are made by the workers."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any, Literal

import dask
import dask.array as da
import distributed
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext._progress import row_blocks, warn_caller
from grbb_ext.adapters.dask._labels import collect_labels
from grbb_ext.adapters.dask._model import Prepared, Problem
from grbb_ext.adapters.dask._objective import WorkerObjective
from grbb_ext.adapters.dask._parts import part_table, stacked
from grbb_ext.adapters.dask._rows import keep_rows
from grbb_ext.adapters.dask._teach import draw_rows
from grbb_ext.graph import KNNGraph, check_graph, laplacian, prepare_graph
from grbb_ext.objective import UnreachableRowsWarning
from grbb_ext.propagation import AnchorNodes, Propagation
from grbb_ext.table import Schema, Table, read_table

Float32 = NDArray[np.float32]

_LOG = logging.getLogger("grbb_ext")

# Up to here the client builds the neighbour graph of all rows: a second of brute force, or a few of faiss.
_GRAPH_UP_TO = 50_000
_COLUMNS_PER_TASK = 16
_BYTES_PER_BLOCK = 2**26
# Rows of the sample for each anchor: beyond that k-means centres hardly move.
_ROWS_PER_ANCHOR = 20


def spread(problem: Problem) -> Prepared:
    """Read labels and ids, make the operator, and hand out its rows."""
    parts, recipe = problem.parts, problem.recipe
    form = _form(problem)
    threads = {name: problem.asked[name] for name in ("n_jobs", "verbose") if name in problem.asked}
    labels, weight_l, X_l = collect_labels(problem, with_features=form == "anchors")
    objective, n_unreachable = WorkerObjective(parts.n_rows, labels, weight_l, recipe.rule), 0
    if X_l is not None:
        objective, n_unreachable = spread_by_anchors(problem, X_l, objective, **threads)
    elif form != "none":
        if form == "knn":
            table = read_table(stacked(parts.client.gather(list(parts.pieces))), schema=parts.schema)
            W = prepare_graph(recipe.graph, table, parts.n_rows, **threads).W
        else:
            W = check_graph(recipe.graph, None)
        objective, n_unreachable = spread_by_graph(problem, W, objective, **threads)
    if n_unreachable:
        warn_caller(
            f"{n_unreachable} of {parts.n_rows} rows lie in a component of the graph without a label and get gradient "
            "0. Raise n_neighbors, or label a row of each component.",
            UnreachableRowsWarning,
        )
    data = {"data": parts.X, **parts.id_fields(problem.ids)}
    if problem.sample_weight is not None:
        data |= parts.fields(parts.map(lambda weight: (weight,), problem.weights), "label")
    return Prepared(parts, labels, objective, data, {"n_unreachable": n_unreachable, "graph": form})


def _form(problem: Problem) -> Literal["given", "knn", "anchors", "none"]:
    recipe, graph = problem.recipe, problem.asked["graph"]
    if not isinstance(recipe.graph, KNNGraph):
        return "given"
    if not recipe.rule.needs_graph:
        return "none"
    if graph == "anchors" and recipe.rule.lam > 0:
        raise ValueError("lam > 0 needs the graph of all rows, which anchors do without: use graph='knn' or lam=0.")
    if graph is None:
        graph = "knn" if problem.parts.n_rows <= _GRAPH_UP_TO or recipe.rule.lam > 0 else "anchors"
        _LOG.info("graph='auto': %s for %d rows.", graph, problem.parts.n_rows)
    return "anchors" if graph == "anchors" else "knn"


def spread_by_graph(
    problem: Problem, W: sp.csr_array, objective: WorkerObjective, **threads: Any
) -> tuple[WorkerObjective, int]:
    """Make the operator on a graph, and hand its rows to the workers.

    Every worker gets the graph and solves for some columns of P; dask then cuts the columns into rows. The client holds
    the graph, never P.

    Parameters
    ----------
    problem : Problem
        What training is asked.
    W : csr_array of shape (N, N)
        The affinity.
    objective : WorkerObjective
        Without anything of the graph.
    **threads
        `n_jobs` and `verbose`, as in :func:`grbb_ext.grbb_objective`.

    Returns
    -------
    objective : WorkerObjective
        With all that the workers need for their rows.
    n_unreachable : int
        Number of rows that no label reaches.
    """
    client, recipe, labeled = problem.parts.client, problem.recipe, objective.labels.labeled
    if recipe.rule.lam > 0:
        objective = replace(objective, L_l=sp.csr_array(laplacian(W)[labeled]))
    if recipe.rule.propagation is None:
        return objective, 0
    operator = recipe.propagation.operator(W, labeled, **threads)
    unreachable = np.flatnonzero(~operator.reachable)
    # Blocks of at most 64 MB, at least two for each worker.
    most = -(-operator.n_rows // (2 * max(1, len(client.nthreads()))))
    blocks = row_blocks(operator.n_rows, max(1, min(_BYTES_PER_BLOCK // (4 * labeled.size), most)))
    heights = [block.stop - block.start for block in blocks]
    rows = keep_rows(client, _operator_blocks(client, operator, heights), heights, ("P",), problem.folder)
    return replace(objective, rows=rows, unreachable=unreachable), unreachable.size


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
    problem: Problem, X_l: Table, objective: WorkerObjective, **threads: Any
) -> tuple[WorkerObjective, int]:
    """Make anchors from a sample, and let the workers find those of their rows.

    Each row keeps its anchors and their shares, 8 bytes each; the product with the operator on the anchors is done anew
    on all workers in each round.

    Parameters and results are those of :func:`spread_by_graph`; `X_l` are the labelled rows.
    """
    parts, recipe = problem.parts, problem.recipe
    nobody = [np.empty(0, dtype=np.intp)] * len(parts.lengths)
    _, sample = draw_rows(parts, nobody, problem.n_anchors * _ROWS_PER_ANCHOR, recipe.random_state)
    anchors = AnchorNodes(
        read_table(sample, schema=parts.schema),
        X_l,
        recipe.propagation,
        n_neighbors=recipe.graph.n_neighbors,
        scale=recipe.graph.scale,
        random_state=recipe.random_state,
        n_anchors=problem.n_anchors,
        **threads,
    )
    everywhere = parts.client.scatter(anchors)
    blocks = parts.map(_nearest, parts.pieces, schema=parts.schema, anchors=everywhere)
    n_unreachable = parts.n_rows - sum(parts.collect(lambda block: int(block[1].any(axis=1).sum()), blocks))
    rows = keep_rows(parts.client, blocks, parts.lengths, ("index", "share"), problem.folder)
    return replace(objective, rows=rows, P_nodes=anchors.operator.dense()), n_unreachable


def _nearest(piece: Any, schema: Schema, anchors: AnchorNodes) -> tuple[NDArray[np.int32], Float32]:
    return anchors.nearest(part_table(piece, schema))
