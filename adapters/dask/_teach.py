"""The teacher on many machines: fitted on the client to labels and a sample, it teaches each partition in place."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext._progress import timed
from grbb_ext.adapters.dask._labels import collect_labels
from grbb_ext.adapters.dask._model import Prepared, Problem
from grbb_ext.adapters.dask._objective import WorkerObjective
from grbb_ext.adapters.dask._parts import Parts, rows_of, stacked
from grbb_ext.adapters.dask._rows import check_ids, finish, keep_rows
from grbb_ext.graph import KNNGraph, TableGraph, laplacian
from grbb_ext.labels import Labels, class_weights, mixed_weight
from grbb_ext.objective import GRBBObjective, grbb_objective
from grbb_ext.rules import Targets
from grbb_ext.teacher import Teacher, sharpened, shifted

Float32 = NDArray[np.float32]
Index = NDArray[np.intp]


def teach(problem: Problem, seconds: dict[str, float]) -> Prepared:
    """Fit the teacher as :func:`grbb_ext.grbb_objective` does, and let it teach every partition.

    For two classes and for regression the targets are the labels of the DMatrix, and XGBoost's own loss does the rest.
    Its softmax takes no soft labels; there, and where `custom` asks for it, gradients come from a WorkerObjective.

    Parameters
    ----------
    problem : Problem
        What training is asked.
    seconds : dict
        Gets the time until the teacher was fitted, and until it had taught.
    """
    parts, recipe, rule, L_l = problem.parts, problem.recipe, problem.recipe.rule, None
    assert isinstance(rule, Targets)
    with timed(seconds, "teacher"):
        labels, weight_l, _ = collect_labels(problem)
        if isinstance(recipe.teacher, Teacher):
            teacher, obj = recipe.teacher, None
            teacher.check_labels(labels)
            rows, order = _split(labels.labeled, parts.lengths), np.arange(0)
            q, reached = labels.targets.astype(np.float32), np.ones(labels.labeled.size, dtype=bool)
        else:
            obj, rows, order = _fitted(problem, labels)
            assert obj.teacher_ is not None
            assert obj.targets_ is not None
            teacher, q = obj.teacher_, obj.targets_[order]
            reached = ~np.isin(order, obj.unreachable_)
        if rule.lam > 0:
            if obj is None or obj.n_rows_ < parts.n_rows:
                raise ValueError(
                    "lam > 0 needs the graph of all rows, and a teacher has that of a sample. Use lam=0, or "
                    "rule='corrected'."
                )
            L_l = sp.csr_array(laplacian(obj.graph_)[order[labels.labeled]][:, order])
    with timed(seconds, "targets"):
        cuts = np.cumsum([*map(len, rows)])[:-1]
        # What a partition has to know of its own rows travels as an argument: should a worker die, dask still has it.
        # So does the teacher, once, from where other workers fetch it. What is scattered dies with its worker.
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph|Large object")
            sent = parts.client.submit(lambda teacher: teacher, teacher, pure=False)
        blocks = parts.map(
            _taught,
            parts.pieces,
            rows,
            np.split(q, cuts),
            np.split(reached, cuts),
            problem.weights,
            teacher=sent,
            hard=rule.hard and labels.classes is not None,
            of_class=class_weights(recipe.class_weight, labels),
        )
        finish(blocks)
    data, objective = {"data": parts.X}, None
    if problem.custom or labels.n_outputs > 1 or rule.lam > 0 or not rule.newton:
        kept = keep_rows(parts.client, blocks, parts.lengths, ("targets", "weight"), problem.folder)
        objective = WorkerObjective(parts.n_rows, labels, weight_l, rule, kept, L_l=L_l)
        data |= parts.id_fields(problem.ids)
    else:
        weighted = problem.sample_weight is not None or recipe.class_weight is not None or not reached.all()
        data |= parts.fields(blocks, "label", *(["weight"] if weighted else []))
    info = {"n_unreachable": int((~reached).sum()), "n_sample": reached.size}
    return Prepared(parts, labels, objective, data, info, teacher)


def _fitted(problem: Problem, labels: Labels) -> tuple[GRBBObjective, list[Index], Index]:
    """Return the objective of the rows on the client, their positions in each partition, and their order there."""
    parts, recipe = problem.parts, problem.recipe
    if isinstance(recipe.graph, KNNGraph):
        limit = recipe.graph.max_nodes if isinstance(recipe.graph, TableGraph) else TableGraph().max_nodes
        # As many as one machine takes for the nodes of its graph.
        n_free = None if limit is None else max(limit - labels.labeled.size, limit // 2)
        rows, X = draw_rows(parts, _split(labels.labeled, parts.lengths), n_free, recipe.random_state)
        order = np.arange(sum(map(len, rows)))
    else:
        rows, X, order = [np.arange(n) for n in parts.lengths], None, _order(parts, problem.row_ids)
    # Labels as those of a table of the sampled rows, in the order of the graph where there is one.
    sampled = np.concatenate([some + start for some, start in zip(rows, parts.starts, strict=True)])
    at = order[np.searchsorted(sampled, labels.labeled)]
    ascending = np.argsort(at)
    y = np.full(sampled.size, np.nan) if labels.classes is None else np.full(sampled.size, None, dtype=object)
    y[at] = labels.y
    among = replace(labels, labeled=at[ascending], targets=labels.targets[ascending], y=y)
    # Classes are weighed on the workers, where all rows are.
    return grbb_objective(X, among, **{"verbose": False, **problem.asked, "class_weight": None}), rows, order


def _split(positions: NDArray[np.int64], lengths: Sequence[int]) -> list[Index]:
    """Return ascending positions in all partitions as positions in each.

    Examples
    --------
    >>> [some.tolist() for some in _split(np.array([0, 3, 4]), [2, 3])]
    [[0], [1, 2]]
    """
    starts = np.cumsum([0, *lengths])[:-1]
    cut = np.split(positions, np.searchsorted(positions, starts[1:]))
    return [some - start for some, start in zip(cut, starts, strict=True)]


def draw_rows(parts: Parts, labeled: Sequence[Index], size: int | None, seed: int) -> tuple[list[Index], Any]:
    """Bring rows to the client: the labelled ones, and others at random.

    Parameters
    ----------
    parts : Parts
        The partitions of X.
    labeled : sequence of ndarray
        Positions of the labelled rows in each partition.
    size : int or None
        How many others; None is all of them.
    seed : int
        Of the draw.

    Returns
    -------
    rows : list of ndarray
        Their positions in each partition.
    X : ndarray, csr_array or DataFrame
        The rows themselves.
    """
    n_free = [n - some.size for n, some in zip(parts.lengths, labeled, strict=True)]
    total = sum(n_free)
    # Nothing here is as large as the number of rows, unless all of them are drawn.
    everything = size is None or size >= total
    ranks = np.arange(total) if everything else np.sort(np.random.default_rng(seed).choice(total, size, replace=False))
    drawn = parts.collect(_draw, parts.pieces, labeled, _split(ranks, n_free))
    return [rows for rows, _ in drawn], stacked([some for rows, some in drawn if rows.size])


def _draw(piece: Any, labeled: Index, chosen: Index) -> tuple[Index, Any]:
    """Return positions and rows of a partition: the labelled ones, and unlabelled ones by their rank."""
    free = np.delete(np.arange(piece.shape[0]), labeled)
    rows = np.sort(np.concatenate([labeled, free[chosen]]).astype(np.intp))
    return rows, rows_of(piece, rows)


def _order(parts: Parts, row_ids: Any) -> Index:
    """Return the row of the affinity that each row of X is."""
    if row_ids is None:
        return np.arange(parts.n_rows)
    ids = np.concatenate(parts.client.gather(parts.ids(row_ids)))
    check_ids(ids, parts.n_rows)
    return np.asarray(ids, dtype=np.intp)


def _taught(
    piece: Any,
    rows: Index,
    q_of_rows: Float32,
    reached: NDArray[np.bool_],
    weight: NDArray[np.float64] | None,
    teacher: Teacher,
    hard: bool,
    of_class: NDArray[np.float64] | None,
) -> tuple[Float32, Float32]:
    """Return targets and weights of a partition. Those of rows that the client had are known."""
    n_rows = piece.shape[0]
    q = np.empty((n_rows, *q_of_rows.shape[1:]), dtype=np.float32)
    others = np.delete(np.arange(n_rows), rows)
    if others.size:
        predicted = teacher.predict(rows_of(piece, others), n_jobs=1)
        q[others] = sharpened(predicted, 1.0, hard=True) if hard else predicted
    q[rows] = q_of_rows
    of_row = np.ones(n_rows) if weight is None else weight
    if of_class is not None:  # as on one machine
        of_row, q = of_row * mixed_weight(q, of_class), shifted(q, of_class).astype(np.float32)
    of_row = np.array(of_row, dtype=np.float64)
    of_row[rows[~reached]] = 0.0
    return q, of_row.astype(np.float32)
