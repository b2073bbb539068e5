"""Categories for trees: a number for each, in the order of the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from grbb_ext.table._table import Table

# A category counts as if so many rows at the overall mean were added to it.
_PRIOR_ROWS = 10.0


@dataclass(frozen=True)
class CategoryOrder:
    r"""Replace categories by mean targets, so that a split may part any two sets of them.

    Category a of a column, with n_a rows whose targets add up to s_a, becomes :math:`(s_a + 10 m) / (n_a + 10)`, m the
    mean of all targets. A category without rows is m; a missing one stays missing.

    Attributes
    ----------
    mean : float
        m.
    means : tuple of ndarray
        For each categorical column the number of each code.

    Examples
    --------
    >>> from grbb_ext.table import read_table
    >>> table = read_table(np.array([[1.0, "red"], [2.0, "blue"], [None, "red"]], dtype=object))
    >>> order = CategoryOrder.fit(table, np.array([0.0, 1.0, 0.0]), np.arange(3))
    >>> order(table).round(2).tolist()
    [[1.0, 0.28], [2.0, 0.39], [nan, 0.28]]
    """

    mean: float
    means: tuple[NDArray[np.float64], ...]

    @classmethod
    def fit(cls, table: Table, target: NDArray[np.float64], rows: NDArray[np.intp]) -> CategoryOrder:
        """Take the mean targets of categories.

        Parameters
        ----------
        table : Table
            Rows.
        target : ndarray of shape (R,) or (R, K)
            What trees will be fitted to; of several columns the direction of largest variance counts.
        rows : ndarray of int of shape (R,)
            The rows that they will be fitted to.

        Returns
        -------
        CategoryOrder
        """
        if not table.schema.categorical:
            return cls(0.0, ())
        along = _leading_direction(target)
        mean = along.mean()
        means = []
        for codes in table.codes.T:
            # Code -1 becomes the last entry, a category like any other here, and NaN afterwards.
            size = int(codes.max(initial=-1)) + 2
            seen = codes[rows] % size
            total = np.bincount(seen, weights=along, minlength=size) + _PRIOR_ROWS * mean
            means.append((total / (np.bincount(seen, minlength=size) + _PRIOR_ROWS))[:-1])
        return cls(float(mean), tuple(means))

    def __call__(self, table: Table) -> Any:
        """Return all columns as numbers, shape (N, d): first the numbers, then the categories; NaN where missing."""
        if not table.schema.categorical:
            return table.numbers
        encoded = np.empty(table.codes.shape)
        for column, (codes, means) in enumerate(zip(table.codes.T, self.means, strict=True)):
            known = np.append(means, [self.mean, np.nan])
            encoded[:, column] = known[np.where(codes < 0, means.size + 1, np.minimum(codes, means.size))]
        return np.hstack([table.numbers, encoded])


def _leading_direction(target: NDArray[np.float64]) -> NDArray[np.float64]:
    if target.ndim == 1:
        return target
    centered = target - target.mean(axis=0)
    _, vectors = np.linalg.eigh(centered.T @ centered)
    axis = vectors[:, -1]
    return np.asarray(centered @ (axis * np.sign(axis[np.abs(axis).argmax()])))
