from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from grbb_ext.table import Schema, is_frame, read_frame


def test_frames_are_told_from_other_containers():
    assert is_frame(pd.DataFrame({"a": [1]}))
    assert is_frame(pl.DataFrame({"a": [1]}))
    assert not is_frame([[1]])
    assert not is_frame(pd.Series([1]))
    with pytest.raises(TypeError, match=r"collect\(\)"):
        is_frame(pl.LazyFrame({"a": [1]}))


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
    table = read_frame(frame, [])
    assert table.values.dtype == np.float64
    np.testing.assert_array_equal(table.values[:, 0], expected)
    assert table.schema == Schema()


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
    table = read_frame(frame, [])
    np.testing.assert_array_equal(table.values[:, 0], codes)
    assert table.schema == Schema((0,), {0: categories})


def test_columns_that_the_user_calls_categorical():
    frame = pd.DataFrame({"a": [3, 1, 3], "b": ["x", None, "w"]})
    table = read_frame(frame, [0, 1])
    np.testing.assert_array_equal(table.values, [[1, 1], [0, np.nan], [1, 0]])
    assert table.schema.categories == {0: (1, 3), 1: ("w", "x")}


def test_a_known_schema_keeps_its_codes():
    trained = read_frame(pd.DataFrame({"a": pd.Categorical(["x", "y"])}), []).schema
    other = pl.DataFrame({"a": ["z", "y", None]})
    np.testing.assert_array_equal(read_frame(other, [], trained, "missing").values[:, 0], [np.nan, 1, np.nan])
    with pytest.raises(ValueError, match=r"'a'.*'z'"):
        read_frame(other, [], trained, "error")


@pytest.mark.parametrize(
    "column", [["text", "x"], pd.to_datetime(["2020-01-01", "2021-01-01"]), pd.to_timedelta([1, 2]), [{}, {}]]
)
def test_other_columns_are_refused_by_name(column):
    with pytest.raises(ValueError, match="Column 'a' of X is not numeric"):
        read_frame(pd.DataFrame({"a": column}), [])


def test_an_empty_category_is_refused():
    with pytest.raises(ValueError, match="no category"):
        read_frame(pd.DataFrame({"a": pd.Categorical([None, None])}), [])
