from __future__ import annotations

import copy
import pickle
import sys
import time
from dataclasses import FrozenInstanceError, fields, replace

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from hypothesis import given, settings
from hypothesis import strategies as st

from grbb_ext import Forest, GRBBClassifier
from grbb_ext.forest import Tree, _compiled, _walk
from grbb_ext.forest._tree import bitset

#            0: x0 <= 2 ?
#           /            \
#     1: x1 in {0, 33}    2: -4
#      /       \
#   3: 1     4: x0 <= 1 ? (0 is missing, missing goes right)
#             /      \
#          5: 2     6: 3
SMALL = Tree(
    feature=np.array([0, 1, -1, -1, 0, -1, -1]),
    threshold=np.array([2.0, 0, 0, 0, 1.0, 0, 0]),
    left=np.array([1, 3, 0, 0, 5, 0, 0]),
    right=np.array([2, 4, 0, 0, 6, 0, 0]),
    default_left=np.array([False, True, False, False, False, False, False]),
    value=np.array([[0.0], [0], [-4], [1], [0], [2], [3]]),
    cover=np.array([10.0, 6, 4, 2, 4, 1, 3]),
    label=np.arange(7),
    zero_is_missing=np.array([False, False, False, False, True, False, False]),
    categories={1: [0, 33]},
)
# Only reached through the second feature; its left child is a leaf at node 1 of an unusual order.
OTHER = Tree(
    feature=np.array([2, -1, -1]),
    threshold=np.array([0.5, 0, 0]),
    left=np.array([2, 0, 0]),
    right=np.array([1, 0, 0]),
    default_left=np.array([True, False, False]),
    value=np.array([[0.0], [0.5], [0.25]]),
    cover=np.array([10.0, 5, 5]),
    label=np.array([0, 11, 12]),
)
ROWS = np.array(
    [
        [2.0, 33.0, 0.5],  # left at the threshold, in the set
        [2.5, 33.0, 0.6],  # right
        [np.nan, 0.0, np.nan],  # right by default
        [1.5, 1.0, 0.0],  # not in the set, 1.5 > 1
        [0.5, 64.0, 0.0],  # beyond the bitset, 0.5 <= 1
        [0.0, 1.0, 0.0],  # zero is missing at the last split only
        [-1.0, np.nan, 0.0],  # a missing category goes left by default
    ]
)


@pytest.fixture
def forest():
    return Forest.from_trees([SMALL, OTHER], n_features=3, base=10.0, feature_names=["a", "b", "c"])


def test_a_tree_by_hand(walker, forest):
    first = [1, -4, -4, 3, 2, 3, 1]
    second = [0.25, 0.5, 0.25, 0.25, 0.25, 0.25, 0.25]
    np.testing.assert_array_equal(forest.predict(ROWS), 10.0 + np.add(first, second))
    np.testing.assert_array_equal(forest.predict(ROWS, stop_tree=1), 10.0 + np.array(first))
    np.testing.assert_array_equal(forest.predict(ROWS, start_tree=1), 10.0 + np.array(second))
    np.testing.assert_array_equal(forest.apply(ROWS)[:, 0], [3, 2, 2, 6, 5, 6, 3])
    np.testing.assert_array_equal(forest.apply(ROWS)[:, 1], [12, 11, 12, 12, 12, 12, 12])


def test_what_a_forest_says_of_itself(forest):
    assert repr(forest) == "Forest(lightgbm, 2 trees, 4 splits, 3 of 3 features, 1 output)"
    assert (forest.n_trees, forest.n_splits, forest.n_nodes, forest.n_outputs) == (2, 4, 10, 1)
    np.testing.assert_array_equal(forest.features_used(), [0, 1, 2])
    np.testing.assert_array_equal(forest.leaf_bounds.lowest, [[-4], [0.25]])
    np.testing.assert_array_equal(forest.leaf_bounds.highest, [[3], [0.5]])
    # the mean by training rows: (2*1 + 1*2 + 3*3 + 4*-4) / 10
    assert forest.node_mean[0, 0] == pytest.approx(-0.3)
    assert (forest.right[forest.feature >= 0] == forest.left[forest.feature >= 0] + 1).all()


def test_features_touched_by_hand(walker, forest):
    touched = [[1, 1, 1], [1, 0, 1], [1, 0, 1], [1, 1, 1], [1, 1, 1], [1, 1, 1], [1, 1, 1]]
    np.testing.assert_array_equal(forest.features_touched(ROWS), np.array(touched, dtype=bool))


