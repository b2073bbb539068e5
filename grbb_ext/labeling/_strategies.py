"""Batches of rows by other criteria than the variance."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from grbb_ext.propagation import Propagation, SmoothPropagation

Strategy = Literal["a-optimal", "k-means", "uncertainty", "random"]
Index = NDArray[np.intp]

_N_GRAPH_COLUMNS = 32
_FULL_K_MEANS_UP_TO = 10_000


def most_uncertain(probability: NDArray[np.float64], candidates: Index, k: int) -> Index:
    """Return the k candidates whose two most probable classes are closest.

    Parameters
    ----------
    probability : ndarray of shape (N,) or (N, K)
        Class probabilities.
    candidates : ndarray of int
        Rows to choose from.
    k : int
        How many.

    Returns
    -------
    ndarray of int
        The rows, the most uncertain first.

    Examples
    --------
    >>> most_uncertain(np.array([0.9, 0.4, 0.52, 0.0]), np.array([0, 1, 2, 3]), 2).tolist()
    [2, 1]
    """
    p = probability[candidates]
    if p.ndim == 1:
        margin = np.abs(2.0 * p - 1.0)
    else:
        top = np.partition(p, -2, axis=1)
        margin = top[:, -1] - top[:, -2]
    return candidates[np.argsort(margin, kind="stable")[:k]]


def graph_columns(propagation: Propagation, random: np.random.Generator) -> NDArray[np.float64]:
    r"""Return 32 numbers for each row whose distances are those of the graph, for want of the rows themselves.

    They are the row's entries of :math:`K \Omega`, with K the kernel of the smooth operator and :math:`\Omega` random
    normal: a random projection of the kernel's columns, each row divided by its length.

    Parameters
    ----------
    propagation : Propagation
        The operator; where it is not the smooth one, that of the same graph is made.
    random : numpy.random.Generator
        The source of the projection.

    Returns
    -------
    ndarray of shape (N, 32)
        Columns for k-means.
    """
    if not isinstance(propagation, SmoothPropagation):
        propagation = SmoothPropagation(propagation.W, propagation.labeled, verbose=propagation.verbose)
    projection = random.normal(size=(propagation.n_rows, _N_GRAPH_COLUMNS)).astype(np.float32)
    image = np.asarray(propagation.kernel_product(projection, rough=True), dtype=np.float64)
    length = np.linalg.norm(image, axis=1, keepdims=True)
    return np.asarray(image / np.where(length > 0, length, 1.0))


def spread_out(
    columns: NDArray[np.float64], labeled: Index, candidates: Index, k: int, random: np.random.Generator
) -> Index:
    """Return k candidates that stand for regions without a label (k-means).

    All rows are put into n + k clusters. Of the clusters without a labelled row, the largest come first, each with the
    candidate nearest to its centre; then, if they are fewer than k, the others.

    Parameters
    ----------
    columns : ndarray of shape (N, d)
        All rows, in comparable units.
    labeled, candidates : ndarray of int
        Labelled rows, and rows to choose from.
    k : int
        How many.
    random : numpy.random.Generator
        The source of the first centres.

    Returns
    -------
    ndarray of int
        The rows, the largest cluster first.

    Examples
    --------
    >>> X = np.array([[0.0], [0.1], [5.0], [5.1], [5.2], [9.0]])
    >>> spread_out(X, np.array([0]), np.array([1, 2, 3, 4, 5]), 2, np.random.default_rng(0)).tolist()
    [3, 5]
    """
    from sklearn.cluster import KMeans, MiniBatchKMeans

    n_clusters = min(labeled.size + k, columns.shape[0])
    kind = KMeans if columns.shape[0] <= _FULL_K_MEANS_UP_TO else MiniBatchKMeans
    found = kind(n_clusters, n_init=3, random_state=int(random.integers(2**31))).fit(columns)
    cluster = found.labels_
    size = np.bincount(cluster, minlength=n_clusters)
    covered = np.zeros(n_clusters, dtype=bool)
    covered[cluster[labeled]] = True
    distance = np.linalg.norm(columns[candidates] - found.cluster_centers_[cluster[candidates]], axis=1)
    nearest_first = candidates[np.argsort(distance, kind="stable")]
    # One row of each cluster in the order wanted, then a second of each, and so on.
    rank = np.zeros(columns.shape[0], dtype=np.intp)
    seen = np.zeros(n_clusters, dtype=np.intp)
    for row in nearest_first:
        rank[row] = seen[cluster[row]]
        seen[cluster[row]] += 1
    at = cluster[candidates]
    order = np.lexsort((candidates, -size[at], covered[at], rank[candidates]))
    return candidates[order[:k]]
