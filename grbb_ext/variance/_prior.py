"""Precisions of the scores before labels are seen, and the curvature that labels add."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grbb_ext._reporting import progress
from grbb_ext.losses import Loss, SquaredErrorLoss

Curvature = Literal["logistic", "paper"]

# A score of 28 or more: the label has nothing more to tell, and the information must stay positive.
_SMALLEST = 1e-12


@dataclass(frozen=True)
class Curvatures:
    """Curvatures and slopes, one column per output.

    Attributes
    ----------
    delta : ndarray of shape (n, K)
        Curvature of the weighted loss on labelled rows, the diagonal of Delta.
    middle : ndarray of shape (n, K)
        Variance of the labelled gradient, the diagonal between the slices of the sandwich. Equal to delta where all
        weights are 1.
    slope : ndarray of shape (N, K)
        Derivative of the prediction with respect to the score.
    """

    delta: Array
    middle: Array
    slope: Array


def curvatures(
    H: NDArray[np.floating[Any]], labeled: Index, weight: Array, loss: Loss, curvature: Curvature
) -> Curvatures:
    r"""Evaluate curvatures and slopes at the raw scores.

    .. math:: \Delta_i = w_i\, p_i (1 - p_i) \text{ (logistic) or } w_i\, p_i^2 (1 - p_i) \text{ (paper)}, \qquad
       \frac{\partial p}{\partial H} = p (1 - p).

    The second is printed below eq. 14 of the paper. It is not the curvature of the logistic loss: it changes when the
    two classes swap names. With K classes each is taken against the rest, :math:`p_k (1 - p_k)`; for squared error
    :math:`\Delta_i = w_i` and the slope is 1.

    Parameters
    ----------
    H : ndarray of shape (N,) or (N, K)
        Raw scores.
    labeled : ndarray of int of shape (n,)
        The labelled rows.
    weight : ndarray of shape (n,)
        The weights of their losses.
    loss : Loss
        The loss.
    curvature : {"logistic", "paper"}
        The formula.

    Returns
    -------
    Curvatures
        With K columns, 1 for a single score per row.

    Examples
    --------
    >>> from grbb_ext.losses import LogisticLoss
    >>> found = curvatures(np.zeros(2), np.array([0]), np.ones(1), LogisticLoss(), "paper")
    >>> found.delta.tolist(), found.slope.tolist()
    ([[0.125]], [[0.25], [0.25]])
    """
    scores = np.asarray(H, dtype=np.float64)
    if isinstance(loss, SquaredErrorLoss):
        ones = np.ones((labeled.size, 1))
        return Curvatures(
            np.maximum(weight[:, None], _SMALLEST), weight[:, None] ** 2 * ones, np.ones((scores.size, 1))
        )
    p = np.asarray(loss.mean(scores)).reshape(scores.shape[0], -1)
    slope = p * (1.0 - p)
    unweighted = slope[labeled] * (p[labeled] if curvature == "paper" else 1.0)
    w = weight[:, None]
    return Curvatures(np.maximum(w * unweighted, _SMALLEST), w**2 * unweighted, slope)


Array = NDArray[np.float64]
Index = NDArray[np.intp]
Product = Callable[[NDArray[np.floating[Any]]], NDArray[np.floating[Any]]]

_COLUMNS_AT_ONCE = 256


class Inner(NamedTuple):
    r"""The two small matrices that turn the columns F into the inverse of the information.

    Attributes
    ----------
    core : ndarray of shape (n, n)
        A in :math:`I^{-1} = R / \lambda + F A F^T`.
    to_columns : ndarray of shape (n, n)
        M in :math:`I^{-1}_{:l} = F M`.
    """

    core: Array
    to_columns: Array


class GraphPrior(ABC):
    r"""The prior precision Q of the scores, seen from the labelled rows.

    The information about the scores is :math:`I = \Delta + \lambda Q` with the curvature :math:`\Delta` on the n
    labelled rows only. Whatever Q is, there is an N x n matrix F and a matrix R, both free of :math:`\Delta` and
    :math:`\lambda`, and two n x n matrices A and M such that

    .. math:: I^{-1} = R / \lambda + F A F^T, \qquad I^{-1}_{:l} = F M.

    Everything below is about rows that a label reaches; on the others F and R are 0.

    Attributes
    ----------
    labeled : ndarray of int of shape (n,)
        The labelled rows.
    reachable : ndarray of bool of shape (N,)
        Rows that share a component with a label.
    n_rows : int
        N.
    verbose : bool
        Draw a progress bar on what takes more than a few seconds.
    memory_limit : float
        Most bytes that F may take.
    """

    labeled: Index
    reachable: NDArray[np.bool_]
    n_rows: int
    verbose: bool
    memory_limit: float

    @property
    @abstractmethod
    def has_columns(self) -> bool:
        """Whether F is there already, or costs next to nothing."""

    @cached_property
    def columns(self) -> NDArray[np.floating[Any]]:
        """F, of shape (N, n); MemoryError if it would take more than the operator's memory_limit."""
        if not self.has_columns and not self.columns_fit:
            needed = 8 * self.n_rows * self.labeled.size
            raise MemoryError(
                f"The exact variance needs {self.n_rows} x {self.labeled.size} numbers ({needed / 1e9:.1f} GB), over "
                f"memory_limit={self.memory_limit:.3g} bytes. Use method='stochastic', or raise the objective's "
                "memory_limit."
            )
        return self._make_columns()

    @property
    def columns_fit(self) -> bool:
        """Whether F is within the operator's memory limit."""
        return 8 * self.n_rows * self.labeled.size <= self.memory_limit

    @abstractmethod
    def _make_columns(self) -> NDArray[np.floating[Any]]:
        """Compute F."""

    @abstractmethod
    def inner(self, delta: Array, lam: float) -> Inner:
        """Return A and M for the curvatures delta, of shape (n,)."""

    @abstractmethod
    def residual_product(self, Z: Array) -> Array:
        """Return R Z for Z of shape (N, k)."""

    def residual_columns(self, rows: Index) -> Array:
        """Return R[:, rows], of shape (N, k)."""
        Z = np.zeros((self.n_rows, rows.size))
        Z[rows, np.arange(rows.size)] = 1.0
        return self.residual_product(Z)

    @cached_property
    def residual_diagonal(self) -> Array:
        """The diagonal of R, of shape (N,): one solve per row, so opt-in beyond a few thousand rows."""
        diagonal = np.zeros(self.n_rows)
        wanted = np.flatnonzero(self.reachable)
        starts = range(0, wanted.size, _COLUMNS_AT_ONCE)
        for start in progress(starts, len(starts), "diagonal of the prior covariance", self.verbose):
            rows = wanted[start : start + _COLUMNS_AT_ONCE]
            diagonal[rows] = self.residual_columns(rows)[rows, np.arange(rows.size)]
        return diagonal

    @abstractmethod
    def posterior_product(self, delta: Array, lam: float) -> Product:
        """Return the map Z -> inverse(I) Z on all rows, to the few digits that random probes need, without F."""

    @abstractmethod
    def labeled_product(self, delta: Array, lam: float) -> Product:
        """Return the map from n numbers z per column to inverse(I)[:, l] sqrt(delta) z, as roughly, without F."""

    @abstractmethod
    def leading_directions(self, delta: Array, lam: float, k: int) -> Array:
        """Return at most k orthonormal vectors, of shape (n, r), along which that map is thought to be largest."""

    @abstractmethod
    def dense_covariance(self, delta: Array, lam: float) -> Array:
        """Return inverse(I) on the reachable rows as a dense matrix, by a route of its own."""

    @abstractmethod
    def labeled_covariance(self, lam: float) -> Array:
        """Return the prior covariance of the labelled scores, of shape (n, n), vague where Q says nothing."""

    @property
    @abstractmethod
    def typical_lam(self) -> float:
        """The lam at which labelled scores have a prior standard deviation of about 1."""

    def _scatter(self, values: Array) -> Array:
        """Return vectors on all rows that are 0 but on labelled ones."""
        Z = np.zeros((self.n_rows, values.shape[1]), dtype=values.dtype)
        Z[self.labeled] = values
        return Z
