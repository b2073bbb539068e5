"""LightGBM's saved model (text) as trees."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from grbb_ext.forest._tree import MOST_OUTPUTS_OF_NO_TREES, Tree, pack, rounds_to_keep

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
    if text.startswith("\n"):
        raise ValueError("the file does not begin with the line 'tree'.")
    body, *rest = _END.split(text, maxsplit=1)
    head, *blocks = body.split("\nTree=")
    header = _fields((head if blocks else text).split("\n"), bare=True)
    version = header.get("version", "v2")
    if version not in _VERSIONS:
        raise ValueError(f"the format {version!r} is not known.")
    for key in ("tree", "num_class", "label_index", "max_feature_idx", "feature_infos"):
        if key not in header:
            raise ValueError(f"the header has no {key!r}.")
    if not rest or "\nTree=" in rest[0] or (version != "v2" and not rest[0].startswith("end of trees")):
        raise ValueError("the line 'end of trees' is missing.")
    if "tree_sizes" in header or version != "v2":  # files of the first versions are read line by line
        _check_sizes(header, blocks)
    _check_rest(rest[0] if blocks else text)
    n_outputs = _whole(header.get("num_tree_per_iteration", header["num_class"]), "num_tree_per_iteration")
    if _whole(header["num_class"], "num_class") != n_outputs:
        raise ValueError(f"the header announces {header['num_class']} classes, but {n_outputs} trees in each round.")
    if len(blocks) % n_outputs or (not blocks and n_outputs > MOST_OUTPUTS_OF_NO_TREES):
        raise ValueError(f"there are {len(blocks)} trees for rounds of {n_outputs}.")
    n_trees = rounds_to_keep(iterations, len(blocks) // n_outputs) * n_outputs
    kept = [_tree_fields(block) for block in blocks][:n_trees]
    n_features = _whole(header["max_feature_idx"], "max_feature_idx", least=0) + 1
    names = _words(header.get("feature_names", ""))
    for entry, what in (("feature_names", "feature names"), ("feature_infos", "feature infos")):
        n_entries = len(_words(header.get(entry, "")))
        if n_entries != n_features:
            raise ValueError(f"the model has {n_entries} {what} for {n_features} features.")
    trees = [_read_tree(fields, i % n_outputs) for i, fields in enumerate(kept)]
    arrays = pack(trees, n_features, n_outputs, np.float64)
    if np.diff(arrays["tree_start"]).tolist() != [tree.feature.size for tree in trees]:
        raise ValueError("a tree has nodes that cannot be reached.")
    return {
        **arrays,
        "base": np.zeros(n_outputs),
        "n_features": n_features,
        # LightGBM invents names where the data had none.
        "feature_names": None if names == tuple(f"Column_{i}" for i in range(n_features)) else names,
        **_read_categories(text, _words(header["feature_infos"])),
        "library": "lightgbm",
        "averaged": "average_output" in header,
        "objective": header.get("objective", ""),
    }


# Before v3 a file did not say where its trees end.
_END = re.compile(r"\n(?=end of trees|feature[ _]importances:)")
_VERSIONS = ("v2", "v3", "v4")
# LightGBM reads that many lines of a tree.
_MOST_LINES = 22
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f]")
_INTEGER = r"-?[0-9]+"
_NUMBER = r"-?(?:[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|inf)"
# By kind of array; "*" is what no prediction needs.
_LIST_OF = {
    kind: re.compile(rf"(?:(?:{word})(?: (?:{word}))*)?")
    for kind, word in {"i": _INTEGER, "f": _NUMBER, "*": rf"{_NUMBER}|-?nan"}.items()
}


def _fields(lines: list[str], *, bare: bool = False) -> dict[str, str]:
    """Split lines ``key=value``; a line without = is a key, where that may be."""
    fields: dict[str, str] = {}
    for line in lines:
        key, equals, value = line.partition("=")
        if not line and bare:
            continue
        if key in fields or not (equals or bare) or _CONTROL.search(line):
            raise ValueError(f"the line {line[:60]!r} belongs to no model, or occurs twice.")
        fields[key] = value
    return fields


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.split(" ") if word)


def _whole(text: str, what: str, least: int = 1) -> int:
    if not re.fullmatch(_INTEGER, text) or not least <= int(text[:20]) < 2**31:
        raise ValueError(f"invalid literal {text[:40]!r} for {what}.")
    return int(text)


def _check_sizes(header: dict[str, str], blocks: list[str]) -> None:
    """Refuse trees that do not stand where the header says, for there the library looks for them."""
    announced = [_whole(size, "tree_sizes") for size in _words(header.get("tree_sizes", ""))]
    if len(announced) != len(blocks):
        raise ValueError(f"the header announces {len(announced)} trees, but there are {len(blocks)}.")
    # The newline before "Tree=" is that of the block before it; empty lines after the last tree are not all counted.
    sizes = [len(block.encode()) + len("Tree=\n") for block in blocks]
    if sizes[:-1] != announced[:-1] or (sizes and sizes[-1] < announced[-1]):
        raise ValueError("the trees are not as long as the header says.")


def _check_rest(rest: str) -> None:
    """Refuse parameters that are not written as LightGBM does, for it ends the process where it cannot read them."""
    _, found, parameters = rest.partition("\nparameters:\n")
    if not found:
        return
    lines, found, _ = parameters.partition("\nend of parameters\n")
    if not found or not all(re.fullmatch(r"(?:\[\w+: [^\x00-\x1f]*\])?", line) for line in lines.split("\n")):
        raise ValueError("the parameters of training are damaged, or their end is missing.")


def _tree_fields(block: str) -> dict[str, str]:
    """Return the entries of a tree: the lines after its number, up to the first empty one."""
    number, *lines = block.split("\n")
    _whole(number, "the number of a tree", least=0)
    end = lines.index("")  # a block ends with empty lines, or it is cut off
    if any(lines[end:]) or end > _MOST_LINES:
        raise ValueError("a tree has lines that do not belong to it.")
    return _fields(lines[:end])


def _listed(fields: dict[str, str], key: str, kind: str, n: int) -> list[str]:
    """Return the n numbers of a list, as text."""
    words = fields[key].split()
    if not _LIST_OF[kind].fullmatch(fields[key]) or len(words) != n:
        raise ValueError(f"a tree has entries in {key!r} that are not numbers, or not {n}, but {len(words)}.")
    return words


def _array(fields: dict[str, str], key: str, dtype: DTypeLike, n: int) -> NDArray[Any]:
    kind = np.dtype(dtype)
    if kind.kind == "f":
        values = np.array([float(word) for word in _listed(fields, key, "f", n)])
        fits = np.isinf(values).sum() == fields[key].count("inf")
    else:
        values, limits = np.array([int(word) for word in _listed(fields, key, "i", n)]), np.iinfo(kind)
        fits = n == 0 or (limits.min <= values.min() and values.max() <= limits.max)
    if not fits:
        raise ValueError(f"a tree has entries in {key!r} that are too large.")
    return values.astype(kind)


def _read_tree(fields: dict[str, str], output: int) -> Tree:
    linear = fields.get("is_linear", "0")
    if linear == "1":
        raise ValueError("linear_tree=true puts a linear model into each leaf, which a Forest does not hold.")
    if linear != "0":
        raise ValueError(f"a tree has is_linear={linear[:40]!r}.")
    n_leaves = _whole(fields["num_leaves"], "num_leaves")
    n_inner = n_leaves - 1
    if "shrinkage" not in fields:
        raise ValueError("a tree is cut off: its last line, 'shrinkage', is missing.")
    leaf_value = _array(fields, "leaf_value", np.float64, n_leaves)
    if not np.isfinite(leaf_value).all():
        raise ValueError("a tree has a leaf that is not a finite number, so its predictions are none either.")
    nothing = np.zeros(n_leaves, dtype=np.int32)
    feature, left, right, kind = (np.zeros(n_inner, dtype=np.int32) for _ in range(4))
    threshold, leaf_count, inner_count = np.zeros(n_inner), np.ones(n_leaves), np.ones(n_inner)
    for key in ("split_gain", "leaf_weight", "internal_value", "internal_weight", "shrinkage"):
        # No prediction needs them, but LightGBM ends the process where it cannot read them.
        if n_inner and key in fields:
            _listed(fields, key, "*", {"leaf_weight": n_leaves, "shrinkage": 1}.get(key, n_inner))
    if n_inner:  # a tree of one leaf has no other lines
        feature = _array(fields, "split_feature", np.int32, n_inner)
        threshold = _array(fields, "threshold", np.float64, n_inner)
        kind = _array(fields, "decision_type", np.int32, n_inner)
        left, right = (_array(fields, key, np.int32, n_inner) for key in ("left_child", "right_child"))
        leaf_count = _array(fields, "leaf_count", np.int64, n_leaves).astype(np.float64)
        inner_count = _array(fields, "internal_count", np.int64, n_inner).astype(np.float64)
    is_categorical = (kind & _CATEGORICAL) > 0
    missing_type = kind >> 2
    if n_inner and (feature.min() < 0 or kind.min() < 0 or missing_type.max() > _NAN):
        raise ValueError("a split reads a column or has a type that does not exist.")
    # With missing type "None" NaN counts as 0.
    default_left = np.where(missing_type > 0, (kind & _DEFAULT_LEFT) > 0, threshold >= 0)
    return Tree(
        # Inner nodes keep their numbers; leaf j, which LightGBM writes as ~j, follows as n_inner + j.
        feature=np.concatenate([feature, nothing - 1]),
        threshold=np.concatenate([threshold, np.zeros(n_leaves)]),
        left=np.concatenate([_child(left, n_inner), nothing]),
        right=np.concatenate([_child(right, n_inner), nothing]),
        default_left=np.concatenate([default_left & ~is_categorical, nothing > 0]),
        value=np.concatenate([np.zeros(n_inner), leaf_value])[:, None],
        cover=np.concatenate([inner_count, leaf_count]),
        label=np.concatenate([np.zeros(n_inner, dtype=np.int32), np.arange(n_leaves, dtype=np.int32)]),
        output=output,
        zero_is_missing=np.concatenate([(missing_type == _ZERO) & ~is_categorical, nothing > 0]),
        categories=_category_sets(fields, threshold, is_categorical),
    )


def _child(child: NDArray[np.int32], n_inner: int) -> NDArray[np.int64]:
    if child.size and child.max() >= n_inner:
        raise ValueError("a child is an inner node that does not exist.")
    return np.where(child < 0, n_inner + ~child.astype(np.int64), child)


def _category_sets(fields: dict[str, str], threshold: Any, is_categorical: Any) -> dict[int, NDArray[Any]]:
    """Return the categories of each categorical node; its threshold is the number of the set."""
    n_sets = _whole(fields["num_cat"], "num_cat", least=0)
    if n_sets == 0 and not is_categorical.any():
        return {}
    starts = _array(fields, "cat_boundaries", np.int32, n_sets + 1)
    words = _array(fields, "cat_threshold", np.uint32, int(starts[-1]))
    if starts[0] != 0 or (np.diff(starts) < 0).any():
        raise ValueError("the sets of categories do not follow one another.")
    sets = {}
    for node in np.flatnonzero(is_categorical).tolist():
        which = int(threshold[node])
        if which != threshold[node] or not 0 <= which < n_sets:
            raise ValueError(f"categorical node {node} names a set that does not exist.")
        of_set = words[starts[which] : starts[which + 1]]
        filled = np.flatnonzero(of_set)
        bits = np.unpackbits(of_set[filled].astype("<u4").view(np.uint8).reshape(-1, 4), axis=1, bitorder="little")
        place, bit = np.nonzero(bits)
        sets[node] = 32 * filled[place] + bit
    return sets


def _read_categories(text: str, infos: tuple[str, ...]) -> dict[str, Any]:
    """Return the names of the categories: by column where it is certain whose they are, else their lists.

    The lists are those of all pandas columns of categories, in order. Such a column has codes of its list, whether it
    is split by categories, by the number of its code (ordered ones), or not at all ("none"). So if the columns that
    have nothing but such codes are as many as the lists, they are the ones.
    """
    marker = "\npandas_categorical:"
    at = text.rfind(marker)
    if at < 0:
        return {"categories": {}}
    listed = json.loads(text[at + len(marker) :].strip().splitlines()[0]) or []
    scalars = (str, int, float, bool, type(None))
    if not isinstance(listed, list) or not all(
        isinstance(names, list) and all(isinstance(name, scalars) for name in names) for names in listed
    ):
        raise ValueError("pandas_categorical is not a list of lists of names.")
    lists = tuple(map(tuple, listed))
    codes = {"none", *map(str, range(-1, max(map(len, lists), default=0)))}
    meant = [j for j, info in enumerate(infos) if codes.issuperset(info.strip("[]").split(":"))]
    if len(meant) == len(lists):
        return {"categories": dict(zip(meant, lists, strict=True))}
    return {"categories": {}, "category_lists": lists}
