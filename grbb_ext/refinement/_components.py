"""Distances on principal components: what many columns say together, without the noise of each."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA

from grbb_ext.graph._columns import Matrix

# The directions of more rows are those of a sample; the covariance of more columns is not formed.
_MOST_ROWS, _MOST_COLUMNS = 50_000, 1_000
_ROWS_PER_BLOCK = 16_384


def principal_columns(
    X: Matrix,
    n_components: int | None,
    widened: Callable[[Matrix], Matrix] = lambda rows: rows,
    n_threads: int = 1,
) -> Matrix:
    r"""Replace many columns by a few principal components, with the noise taken out and the large ones damped.

    Component j, of variance :math:`\lambda_j` in the order of their size, is multiplied by

    .. math:: \lambda_j^{-1/4} \sqrt{1 - \lambda_{c+1} / \lambda_j}, \qquad j = 1, \dots, c.

    The variance of the first component that is left out stands for that of noise: a component hardly above it counts
    for little, so that c need not be exact. The first factor is half of a whitening: in images or spectra a few
    directions, such as brightness, have most of the variance and little of the meaning.

    Parameters
    ----------
    X : ndarray or csr_array of shape (N, d)
        Finite columns on one scale.
    n_components : int or None
        c. None, d <= c, or a sparse X leave the columns alone.
    widened : callable, optional
        Makes more columns of any rows of X, to be used in place of theirs.
    n_threads : int, default=1
        Threads that share the rows.

    Returns
    -------
    ndarray of shape (N, c), or X itself
        Columns for distances, in the type of X.

    Examples
    --------
    Forty noisy copies of two numbers: the two are found again, and the noise has hardly a part in the distances.

    >>> random = np.random.default_rng(0)
    >>> hidden = random.standard_normal((500, 2))
    >>> X = np.tile(hidden, 20) + random.standard_normal((500, 40))
    >>> principal_columns(X, 5).std(axis=0).round(1).tolist()
    [2.0, 2.0, 0.3, 0.3, 0.1]
    """
    width = widened(X[:1]).shape[1]
    if n_components is None or sp.issparse(X) or width <= n_components or X.shape[0] <= n_components + 1:
        return widened(X)
    sample = X
    if X.shape[0] > _MOST_ROWS:
        sample = X[np.random.default_rng(0).choice(X.shape[0], _MOST_ROWS, replace=False)]
    # Centred beforehand and in double precision: the covariance of columns far from 0 would cancel.
    sample = widened(sample)
    mean = sample.mean(axis=0, dtype=np.float64)
    centered = sample - mean
    if not centered.any():
        return X
    pca = PCA(
        n_components + 1,
        svd_solver="covariance_eigh" if width <= _MOST_COLUMNS else "randomized",
        random_state=0,
    ).fit(centered)
    variance = np.maximum(pca.explained_variance_, 0.0)
    kept, noise = variance[:-1], variance[-1]
    # Components without variance, where columns repeat each other, are all zeros.
    some = kept > max(noise, 1e-12 * kept[0])
    factor = np.zeros_like(kept)
    factor[some] = kept[some] ** -0.25 * np.sqrt(1.0 - noise / kept[some])
    directions = (pca.components_[:-1] * factor[:, None]).T.astype(X.dtype)
    result = np.empty((X.shape[0], n_components), dtype=X.dtype)

    def fill(start: int) -> None:
        block = slice(start, start + _ROWS_PER_BLOCK)
        result[block] = (widened(X[block]) - mean.astype(X.dtype)) @ directions

    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(fill, range(0, X.shape[0], _ROWS_PER_BLOCK)))
    return result
