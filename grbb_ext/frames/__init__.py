"""Rows of any container (array, sparse matrix, pandas or polars frame) as numbers, names and categories."""

from grbb_ext.frames._frame import is_frame, read_frame
from grbb_ext.frames._row_keys import row_keys
from grbb_ext.frames._table import Schema, Table

__all__ = ["Schema", "Table", "is_frame", "read_frame", "row_keys"]
