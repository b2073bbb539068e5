"""LightGBM's saved model (text) as trees."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from grbb_ext.forest._tree import Tree, pack

_CATEGORICAL, _DEFAULT_LEFT = 1, 2
_ZERO, _NAN = 1, 2


def read_lightgbm(text: str, iterations: int | None = None) -> dict[str, Any]:
    """Read the text of ``Booster.save_model`` or ``model_to_string``.

    LightGBM compares and adds in float64, in the order of the trees. What happens to NaN depends on the node's missing
    type: with "NaN" and "Zero" it goes the default way, with "None" it counts as 0, whose side is known beforehand. So
    one default direction is enough; with "Zero" a value of 0 goes the default way, too. At categorical nodes NaN goes
    right. Shrinkage, dart's weights and the starting score are in the leaves already.

    Parameters
    ----------
    text : str
        The model.
    iterations : int or None, default=None
        Boosting rounds to keep; None keeps what the text has.

    Returns
    -------
    dict
        The fields of a forest.
    """
    head, *blocks = text.split("\nTree=")
    header = _fields(head)
    if "max_feature_idx" not in header or "\nend of trees" not in text:
        raise ValueError("the header or the line 'end of trees' is missing.")
    n_sizes = len(header.get("tree_sizes", "").split())
    if len(blocks) != n_sizes:
        raise ValueError(f"the header announces {n_sizes} trees, but there are {len(blocks)}.")
    n_outputs = int(header.get("num_tree_per_iteration", header["num_class"]))
    if iterations is not None:
        if not 0 < iterations * n_outputs <= len(blocks):
            rounds = len(blocks) // n_outputs
            raise ValueError(f"iterations must lie between 1 and {rounds}, the rounds of the model; got {iterations}.")
        blocks = blocks[: iterations * n_outputs]
    n_features = int(header["max_feature_idx"]) + 1
    names = tuple(header.get("feature_names", "").split())
    if len(names) != n_features:
        raise ValueError(f"the model has {len(names)} feature names for {n_features} features.")
    trees = [_read_tree(_fields(block.split("\n\n", 1)[0]), i % n_outputs) for i, block in enumerate(blocks)]
    return {
        **pack(trees, n_features, n_outputs, np.float64),
        "base": np.zeros(n_outputs),
        "n_features": n_features,
        # LightGBM invents names where the data had none.
        "feature_names": None if names == tuple(f"Column_{i}" for i in range(n_features)) else names,
        "categories": _read_categories(text),
        "library": "lightgbm",
        "averaged": "average_output" in header,
    }


def _fields(block: str) -> dict[str, str]:
    """Split lines ``key=value``; a line without = is a key."""
    return {key: value for key, _, value in (line.strip().partition("=") for line in block.splitlines())}


def _array(fields: dict[str, str], key: str, dtype: DTypeLike, n: int) -> NDArray[Any]:
    values = np.array(fields[key].split(), dtype=dtype)
    if values.size != n:
        raise ValueError(f"a tree has {values.size} entries in {key!r} where {n} belong.")
    return values


def _read_tree(fields: dict[str, str], output: int) -> Tree:
    if fields.get("is_linear", "0") != "0":
        raise ValueError("linear_tree=true puts a linear model into each leaf, which a Forest does not hold.")
    n_leaves = int(fields["num_leaves"])
    n_inner = n_leaves - 1
    if n_leaves < 1:
        raise ValueError(f"a tree has {n_leaves} leaves.")
    leaf_value = _array(fields, "leaf_value", np.float64, n_leaves)
    nothing = np.zeros(n_leaves, dtype=np.int32)
    feature, left, right, kind = (np.zeros(n_inner, dtype=np.int32) for _ in range(4))
    threshold, leaf_count, inner_count = np.zeros(n_inner), np.ones(n_leaves), np.ones(n_inner)
    if n_inner:  # a tree of one leaf has no other lines
        feature = _array(fields, "split_feature", np.int32, n_inner)
        threshold = _array(fields, "threshold", np.float64, n_inner)
        kind = _array(fields, "decision_type", np.int32, n_inner)
        left, right = (_array(fields, key, np.int32, n_inner) for key in ("left_child", "right_child"))
        leaf_count = _array(fields, "leaf_count", np.float64, n_leaves)
        inner_count = _array(fields, "internal_count", np.float64, n_inner)
    is_categorical = (kind & _CATEGORICAL) > 0
    missing_type = (kind >> 2) & 3
    # With missing type "None" NaN counts as 0.
    default_left = np.where(
        (missing_type == _ZERO) | (missing_type == _NAN), (kind & _DEFAULT_LEFT) > 0, threshold >= 0
    )
    return Tree(
        # Inner nodes keep their numbers; leaf j, which LightGBM writes as ~j, follows as n_inner + j.
        feature=np.concatenate([feature, nothing - 1]),
        threshold=np.concatenate([threshold, np.zeros(n_leaves)]),
        left=np.concatenate([np.where(left < 0, n_inner + ~left, left), nothing]),
        right=np.concatenate([np.where(right < 0, n_inner + ~right, right), nothing]),
        default_left=np.concatenate([default_left & ~is_categorical, nothing > 0]),
        value=np.concatenate([np.zeros(n_inner), leaf_value])[:, None],
        cover=np.concatenate([inner_count, leaf_count]),
        label=np.concatenate([np.zeros(n_inner, dtype=np.int32), np.arange(n_leaves, dtype=np.int32)]),
        output=output,
        zero_is_missing=np.concatenate([(missing_type == _ZERO) & ~is_categorical, nothing > 0]),
        categories=_category_sets(fields, threshold, is_categorical),
    )


def _category_sets(fields: dict[str, str], threshold: Any, is_categorical: Any) -> dict[int, NDArray[Any]]:
    """Return the categories of each categorical node; its threshold is the number of the set."""
    if not is_categorical.any():
        return {}
    starts = [int(start) for start in fields["cat_boundaries"].split()]
    words = np.array(fields["cat_threshold"].split(), dtype=np.uint32)
    sets = {}
    for node in np.flatnonzero(is_categorical).tolist():
        which = int(threshold[node])
        if not 0 <= which < len(starts) - 1 or starts[which + 1] > words.size:
            raise ValueError(f"categorical node {node} names a set that does not exist.")
        bits = np.unpackbits(words[starts[which] : starts[which + 1]].astype("<u4").view(np.uint8), bitorder="little")
        sets[node] = np.flatnonzero(bits)
    return sets


def _read_categories(text: str) -> dict[int, tuple[Any, ...]]:
    """Return the names of the categories, keyed by the position among the categorical columns of a frame."""
    marker = "\npandas_categorical:"
    at = text.rfind(marker)
    if at < 0:
        return {}
    listed = json.loads(text[at + len(marker) :].strip().splitlines()[0])
    return {i: tuple(names) for i, names in enumerate(listed or [])}
