"""Walking rows down the trees, compiled by numba where it is installed (the extra ``fast``).

The functions do what :mod:`grbb_ext.forest._walk` does, number by number, and their results are identical.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grbb_ext.forest._walk import CATEGORY_CEILING, ZERO, Plan, Stops

# Rows that pass through a tree together, so that the tree stays in the fastest cache.
_ROWS_PER_BLOCK = 64


def _walk(
    feature: Any,
    threshold: Any,
    left: Any,
    default_left: Any,
    zero_is_missing: Any,
    category_set: Any,
    category_start: Any,
    category_word: Any,
    category_bits: Any,
    category_floor: Any,
    tree_is_plain: Any,
    X: Any,
    known: Any,
    all_known: bool,
    nodes: Any,
    needed: Any,
    first_open: Any,
) -> None:
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


def _add(value: Any, nodes: Any, tree_output: Any, scores: Any) -> None:
    n_trees, n = nodes.shape
    n_values = value.shape[1]
    for begin in range(0, n, _ROWS_PER_BLOCK):
        end = min(n, begin + _ROWS_PER_BLOCK)
        for t in range(n_trees):
            output = tree_output[t]
            for k in range(n_values):
                for i in range(begin, end):
                    scores[output + k, i] += value[nodes[t, i], k]


def _stopped(feature: Any, weight: Any, nodes: Any, stop_tree: Any, total: Any) -> None:
    n_trees, n = nodes.shape
    for begin in range(0, n, _ROWS_PER_BLOCK):
        end = min(n, begin + _ROWS_PER_BLOCK)
        for t in range(n_trees):
            for i in range(begin, end):
                node = nodes[t, i]
                if feature[node] >= 0 and t < stop_tree[i]:
                    total[i, feature[node]] += weight[node]


def _first_open(feature: Any, nodes: Any) -> Any:
    n_trees, n = nodes.shape
    first = np.full(n, n_trees, np.intp)
    for t in range(n_trees - 1, -1, -1):
        for i in range(n):
            if feature[nodes[t, i]] >= 0:
                first[i] = t
    return first


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


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    compiled = _compile(function)
    assert compiled is not None
    return compiled


def walk(
    plan: Plan, X: NDArray[Any], nodes: NDArray[np.int32], known: NDArray[np.bool_] | None, start_tree: int
) -> Stops | None:
    """Do the work of :func:`grbb_ext.forest._walk.walk`, compiled."""
    n = len(X)
    unused = np.zeros((1, 1), dtype=bool)
    needed = unused if known is None else np.zeros(X.shape, dtype=bool)
    first_open = np.full(1 if known is None else n, len(nodes), dtype=np.intp)
    _compiled(_walk)(
        plan.feature,
        plan.threshold,
        plan.left,
        plan.default_left,
        plan.zero_is_missing,
        plan.category_set,
        plan.category_start,
        plan.category_word,
        plan.category_bits,
        X.dtype.type(plan.category_floor),
        plan.tree_is_plain[start_tree : start_tree + nodes.shape[0]],
        X,
        unused if known is None else known,
        known is None,
        nodes,
        needed,
        first_open,
    )
    return None if known is None else Stops(needed, first_open)


def add(value: NDArray[Any], nodes: NDArray[np.int32], tree_output: NDArray[np.int32], scores: NDArray[Any]) -> None:
    """Do the work of :func:`grbb_ext.forest._walk.add`, compiled."""
    _compiled(_add)(value, nodes, tree_output, scores)


def stopped(
    feature: NDArray[np.int32],
    weight: NDArray[np.float64],
    nodes: NDArray[np.int32],
    stop_tree: NDArray[np.intp],
    total: NDArray[np.float64],
) -> None:
    """Do the work of :func:`grbb_ext.forest._walk.stopped`, compiled."""
    _compiled(_stopped)(feature, weight, nodes, stop_tree, total)


def first_open(feature: NDArray[np.int32], nodes: NDArray[np.int32]) -> NDArray[np.intp]:
    """Do the work of :func:`grbb_ext.forest._walk.first_open`, compiled."""
    first: NDArray[np.intp] = _compiled(_first_open)(feature, nodes)
    return first