def test_a_forest_cannot_be_changed(forest):
    with pytest.raises(FrozenInstanceError):
        forest.n_features = 4
    with pytest.raises(ValueError, match="read-only"):
        forest.threshold[0] = 1.0
    for again in (pickle.loads(pickle.dumps(forest)), copy.deepcopy(forest)):
        np.testing.assert_array_equal(again.predict(ROWS), forest.predict(ROWS))
        assert again.feature_names == forest.feature_names
        with pytest.raises(ValueError, match="read-only"):
            again.value[0] = 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"left": np.array([1, 3, 0, 0, 0, 0, 0])}, "two parents"),
        ({"left": np.array([1, 3, 0, 0, 6, 0, 0])}, "two parents"),
        ({"right": np.array([2, 7, 0, 0, 6, 0, 0])}, "outside the 7 nodes"),
        ({"right": np.array([2, -1, 0, 0, 6, 0, 0])}, "outside the 7 nodes"),
        ({"feature": np.array([3, 1, -1, -1, 0, -1, -1])}, "column 3 of 3"),
        ({"threshold": np.zeros(6)}, "7 nodes but 6 entries in 'threshold'"),
        ({"categories": {1: [-1]}}, "categories must lie between 0"),
        ({"categories": {1: [2**40]}}, "categories must lie between 0"),
        ({"output": 1}, "output 1 of 1"),
    ],
)
def test_impossible_trees(change, message):
    parts = {entry.name: getattr(SMALL, entry.name) for entry in fields(SMALL)} | change
    with pytest.raises(ValueError, match=message):
        Forest.from_trees([Tree(**parts)], n_features=3)


def test_rows_that_do_not_fit(forest):
    with pytest.raises(ValueError, match="the 3 columns of the model"):
        forest.predict(ROWS[:, :2])
    with pytest.raises(ValueError, match="2D array"):
        forest.predict(ROWS[0])
    with pytest.raises(ValueError, match="held numbers"):
        forest.predict([["a", "b", "c"]])
    with pytest.raises(ValueError, match="between 0 and 2"):
        forest.predict(ROWS, start_tree=2, stop_tree=1)
    with pytest.raises(ValueError, match="between 0 and 2"):
        forest.apply(ROWS, stop_tree=3)
    assert forest.predict(np.empty((0, 3))).shape == (0,)


def test_no_booster():
    with pytest.raises(TypeError, match="got dict"):
        Forest.from_booster({})


@pytest.mark.parametrize(
    "booster", [xgb.XGBClassifier(n_estimators=6, missing=-9.0), lgb.LGBMClassifier(n_estimators=6, n_jobs=1)]
)
def test_rounds_of_an_estimator_of_ours(booster):
    """The booster alone does not know what is missing, nor what categories there are."""
    rng = np.random.default_rng(0)
    size = np.where(rng.random(200) < 0.2, -9.0, rng.normal(size=200))
    rows = pd.DataFrame({"the size": size, "color": np.array(["red", "blue", "green"])[rng.integers(0, 3, 200)]})
    y = (rows["the size"] > 0) ^ (rows["color"] == "red")
    model = GRBBClassifier(booster, rule="labeled").fit(rows, y.astype(int))
    whole, same, part = (
        model.forest_,
        Forest.from_booster(model, iterations=6),
        Forest.from_booster(model, iterations=2),
    )
    np.testing.assert_array_equal(same.predict(rows[100:]), whole.predict(rows[100:]))
    np.testing.assert_array_equal(part.predict(rows), whole.predict(rows, stop_tree=2))


def test_no_trees():
    forest = Forest.from_trees([], n_features=2, base=[1.0, 2.0])
    np.testing.assert_array_equal(forest.predict(np.zeros((2, 2))), [[1.0, 2.0], [1.0, 2.0]])
    assert (forest.n_trees, forest.n_splits) == (0, 0)
    assert forest.leaf_bounds.lowest.shape == (0, 2)


@given(st.sets(st.integers(0, 200) | st.integers(0, 2**31 - 1)))
def test_bitset(categories):
    words, bits = bitset(sorted(categories))
    pairs = list(zip(words.tolist(), bits.tolist(), strict=True))
    assert {32 * word + j for word, in_word in pairs for j in range(32) if in_word >> j & 1} == categories
    assert all(in_word for _, in_word in pairs)


@settings(max_examples=30)
@given(st.lists(st.sets(st.sampled_from([0, 1, 31, 32, 95, 96, 500, 2**20, 2**24, 2**31 - 1])), min_size=1, max_size=4))
def test_sets_with_gaps(sets):
    """Trees of one categorical split each; both walks find exactly the members."""
    trees = [replace(OTHER, feature=np.array([0, -1, -1]), categories={0: sorted(members)}) for members in sets]
    forest = Forest.from_trees(trees, n_features=1)
    x = np.array([[0.0], [1], [2], [31], [32], [64], [95], [96], [500], [2**20], [2**24], [2**24 + 32], [2**31 - 1]])
    expected = [[0.25 if int(value) in members else 0.5 for members in sets] for (value,) in x]
    for kernels in (_walk, _compiled):
        nodes = np.repeat(forest.tree_start[:-1, None], len(x), axis=1)
        kernels.walk(forest, x, nodes, 0)
        np.testing.assert_array_equal(forest.value[nodes, 0].T, expected)


