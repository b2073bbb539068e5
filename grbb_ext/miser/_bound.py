"""The most that any tree can gain: when that does not pay for the cheapest feature, no tree need be grown to know."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def gain_bound(gradient: ArrayLike, hessian: ArrayLike) -> float:
    r"""Return an upper bound on the gain of every tree.

    A tree that gives each row a leaf of its own gains most. By Cauchy's inequality, for any leaves,

    .. math:: \sum_{leaves} \frac{(\sum g_i)^2}{\sum h_i + \lambda} \le \sum_i \frac{g_i^2}{h_i},

    and with hessian 1 the right-hand side is the squared error that is left. Regularisation only lowers gains.

    Parameters
    ----------
    gradient, hessian : array-like of shape (N,) or (N, K)
        Of the round.

    Returns
    -------
    float
        Infinite where a row has a gradient but no curvature.

    Examples
    --------
    >>> gain_bound([1.0, -2.0, 0.0], [1.0, 1.0, 0.0])
    5.0
    """
    g, h = np.asarray(gradient, dtype=np.float64), np.asarray(hessian, dtype=np.float64)
    pulled = g != 0
    with np.errstate(divide="ignore"):
        return float(np.sum(g[pulled] ** 2 / h[pulled]))
