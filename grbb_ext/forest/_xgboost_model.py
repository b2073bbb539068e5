"""XGBoost's saved model, decoded from JSON or UBJSON, as trees."""

from __future__ import annotations

import ctypes
import math
import os
import re
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grbb_ext.forest._tree import MOST_OUTPUTS_OF_NO_TREES, Tree, pack, rounds_to_keep

Float32 = NDArray[np.float32]

_LOGIT = {"binary:logistic", "reg:logistic"}
_LOG = {"count:poisson", "reg:gamma", "reg:tweedie", "survival:aft", "survival:cox"}
_IDENTITY = {
    "binary:hinge", "binary:logitraw", "multi:softmax", "multi:softprob", "rank:map", "rank:ndcg", "rank:pairwise",
    "reg:absoluteerror", "reg:linear", "reg:pseudohubererror", "reg:quantileerror", "reg:squarederror",
    "reg:squaredlogerror",
}  # fmt: skip
# XGBoost's codes are float32, which has every integer up to here.
_MOST_CATEGORIES = 2**24
# XGBoost keeps probabilities this far from 0 and 1 before the logit, and expectiles from one another.
_NEAREST = np.float32(1e-6)


def _in_float32(name: str, x: np.float32) -> np.float32:
    """Compute log or expm1 in float32 as XGBoost does: with the functions of the C library.

    numpy's own float32 logarithm differs from it in the last bit for one number in six, a float64 logarithm rounded to
    float32 for one in two hundred. The latter is used where the C library cannot be reached.
    """
    try:
        function = getattr(ctypes.CDLL(None if os.name == "posix" else "ucrtbase"), f"{name}f")
    except (OSError, AttributeError, TypeError):
        return np.float32(getattr(math, name)(float(x)))
    function.argtypes, function.restype = [ctypes.c_float], ctypes.c_float
    return np.float32(function(float(x)))


def _increments(scores: list[np.float32]) -> list[np.float32]:
    """Return the first expectile, and for the others the inverse softplus of what they are above the one before."""
    margins = scores[:1]
    for lower, upper in pairwise(scores):
        step = max(upper - lower - _NEAREST, _NEAREST)
        margins.append(step + _in_float32("log", -_in_float32("expm1", -step)))
    return margins


def base_margin(base_score: str, objective: str, n_outputs: int) -> Float32:
    """Read the text of a base score and apply the link of the objective.

    Parameters
    ----------
    base_score : str
        As in a saved model: ``"5E-1"``, or since XGBoost 3.1 ``"[5E-1]"`` with a number for each output.
    objective : str
        Name of the objective.
    n_outputs : int
        Scores per row.

    Returns
    -------
    ndarray of shape (n_outputs,)
        float32.

    Examples
    --------
    >>> base_margin("[5E-1]", "binary:logistic", 1).tolist()
    [-0.0]
    >>> base_margin("2E0", "count:poisson", 1).tolist()
    [0.6931471824645996]
    """
    if not re.fullmatch(r"\[?[-+.,0-9eE]+\]?", base_score):
        raise ValueError(f"base_score must be a number, got {base_score!r}.")
    scores = [np.float32(part) for part in base_score.strip("[]").split(",")]
    if len(scores) not in (1, n_outputs):
        raise ValueError(f"base_score has {len(scores)} numbers for {n_outputs} outputs.")
    if not np.isfinite(scores).all():
        raise ValueError(f"base_score must be finite, got {base_score!r}.")
    if objective in _LOGIT:
        one = np.float32(1)
        inside = [min(max(score, _NEAREST), one - _NEAREST) for score in scores]
        margins = [-_in_float32("log", one / score - one) for score in inside]
    elif objective in _LOG:
        margins = [_in_float32("log", score) for score in scores]
    elif objective == "reg:expectileerror":
        margins = _increments(scores if len(scores) == n_outputs else scores * n_outputs)
    elif objective in _IDENTITY:
        margins = scores
    else:
        raise ValueError(f"the objective {objective!r} is not known, so the link of its base_score is not.")
    return np.resize(np.array(margins, dtype=np.float32), n_outputs)


