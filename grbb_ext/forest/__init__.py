"""Trained models as plain arrays: predictions bit-equal to the libraries', and walks that stop at unknown features."""

from grbb_ext.forest._cursor import ForestCursor
from grbb_ext.forest._forest import Forest, LeafBounds
from grbb_ext.forest._tree import Tree
from grbb_ext.forest._walk import filled

__all__ = ["Forest", "ForestCursor", "LeafBounds", "Tree", "filled"]
