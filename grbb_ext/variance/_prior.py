"""Prior covariance of the scores from the graph: the Laplacian, or the inverse of the smooth kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from grbb_ext._progress import progress, row_blocks
from grbb_ext.graph import laplacian
from grbb_ext.propagation import (
    ConjugateGradientSolver,
    DirectSolver,
    Harmonic,
    HarmonicPropagation,
    Propagation,
    SmoothPropagation,
    SolverError,
)

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Product = Callable[[NDArray[np.floating[Any]]], NDArray[np.floating[Any]]]

# The Laplacian does not see a constant; the level of a component gets this prior standard deviation, in logits.
_VAGUE_LEVEL = 5.0
_ROUGH_TOL = 1e-4
_EXACT_TOL = 1e-8
_EXACT_UP_TO = 3_000
_COLUMNS_AT_ONCE = 256
_SUBSPACE_STEPS = 3


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
    r"""The prior precision Q of the scores.

    The information about the scores is :math:`I = \Delta + \lambda Q` with the curvature :math:`\Delta` on the n
    labelled rows only. Whatever Q is, there is an N x n matrix F and a matrix R, both free of :math:`\Delta` and
    :math:`\lambda`, and two n x n matrices A and M such that

    .. math:: I^{-1} = R / \lambda + F A F^T, \qquad I^{-1}_{:l} = F M.

    Everything below is about rows that a label reaches; on the others F and R are 0.

    Parameters
    ----------
    propagation : Propagation
        The operator.

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

    def __init__(self, propagation: Propagation) -> None:
        self._propagation = propagation
        self.labeled, self.reachable = propagation.labeled, propagation.reachable
        self.n_rows = self.reachable.size
        self.verbose, self.memory_limit = propagation.verbose, propagation.spec.memory_limit

    @property
    def has_columns(self) -> bool:
        """Whether F is in memory."""
        return "columns" in vars(self)

    @cached_property
    def columns(self) -> NDArray[np.floating[Any]]:
        """F, of shape (N, n); MemoryError if it would take more than the operator's memory_limit."""
        if not self.columns_fit:
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

    def scatter(self, values: Array, rows: Index) -> Array:
        """Return vectors on all rows, of shape (N, k), with these values on `rows` and 0 elsewhere."""
        Z = np.zeros((self.n_rows, values.shape[1]))
        Z[rows] = values
        return Z

    @cached_property
    def residual_diagonal(self) -> Array:
        """The diagonal of R, of shape (N,): one solve per row, so opt-in beyond a few thousand rows."""
        diagonal = np.zeros(self.n_rows)
        wanted = np.flatnonzero(self.reachable)
        blocks = row_blocks(wanted.size, _COLUMNS_AT_ONCE)
        for block in progress(blocks, len(blocks), "diagonal of the prior covariance", self.verbose):
            rows = wanted[block]
            diagonal[rows] = self.residual_product(self.scatter(np.eye(rows.size), rows))[rows].diagonal()
        return diagonal

    @abstractmethod
    def posterior_product(self, delta: Array, lam: float) -> Product:
        """Return the map Z -> inverse(I) Z on all rows, to the few digits that random probes need, without F."""

    @abstractmethod
    def labeled_product(self, delta: Array, lam: float, k: int) -> tuple[Product, Array]:
        r"""Return the map from labelled rows to all rows that the sandwich is made of, as roughly, without F.

        It takes n numbers z per column to :math:`I^{-1}_{:l} \Delta^{1/2} z`. The second result is at most k
        orthonormal vectors, of shape (n, r), along which it is expected to be largest.
        """

    @abstractmethod
    def dense_covariance(self, delta: Array, lam: float) -> Array:
        """Return inverse(I) on the reachable rows as a dense matrix, without F, R, A and M."""

    @abstractmethod
    def labeled_covariance(self, lam: float) -> Array:
        """Return the prior covariance of the labelled scores, of shape (n, n), vague where Q has no precision."""

    @property
    def typical_lam(self) -> float:
        """The lam at which labelled scores have a prior standard deviation of about 1: 1 where Q is scaled for that."""
        return 1.0


def scaled_factor(K: Array, root: Array) -> tuple[Array, bool]:
    """Return the Cholesky factor of I + diag(root) K diag(root), for `cho_solve`.

    Examples
    --------
    >>> scaled_factor(np.array([[3.0]]), np.ones(1))[0].tolist()
    [[2.0]]
    """
    B = K * root
    B *= root[:, None]
    B.flat[:: root.size + 1] += 1.0
    return information_factor(B)