def read_xgboost(document: dict[str, Any], iterations: int | None = None) -> dict[str, Any]:
    """Read the document of ``Booster.save_model`` or ``save_raw``.

    XGBoost compares and adds in float32, in the order of the trees. It sends a row left where x < t; as there is no
    float32 between t and its predecessor, that is x <= nextafter(t, -inf). At a categorical node the stored categories
    go right, so the children change places here. The weights of dart are multiplied into the leaves, in float32 as its
    predictor does. Whatever a document says twice has to agree, for the library may go by the other place.

    Parameters
    ----------
    document : dict
        The decoded document.
    iterations : int or None, default=None
        Boosting rounds to keep; None keeps all, as ``Booster.predict`` does.

    Returns
    -------
    dict
        The fields of a forest.
    """
    learner = document["learner"]
    booster = learner["gradient_booster"]
    kind = booster["name"]
    if kind not in ("gbtree", "dart"):
        raise ValueError(f"booster={kind!r} has no trees; only 'gbtree' and 'dart' can be read.")
    model = (booster["gbtree"] if kind == "dart" else booster)["model"]
    parameters = _text(learner["learner_model_param"])
    _text(learner.get("attributes", {}))
    n_features = _count(parameters["num_feature"])
    n_outputs = _outputs(parameters, model)
    n_trees = len(model["trees"])
    weights = _tree_weights(booster, model, n_trees)
    info = _ints(model["tree_info"])
    indptr = _rounds(model, n_outputs)
    if info.size != n_trees or _count(model["gbtree_model_param"].get("num_trees", n_trees)) != n_trees:
        raise ValueError(f"the model has {n_trees} trees, but announces another number of them.")
    trees = []
    for i in range(indptr[rounds_to_keep(iterations, len(indptr) - 1)]):
        if int(model["trees"][i].get("id", i)) != i:
            raise ValueError(f"tree {i} has the number {model['trees'][i]['id']}.")
        trees.append(_read_tree(model["trees"][i], int(info[i]), weights[i], n_outputs))
    objective = learner["objective"]["name"]
    awaits_estimate = not model["trees"] and parameters.get("boost_from_average", "0") != "0"
    if awaits_estimate and parameters["base_score"].startswith("["):
        objective = "reg:squarederror"  # since 3.1 a base score that is not estimated yet gets no link
    for entry in ("feature_names", "feature_types"):
        names = learner.get(entry, [])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError(f"{entry} are not a list of text.")
        if len(names) not in (0, n_features):
            raise ValueError(f"the model has {len(names)} {entry} for {n_features} features.")
    return {
        **pack(trees, n_features, n_outputs, np.float32),
        "base": base_margin(parameters["base_score"], objective, n_outputs),
        "n_features": n_features,
        "feature_names": tuple(learner.get("feature_names", [])) or None,
        "categories": _read_categories(model.get("cats", {}), tuple(document.get("version", ()))),
        "library": "xgboost",
        "objective": str(learner["objective"]["name"]),
    }


def _count(text: Any) -> int:
    """Read a number of things, which XGBoost writes as text."""
    if not re.fullmatch(r"[0-9]{1,10}", str(text)):
        raise ValueError(f"{text!r} is not a number of something.")
    return int(text)


def _ints(values: Any, size: int | None = None) -> NDArray[np.int64]:
    """Return an array of integers, of `size` entries."""
    return _numbers(values, size, "iub", (int, bool), "integers").astype(np.int64)


def _floats(values: Any, size: int | None = None) -> Float32:
    """Return an array of float32, of `size` entries."""
    return _numbers(values, size, "f", (float,), "numbers with a fraction").astype(np.float32)


def _numbers(values: Any, size: int | None, kinds: str, types: tuple[type, ...], what: str) -> NDArray[Any]:
    array = np.asarray(values)
    alike = array.ndim == 1 and (array.size == 0 or array.dtype.kind in kinds)
    if not alike or (isinstance(values, list) and not set(map(type, values)) <= set(types)):
        raise ValueError(f"a list has entries that are not {what}.")
    if size is not None and array.size != size:
        raise ValueError(f"a tree has {array.size} entries in a list where {size} belong.")
    return array


def _text(entries: Any) -> dict[str, str]:
    """Return parameters, which XGBoost writes as text."""
    if not isinstance(entries, dict) or not all(isinstance(value, str) for value in entries.values()):
        raise ValueError("a parameter or an attribute is not written as text.")
    return entries


def _outputs(parameters: dict[str, Any], model: dict[str, Any]) -> int:
    """Return the number of scores per row, which has to be that of the trees."""
    counts = [_count(parameters.get(name, 1)) for name in ("num_target", "num_class")]
    n_outputs = max(*counts, 1)
    if min(counts) > 1:
        raise ValueError(f"the model has {counts[0]} targets and {counts[1]} classes.")
    if not model["trees"]:
        if n_outputs > MOST_OUTPUTS_OF_NO_TREES:
            raise ValueError(f"the model has {n_outputs} outputs and no trees.")
    elif _size_leaf_vector(model["trees"][0]) <= 1:
        # A round has as many trees for each output, so the outputs are at most as many as the trees.
        info = _ints(model["tree_info"])
        even = 0 < n_outputs <= info.size and info.min() >= 0 and info.max() < n_outputs
        if not even or np.unique(np.bincount(info, minlength=n_outputs)).size > 1:
            raise ValueError(f"the {len(model['trees'])} trees are not spread evenly over {n_outputs} outputs.")
    return n_outputs


