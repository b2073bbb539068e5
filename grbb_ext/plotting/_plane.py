"""Rows of many columns in the plane."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from grbb_ext.frames import Schema, Table, is_frame, read_frame
from grbb_ext.graph import graph_columns
from grbb_ext.graph._columns import prepare_columns


def plane(X: Any) -> tuple[NDArray[np.float64], tuple[str, str]]:
    """Return two coordinates of each row and the names of the axes.

    Two columns are drawn as they are. More are scaled as for the graph and projected on their principal components.

    Parameters
    ----------
    X : array-like, sparse matrix or frame of shape (N, d)
        Rows; missing numbers are replaced by the median, categories become one-hot columns.

    Examples
    --------
    >>> coordinates, names = plane([[0.0, 0.0, 1.0], [2.0, 0.0, 1.0], [4.0, 0.1, 1.0]])
    >>> coordinates.shape, names
    ((3, 2), ('component 1 (93 % of the variance)', 'component 2 (7 %)'))
    """
    if is_frame(X):
        table, names = read_frame(X, ()), [str(name) for name in X.columns]
    else:
        values = X if hasattr(X, "tocsr") else np.asarray(X, dtype=np.float64)
        table, names = Table(values, Schema()), [f"column {j}" for j in range(values.shape[-1])]
    if len(table.values.shape) != 2 or table.values.shape[1] < 2:
        raise ValueError(f"X must have at least two columns, got shape {table.values.shape}. Pass coordinates=.")
    if table.values.shape[1] == 2 and not table.schema.categorical and not hasattr(table.values, "tocsr"):
        return np.asarray(table.values, dtype=np.float64), (names[0], names[1])
    columns, scale = graph_columns(table)
    pca = PCA(2, random_state=0).fit(prepare_columns(columns, scale))
    share = np.nan_to_num(pca.explained_variance_ratio_)  # rows that are all equal have none
    coordinates = pca.transform(prepare_columns(columns, scale))
    return np.asarray(coordinates, dtype=np.float64), (
        f"component 1 ({share[0]:.0%} of the variance)".replace("%", " %"),
        f"component 2 ({share[1]:.0%})".replace("%", " %"),
    )