@pytest.mark.parametrize("members", [[-1], [2**31]])
def test_numbers_that_are_no_categories(members):
    with pytest.raises(ValueError, match="categories must lie between"):
        bitset(members)


def test_a_chain_takes_time_in_proportion_to_its_length():
    """A tree of 20,000 levels: reading and bounding it took time by the square of its depth."""
    n = 20_000
    inner = np.arange(0, 2 * n, 2)
    feature, left, right = np.full(2 * n + 1, -1), np.zeros(2 * n + 1, int), np.zeros(2 * n + 1, int)
    feature[inner], left[inner], right[inner] = 0, inner + 1, inner + 2
    chain = Tree(
        feature=feature, left=left, right=right, threshold=np.arange(2.0 * n + 1), default_left=feature < 0,
        value=np.arange(2.0 * n + 1)[:, None], cover=np.ones(2 * n + 1), label=np.arange(2 * n + 1),
    )  # fmt: skip
    started = time.process_time()
    forest = Forest.from_trees([chain], n_features=1)
    assert forest.leaf_bounds.highest[0, 0] == 2 * n
    assert forest.predict([[3.0], [1e9]]).tolist() == [5.0, 2.0 * n]
    assert time.process_time() - started < 10


def slow_walk(forest, x, tree):
    """Follow one row down one tree; return its leaf and the features that it met."""
    node, met = int(forest.tree_start[tree]), set()
    while forest.feature[node] >= 0:
        f = int(forest.feature[node])
        met.add(f)
        left = x[f] <= forest.threshold[node]
        if np.isnan(x[f]) or (forest.zero_is_missing[node] and x[f] == 0):
            left = forest.default_left[node]
        node = int(forest.left[node]) + (not left)
    return node, met


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**16),
    library=st.sampled_from(["xgboost", "lightgbm"]),
    n_trees=st.integers(1, 6),
    missing=st.sampled_from([0.0, 0.3]),
    compiled=st.booleans(),
)
def test_every_path_against_a_slow_walk(seed, library, n_trees, missing, compiled):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(60, 9)), 1)
    X[rng.random(X.shape) < missing] = np.nan
    y = np.nan_to_num(X) @ rng.normal(size=9) + rng.normal(size=60)
    if library == "xgboost":
        booster = xgb.train({"nthread": 1, "max_depth": 4}, xgb.DMatrix(X, label=y), n_trees)
    else:
        params = {"verbosity": -1, "num_threads": 1, "min_data_in_leaf": 2, "num_leaves": 9}
        booster = lgb.train(params, lgb.Dataset(X, label=y, params={"verbosity": -1}), n_trees)
    forest = Forest.from_booster(booster)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_compiled, "is_available", lambda: compiled)
        touched, leaves, scores = forest.features_touched(X), forest.apply(X), forest.predict(X)
    rows = X.astype(forest.threshold.dtype)
    for i, x in enumerate(rows):
        score, met = forest.base[0], set()
        for tree in range(forest.n_trees):
            leaf, on_path = slow_walk(forest, x, tree)
            assert forest.leaf_label[leaf] == leaves[i, tree]
            score += forest.value[leaf, 0]
            met |= on_path
        assert score == scores[i]
        assert met == set(np.flatnonzero(touched[i]))
    assert set(np.flatnonzero(touched.any(axis=0))) <= set(forest.features_used())


def test_without_numba(monkeypatch, forest):
    compiled = forest.predict(ROWS)
    _compiled._compile.cache_clear()
    monkeypatch.setitem(sys.modules, "numba", None)
    assert not _compiled.is_available()
    np.testing.assert_array_equal(forest.predict(ROWS), compiled)
    monkeypatch.undo()
    _compiled._compile.cache_clear()
    assert _compiled.is_available()


def test_blocks_of_rows_do_not_matter(walker, monkeypatch, forest):
    X = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 2.0, 3.0, 33.0, np.nan], (101, 3))
    whole = forest.predict(X), forest.apply(X), forest.features_touched(X)
    monkeypatch.setattr("grbb_ext.forest._forest._NODES_PER_BLOCK", 14)
    for a, b in zip(whole, (forest.predict(X), forest.apply(X), forest.features_touched(X)), strict=True):
        np.testing.assert_array_equal(a, b)
