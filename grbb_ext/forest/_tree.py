"""What lies below and above each node of a forest: bounds and means of its leaves, features on the way to it."""

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
# A bitset has to be allocated up to its largest member; a damaged file must not ask for gigabytes.
_MOST_CATEGORIES = 2**24


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


def breadth_first(tree: Tree, n_features: int) -> list[Ints]:
    """Return the nodes that can be reached, level by level, two children of a node side by side.

    Parameters
    ----------
    tree : Tree
        The tree.
    n_features : int
        Number of columns.

    Returns
    -------
    list of ndarray
        The nodes of each level.

    Raises
    ------
    ValueError
        If a child does not exist, a node has two parents, or a split names a column that does not exist.
    """
    n_nodes = len(tree.feature)
    if n_nodes == 0:
        raise ValueError("a tree has no nodes.")
    for name in ("threshold", "left", "right", "default_left", "value", "cover", "label"):
        if len(getattr(tree, name)) != n_nodes:
            raise ValueError(f"a tree has {n_nodes} nodes but {len(getattr(tree, name))} entries in {name!r}.")
    levels = [np.zeros(1, dtype=np.int32)]
    seen = np.zeros(n_nodes, dtype=bool)
    seen[0] = True
    while True:
        inner = levels[-1][tree.feature[levels[-1]] >= 0]
        if inner.size == 0:
            return levels
        if tree.feature[inner].max() >= n_features:
            raise ValueError(f"a split reads column {tree.feature[inner].max()} of {n_features}.")
        children = np.column_stack([tree.left[inner], tree.right[inner]]).ravel()
        if children.min() < 0 or children.max() >= n_nodes:
            raise ValueError(f"a child lies outside the {n_nodes} nodes of its tree.")
        if seen[children].any() or np.unique(children).size != children.size:
            raise ValueError("a node of a tree has two parents.")
        seen[children] = True
        levels.append(children)


def bitset(categories: Sequence[int] | NDArray[Any]) -> NDArray[np.uint32]:
    """Pack categories into words of 32 bits.

    Examples
    --------
    >>> bitset([0, 2, 33]).tolist()
    [5, 2]
    """
    members = np.asarray(categories, dtype=np.int64)
    if members.size == 0:
        return np.zeros(0, dtype=np.uint32)
    if members.min() < 0 or members.max() > _MOST_CATEGORIES:
        raise ValueError(f"categories must lie between 0 and {_MOST_CATEGORIES}, got {members.min()}, {members.max()}.")
    words = np.zeros(int(members.max()) // 32 + 1, dtype=np.uint32)
    np.bitwise_or.at(words, members // 32, np.uint32(1) << (members % 32).astype(np.uint32))
    return words


def pack(trees: Sequence[Tree], n_features: int, n_outputs: int, dtype: DTypeLike) -> dict[str, NDArray[Any]]:
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
    """
    n_values = trees[0].value.shape[1] if trees else 1
    category_words: list[NDArray[np.uint32]] = []
    starts = [0]
    parts: list[dict[str, NDArray[Any]]] = [_empty(n_values)]
    for tree in trees:
        if not 0 <= tree.output < n_outputs or tree.value.shape[1] != n_values:
            raise ValueError(f"a tree adds to output {tree.output} of {n_outputs}.")
        levels = breadth_first(tree, n_features)
        parts.append(_renumber(tree, levels, starts[-1], category_words))
        starts.append(starts[-1] + sum(level.size for level in levels))
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    for name in ("threshold", "value"):
        arrays[name] = arrays[name].astype(dtype)
    return arrays | {
        "tree_start": np.array(starts, dtype=np.int32),
        "tree_output": np.array([tree.output for tree in trees], dtype=np.int32),
        "category_start": np.cumsum([0, *(words.size for words in category_words)]).astype(np.int32),
        "category_bits": np.concatenate([np.zeros(0, dtype=np.uint32), *category_words]),
    }


def _renumber(
    tree: Tree, levels: list[Ints], start: int, category_words: list[NDArray[np.uint32]]
) -> dict[str, NDArray[Any]]:
    """Return the columns of a tree in breadth-first order, with ids from `start`; its bitsets join `category_words`."""
    order = np.concatenate(levels)
    inner = tree.feature[order] >= 0
    new_id = np.full(len(tree.feature), -1, dtype=np.int32)
    new_id[order] = np.arange(start, start + order.size, dtype=np.int32)
    category_set = np.full(order.size, -1, dtype=np.int32)
    for node, members in tree.categories.items():
        if new_id[node] >= 0:
            category_set[new_id[node] - start] = len(category_words)
            category_words.append(bitset(members))
    threshold = np.where(category_set < 0, tree.threshold[order], np.nan)
    zero = np.zeros(order.size, dtype=bool) if tree.zero_is_missing is None else tree.zero_is_missing[order]
    return {
        "feature": np.where(inner, tree.feature[order], -1).astype(np.int32),
        # A leaf is its own left child, and everything goes left there: a walk may take a step too many.
        "threshold": np.where(inner, threshold, np.inf),
        "left": np.where(inner, new_id[np.where(inner, tree.left[order], 0)], new_id[order]),
        "default_left": tree.default_left[order] | ~inner,
        "zero_is_missing": zero & inner,
        "category_set": category_set,
        "value": np.where(inner[:, None], 0, tree.value[order]),
        "cover": tree.cover[order].astype(np.float64),
        "leaf_label": np.where(inner, -1, tree.label[order]).astype(np.int32),
        "depth": np.repeat(np.arange(len(levels), dtype=np.int32), [level.size for level in levels]),
    }


def _empty(n_values: int) -> dict[str, NDArray[Any]]:
    """Return the columns of no tree."""
    ints = {name: np.zeros(0, dtype=np.int32) for name in ("feature", "left", "category_set", "leaf_label", "depth")}
    flags = {name: np.zeros(0, dtype=bool) for name in ("default_left", "zero_is_missing")}
    # float32 joins the precision of the trees without widening it
    floats = {name: np.zeros(0, dtype=np.float32) for name in ("threshold", "cover")}
    return ints | flags | floats | {"value": np.zeros((0, n_values), dtype=np.float32)}


if TYPE_CHECKING:
    from grbb_ext.forest._forest import Forest


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
