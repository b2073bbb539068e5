"""Walking rows down the trees and adding up what they find, by numpy: all rows take a step of one tree at a time.

Every node sends a row left where x <= threshold, so NaN and the two special kinds of node are all that a step has to
treat apart: zero counts as missing (LightGBM's ``zero_as_missing``), and categories are looked up in a bitset. A leaf
is its own left child and sends everything left, so a step too many does no harm.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Nodes = NDArray[np.intp]

# Larger values are no categories; the conversion to an integer must not overflow.
CATEGORY_CEILING = float(2**31)
# LightGBM's kZeroThreshold, a float32 constant in float64 comparisons: numbers that are not further from 0 are zero.
ZERO = float(np.float32(1e-35))
# Finished rows are dropped from a walk once they make up this share of it; before, gathering them costs more.
_FINISHED_SHARE = 0.4


class Plan(NamedTuple):
    """The arrays of a forest that a walk reads; see :class:`~grbb_ext.forest.Forest`.

    ``category_key`` is number of the set times 2**32 plus number of the word, increasing.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[Any]
    left: Nodes
    default_left: NDArray[np.bool_]
    zero_is_missing: NDArray[np.bool_]
    category_set: NDArray[np.int32]
    category_start: NDArray[np.int64]
    category_word: NDArray[np.int32]
    category_bits: NDArray[np.uint32]
    category_key: NDArray[np.int64]
    category_floor: float
    tree_start: NDArray[np.int32]
    tree_depth: NDArray[np.int32]
    tree_is_plain: NDArray[np.bool_]


def goes_left(plan: Plan, x: NDArray[Any], node: Nodes, plain: bool) -> NDArray[np.bool_]:
    """Return which of the values `x` go left at the nodes `node`.

    Parameters
    ----------
    plan : Plan
        The forest.
    x : ndarray of shape (n,)
        Values of the features that the nodes split.
    node : ndarray of int of shape (n,)
        Node ids.
    plain : bool
        Whether none of the nodes is categorical or takes zero as missing.

    Returns
    -------
    ndarray of bool of shape (n,)
    """
    left = x <= plan.threshold.take(node)
    missing = np.isnan(x)
    if not plain:
        missing |= plan.zero_is_missing.take(node) & (np.abs(x) <= ZERO)
        which = plan.category_set.take(node)
        at = np.flatnonzero(which >= 0)
        left[at] = _in_set(plan, x[at], which[at])
    if missing.any():
        left = np.where(missing, plan.default_left.take(node), left)
    return left


