"""The rules: from what labelled rows say to gradient and hessian of every row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext.losses import Floats, Loss


class Rule(Protocol):
    """A rule without state between rounds: gradient and hessian for all rows, from raw scores alone."""

    def __call__(self, H: Floats) -> tuple[Floats, Floats]:
        """Return gradient and hessian, new arrays of H's shape."""


@dataclass(frozen=True)
class LaplacianTerm:
    r"""Gradient and curvature of :math:`\frac{\lambda}{2} H^T L H` with respect to the labelled scores.

    Attributes
    ----------
    lam : float
        The trade-off of eq. 2.
    labeled : ndarray of int of shape (n,)
        The labelled rows.
    L_l : csr_array of shape (n, N)
        Their rows of the Laplacian.
    """

    lam: float
    labeled: NDArray[np.intp]
    L_l: sp.csr_array

    def gradient(self, H: Floats) -> Floats:
        """Return lam (L H)_l."""
        return np.asarray(self.lam * (self.L_l @ H))

    @cached_property
    def _degree(self) -> NDArray[np.float64]:
        return np.asarray(self.L_l[np.arange(self.labeled.size), self.labeled]).ravel()

    def curvature(self, H: Floats) -> Floats:
        """Return the diagonal of lam L on labelled rows, ready to be added to a curvature of H's dimension."""
        return self.lam * (self._degree if H.ndim == 1 else self._degree[:, None])


@dataclass(frozen=True)
class LabeledGradient:
    r"""Derivatives of the regularised loss with respect to the labelled scores (paper, eq. 5).

    .. math:: g_l = w \,\frac{\partial \ell}{\partial H_l} + \lambda (L H)_l, \qquad
       h_l = w \,\frac{\partial^2 \ell}{\partial H_l^2} + \lambda L_{ll}.

    Only labelled scores pass through the loss, so a round costs n sigmoids whatever N is.

    Attributes
    ----------
    loss : Loss
        The loss.
    rows : ndarray of int of shape (n,)
        The labelled rows.
    targets : ndarray of shape (n,) or (n, K)
        Their targets.
    weights : ndarray of shape (n,)
        Their weights w.
    penalty : LaplacianTerm or None
        The term in lam; None where it is 0.

    Examples
    --------
    >>> from grbb_ext.losses import LogisticLoss
    >>> gradient = LabeledGradient(LogisticLoss(), np.array([2]), np.array([1.0]), np.array([2.0]), None)
    >>> [values.tolist() for values in gradient(np.zeros(3))]
    [[-1.0], [0.5]]
    """

    loss: Loss
    rows: NDArray[np.intp]
    targets: NDArray[np.float64]
    weights: NDArray[np.float64]
    penalty: LaplacianTerm | None

    def __call__(self, H: Floats) -> tuple[Floats, Floats]:
        """Return g_l and h_l, in float64: n rows are few, and what is made of them is many."""
        weights = self.weights if H.ndim == 1 else self.weights[:, None]
        gradient, curvature = self.loss.derivatives(H[self.rows].astype(np.float64), self.targets)
        gradient, curvature = weights * gradient, weights * curvature
        if self.penalty is not None:
            gradient += self.penalty.gradient(H)
            curvature += self.penalty.curvature(H)
        return gradient, curvature


@dataclass(frozen=True)
class LabeledRule:
    """Labelled rows follow the loss; unlabelled rows have gradient 0 and hessian 0, as if they were not there.

    Attributes
    ----------
    labeled_gradient : LabeledGradient
        Eq. 5.
    newton : bool
        Curvature of the loss, or 1, on labelled rows.
    """

    labeled_gradient: LabeledGradient
    newton: bool

    def __call__(self, H: Floats) -> tuple[Floats, Floats]:
        """Return gradient and hessian of all rows."""
        gradient, hessian = np.zeros_like(H), np.zeros_like(H)
        g_l, h_l = self.labeled_gradient(H)
        gradient[self.labeled_gradient.rows] = g_l
        hessian[self.labeled_gradient.rows] = h_l if self.newton else 1.0
        return gradient, hessian


