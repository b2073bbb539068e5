from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from grbb_ext.table import Table, read_table, row_keys

_ROWS = arrays(
    np.float64, st.tuples(st.integers(1, 8), st.integers(1, 3)), elements=st.sampled_from([0.0, -0.0, 1.0, np.nan])
)


@given(_ROWS)
def test_keys_are_equal_exactly_where_rows_are(rows):
    keys = row_keys(Table(rows))
    for i in range(len(rows)):
        for j in range(len(rows)):
            assert (keys[i] == keys[j]) == np.array_equal(rows[i], rows[j], equal_nan=True)


@given(_ROWS.map(np.nan_to_num))
def test_sparse_rows_too(rows):
    keys, expected = row_keys(Table(sp.csr_array(rows))), row_keys(Table(rows))
    assert [keys.index(key) for key in keys] == [expected.index(key) for key in expected]


def test_categories_count_by_name():
    frame = pd.DataFrame({"a": pd.Categorical(["x", "y", None, "z"]), "b": [1.0, 2.0, 3.0, 4.0]})
    keys = row_keys(read_table(frame))
    part = frame.iloc[[3, 1]].assign(a=pd.Categorical(["z", "y"]))
    assert row_keys(read_table(part)) == [keys[3], keys[1]]
    in_polars = pl.DataFrame({"a": pl.Series(["z", None], dtype=pl.Categorical), "b": [4.0, 3.0]})
    assert row_keys(read_table(in_polars)) == [keys[3], keys[2]]
