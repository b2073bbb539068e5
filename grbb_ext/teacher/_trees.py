"""Extremely randomised trees on the propagated labels, and how often rows share a leaf."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesRegressor

from grbb_ext._progress import in_threads, over_rows
from grbb_ext.graph import RefinedGraph
from grbb_ext.table import Matrix
from grbb_ext.teacher._held_out import MOST_OUTPUTS

Index = NDArray[np.intp]

_PAIRS_PER_BLOCK = 2**18
# Added to 1 - S, so that rows that share every leaf are still ranked by distance.
_OFFSET = 0.1


class TargetTrees:
    """Extremely randomised regression trees, fitted to the propagated labels.

    Parameters
    ----------
    X : ndarray or csr_array of shape (R, d)
        Rows, NaN where missing.
    target : ndarray of shape (R,) or (R, K)
        Their propagated labels; the leading 32 principal directions of more columns.
    settings : RefinedGraph
        Size of the forest.
    random : numpy.random.Generator
        Source of randomness.
    n_jobs : int or None
        Threads; None takes all cores.

    Examples
    --------
    >>> X = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> settings = RefinedGraph(n_trees=3, min_samples_leaf=2)
    >>> trees = TargetTrees(X, np.array([0.0, 0.0, 1.0, 1.0]), settings, np.random.default_rng(0), 1)
    >>> trees.leaves(X).shape
    (3, 4)
    """

    def __init__(
        self,
        X: Matrix,
        target: NDArray[np.float64],
        settings: RefinedGraph,
        random: np.random.Generator,
        n_jobs: int | None,
    ) -> None:
        self._trees = ExtraTreesRegressor(
            settings.n_trees,
            min_samples_leaf=settings.leaf_size(X.shape[0]),
            max_features=settings.split_columns(X.shape[1]),
            random_state=int(random.integers(2**31)),
            n_jobs=1,  # threads of scikit-learn's forests race for the filters of warnings, and may leave them empty
        ).fit(X, leading_directions(_rounded(target)))
        self._n_jobs = n_jobs

    def leaves(self, X: Matrix) -> NDArray[np.integer[Any]]:
        """Return the leaf of each row, a line per tree: shape (T, N)."""
        largest = max(tree.tree_.node_count for tree in self._trees.estimators_)
        # Small numbers keep the leaves of all rows in a fast cache.
        leaves = np.empty((len(self._trees.estimators_), X.shape[0]), dtype=np.int16 if largest < 2**15 else np.int32)
        rows = X.astype(np.float32)

        def fill(index: int) -> None:
            leaves[index] = self._trees.estimators_[index].apply(rows, check_input=False)

        in_threads(fill, range(leaves.shape[0]), n_jobs=self._n_jobs)
        return leaves


def shared_leaves(
    codes: NDArray[np.integer[Any]], neighbors: Index, n_jobs: int | None = None, verbose: bool = False
) -> NDArray[np.float32]:
    r"""Return :math:`S_{ij}`, the share of trees in which row i and its j-th candidate share a leaf.

    Parameters
    ----------
    codes : ndarray of shape (T, N)
        The leaf of each row.
    neighbors : ndarray of shape (N, C)
        Candidates of each row. -1 stands for none; what is returned for it means nothing.
    n_jobs : int or None, default=None
        Threads; None takes all cores.
    verbose : bool, default=False
        Draw a progress bar if it takes more than a few seconds.

    Returns
    -------
    ndarray of float32 of shape (N, C)
        Shares between 0 and 1.

    Examples
    --------
    >>> shared_leaves(np.array([[1, 1, 2], [1, 2, 2]]), np.array([[1, 2], [0, 2], [0, 1]])).tolist()
    [[0.5, 0.0], [0.5, 0.5], [0.0, 0.5]]
    """
    n_rows, n_candidates = neighbors.shape
    step = max(1, _PAIRS_PER_BLOCK // max(1, n_candidates))
    settings: dict[str, Any] = {"n_jobs": n_jobs, "description": "shared leaves", "verbose": verbose}
    return over_rows(lambda block: shares(codes[:, block], codes, neighbors[block]), n_rows, step, **settings)


def shares(
    codes: NDArray[np.integer[Any]], codes_of_others: NDArray[np.integer[Any]], others: Index
) -> NDArray[np.float32]:
    """Return the share of trees in which each row shares a leaf with each of its candidates among other rows.

    Examples
    --------
    >>> shares(np.array([[1], [2]]), np.array([[1, 5], [2, 2]]), np.array([[0, 1]])).tolist()
    [[1.0, 0.5]]
    """
    count = np.zeros(others.shape, dtype=np.int32)
    # One tree at a time: its leaves of all rows fit into a fast cache.
    for own, theirs in zip(codes, codes_of_others, strict=True):
        count += theirs[others] == own[:, None]
    return count.astype(np.float32) / np.float32(codes.shape[0])


def closer_where_shared(squared: NDArray[np.float64], share: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the squared distances times 1.1 - S, by which candidates are ranked.

    Examples
    --------
    >>> closer_where_shared(np.array([[1.0, 2.0]]), np.array([[0.0, 1.0]], dtype=np.float32)).round(2).tolist()
    [[1.1, 0.2]]
    """
    return np.asarray(squared * (1.0 + _OFFSET - share))


def _rounded(target: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale to [0, 1] and keep 16 bits: sums over rows are then exact, and the trees do not depend on their order."""
    spread = float(np.ptp(target)) or 1.0
    return np.asarray(np.round((target - target.min()) / spread * 2.0**16) / 2.0**16)


def leading_directions(target: NDArray[np.float64]) -> NDArray[np.float64]:
    """Project onto the 32 directions in which the rows of a rounded target vary most, where it has more columns.

    The gain of a split is a sum of squares over the columns, which no rotation changes: what is left out is the
    variance in the other directions.

    Examples
    --------
    >>> target = np.eye(40)[np.arange(80) % 40]
    >>> leading_directions(target).shape, leading_directions(target[:, :32]).shape
    ((80, 32), (80, 32))
    """
    if target.ndim == 1 or target.shape[1] <= MOST_OUTPUTS:
        return target
    mean = target.mean(axis=0)
    # Products of numbers of 16 bits add up exactly, whatever the order of the rows.
    covariance = target.T @ target - target.shape[0] * np.outer(mean, mean)
    directions = np.linalg.eigh(covariance)[1][:, -MOST_OUTPUTS:]
    return _rounded((target - mean) @ directions)
