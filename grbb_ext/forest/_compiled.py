"""Walking rows down the trees, compiled by numba where it is installed (the extra ``fast``).

The functions do what :mod:`grbb_ext.forest._walk` does, number by number, and their results are identical.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grbb_ext.forest._tree import CATEGORY_FLOOR
from grbb_ext.forest._walk import CATEGORY_CEILING, ZERO, Stops

if TYPE_CHECKING:
    from grbb_ext.forest._forest import Forest

# Walks that take their steps together, of one tree where there are enough: it stays in the fastest cache.
_ROWS_PER_BLOCK = 64


def _walk(arrays: Any, X: Any, missing: bool, nodes: Any, walks: Any, listed: bool, needed: Any) -> int:
    """Move rows down the trees as far as each may; see :func:`grbb_ext.forest._walk.walk`.

    Blocks of walks take a step together, without a branch, if their trees are plain. A step from a leaf leads back to
    it. Without `missing` no value that is read is NaN. The walks are those `listed` in `walks`, or all, by blocks of
    rows. With entries in `needed` those that stay open are written to `walks`, from the beginning as far as it is long,
    and their number is returned.
    """
    column, feature, threshold, left, default_left, zero_is_missing = arrays[:6]
    category_set, category_start, category_word, category_bits, category_floor, is_plain, depth = arrays[6:]
    tree, row = walks
    values, width = X.ravel(), X.shape[1]
    n_trees, n = nodes.shape
    partial = needed.size > 0
    place, start = np.empty(_ROWS_PER_BLOCK, np.int32), np.empty(_ROWS_PER_BLOCK, np.intp)
    waiting = np.empty(_ROWS_PER_BLOCK, np.intp)
    total = tree.size if listed else n
    n_open = 0
    for step in range(-(-total // _ROWS_PER_BLOCK) * (1 if listed else n_trees)):
        begin = (step if listed else step // n_trees) * _ROWS_PER_BLOCK
        size = min(total - begin, _ROWS_PER_BLOCK)
        t = np.int32(0 if listed else step % n_trees)
        plain, n_levels = is_plain[t], depth[t]
        for j in range(size):
            if listed:
                t = tree[begin + j]
                plain, n_levels = plain and is_plain[t], max(n_levels, depth[t])
            i = row[begin + j] if listed else begin + j
            place[j], start[j] = nodes[t, i], i * width
        if plain:
            for level in range(n_levels):
                n_moved = 0
                # Unsigned numbers index without a look at their sign.
                if missing:
                    for j in range(size):
                        node = np.uint32(place[j])
                        x = values[np.uint64(start[j] + column[node])]
                        goes_left = default_left[node] if x != x else x <= threshold[node]
                        after = left[node] + np.int32(not goes_left)
                        after = place[j] if x == np.inf else after
                        n_moved += after != place[j]
                        place[j] = after
                elif partial:
                    for j in range(size):
                        node = np.uint32(place[j])
                        x = values[np.uint64(start[j] + column[node])]
                        after = left[node] + np.int32(x > threshold[node])
                        after = place[j] if x == np.inf else after
                        n_moved += after != place[j]
                        place[j] = after
                else:
                    for j in range(size):
                        node = np.uint32(place[j])
                        x = values[np.uint64(start[j] + column[node])]
                        place[j] = left[node] + np.int32(x > threshold[node])
                    n_moved = size
                    if level % 8 == 7:  # seldom: most trees are shallow
                        n_moved = 0
                        for j in range(size):
                            n_moved += left[np.uint32(place[j])] != place[j]
                if n_moved == 0:
                    break
        else:
            n_waiting = 0
            for j in range(size):
                waiting[n_waiting] = j
                n_waiting += feature[np.uint32(place[j])] >= 0
            # Walks that wait before a split take turns: the processor works on several at once.
            while n_waiting > 0:
                n_left = 0
                for w in range(n_waiting):
                    j = waiting[w]
                    node = np.uint32(place[j])
                    x = values[np.uint64(start[j] + column[node])]
                    if x == np.inf:
                        continue
                    goes_left = default_left[node] if x != x else x <= threshold[node]
                    which = category_set[node]
                    if zero_is_missing[node] and abs(x) <= ZERO:
                        goes_left = default_left[node]
                    elif which >= 0 and x == x:
                        goes_left = False
                        if x > category_floor and x < CATEGORY_CEILING:
                            category = np.int64(x)
                            word = category // 32
                            low, high = category_start[which], category_start[which + 1]
                            if low < high and category_word[low] <= word:
                                # Words increase, so this one is not further on; without gaps it is there.
                                high = min(high, low + word - category_word[low] + 1)
                                if category_word[high - 1] == word:
                                    low = high - 1
                            while low < high and category_word[low] < word:
                                middle = (low + high) // 2
                                if category_word[middle] < word:
                                    low = middle + 1
                                else:
                                    high = middle
                            if low < category_start[which + 1] and category_word[low] == word:
                                goes_left = (category_bits[low] >> (category % 32)) & 1 == 1
                    place[j] = left[node] + np.int32(not goes_left)
                    waiting[n_left] = j
                    n_left += feature[np.uint32(place[j])] >= 0
                n_waiting = n_left
        if listed:
            for j in range(size):
                node, t, i = np.uint32(place[j]), tree[begin + j], row[begin + j]
                nodes[t, i] = place[j]
                is_open = feature[node] >= 0
                needed[i, column[node]] |= is_open
                tree[n_open], row[n_open] = t, i
                n_open += is_open
            continue
        for j in range(size):
            nodes[t, begin + j] = place[j]
        if partial:
            for j in range(size):
                node = np.uint32(place[j])
                is_open = feature[node] >= 0
                needed[begin + j, column[node]] |= is_open
                end = min(n_open, tree.size - 1)
                tree[end], row[end] = t, begin + j
                n_open += is_open
    return n_open


@cache
def _compile(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """Compile on first use; None without numba."""
    try:
        import numba
    except ImportError:
        return None
    compile_: Callable[..., Callable[..., Any]] = numba.njit
    try:
        return compile_(function, cache=True, nogil=True)
    except RuntimeError:  # no folder can be written, neither that of the package nor one of the user
        return compile_(function, nogil=True)


def is_available() -> bool:
    """Return whether numba is installed."""
    return _compile(_walk) is not None


def _on_first_use(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def compiled(*arguments: Any) -> Any:
        run = _compile(function)
        assert run is not None
        return run(*arguments)

    return compiled


def walk(
    forest: Forest, X: NDArray[Any], nodes: NDArray[np.int32], start_tree: int, stops: Stops | None = None
) -> Stops | None:
    """Do the work of :func:`grbb_ext.forest._walk.walk`, compiled."""
    trees = slice(start_tree, start_tree + len(nodes))
    splits = (forest._column, forest.feature, forest.threshold, forest.left, forest.default_left)
    sets = (forest.category_set, forest.category_start, forest.category_word, forest.category_bits)
    floor = X.dtype.type(CATEGORY_FLOOR[forest.library])
    arrays = (*splits, forest.zero_is_missing, *sets, floor, forest.tree_is_plain[trees], forest.tree_depth[trees])
    missing = bool(np.isnan(X).any())
    if stops is None:
        none = np.empty(0, dtype=np.int32)
        _on_first_use(_walk)(arrays, X, missing, nodes, (none, none), False, np.empty((0, 0), dtype=bool))
        return None
    # A list is of use, and takes little memory, if few walks are open. Its last entry takes what is left out.
    size = nodes.size // 4
    tree, row = stops.walks or (np.empty(size + 1, dtype=np.int32), np.empty(size + 1, dtype=np.int32))
    needed = np.zeros(X.shape, dtype=bool)
    n_open = _on_first_use(_walk)(arrays, X, missing, nodes, (tree, row), stops.walks is not None, needed)
    return Stops(needed, (tree[:n_open], row[:n_open]) if n_open <= size else None)


@_on_first_use
def add(value: Any, nodes: Any, tree_output: Any, scores: Any) -> None:
    """Do the work of :func:`grbb_ext.forest._walk.add`, compiled."""
    n_trees, n = nodes.shape
    n_values = value.shape[1]
    for begin in range(0, n, _ROWS_PER_BLOCK):
        end = min(n, begin + _ROWS_PER_BLOCK)
        for t in range(n_trees):
            output = tree_output[t]
            for k in range(n_values):
                for i in range(begin, end):
                    scores[output + k, i] += value[nodes[t, i], k]


@_on_first_use
def touched(path_bits: Any, nodes: Any, bits: Any) -> None:
    """Do the work of :func:`grbb_ext.forest._walk.touched`, compiled."""
    n_trees, n = nodes.shape
    n_bytes = bits.shape[1]
    for begin in range(0, n, _ROWS_PER_BLOCK):
        end = min(n, begin + _ROWS_PER_BLOCK)
        for t in range(n_trees):
            for i in range(begin, end):
                node = np.uint32(nodes[t, i])
                for k in range(n_bytes):
                    bits[i, k] |= path_bits[node, k]


@_on_first_use
def stopped(feature: Any, weight: Any, nodes: Any, stop_tree: Any, total: Any) -> None:
    """Do the work of :func:`grbb_ext.forest._walk.stopped`, compiled."""
    n_trees, n = nodes.shape
    for begin in range(0, n, _ROWS_PER_BLOCK):
        end = min(n, begin + _ROWS_PER_BLOCK)
        for t in range(n_trees):
            for i in range(begin, end):
                node = nodes[t, i]
                if feature[node] >= 0 and t < stop_tree[i]:
                    total[i, feature[node]] += weight[node]


@_on_first_use
def first_open(feature: Any, nodes: Any) -> Any:
    """Do the work of :func:`grbb_ext.forest._walk.first_open`, compiled."""
    n_trees, n = nodes.shape
    first = np.full(n, n_trees, np.intp)
    for t in range(n_trees - 1, -1, -1):
        for i in range(n):
            if feature[nodes[t, i]] >= 0:
                first[i] = t
    return first
