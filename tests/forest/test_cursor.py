from __future__ import annotations

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from hypothesis import given, settings
from hypothesis import strategies as st

from grbb_ext import Forest, ForestCursor
from grbb_ext.forest import Tree, _compiled, _walk
from grbb_ext.forest._walk import as_rows


def stump(feature, threshold, low, high, output=0):
    return Tree(
        feature=np.array([feature, -1, -1]),
        threshold=np.array([threshold, 0, 0]),
        left=np.array([1, 0, 0]),
        right=np.array([2, 0, 0]),
        default_left=np.array([True, False, False]),
        value=np.array([[0.0], [low], [high]]),
        cover=np.array([4.0, 3.0, 1.0]),
        label=np.arange(3),
        output=output,
    )


def model(library, seed, classes, n=80, d=6, missing=0.2):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, d)), 1)
    X[:, 0] = rng.integers(0, 5, n)
    X[rng.random(X.shape) < missing] = np.nan
    score = np.nan_to_num(X) @ rng.normal(size=d) + rng.normal(size=n)
    y = np.digitize(score, np.quantile(score, [1 / 3, 2 / 3])) if classes == 3 else score > 0
    if library == "xgboost":
        params = {"nthread": 1, "max_depth": 3, "objective": "binary:logistic"}
        params |= {"objective": "multi:softprob", "num_class": 3} if classes == 3 else {}
        data = xgb.DMatrix(X, label=y, feature_types=["c"] + ["q"] * (d - 1), enable_categorical=True)
        return X, Forest.from_booster(xgb.train(params, data, 5))
    params = {"verbosity": -1, "num_threads": 1, "num_leaves": 6, "min_data_in_leaf": 3, "objective": "binary"}
    params |= {"objective": "multiclass", "num_class": 3} if classes == 3 else {}
    data = lgb.Dataset(X, label=y, categorical_feature=[0], params={"verbosity": -1})
    return X, Forest.from_booster(lgb.train(params, data, 5))


def test_by_hand(walker):
    forest = Forest.from_trees([stump(0, 0.0, -1.0, 2.0), stump(1, 0.0, -5.0, 3.0)], n_features=3, base=1.0)
    cursor = ForestCursor(forest, 2)
    X = np.array([[1.0, -1.0, np.nan], [-1.0, 1.0, np.nan]])
    known = np.zeros((2, 3), dtype=bool)
    np.testing.assert_array_equal(cursor.needed(), [[True, True, False]] * 2)
    np.testing.assert_array_equal(cursor.spread(), [[3.0, 8.0, 0.0]] * 2)
    np.testing.assert_array_equal(cursor.bounds(), [[-5.0, -5.0], [6.0, 6.0]])
    np.testing.assert_array_equal(cursor.expected_scores(), [1 - 0.25 - 3.0] * 2)
    known[0, 1] = known[1, 0] = True
    cursor.advance(X, known)
    np.testing.assert_array_equal(cursor.needed(), [[True, False, False], [False, True, False]])
    np.testing.assert_array_equal(cursor.needed(1), [[True, False, False], [False, False, False]])
    np.testing.assert_array_equal(cursor.needed([0, 2]), [[False, False, False], [False, True, False]])
    np.testing.assert_array_equal(cursor.finished_trees(), [0, 1])
    np.testing.assert_array_equal(cursor.bounds(), [[-5.0, -5.0], [-2.0, 3.0]])
    np.testing.assert_array_equal(cursor.raw_scores(), [np.nan, np.nan])
    np.testing.assert_array_equal(cursor.raw_scores(stop_tree=1), [np.nan, 0.0])
    cursor.advance(X, known | np.array([[True, False, False]] * 2))
    np.testing.assert_array_equal(cursor.raw_scores(), [-2.0, np.nan])
    assert repr(cursor).endswith("1 of 2 rows finished)")
    part = cursor.take([1])
    part.advance(X[1:])
    np.testing.assert_array_equal(part.raw_scores(), [3.0])
    np.testing.assert_array_equal(cursor.finished, [True, False])


@settings(max_examples=40)
@given(
    seed=st.integers(0, 5),
    library=st.sampled_from(["xgboost", "lightgbm"]),
    classes=st.sampled_from([1, 3]),
    order=st.permutations(range(6)),
    compiled=st.booleans(),
)
def test_features_in_any_order(seed, library, classes, order, compiled):
    """Bounds hold the final score at every step and close on it; only features of a row's own paths are needed."""
    X, forest = model(library, seed, classes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_compiled, "is_available", lambda: compiled)
        final, touched = forest.predict(X), forest.features_touched(X)
        cursor, known = ForestCursor(forest, len(X)), np.zeros(X.shape, dtype=bool)
        lowest, highest = cursor.bounds()
        for feature in order:
            known[:, feature] = True
            # Unknown entries must not be read: make them a trap.
            cursor.advance(np.where(known, X, 1e6), known)
            lower, upper = cursor.bounds()
            assert (lowest <= lower).all()
            assert (upper <= highest).all()
            lowest, highest = lower, upper
            assert (lowest <= final).all()
            assert (final <= highest).all()
            expected = cursor.expected_scores()
            assert (lowest <= expected).all()
            assert (expected <= highest).all()
            needed = cursor.needed()
            assert not needed[:, feature].any()
            assert (needed <= touched).all()
            np.testing.assert_array_equal(needed.any(axis=1), ~cursor.finished)
            assert ((cursor.spread() > 0) <= needed).all()
        assert cursor.finished.all()
        for scores in (cursor.raw_scores(), lowest, highest, expected):
            np.testing.assert_array_equal(scores, final)


