"""More columns for distances, and fewer: normal scores and principal components."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.decomposition import PCA

from grbb_ext.table._table import MOST_ROWS, Matrix, sampled

# Scores are read off so many values. Beyond so many rows these are read off an even grid, one step in place of a
# search, where it is off by less than ranks of a sample are anyway.
_MOST_KNOTS, _EXACT_UP_TO, _GRID, _SAME_SCORE = 2_000, 2_000, 4_096, 0.005
# Ranges in which neither the grid's steps nor their inverse overflow in single precision.
_NARROWEST, _WIDEST = 1e-30, 1e30


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
        sample = sampled(X, MOST_ROWS)
        self._knots, self._exact = [_knots(column) for column in sample.T], X.shape[0] <= _EXACT_UP_TO
        own = float(sample.var(axis=0, dtype=np.float64).sum())
        theirs = float(self._scores(sample).var(axis=0, dtype=np.float64).sum())
        #: What scores are multiplied by; 0 where all columns are constant.
        self.factor = np.sqrt(own / theirs) if theirs > 0 else 0.0

    def __call__(self, X: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return some rows with their scores beside them: shape (rows, 2 d)."""
        both = np.empty((X.shape[0], 2 * X.shape[1]), dtype=X.dtype)
        both[:, : X.shape[1]] = X
        np.multiply(self._scores(X), self.factor, out=both[:, X.shape[1] :], casting="same_kind")
        return both

    def _scores(self, X: NDArray[np.floating]) -> NDArray[np.floating]:
        # Column by column, each in one piece: numbers that lie far apart cost more to fetch than to map.
        columns = np.array(X.T, order="C")
        for column, grid, (values, ranks) in zip(columns, self._grids, self._knots, strict=True):
            column[:] = np.interp(column, values, ranks) if grid is None else grid(column)
        return columns.T

    @cached_property
    def _grids(self) -> list[Callable[[NDArray[np.floating]], NDArray[np.floating]] | None]:
        return [None if self._exact else _even_grid(*knots) for knots in self._knots]

    def __getstate__(self) -> dict[str, Any]:
        # Grids are large, and soon made again.
        return {name: value for name, value in vars(self).items() if name != "_grids"}


def _knots(column: NDArray[np.floating]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return values in ascending order, and their scores."""
    values, counts = np.unique(column, return_counts=True)
    below_or_at = np.cumsum(counts)
    share = (below_or_at - counts / 2) / column.size
    if values.size > _MOST_KNOTS:
        chosen = np.linspace(0, values.size - 1, _MOST_KNOTS).round().astype(np.intp)
        values, share = values[chosen], share[chosen]
    return values.astype(np.float64), np.asarray(ndtri(share))


def _even_grid(
    values: NDArray[np.float64], scores: NDArray[np.float64]
) -> Callable[[NDArray[np.floating]], NDArray[np.floating]] | None:
    """Return a function that interpolates scores on an even grid, constant beyond it, in the precision of a column.

    None where it would be off by more than 0.005 on average: for a column with a tail so long that most of its values
    lie in a few steps.

    Examples
    --------
    >>> _even_grid(np.array([0.0, 1.0, 3.0]), np.array([-1.0, 0.0, 1.0]))(np.array([-9.0, 0.5, 9.0])).tolist()
    [-1.0, -0.5, 1.0]
    >>> _even_grid(np.array([0.0, 1.0, 1e9]), np.array([-1.0, 0.0, 1.0])) is None
    True
    """
    first, width = float(values[0]), float(values[-1] - values[0])
    if not _NARROWEST < width < _WIDEST:
        return None
    grid = np.linspace(values[0], values[-1], _GRID + 1)
    at = np.interp(grid, values, scores)
    if np.abs(np.interp(values, grid, at) - scores).mean() > _SAME_SCORE:
        return None
    step = np.append(np.diff(at), 0.0)

    def interpolated(column: NDArray[np.floating]) -> NDArray[np.floating]:
        with np.errstate(over="ignore"):  # far beyond the grid is beyond it
            place = np.clip((column - column.dtype.type(first)) * column.dtype.type(_GRID / width), 0.0, _GRID)
        cell = place.astype(np.int32)
        place -= cell
        place *= step.astype(column.dtype)[cell]
        place += at.astype(column.dtype)[cell]
        return np.asarray(place)

    return interpolated


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
        """Find the directions, on a sample where there are more than 20,000 rows.

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
        sample = sampled(X, MOST_ROWS)
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

    def __call__(self, X: Matrix) -> Matrix:
        """Return columns for distances of any rows, in the type of X: shape (M, c), or X itself."""
        widened = X if self.scores is None else self.scores(X)
        if self.mean is None or self.directions is None:
            return widened
        return np.asarray((widened - self.mean.astype(X.dtype)) @ self.directions)
