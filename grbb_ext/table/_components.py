"""More columns for distances, and fewer: normal scores and principal components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.decomposition import PCA

from grbb_ext._progress import in_threads, row_blocks
from grbb_ext.table._table import Matrix

# The ranks of more rows are read off a sample, and off so many of its values.
_MOST_ROWS, _MOST_KNOTS = 50_000, 2_000


def sampled(X: Any, most: int) -> Any:
    """Return all rows, or a random sample of `most` rows.

    Examples
    --------
    >>> sampled(np.zeros((6, 1)), 5).shape
    (5, 1)
    """
    if X.shape[0] <= most:
        return X
    return X[np.random.default_rng(0).choice(X.shape[0], most, replace=False)]


class NormalScores:
    r"""Put normal scores beside columns, with the same total variance.

    The score of a value x of column j among N rows is

    .. math:: \Phi^{-1}\Bigl(\frac{\#\{i : x_{ij} < x\} + \#\{i : x_{ij} \le x\}}{2N}\Bigr).

    A column with a long tail is nearly constant for most rows, and a few rows are far from all others; its ranks tell
    the rows apart. A column of pixels or of a known unit is better as it is. Side by side, each has half of the weight.

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
        sample = sampled(X, _MOST_ROWS)
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


# The covariance of more columns is not formed.
_MOST_COLUMNS = 1_000


@dataclass(frozen=True)
class PrincipalComponents:
    r"""Replace many columns by a few principal components, with the noise taken out and the large ones damped.

    Component j, of variance :math:`\lambda_j` in the order of their size, is multiplied by

    .. math:: \lambda_j^{-1/4} \sqrt{1 - \lambda_{c+1} / \lambda_j}, \qquad j = 1, \dots, c.

    The variance of the first component that is left out stands for that of noise: a component hardly above it counts
    for little, so that c need not be exact. The first factor is half of a whitening: in images or spectra a few
    directions, such as brightness, have most of the variance and little of the meaning.

    Attributes
    ----------
    scores : NormalScores or None
        Put beside the columns beforehand.
    mean : ndarray of shape (d,) or None
        Subtracted from each row. None leaves the columns, and the scores, as they are.
    directions : ndarray of shape (d, c) or None
        What rows are multiplied by.

    Examples
    --------
    Forty noisy copies of two numbers: the two are found again, and the noise has hardly a part in the distances.

    >>> random = np.random.default_rng(0)
    >>> hidden = random.standard_normal((500, 2))
    >>> X = np.tile(hidden, 20) + random.standard_normal((500, 40))
    >>> PrincipalComponents.fit(X, 5)(X).std(axis=0).round(1).tolist()
    [2.0, 2.0, 0.3, 0.3, 0.1]
    """

    scores: NormalScores | None = None
    mean: NDArray[np.float64] | None = None
    directions: NDArray[np.floating] | None = None

    @classmethod
    def fit(cls, X: Matrix, n_components: int | None, scores: NormalScores | None = None) -> PrincipalComponents:
        """Find the directions, on a sample where there are more than 50,000 rows.

        Parameters
        ----------
        X : ndarray or csr_array of shape (N, d)
            Finite columns on one scale.
        n_components : int or None
            c. None, d <= c, or a sparse X leave the columns alone.
        scores : NormalScores or None, default=None
            To be put beside the columns.

        Returns
        -------
        PrincipalComponents
        """
        width = X.shape[1] * (1 if scores is None else 2)
        if n_components is None or sp.issparse(X) or width <= n_components or X.shape[0] <= n_components + 1:
            return cls(scores)
        sample = sampled(X, _MOST_ROWS)
        sample = sample if scores is None else scores(sample)
        # Centred beforehand and in double precision: the covariance of columns far from 0 would cancel.
        mean = sample.mean(axis=0, dtype=np.float64)
        centered = sample - mean
        if not centered.any():
            return cls()
        pca = PCA(
            n_components + 1, svd_solver="covariance_eigh" if width <= _MOST_COLUMNS else "randomized", random_state=0
        ).fit(centered)
        variance = np.maximum(pca.explained_variance_, 0.0)
        kept, noise = variance[:-1], variance[-1]
        # Components without variance, where columns repeat each other, are all zeros.
        some = kept > max(noise, 1e-12 * kept[0])
        factor = np.zeros_like(kept)
        factor[some] = kept[some] ** -0.25 * np.sqrt(1.0 - noise / kept[some])
        return cls(scores, mean, (pca.components_[:-1] * factor[:, None]).T.astype(X.dtype))

    def __call__(self, X: Matrix, n_jobs: int | None = 1) -> Matrix:
        """Return columns for distances of any rows, in the type of X.

        Parameters
        ----------
        X : ndarray or csr_array of shape (M, d)
            Rows.
        n_jobs : int or None, default=1
            Threads that share the rows; None takes all cores.

        Returns
        -------
        ndarray of shape (M, c), or X itself
        """
        widened = self.scores or (lambda rows: rows)
        if self.mean is None or self.directions is None:
            return widened(X)
        mean, directions = self.mean.astype(X.dtype), self.directions
        result = np.empty((X.shape[0], directions.shape[1]), dtype=X.dtype)

        def fill(block: slice) -> None:
            result[block] = (widened(X[block]) - mean) @ directions

        in_threads(fill, row_blocks(X.shape[0]), n_jobs=n_jobs)
        return result