@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_asking_for_what_is_needed_touches_what_the_paths_touch(walker, library, classes):
    X, forest = model(library, 1, classes)
    cursor, known = ForestCursor(forest, len(X)), np.zeros(X.shape, dtype=bool)
    while not cursor.finished.all():
        known |= cursor.needed()
        cursor.advance(X, known)
    np.testing.assert_array_equal(known, forest.features_touched(X))
    np.testing.assert_array_equal(cursor.raw_scores(), forest.predict(X))


def test_the_first_trees_only(walker):
    X, forest = model("xgboost", 0, 3)
    cursor = ForestCursor(forest, len(X))
    cursor.advance(X, np.ones(X.shape, dtype=bool), stop_tree=6)
    assert cursor.finished_trees().min() >= 6
    np.testing.assert_array_equal(cursor.raw_scores(stop_tree=6), forest.predict(X, stop_tree=6))
    assert np.isnan(cursor.raw_scores()).any()
    cursor.advance(X)
    np.testing.assert_array_equal(cursor.raw_scores(), forest.predict(X))


def test_what_does_not_fit():
    X, forest = model("lightgbm", 0, 1)
    cursor = ForestCursor(forest, len(X))
    with pytest.raises(ValueError, match=r"known must have shape \(80, 6\), got \(80, 5\)"):
        cursor.advance(X, np.ones((80, 5)))
    with pytest.raises(ValueError, match=r"X must have shape \(80, 6\), got \(79, 6\)"):
        cursor.advance(X[1:])
    with pytest.raises(ValueError, match="at least 0"):
        ForestCursor(forest, -1)


def test_no_rows_and_no_trees(walker):
    _, forest = model("lightgbm", 0, 1)
    assert ForestCursor(forest, 0).finished.shape == (0,)
    empty = ForestCursor(Forest.from_trees([], n_features=2, base=3.0), 4)
    assert empty.finished.all()
    empty.advance(np.zeros((4, 2)), np.zeros((4, 2)))
    np.testing.assert_array_equal(empty.raw_scores(), [3.0] * 4)


def chain(levels, d):
    """Return a tree that is a chain of splits, of one column after the other."""
    inner = 2 * np.arange(levels)
    feature, left = np.full(2 * levels + 1, -1), np.arange(2 * levels + 1) + 1
    feature[inner] = np.arange(levels) % d
    nodes = np.arange(2.0 * levels + 1)
    return Tree(
        feature=feature, threshold=nodes / levels - 2.0, left=left, right=left + 1, default_left=feature == 1,
        value=nodes[:, None], cover=nodes, label=np.arange(2 * levels + 1),
    )  # fmt: skip


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "deep", "deep, without missing values"])
@pytest.mark.parametrize("by_row", [False, True])
def test_both_walks_stop_at_the_same_nodes(library, by_row):
    X, forest = model("xgboost" if library.startswith("deep") else library, 0, 1, n=200)
    assert np.isnan(X).any()
    if library.startswith("deep"):
        forest = Forest.from_trees([chain(40, 6), chain(7, 6), chain(25, 6)], n_features=6)
    if library.endswith("without missing values"):
        X = np.nan_to_num(X)
    rows = as_rows(forest, X)
    random = np.random.default_rng(0)
    chance, known = random.random(X.shape if by_row else X.shape[1]), np.zeros(X.shape, dtype=bool)
    nodes = [np.repeat(forest.tree_start[:-1, None], len(X), axis=1) for _ in range(2)]
    by_chance = [chance < share for share in (0.3, 0.6, 0.9)]
    for arrived in (*by_chance, random.random(X.shape) < 0.9, random.random(X.shape) < 0.9):
        known |= arrived
        partial = np.where(known, rows, np.inf).astype(rows.dtype)
        needed = [
            kernels.walk(forest, partial, found, 0, known)
            for kernels, found in zip((_walk, _compiled), nodes, strict=True)
        ]
        np.testing.assert_array_equal(*nodes)
        np.testing.assert_array_equal(*needed)
        stopped = forest.feature[nodes[0]]
        tree, row = np.nonzero(stopped >= 0)
        expected = np.zeros(X.shape, dtype=bool)
        expected[row, stopped[tree, row]] = True
        np.testing.assert_array_equal(needed[0], expected)
        assert not (expected & known).any()
    assert expected.any()
