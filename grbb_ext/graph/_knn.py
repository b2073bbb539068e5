"""The symmetric nearest-neighbour graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from grbb_ext.graph._columns import Scale, prepare_columns
from grbb_ext.graph._lists import check_neighbors, search_lists
from grbb_ext.graph._neighbors import Method
from grbb_ext.graph._weights import Weights, check_weights


def knn_graph(
    X: Any,
    n_neighbors: int = 9,
    *,
    weights: Weights = "self-tuning",
    metric: str = "euclidean",
    method: Method = "auto",
    scale: Scale = "auto",
    bandwidth: float | None = None,
    n_jobs: int | None = None,
    verbose: bool = True,
) -> sp.csr_array:
    """Build the affinity W of the rows of X: two rows are joined if either is among the other's nearest.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (N, d)
        Rows, labelled and unlabelled together. NaN is replaced by the column's median, for the graph only, with a
        :class:`GraphWarning`. Equal rows are searched once and joined to each other.
    n_neighbors : int, default=9
        Neighbours per row (the paper's synthetic experiment uses 9).
    weights : {"self-tuning", "binary", "heat"}, default="self-tuning"
        exp(-d^2 / (r_i r_j)) with r the distance to the k-th neighbour; 1; or exp(-d^2 / bandwidth^2).
    metric : str, default="euclidean"
        A metric of :class:`sklearn.neighbors.NearestNeighbors`.
    method : {"auto", "brute", "tree", "faiss"}, default="auto"
        Search. ``"auto"`` is exact up to 20,000 rows, then approximate if faiss is installed
        (``pip install 'grbb_ext[ann]'``), else still exact, in quadratic time.
    scale : {"auto", "standard"} or None, default="auto"
        ``"standard"`` divides each column by its standard deviation, None leaves columns alone; ``"auto"`` divides
        unless the columns share a unit, as pixels do (the widest range is at most 4 times the lower quartile).
    bandwidth : float or None, default=None
        Length of ``weights="heat"``; None takes the median distance to the k-th neighbour.
    n_jobs : int or None, default=None
        Threads of the exact search, as in scikit-learn.
    verbose : bool, default=True
        Draw a progress bar if the search takes more than a few seconds.

    Returns
    -------
    scipy.sparse.csr_array of shape (N, N)
        Symmetric, non-negative, zero diagonal, deterministic.

    Examples
    --------
    >>> W = knn_graph([[0.0], [1.0], [1.5], [10.0]], n_neighbors=1, weights="binary")
    >>> W.toarray().astype(int).tolist()
    [[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]]
    """
    check_weights(weights)
    if bandwidth is not None and not (np.isfinite(bandwidth) and bandwidth > 0):
        raise ValueError(f"bandwidth must be a positive number, got {bandwidth!r}.")
    columns = prepare_columns(X, scale)
    check_neighbors(n_neighbors, columns)
    lists = search_lists(columns, int(n_neighbors), metric, method, n_jobs, verbose)
    return lists.graph(int(n_neighbors), weights, bandwidth)
