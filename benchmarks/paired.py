"""Paired comparisons: trials with the same seed have the same rows and labels, so their difference is what counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

import numpy as np


class Mean(NamedTuple):
    """A mean, its standard error (NaN for a single trial), and the number of trials."""

    value: float
    error: float
    n: int

    @property
    def verdict(self) -> Literal["ahead", "level", "behind"]:
        """Whether a difference is beyond two standard errors; of fewer than five trials the error is not known."""
        if self.n >= 5 and abs(self.value) > 2 * self.error:
            return "ahead" if self.value > 0 else "behind"
        return "level"

    def __str__(self) -> str:
        return f"{self.value:+.3f} ± {self.error:.3f}"


def mean_of(values: Iterable[float]) -> Mean:
    """Return mean and standard error.

    Examples
    --------
    >>> mean = mean_of([0.1, 0.2, 0.6])
    >>> round(mean.value, 3), round(mean.error, 3), mean.n
    (0.3, 0.153, 3)
    """
    array = np.fromiter(values, dtype=np.float64)
    if array.size == 0:
        return Mean(float("nan"), float("nan"), 0)
    error = array.std(ddof=1) / np.sqrt(array.size) if array.size > 1 else np.nan
    return Mean(float(array.mean()), float(error), array.size)


def difference(ours: Mapping[int, float], theirs: Mapping[int, float], seeds: Iterable[int] | None = None) -> Mean:
    """Return the mean of ours minus theirs over the seeds that both have, or over those of `seeds`.

    Examples
    --------
    >>> print(difference({0: 0.9, 1: 0.8, 2: 0.7}, {0: 0.8, 1: 0.75, 5: 0.1}))
    +0.075 ± 0.025
    """
    both = ours.keys() & theirs.keys()
    chosen = sorted(both if seeds is None else both & set(seeds))
    return mean_of(ours[seed] - theirs[seed] for seed in chosen)