@dataclass(frozen=True)
class LaplacianRule:
    r"""Gradient of eq. 2: :math:`g_l` as in eq. 5, :math:`g_u = \lambda (L H)_u`, hessian 1.

    Attributes
    ----------
    labeled_gradient : LabeledGradient
        Eq. 5 without its Laplacian term, which is added here for all rows at once.
    L : csr_array of shape (N, N)
        The Laplacian; rows that no label reaches are empty.
    lam : float
        The trade-off of eq. 2.
    """

    labeled_gradient: LabeledGradient
    L: sp.csr_array
    lam: float

    def __call__(self, H: Floats) -> tuple[Floats, Floats]:
        """Return gradient and hessian of all rows."""
        gradient = (self.lam * (self.L @ H)).astype(H.dtype)
        g_l, _ = self.labeled_gradient(H)
        rows: NDArray[np.intp] = self.labeled_gradient.rows
        gradient[rows] += g_l
        return gradient, np.ones_like(gradient)


# OpenBLAS keeps a product on the calling thread while the matrix has fewer than 9,216 entries.
_ENTRIES_PER_BLOCK = 8192


def propagate(P_bar: NDArray[np.float32], vectors: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
    """Return P_bar @ vectors, in float32, without waking the threads of BLAS.

    The product is bound by reading P_bar, which one thread does about as fast as two. But the threads of BLAS go on
    waiting actively next to those of the booster: on two cores a round of either booster took up to twice as long.
    So the rows go to BLAS in blocks too small for threads, in one call. All blocks have the same height, a multiple of
    8 where that is possible, and the last is filled up: BLAS treats the odd rows at the end of a matrix differently,
    and so the product of a row with up to six vectors has the same bits whichever rows are next to it, on one machine
    or on many. (With nine or more OpenBLAS takes another way, and the last bit depends on the place.)

    Parameters
    ----------
    P_bar : ndarray of float32 of shape (N, n), row-major
        The operator.
    vectors : ndarray of shape (n,) or (n, k)
        What to extend.

    Returns
    -------
    ndarray of float32 of shape (N,) or (N, k)
        The product.

    Examples
    --------
    >>> propagate(np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]], dtype=np.float32), np.array([2.0, 4.0])).tolist()
    [2.0, 3.0, 4.0]
    """
    right = vectors.astype(np.float32)
    n_rows, n = P_bar.shape
    height = max(1, _ENTRIES_PER_BLOCK // n)
    height -= height % (8 if height >= 8 else 4) if height >= 4 else 0
    whole = n_rows - n_rows % height
    product = np.empty((n_rows, *right.shape[1:]), dtype=np.float32)
    blocks = product[:whole].reshape(-1, height, *right.shape[1:])
    np.matmul(P_bar[:whole].reshape(-1, height, n), right, out=blocks)
    if whole < n_rows:
        last = np.zeros((height, n), dtype=np.float32)
        last[: n_rows - whole] = P_bar[whole:]
        product[whole:] = (last @ right)[: n_rows - whole]
    return product


@dataclass(frozen=True)
class PaperRule:
    r"""Eq. 6 of the paper, exactly: :math:`g = \bar P g_l`, :math:`h = 1`, so a leaf is the mean of -g.

    Attributes
    ----------
    labeled_gradient : LabeledGradient
        Eq. 5.
    P_bar : ndarray of float32 of shape (N, n), row-major
        The operator; the identity on labelled rows.
    """

    labeled_gradient: LabeledGradient
    P_bar: NDArray[np.float32]

    def __call__(self, H: Floats) -> tuple[Floats, Floats]:
        """Return gradient and hessian of all rows."""
        g_l, _ = self.labeled_gradient(H)
        gradient = propagate(self.P_bar, g_l).astype(H.dtype, copy=False)
        return gradient, np.ones_like(gradient)


@dataclass(frozen=True)
class CorrectedRule:
    r"""Propagated gradients plus the distance of the unlabelled scores from the propagated ones.

    .. math:: g = \bar P g_l + \rho\, h\, (H - \bar P H_l), \qquad h = \bar P h_l \text{ (Newton) or } 1.

    Eq. 6 never looks at the unlabelled scores, so once the labelled rows are fitted a wrong score is never
    repaired. The second term is the gradient of the paper's Laplacian penalty with respect to :math:`H_u`,
    :math:`\lambda L_{uu}(H_u - P H_l)`, preconditioned by :math:`L_{uu}^{-1}`.

    Attributes
    ----------
    labeled_gradient : LabeledGradient
        Eq. 5.
    P_bar : ndarray of float32 of shape (N, n), row-major
        The operator; the identity on labelled rows, where the correction vanishes.
    correction : float
        :math:`\rho`.
    newton : bool
        Whether the curvature is propagated; needs a row-stochastic P.
    unreachable : ndarray of int
        Rows that no label reaches.
    """

    labeled_gradient: LabeledGradient
    P_bar: NDArray[np.float32]
    correction: float
    newton: bool
    unreachable: NDArray[np.intp]

    def __call__(self, H: Floats) -> tuple[Floats, Floats]:
        """Return gradient and hessian of all rows."""
        g_l, h_l = self.labeled_gradient(H)
        H_l = H[self.labeled_gradient.rows]
        extend = partial(propagate, self.P_bar)
        return corrected(H, extend, g_l, H_l, h_l if self.newton else None, self.correction, self.unreachable)


def corrected(
    H: Floats,
    extend: Callable[[Floats], Floats],
    g_l: Floats,
    H_l: Floats,
    h_l: Floats | None,
    correction: float,
    unreachable: NDArray[Any],
) -> tuple[Floats, Floats]:
    """Return gradient and hessian of some rows, from what all labelled rows say.

    Parameters
    ----------
    H : ndarray of shape (M,) or (M, K)
        Scores of the rows.
    extend : callable
        Maps (n, k) to (M, k): the rows' part of P_bar.
    g_l, H_l, h_l : ndarray of shape (n,) or (n, K)
        Gradient, scores and curvature of the labelled rows; without the last the hessian is 1.
    correction : float
        rho.
    unreachable : ndarray
        Those of the rows that no label reaches, by number or as a mask.

    Returns
    -------
    gradient, hessian : ndarray of the shape of `H`
        Of the rows.
    """
    parts = [g_l, H_l] if h_l is None else [g_l, H_l, h_l]
    # One pass over P_bar serves all right-hand sides: reading it is what a round costs.
    extended = extend(np.stack(parts, axis=1).reshape(g_l.shape[0], -1))
    extended = extended.reshape(-1, len(parts), *H.shape[1:])
    hessian = np.ones(H.shape, dtype=np.float32) if h_l is None else np.ascontiguousarray(extended[:, 2])
    gradient = H - extended[:, 1]
    gradient *= hessian
    gradient *= correction
    gradient += extended[:, 0]
    # Where no label reaches, the row of P_bar is 0 and the correction would pull the score to 0.
    gradient[unreachable] = 0.0
    return gradient.astype(H.dtype, copy=False), hessian.astype(H.dtype, copy=False)


@dataclass(frozen=True)
class TargetsRule:
    r"""Every row has a target: its label, or the propagated one.

    .. math:: g = w\,(\sigma(H) - q), \qquad h = w\,\sigma(H)(1 - \sigma(H)) \text{ (Newton) or } w,

    which is the correction in probability space: :math:`P g_l + \sigma(H_u) - P \sigma(H_l) = \sigma(H_u) - P y`.
    The operator is applied once, before the first round. `penalty` adds :math:`\lambda (L H)_l` on labelled rows.

    Attributes
    ----------
    loss : Loss
        The loss.
    targets : ndarray of float32 of shape (N,) or (N, K)
        q.
    weights : ndarray of float32 of shape (N,) or None
        w; 0 where no label reaches, None if it is 1 everywhere.
    newton : bool
        Curvature of the loss, or 1.
    penalty : LaplacianTerm or None
        The term in lam; None where it is 0.
    """

    loss: Loss
    targets: NDArray[np.float32]
    weights: NDArray[np.float32] | None
    newton: bool
    penalty: LaplacianTerm | None

    def __call__(self, H: Floats) -> tuple[Floats, Floats]:
        """Return gradient and hessian of all rows."""
        gradient, hessian = self.loss.derivatives(H, self.targets)
        if not self.newton:
            hessian = np.ones_like(gradient)
        if self.weights is not None:
            weights = self.weights if H.ndim == 1 else self.weights[:, None]
            gradient *= weights
            hessian *= weights
        if self.penalty is not None:
            gradient[self.penalty.labeled] += self.penalty.gradient(H)
            if self.newton:
                hessian[self.penalty.labeled] += self.penalty.curvature(H)
        return gradient, hessian
