"""The operator through anchors: the client sees a sample, the workers do the rest, each for its own rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grbb_ext.adapters._dask_graph import Told, warn_unreachable
from grbb_ext.adapters._dask_ids import Ids
from grbb_ext.adapters._dask_labels import Known
from grbb_ext.adapters._dask_parts import Parts, dense
from grbb_ext.adapters._dask_rows import keep_rows
from grbb_ext.labels import Labels
from grbb_ext.objective._settings import Settings
from grbb_ext.propagation import AnchorPropagation, Propagation
from grbb_ext.propagation._anchor import anchor_matrix
from grbb_ext.row_weights import mixed_weight
from grbb_ext.rules._soft_targets import centered_labels, finish_targets

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
