"""Equal rows: found by hashing, searched for neighbours once, and joined to each other afterwards.

Forty copies of one row are each other's forty nearest neighbours and would form a component of their own. So the
neighbour search runs on the distinct rows, and the result is spread over the copies.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext.graph._columns import Matrix

Index = NDArray[np.intp]


def _row_hashes(X: Matrix) -> NDArray[np.uint64]:
    """Hash rows exactly (integer arithmetic), so that equal rows always have equal hashes."""
    multipliers = np.random.default_rng(0).integers(1, 2**63, size=X.shape[1], dtype=np.uint64) | np.uint64(1)
    # x + 0.0 turns -0.0 into 0.0: the two are equal numbers with different bits.
    if isinstance(X, sp.csr_array):
        X = X.copy()
        X.eliminate_zeros()
        bits = (X.data.astype(np.float64) + 0.0).view(np.uint64)
        return np.asarray(sp.csr_array((_mix(bits), X.indices, X.indptr), shape=X.shape) @ multipliers)
    hashes = np.zeros(X.shape[0], dtype=np.uint64)
    for column, multiplier in zip(X.T, multipliers, strict=True):
        hashes += _mix((column.astype(np.float64) + 0.0).view(np.uint64)) * multiplier
    return hashes


def _mix(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread the bits of a double (splitmix64): round numbers end in zeros, and sums of such products collide."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    return bits ^ (bits >> np.uint64(31))


def distinct_rows(X: Matrix) -> tuple[Index, Index]:
    """Find the distinct rows of X.

    Returns
    -------
    first : ndarray of shape (U,)
        Where each distinct row stands first, ascending.
    inverse : ndarray of shape (N,)
        ``X[first[inverse]]`` equals X.

    Examples
    --------
    >>> first, inverse = distinct_rows(np.array([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0], [-0.0, 0.0]]))
    >>> first.tolist(), inverse.tolist()
    ([0, 1], [0, 1, 0, 1])
    """
    _, first, inverse = np.unique(_row_hashes(X), return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return first[order], rank[inverse]


def spread_edges(
    edges: tuple[Index, Index, NDArray[np.float64]], inverse: Index, n_neighbors: int
) -> tuple[Index, Index, NDArray[np.float64]]:
    """Turn edges between distinct rows into edges between all rows.

    Copy r of row u is joined to copy r (modulo their numbers) of its neighbour v, so every copy keeps u's neighbours
    and the number of edges grows with the rows, not with their squares. The copies themselves form a ring in
    which each is joined, at distance 0, to the next ``n_neighbors / 2``: up to ``n_neighbors + 1`` copies a clique.

    Parameters
    ----------
    edges : tuple of (rows, columns, distances)
        Directed edges between distinct rows.
    inverse : ndarray of shape (N,)
        The distinct row that each row equals.
    n_neighbors : int
        Neighbours per row.

    Returns
    -------
    tuple of (rows, columns, distances)
        Directed edges between the N rows.

    Examples
    --------
    >>> one_edge = np.array([0]), np.array([1]), np.array([2.0])
    >>> rows, columns, distances = spread_edges(one_edge, np.array([0, 0, 1]), n_neighbors=2)
    >>> list(zip(rows.tolist(), columns.tolist(), distances.tolist()))
    [(0, 2, 2.0), (1, 2, 2.0), (0, 1, 0.0), (1, 0, 0.0)]
    """
    u, v, distance = edges
    members = np.argsort(inverse, kind="stable")
    copies = np.bincount(inverse)
    start = np.cumsum(copies) - copies

    repeats = np.maximum(copies[u], copies[v])
    edge = np.repeat(np.arange(u.size), repeats)
    copy = np.arange(edge.size) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    rows = members[start[u[edge]] + copy % copies[u[edge]]]
    columns = members[start[v[edge]] + copy % copies[v[edge]]]

    several = members[copies[inverse[members]] > 1]
    group = inverse[several]
    position = np.arange(several.size) - np.searchsorted(group, group)
    ring_rows, ring_columns = [rows], [columns]
    for step in range(1, (n_neighbors + 1) // 2 + 1):
        following = members[start[group] + (position + step) % copies[group]]
        proper = following != several
        ring_rows.append(several[proper])
        ring_columns.append(following[proper])
    rows, columns = np.concatenate(ring_rows), np.concatenate(ring_columns)
    return rows, columns, np.concatenate([distance[edge], np.zeros(rows.size - edge.size)])
