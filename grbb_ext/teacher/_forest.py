"""The forest expert: extremely randomised trees on the labelled rows, which never use an unlabelled row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.tree import ExtraTreeRegressor

from grbb_ext._progress import in_threads, over_rows
from grbb_ext.labels import Labels
from grbb_ext.table import DistanceSpace, Matrix, Table
from grbb_ext.teacher._held_out import MOST_LABELS, MOST_OUTPUTS, fixed_order

# The out-of-bag means rest on about a third of the trees.
_TREES, _FEWEST_TREES = 64, 16
# Columns that a split chooses from: the time does not grow with more.
_MOST_COLUMNS = 100


@dataclass(frozen=True)
class ForestExpert:
    """A forest that was fitted to the labelled rows.

    Attributes
    ----------
    trees : tuple
        The trees of scikit-learn.
    held_out : ndarray of shape (n,) or (n, K)
        Out-of-bag predictions of the labelled rows; NaN for a row that no tree has left out.
    space : DistanceSpace or None
        Makes further columns: principal components of many, each of which would say little alone.
    """

    trees: tuple[Any, ...]
    held_out: NDArray[np.float64]
    space: DistanceSpace | None

    name = "forest"

    @classmethod
    def fit(
        cls,
        table: Table,
        labels: Labels,
        *,
        space: DistanceSpace | None = None,
        points: NDArray[np.floating[Any]] | None = None,
        random_state: int = 0,
        n_jobs: int | None = 1,
        verbose: bool = False,
    ) -> ForestExpert:
        """Fit the trees.

        Extremely randomised trees on bootstrap samples, each split the best of one random threshold per column. With a
        few dozen labels they are ahead of a booster on the same rows nearly everywhere, and as each tree leaves out a
        third of the labels, predictions of labels that it has not seen come for free. The order of the rows does not
        matter.

        Parameters
        ----------
        table : Table
            All rows; a category is its code, so that no label is used for it.
        labels : Labels
            The labels.
        space : DistanceSpace or None, default=None
            Makes further columns.
        points : ndarray of shape (N, c) or None, default=None
            What `space` makes of the table, where that is known.
        random_state : int, default=0
            Seed of the trees.
        n_jobs : int or None, default=1
            Threads that share the trees, where X is dense and nothing is missing.
        verbose : bool, default=False
            Draw a progress bar if it takes more than two seconds.

        Examples
        --------
        >>> from grbb_ext.labels import read_labels
        >>> from grbb_ext.table import read_table
        >>> table = read_table(np.arange(12.0)[:, None])
        >>> forest = ForestExpert.fit(table, read_labels([0, 0, 0, -1, -1, -1, -1, -1, -1, 1, 1, 1]))
        >>> (forest.predict(table)[[3, 8]] > 0.5).tolist(), (forest.held_out[[0, 5]] > 0.5).tolist()
        ([False, True], [False, True])
        """
        rows, targets = table.take(labels.labeled), labels.targets
        order = fixed_order(rows, targets)
        X = _columns(rows, space, None if points is None else points[labels.labeled]).astype(np.float32)[order]
        # Trees stop at an impurity of 2e-16, whatever the unit of y. By a power of two every bit stays.
        spread = 0.0 if labels.classes is not None else float(targets.std())
        unit = 2.0 ** np.floor(np.log2(spread)) if spread > 0 else 1.0
        y, n = targets[order] / unit, order.size
        random = np.random.default_rng(random_state)
        # Trees that look for missing values, or read sparse rows, change the filters of warnings, for which threads
        # would race. The others take the rows as they are.
        plain = not sp.issparse(X) and not np.isnan(X).any()
        columns = min(X.shape[1], _MOST_COLUMNS)

        def grow(draw: tuple[NDArray[np.intp], int]) -> tuple[Any, NDArray[np.intp], NDArray[np.float64]]:
            drawn, seed = draw
            tree = ExtraTreeRegressor(max_features=columns, random_state=seed)
            with config_context(skip_parameter_validation=True):  # as long as growing a small tree
                tree.fit(X[drawn], y[drawn], check_input=not plain)
            tree.tree_.value[:] *= unit
            left = np.setdiff1d(np.arange(n), drawn)
            predicted = tree.predict(X[left], check_input=not plain) if left.size else np.empty((0, *y.shape[1:]))
            return tree, left, predicted

        draws = [
            (random.integers(n, size=min(n, MOST_LABELS)), int(random.integers(2**31)))
            for _ in range(n_trees(labels.n_outputs))
        ]
        grown = in_threads(grow, draws, n_jobs=n_jobs if plain else 1, description="forest", verbose=verbose)
        total, count = np.zeros(y.shape), np.zeros(n)
        for _, left, predicted in grown:
            total[left] += predicted.reshape(left.size, *y.shape[1:])
            count[left] += 1
        held_out = np.empty(targets.shape)
        with np.errstate(invalid="ignore"):  # 0 / 0 for a row that no tree has left out
            held_out[order] = (total.T / count).T
        return cls(tuple(tree for tree, *_ in grown), held_out, space)

    def predict(
        self,
        table: Table,
        points: NDArray[np.floating[Any]] | None = None,
        *,
        n_jobs: int | None = 1,
        verbose: bool = False,
    ) -> NDArray[np.float64]:
        """Predict the targets of any rows: probabilities, or values for regression.

        Parameters
        ----------
        table : Table
            R rows.
        points : ndarray of shape (R, c) or None, default=None
            What ``space`` makes of them, where that is known.
        n_jobs : int or None, default=1
            Threads. They share the rows, not the trees: a sum in an order that changes would change in its last digit.
        verbose : bool, default=False
            Draw a progress bar if it takes more than two seconds.

        Returns
        -------
        ndarray of shape (R,) or (R, K)
        """

        def block_of(block: slice) -> NDArray[np.float64]:
            # Side by side for a block at a time: a copy of all columns would be the largest thing in memory.
            rows = _columns(table.take(block), self.space, None if points is None else points[block])
            rows = rows.astype(np.float32)
            # The tree within: checks of the estimator around it take as long as a few thousand rows.
            total = sum(tree.tree_.predict(rows) for tree in self.trees) / len(self.trees)
            return np.asarray(total).reshape(-1, *self.held_out.shape[1:])

        return over_rows(block_of, table.n_rows, n_jobs=n_jobs, description="forest: all rows", verbose=verbose)


def n_trees(n_outputs: int) -> int:
    """Return the number of trees: fewer beyond 32 outputs, as each leaf holds a number for each.

    Examples
    --------
    >>> n_trees(1), n_trees(32), n_trees(64), n_trees(500)
    (64, 64, 32, 16)
    """
    return max(_FEWEST_TREES, min(_TREES, _TREES * MOST_OUTPUTS // n_outputs))


def _columns(table: Table, space: DistanceSpace | None, points: NDArray[np.floating[Any]] | None) -> Matrix:
    X = table.coded()
    return X if space is None else np.hstack([X, space(table) if points is None else points])