def information_factor(information: Array) -> tuple[Array, bool]:
    """Return the Cholesky factor of an information matrix, for `cho_solve`; the matrix is overwritten.

    Raises
    ------
    SolverError
        If it is not positive definite in double precision.

    Examples
    --------
    >>> information_factor(np.array([[4.0]]))[0].tolist()
    [[2.0]]
    """
    try:
        factor: tuple[Array, bool] = cho_factor(information, overwrite_a=True, check_finite=False)
    except LinAlgError as error:
        raise SolverError(
            f"The variance cannot be computed in double precision ({error}): the curvatures of the labelled rows, or "
            "they and lam times the graph, differ by too many orders of magnitude. Pass another lam, or sample weights "
            "that differ less."
        ) from error
    return factor


def _inverse(factor: tuple[Array, bool]) -> Array:
    """Return the inverse of a matrix from its Cholesky factor, symmetric to the last digit."""
    inverse = cho_solve(factor, np.eye(factor[0].shape[0]))
    return np.asarray(0.5 * (inverse + inverse.T))


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
    >>> from grbb_ext.propagation import Harmonic
    >>> prior = LaplacianPrior(Harmonic().on(np.diag([1.0, 1.0], 1) + np.diag([1.0, 1.0], -1), [0]))
    >>> (prior.columns @ prior.inner(np.array([0.25]), lam=1.0).to_columns).tolist()
    [[4.0], [4.0], [4.0]]
    """

    def __init__(self, propagation: Propagation, P_bar: NDArray[np.floating[Any]] | None = None) -> None:
        super().__init__(propagation)
        self._free, self._component = propagation.free, propagation.component[propagation.labeled]
        # Up to this size float64 costs next to nothing.
        if P_bar is not None and self.n_rows > _EXACT_UP_TO:
            self.columns = P_bar

    @cached_property
    def _L(self) -> sp.csr_array:
        return laplacian(self._propagation.affinity)

    @cached_property
    def _solve_free(self) -> Callable[[Array], Array]:
        L_uu = sp.csr_array(self._L[self._free][:, self._free])
        return DirectSolver(L_uu) if self.n_rows <= _EXACT_UP_TO else ConjugateGradientSolver(L_uu, _EXACT_TOL)

    def _make_columns(self) -> NDArray[np.floating[Any]]:
        operator = self._propagation
        if not isinstance(operator, HarmonicPropagation):
            spec = Harmonic(operator.spec.solver, operator.spec.tol, operator.spec.memory_limit)
            operator = spec.operator(operator.affinity, self.labeled, n_jobs=operator.n_jobs, verbose=self.verbose)
        return operator.extend(np.eye(self.labeled.size)) if self.n_rows <= _EXACT_UP_TO else operator.dense()

    @cached_property
    def schur(self) -> Array:
        r""":math:`L_{ll} - L_{lu} L_{uu}^{-1} L_{ul}`, of shape (n, n): a Laplacian between the labels."""
        rows = self._L[self.labeled]
        S = rows[:, self.labeled].toarray() + rows[:, self._free] @ self.columns[self._free].astype(np.float64)
        S = 0.5 * (S + S.T)
        # Rows of a Laplacian sum to 0: what is left is the error of P, and would look like a very small precision.
        S.flat[:: S.shape[0] + 1] -= S.sum(axis=1)
        return np.asarray(S)

    def inner(self, delta: Array, lam: float) -> Inner:
        """Return inverse(S), twice."""
        inverse = _inverse(information_factor(np.diag(delta) + lam * self.schur))
        return Inner(inverse, inverse)

    def residual_product(self, Z: Array) -> Array:
        """Return inverse(L_uu) Z_u; 0 on labelled rows."""
        R = np.zeros_like(Z)
        if self._free.size:
            R[self._free] = self._solve_free(np.ascontiguousarray(Z[self._free]))
        return R

    def posterior_product(self, delta: Array, lam: float) -> Product:
        """Return Z -> inverse(I) Z, by conjugate gradients on the information itself, so that P is not needed."""
        curvature = self.scatter(delta[:, None], self.labeled)[:, 0]
        solve = ConjugateGradientSolver(sp.csr_array(lam * self._L + sp.diags_array(curvature)), _ROUGH_TOL)
        # The information is singular where no label reaches: there Z and the solution are 0.
        reachable = self.reachable[:, None]
        return lambda Z: solve(np.where(reachable, Z, 0.0).astype(np.float64)).astype(Z.dtype)

    def labeled_product(self, delta: Array, lam: float, k: int) -> tuple[Product, Array]:
        r"""Return the map, and :math:`\Delta^{1/2} 1` of the largest components: I maps it to their constant."""
        posterior, root = self.posterior_product(delta, lam), np.sqrt(delta)[:, None]
        _, component, size = np.unique(self._component, return_inverse=True, return_counts=True)
        largest = np.argsort(-size, kind="stable")[:k]
        U = root * (component[:, None] == largest[None, :])
        return lambda z: posterior(self.scatter(root * z, self.labeled)), U / np.linalg.norm(U, axis=0)

    def dense_covariance(self, delta: Array, lam: float) -> Array:
        """Return inverse(delta + lam L) on the reachable rows."""
        reach = np.flatnonzero(self.reachable)
        information = lam * self._L.toarray()[np.ix_(reach, reach)]
        at = np.searchsorted(reach, self.labeled)
        information[at, at] += delta
        return np.asarray(cho_solve(information_factor(information), np.eye(reach.size)))

    @cached_property
    def _labeled_inverse(self) -> Array:
        return np.asarray(np.linalg.pinv(self.schur, rcond=1e-10, hermitian=True))

    def labeled_covariance(self, lam: float) -> Array:
        """Return the pseudo-inverse of lam S_0, S_0 the Schur complement, and a vague level for each component."""
        together = self._component[:, None] == self._component[None, :]
        return np.asarray(self._labeled_inverse / lam + _VAGUE_LEVEL**2 * together)

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
    >>> from grbb_ext.propagation import Smooth
    >>> prior = KernelPrior(Smooth().on(np.diag([1.0, 1.0], 1) + np.diag([1.0, 1.0], -1), [0]))
    >>> F, inner = prior.columns, prior.inner(np.array([0.25]), lam=1.0)
    >>> (F @ inner.to_columns).round(3).tolist()
    [[0.8], [1.131], [0.8]]
    """

    _propagation: SmoothPropagation

    def _make_columns(self) -> NDArray[np.floating[Any]]:
        return self.residual_product(self.scatter(np.eye(self.labeled.size), self.labeled))

    def residual_product(self, Z: Array) -> Array:
        """Return K Z; 0 where no label reaches."""
        K = np.asarray(self._propagation.kernel_product(Z), dtype=np.float64)
        K[~self.reachable] = 0.0
        return K

    def _factor(self, delta: Array, lam: float) -> tuple[Array, Any]:
        root = np.sqrt(delta)
        return root[:, None], scaled_factor(self.labeled_covariance(lam), root)

    def inner(self, delta: Array, lam: float) -> Inner:
        """Return A and M."""
        root, B = self._factor(delta, lam)
        scaled = root * _inverse(B)
        return Inner(-scaled * root.T / lam**2, scaled / root.T / lam)

    def posterior_product(self, delta: Array, lam: float) -> Product:
        """Return Z -> inverse(I) Z: two kernel products."""
        root, B = self._factor(delta, lam)
        kernel = partial(self._propagation.kernel_product, rough=True)

        def product(Z: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
            first = kernel(Z)
            at_labels = root * cho_solve(B, root * first[self.labeled]) / lam
            return np.asarray(
                (first - kernel(self.scatter(at_labels, self.labeled).astype(Z.dtype))) / Z.dtype.type(lam)
            )

        return product

    def labeled_product(self, delta: Array, lam: float, k: int) -> tuple[Product, Array]:
        """Return the map, one kernel product, and nearly its leading singular vectors, by subspace iteration on l."""
        root, B = self._factor(delta, lam)

        def product(z: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
            weights = self.scatter(root * cho_solve(B, z) / lam, self.labeled)
            return self._propagation.kernel_product(weights.astype(np.float32), rough=True)

        K = self._propagation.kernel_block
        U = np.linalg.qr(np.random.default_rng(0).normal(size=(delta.size, min(k, delta.size))))[0]
        for _ in range(_SUBSPACE_STEPS):
            U = np.linalg.qr(cho_solve(B, root * (K @ (K @ (root * cho_solve(B, U))))))[0]
        return product, U

    def dense_covariance(self, delta: Array, lam: float) -> Array:
        """Return inverse(I) on the reachable rows from the eigenvectors of K."""
        half = self._root_of_kernel / np.sqrt(lam)
        at_labels = half[np.searchsorted(np.flatnonzero(self.reachable), self.labeled)]
        information = np.eye(half.shape[1]) + at_labels.T @ (delta[:, None] * at_labels)
        return np.asarray(half @ cho_solve(information_factor(information), half.T))

    @cached_property
    def _root_of_kernel(self) -> Array:
        """A matrix G with G G^T = K on the reachable rows."""
        reach = np.flatnonzero(self.reachable)
        eigenvalues, U = np.linalg.eigh(self.residual_product(self.scatter(np.eye(reach.size), reach))[reach])
        return np.asarray(U * np.sqrt(np.maximum(eigenvalues, 0.0)))

    def labeled_covariance(self, lam: float) -> Array:
        """Return K_ll / lam."""
        return self._propagation.kernel_block / lam
