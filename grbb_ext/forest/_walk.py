"""Rows as a library sees them, and their walk down the trees by numpy: all take a step of one tree at a time.

Every node sends a row left where x <= threshold, so NaN and the two special kinds of node are all that a step has to
treat apart: zero counts as missing (LightGBM's ``zero_as_missing``), and categories are looked up in a bitset. A leaf
is its own left child and sends everything left, so a step too many does no harm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext.forest._tree import CATEGORY_FLOOR
from grbb_ext.table import Schema, Unseen, column_names, listed_categories, read_table

if TYPE_CHECKING:
    from grbb_ext.forest._forest import Forest

Nodes = NDArray[np.intp]

# Larger values are no categories; the conversion to an integer must not overflow.
CATEGORY_CEILING = float(2**31)
# LightGBM's kZeroThreshold, a float32 constant in float64 comparisons: numbers that are not further from 0 are zero.
ZERO = float(np.float32(1e-35))
# Finished rows are dropped from a walk once they make up this share of it; before, gathering them costs more.
_FINISHED_SHARE = 0.4


def goes_left(forest: Forest, x: NDArray[Any], node: Nodes, plain: bool) -> NDArray[np.bool_]:
    """Return which of the values `x` go left at the nodes `node`.

    Parameters
    ----------
    forest : Forest
        The model.
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
    left = x <= forest.threshold.take(node)
    missing = np.isnan(x)
    if not plain:
        missing |= forest.zero_is_missing.take(node) & (np.abs(x) <= ZERO)
        which = forest.category_set.take(node)
        at = np.flatnonzero(which >= 0)
        left[at] = _in_set(forest, x[at], which[at])
    if missing.any():
        left = np.where(missing, forest.default_left.take(node), left)
    return left


