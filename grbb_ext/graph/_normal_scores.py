"""Normal scores: each column by the ranks of its values, on the scale of a normal variable."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

# The ranks of more rows are read off a sample, and off so many of its values.
_MOST_ROWS, _MOST_KNOTS = 50_000, 2_000


class NormalScores:
    r"""Put normal scores beside columns, with the same total variance.

    The score of a value x of column j among N rows is

    .. math:: \Phi^{-1}\Bigl(\frac{\#\{i : x_{ij} < x\} + \#\{i : x_{ij} \le x\}}{2N}\Bigr).

    A column with a long tail is nearly constant for most rows, and a few rows are far from all others; its ranks tell
    the rows apart. A column of pixels or of a known unit is better as it is. Side by side, each has half of the say.

    Parameters
    ----------
    X : ndarray of shape (N, d)
        Finite columns.

    Examples
    --------
    >>> X = np.array([[1.0], [2.0], [3.0], [1000.0]])
    >>> scores = NormalScores(X)
    >>> (scores(X)[:, 1] / scores.factor).round(2).tolist()
    [-1.15, -0.32, 0.32, 1.15]
    """

    def __init__(self, X: NDArray[np.floating]) -> None:
        sample = X
        if X.shape[0] > _MOST_ROWS:
            sample = X[np.random.default_rng(0).choice(X.shape[0], _MOST_ROWS, replace=False)]
        self._knots = [_knots(column) for column in sample.T]
        own = float(sample.var(axis=0, dtype=np.float64).sum())
        theirs = float(self._scores(sample).var(axis=0, dtype=np.float64).sum())
        #: What scores are multiplied by; 0 where all columns are constant.
        self.factor = np.sqrt(own / theirs) if theirs > 0 else 0.0

    def __call__(self, X: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return some rows with their scores beside them: shape (rows, 2 d)."""
        return np.hstack([X, (self.factor * self._scores(X)).astype(X.dtype)])

    def _scores(self, X: NDArray[np.floating]) -> NDArray[np.float64]:
        scores = np.empty(X.shape)
        for j, (values, ranks) in enumerate(self._knots):
            scores[:, j] = np.interp(X[:, j], values, ranks)
        return scores


def _knots(column: NDArray[np.floating]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return values in ascending order, and their scores."""
    values, counts = np.unique(column.astype(np.float64), return_counts=True)
    below_or_at = np.cumsum(counts)
    share = (below_or_at - counts / 2) / column.size
    if values.size > _MOST_KNOTS:
        chosen = np.linspace(0, values.size - 1, _MOST_KNOTS).round().astype(np.intp)
        values, share = values[chosen], share[chosen]
    return values, np.asarray(ndtri(share))
