"""Which feature needs which source, read from what the user gives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from grbb_ext.costs._check import Name, check_names, check_price, shorten


def read_prices(prices: Any) -> tuple[tuple[Name, ...], list[float]]:
    """Return names and prices of the sources."""
    if not hasattr(prices, "items"):
        raise TypeError(f"prices must be a dict from source to price, got {prices!r}.")
    table = list(prices.items())
    sources = check_names((key for key, _ in table), "source")
    return sources, [check_price(value, f"The price of {key!r}") for key, value in table]


def read_needs(features: tuple[Name, ...], needs: list[Any], sources: tuple[Name, ...]) -> list[list[int]]:
    """Return the positions of each feature's sources; a source without a price or a price without a use is refused."""
    position = {source: i for i, source in enumerate(sources)}
    used: set[Name] = set()
    needed: list[list[int]] = []
    for feature, wanted in zip(features, needs, strict=True):
        listed = [wanted] if isinstance(wanted, (str, int, np.integer)) else wanted
        if not isinstance(listed, Iterable):
            raise TypeError(f"needs of {feature!r} must be a list of sources, got {wanted!r}.")
        names = check_names(listed, "source")
        for name in names:
            if name not in position:
                raise ValueError(f"{feature!r} needs {name!r}, which has no price. Add it to prices=.")
        used.update(names)
        needed.append(sorted(position[name] for name in names))
    unused = [source for source in sources if source not in used]
    if unused:
        raise ValueError(f"No feature needs {shorten(unused)}. Take the price out, or correct the names in needs=.")
    return needed


def needs_matrix(needed: list[list[int]], n_sources: int) -> sp.csr_array:
    """Return the boolean matrix of features by sources.

    Examples
    --------
    >>> needs_matrix([[0, 1], [1]], 2).toarray().astype(int).tolist()
    [[1, 1], [0, 1]]
    """
    indptr = np.cumsum([0, *map(len, needed)])
    indices = np.array([s for row in needed for s in row], dtype=np.intp)
    return sp.csr_array((np.ones(indices.size, dtype=bool), indices, indptr), shape=(len(needed), n_sources))
