"""The price engine: prices of sets of sources, for one set or for one set per row."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Context, Decimal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

_CONTEXT = Context(prec=60)
# Only sums closer to the budget than this are added up again in decimals.
_CLOSE = 1e-9


def decimal(price: float) -> Decimal:
    """Return the shortest decimal number that is stored as `price`.

    Examples
    --------
    >>> decimal(0.1)
    Decimal('0.1')
    """
    return Decimal(repr(float(price)))


def exact_sum(prices: Iterable[float | Decimal]) -> Decimal:
    """Add prices in decimals, without binary rounding.

    Examples
    --------
    >>> 0.1 + 0.2 <= 0.3, exact_sum([0.1, 0.2]) <= decimal(0.3)
    (False, True)
    """
    total = Decimal(0)
    for price in prices:
        total = _CONTEXT.add(total, price if isinstance(price, Decimal) else decimal(price))
    return total


def whole_units(prices: list[float]) -> tuple[Floats, float]:
    """Return prices as whole numbers of a small unit, and the units in 1, so that sums are exact.

    Where prices have more digits than a sum in double precision, they are returned as they are.

    Examples
    --------
    >>> units, per_one = whole_units([0.1, 0.25])
    >>> units.tolist(), per_one
    ([10.0, 25.0], 100.0)
    """
    exact = [decimal(price) for price in prices]
    places = max([0, *(-int(price.as_tuple().exponent) for price in exact)])
    units = [int(_CONTEXT.scaleb(price, places)) for price in exact]
    # Beyond 2^53 and 10^22 not every whole number, and not every power of ten, is a double.
    if places > 22 or sum(units) > 2**53:
        return np.array(prices, dtype=np.float64), 1.0
    return np.array(units, dtype=np.float64), 10.0**places


def needs_matrix(needed: list[list[int]], n_sources: int) -> sp.csr_array:
    """Return the boolean matrix of features by sources.

    Examples
    --------
    >>> needs_matrix([[0, 1], [1]], 2).toarray().astype(int).tolist()
    [[1, 1], [0, 1]]
    """
    indptr = np.cumsum([0, *map(len, needed)])
    indices = np.array([s for row in needed for s in row], dtype=np.intp)
    return sp.csr_array((np.ones(indices.size, dtype=bool), indices, indptr), shape=(len(needed), n_sources))


class PriceEngine:
    r"""Prices of features by position, given which sources are paid.

    With needs :math:`B \in \{0, 1\}^{d \times S}`, prices :math:`p` and a set of paid sources :math:`z \in \{0, 1\}^S`,
    feature j adds :math:`(B\,(p \circ (1 - z)))_j` to the total. Every method takes one set, or an array with one set
    per row, and works on the last axis. :class:`FeatureCosts` is an engine with names;
    :class:`Ledger` keeps one set of paid sources, and prediction on demand one for each row.

    Attributes
    ----------
    needs : scipy.sparse.csr_array of bool, shape (n_features, n_sources)
        Which feature needs which source.
    prices : ndarray of shape (n_sources,)
        Prices of the sources.

    Examples
    --------
    Two tests share a blood draw. The first row has paid nothing, the second one the draw:

    >>> from grbb_ext import FeatureCosts
    >>> costs = FeatureCosts(needs=[["draw", "chol"], ["draw", "fbs"]], prices={"draw": 2.1, "chol": 5.2, "fbs": 3.1})
    >>> paid = np.array([[False, False, False], [True, False, False]])
    >>> costs.marginals(paid).round(2).tolist()
    [[7.3, 5.2], [5.2, 3.1]]
    >>> costs.affordable(paid, [5.2, 7.3]).tolist()
    [[False, True], [True, True]]
    """

    needs: sp.csr_array
    prices: Floats
    _needed_by: sp.csr_array  # the transpose
    _units: tuple[Floats, float]  # prices in whole units, and units in 1

    def union(self, features: ArrayLike) -> Bools:
        """Return which sources a set of features needs, (..., n_features) to (..., n_sources)."""
        return np.asarray((self._needed_by @ np.asarray(features, dtype=bool).T).T)

    def covered(self, paid: ArrayLike) -> Bools:
        """Return which features have all of their sources paid, (..., n_sources) to (..., n_features)."""
        return np.asarray(~(self.needs @ ~np.asarray(paid, dtype=bool).T).T)

    def spent(self, paid: ArrayLike) -> Floats:
        """Return the price of a set of sources, (..., n_sources) to (...): that of :meth:`exact`, as a float.

        Where prices have too many digits for that (``whole_units``), the last digit may differ.
        """
        units, per_one = self._units
        return np.asarray(np.where(np.asarray(paid, dtype=bool), units, 0.0).sum(axis=-1) / per_one)

    def exact(self, paid: Bools) -> Decimal:
        """Return the price of one set of sources as a decimal number."""
        return exact_sum(self.prices[paid].tolist())

    def marginals(self, paid: ArrayLike | None = None) -> Floats:
        """Return what each feature would add to the total now.

        Parameters
        ----------
        paid : array-like of bool of shape (..., n_sources), default=None
            Which sources are paid; None is none.

        Returns
        -------
        ndarray of shape (..., n_features)
        """
        owed = self.prices if paid is None else np.where(np.asarray(paid, dtype=bool), 0.0, self.prices)
        return np.asarray((self.needs @ owed.T).T, dtype=np.float64)

    def affordable(self, paid: ArrayLike, budget: ArrayLike) -> Bools:
        """Return which features could be bought now, each by itself; features that are paid are among them.

        Parameters
        ----------
        paid : array-like of bool of shape (..., n_sources)
            Which sources are paid.
        budget : array-like of shape (...)
            The most that each set may cost in all; inf is no limit.

        Returns
        -------
        ndarray of bool of shape (..., n_features)
            Sums near the budget are added as decimal numbers, so 0.1 + 0.2 fits into a budget of 0.3.
        """
        paid = np.asarray(paid, dtype=bool)
        limit = np.asarray(budget, dtype=np.float64)[..., None]
        gap = limit - (self.spent(paid)[..., None] + self.marginals(paid))
        fits = np.asarray(gap >= 0)
        close = np.abs(gap) <= np.where(np.isfinite(limit), _CLOSE * np.maximum(limit, 1.0), -1.0)
        if close.any():
            limits = np.broadcast_to(limit, fits.shape)[close].tolist()
            before = np.broadcast_to(paid[..., None, :], (*fits.shape, paid.shape[-1]))[close]
            # Many rows share a set of sources; each set is added up once.
            sets, which = np.unique(before | self.needs[np.nonzero(close)[-1]].toarray(), axis=0, return_inverse=True)
            totals, exact = [self.exact(one) for one in sets], {value: decimal(value) for value in set(limits)}
            fits[close] = [totals[s] <= exact[b] for s, b in zip(which.ravel().tolist(), limits, strict=True)]
        return fits