def _in_set(forest: Forest, x: NDArray[Any], which: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return which values are categories of the sets `which`."""
    valid = (x > CATEGORY_FLOOR[forest.library]) & (x < CATEGORY_CEILING)
    category = np.where(valid, x, 0).astype(np.int64)
    if not forest.category_key.size:
        return np.zeros(x.size, dtype=bool)
    key = (which.astype(np.int64) << 32) + category // 32
    place = np.minimum(np.searchsorted(forest.category_key, key), forest.category_key.size - 1)
    bits = np.where(forest.category_key[place] == key, forest.category_bits[place], np.uint32(0))
    return valid & ((bits >> (category % 32).astype(np.uint32)) & 1 > 0)


def walk(
    forest: Forest, X: NDArray[Any], nodes: NDArray[np.int32], start_tree: int, known: NDArray[np.bool_] | None = None
) -> NDArray[np.bool_] | None:
    """Move rows down the trees as far as known features allow.

    Parameters
    ----------
    forest : Forest
        The model.
    X : ndarray of shape (n, d)
        Rows, contiguous, in the forest's precision. An entry that is not known is inf, which no row may hold.
    nodes : ndarray of int32 of shape (n_trees, n)
        Where each row stands in each tree; changed in place.
    start_tree : int
        The tree of the first row of `nodes`.
    known : ndarray of bool of shape (n, d) or None, default=None
        Which entries are known; None is all.

    Returns
    -------
    ndarray of bool of shape (n, d), or None
        The features before which walks of each row are stopped; None where all is known, for then none is.
    """
    n, d = X.shape
    needed = np.zeros((n, d), dtype=bool)
    offset = np.arange(n) * d
    for t in range(nodes.shape[0]):
        tree = start_tree + t
        plain = bool(forest.tree_is_plain[tree])
        active: Any = slice(None)
        node, start = nodes[t].astype(np.intp), offset
        for _ in range(forest.height[forest.tree_start[tree]]):
            feature = forest.feature.take(node)
            moves = feature >= 0
            # A leaf reads entry -1 of the row, which is clipped or another row's: `moves` is False there anyway.
            x = X.ravel().take(start + feature, mode="clip")
            if known is not None:
                moves &= x != np.inf
            n_moves = np.count_nonzero(moves)
            if moves.size - n_moves > (_FINISHED_SHARE * moves.size if known is None else 0):
                nodes[t, active] = node
                active = np.flatnonzero(moves) if isinstance(active, slice) else active[moves]
                node, start, x = node[moves], start[moves], x[moves]
            if n_moves == 0:
                break
            node = forest._steps.take(node) + ~goes_left(forest, x, node, plain)
        nodes[t, active] = node
        if known is not None:
            feature = forest.feature.take(nodes[t])
            row = np.flatnonzero(feature >= 0)
            needed[row, feature[row]] = True
    return None if known is None else needed


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


def as_rows(forest: Forest, X: Any) -> NDArray[Any]:
    """Return X as the library of the forest would read it.

    Parameters
    ----------
    forest : Forest
        The model.
    X : array-like, sparse matrix or frame of shape (N, d)
        Rows, as :func:`grbb_ext.table.read_table` takes them. Absent entries of a sparse matrix are missing for
        XGBoost and 0 for LightGBM, as in the libraries.

    Returns
    -------
    ndarray of shape (N, d)
        Contiguous; float32 for XGBoost, float64 for LightGBM; missing values are NaN.

    Raises
    ------
    ValueError
        If the columns are not those of the model, or hold what :func:`grbb_ext.table.read_table` refuses.
    """
    numeric = sp.issparse(X) or (isinstance(X, np.ndarray) and X.dtype.kind in "biuf")
    # Arrays of numbers hold codes, and trees send codes that no training row had their own way.
    schema = Schema(n_columns=forest.n_features) if numeric else _schema(forest, X)
    unseen: Unseen = "error" if forest.library == "xgboost" else "missing"
    values = read_table(X, schema=schema, unseen=unseen, missing=forest.missing, min_rows=0).values
    if sp.issparse(values):
        values = filled(forest, values)
    elif numeric and X.dtype not in (np.float32, np.float64):
        # LightGBM reads everything that is not a float as float32, and so large integers lose digits.
        values = values.astype(np.float32)
    values = np.ascontiguousarray(values, dtype=forest.threshold.dtype)
    if not np.isnan(forest.missing):
        values = np.where(values == values.dtype.type(forest.missing), values.dtype.type(np.nan), values)
    if forest.library == "lightgbm" and not (sp.issparse(X) and X.format != "csc"):
        # LightGBM reads numbers that are that small as 0, except from sparse rows.
        tiny = (np.abs(values) <= ZERO) & (values != 0)
        if tiny.any():
            values = np.where(tiny, 0.0, values)
    return values


def filled(forest: Forest, X: Any) -> NDArray[Any]:
    """Fill in the absent entries of a sparse matrix: missing for XGBoost, 0 for LightGBM, as in the libraries."""
    entries = sp.coo_array(X)
    absent = np.nan if forest.library == "xgboost" else 0.0
    values = np.full(entries.shape, absent, dtype=forest.threshold.dtype)
    entries.sum_duplicates()
    row, column = entries.coords
    values[row, column] = entries.data
    return values


def _schema(forest: Forest, X: Any) -> Schema:
    """Return what the columns of frames or objects should be."""
    categories = forest.categories
    if forest.category_lists:  # LightGBM pairs them with the category columns of the frame, too
        found = read_table(X, min_rows=0).schema.categorical
        if len(found) != len(forest.category_lists):
            raise ValueError(
                f"The model has names of categories for {len(forest.category_lists)} of its columns and does not tell "
                f"for which; X has {len(found)} such columns. Pass a frame with the types of the training frame."
            )
        categories = dict(zip(found, forest.category_lists, strict=True))
    unreadable = [j for j in listed_categories(X) if categories.get(j) == ()]
    if unreadable and forest.library == "xgboost":
        column = unreadable[0] if forest.feature_names is None else forest.feature_names[unreadable[0]]
        raise ValueError(
            f"The model has no readable names of the categories of column {column!r}: before 3.4 XGBoost damages names "
            "that are not ASCII where it saves them. Pass their codes, numbered as the type of the column listed them "
            "in training."
        )
    if not categories:
        # Without stored names the codes of the type are what the model was trained on.
        categories = listed_categories(X)
    names = forest.feature_names
    if names is not None and forest.library == "lightgbm":  # its files have "_" for blanks
        given = {name.replace(" ", "_"): name for name in column_names(X) or ()}
        names = tuple(given.get(name.replace(" ", "_"), name) for name in names)
    return Schema(tuple(sorted(categories)), categories, names, forest.n_features)
