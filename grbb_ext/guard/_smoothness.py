"""How smooth a function is on a graph that it has not seen."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


def smoothness(W: sp.csr_array, values: NDArray[np.float64]) -> float:
    r"""Return the share of the variance of a function that its means over neighbours explain.

    .. math:: R^2 = \max\bigl(0, \mathrm{corr}(D^{-1} W v, v)\bigr)^2

    over the rows with neighbours. What trees on the labelled rows say is such a function. Where it varies within
    neighbourhoods, the columns that matter are not those that make rows neighbours.

    Parameters
    ----------
    W : csr_array of shape (N, N)
        Affinity.
    values : ndarray of shape (N,) or (N, K)
        The function; columns are centred and taken together.

    Returns
    -------
    float
        Between 0 and 1; 0 for a constant, and where neighbours are rather unlike.

    Examples
    --------
    >>> path = sp.csr_array(np.diag(np.ones(5), 1) + np.diag(np.ones(5), -1))
    >>> round(smoothness(path, np.arange(6.0)), 2), round(smoothness(path, np.array([0.0, 1, 0, 1, 0, 1])), 2)
    (0.94, 0.0)
    """
    degree = np.asarray(W.sum(axis=1)).ravel()
    joined = degree > 0
    v = values.reshape(values.shape[0], -1)
    means = (W @ v)[joined] / degree[joined, None]
    own = v[joined] - v[joined].mean(axis=0)
    means = means - means.mean(axis=0)
    spread = float((own**2).sum() * (means**2).sum())
    return max(0.0, float((own * means).sum())) ** 2 / spread if spread > 0 else 0.0
