"""Rows of any container (array, sparse matrix, frame) as numbers, categories and names; and views of them."""

from grbb_ext.table._columns import Unseen, check_magnitude, read_column
from grbb_ext.table._components import NormalScores, PrincipalComponents
from grbb_ext.table._distances import DistanceSpace, GraphWarning, Scale
from grbb_ext.table._read import column_names, is_frame, listed_categories, read_table
from grbb_ext.table._table import CategoryOrder, Matrix, Schema, Table, join_schemas, row_keys, stack_tables

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
    "Unseen",
    "check_magnitude",
    "column_names",
    "is_frame",
    "join_schemas",
    "listed_categories",
    "read_column",
    "read_table",
    "row_keys",
    "stack_tables",
]
