from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import euclidean_distances

from grbb_ext import GraphWarning
from grbb_ext.table import DistanceSpace, Schema, Table, read_table


def points(table, **settings):
    return DistanceSpace.fit(table, **{"warn_missing": False, **settings})(table)


def test_holes_become_medians():
    table = Table(np.array([[1.0, 5.0], [np.nan, 6.0], [3.0, 9.0]]))
    with pytest.warns(GraphWarning, match="1 missing values"):
        matrix = points(table, warn_missing=True)
    np.testing.assert_array_equal(matrix, [[1, 5], [2, 6], [3, 9]])


def test_categories_are_at_squared_distance_two_and_missing_ones_at_one():
    rows = np.array([[0.0], [1.0], [7.0], [np.nan], [0.0]])
    matrix = points(Table(rows, Schema((0,))))
    squared = ((matrix[:, None] - matrix[None]) ** 2).sum(axis=2)
    expected = [[0, 2, 2, 1, 0], [2, 0, 2, 1, 2], [2, 2, 0, 1, 2], [1, 1, 1, 0, 1], [0, 2, 2, 1, 0]]
    np.testing.assert_array_equal(squared, expected)


def test_numbers_beside_categories_are_scaled():
    rows = np.column_stack([np.arange(10.0) * 1000, np.arange(10) % 2])
    matrix = points(Table(rows, Schema((1,))))
    assert matrix[:, 0].std() == pytest.approx(1)
    unscaled = points(Table(rows, Schema((1,))), scale=None)
    np.testing.assert_array_equal(unscaled[:, 0], rows[:, 0])


def test_many_categories_make_a_sparse_matrix():
    rows = np.column_stack([np.zeros(300), np.arange(300.0)])
    matrix = points(Table(rows, Schema((1,))))
    assert sp.issparse(matrix)
    assert matrix.shape == (300, 301)
    np.testing.assert_array_equal(matrix.toarray()[:, 1:], np.eye(300))


def test_holes_of_a_sparse_matrix_are_zeros_and_categories_refused():
    S = sp.csr_array([[0.0, np.nan], [1.0, 2.0]])
    np.testing.assert_array_equal(points(Table(S)).toarray(), [[0, 0], [1, 2]])
    with pytest.raises(ValueError, match="sparse"):
        points(Table(S, Schema((0,))))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1e-30, 1e-44, 1e-170, 1e-310])
def test_tiny_numbers_are_scaled_too(dtype, size):
    rows = np.random.default_rng(0).standard_normal((50, 2))
    tiny = (rows * [1.0, size]).astype(dtype)
    for values in (tiny, sp.csr_array(tiny), tiny[:, [1, 1]]):
        assert np.isfinite(points(Table(values)).data if sp.issparse(values) else points(Table(values))).all()
        matrix = points(Table(values), scale="standard")
        matrix = matrix.toarray() if sp.issparse(matrix) else matrix
        assert np.isfinite(matrix).all()
        if size > np.finfo(dtype).tiny:
            np.testing.assert_allclose(matrix[:, 1].std(), 1, rtol=1e-2)


@pytest.mark.parametrize("categories", ["always", "only without numbers"])
@pytest.mark.parametrize("kind", ["numbers", "categories", "both", "sparse"])
@pytest.mark.parametrize("settings", [{}, {"normal_scores": True, "n_components": 3}])
def test_other_rows_take_the_medians_factors_and_directions_of_the_fit(categories, kind, settings):
    random = np.random.default_rng(0)
    values = np.column_stack([random.lognormal(size=(60, 4)) * [1, 10, 100, 1], random.integers(0, 5, (60, 2))])
    values[::9, 1] = np.nan
    values[::7, 4] = np.nan
    schema = Schema((4, 5))
    if kind == "numbers":
        values, schema = values[:, :4], Schema()
    elif kind == "categories":
        values, schema = values[:, 4:], Schema((0, 1))
    elif kind == "sparse":
        values, schema = sp.csr_array(np.nan_to_num(values)), Schema()
    table = Table(values, schema)
    space = DistanceSpace.fit(table, categories=categories, warn_missing=False, **settings)
    matrix = space(table)
    assert np.isfinite(matrix.data if sp.issparse(matrix) else matrix).all()
    part = pickle.loads(pickle.dumps(space))(table.take(np.arange(20, 25)))
    some = matrix[20:25]
    if sp.issparse(matrix):
        part, some = part.toarray(), some.toarray()
    np.testing.assert_allclose(part, some)


def test_unknown_categories_are_all_zeros():
    table = read_table([["x"], ["y"]])
    space = DistanceSpace.fit(table.take([0]))
    np.testing.assert_array_equal(space(table), [[1], [0]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_columns_far_from_zero_are_scaled_as_dense_ones(dtype):
    random = np.random.default_rng(0)
    X = np.column_stack([random.normal(size=500) + 1e5, random.normal(size=500) * (random.random(500) < 0.3)])
    X[:, 0] += 1.6e9 * (dtype == np.float64)
    X = np.tile(X, 10).astype(dtype) + random.normal(size=(500, 20)).astype(dtype)
    factors = [DistanceSpace.fit(read_table(same), scale="standard").factors for same in (X, sp.csr_array(X))]
    np.testing.assert_allclose(factors[0], factors[1], rtol=1e-5)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("settings", [{}, {"n_components": 3}, {"scale": "standard"}], ids=str)
def test_a_huge_constant_column_changes_no_distance(settings, convert):
    X = np.random.default_rng(0).normal(size=(50, 4))
    for constant in (1.0, 1.1e30):
        wider = np.hstack([X, np.full((50, 1), constant)])
        spaces = [points(read_table(convert(some)), normal_scores=True, **settings) for some in (X, wider)]
        first, second = (euclidean_distances(space) for space in spaces)
        np.testing.assert_allclose(first, second, atol=1e-6)


def test_a_sparse_matrix_without_an_entry_is_constant():
    table = read_table(sp.csr_array((4, 3)))
    assert DistanceSpace.fit(table, scale="standard")(table).nnz == 0


def test_a_range_beyond_single_precision(recwarn):
    X = np.array([[3e38, 0.0], [-3e38, 1.0], [0.0, 2.0]], dtype=np.float32)
    np.testing.assert_allclose(DistanceSpace.fit(read_table(X))(read_table(X)).std(axis=0), 1.0, rtol=1e-6)
    assert not recwarn.list