def _tree_weights(booster: dict[str, Any], model: dict[str, Any], n_trees: int) -> Float32:
    """Return the weights of dart: before 3.3 the booster was called so, in 3.4 they moved into the model."""
    places = [place["weight_drop"] for place in (booster, model) if "weight_drop" in place]
    if len(places) > 1 or (booster["name"] == "dart" and not places):
        raise ValueError(f"a model of dart has {len(places)} lists of tree weights.")
    weights = _floats(places[0] if places else np.ones(n_trees))
    if weights.size != n_trees or not np.isfinite(weights).all():
        raise ValueError(f"the model has {weights.size} tree weights for {n_trees} trees, or some that are not finite.")
    return weights


def _rounds(model: dict[str, Any], n_outputs: int) -> NDArray[np.int64]:
    """Return the first tree of each round, and their number last."""
    n_trees = len(model["trees"])
    parallel = _count(_text(model["gbtree_model_param"]).get("num_parallel_tree", "1"))
    if parallel < 1:
        raise ValueError("a round has no trees.")
    if "iteration_indptr" not in model:  # written before XGBoost 2.0
        return np.append(np.arange(0, n_trees, parallel * n_outputs), n_trees)
    indptr = _ints(model["iteration_indptr"])
    if indptr.size == 0 or indptr[0] != 0 or indptr[-1] != n_trees or (np.diff(indptr) < 0).any():
        raise ValueError(f"the rounds do not divide the {n_trees} trees.")
    return indptr


def _size_leaf_vector(tree: dict[str, Any]) -> int:
    return _count(_text(tree["tree_param"]).get("size_leaf_vector", "1"))


def _read_tree(tree: dict[str, Any], output: int, weight: np.float32, n_outputs: int) -> Tree:
    n_nodes = _count(tree["tree_param"]["num_nodes"])
    left, right = (_ints(tree[name], n_nodes) for name in ("left_children", "right_children"))
    is_leaf = left == -1
    vectors = _size_leaf_vector(tree)
    cover = _statistics(tree, n_nodes, vectors)
    # Its predictor takes left + 1 for the right child. In a leaf of several values the place holds something else.
    if (right[~is_leaf] != left[~is_leaf] + 1).any() or (vectors <= 1 and (right[is_leaf] != -1).any()):
        raise ValueError("the children of a node do not lie side by side.")
    feature = _ints(tree["split_indices"], n_nodes)
    if (feature[~is_leaf] < 0).any():
        raise ValueError("a split reads a column that does not exist.")
    _check_parents(_ints(tree["parents"], n_nodes), left)
    default_left = _ints(tree["default_left"], n_nodes)
    split_type = _ints(tree["split_type"], n_nodes)
    if not (np.isin(default_left, (0, 1)).all() and np.isin(split_type, (0, 1)).all()):
        raise ValueError("a node has a default direction or a type of split that does not exist.")
    is_categorical = split_type == 1
    categories = _category_sets(tree, np.flatnonzero(is_categorical))
    # A split on categories has no threshold, and a leaf of several values has them elsewhere.
    conditions = _floats(tree["split_conditions"], n_nodes)
    conditions = np.where(is_categorical & ~is_leaf | (is_leaf & (vectors > 1)), np.float32(0), conditions)
    if vectors > 1 and vectors != n_outputs:
        raise ValueError(f"a tree has leaves of {vectors} values for {n_outputs} outputs.")
    value = _vector_leaves(tree, is_leaf, right, n_outputs) if vectors > 1 else conditions[:, None]
    # Nodes that were pruned may hold anything.
    reached = np.zeros(n_nodes, dtype=bool)
    reached[:1] = True
    inside = (left >= 0) & (right < n_nodes)
    reached[left[inside]] = reached[right[inside]] = True
    # Infinite is a split of missing values from all others, beside numbers above 1.7e38: XGBoost doubles the largest.
    if np.isnan(conditions[reached & ~is_leaf]).any():
        raise ValueError("a tree has a threshold that is not a number.")
    if not np.isfinite(value[reached & is_leaf]).all():
        raise ValueError(
            "a tree has a leaf that is not a finite number, so its predictions are none either. Training went astray: "
            "survival:cox and other objectives with exponentials do so with large steps. Train again with a smaller "
            "eta or with max_delta_step=1."
        )
    return Tree(
        feature=np.where(is_leaf, -1, feature),
        threshold=np.nextafter(conditions, np.float32(-np.inf)),
        left=np.where(is_categorical, right, left),
        right=np.where(is_categorical, left, right),
        default_left=(default_left == 1) ^ is_categorical,
        value=value * weight,
        cover=cover,
        label=np.arange(n_nodes, dtype=np.int32),
        output=output,
        categories={node: members for node, members in categories.items() if not is_leaf[node]},
    )


