"""Test folds hold labelled rows only, unlabelled rows stay in training, groups are never on both sides."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    cross_val_score,
)

from grbb_ext import SemiSupervisedSplit

SPLITTERS = [
    KFold(3),
    KFold(3, shuffle=True, random_state=1),
    StratifiedKFold(3),
    ShuffleSplit(4, random_state=0),
    LeaveOneOut(),
    RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
]
GROUP_SPLITTERS = [GroupKFold(3), StratifiedGroupKFold(3), LeaveOneGroupOut(), GroupShuffleSplit(4, random_state=0)]


@st.composite
def labels(draw, least=6, most=40):
    """Classes 0 to 3 with -1 anywhere among them; at least `least` labels."""
    size = draw(st.integers(least, most))
    seed = draw(st.integers(0, 2**16))
    random = np.random.default_rng(seed)
    y = random.integers(0, draw(st.integers(1, 4)), size)
    n_unlabeled = draw(st.integers(0, 40))
    y = np.concatenate([y, np.full(n_unlabeled, -1)])
    return random.permutation(y)


def folds_of(split, y, groups=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # few labels of a class: tested apart
        return list(split.split(np.zeros((len(y), 1)), y, groups))


def check_invariants(folds, y, groups=None, policy="drop"):
    labeled, unlabeled = np.flatnonzero(y != -1), np.flatnonzero(y == -1)
    for train, test in folds:
        assert test.size > 0
        assert np.isin(test, labeled).all()
        assert np.intersect1d(train, test).size == 0
        assert np.unique(train).size == train.size
        assert (np.diff(train) > 0).all()
        expected = unlabeled
        if groups is not None:
            assert np.intersect1d(groups[test], groups[train[y[train] != -1]]).size == 0
            if policy == "drop":
                expected = unlabeled[~np.isin(groups[unlabeled], groups[test])]
                assert np.intersect1d(groups[test], groups[train]).size == 0
        assert_array_equal(train[y[train] == -1], expected)


@given(y=labels(), n_folds=st.integers(2, 6), shuffle=st.booleans(), stratify=st.sampled_from([True, False, "auto"]))
def test_number_of_folds(y, n_folds, shuffle, stratify):
    split = SemiSupervisedSplit(n_folds, shuffle=shuffle, random_state=0 if shuffle else None, stratify=stratify)
    folds = folds_of(split, y)
    check_invariants(folds, y)
    labeled = np.flatnonzero(y != -1)
    assert_array_equal(np.sort(np.concatenate([test for _, test in folds])), labeled)
    for train, test in folds:  # every labelled row is on one side
        assert_array_equal(np.union1d(train[y[train] != -1], test), labeled)
    sizes = [test.size for _, test in folds]
    assert max(sizes) - min(sizes) <= (1 if stratify is False else len(np.unique(y)))
    if stratify:
        for label in np.unique(y[labeled]):
            counts = [np.count_nonzero(y[test] == label) for _, test in folds]
            assert max(counts) - min(counts) <= 1


@given(y=labels(), inner=st.sampled_from(SPLITTERS))
def test_any_splitter_of_scikit_learn_sees_the_labeled_rows(y, inner):
    labeled = np.flatnonzero(y != -1)
    if isinstance(inner, StratifiedKFold) and np.bincount(y[labeled]).max() < 3:
        return
    folds = folds_of(SemiSupervisedSplit(inner), y)
    check_invariants(folds, y)
    expected = folds_of(inner, y[labeled])
    assert len(folds) == len(expected) == SemiSupervisedSplit(inner).get_n_splits(None, y)
    for (train, test), (inner_train, inner_test) in zip(folds, expected, strict=True):
        assert_array_equal(test, labeled[inner_test])
        assert_array_equal(train[y[train] != -1], np.sort(labeled[inner_train]))


@given(
    y=labels(least=12),
    inner=st.sampled_from([*GROUP_SPLITTERS, 3]),
    seed=st.integers(0, 99),
    policy=st.sampled_from(["drop", "keep"]),
)
def test_groups_are_never_on_both_sides(y, inner, seed, policy):
    groups = np.random.default_rng(seed).integers(0, 8, y.size)
    seen = np.unique(groups[y != -1])
    if seen.size < 4 or np.bincount(y[y != -1]).max() < 3:
        return
    split = SemiSupervisedSplit(inner, unlabeled_of_test_groups=policy)
    folds = folds_of(split, y, groups)
    check_invariants(folds, y, groups, policy)
    if not isinstance(inner, GroupShuffleSplit):
        assert_array_equal(np.sort(np.concatenate([test for _, test in folds])), np.flatnonzero(y != -1))


@given(y=labels(), n_repeats=st.integers(1, 3), seed=st.integers(0, 99), grouped=st.booleans())
def test_same_seed_same_folds(y, n_repeats, seed, grouped):
    groups = np.arange(y.size) % 7 if grouped else None
    split = SemiSupervisedSplit(2, n_repeats=n_repeats, shuffle=True, random_state=seed)
    if grouped and np.unique(groups[y != -1]).size < 2:
        return
    first, again = folds_of(split, y, groups), folds_of(split, y, groups)
    assert len(first) == split.get_n_splits() == 2 * n_repeats
    for (train, test), (train_again, test_again) in zip(first, again, strict=True):
        assert_array_equal(train, train_again)
        assert_array_equal(test, test_again)
    for repeat in range(n_repeats):
        tested = np.concatenate([test for _, test in first[2 * repeat : 2 * repeat + 2]])
        assert_array_equal(np.sort(tested), np.flatnonzero(y != -1))


def test_repeats_are_those_of_scikit_learn_and_differ():
    y = np.tile([0, 1, -1], 20)
    labeled = np.flatnonzero(y != -1)
    ours = folds_of(SemiSupervisedSplit(5, n_repeats=3, random_state=0), y)
    theirs = list(RepeatedStratifiedKFold(n_splits=5, n_repeats=3, random_state=0).split(labeled, y[labeled]))
    for (_, test), (_, expected) in zip(ours, theirs, strict=True):
        assert_array_equal(test, labeled[expected])
    assert not np.array_equal(ours[0][1], ours[5][1])
    # A RandomState moves on, as in scikit-learn.
    moving = SemiSupervisedSplit(5, shuffle=True, random_state=np.random.RandomState(0))
    assert not np.array_equal(folds_of(moving, y)[0][1], folds_of(moving, y)[0][1])


@pytest.mark.parametrize(
    ("y", "unlabeled", "labeled"),
    [
        (np.array(["ham", "?", "spam", "ham", "spam"]), "?", [0, 2, 3, 4]),
        (["ham", None, "spam", "ham", "spam"], -1, [0, 2, 3, 4]),
        (pd.Series(["ham", None, "spam", "ham", "spam"], index=list("vwxyz")), -1, [0, 2, 3, 4]),
        (pd.Series(["ham", "?", "spam", "ham", "spam"], dtype="category"), "?", [0, 2, 3, 4]),
        (pl.Series(["ham", "?", "spam", "ham", "spam"]), "?", [0, 2, 3, 4]),
        ([1.0, np.nan, 0.0, 1.0, 0.0], -1, [0, 2, 3, 4]),
        ([9, 9, -1, 0, -1, 0], 9, [2, 3, 4, 5]),
        (["ham", -1, "spam", "ham", "spam"], -1, [0, 2, 3, 4]),
        (pd.Series([1, None, 0, 1, 0], dtype="Int64"), -1, [0, 2, 3, 4]),
        (pd.Series([0.5, -1.0, None, 2.0, -1.0]), -1, [0, 1, 3, 4]),
        ([0.5, -1.0, np.nan, 2.0, -1.0], -1, [0, 1, 3, 4]),  # -1 is a number in a regression
        ([0.0, -1.0, np.nan, 2.0, -1.0], np.nan, [0, 1, 3, 4]),
    ],
)
def test_markers(y, unlabeled, labeled):
    folds = list(SemiSupervisedSplit(2, unlabeled=unlabeled, stratify=False).split(None, y))
    assert_array_equal(np.sort(np.concatenate([test for _, test in folds])), labeled)
    assert {len(train) + len(test) for train, test in folds} == {len(y)}


def test_a_continuous_target_is_not_stratified():
    y = np.linspace(0.1, 0.9, 9)
    y[4] = np.nan
    labeled = np.flatnonzero(~np.isnan(y))
    for series in (y, pd.Series(y), pl.Series(y)):
        folds = SemiSupervisedSplit(4).split(None, series)
        for (_, test), (_, expected) in zip(folds, KFold(4).split(labeled), strict=True):
            assert_array_equal(test, labeled[expected])


@pytest.mark.parametrize("shuffle", [False, True])
def test_fewer_labels_than_folds_warn(shuffle):
    split = SemiSupervisedSplit(3, shuffle=shuffle, random_state=0 if shuffle else None)
    with pytest.warns(UserWarning, match="least populated class"):  # scikit-learn's words
        list(split.split(None, [0, 0, 0, 0, 1, -1]))
    y = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2, -1])
    with pytest.warns(UserWarning, match=r"has 3 labels, fewer than cv=4.*Use cv=3"):
        folds = list(SemiSupervisedSplit(4, shuffle=shuffle).split(None, y))
    check_invariants(folds, y)
    counts = np.array([np.bincount(y[test], minlength=3) for _, test in folds])
    assert_array_equal(counts.sum(axis=0), [3, 3, 3])
    assert counts.max() == 1
    assert set(counts.sum(axis=1)) == {2, 3}


def test_fewer_labels_than_folds_with_groups_warn():
    y, groups = np.array([0, 1, 2, 0, 1, 2, -1, -1]), np.array([0, 1, 2, 3, 4, 5, 0, 9])
    with pytest.warns(UserWarning, match="has 2 labels, fewer than cv=3"):
        folds = list(SemiSupervisedSplit(3).split(None, y, groups))
    check_invariants(folds, y, groups)
    with pytest.warns(UserWarning, match="has 2 labels"):
        check_invariants(list(SemiSupervisedSplit(3, shuffle=True, random_state=0).split(None, y, groups)), y, groups)


def test_unlabeled_rows_without_a_group_stay():
    y, groups = [0, -1, 1, -1, 0, 1, -1], ["a", "a", "b", None, "c", "d", None]
    for train, test in SemiSupervisedSplit(2).split(None, y, groups):
        assert np.isin([3, 6], train).all()
        assert (1 in train) == (0 not in test)


def test_unlabeled_rows_of_a_tested_group():
    y, groups = np.array([0, -1, 1, -1, 0, -1, 1, -1]), np.array(list("aabbccdd"))
    dropped = list(SemiSupervisedSplit(LeaveOneGroupOut()).split(None, y, groups))
    assert_array_equal(dropped[0][0], [2, 3, 4, 5, 6, 7])
    kept = list(SemiSupervisedSplit(LeaveOneGroupOut(), unlabeled_of_test_groups="keep").split(None, y, groups))
    assert_array_equal(kept[0][0], [1, 2, 3, 4, 5, 6, 7])


@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame, pl.DataFrame, sp.csr_matrix, sp.coo_array, list])
def test_the_inner_splitter_sees_the_labeled_rows_of_any_kind_of_data(make):
    class Middle:
        """Tests the labelled rows with a positive first column."""

        def split(self, X, y, groups=None):
            X = X.toarray() if sp.issparse(X) else np.asarray(X)
            assert X.shape == (4, 2)
            yield np.flatnonzero(X[:, 0] <= 0), np.flatnonzero(X[:, 0] > 0)

        def get_n_splits(self, X=None, y=None, groups=None):
            return 1

    X = np.array([[1.0, 0], [-1, 0], [9, 0], [-2, 0], [3, 0]])
    [(train, test)] = SemiSupervisedSplit(Middle()).split(make(X), [0, 1, -1, 0, 1])
    assert_array_equal(train, [1, 2, 3])
    assert_array_equal(test, [0, 4])


def test_scikit_learn_takes_it_as_cv():
    X, y = np.arange(12.0)[:, None], np.array([0, 1, -1] * 4)
    split = SemiSupervisedSplit(2)
    search = GridSearchCV(DummyClassifier(), {"strategy": ["prior", "uniform"]}, cv=split).fit(X, y)
    assert search.n_splits_ == 2
    groups = np.arange(12) // 2
    assert cross_val_score(DummyClassifier(), X, y, cv=split, groups=groups).shape == (2,)
    assert cross_val_score(DummyClassifier(), X, y, cv=SemiSupervisedSplit(LeaveOneOut())).shape == (8,)
    with sklearn.config_context(enable_metadata_routing=True):
        scores = cross_val_score(
            DummyClassifier(), X, y, cv=SemiSupervisedSplit(LeaveOneGroupOut()), params={"groups": groups}
        )
    assert scores.shape == (np.unique(groups[y != -1]).size,)


def test_it_prints_and_pickles():
    split = SemiSupervisedSplit(3, shuffle=True, random_state=0, unlabeled="?")
    assert "cv=3" in repr(split)
    assert "unlabeled='?'" in repr(split)
    y = np.array(["a", "?", "b"] * 5)
    for (train, _), (train_again, _) in zip(
        folds_of(split, y), folds_of(pickle.loads(pickle.dumps(split)), y), strict=True
    ):
        assert_array_equal(train, train_again)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"cv": 1}, ValueError, "at least 2 folds"),
        ({"cv": True}, ValueError, "at least 2 folds"),
        ({"cv": "five"}, TypeError, "a number of folds or a splitter"),
        ({"cv": KFold}, TypeError, r"an instance, e\.g\. KFold\(\)"),
        ({"cv": 2, "n_repeats": 0}, ValueError, "n_repeats must be a positive integer"),
        ({"cv": 2, "stratify": "yes"}, ValueError, "stratify must be"),
        ({"cv": 2, "random_state": 0}, ValueError, "shuffle=True"),
        ({"cv": KFold(2), "shuffle": True}, ValueError, "Set them on the splitter"),
        ({"cv": KFold(2), "n_repeats": 2}, ValueError, "RepeatedStratifiedKFold"),
        ({"unlabeled_of_test_groups": "hide"}, ValueError, "'drop' or 'keep'"),
    ],
)
def test_bad_settings(arguments, error, message):
    with pytest.raises(error, match=message):
        SemiSupervisedSplit(**arguments)


@pytest.mark.parametrize(
    ("split", "data", "message"),
    [
        (SemiSupervisedSplit(2), {"y": None}, "y is None. Mark unlabelled rows"),
        (SemiSupervisedSplit(2), {"y": [[0, 1], [1, 0]]}, "1d array"),
        (SemiSupervisedSplit(2), {"y": [-1, -1]}, "no labelled row"),
        (SemiSupervisedSplit(3), {"y": [0, 1, -1]}, "needs at least 3 labelled rows, but there are 2. Use cv=2"),
        (SemiSupervisedSplit(2), {"y": [0, -1]}, "there are 1. Label more rows"),
        (SemiSupervisedSplit(2), {"y": [0, 1], "X": np.zeros((3, 1))}, "X has 3 rows but y has 2"),
        (SemiSupervisedSplit(2), {"y": [0, 1], "groups": [0]}, "groups has 1 rows but y has 2"),
        (
            SemiSupervisedSplit(3),
            {"y": [0, 0, 0, 1, -1], "groups": [0, 0, 1, 1, 2]},
            "needs at least 3 groups with a label, but there are 2. Use cv=2",
        ),
        *(
            (SemiSupervisedSplit(2), {"y": [0, 1, 0, -1], "groups": groups}, r"None or NaN for the labelled rows \[1\]")
            for groups in (["a", None, "b", None], ["a", np.nan, "b", "b"], np.array([1.0, np.nan, 2.0, np.nan]))
        ),
        (SemiSupervisedSplit(ShuffleSplit(2, random_state=0)), {"y": [0, 1] * 4, "groups": [0] * 8}, "on both sides"),
        (SemiSupervisedSplit(PredefinedSplit([0, 0, 1])), {"y": [0, -1, 1]}, "beyond the 2 labelled ones"),
        (SemiSupervisedSplit(2), {"y": np.array(["a", "b", "-1"])}, "y holds the text '-1'.*Pass unlabeled='-1'"),
        (SemiSupervisedSplit(2), {"y": np.array([0, "a", 1, "b"], dtype=object)}, "different types"),
    ],
)
@pytest.mark.filterwarnings("ignore:The groups parameter is ignored")  # scikit-learn's, before our error
def test_bad_data(split, data, message):
    with pytest.raises(ValueError, match=message):
        list(split.split(**data))
