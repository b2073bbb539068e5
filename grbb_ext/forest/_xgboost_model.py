"""XGBoost's saved model (JSON or UBJSON) as trees."""

from __future__ import annotations

import ctypes
import math
import os
import struct
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grbb_ext.forest._tree import Tree, pack

Float32 = NDArray[np.float32]

_LOGIT = {"binary:logistic", "reg:logistic"}
_LOG = {"count:poisson", "reg:gamma", "reg:tweedie", "survival:aft", "survival:cox"}
_IDENTITY = {
    "binary:hinge",
    "binary:logitraw",
    "multi:softmax",
    "multi:softprob",
    "rank:map",
    "rank:ndcg",
    "rank:pairwise",
    "reg:absoluteerror",
    "reg:linear",
    "reg:pseudohubererror",
    "reg:quantileerror",
    "reg:squarederror",
    "reg:squaredlogerror",
}
# XGBoost keeps probabilities this far from 0 and 1 before the logit.
_NEAREST = np.float32(1e-6)


def _logarithm(x: np.float32) -> np.float32:
    """Take the logarithm in float32 as XGBoost does: with the logf of the C library.

    numpy's own float32 logarithm differs from it in the last bit for one number in six, a float64 logarithm rounded to
    float32 for one in two hundred. The latter is used where the C library cannot be reached.
    """
    try:
        logf = ctypes.CDLL(None if os.name == "posix" else "ucrtbase").logf
    except (OSError, AttributeError, TypeError):
        return np.float32(math.log(float(x)))
    logf.argtypes, logf.restype = [ctypes.c_float], ctypes.c_float
    return np.float32(logf(float(x)))


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
    scores = [np.float32(part) for part in base_score.strip("[] ").split(",")]
    if len(scores) not in (1, n_outputs):
        raise ValueError(f"base_score has {len(scores)} numbers for {n_outputs} outputs.")
    if not np.isfinite(scores).all():
        raise ValueError(f"base_score must be finite, got {base_score!r}.")
    if objective in _LOGIT:
        one = np.float32(1)
        inside = [min(max(score, _NEAREST), one - _NEAREST) for score in scores]
        margins = [-_logarithm(one / score - one) for score in inside]
    elif objective in _LOG:
        margins = [_logarithm(score) for score in scores]
    elif objective in _IDENTITY:
        margins = scores
    else:
        raise ValueError(f"the objective {objective!r} is not known, so the link of its base_score is not.")
    return np.resize(np.array(margins, dtype=np.float32), n_outputs)


_SCALARS = {"i": ">b", "U": ">B", "I": ">h", "l": ">i", "L": ">q", "d": ">f", "D": ">d", "C": ">b"}
_CONSTANTS = {"Z": None, "T": True, "F": False}
_DEEPEST = 64


def read_ubjson(data: bytes) -> Any:
    r"""Decode a document; typed arrays become numpy arrays, so that float32 values arrive unrounded.

    Parameters
    ----------
    data : bytes
        The document.

    Returns
    -------
    object
        Dicts, lists, arrays, strings and numbers.

    Raises
    ------
    ValueError
        If the bytes are not UBJSON, or end too early.

    Examples
    --------
    >>> read_ubjson(b"{L" + bytes(7) + b"\x01ai\x05}")
    {'a': 5}
    """
    reader = _Reader(data)
    document = reader.value(0)
    if reader.position != len(data):
        raise ValueError(f"{len(data) - reader.position} bytes follow the end of the document.")
    return document