def _statistics(tree: dict[str, Any], n_nodes: int, vectors: int) -> NDArray[np.float64]:
    """Return the weight of each node.

    Predictions do not need it, nor the gains, but XGBoost may end the process where they are missing. Before 3.2 trees
    with vector leaves had none; then all leaves count alike.
    """
    _floats(tree["base_weights"], None if vectors > 1 else n_nodes)
    if vectors > 1 and "leaf_weights" not in tree:
        return np.zeros(n_nodes)
    _floats(tree["loss_changes"], n_nodes)
    return _floats(tree["sum_hessian"], n_nodes).astype(np.float64)


def _check_parents(parents: NDArray[np.int64], left: NDArray[np.int64]) -> None:
    """Refuse parents that are not those of the children, for XGBoost may end the process where they do not exist."""
    inner = np.flatnonzero((left >= 0) & (left < parents.size - 1))
    is_node = (parents >= 0) & (parents < parents.size)
    agree = (parents[left[inner]] == inner) & (parents[left[inner] + 1] == inner)
    # The root alone has none, not even nodes that were pruned.
    if not (agree.all() and is_node[1:].all() and np.isin(parents[:1], (-1, 2**31 - 1)).all()):
        raise ValueError("the parents of nodes are not those that have them as children.")


def _category_sets(tree: dict[str, Any], nodes: NDArray[np.intp]) -> dict[int, NDArray[np.int64]]:
    """Return the categories of each categorical node; the nodes and their sets are listed twice."""
    listed, begins, sizes, members = (
        _ints(tree[f"categories{part}"]) for part in ("_nodes", "_segments", "_sizes", "")
    )
    if not np.array_equal(listed, nodes):
        raise ValueError("the nodes with categories are not those whose split is of that type.")
    if begins.size != nodes.size or sizes.size != nodes.size:
        raise ValueError("there are more or fewer sets of categories than nodes with categories.")
    if nodes.size and (begins.min() < 0 or sizes.min() < 1 or (sizes > members.size - begins).any()):
        raise ValueError("a set of categories lies outside of the list of categories.")
    if members.size and (members.min() < 0 or members.max() >= _MOST_CATEGORIES):
        raise ValueError(f"a category does not lie between 0 and {_MOST_CATEGORIES - 1}.")
    return {int(node): members[begin : begin + size] for node, begin, size in zip(nodes, begins, sizes, strict=True)}


def _vector_leaves(tree: dict[str, Any], is_leaf: NDArray[np.bool_], right: NDArray[np.int64], k: int) -> Any:
    """Return the leaves of ``multi_strategy="multi_output_tree"``, shape (n_nodes, k)."""
    if "leaf_weights" not in tree:  # before XGBoost 3.2 every node has a vector
        return _floats(tree["base_weights"], is_leaf.size * k).reshape(-1, k)
    leaves = _floats(tree["leaf_weights"]).reshape(-1, k)
    # Leaves have no right child: its place holds the position of the leaf's vector.
    place = right[is_leaf]
    if not np.array_equal(np.sort(place), np.arange(len(leaves))):
        raise ValueError("the leaves of a tree are not those that its vectors are for.")
    values = np.zeros((is_leaf.size, k), dtype=np.float32)
    values[is_leaf] = leaves[place]
    return values


def _read_categories(container: dict[str, Any], version: tuple[int, ...]) -> dict[int, tuple[Any, ...]]:
    """Return the names of the categories of each column that was a pandas categorical, in the order of their codes.

    Before 3.4 XGBoost counts characters where it writes bytes, so that names which are not ASCII are cut in pieces.
    Such a column gets no names, ``()``.
    """
    categories: dict[int, tuple[Any, ...]] = {}
    for column, encoding in enumerate(container.get("enc", [])):
        values = np.asarray(encoding["values"])
        if values.size == 0:
            continue
        if "offsets" not in encoding:
            categories[column] = tuple(values.tolist())
            continue
        text = values.astype(np.int8).tobytes()
        ends = _ints(encoding["offsets"])
        whole = ends.size > 0 and ends[0] == 0 and ends[-1] == len(text) and (np.diff(ends) >= 0).all()
        categories[column] = ()
        if whole and (text.isascii() or version >= (3, 4)):
            with suppress(UnicodeDecodeError):
                categories[column] = tuple(text[a:b].decode("utf-8") for a, b in pairwise(ends.tolist()))
    return categories
