from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from grbb_ext.table import Schema, read_table


def test_frames_are_told_from_other_containers():
    for frame in (pd.DataFrame({"a": [1]}), pl.DataFrame({"a": [1]}), pa.table({"a": [1]})):
        assert read_table(frame).schema == Schema(names=("a",), n_columns=1)
    assert read_table([[1]]).schema == Schema(n_columns=1)
    with pytest.raises(ValueError, match="two-dimensional"):
        read_table(pd.Series([1]))
    with pytest.raises(TypeError, match=r"collect\(\)"):
        read_table(pl.LazyFrame({"a": [1]}))


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pd.Series([1, 2, 3]), [1, 2, 3]),
        (pd.Series([1.5, np.nan, 3]), [1.5, np.nan, 3]),
        (pd.Series([True, False, True]), [1, 0, 1]),
        (pd.Series([1, None, 3], dtype="Int64"), [1, np.nan, 3]),
        (pd.Series([1.5, None, 3], dtype="Float32"), [1.5, np.nan, 3]),
        (pd.Series([True, None, False], dtype="boolean"), [1, np.nan, 0]),
        (pd.Series([1, None, 3], dtype=object), [1, np.nan, 3]),
        (pd.Series([0.0, 0.0, 2.0], dtype="Sparse[float]"), [0, 0, 2]),
        (pl.Series([1, None, 3]), [1, np.nan, 3]),
        (pl.Series([1.5, float("nan"), None]), [1.5, np.nan, np.nan]),
        (pl.Series([True, None, False]), [1, np.nan, 0]),
        (pl.Series([1, 2, 3], dtype=pl.UInt8), [1, 2, 3]),
    ],
)
def test_numbers(column, expected):
    frame = pl.DataFrame({"a": column}) if isinstance(column, pl.Series) else pd.DataFrame({"a": column})
    table = read_table(frame)
    assert table.values.dtype == np.float64
    np.testing.assert_array_equal(table.values[:, 0], expected)
    assert table.schema == Schema(names=("a",), n_columns=1)


@pytest.mark.parametrize(
    ("column", "codes", "categories"),
    [
        (pd.Series(pd.Categorical(["b", "a", None])), [1, 0, np.nan], ("a", "b")),
        (pd.Series(pd.Categorical(["b", "a"], categories=["c", "b", "a"])), [1, 2], ("c", "b", "a")),
        (pd.Series(pd.Categorical([20, 10])), [1, 0], (10, 20)),
        (pl.Series(["b", "a", None], dtype=pl.Categorical), [1, 0, np.nan], ("a", "b")),
        (pl.Series(["b", "a"], dtype=pl.Enum(["c", "b", "a"])), [1, 2], ("c", "b", "a")),
    ],
)
def test_categories(column, codes, categories):
    frame = pl.DataFrame({"a": column}) if isinstance(column, pl.Series) else pd.DataFrame({"a": column})
    table = read_table(frame)
    np.testing.assert_array_equal(table.values[:, 0], codes)
    assert table.schema == Schema((0,), {0: categories}, ("a",), 1)


def test_columns_that_the_user_calls_categorical():
    frame = pd.DataFrame({"a": [3, 1, 3], "b": ["x", None, "w"]})
    table = read_table(frame, categorical=[0, 1])
    np.testing.assert_array_equal(table.values, [[1, 1], [0, np.nan], [1, 0]])
    assert table.schema.categories == {0: (1, 3), 1: ("w", "x")}


def test_a_known_schema_keeps_its_codes():
    trained = read_table(pd.DataFrame({"a": pd.Categorical(["x", "y"])})).schema
    other = pl.DataFrame({"a": ["z", "y", None]})
    np.testing.assert_array_equal(read_table(other, schema=trained).values[:, 0], [np.nan, 1, np.nan])
    with pytest.raises(ValueError, match=r"'a'.*'z'"):
        read_table(other, schema=trained, unseen="error")


def _objects(entries):
    column = np.empty((len(entries), 1), dtype=object)
    for row, entry in enumerate(entries):  # one by one: numpy makes a third dimension of lists
        column[row, 0] = entry
    return column


@pytest.mark.parametrize(
    ("column", "error", "words"),
    [
        (pd.to_datetime(["2020-01-01", "2021-01-01"]), ValueError, "holds dates or durations"),
        (pd.to_datetime(["2020-01-01", None], utc=True), ValueError, "holds dates or durations"),
        ([datetime.date(2020, 1, 1), None], ValueError, "holds dates or durations"),
        (pd.to_timedelta([1, 2]), ValueError, "holds dates or durations"),
        ([1j, 2], ValueError, "holds complex numbers"),
        ([{}, {}], TypeError, "argument must be a string or a number"),
        ([[1], [2]], TypeError, "argument must be a string or a number"),
        ([1.0, np.inf], ValueError, "holds infinite values"),
        ([1.0, -1e300], ValueError, r"holds numbers as large as 1e\+300"),
        (pd.Series([10**400, 1], dtype=object), ValueError, "holds numbers as large as"),
    ],
)
@pytest.mark.parametrize("container", [pd.DataFrame, lambda columns: _objects(columns["a"])])
def test_other_columns_are_refused_by_name(container, column, error, words):
    label = "'a'" if isinstance(container, type) else "0"
    with pytest.raises(error, match=f"Column {label} of X .*{words}"):
        read_table(container({"a": column}))


def test_an_empty_category_is_refused():
    with pytest.raises(ValueError, match="no category"):
        read_table(pd.DataFrame({"a": pd.Categorical([None, None])}))


