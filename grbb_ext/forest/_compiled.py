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


def _walk(arrays: Any, X: Any, known: bool, missing: bool, nodes: Any, walks: Any, listed: bool) -> None:
    """Move rows down the trees as far as each may; see :func:`grbb_ext.forest._walk.walk`.

    Blocks of walks take a step together, without a branch, if their trees are plain. A step from a leaf leads back to
    it. All values are `known`, or some are inf; some are `missing`, or none is NaN. The walks are those `listed` in
    `walks`, or all, by blocks of rows.
    """
    column, feature, threshold, left, default_left, zero_is_missing = arrays[:6]
    category_set, category_start, category_word, category_bits, category_floor, is_plain, depth = arrays[6:]
    tree, row = walks
    values, width = X.ravel(), X.shape[1]
    n_trees, n = nodes.shape
    place, start = np.empty(_ROWS_PER_BLOCK, np.int32), np.empty(_ROWS_PER_BLOCK, np.intp)
    waiting = np.empty(_ROWS_PER_BLOCK, np.intp)
    total = tree.size if listed else n
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
                # Unsigned numbers index without a look at their sign.
                if known and not missing:
                    for j in range(size):
                        node = np.uint32(place[j])
                        x = values[np.uint64(start[j] + column[node])]
                        place[j] = left[node] + np.int32(x > threshold[node])
                elif not missing:
                    for j in range(size):
                        node = np.uint32(place[j])
                        x = values[np.uint64(start[j] + column[node])]
                        after = left[node] + np.int32(x > threshold[node])
                        place[j] = place[j] if x == np.inf else after
                else:
                    for j in range(size):
                        node = np.uint32(place[j])
                        x = values[np.uint64(start[j] + column[node])]
                        goes_left = default_left[node] if x != x else x <= threshold[node]
                        after = left[node] + np.int32(not goes_left)
                        place[j] = place[j] if x == np.inf else after
                if level % 8 == 7:  # seldom: most trees are shallow
                    n_open = 0
                    for j in range(size):
                        n_open += left[np.uint32(place[j])] != place[j]
                    if n_open == 0:
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
        for j in range(size):
            if listed:
                nodes[tree[begin + j], row[begin + j]] = place[j]
            else:
                nodes[t, begin + j] = place[j]


def _collect(column: Any, feature: Any, nodes: Any, needed: Any, tree: Any, row: Any, n_listed: int) -> Any:
    """Find the walks that stand before a split, and what they need.

    The features that rows need are bits of `needed`, shape (n, ceil(d / 64)). Open walks are written to `tree` and
    `row`, by blocks of rows, if they are fewer than these have places; their number is returned. Only the first
    `n_listed` entries of these are looked at, or all walks if it is negative.
    """
    n_trees, n = nodes.shape
    bits, width = needed.ravel(), needed.shape[1]
    n_open: Any = 0
    if n_listed >= 0:
        for k in range(n_listed):
            t, i = tree[k], row[k]
            node = np.uint32(nodes[t, i])
            is_open = np.uint64(feature[node] >= 0)  # a number: compiled without a branch
            bits[i * width + column[node] // 64] |= is_open << np.uint64(column[node] % 64)
            tree[n_open], row[n_open] = t, i
            n_open += np.int64(is_open)
        return n_open
    for begin in range(0, n, _ROWS_PER_BLOCK):
        size = min(n - begin, _ROWS_PER_BLOCK)
        for t in range(n_trees):
            for j in range(size):
                node = np.uint32(nodes[t, begin + j])
                is_open = np.uint64(feature[node] >= 0)
                word = np.uint64((begin + j) * width + (column[node] >> 6))
                bits[word] |= is_open << np.uint64(column[node] & 63)
                n_open += np.int64(is_open)
    if n_open >= tree.size:
        return n_open
    n_written: Any = 0
    for begin in range(0, n, _ROWS_PER_BLOCK):
        size = min(n - begin, _ROWS_PER_BLOCK)
        for t in range(n_trees):
            for j in range(size):
                tree[n_written], row[n_written] = t, begin + j  # the next one overwrites a closed walk
                n_written += np.int64(feature[np.uint32(nodes[t, begin + j])] >= 0)
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
    move, collect = _on_first_use(_walk), _on_first_use(_collect)
    none = np.empty(0, dtype=np.int32)
    listed = None if stops is None else stops.walks
    missing = bool(np.isnan(X).any())
    move(arrays, X, stops is None, missing, nodes, (none, none) if listed is None else listed, listed is not None)
    if stops is None:
        return None
    # A list is of use, and takes little memory, if few walks are open.
    size = nodes.size // 4 + 1
    tree, row = (np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int32)) if listed is None else listed
    bits = np.zeros((len(X), -(-X.shape[1] // 64)), dtype="<u8")
    n_open = collect(forest._column, forest.feature, nodes, bits, tree, row, -1 if listed is None else tree.size)
    needed = np.unpackbits(bits.view(np.uint8), axis=1, count=X.shape[1], bitorder="little").view(bool)
    return Stops(needed, (tree[:n_open], row[:n_open]) if n_open < size else None)


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
                    scores[output + k, i] += value[np.uint32(nodes[t, i]), k]


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
