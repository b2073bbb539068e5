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

# Rows that pass through a tree together, so that the tree stays in the fastest cache.
_ROWS_PER_BLOCK = 64
# Deeper than this, a walk of many rows looks now and then whether all have arrived.
_SHALLOW = 8


def _together(column: Any, threshold: Any, left: Any, default_left: Any, missing: bool, arrays: Any) -> None:
    """Move rows down plain trees: all take a step together, without a branch, which is done for several at once.

    A step from a leaf leads back to it. Without `missing` no value that is read is NaN.
    """
    tree_is_plain, tree_depth, X, nodes = arrays
    n_trees, n = nodes.shape
    width = np.int32(X.shape[1])
    place = np.empty(_ROWS_PER_BLOCK, np.int32)
    for begin in range(0, n, _ROWS_PER_BLOCK):
        size = min(n - begin, _ROWS_PER_BLOCK)
        rows = X[begin : begin + size].ravel()
        for t in range(n_trees):
            if not tree_is_plain[t]:
                continue
            for i in range(size):
                place[i] = nodes[t, begin + i]
            for level in range(tree_depth[t]):
                if level >= _SHALLOW and level % 2 == 0:
                    n_open = 0
                    for i in range(size):
                        n_open += left[place[i]] != place[i]
                    if n_open == 0:
                        break
                # Unsigned numbers index without a look at their sign.
                if missing:
                    for i in range(size):
                        node = np.uint32(place[i])
                        x = rows[np.uint32(column[node] + np.int32(i) * width)]
                        goes_left = default_left[node] if x != x else x <= threshold[node]
                        place[i] = left[node] + np.int32(not goes_left)
                else:
                    for i in range(size):
                        node = np.uint32(place[i])
                        x = rows[np.uint32(column[node] + np.int32(i) * width)]
                        place[i] = left[node] + np.int32(x > threshold[node])
            for i in range(size):
                nodes[t, begin + i] = place[i]


def _walk(arrays: Any, X: Any, known: Any, all_known: bool, nodes: Any, needed: Any, first_open: Any) -> None:
    """Move rows down any trees as far as each may; see :func:`grbb_ext.forest._walk.walk`."""
    feature, threshold, left, default_left, zero_is_missing = arrays[:5]
    category_set, category_start, category_word, category_bits, category_floor, tree_is_plain = arrays[5:]
    n_trees, n = nodes.shape
    width = X.shape[1]
    waiting = np.empty(_ROWS_PER_BLOCK, np.intp)
    for begin in range(0, n, _ROWS_PER_BLOCK):
        size = min(n - begin, _ROWS_PER_BLOCK)
        rows = X[begin : begin + size].ravel()
        may_read = known[:1].ravel() if all_known else known[begin : begin + size].ravel()
        for t in range(n_trees):
            plain = tree_is_plain[t]
            if plain and all_known:
                continue  # done together
            place, n_waiting = nodes[t, begin : begin + size], 0
            for i in range(size):
                waiting[n_waiting] = i
                n_waiting += feature[np.uint32(place[i])] >= 0
            # Rows that wait before a split take turns: the processor works on several at once.
            while n_waiting > 0:
                n_left = 0
                for j in range(n_waiting):
                    i = waiting[j]
                    node = np.uint32(place[i])
                    entry = np.uint64(i * width + feature[node])
                    if not (all_known or may_read[entry]):
                        needed[begin + i, feature[node]] = True
                        first_open[begin + i] = min(first_open[begin + i], t)
                        continue
                    x = rows[entry]
                    goes_left = default_left[node] if x != x else x <= threshold[node]
                    if not plain:
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
                    place[i] = left[node] + np.int32(not goes_left)
                    waiting[n_left] = i
                    n_left += feature[np.uint32(place[i])] >= 0
                n_waiting = n_left


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
    forest: Forest, X: NDArray[Any], nodes: NDArray[np.int32], known: NDArray[np.bool_] | None, start_tree: int
) -> Stops | None:
    """Do the work of :func:`grbb_ext.forest._walk.walk`, compiled."""
    trees = slice(start_tree, start_tree + len(nodes))
    plain = forest.tree_is_plain[trees]
    # Columns that are known for no row end the trees there; where others are known for a part of the rows, each row
    # has its own way.
    columns = None if known is None or len(X) < _ROWS_PER_BLOCK else np.asarray(known.any(axis=0))
    if known is None or (columns is not None and bool((known == columns).all())):
        ends = np.zeros(1, dtype=bool) if columns is None else ~columns[forest._column]
        threshold, left, default_left = forest.threshold, forest.left, forest.default_left
        if ends.any():
            threshold = np.where(ends, np.inf, threshold).astype(threshold.dtype)
            left = np.where(ends, np.arange(left.size), left).astype(left.dtype)
            default_left = default_left | ends
        missing = bool(np.isnan(X if columns is None else X[:, columns]).any())
        _on_first_use(_together)(
            forest._column, threshold, left, default_left, missing, (plain, forest.tree_depth[trees], X, nodes)
        )
        if known is None and plain.all():
            return None
    splits = (forest.feature, forest.threshold, forest.left, forest.default_left, forest.zero_is_missing)
    sets = (forest.category_set, forest.category_start, forest.category_word, forest.category_bits)
    floor = X.dtype.type(CATEGORY_FLOOR[forest.library])
    unused = np.zeros((1, 1), dtype=bool)
    needed = unused if known is None else np.zeros(X.shape, dtype=bool)
    first_open = np.full(1 if known is None else len(X), len(nodes), dtype=np.intp)
    _on_first_use(_walk)(
        (*splits, *sets, floor, plain), X, unused if known is None else known, known is None, nodes, needed, first_open
    )
    return None if known is None else Stops(needed, first_open)


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
