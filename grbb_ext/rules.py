r"""The rules: gradient and hessian of every row, from labels, operator or teacher.

===============  ==========================================================================  ==========================
rule             :math:`g_u`                                                                 :math:`h_u`
===============  ==========================================================================  ==========================
``"targets"``    :math:`\sigma(H_u) - q_u`, with targets q of the teacher                    :math:`\sigma (1 - \sigma)`
``"paper"``      :math:`P g_l` (paper, eq. 6)                                                1
``"corrected"``  :math:`P g_l + \rho\, h_u (H_u - P H_l)`                                    :math:`P h_l`
``"laplacian"``  :math:`\lambda (L H)_u` (LapGBRT, eq. 2)                                    1
``"labeled"``    0 (GBRT on the labelled rows)                                               0
===============  ==========================================================================  ==========================

A rule is a spec (:class:`Targets`, :class:`Paper`, ...), and :meth:`RuleSpec.gradients` a function of raw scores and of
:class:`RuleParts`. It works on the rows that it is given: all of them, or those of one of many machines, which then
share the scores of the labelled rows by a sum (:class:`LabeledGradient`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext._options import Spec, finite_number, one_of
from grbb_ext.losses import Floats, Loss

Gradients: TypeAlias = tuple[Floats, Floats]
Rule: TypeAlias = Callable[[Floats], Gradients]
Index: TypeAlias = NDArray[np.intp]

# OpenBLAS keeps a product on the calling thread while the matrix has fewer than 9,216 entries.
_ENTRIES_PER_BLOCK = 8192


@dataclass(frozen=True)
class LabeledGradient:
    r"""Derivatives of the regularised loss with respect to the labelled scores (paper, eq. 5).

    .. math:: g_l = w \,\frac{\partial \ell}{\partial H_l} + \lambda (L H)_l, \qquad
       h_l = w \,\frac{\partial^2 \ell}{\partial H_l^2} + \lambda L_{ll}.

    Only labelled scores pass through the loss, so a round costs n sigmoids whatever N is. Where the rows lie on many
    machines, each has the scores of some labelled rows; one sum over all machines gives every one all of them.

    Attributes
    ----------
    loss : Loss
        The loss.
    targets : ndarray of shape (n,) or (n, K)
        Targets of the labelled rows.
    weights : ndarray of shape (n,)
        Their weights w.
    here : ndarray of int
        Positions of labelled rows among the rows at hand: all n of them on one machine.
    which : ndarray of int
        Their numbers among the n.
    lam : float, default=0
        The trade-off of eq. 2.
    L_l : csr_array of shape (n, rows) or None, default=None
        The labelled rows of the Laplacian, cut to the rows at hand; None where lam is 0.
    degree : ndarray of shape (n,) or None, default=None
        Diagonal of L on labelled rows.
    total : callable or None, default=None
        The sum over all machines; None on one.

    Examples
    --------
    >>> from grbb_ext.losses import LogisticLoss
    >>> rows = np.array([2])
    >>> gradient = LabeledGradient(LogisticLoss(), np.array([1.0]), np.array([2.0]), rows, np.arange(1))
    >>> [values.tolist() for values in gradient(np.zeros(3))[:2]]
    [[-1.0], [0.5]]
    """

    loss: Loss
    targets: NDArray[np.float64]
    weights: NDArray[np.float64]
    here: Index
    which: Index
    lam: float = 0.0
    L_l: sp.csr_array | None = None
    degree: NDArray[np.float64] | None = None
    total: Callable[[NDArray[Any]], NDArray[Any]] | None = None

    def __call__(self, H: Floats) -> tuple[Floats, Floats, Floats]:
        """Return g_l and h_l, in float64 since n rows are few, and the labelled scores."""
        H_l = np.zeros((self.weights.size, *H.shape[1:]), dtype=H.dtype)
        H_l[self.which] = H[self.here]
        slope = self._slope(H)
        if self.total is not None:  # one sum for both
            sums = self.total(np.stack([H_l] if slope is None else [H_l, slope]))
            H_l, slope = sums[0].astype(H.dtype), None if slope is None else sums[1]
        gradient, curvature = self._derivatives(H_l, self.targets, self.weights)
        if slope is not None:
            gradient += slope
            curvature += self._steepness(H)
        return gradient, curvature, H_l

    def here_only(self, H: Floats) -> tuple[Floats, Floats]:
        """Return gradient and curvature of the labelled rows at hand, for which their own scores are enough."""
        gradient, curvature = self._derivatives(H[self.here], self.targets[self.which], self.weights[self.which])
        self.penalize(gradient, curvature, H, slice(None))
        return gradient, curvature

    def penalize(self, gradient: Floats, hessian: Floats | None, H: Floats, rows: Index | slice) -> None:
        """Add lam (L H)_l to the labelled rows at hand, and its curvature to a Newton hessian, in place."""
        slope = self._slope(H)
        if slope is None:
            return
        slope = slope if self.total is None else self.total(slope)
        gradient[rows] += slope[self.which]
        if hessian is not None:
            hessian[rows] += self._steepness(H)[self.which]

    def _derivatives(
        self, H_l: Floats, targets: NDArray[np.float64], weights: NDArray[np.float64]
    ) -> tuple[Floats, Floats]:
        gradient, curvature = self.loss.derivatives(H_l.astype(np.float64), targets)
        return by_row(weights, H_l) * gradient, by_row(weights, H_l) * curvature

    def _slope(self, H: Floats) -> Floats | None:
        return None if self.L_l is None else np.asarray(self.lam * (self.L_l @ H))

    def _steepness(self, H: Floats) -> Floats:
        assert self.degree is not None
        return by_row(self.lam * self.degree, H)


def by_row(values: NDArray[Any], H: Floats) -> NDArray[Any]:
    """Return one value per row in a shape that multiplies H.

    Examples
    --------
    >>> by_row(np.ones(3), np.zeros((3, 2))).shape
    (3, 1)
    """
    return values if H.ndim == 1 else values[:, None]


@dataclass(frozen=True)
class RuleParts:
    """What a rule is built from, for the rows at hand.

    Attributes
    ----------
    labeled : LabeledGradient
        Eq. 5.
    extend : callable or None
        Maps (n, k) to (rows, k): the product with these rows of P_bar, which is the identity on labelled rows.
    unreachable : ndarray of int
        Those of the rows that no label reaches.
    targets : ndarray of float32 of shape (rows,) or (rows, K), or None
        q of the teacher.
    weights : ndarray of float32 of shape (rows,) or None
        Weights that multiply gradient and hessian; None if they are 1 everywhere.
    L : csr_array of shape (rows, rows) or None
        The Laplacian of reachable rows.
    """

    labeled: LabeledGradient
    extend: Callable[[Floats], Floats] | None = None
    unreachable: Index | NDArray[np.bool_] | None = None
    targets: NDArray[np.float32] | None = None
    weights: NDArray[np.float32] | None = None
    L: sp.csr_array | None = None

    @cached_property
    def unlabeled_weights(self) -> NDArray[np.float32] | None:
        """The weights, 1 for labelled rows: their loss has theirs already."""
        if self.weights is None:
            return None
        weights = self.weights.copy()
        weights[self.labeled.here] = 1.0
        return weights


@dataclass(frozen=True)
class RuleSpec(Spec):
    """How gradients are made: base of :class:`Targets`, :class:`Paper`, :class:`Corrected` and the two baselines.

    Parameters
    ----------
    lam : float, default=0
        Adds lam (L H)_l to the labelled gradient (eq. 5); for :class:`Laplacian` lam L H to all rows.
    """

    lam: float = 0.0

    name: ClassVar[str]
    #: What the rule takes where the user names no graph and no operator; None for no operator.
    graph: ClassVar[str] = "knn"
    propagation: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        finite_number(self.lam, "lam")
        one_of(getattr(self, "hessian", "unit"), ("newton", "unit"), "hessian")

    @property
    def newton(self) -> bool:
        """Whether the hessian is the curvature of the loss; else it is 1."""
        return bool(getattr(self, "hessian", "unit") == "newton")

    @property
    def needs_graph(self) -> bool:
        """Whether the rule looks at a graph at all."""
        return self.propagation is not None or self.lam > 0

    def build(self, parts: RuleParts) -> Rule:
        """Return :meth:`gradients` as a function of raw scores alone; it pickles."""
        return partial(self.gradients, parts)

    def gradients(self, parts: RuleParts, H: Floats) -> Gradients:
        """Return gradient and hessian, new arrays of the shape of the raw scores."""
        raise NotImplementedError


@dataclass(frozen=True)
class Targets(RuleSpec):
    r"""Every row has a target: its label, or what the teacher predicts. The default.

    .. math:: g = w\,(\sigma(H) - q), \qquad h = w\,\sigma(H)(1 - \sigma(H)) \text{ (Newton) or } w,

    which is the correction in probability space: :math:`P g_l + \sigma(H_u) - P \sigma(H_l) = \sigma(H_u) - P y`.
    Targets are computed once, before the first round.

    Parameters
    ----------
    lam : float, default=0
        Adds lam (L H)_l to the labelled gradient (eq. 5).
    hard : bool, default=False
        Round the targets to the most probable class.
    hessian : {"newton", "unit"}, default="newton"
        Curvature of the loss, or 1 so that a leaf is the mean of -g and a gain a decrease in squared error.
    """

    hard: bool = False
    hessian: Literal["newton", "unit"] = "newton"

    name = "targets"
    graph = "table"
    propagation = "smooth"

    def gradients(self, parts: RuleParts, H: Floats) -> Gradients:
        """Return gradient and hessian."""
        assert parts.targets is not None
        gradient, hessian = parts.labeled.loss.derivatives(H, parts.targets)
        if not self.newton:
            hessian = np.ones_like(gradient)
        gradient, hessian = _weighted(gradient, hessian, parts.weights)
        parts.labeled.penalize(gradient, hessian if self.newton else None, H, parts.labeled.here)
        return gradient, hessian


@dataclass(frozen=True)
class Labeled(RuleSpec):
    """GBRT on the labelled rows alone, a baseline of the paper: other rows have gradient 0 and hessian 0.

    Parameters
    ----------
    lam : float, default=0
        Adds lam (L H)_l to the labelled gradient (eq. 5).
    hessian : {"newton", "unit"}, default="newton"
        Curvature of the loss, or 1.
    """

    hessian: Literal["newton", "unit"] = "newton"

    name = "labeled"

    def gradients(self, parts: RuleParts, H: Floats) -> Gradients:
        """Return gradient and hessian."""
        gradient, hessian = np.zeros_like(H), np.zeros_like(H)
        g, h = parts.labeled.here_only(H)
        gradient[parts.labeled.here] = g
        hessian[parts.labeled.here] = h if self.newton else 1.0
        return gradient, hessian


@dataclass(frozen=True)
class Laplacian(RuleSpec):
    r"""LapGBRT, a baseline of the paper: the gradient of the Laplacian-regularised loss.

    :math:`g_l` as in eq. 5, :math:`g_u = \lambda (L H)_u`, hessian 1.

    Parameters
    ----------
    lam : float, default=0
        The trade-off of eq. 2; it must be above 0.
    """

    name = "laplacian"
    propagation = "harmonic"

    def gradients(self, parts: RuleParts, H: Floats) -> Gradients:
        """Return gradient and hessian."""
        assert parts.L is not None
        gradient = (self.lam * (parts.L @ H)).astype(H.dtype)
        gradient[parts.labeled.here] += parts.labeled(H)[0]
        return _weighted(gradient, np.ones_like(gradient), parts.unlabeled_weights)


@dataclass(frozen=True)
class Paper(RuleSpec):
    r"""The rule of the paper, its equation 6: :math:`g = \bar P g_l`, :math:`h = 1`, so a leaf is the mean of -g.

    Parameters
    ----------
    lam : float, default=0
        Adds lam (L H)_l to the labelled gradient (eq. 5).
    """

    name = "paper"
    graph = "paper"
    propagation = "harmonic"

    def gradients(self, parts: RuleParts, H: Floats) -> Gradients:
        """Return gradient and hessian."""
        assert parts.extend is not None
        gradient = parts.extend(parts.labeled(H)[0]).astype(H.dtype, copy=False)
        return _weighted(gradient, np.ones_like(gradient), parts.unlabeled_weights)


@dataclass(frozen=True)
class Corrected(RuleSpec):
    r"""Propagated gradients plus the distance of the unlabelled scores from the propagated ones.

    .. math:: g = \bar P g_l + \rho\, h\, (H - \bar P H_l), \qquad h = \bar P h_l \text{ (Newton) or } 1.

    Eq. 6 does not use the unlabelled scores, so once the labelled rows are fitted a wrong score is not
    corrected. The second term is the gradient of the paper's Laplacian penalty with respect to :math:`H_u`,
    :math:`\lambda L_{uu}(H_u - P H_l)`, preconditioned by :math:`L_{uu}^{-1}`.

    Parameters
    ----------
    lam : float, default=0
        Adds lam (L H)_l to the labelled gradient (eq. 5).
    correction : float, default=1
        :math:`\rho`.
    hessian : {"newton", "unit"}, default="newton"
        Propagated curvature, which needs a row-stochastic P (``"nonlocal"`` or ``"harmonic"``), or 1.
    """

    correction: float = 1.0
    hessian: Literal["newton", "unit"] = "newton"

    name = "corrected"
    propagation = "nonlocal"

    def __post_init__(self) -> None:
        super().__post_init__()
        finite_number(self.correction, "correction")

    def gradients(self, parts: RuleParts, H: Floats) -> Gradients:
        """Return gradient and hessian."""
        assert parts.extend is not None
        assert parts.unreachable is not None
        g_l, h_l, H_l = parts.labeled(H)
        right = [g_l, H_l, h_l] if self.newton else [g_l, H_l]
        # One pass over P_bar serves all right-hand sides: reading it is what a round costs.
        extended = parts.extend(np.stack(right, axis=1).reshape(g_l.shape[0], -1))
        extended = extended.reshape(-1, len(right), *H.shape[1:])
        hessian = np.ascontiguousarray(extended[:, 2]) if self.newton else np.ones(H.shape, dtype=np.float32)
        gradient = H - extended[:, 1]
        gradient *= hessian
        gradient *= self.correction
        gradient += extended[:, 0]
        # Where no label reaches, the row of P_bar is 0 and the correction would pull the score to 0.
        gradient[parts.unreachable] = 0.0
        gradient, hessian = gradient.astype(H.dtype, copy=False), hessian.astype(H.dtype, copy=False)
        return _weighted(gradient, hessian, parts.unlabeled_weights)


def _weighted(gradient: Floats, hessian: Floats, weights: NDArray[np.float32] | None) -> Gradients:
    if weights is not None:
        gradient *= by_row(weights, gradient)
        hessian *= by_row(weights, gradient)
    return gradient, hessian


#: Short forms of ``rule=``.
RULES: dict[str, RuleSpec] = {rule.name: rule for rule in (Targets(), Paper(), Corrected(), Laplacian(), Labeled())}


@dataclass(frozen=True)
class DenseOperator:
    """The product of the dense operator with a few vectors, once a round, without waking the threads of BLAS.

    The product is bound by reading P_bar, which one thread does about as fast as two. But the threads of BLAS go on
    waiting actively next to those of the booster: on two cores a round of either booster took up to twice as long.
    So the rows go to BLAS in blocks too small for threads, in one call. All blocks have the same height, a multiple of
    8 where that is possible, and the last is filled up: BLAS treats the odd rows at the end of a matrix differently,
    and so the product of a row with up to six vectors has the same bits whichever rows are next to it, on one machine
    or on many. (With nine or more OpenBLAS takes another way, and the last bit depends on the place.)

    Attributes
    ----------
    P_bar : ndarray of float32 of shape (N, n), row-major
        The operator.

    Examples
    --------
    >>> P_bar = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]], dtype=np.float32)
    >>> DenseOperator(P_bar)(np.array([2.0, 4.0])).tolist()
    [2.0, 3.0, 4.0]
    """

    P_bar: NDArray[np.float32]

    def __call__(self, vectors: Floats) -> NDArray[np.float32]:
        """Return P_bar @ vectors, in float32, for vectors of shape (n,) or (n, k)."""
        right = vectors.astype(np.float32)
        n_rows, n = self.P_bar.shape
        height = max(1, _ENTRIES_PER_BLOCK // n)
        height -= height % (8 if height >= 8 else 4) if height >= 4 else 0
        whole = n_rows - n_rows % height
        product = np.empty((n_rows, *right.shape[1:]), dtype=np.float32)
        blocks = product[:whole].reshape(-1, height, *right.shape[1:])
        np.matmul(self.P_bar[:whole].reshape(-1, height, n), right, out=blocks)
        if whole < n_rows:
            last = np.zeros((height, n), dtype=np.float32)
            last[: n_rows - whole] = self.P_bar[whole:]
            product[whole:] = (last @ right)[: n_rows - whole]
        return product
