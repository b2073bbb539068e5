"""Strategy "levels": trees on nested sets of columns, those that cost at most so much."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grbb_ext.miser._choice import Choice, Judge


def price_levels(prices: ArrayLike, most: int) -> NDArray[np.float64]:
    """Return price limits, ascending; the last is the highest price.

    Parameters
    ----------
    prices : array-like
        Prices of the columns that could be bought.
    most : int
        Largest number of levels. Beyond it neighbouring prices share a level, each level with about as many prices.

    Returns
    -------
    ndarray
        At most `most` of the prices.

    Examples
    --------
    >>> price_levels([5.2, 1.0, 1.0, 7.27], most=8).tolist()
    [1.0, 5.2, 7.27]
    >>> price_levels(range(1, 101), most=4).tolist()
    [25.0, 50.0, 75.0, 100.0]
    """
    distinct = np.unique(np.asarray(prices, dtype=np.float64))
    if distinct.size <= most:
        return distinct
    last = np.ceil(np.arange(1, most + 1) * distinct.size / most).astype(np.intp) - 1
    return np.asarray(distinct[last])


def choose_by_levels(judge: Judge, most: int = 8) -> Choice:
    """Choose what to buy among trees on nested sets of columns.

    The first tree may use every affordable column, the second only what is free. Between them the highest price that
    the last tree paid is the limit for the next: levels that would grow the same tree again are passed over. Fewer
    columns gain less, so the descent ends where even a tree of this gain at the lowest price would not be the best.
    From the first and the best tree unworthy columns are then dropped.

    Parameters
    ----------
    judge : Judge
        Grows and judges trees.
    most : int, default=8
        Largest number of price levels.

    Returns
    -------
    Choice
    """
    if not judge.candidates.any():
        judge.baseline()
        return judge.choose()
    prices = judge.prices
    top = judge.judge(judge.candidates)
    if judge.mu == 0 and judge.best is not None:
        return judge.choose()
    if not judge.new(top).any():
        return judge.choose()
    judge.baseline()
    levels = price_levels(prices[judge.candidates], most)
    growth, growths = top, [top]
    lowest = levels[0]
    while True:
        limit = prices[judge.new(growth)].max()
        below = levels[levels < limit]
        if not below.size or growth.total - judge.mu * lowest <= judge.choose().value:
            break
        growth = judge.judge(judge.candidates & (prices <= below[-1]))
        if not judge.new(growth).any():
            break
        growths.append(growth)
    best = max(growths, key=lambda one: one.total - judge.mu * judge.ledger.price(judge.new(one)))
    judge.refine(top)
    if best is not top:
        judge.refine(best)
    return judge.choose()
