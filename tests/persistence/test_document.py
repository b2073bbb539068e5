from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grbb_ext import FeatureCosts
from grbb_ext._options import Spec
from grbb_ext.persistence import NotPlainError, from_plain, to_plain


@dataclass(frozen=True)
class Colour(Spec):
    red: Any = 0.5
    under: Any = None


_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
_KEYS = st.booleans() | st.integers() | st.text()
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.lists(inner, max_size=4).map(tuple) | st.dictionaries(_KEYS, inner, max_size=4)
    ),
    max_leaves=12,
)


def types_of(value):
    if isinstance(value, dict):
        return [(types_of(key), types_of(entry)) for key, entry in value.items()]
    if isinstance(value, (list, tuple)):
        return [type(value), *map(types_of, value)]
    return type(value)


@given(_VALUES)
def test_values_survive_with_their_types(value):
    back = from_plain(json.loads(json.dumps(to_plain(value), allow_nan=False)))
    assert back == value
    assert types_of(back) == types_of(value)


@pytest.mark.parametrize(
    "array",
    [
        np.array(["ham", "späm", ""]),
        np.array([True, False]),
        np.array([-(2**63), 2**63 - 1]),
        np.array([2**64 - 1], dtype=np.uint64),
        np.array([1, 2], dtype=np.int8),
        np.array([0.1, np.inf, -0.0], dtype=np.float32),
        np.arange(6.0).reshape(2, 3),
        np.empty((0, 2)),
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_arrays_survive_with_their_types(array):
    back = from_plain(json.loads(json.dumps(to_plain(array), allow_nan=False)))
    assert back.dtype == array.dtype
    assert back.shape == array.shape
    assert back.tobytes() == array.tobytes()


def test_nan_and_numpy_scalars():
    assert math.isnan(from_plain(to_plain(np.float32("nan"))))
    assert type(from_plain(to_plain(np.int64(3)))) is int
    assert from_plain(to_plain(np.bool_(True))) is True


def test_text_of_an_enum_is_its_value():
    kind = Enum("Kind", {"NEAREST": "knn"}, type=str)
    assert type(to_plain(kind.NEAREST)) is str
    assert to_plain({kind.NEAREST: [kind.NEAREST]}) == {"dict": [["knn", ["knn"]]]}


def test_costs_survive():
    costs = FeatureCosts(needs={"a": ["draw"], "b": ["draw", "b"]}, prices={"draw": 0.1, "b": 2.0}, per_tree=0.5)
    assert from_plain(json.loads(json.dumps(to_plain(costs)))) == costs


@pytest.mark.parametrize(
    "value",
    [print, object(), date(2026, 1, 1), {1, 2}, 1j, np.array([None]), np.array([date(2026, 1, 1)]), b"x", [print]],
    ids=lambda value: type(value).__name__,
)
def test_other_values_are_refused(value):
    with pytest.raises(NotPlainError, match="no form in JSON"):
        to_plain(value)


@pytest.mark.parametrize(
    "plain",
    [
        {"eval": "1"},
        {"float": "1e999"},
        {"tuple": [1], "list": [2]},
        {"array": [1], "dtype": "O", "shape": [1]},
        {"array": [1], "dtype": "|V8", "shape": [1]},
        {"array": [1], "dtype": "<U9999999999", "shape": [1]},
        {"array": [1], "dtype": "<f8", "shape": [2]},
        {"array": [1], "dtype": "<f8"},
        {"array": [1], "dtype": ["<f8"], "shape": [1]},
        {"array": {"tuple": [1]}, "dtype": "<f8", "shape": [1]},
        {"array": [1], "dtype": "<f8", "shape": [-1]},
        {"array": [1], "dtype": "<f8", "shape": 1},
        {"array": ["1"], "dtype": "<f8", "shape": [1]},
        {"array": [True], "dtype": "<i8", "shape": [1]},
        {"array": [1], "dtype": "<U3", "shape": [1]},
        {"array": ["ham"], "dtype": "<U999999", "shape": [1]},
        {"tuple": 5},
        {"tuple": {"a": 1}},
        {"dict": [[1, 2, 3]]},
        {"dict": [[[1], 2]]},
        {"dict": {"a": 1}},
        {"costs": []},
        {"float": ["nan"]},
        {"spec": "FeatureCosts", "fields": {}},
        {"spec": ["Colour"], "fields": {}},
        {"spec": "Colour", "fields": []},
        {"spec": "Colour", "fields": {"green": 1}},
        {"spec": "Colour"},
        {},
    ],
    ids=str,
)
def test_what_nobody_wrote_is_refused(plain):
    with pytest.raises((ValueError, LookupError, TypeError)):
        from_plain(plain)


@pytest.mark.parametrize(
    "spec", [Colour(), Colour((1.0, None), Colour(0.25)), [Colour("x")], {"a": Colour(2)}], ids=str
)
def test_options_survive(spec):
    assert from_plain(json.loads(json.dumps(to_plain(spec)))) == spec


def test_an_option_is_saved_by_its_name():
    assert to_plain(Colour(0.5)) == {"spec": "Colour", "fields": {"red": 0.5, "under": None}}
    # A later version may have added a field: it has its default.
    assert from_plain({"spec": "Colour", "fields": {"red": 3}}) == Colour(3)


def test_what_only_calls_itself_an_option_is_refused():
    forged = dataclass(frozen=True)(type("Colour", (), {"__annotations__": {}}))
    with pytest.raises(NotPlainError):
        to_plain(forged())
    with pytest.raises(NotPlainError):
        to_plain(Colour(print))


def test_a_type_of_text_may_be_wider_than_its_entries():
    array = np.array(["ham", "spam"], dtype="<U40")
    assert from_plain(to_plain(array)).dtype == array.dtype
