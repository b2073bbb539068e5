"""What lies below and above each node of a forest: bounds and means of its leaves, features on the way to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from grbb_ext.forest._forest import Forest

Floats = NDArray[np.floating[Any]]


def _inner_bottom_up(forest: Forest) -> Iterator[NDArray[np.intp]]:
    """Yield the inner nodes of each depth, the deepest first."""
    for level in range(int(forest.depth.max(initial=0)), -1, -1):
        nodes = np.flatnonzero((forest.depth == level) & (forest.feature >= 0))
        if nodes.size:
            yield nodes


def bounds(forest: Forest) -> tuple[Floats, Floats]:
    """Return the least and the greatest value among the leaves below each node, each of shape (n_nodes, n_values)."""
    lowest, highest = forest.value.copy(), forest.value.copy()
    for node in _inner_bottom_up(forest):
        left, right = forest.left[node], forest.left[node] + 1
        lowest[node] = np.minimum(lowest[left], lowest[right])
        highest[node] = np.maximum(highest[left], highest[right])
    for extreme in (lowest, highest):
        extreme.setflags(write=False)
    return lowest, highest


def mean(forest: Forest) -> Floats:
    """Return the mean of the leaves below each node by training weight, in the forest's precision and its bounds."""
    means = forest.value.astype(np.float64)
    for node in _inner_bottom_up(forest):
        left, right = forest.left[node], forest.left[node] + 1
        weight = np.maximum(forest.cover[left], 0.0)
        total = weight + np.maximum(forest.cover[right], 0.0)
        share = np.divide(weight, total, out=np.full(node.size, 0.5), where=total > 0)[:, None]
        means[node] = share * means[left] + (1 - share) * means[right]
    clipped = np.clip(means.astype(forest.value.dtype), *forest.node_bounds)
    clipped.setflags(write=False)
    return clipped


def path_bits(forest: Forest) -> NDArray[np.uint8]:
    """Return the features above each node as bits, in the order of ``forest.features_used()``."""
    used = forest.features_used()
    bits = np.zeros((forest.n_nodes, -(-used.size // 8)), dtype=np.uint8)
    for node in reversed(list(_inner_bottom_up(forest))):
        column = np.searchsorted(used, forest.feature[node])
        below = bits[node]
        below[np.arange(node.size), column // 8] |= np.left_shift(1, column % 8).astype(np.uint8)
        bits[forest.left[node]] = below
        bits[forest.left[node] + 1] = below
    return bits
