"""Rows of any container (array, sparse matrix, pandas or polars frame) as numbers, names and categories."""

from grbb_ext.table._components import NormalScores, principal_columns
from grbb_ext.table._distances import (
    GraphWarning,
    Matrix,
    Scale,
    column_factors,
    fill_missing,
    graph_columns,
    prepare_columns,
)
from grbb_ext.table._read import Unseen, check_container, check_magnitude, column_positions, is_frame, read_frame
from grbb_ext.table._table import Schema, Table, row_keys
from grbb_ext.table._trees import TreeColumns, read_columns

__all__ = [
    "GraphWarning",
    "Matrix",
    "NormalScores",
    "Scale",
    "Schema",
    "Table",
    "TreeColumns",
    "Unseen",
    "check_container",
    "check_magnitude",
    "column_factors",
    "column_positions",
    "fill_missing",
    "graph_columns",
    "is_frame",
    "prepare_columns",
    "principal_columns",
    "read_columns",
    "read_frame",
    "row_keys",
]
