"""Trees in one set of arrays, and what lies below and above each node: bounds, means, features on the way to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Ints = NDArray[np.int32]
Bools = NDArray[np.bool_]
Floats = NDArray[np.floating[Any]]

# A value is a category where it is above this. LightGBM truncates towards zero before the test, so -0.5 is category 0;
# XGBoost tests x >= 0.
CATEGORY_FLOOR = {"lightgbm": -1.0, "xgboost": float(np.nextafter(np.float32(0), np.float32(-1)))}

# The outputs of a model without trees are a mere number in its file.
MOST_OUTPUTS_OF_NO_TREES = 2**16


@dataclass(frozen=True)
class Tree:
    """One tree, with nodes in any order and the root at 0.

    Attributes
    ----------
    feature : ndarray of int of shape (n_nodes,)
        The column that a node splits; -1 at leaves.
    threshold : ndarray of float of shape (n_nodes,)
        A row goes left where its value is at most the threshold. Not used at leaves and at categorical nodes.
    left, right : ndarray of int of shape (n_nodes,)
        Children; not used at leaves.
    default_left : ndarray of bool of shape (n_nodes,)
        Where a missing value goes.
    value : ndarray of float of shape (n_nodes, n_values)
        What a leaf adds to the score: one number, or one for each output.
    cover : ndarray of float of shape (n_nodes,)
        Training weight that reached the node.
    label : ndarray of int of shape (n_nodes,)
        The library's number of the leaf.
    output : int
        The output that a tree with single numbers adds to.
    zero_is_missing : ndarray of bool of shape (n_nodes,) or None
        Whether zero is missing at a node (LightGBM's ``zero_as_missing``).
    categories : mapping of int to sequence of int
        The categories that go left, for each categorical node. All others go right.
    """

    feature: Ints
    threshold: Floats
    left: Ints
    right: Ints
    default_left: Bools
    value: Floats
    cover: Floats
    label: Ints
    output: int = 0
    zero_is_missing: Bools | None = None
    categories: Mapping[int, Sequence[int] | NDArray[Any]] = field(default_factory=dict)


def bitset(categories: Sequence[int] | NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[np.uint32]]:
    """Pack categories into words of 32 bits; words without a category are left out.

    So a set takes the memory of its members, however large their numbers are.

    Returns
    -------
    word : ndarray of int32
        Numbers of the words, increasing: category c is in word c // 32.
    bits : ndarray of uint32
        The words.

    Examples
    --------
    >>> word, bits = bitset([0, 2, 33, 2**24])
    >>> word.tolist(), bits.tolist()
    ([0, 1, 524288], [5, 2, 1])
    """
    members = np.unique(np.asarray(categories, dtype=np.int64))
    if members.size and (members[0] < 0 or members[-1] >= 2**31):
        raise ValueError(f"categories must lie between 0 and 2**31 - 1, got {members[0]} and {members[-1]}.")
    word, first = np.unique(members // 32, return_index=True)
    bits = np.left_shift(np.uint32(1), (members % 32).astype(np.uint32))
    return word.astype(np.int32), np.bitwise_or.reduceat(bits, first) if members.size else bits


def rounds_to_keep(iterations: int | None, n_rounds: int) -> int:
    """Return how many rounds of a model to keep, which is all of them for None."""
    if iterations is None:
        return n_rounds
    if not 0 < iterations <= n_rounds:
        raise ValueError(f"iterations must lie between 1 and {n_rounds}, the rounds of the model; got {iterations}.")
    return iterations


def pack(trees: Sequence[Tree], n_features: int, n_outputs: int, dtype: DTypeLike) -> dict[str, Any]:
    """Put trees into one set of arrays, as :class:`~grbb_ext.forest.Forest` holds them.

    Parameters
    ----------
    trees : sequence of Tree
        In the order in which their values are added.
    n_features : int
        Number of columns.
    n_outputs : int
        Scores per row.
    dtype : dtype
        Precision of thresholds and values.

    Returns
    -------
    dict of str to ndarray
        The arrays of a forest. Nodes that cannot be reached (XGBoost keeps pruned ones) are left out.

    Raises
    ------
    ValueError
        If a child does not exist, a node has two parents, or a split names a column that does not exist.
    """
    n_values = trees[0].value.shape[1] if trees else 1
    for tree in trees:
        _check_lengths(tree)
        if not 0 <= tree.output < n_outputs or tree.value.shape[1] != n_values:
            raise ValueError(f"a tree adds to output {tree.output} of {n_outputs}.")
    column = {name: _joined(trees, name, kind) for name, kind in _COLUMNS.items()}
    column["value"] = np.concatenate([np.zeros((0, n_values), dtype=np.float32), *(tree.value for tree in trees)])
    first = np.cumsum([0, *(len(tree.feature) for tree in trees)])
    owner = np.repeat(np.arange(len(trees)), np.diff(first))
    order, depth = _breadth_first(column["feature"], column["left"], column["right"], first, owner, n_features)
    new_id = np.full(owner.size, -1, dtype=np.int32)
    new_id[order] = np.arange(order.size, dtype=np.int32)
    inner = column["feature"][order] >= 0
    sets = [
        (new_id[begin + node], *bitset(members))
        for tree, begin in zip(trees, first.tolist(), strict=False)
        for node, members in tree.categories.items()
        if new_id[begin + node] >= 0
    ]
    category_set = np.full(order.size, -1, dtype=np.int32)
    category_set[[node for node, _, _ in sets]] = np.arange(len(sets), dtype=np.int32)
    threshold = np.where(category_set < 0, column["threshold"][order], np.nan)
    left = np.where(inner, column["left"][order] + first[owner[order]], order)
    return {
        "feature": np.where(inner, column["feature"][order], -1).astype(np.int32),
        # A leaf is its own left child, and everything goes left there: a walk may take a step too many.
        "threshold": np.where(inner, threshold, np.inf).astype(dtype),
        "left": new_id[left],
        "default_left": column["default_left"][order] | ~inner,
        "zero_is_missing": column["zero_is_missing"][order] & inner,
        "category_set": category_set,
        "category_start": np.cumsum([0, *(word.size for _, word, _ in sets)]).astype(np.int64),
        "category_word": np.concatenate([np.zeros(0, dtype=np.int32), *(word for _, word, _ in sets)]),
        "category_bits": np.concatenate([np.zeros(0, dtype=np.uint32), *(bits for _, _, bits in sets)]),
        "value": np.where(inner[:, None], 0, column["value"][order]).astype(dtype),
        "cover": column["cover"][order].astype(np.float64),
        "leaf_label": np.where(inner, -1, column["label"][order]).astype(np.int32),
        "depth": depth,
        "tree_start": np.cumsum([0, *np.bincount(owner[order], minlength=len(trees))]).astype(np.int32),
        "tree_output": np.array([tree.output for tree in trees], dtype=np.int32),
    }


# float32 joins the precision of the trees without widening it.
_COLUMNS: dict[str, DTypeLike] = {
    "feature": np.int32, "threshold": np.float32, "left": np.int32, "right": np.int32, "default_left": bool,
    "zero_is_missing": bool, "cover": np.float32, "label": np.int32,
}  # fmt: skip


def _joined(trees: Sequence[Tree], name: str, kind: DTypeLike) -> NDArray[Any]:
    """Return a column of all trees, one after the other."""
    parts = [getattr(tree, name) for tree in trees]
    for i, part in enumerate(parts):
        if part is None:  # nowhere is zero a missing value
            parts[i] = np.zeros(len(trees[i].feature), dtype=kind)
    return np.concatenate([np.zeros(0, dtype=kind), *parts])


def _check_lengths(tree: Tree) -> None:
    n_nodes = len(tree.feature)
    if n_nodes == 0:
        raise ValueError("a tree has no nodes.")
    for name in ("threshold", "left", "right", "default_left", "value", "cover", "label"):
        if len(getattr(tree, name)) != n_nodes:
            raise ValueError(f"a tree has {n_nodes} nodes but {len(getattr(tree, name))} entries in {name!r}.")


def _breadth_first(
    feature: Ints, left: Ints, right: Ints, first: NDArray[np.intp], owner: NDArray[np.intp], n_features: int
) -> tuple[NDArray[np.intp], Ints]:
    """Return the nodes that can be reached and their depths: by tree, level by level, siblings side by side.

    All trees go down a level together. Tree t owns the nodes from ``first[t]`` on, and its children count from there.
    """
    level = first[:-1]
    levels = [level]
    place = np.full(owner.size, -1, dtype=np.intp)
    place[level] = 0
    while (level := level[feature[level] >= 0]).size:
        if feature[level].max() >= n_features:
            raise ValueError(f"a split reads column {feature[level].max()} of {n_features}.")
        children = np.column_stack([left[level], right[level]])
        tree = owner[level]
        n_nodes = first[tree + 1] - first[tree]
        outside = (children < 0) | (children >= n_nodes[:, None])
        if outside.any():
            raise ValueError(f"a child lies outside the {n_nodes[outside.any(axis=1)][0]} nodes of its tree.")
        level = (children + first[tree][:, None]).ravel()
        is_known = bool((place[level] >= 0).any())
        place[level] = np.arange(level.size)
        if is_known or (place[level] != np.arange(level.size)).any():
            raise ValueError("a node of a tree has two parents.")
        levels.append(level)
    order = np.concatenate(levels)
    depth = np.repeat(np.arange(len(levels), dtype=np.int32), [level.size for level in levels])
    by_tree = np.argsort(owner[order], kind="stable")
    return order[by_tree], depth[by_tree]


if TYPE_CHECKING:
    from grbb_ext.forest._forest import Forest


def _inner_bottom_up(forest: Forest) -> Iterator[tuple[NDArray[np.intp], Ints, Ints]]:
    """Yield the inner nodes of each depth and their children, the deepest first."""
    inner = np.flatnonzero(forest.feature >= 0)
    inner = inner[np.argsort(forest.depth[inner], kind="stable")]
    starts = np.flatnonzero(np.diff(forest.depth[inner])) + 1
    for nodes in reversed(np.split(inner, starts)):
        yield nodes, forest.left[nodes], forest.left[nodes] + 1


def bounds(forest: Forest) -> tuple[Floats, Floats]:
    """Return the least and the greatest value among the leaves below each node, each of shape (n_nodes, n_values)."""
    lowest, highest = forest.value.copy(), forest.value.copy()
    for node, left, right in _inner_bottom_up(forest):
        lowest[node] = np.minimum(lowest[left], lowest[right])
        highest[node] = np.maximum(highest[left], highest[right])
    for extreme in (lowest, highest):
        extreme.setflags(write=False)
    return lowest, highest


def mean(forest: Forest) -> Floats:
    """Return the mean of the leaves below each node by training weight, in the forest's precision and its bounds."""
    means = forest.value.astype(np.float64)
    for node, left, right in _inner_bottom_up(forest):
        weight = np.maximum(forest.cover[left], 0.0)
        total = weight + np.maximum(forest.cover[right], 0.0)
        share = np.divide(weight, total, out=np.full(node.size, 0.5), where=total > 0)[:, None]
        means[node] = share * means[left] + (1 - share) * means[right]
    clipped = np.clip(means.astype(forest.value.dtype), *forest.node_bounds)
    clipped.setflags(write=False)
    return clipped


def height(forest: Forest) -> Ints:
    """Return how many steps it takes from each node to the furthest leaf below it."""
    levels = np.zeros(forest.n_nodes, dtype=np.int32)
    for node, left, right in _inner_bottom_up(forest):
        levels[node] = 1 + np.maximum(levels[left], levels[right])
    levels.setflags(write=False)
    return levels


def path_bits(forest: Forest) -> NDArray[np.uint64]:
    """Return the features above each node as bits, in the order of ``forest.features_used()``: (n_words, n_nodes)."""
    used = forest.features_used()
    bits = np.zeros((-(-used.size // 64), forest.n_nodes), dtype=np.uint64)
    for node, left, right in reversed(list(_inner_bottom_up(forest))):
        column = np.searchsorted(used, forest.feature[node])
        below = bits[:, node]
        below[column // 64, np.arange(node.size)] |= np.left_shift(np.uint64(1), (column % 64).astype(np.uint64))
        bits[:, left] = bits[:, right] = below
    return bits