class _Reader:
    """A position in the bytes and the grammar."""

    def __init__(self, data: bytes) -> None:
        self.data, self.position = data, 0

    def take(self, n: int) -> bytes:
        if n < 0 or self.position + n > len(self.data):
            raise ValueError(f"the document ends early: {n} bytes wanted at byte {self.position} of {len(self.data)}.")
        taken = self.data[self.position : self.position + n]
        self.position += n
        return taken

    def marker(self) -> str:
        return self.take(1).decode("latin-1")

    def peek(self) -> str:
        marker = self.marker()
        self.position -= 1
        return marker

    def expect(self, marker: str) -> None:
        found = self.marker()
        if found != marker:
            raise ValueError(f"expected {marker!r} at byte {self.position - 1}, found {found!r}.")

    def scalar(self, marker: str) -> Any:
        code = _SCALARS[marker]
        return struct.unpack(code, self.take(struct.calcsize(code)))[0]

    def length(self) -> int:
        self.expect("L")
        return int(self.scalar("L"))

    def text(self) -> str:
        return self.take(self.length()).decode("utf-8")

    def value(self, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ValueError(f"the document is nested deeper than {_DEEPEST} levels.")
        marker = self.marker()
        if marker == "{":
            return self.mapping(depth)
        if marker == "[":
            return self.array(depth)
        if marker == "S":
            return self.text()
        if marker in _SCALARS:
            return self.scalar(marker)
        if marker in _CONSTANTS:
            return _CONSTANTS[marker]
        raise ValueError(f"unknown marker {marker!r} at byte {self.position - 1}.")

    def mapping(self, depth: int) -> dict[str, Any]:
        entries = {}
        while self.peek() != "}":
            key = self.text()
            entries[key] = self.value(depth + 1)
        self.expect("}")
        return entries

    def array(self, depth: int) -> Any:
        marker = self.peek()
        if marker == "$":
            self.expect("$")
            kind = self.marker()
            if kind not in _SCALARS:
                raise ValueError(f"unknown array type {kind!r} at byte {self.position - 1}.")
            self.expect("#")
            dtype = np.dtype(_SCALARS[kind].replace("b", "i1").replace("B", "u1"))
            n = self.length()
            return np.frombuffer(self.take(n * dtype.itemsize), dtype=dtype).astype(dtype.newbyteorder("="))
        if marker == "#":
            self.expect("#")
            return [self.value(depth + 1) for _ in range(self.length())]
        entries = []
        while self.peek() != "]":
            entries.append(self.value(depth + 1))
        self.expect("]")
        return entries


def read_xgboost(document: dict[str, Any], iterations: int | None = None) -> dict[str, Any]:
    """Read the document of ``Booster.save_model`` or ``save_raw``.

    XGBoost compares and adds in float32, in the order of the trees. It sends a row left where x < t; as there is no
    float32 between t and its predecessor, that is x <= nextafter(t, -inf). At a categorical node the stored categories
    go right, so the children change places here. The weights of dart are multiplied into the leaves, in float32 as its
    predictor does.

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
    parameters = learner["learner_model_param"]
    n_features = int(parameters["num_feature"])
    n_outputs = max(int(parameters.get("num_target", 1)), int(parameters["num_class"]), 1)
    n_trees = len(model["trees"])
    if iterations is not None:
        n_trees = _trees_of_rounds(model, n_outputs, iterations)
    weights = np.asarray(booster["weight_drop"] if kind == "dart" else np.ones(n_trees), dtype=np.float32)
    if weights.size < n_trees or len(model["tree_info"]) < n_trees:
        raise ValueError("the model has fewer tree weights or classes than trees.")
    trees = [_read_tree(model["trees"][i], int(model["tree_info"][i]), weights[i], n_outputs) for i in range(n_trees)]
    objective = learner["objective"]["name"]
    awaits_estimate = not model["trees"] and parameters.get("boost_from_average", "0") != "0"
    if awaits_estimate and parameters["base_score"].startswith("["):
        objective = "reg:squarederror"  # since 3.1 a base score that is not estimated yet gets no link
    names = [str(name) for name in learner.get("feature_names", [])]
    return {
        **pack(trees, n_features, n_outputs, np.float32),
        "base": base_margin(parameters["base_score"], objective, n_outputs),
        "n_features": n_features,
        "feature_names": tuple(names) or None,
        "categories": _read_categories(model.get("cats", {})),
        "library": "xgboost",
    }


def _trees_of_rounds(model: dict[str, Any], n_outputs: int, iterations: int) -> int:
    """Return how many trees the first rounds have."""
    indptr = model.get("iteration_indptr")
    if indptr is None:  # written before XGBoost 1.7
        parallel = int(model["gbtree_model_param"].get("num_parallel_tree", 1)) or 1
        indptr = np.arange(0, len(model["trees"]) + 1, parallel * n_outputs)
    if not 0 < iterations < len(indptr):
        raise ValueError(
            f"iterations must lie between 1 and {len(indptr) - 1}, the rounds of the model; got {iterations}."
        )
    return int(indptr[iterations])


def _read_tree(tree: dict[str, Any], output: int, weight: np.float32, n_outputs: int) -> Tree:
    left = np.asarray(tree["left_children"], dtype=np.int32)
    right = np.asarray(tree["right_children"], dtype=np.int32)
    is_leaf = left == -1
    conditions = np.asarray(tree["split_conditions"], dtype=np.float32)
    default_left = np.asarray(tree["default_left"]).astype(bool)
    categories = {}
    segments = zip(tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True)
    members = np.asarray(tree["categories"], dtype=np.int64)
    for node, begin, size in segments:
        categories[int(node)] = members[int(begin) : int(begin) + int(size)]
    swapped = np.zeros(left.size, dtype=bool)
    swapped[list(categories)] = True
    size_leaf_vector = int(tree["tree_param"].get("size_leaf_vector", 1))
    # A split on categories has no threshold, and a leaf of several values has them elsewhere.
    unused = swapped | (is_leaf & (size_leaf_vector > 1))
    conditions = np.where(unused, np.float32(0), conditions)
    if np.isnan(conditions).any():
        raise ValueError("a tree has a threshold or a leaf that is not a number.")
    if size_leaf_vector > 1:
        if size_leaf_vector != n_outputs:
            raise ValueError(f"a tree has leaves of {size_leaf_vector} values for {n_outputs} outputs.")
        value = _vector_leaves(tree, is_leaf, right, n_outputs)
    else:
        value = conditions[:, None]
    return Tree(
        feature=np.where(is_leaf, -1, np.asarray(tree["split_indices"], dtype=np.int32)),
        threshold=np.nextafter(conditions, np.float32(-np.inf)),
        left=np.where(swapped, right, left),
        right=np.where(swapped, left, right),
        default_left=default_left ^ swapped,
        value=value * weight,
        # Before 3.2 trees with vector leaves have no weights; then all leaves count alike.
        cover=np.asarray(tree.get("sum_hessian", np.zeros(left.size)), dtype=np.float64),
        label=np.arange(left.size, dtype=np.int32),
        output=output,
        categories=categories,
    )


def _vector_leaves(tree: dict[str, Any], is_leaf: NDArray[np.bool_], right: NDArray[np.int32], k: int) -> Any:
    """Return the leaves of ``multi_strategy="multi_output_tree"``, shape (n_nodes, k)."""
    if "leaf_weights" not in tree:  # before XGBoost 3.2 every node has a vector
        return np.asarray(tree["base_weights"], dtype=np.float32).reshape(-1, k)
    values = np.zeros((is_leaf.size, k), dtype=np.float32)
    # Leaves have no right child: its place holds the position of the leaf's vector.
    values[is_leaf] = np.asarray(tree["leaf_weights"], dtype=np.float32).reshape(-1, k)[right[is_leaf]]
    return values


def _read_categories(container: dict[str, Any]) -> dict[int, tuple[Any, ...]]:
    """Return the names of the categories of each column that was a pandas categorical, in the order of their codes."""
    categories: dict[int, tuple[Any, ...]] = {}
    for column, encoding in enumerate(container.get("enc", [])):
        values = np.asarray(encoding["values"])
        if values.size == 0:
            continue
        if "offsets" in encoding:
            text = values.astype(np.int8).tobytes()
            ends = np.asarray(encoding["offsets"]).tolist()
            names = (text[a:b].decode("utf-8") for a, b in pairwise(ends))
            categories[column] = tuple(names)
        else:
            categories[column] = tuple(values.tolist())
    return categories
