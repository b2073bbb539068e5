"""The two priors: the Laplacian of the graph, and the inverse of the smooth kernel."""

from __future__ import annotations

from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from grbb_ext.graph import laplacian, normalized_laplacian
from grbb_ext.objective import GRBBObjective
from grbb_ext.propagation import (
    ConjugateGradientSolver,
    HarmonicPropagation,
    HungPropagation,
    Propagation,
    SmoothPropagation,
)
from grbb_ext.variance._prior import Array, GraphPrior, Inner, Product

# The Laplacian does not see a constant; the evidence gives the level of a component this standard deviation, in logits.
_VAGUE_LEVEL = 5.0
_ROUGH_TOL = 1e-4
_EXACT_UP_TO = 3_000


class LaplacianPrior(GraphPrior):
    r"""Precision :math:`Q = L`, of the operator's affinity; F is :math:`\bar P` and R is :math:`L_{uu}^{-1}`, 0 on l.

    With the Schur complement :math:`S = \Delta_l + \lambda (L_{ll} - L_{lu} L_{uu}^{-1} L_{ul})`, n x n,

    .. math:: I^{-1} = \bar P S^{-1} \bar P^T + \begin{bmatrix} 0 & 0 \\ 0 & L_{uu}^{-1} \end{bmatrix} / \lambda, \qquad
       I^{-1}_{:l} = \bar P S^{-1}.

    Parameters
    ----------
    propagation : Propagation
        Harmonic, nonlocal or Poisson. P is the harmonic extension on its affinity in all three cases.
    P_bar : ndarray of shape (N, n) or None, default=None
        P_bar of that affinity in single precision, if it is there already; used beyond 3,000 rows.

    Examples
    --------
    >>> from grbb_ext.propagation import HarmonicPropagation
    >>> prior = LaplacianPrior(HarmonicPropagation(np.diag([1.0, 1.0], 1) + np.diag([1.0, 1.0], -1), [0]))
    >>> (prior.columns @ prior.inner(np.array([0.25]), lam=1.0).to_columns).tolist()
    [[4.0], [4.0], [4.0]]
    """

    def __init__(self, propagation: Propagation, P_bar: NDArray[np.floating[Any]] | None = None) -> None:
        self._propagation = propagation
        # Up to this size float64 costs next to nothing.
        self._ready = P_bar if propagation.n_rows > _EXACT_UP_TO else None
        self.labeled, self.reachable, self.n_rows = propagation.labeled, propagation.reachable, propagation.n_rows
        self.verbose, self.memory_limit = propagation.verbose, propagation.memory_limit

    @property
    def has_columns(self) -> bool:
        """Whether P_bar is in memory."""
        return self._ready is not None or "columns" in vars(self)

    @cached_property
    def _L(self) -> sp.csr_array:
        return laplacian(self._propagation.affinity)

    @cached_property
    def _solve_free(self) -> Any:
        free = self._propagation.free
        return self._propagation._solve(sp.csr_array(self._L[free][:, free]))

    def _make_columns(self) -> NDArray[np.floating[Any]]:
        if self._ready is not None:
            return self._ready
        operator = self._propagation
        if not isinstance(operator, HarmonicPropagation):
            operator = HarmonicPropagation(operator.W, operator.labeled, **operator.params)
        n = self.labeled.size
        P_bar = np.zeros((self.n_rows, n))
        P_bar[self.labeled] = np.eye(n)
        if operator.free.size:
            operator._prepare()

            def fill(block: slice) -> None:
                P_bar[operator.free, block] = operator._extend_free(np.eye(n)[:, block])

            operator._each_block(fill, "harmonic extension")
        return P_bar

    @cached_property
    def schur(self) -> Array:
        r""":math:`L_{ll} - L_{lu} L_{uu}^{-1} L_{ul}`, of shape (n, n): a Laplacian between the labels."""
        rows = self._L[self.labeled]
        free = self._propagation.free
        S = rows[:, self.labeled].toarray() + rows[:, free] @ np.asarray(self.columns[free], dtype=np.float64)
        return np.asarray(0.5 * (S + S.T))

    def inner(self, delta: Array, lam: float) -> Inner:
        """Return inverse(S), twice."""
        S = np.diag(delta) + lam * self.schur
        inverse = cho_solve(cho_factor(S), np.eye(delta.size))
        inverse = 0.5 * (inverse + inverse.T)
        return Inner(inverse, inverse)

    def residual_product(self, Z: Array) -> Array:
        """Return inverse(L_uu) Z_u; 0 on labelled rows."""
        free = self._propagation.free
        R = np.zeros_like(Z)
        if free.size:
            R[free] = self._solve_free(np.ascontiguousarray(Z[free]))
        return R

    def posterior_product(self, delta: Array, lam: float) -> Product:
        """Return Z -> inverse(I) Z, by conjugate gradients on the information itself, so that P is not needed."""
        reach = np.flatnonzero(self.reachable)
        curvature = np.zeros(self.n_rows)
        curvature[self.labeled] = delta
        information = lam * self._L[reach][:, reach] + sp.diags_array(curvature[reach])
        solve = ConjugateGradientSolver(sp.csr_array(information), _ROUGH_TOL)

        def product(Z: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
            X = np.zeros_like(Z)
            X[reach] = solve(np.ascontiguousarray(Z[reach], dtype=np.float64))
            return X

        return product

    def labeled_product(self, delta: Array, lam: float) -> Product:
        r"""Return the map from n numbers z to :math:`I^{-1}_{:l} \Delta^{1/2} z`."""
        posterior = self.posterior_product(delta, lam)
        return lambda z: posterior(self._scatter(np.sqrt(delta)[:, None] * z))

    def leading_directions(self, delta: Array, lam: float, k: int) -> Array:
        r"""Return :math:`\Delta^{1/2} 1` of the largest components, which I maps to the constant of the component."""
        _, component, size = np.unique(
            self._propagation.component[self.labeled], return_inverse=True, return_counts=True
        )
        largest = np.argsort(-size, kind="stable")[:k]
        U = np.sqrt(delta)[:, None] * (component[:, None] == largest[None, :])
        return np.asarray(U / np.linalg.norm(U, axis=0))

    def dense_covariance(self, delta: Array, lam: float) -> Array:
        """Return inverse(delta + lam L) on the reachable rows."""
        reach = np.flatnonzero(self.reachable)
        information = lam * self._L.toarray()[np.ix_(reach, reach)]
        at = np.searchsorted(reach, self.labeled)
        information[at, at] += delta
        return np.asarray(cho_solve(cho_factor(information), np.eye(reach.size)))

    @cached_property
    def _labeled_inverse(self) -> Array:
        return np.asarray(np.linalg.pinv(self.schur, rcond=1e-10, hermitian=True))

    @cached_property
    def _same_component(self) -> Array:
        component = self._propagation.component[self.labeled]
        return np.asarray(component[:, None] == component[None, :], dtype=np.float64)

    def labeled_covariance(self, lam: float) -> Array:
        """Return the pseudo-inverse of lam S_0, S_0 the Schur complement, and a vague level for each component."""
        return self._labeled_inverse / lam + _VAGUE_LEVEL**2 * self._same_component

    @property
    def typical_lam(self) -> float:
        """The mean diagonal of the pseudo-inverse of the Schur complement."""
        typical = float(self._labeled_inverse.diagonal().mean())
        return typical if typical > 0 else 1.0


class KernelPrior(GraphPrior):
    r"""Precision :math:`Q = K^{-1} = (L_n + \tau I)^p / c`; F is :math:`K_{:l}` and R is K.

    With :math:`B = I + \Delta^{1/2} K_{ll} \Delta^{1/2} / \lambda` Woodbury's identity gives

    .. math:: I^{-1} = K / \lambda - K_{:l} \Delta^{1/2} B^{-1} \Delta^{1/2} K_{l:} / \lambda^2, \qquad
       I^{-1}_{:l} = K_{:l}\, \Delta^{1/2} B^{-1} \Delta^{-1/2} / \lambda,

    so Q is never formed and a curvature near 0 does no harm.

    Parameters
    ----------
    propagation : SmoothPropagation
        The operator, with its kernel.

    Examples
    --------
    >>> from grbb_ext.propagation import SmoothPropagation
    >>> prior = KernelPrior(SmoothPropagation(np.diag([1.0, 1.0], 1) + np.diag([1.0, 1.0], -1), [0]))
    >>> F, inner = prior.columns, prior.inner(np.array([0.25]), lam=1.0)
    >>> (F @ inner.to_columns).round(3).tolist()
    [[0.8], [1.131], [0.8]]
    """

    def __init__(self, propagation: SmoothPropagation) -> None:
        self._propagation = propagation
        self.labeled, self.reachable, self.n_rows = propagation.labeled, propagation.reachable, propagation.n_rows
        self.verbose, self.memory_limit = propagation.verbose, propagation.memory_limit

    @property
    def has_columns(self) -> bool:
        """Whether F has been computed."""
        return "columns" in vars(self)

    def _make_columns(self) -> NDArray[np.floating[Any]]:
        return self.residual_columns(self.labeled)

    def residual_product(self, Z: Array) -> Array:
        """Return K Z; 0 where no label reaches."""
        K = np.asarray(self._propagation.kernel_product(Z), dtype=np.float64)
        K[~self.reachable] = 0.0
        return K

    def _factor(self, delta: Array, lam: float) -> tuple[Array, Any]:
        root = np.sqrt(delta)
        B = np.eye(root.size) + root[:, None] * (self._propagation.kernel_block / lam) * root
        return root, cho_factor(B)

    def inner(self, delta: Array, lam: float) -> Inner:
        """Return A and M."""
        root, B = self._factor(delta, lam)
        inverse = cho_solve(B, np.eye(root.size))
        inverse = 0.5 * (inverse + inverse.T)
        return Inner(-root[:, None] * inverse * root / lam**2, root[:, None] * inverse / root / lam)

    def posterior_product(self, delta: Array, lam: float) -> Product:
        """Return Z -> inverse(I) Z: two kernel products."""
        root, B = self._factor(delta, lam)
        kernel = self._propagation.kernel_product

        def product(Z: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
            first = kernel(Z, rough=True)
            at_labels = cho_solve(B, root[:, None] * first[self.labeled]) * (root[:, None] / lam)
            return np.asarray(
                (first - kernel(self._scatter(at_labels).astype(Z.dtype), rough=True)) / Z.dtype.type(lam)
            )

        return product

    def labeled_product(self, delta: Array, lam: float) -> Product:
        r"""Return the map from n numbers z to :math:`I^{-1}_{:l} \Delta^{1/2} z`: one kernel product."""
        root, B = self._factor(delta, lam)

        def product(z: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
            weights = root[:, None] * cho_solve(B, z) / lam
            return self._propagation.kernel_product(self._scatter(weights).astype(np.float32), rough=True)

        return product

    def leading_directions(self, delta: Array, lam: float, k: int) -> Array:
        """Return the leading directions on labelled rows: they stand for all rows."""
        at_labels = self._propagation.kernel_block @ self.inner(delta, lam).to_columns * np.sqrt(delta)
        return np.asarray(np.linalg.svd(at_labels)[2][:k].T)

    def dense_covariance(self, delta: Array, lam: float) -> Array:
        """Return inverse(I) on the reachable rows from the eigenvectors of the normalised Laplacian."""
        rows = np.flatnonzero(self.reachable)
        operator = self._propagation
        nodes = operator.on_nodes if isinstance(operator, HungPropagation) else operator
        reached = np.flatnonzero(nodes.reachable)
        L_n = normalized_laplacian(nodes.W).toarray()[np.ix_(reached, reached)]
        eigenvalues, U = np.linalg.eigh(L_n)
        scale = self._propagation.kernel_scale / lam
        half = U * np.sqrt(scale * (np.maximum(eigenvalues, 0.0) + self._propagation.tau_) ** -self._propagation.power)
        if isinstance(operator, HungPropagation):
            half = operator.Z[rows][:, reached] @ half
        at_labels = half[np.searchsorted(rows, self.labeled)]
        information = np.eye(reached.size) + at_labels.T @ (delta[:, None] * at_labels)
        return np.asarray(half @ cho_solve(cho_factor(information), half.T))

    def labeled_covariance(self, lam: float) -> Array:
        """Return K_ll / lam."""
        return self._propagation.kernel_block / lam

    @property
    def typical_lam(self) -> float:
        """1, since K has a mean diagonal of 1 on labelled rows."""
        return 1.0


# What a prior computes depends on the graph and the labelled rows only, so it lives as long as the objective.
_known: WeakKeyDictionary[GRBBObjective, KernelPrior | LaplacianPrior] = WeakKeyDictionary()


def prior_of(obj: GRBBObjective) -> KernelPrior | LaplacianPrior:
    """Return the prior of the objective's operator; what it computes is kept for the next call.

    Parameters
    ----------
    obj : GRBBObjective
        An objective with a propagation operator, i.e. of any rule but ``"labeled"``.

    Returns
    -------
    KernelPrior or LaplacianPrior
        The kernel of ``"smooth"``, the Laplacian of the others.

    Examples
    --------
    >>> from grbb_ext import grbb_objective
    >>> obj = grbb_objective(None, [0, -1, 1], graph=[[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> type(prior_of(obj)).__name__
    'KernelPrior'
    """
    operator = obj.propagation_
    if operator is None:
        raise ValueError(
            "The variance is measured along the graph, and rule='labeled' has no operator. Make the objective with "
            "another rule on the same rows; it need not be the one that trained the scores."
        )
    if obj not in _known:
        if isinstance(operator, SmoothPropagation):
            _known[obj] = KernelPrior(operator)
        else:
            _known[obj] = LaplacianPrior(operator, obj.P_bar_ if operator.kind in ("harmonic", "nonlocal") else None)
    return _known[obj]
