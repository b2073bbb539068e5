"""Rows of any container (array, sparse matrix, frame) as numbers, categories and names; and views of them."""

from typing import TypeAlias

from grbb_ext.table._components import NormalScores, PrincipalComponents, principal_columns
from grbb_ext.table._distances import (
    DistanceSpace,
    GraphWarning,
    Scale,
    column_factors,
    fill_missing,
    graph_columns,
    prepare_columns,
)
from grbb_ext.table._read import (
    Unseen,
    check_container,
    check_magnitude,
    column_names,
    column_positions,
    is_frame,
    listed_categories,
    read_column,
    read_frame,
    read_table,
)
from grbb_ext.table._table import Matrix, Schema, Table, join_schemas, row_keys, stack_tables
from grbb_ext.table._trees import CategoryOrder

# Old names, until their last callers are gone.
TreeColumns: TypeAlias = Table
read_columns = read_table

__all__ = [
    "CategoryOrder",
    "DistanceSpace",
    "GraphWarning",
    "Matrix",
    "NormalScores",
    "PrincipalComponents",
    "Scale",
    "Schema",
    "Table",
    "TreeColumns",
    "Unseen",
    "check_container",
    "check_magnitude",
    "column_factors",
    "column_names",
    "column_positions",
    "fill_missing",
    "graph_columns",
    "is_frame",
    "join_schemas",
    "listed_categories",
    "prepare_columns",
    "principal_columns",
    "read_column",
    "read_columns",
    "read_frame",
    "read_table",
    "row_keys",
    "stack_tables",
]
