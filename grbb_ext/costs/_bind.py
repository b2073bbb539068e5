"""Put costs in the order of a data set's columns."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from grbb_ext.costs._check import Name, check_names, shorten
from grbb_ext.costs._needs import needs_matrix

if TYPE_CHECKING:
    from grbb_ext.costs._feature_costs import FeatureCosts


def bound_fields(costs: FeatureCosts, columns: Any) -> dict[str, Any]:
    """Return features, sources, prices and needs with one feature for each column; see :meth:`FeatureCosts.bind`."""
    if isinstance(columns, (str, bytes)):
        raise TypeError(f"columns must be a list of names or a number of columns, got {columns!r}.")
    named = isinstance(columns, Iterable)
    names = check_names(columns, "column") if named else tuple(range(operator.index(columns)))
    if costs.bound and not named and len(names) == costs.n_features:
        names = costs.features  # the columns are known, by name too
    by_position = isinstance(costs.features[0], int)
    if not by_position and names and isinstance(names[0], int):
        raise ValueError(
            f"The costs are by name ({shorten(costs.features, 3)}) but the {len(names)} columns have no names. Name "
            "the columns of the data set, or give the costs by index."
        )
    if by_position and costs.bound and len(names) != costs.n_features:
        raise ValueError(f"The costs have {costs.n_features} entries but there are {len(names)} columns.")
    keys: tuple[Name, ...] = tuple(range(len(names))) if by_position else names
    known = set(keys)
    extra = [feature for feature in costs.features if feature not in known]
    if extra:
        raise ValueError(
            f"The costs name {shorten(extra)}, but there is no such column; the {len(names)} columns are "
            f"{shorten(names)}. Correct the names, or keep part of the costs with costs.select(columns)."
        )
    missing = [i for i, key in enumerate(keys) if key not in costs._index]
    if missing and costs.default is None:
        raise ValueError(
            f"No price for {shorten(names[i] for i in missing)}. Give one (0 if it is free), or "
            "FeatureCosts(default=...) for all such columns."
        )
    taken = set(costs.sources)
    for i in missing:
        if keys[i] in taken:
            raise ValueError(f"The column {names[i]!r} has no price, and a source has its name. Say what it needs.")
    n_old, n_new = len(costs.sources), len(costs.sources) + len(missing)
    own = dict(zip(missing, range(n_old, n_new), strict=True))
    needed = [[own[i]] if i in own else costs._row(costs._index[key]).tolist() for i, key in enumerate(keys)]
    prices = np.concatenate([costs.prices, np.full(len(missing), costs.default or 0.0)])
    return {
        "features": names,
        "sources": (*costs.sources, *(keys[i] for i in missing)),
        "prices": prices,
        "needs": needs_matrix(needed, n_new),
    }
