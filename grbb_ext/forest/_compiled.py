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
from grbb_ext.forest._walk import CATEGORY_CEILING, ZERO

if TYPE_CHECKING:
    from grbb_ext.forest._forest import Forest

# Rows whose walks down a tree take their steps together: tree and rows stay in the fastest cache.
_ROWS_PER_BLOCK = 64
# Steps before walks that have arrived are left out: without a branch a step too many costs little.
_STEPS = 8


def _walk(arrays: Any, X: Any, known: bool, missing: bool, nodes: Any, needed: Any) -> None:
    """Move rows down the trees as far as each may; see :func:`grbb_ext.forest._walk.walk`.

    The walks of a block of rows that stand before a split of a tree take a step together, without a branch if the tree
    is plain. A step from a leaf leads back to it. All values are `known`, or some are inf; some are `missing`, or none
    is NaN. Where walks are stopped is noted in `needed`, by columns, unless that is empty.
    """
    column, threshold, left, default_left, zero_is_missing = arrays[:5]
    category_set, category_start, category_word, category_bits, category_floor, is_plain, height, is_split = arrays[5:]
    values, width, noted = X.ravel(), X.shape[1], needed.ravel()
    n_trees, n = nodes.shape
    n_left: Any
    place, row = np.empty(_ROWS_PER_BLOCK, np.int32), np.empty(_ROWS_PER_BLOCK, np.intp)
    start = np.empty(_ROWS_PER_BLOCK, np.intp)
    for block in range(-(-n // _ROWS_PER_BLOCK) * n_trees):
        t, begin = block % n_trees, block // n_trees * _ROWS_PER_BLOCK
        n_walks: Any = 0
        levels = np.int32(0)
        for i in range(begin, min(begin + _ROWS_PER_BLOCK, n)):
            place[n_walks], row[n_walks], start[n_walks] = nodes[t, i], i, i * width
            below = height[np.uint32(place[n_walks])]  # unsigned numbers index without a look at their sign
            levels = max(levels, below)
            n_walks += np.int64(below > 0)
        while n_walks > 0 and not is_plain[t]:
            n_left = 0
            for w in range(n_walks):
                node, i = np.uint32(place[w]), row[w]
                x = values[np.uint64(start[w] + column[node])]
                if x == np.inf:
                    if noted.size:
                        noted[column[node] * n + i] = 1
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
                after = left[node] + np.int32(not goes_left)
                nodes[t, i] = after
                place[n_left], row[n_left], start[n_left] = after, i, start[w]
                n_left += np.int64(is_split[np.uint32(after)])
            n_walks = n_left
        while n_walks > 0:
            steps = min(levels, np.int32(_STEPS))
            levels -= steps
            for _ in range(steps):
                if known and not missing:
                    for w in range(n_walks):
                        node = np.uint32(place[w])
                        x = values[np.uint64(start[w] + column[node])]
                        place[w] = left[node] + np.int32(x > threshold[node])
                elif not missing:
                    for w in range(n_walks):
                        node = np.uint32(place[w])
                        x = values[np.uint64(start[w] + column[node])]
                        after = left[node] + np.int32(x > threshold[node])
                        place[w] = place[w] if x == np.inf else after
                else:
                    for w in range(n_walks):
                        node = np.uint32(place[w])
                        x = values[np.uint64(start[w] + column[node])]
                        goes_left = default_left[node] if x != x else x <= threshold[node]
                        after = left[node] + np.int32(not goes_left)
                        place[w] = place[w] if x == np.inf else after
            for w in range(n_walks):
                nodes[t, row[w]] = place[w]
            if levels == 0:
                break
            n_left, highest = 0, np.int32(0)
            for w in range(n_walks):
                below = height[np.uint32(place[w])]
                highest = max(highest, below)
                place[n_left], row[n_left], start[n_left] = place[w], row[w], start[w]
                n_left += np.int64(below > 0)
            n_walks, levels = n_left, min(levels, highest)
        for w in range(n_walks if noted.size else 0):
            node = np.uint32(place[w])
            noted[np.uint64(column[node] * n + row[w])] |= is_split[node]


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
    forest: Forest, X: NDArray[Any], nodes: NDArray[np.int32], start_tree: int, known: NDArray[np.bool_] | None = None
) -> NDArray[np.bool_] | None:
    """Do the work of :func:`grbb_ext.forest._walk.walk`, compiled."""
    trees = slice(start_tree, start_tree + len(nodes))
    threshold, left, is_split = forest.threshold, forest.left, forest._is_split
    # By columns, as it is read. Numbers: truth values would be compiled with a branch.
    needed = np.zeros((0, 0) if known is None else X.shape[::-1], dtype=np.uint8)
    everything = known is None or bool(known.all())
    if known is not None and not everything and nodes.size > forest.n_nodes:
        # Splits that no row can pass are made leaves. Often no others stop a row, and nobody has to look for them.
        hidden = np.asarray(~known.any(axis=0))
        closed = hidden[forest._column] & is_split.view(bool)
        threshold = np.where(closed, threshold.dtype.type(np.inf), threshold)
        left = np.where(closed, np.arange(forest.n_nodes, dtype=np.int32), left)
        everything = bool((hidden | known.all(axis=0)).all())
    splits = (forest._column, threshold, left, forest.default_left, forest.zero_is_missing)
    sets = (forest.category_set, forest.category_start, forest.category_word, forest.category_bits)
    floor = X.dtype.type(CATEGORY_FLOOR[forest.library])
    arrays = (*splits, *sets, floor, forest.tree_is_plain[trees], forest.height, is_split)
    _on_first_use(_walk)(arrays, X, everything, bool(np.isnan(X).any()), nodes, needed)
    return None if known is None else needed.view(bool).T


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