def test_text_is_categorical_in_every_container():
    rows = [[1.5, "b", True], [None, None, False], [2.5, "a", True]]
    names = ["x", "kind", "flag"]
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    expected = [[1.5, 1, 1], [np.nan, np.nan, 0], [2.5, 0, 1]]
    arrow = pa.table({name: list(values) for name, values in columns.items()})
    polars = pl.DataFrame({name: list(values) for name, values in columns.items()})
    for X in (
        rows,
        np.array(rows, dtype=object),
        pd.DataFrame(rows, columns=names),
        pd.DataFrame(rows, columns=names).convert_dtypes(),
        polars,
        polars.with_columns(pl.col("kind").cast(pl.Categorical)),
        arrow,
        arrow.to_batches()[0],
        arrow.set_column(1, "kind", arrow["kind"].dictionary_encode()),
    ):
        table = read_table(X)
        np.testing.assert_array_equal(table.values, expected)
        assert table.schema.categories == {1: ("a", "b")}
        again = read_table(X, schema=table.schema, unseen="error")
        np.testing.assert_array_equal(again.values, expected)


def test_numeric_arrays_keep_their_type_and_memory():
    for X in (np.ones((2, 3), dtype=np.float32), np.asfortranarray(np.ones((2, 3)))):
        assert read_table(X).values is X
    assert read_table(np.ones((2, 3), dtype=int)).values.dtype == np.float64
    assert read_table(sp.csc_array(np.eye(3, dtype=bool))).values.dtype == np.float64


def test_repeated_entries_of_a_sparse_matrix_add_up():
    X = sp.csr_array((np.ones(3), [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    assert read_table(X).values.data.tolist() == [2, 1]
    assert X.nnz == 3


def test_columns_that_are_not_those_of_the_schema():
    schema = read_table(pd.DataFrame({"a": [1], "b": [2]})).schema
    with pytest.raises(ValueError, match="same order"):
        read_table(pl.DataFrame({"b": [1], "a": [2]}), schema=schema)
    with pytest.raises(ValueError, match=r"unseen at fit time:\n- c\n.*now missing:\n- b"):
        read_table(pl.DataFrame({"a": [1], "c": [2]}), schema=schema)
    with pytest.raises(ValueError, match=r"has 3 features, but .* expecting 2"):
        read_table([[1, 2, 3]], schema=schema)
    with pytest.raises(ValueError, match="held numbers when the model was trained"):
        read_table([[1, "x"]], schema=schema)
    assert read_table([[1, 2]], schema=schema).schema is schema


def test_codes_of_arrays_under_a_schema_with_categories():
    schema = read_table(pd.DataFrame({"a": pd.Categorical(["x", "y"])})).schema
    np.testing.assert_array_equal(read_table(np.array([[1.0], [2.0]]), schema=schema).values, [[1], [np.nan]])
    with pytest.raises(ValueError, match="never saw"):
        read_table(np.array([[1.0], [2.0]]), schema=schema, unseen="error")
    with pytest.raises(ValueError, match="must hold codes"):
        read_table(np.array([[0.5]]), categorical=[0])
    with pytest.raises(ValueError, match="sparse"):
        read_table(sp.csr_array(np.eye(2)), categorical=[0])


def test_numbers_in_a_frame_are_no_categories_of_text():
    schema = read_table(pd.DataFrame({"a": pd.Categorical(["x", "y"])})).schema
    with pytest.raises(ValueError, match=r"'a' of X is categorical, and numbers came\. Pass its categories by name"):
        read_table(pd.DataFrame({"a": [0, 1]}), schema=schema)
    for column in ([None, None], ["y", 1], ["z"]):
        assert np.isnan(read_table(pd.DataFrame({"a": column}), schema=schema).values[-1])


@pytest.mark.parametrize("numbers", [[3001, 8001], [0.5, 1.5], [False, True]])
def test_text_in_a_frame_is_no_category_of_numbers(numbers):
    schema = read_table(pd.DataFrame({"a": pd.Categorical(numbers)})).schema
    for column in (list(map(str, numbers)), pd.Categorical(list(map(str, numbers)))):
        with pytest.raises(ValueError, match=r"'a' of X holds text, but its categories are numbers, such as"):
            read_table(pd.DataFrame({"a": column}), schema=schema)
    for column in ([None, None], [numbers[0], "?"], [7]):
        assert np.isnan(read_table(pd.DataFrame({"a": column}), schema=schema).values[-1])


def test_a_number_may_stand_for_a_missing_value():
    X = np.array([[1.0, -999.0], [0.0, 2.0]])
    np.testing.assert_array_equal(read_table(X, missing=-999).values, [[1, np.nan], [0, 2]])
    assert X[0, 1] == -999


@pytest.mark.parametrize(
    ("X", "error", "words"),
    [
        (np.ma.masked_invalid([[1.0, np.nan]]), TypeError, r"X\.filled\(np\.nan\)"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), ValueError, "several columns called 'a'"),
        (np.ones(3), ValueError, "Reshape your data"),
        ([[1, 2], [3]], ValueError, "rows of the same length"),
        (np.empty((0, 2)), ValueError, r"0 sample\(s\) \(shape=\(0, 2\)\)"),
        (np.empty((2, 0)), ValueError, r"0 feature\(s\)"),
    ],
)
def test_containers_that_are_refused(X, error, words):
    with pytest.raises(error, match=words):
        read_table(X)
