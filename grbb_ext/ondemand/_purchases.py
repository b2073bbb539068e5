"""Which sources to buy next, within a budget."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grbb_ext.costs import FeatureCosts
from grbb_ext.costs._exact import decimal, exact_sum

Bools = NDArray[np.bool_]

# Only sums closer to the budget than this are added up again in decimals.
_CLOSE = 1e-9


class Purchases:
    """Prices of features for rows that have paid different sources.

    Parameters
    ----------
    costs : FeatureCosts
        Bound to the columns of the forest.

    Examples
    --------
    >>> costs = FeatureCosts(needs=[["draw", "chol"], ["draw", "fbs"]], prices={"draw": 2.1, "chol": 5.2, "fbs": 3.1})
    >>> purchases = Purchases(costs)
    >>> paid = np.array([[False, False, False], [True, False, False]])
    >>> purchases.affordable(paid, np.array([5.2, 5.2])).tolist()
    [[False, True], [False, True]]
    """

    def __init__(self, costs: FeatureCosts) -> None:
        self.prices = costs.prices
        self.needs: Bools = np.asarray(costs.needs.toarray(), dtype=bool)
        # Products of booleans are slow in numpy, and counts of sources are exact in float32.
        self._counts = self.needs.astype(np.float32)

    def affordable(self, fetched: Bools, budget: NDArray[np.float64]) -> Bools:
        """Return which features each row can still pay, shape (n, d).

        Parameters
        ----------
        fetched : ndarray of bool of shape (n, n_sources)
            What each row has paid.
        budget : ndarray of shape (n,)
            The most that each row may spend in all.
        """
        spent = fetched @ self.prices
        total = spent[:, None] + self.marginals(fetched)
        gap = budget[:, None] - total
        fits = gap >= 0
        # 0.1 + 0.2 fits a budget of 0.3: near the limit prices are added as decimals, once for each set of sources.
        limit = np.where(np.isfinite(budget), _CLOSE * np.maximum(budget, 1.0), -1.0)
        row, feature = np.nonzero(np.abs(gap) <= limit[:, None])
        paid, which = np.unique(fetched[row] | self.needs[feature], axis=0, return_inverse=True)
        totals = [exact_sum(self.prices[sources].tolist()) for sources in paid]
        limits = {amount: decimal(amount) for amount in np.unique(budget[row]).tolist()}
        fits[row, feature] = [
            totals[s] <= limits[amount] for s, amount in zip(which.ravel().tolist(), budget[row].tolist(), strict=True)
        ]
        return np.asarray(fits)

    def marginals(self, fetched: Bools) -> NDArray[np.float64]:
        """Return what each feature would cost each row now, shape (n, d)."""
        return np.asarray(np.where(fetched, 0.0, self.prices) @ self.needs.T)

    def sources_of(self, features: Bools, fetched: Bools) -> Bools:
        """Return the unpaid sources of some features of each row, shape (n, n_sources)."""
        return np.asarray((features.astype(np.float32) @ self._counts > 0) & ~fetched)

    def paid(self, fetched: Bools) -> Bools:
        """Return which features have all of their sources, shape (n, d)."""
        return np.asarray((~fetched).astype(np.float32) @ self._counts.T == 0)
