"""The prior of the smooth operator: a proper Gaussian process with the graph's Matern kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from grbb_ext.graph import normalized_laplacian
from grbb_ext.propagation import HungPropagation, SmoothPropagation
from grbb_ext.variance._prior import Array, GraphPrior, Inner, Product


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
