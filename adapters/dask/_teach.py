"""The teacher on many machines: fitted on the client to labels and a sample, it teaches each partition in place."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext.adapters.dask._labels import collect_labels
from grbb_ext.adapters.dask._objective import LabeledRows
from grbb_ext.adapters.dask._parts import Parts, Pieces, rows_of, stacked
from grbb_ext.adapters.dask._rows import finish, ids_message
from grbb_ext.graph import KNNGraph, TableGraph, laplacian
from grbb_ext.labels import Labels, class_weights, mixed_weight
from grbb_ext.objective import GRBBObjective, Recipe, grbb_objective
from grbb_ext.rules import Targets
from grbb_ext.teacher import Teacher, sharpened, shifted

Float32 = NDArray[np.float32]
Index = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Taught:
    """Targets of all rows, on the workers.

    Attributes
    ----------
    labels : Labels
        Of the labelled rows.
    labeled : LabeledRows
        Positions, targets and weights of the labelled rows.
    blocks : sequence of Future
        Targets and weights of the rows of each partition.
    weighted : bool
        Whether any weight is not 1.
    teacher : Teacher
        What was sent to the workers.
    n_sample, n_unreachable : int
        Rows that came to the client, and those among them that no label reaches.
    L_l : csr_array of shape (n, N) or None
        The labelled rows of the Laplacian, where `lam` is not 0.
    seconds : dict
        Time until the teacher was fitted, and until it had taught.
    """

    labels: Labels
    labeled: LabeledRows
    blocks: Pieces
    weighted: bool
    teacher: Teacher
    n_sample: int
    n_unreachable: int
    L_l: sp.csr_array | None
    seconds: dict[str, float]


def teach(
    parts: Parts,
    y: Any,
    recipe: Recipe,
    settings: Mapping[str, Any],
    *,
    row_ids: Any = None,
    sample_weight: Any = None,
    **of_labels: Any,
) -> Taught:
    """Fit the teacher as :func:`grbb_ext.grbb_objective` does, and let it teach every partition.

    Parameters
    ----------
    parts : Parts
        The partitions of X.
    y, sample_weight
        Labels and weights of the rows, as :meth:`Parts.align` takes them.
    recipe : Recipe
        The options of the objective, read.
    settings : mapping
        The same as they were given.
    row_ids
        Which row of an affinity each row of X is.
    **of_labels
        `loss`, `classes` and `unlabeled`.
    """
    assert isinstance(recipe.rule, Targets)
    clock = [time.perf_counter()]
    weights = parts.weights(sample_weight)
    labels, labeled, _ = collect_labels(parts, y, parts.ids(None), weights, recipe.class_weight, **of_labels)
    obj, order, rows = None, np.arange(0), _split(labeled.ids, parts.lengths)
    q, reached = labels.targets.astype(np.float32), np.ones(labeled.ids.size, dtype=bool)
    if isinstance(recipe.teacher, Teacher):
        teacher = recipe.teacher
        teacher.check_labels(labels)
    else:
        if isinstance(recipe.graph, KNNGraph):
            limit = recipe.graph.max_nodes if isinstance(recipe.graph, TableGraph) else TableGraph().max_nodes
            # As many as one machine takes for the nodes of its graph.
            n_free = None if limit is None else max(limit - labeled.ids.size, limit // 2)
            rows, X = draw_rows(parts, rows, n_free, recipe.random_state)
            order = np.arange(sum(map(len, rows)))
        else:
            rows, X, order = [np.arange(n) for n in parts.lengths], None, _order(parts, row_ids)
        # Classes are weighed below, where all rows are.
        plain = {"verbose": False, **settings, "class_weight": None}
        obj = grbb_objective(X, _labels_among(parts, labels, labeled, rows, order), **plain)
        assert obj.teacher_ is not None
        assert obj.targets_ is not None
        teacher, q = obj.teacher_, obj.targets_[order]
        reached = ~np.isin(order, obj.unreachable_)
    clock.append(time.perf_counter())
    cuts = np.cumsum([*map(len, rows)])
    weighted = sample_weight is not None or recipe.class_weight is not None or not reached.all()
    # What a partition has to know of its own rows travels as an argument: should a worker die, dask still has it. So
    # does the teacher, once, from where other workers fetch it. What is scattered dies with its worker.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph|Large object")
        sent = parts.client.submit(lambda teacher: teacher, teacher, pure=False)
    blocks = parts.map(
        _taught,
        parts.pieces,
        rows,
        np.split(q, cuts[:-1]),
        np.split(reached, cuts[:-1]),
        weights,
        teacher=sent,
        hard=recipe.rule.hard and labels.classes is not None,
        of_class=class_weights(recipe.class_weight, labels),
    )
    finish(blocks)
    clock.append(time.perf_counter())
    return Taught(
        labels,
        labeled,
        blocks,
        weighted,
        teacher,
        int(cuts[-1]),
        int((~reached).sum()),
        _laplacian(obj, parts, labeled.ids, order, recipe.rule.lam),
        dict(zip(("teacher", "targets"), np.diff(clock).tolist(), strict=True)),
    )


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
    times = np.bincount(ids[ids < parts.n_rows], minlength=parts.n_rows)
    if (times != 1).any():
        missing, twice = (np.flatnonzero(which)[:5].tolist() for which in (times == 0, times > 1))
        beyond = ids[ids >= parts.n_rows]
        also = f"{beyond.size} ids are not in 0..{parts.n_rows - 1} ({beyond.max()})" if beyond.size else ""
        raise ValueError(ids_message(parts.n_rows, parts.n_rows, missing, twice, also))
    return np.asarray(ids, dtype=np.intp)


def _labels_among(parts: Parts, labels: Labels, labeled: LabeledRows, rows: list[Index], order: Index) -> Labels:
    """Return the labels as those of a table of the sampled rows, in the order of the graph where there is one."""
    sampled = np.concatenate([some + start for some, start in zip(rows, parts.starts, strict=True)])
    at = order[np.searchsorted(sampled, labeled.ids)]
    ascending = np.argsort(at)
    y = np.full(sampled.size, np.nan) if labels.classes is None else np.full(sampled.size, None, dtype=object)
    y[at] = labels.y
    return replace(labels, labeled=at[ascending], targets=labels.targets[ascending], y=y)


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


def _laplacian(
    obj: GRBBObjective | None, parts: Parts, labeled: NDArray[np.int64], order: Index, lam: float
) -> sp.csr_array | None:
    if lam == 0:
        return None
    if obj is None or obj.n_rows_ < parts.n_rows:
        raise ValueError(
            "lam > 0 needs the graph of all rows, and a teacher has that of a sample. Use lam=0, or rule='corrected'."
        )
    return sp.csr_array(laplacian(obj.graph_)[order[labeled]][:, order])
