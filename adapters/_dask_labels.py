"""The labelled rows, collected from all partitions: the only labels that leave the workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grbb_ext.adapters._dask_ids import Ids, ids_message
from grbb_ext.adapters._dask_objective import LabeledRows
from grbb_ext.adapters._dask_parts import Parts, Pieces, dense
from grbb_ext.labels import Labels, is_unlabeled, read_labels
from grbb_ext.objective._settings import Settings
from grbb_ext.row_weights import class_weights, mixed_weight


@dataclass(frozen=True)
class Known:
    """What is known of the labelled rows.

    Attributes
    ----------
    labels : Labels
        Of the n labelled rows alone, in ascending order of their ids.
    rows : LabeledRows
        Their ids, targets and weights.
    of_class : ndarray of shape (K,) or None
        Weights of the classes.
    X : ndarray of shape (n, d) or None
        Their features, where asked for.
    """

    labels: Labels
    rows: LabeledRows
    of_class: NDArray[np.float64] | None
    X: NDArray[Any] | None


def collect_labels(
    parts: Parts, y: Pieces, ids: Pieces, weights: Pieces | None, settings: Settings, classes: Any, with_features: bool
) -> Known:
    """Bring the labelled rows to the client.

    Parameters
    ----------
    parts : Parts
        The partitions of X.
    y, ids, weights : pieces
        Labels, ids and weights of the rows.
    settings : Settings
        Of the objective.
    classes : array-like or None
        All classes, where y may miss some.
    with_features : bool
        Whether to bring the features too.
    """
    client, n_parts = parts.client, len(parts.pieces)
    marker = np.nan if settings.loss == "squared_error" else settings.unlabeled
    found = client.map(
        _labeled,
        y,
        ids,
        [None] * n_parts if weights is None else weights,
        parts.pieces if with_features else [None] * n_parts,
        [marker] * n_parts,
        pure=False,
    )
    collected = client.gather(found)
    id_l: Ids = np.concatenate([some[0] for some in collected])
    order = np.argsort(id_l, kind="stable")
    id_l = id_l[order]
    # Partitions without a label may have another type, which would decide that of all labels.
    some_labels = [some for some in collected if some[0].size] or collected[:1]
    values, weight = (np.concatenate([some[i] for some in some_labels])[order] for i in (1, 2))
    labels = read_labels(values, settings.loss, classes, settings.unlabeled)
    twice = np.unique(id_l[1:][id_l[1:] == id_l[:-1]])
    if twice.size or id_l[-1] >= parts.n_rows:
        also = f"{id_l[-1]} is too large" if id_l[-1] >= parts.n_rows else ""
        raise ValueError(ids_message(parts.n_rows, parts.n_rows, [], twice[:5].tolist(), also))
    of_class = class_weights(settings.class_weight, labels)
    if of_class is not None:
        weight = weight * mixed_weight(labels.targets, of_class)
    X = np.concatenate([some[3] for some in some_labels])[order] if with_features else None
    return Known(labels, LabeledRows(id_l, labels.targets, weight), of_class, X)


def _labeled(y: NDArray[Any], ids: Ids, weight: Any, piece: Any, marker: Any) -> tuple[Ids, Any, Any, Any]:
    regression = isinstance(marker, float) and np.isnan(marker)
    here = np.flatnonzero(~(np.isnan(y.astype(np.float64)) if regression else is_unlabeled(y, marker)))
    features = None if piece is None else dense(piece.iloc[here] if hasattr(piece, "iloc") else piece[here])
    return ids[here], y[here], np.ones(here.size) if weight is None else weight[here], features
