"""Rows on their way down the trees, stopped where a feature is not known yet."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grbb_ext.forest._forest import Floats, Forest
from grbb_ext.forest._walk import as_rows


class ForestCursor:
    r"""The place of each row in each tree, for evaluation while features arrive one after the other.

    A walk stops in front of the first split whose feature is not known. The leaves below bound what its tree will add,
    and so the final score. Rounded addition is monotone: if :math:`l_t \le v_t` for all trees t, then the sum of the
    :math:`l_t`, added in the same order and precision, is at most the sum of the :math:`v_t`. So :meth:`bounds` needs
    no safety margin, and a decision drawn from them is the forest's decision, bit for bit.

    Parameters
    ----------
    forest : Forest
        The model.
    n_rows : int
        Number of rows, all at the roots.

    Attributes
    ----------
    forest : Forest
        The model.
    nodes : ndarray of int32 of shape (n_trees, n_rows)
        The node at which each walk stands.

    Examples
    --------
    >>> import lightgbm as lgb
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> booster = lgb.train({"num_leaves": 4, "verbosity": -1}, lgb.Dataset(X, label=X[:, 0] * X[:, 1]), 10)
    >>> forest = Forest.from_booster(booster)
    >>> cursor = ForestCursor(forest, n_rows=200)
    >>> known = np.zeros((200, 3), dtype=bool)
    >>> while not cursor.finished.all():
    ...     known |= cursor.needed()              # here the features would be bought
    ...     cursor.advance(X, known)
    >>> bool((cursor.raw_scores() == booster.predict(X, raw_score=True)).all())
    True
    """

    def __init__(self, forest: Forest, n_rows: int) -> None:
        if n_rows < 0:
            raise ValueError(f"n_rows must be at least 0, got {n_rows}.")
        self.forest = forest
        self.nodes: NDArray[np.int32] = np.repeat(forest.tree_start[:-1, None], n_rows, axis=1)
        # Where the last walk was stopped, and how many trees it went down; at first before the splits of the roots.
        roots = forest.feature[forest.tree_start[:-1]]
        needed = np.zeros(forest.n_features, dtype=bool)
        needed[roots[roots >= 0]] = True
        self._needed: NDArray[np.bool_] | None = np.broadcast_to(needed, (n_rows, forest.n_features))
        self._stop_tree = forest.n_trees

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.nodes.shape[1])

    @property
    def finished(self) -> NDArray[np.bool_]:
        """Which rows have reached a leaf in every tree."""
        if self._needed is not None and self._stop_tree == self.forest.n_trees:
            return np.asarray(~self._needed.any(axis=1))
        return np.asarray(self.finished_trees() == self.forest.n_trees)

    def finished_trees(self) -> NDArray[np.intp]:
        """Return, for each row, how many of the first trees have all reached a leaf."""
        is_open = self.forest.feature.take(self.nodes) >= 0
        return np.where(is_open.any(axis=0), is_open.argmax(axis=0), len(is_open))

    def advance(self, X: Any, known: ArrayLike | None = None, *, stop_tree: int | None = None) -> None:
        """Move rows down every tree as far as their known features allow.

        Parameters
        ----------
        X : array-like of shape (n_rows, d)
            Rows; only known entries are read.
        known : array-like of bool of shape (n_rows, d) or None, default=None
            Which entries are known. None is all: an unknown value cannot be told from a missing one by NaN.
        stop_tree : int or None, default=None
            Only down the first trees.
        """
        stop = self.forest._tree_range(0, stop_tree)[1]
        values = as_rows(self.forest, X)
        mask = None if known is None else np.asarray(known, dtype=bool)
        for name, array in (("X", values), ("known", mask)):
            if array is not None and array.shape != (self.n_rows, self.forest.n_features):
                raise ValueError(f"{name} must have shape {(self.n_rows, self.forest.n_features)}, got {array.shape}.")
        if mask is not None:
            values = np.where(mask, values, values.dtype.type(np.inf))
        self._needed = self.forest._kernels.walk(self.forest, values, self.nodes[:stop], 0, mask)
        self._stop_tree = stop

    def needed(self, stop_tree: ArrayLike | None = None) -> NDArray[np.bool_]:
        """Return the features at which walks are stopped.

        Every one of them lies on the row's own path, so a full evaluation reads it in any case.

        Parameters
        ----------
        stop_tree : int, array-like of int of shape (n_rows,) or None, default=None
            Only the walks of the first trees, as many for all rows or as many as given for each.

        Returns
        -------
        ndarray of bool of shape (n_rows, d)
        """
        asked = self.forest.n_trees if stop_tree is None else np.minimum(stop_tree, self.forest.n_trees)
        if self._needed is not None and bool(np.all(asked == self._stop_tree)):
            return self._needed.copy(order="K")
        return self._stopped(np.ones(self.forest.n_nodes), stop_tree) > 0

    def spread(self, stop_tree: ArrayLike | None = None) -> NDArray[np.float64]:
        """Return how far the leaves below stopped walks are apart, added up by the feature at which they are stopped.

        It is the width of :meth:`bounds` (summed over the outputs) that knowing the feature may take away.

        Parameters
        ----------
        stop_tree : int, array-like of int of shape (n_rows,) or None, default=None
            As for :meth:`needed`.

        Returns
        -------
        ndarray of shape (n_rows, d)
        """
        lowest, highest = self.forest.node_bounds
        return self._stopped((highest - lowest).sum(axis=1, dtype=np.float64), stop_tree)

    def take(self, rows: ArrayLike) -> ForestCursor:
        """Return a cursor of its own for some of the rows, given by position."""
        other = ForestCursor(self.forest, 0)
        chosen = np.asarray(rows, dtype=np.intp)
        other.nodes = self.nodes.take(chosen, axis=1)
        other._needed = None if self._needed is None else self._needed.T.take(chosen, axis=1).T
        other._stop_tree = self._stop_tree
        return other

    def raw_scores(self, *, stop_tree: int | None = None) -> Floats:
        """Return the scores of finished rows, bit-equal to :meth:`Forest.predict`, and NaN for the others.

        Parameters
        ----------
        stop_tree : int or None, default=None
            Score of the first trees only; rows count as finished when these are.

        Returns
        -------
        ndarray of shape (n_rows,), or (n_rows, K) with K outputs
        """
        stop = self.forest._tree_range(0, stop_tree)[1]
        scores = self._scores(self.forest.value, stop)
        finished = self.finished if stop == self.forest.n_trees else self.finished_trees() >= stop
        scores[~finished] = np.nan
        return scores

    def bounds(self) -> tuple[Floats, Floats]:
        """Return the lowest and the highest score that each row can still get; equal for finished rows."""
        lowest, highest = self.forest.node_bounds
        return self._scores(lowest, self.forest.n_trees), self._scores(highest, self.forest.n_trees)

    def expected_scores(self) -> Floats:
        """Return scores in which an open walk counts with the mean of the leaves below it, by training weight.

        They lie within :meth:`bounds` and are the scores themselves for finished rows.
        """
        return self._scores(self.forest.node_mean, self.forest.n_trees)

    def _stopped(self, weight: NDArray[np.float64], stop_tree: ArrayLike | None) -> NDArray[np.float64]:
        stop = np.full(self.n_rows, self.forest.n_trees if stop_tree is None else stop_tree, dtype=np.intp)
        total = np.zeros((self.n_rows, self.forest.n_features))
        self.forest._kernels.stopped(self.forest.feature, weight, self.nodes, stop, total)
        return total

    def _scores(self, value: Floats, stop: int) -> Floats:
        scores = self.forest._sum(self.nodes[:stop], value, 0)
        return scores[:, 0] if self.forest.n_outputs == 1 else scores

    def __repr__(self) -> str:
        return f"ForestCursor({self.forest!r}, {self.finished.sum()} of {self.n_rows} rows finished)"
