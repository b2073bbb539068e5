from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.data import DataSet, load
from benchmarks.splits import choose_labels, draw, irrelevant_columns


def numbered(n: int, n_test: int = 0) -> DataSet:
    """Return rows that carry their own number, a tenth of class 1, sorted by class."""
    X = np.column_stack([np.arange(n), np.arange(n) ** 2]).astype(float)
    is_test = np.arange(n) % (n // n_test) == 0 if n_test else None
    return DataSet("numbers", X, (np.arange(n) >= 0.9 * n).astype(np.int64), is_test)


@given(seed=st.integers(0, 1000), n_labels=st.sampled_from([2, 5, 20]))
@settings(max_examples=30)
def test_rows_are_disjoint_and_labels_true_and_of_both_classes(seed: int, n_labels: int) -> None:
    data = numbered(200)
    split = draw(data, seed, n_labels)
    train, test = split.X[:, 0].astype(int), split.X_test[:, 0].astype(int)
    assert sorted([*train, *test]) == list(range(200))
    labeled = split.y >= 0
    assert labeled.sum() == n_labels
    assert set(split.y[labeled]) == {0, 1}
    assert np.array_equal(split.y[labeled], data.y[train[labeled]])
    assert np.array_equal(split.truth, data.y[test])


def test_the_same_seed_gives_the_same_split_whatever_else_changes() -> None:
    data = load("wine")
    plain, more, noisy, other = draw(data, 3, 5), draw(data, 3, 20), draw(data, 3, 5, "gaussian"), draw(data, 4, 5)
    assert np.array_equal(plain.X, draw(data, 3, 5).X)
    assert np.array_equal(plain.X, more.X)
    assert np.array_equal(plain.y, noisy.y)
    assert np.array_equal(plain.X, noisy.X[:, :13])
    assert np.array_equal(plain.X_test, noisy.X_test[:, :13])
    assert not np.array_equal(plain.X, other.X)


def test_a_given_split_is_kept_and_both_parts_are_capped() -> None:
    data = numbered(400, n_test=100)
    split = draw(data, 0, 10, max_train=150, max_test=40)
    assert (split.X.shape[0], split.X_test.shape[0]) == (150, 40)
    assert (split.X[:, 0] % 4 > 0).all()
    assert (split.X_test[:, 0] % 4 == 0).all()


def test_gaussian_columns_have_the_scale_of_the_real_ones_and_permuted_ones_their_values() -> None:
    random = np.random.default_rng(0)
    X = (random.normal(size=(4000, 3)) * [1, 100, 0] + [5, 0, 7]).astype(np.float32)
    gaussian = irrelevant_columns(X, "gaussian", seed=1)
    assert gaussian.mean(axis=0) == pytest.approx([5, 0, 7], abs=5)
    assert gaussian.std(axis=0) == pytest.approx([1, 100, 0], rel=0.1)
    permuted = irrelevant_columns(X, "permuted", seed=1)
    assert np.array_equal(np.sort(permuted, axis=0), np.sort(X, axis=0))
    for noise in (gaussian, permuted):
        between = np.corrcoef(X[:, :2].T, noise[:, :2].T)[:2, 2:]
        assert np.abs(between).max() < 0.08
    # Columns are permuted apart from each other: what belonged together no longer does.
    twice = irrelevant_columns(np.column_stack([X[:, 0], X[:, 0]]), "permuted", seed=1)
    assert abs(np.corrcoef(twice.T)[0, 1]) < 0.08


def test_missing_values_stay_missing_in_copies_and_do_not_spoil_gaussian_columns() -> None:
    X = np.array([[1.0, np.nan], [2.0, 4.0], [3.0, 6.0]], dtype=np.float32)
    assert np.isnan(irrelevant_columns(X, "permuted", 0)).sum() == 1
    assert np.isfinite(irrelevant_columns(X, "gaussian", 0)).all()


def test_labels_that_cannot_be_drawn_are_refused() -> None:
    with pytest.raises(ValueError, match="both classes"):
        choose_labels(np.zeros(10, dtype=np.int64), 0, 5)
    with pytest.raises(ValueError, match="11 labels"):
        choose_labels(np.arange(10) % 2, 0, 11)
