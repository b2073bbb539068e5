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


def _walk(arrays: Any, X: Any, known: Any, all_known: bool, nodes: Any, needed: Any, first_open: Any) -> None:
    feature, threshold, left, default_left, zero_is_missing = arrays[:5]
    category_set, category_start, category_word, category_bits, category_floor, tree_is_plain = arrays[5:]
    n_trees, n = nodes.shape
    for begin in range(0, n, _ROWS_PER_BLOCK):
        end = min(n, begin + _ROWS_PER_BLOCK)
        for t in range(n_trees):
            plain = tree_is_plain[t]
            for i in range(begin, end):
                node = nodes[t, i]
                f = feature[node]
                while f >= 0 and (all_known or known[i, f]):
                    x = X[i, f]
                    goes_left = x <= threshold[node]
                    if plain:
                        if x != x:
                            goes_left = default_left[node]
                    else:
                        which = category_set[node]
                        if x != x or (zero_is_missing[node] and abs(x) <= ZERO):
                            goes_left = default_left[node]
                        elif which >= 0:
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
                    node = left[node] + (0 if goes_left else 1)
                    f = feature[node]
                nodes[t, i] = node
                if f >= 0:
                    needed[i, f] = True
                    if t < first_open[i]:
                        first_open[i] = t


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
    splits = (forest.feature, forest.threshold, forest._steps, forest.default_left, forest.zero_is_missing)
    sets = (forest.category_set, forest.category_start, forest.category_word, forest.category_bits)
    floor, plain = X.dtype.type(CATEGORY_FLOOR[forest.library]), forest.tree_is_plain[start_tree:][: len(nodes)]
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