def _in_set(plan: Plan, x: NDArray[Any], which: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return which values are categories of the sets `which`."""
    valid = (x > plan.category_floor) & (x < CATEGORY_CEILING)
    category = np.where(valid, x, 0).astype(np.int64)
    if not plan.category_key.size:
        return np.zeros(x.size, dtype=bool)
    key = (which.astype(np.int64) << 32) + category // 32
    place = np.minimum(np.searchsorted(plan.category_key, key), plan.category_key.size - 1)
    bits = np.where(plan.category_key[place] == key, plan.category_bits[place], np.uint32(0))
    return valid & ((bits >> (category % 32).astype(np.uint32)) & 1 > 0)


class Stops(NamedTuple):
    """Where walks are stopped: the features that each row needs, and its first open tree (n_trees if there is none)."""

    needed: NDArray[np.bool_]
    first_open: NDArray[np.intp]


def walk(
    plan: Plan, X: NDArray[Any], nodes: NDArray[np.int32], known: NDArray[np.bool_] | None, start_tree: int
) -> Stops | None:
    """Move rows down the trees as far as known features allow.

    Parameters
    ----------
    plan : Plan
        The forest.
    X : ndarray of shape (n, d)
        Rows, contiguous, in the forest's precision.
    nodes : ndarray of int32 of shape (n_trees, n)
        Where each row stands in each tree; changed in place.
    known : ndarray of bool of shape (n, d) or None
        Which entries of X may be read; None is all.
    start_tree : int
        The tree of the first row of `nodes`.

    Returns
    -------
    Stops or None
        None if all is known, for then no walk is stopped.
    """
    n, d = X.shape
    stops = None if known is None else Stops(np.zeros((n, d), dtype=bool), np.full(n, len(nodes), dtype=np.intp))
    offset = np.arange(n) * d
    for t in range(nodes.shape[0]):
        tree = start_tree + t
        plain = bool(plan.tree_is_plain[tree])
        active: Any = slice(None)
        node, start = nodes[t].astype(np.intp), offset
        for _ in range(plan.tree_depth[tree]):
            feature = plan.feature.take(node)
            moves = feature >= 0
            if known is not None:
                # A leaf reads entry -1 of the row, which is clipped or another row's: `moves` is False there anyway.
                moves &= known.ravel().take(start + feature, mode="clip")
            n_moves = np.count_nonzero(moves)
            if moves.size - n_moves > (_FINISHED_SHARE * moves.size if known is None else 0):
                nodes[t, active] = node
                active = np.flatnonzero(moves) if isinstance(active, slice) else active[moves]
                node, start, feature = node[moves], start[moves], feature[moves]
            if n_moves == 0:
                break
            x = X.ravel().take(start + feature, mode="clip")
            node = plan.left.take(node) + ~goes_left(plan, x, node, plain)
        nodes[t, active] = node
        if stops is not None:
            feature = plan.feature.take(nodes[t])
            row = np.flatnonzero(feature >= 0)
            stops.needed[row, feature[row]] = True
            stops.first_open[row] = np.minimum(stops.first_open[row], t)
    return stops


def add(value: NDArray[Any], nodes: NDArray[np.int32], tree_output: NDArray[np.int32], scores: NDArray[Any]) -> None:
    """Add a value of every node to the scores, one tree after the other as the libraries do.

    Parameters
    ----------
    value : ndarray of shape (n_nodes, n_values)
        A value, or one for each output, of every node.
    nodes : ndarray of int32 of shape (n_trees, n)
        Where each row stands in each tree.
    tree_output : ndarray of int32 of shape (n_trees,)
        The (first) output that a tree adds to.
    scores : ndarray of shape (n_outputs, n)
        Changed in place.
    """
    n_values = value.shape[1]
    for node, output in zip(nodes, tree_output.tolist(), strict=True):
        scores[output : output + n_values] += value.take(node, axis=0).T


def stopped(
    feature: NDArray[np.int32],
    weight: NDArray[np.float64],
    nodes: NDArray[np.int32],
    stop_tree: NDArray[np.intp],
    total: NDArray[np.float64],
) -> None:
    """Add up the weights of the nodes at which walks are stopped, by row and feature.

    Parameters
    ----------
    feature : ndarray of int32 of shape (n_nodes,)
        The column that a node splits, -1 at leaves.
    weight : ndarray of shape (n_nodes,)
        A weight of every node.
    nodes : ndarray of int32 of shape (n_trees, n)
        Where each row stands in each tree.
    stop_tree : ndarray of int of shape (n,)
        How many of the first trees count, for each row.
    total : ndarray of shape (n, d)
        Changed in place.
    """
    for tree, node in enumerate(nodes):
        column = feature.take(node)
        row = np.flatnonzero((column >= 0) & (tree < stop_tree))
        total[row, column[row]] += weight[node[row]]


def first_open(feature: NDArray[np.int32], nodes: NDArray[np.int32]) -> NDArray[np.intp]:
    """Return for each row the first tree in which it has not reached a leaf, n_trees if there is none."""
    is_open = feature.take(nodes) >= 0
    if len(is_open) == 0:
        return np.zeros(nodes.shape[1], dtype=np.intp)
    return np.where(is_open.any(axis=0), is_open.argmax(axis=0), len(is_open))
