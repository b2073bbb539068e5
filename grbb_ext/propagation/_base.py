"""What every propagation operator shares: rows, blocks of columns on all cores, a dense form within a memory limit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from grbb_ext._options import Spec, is_number
from grbb_ext._progress import in_threads, row_blocks
from grbb_ext.graph import check_graph, reachable_rows
from grbb_ext.propagation._solvers import ILL_CONDITIONED, ConjugateGradientSolver, DirectSolver, SolverError

Apply = Callable[[NDArray[Any]], NDArray[Any]]
Index = NDArray[np.intp]

# Beyond about 3,000 unknowns the fill of a sparse LU on a neighbour graph costs more than conjugate gradients.
_DIRECT_UP_TO = 3_000
# Columns that a product takes at once: twice as many up to so many rows, where all that it reads stays in a cache.
COLUMNS_PER_BLOCK, _WIDE_UP_TO = 16, 2**15


@dataclass(frozen=True)
class PropagationSpec(Spec):
    """How an operator is made: base of :class:`Smooth`, :class:`Harmonic`, :class:`Nonlocal` and :class:`Poisson`.

    Parameters
    ----------
    solver : {"auto", "direct", "cg"}, default="auto"
        Sparse LU, conjugate gradients, or the one that suits the size (LU up to 3,000 unknowns).
    tol : float, default=1e-8
        Relative residual of the iterative solvers.
    memory_limit : float, default=2e9
        Most bytes that :meth:`Propagation.dense` may allocate.
    """

    solver: Literal["auto", "direct", "cg", "chebyshev"] = "auto"
    tol: float = 1e-8
    memory_limit: float = 2e9

    kind: ClassVar[str]
    made: ClassVar[type[Propagation]]
    solvers: ClassVar[tuple[str, ...]] = ("auto", "direct", "cg")

    def __post_init__(self) -> None:
        if self.solver not in self.solvers:
            raise ValueError(f"solver must be one of {self.solvers} for {self.kind!r}, got {self.solver!r}.")
        if not (is_number(self.tol) and 0 < self.tol < 1):
            raise ValueError(f"tol must lie between 0 and 1, got {self.tol!r}.")
        if not (is_number(self.memory_limit) and self.memory_limit > 0):
            raise ValueError(f"memory_limit is a number of bytes, such as 4e9; got {self.memory_limit!r}.")

    def on(self, graph: Any, labeled: ArrayLike, *, n_jobs: int | None = None, verbose: bool = True) -> Propagation:
        """Make the operator on a graph.

        Parameters
        ----------
        graph : sparse matrix or array-like of shape (N, N)
            Symmetric non-negative affinity W.
        labeled : array-like of int of shape (n,)
            The labelled rows; values are given in this order.
        n_jobs : int or None, default=None
            Threads; None takes all cores.
        verbose : bool, default=True
            Draw a progress bar on what takes more than two seconds.

        Returns
        -------
        Propagation
            An object with ``extend(values)`` and ``dense()``.
        """
        W = check_graph(graph)
        return self.operator(W, _check_labeled(labeled, W.shape[0]), n_jobs=n_jobs, verbose=verbose)

    def operator(
        self, W: sp.csr_array, labeled: Index, *, n_jobs: int | None = None, verbose: bool = False
    ) -> Propagation:
        """Make the operator on an affinity that has been checked."""
        return self.made(W, labeled, self, n_jobs=n_jobs, verbose=verbose)


def without_cached(made: Any) -> dict[str, Any]:
    """Return the state of an object without its cached properties: what ``__getstate__`` may be."""
    cached = [name for name in vars(made) if isinstance(getattr(type(made), name, None), cached_property)]
    return {name: value for name, value in vars(made).items() if name not in cached}


class Propagation(ABC):
    r"""A linear map from values on the n labelled rows to all N rows, :math:`\bar P = [I; P]`.

    Labelled rows keep their values. Rows in a component without a label get 0. Made by :meth:`PropagationSpec.on`.

    Attributes
    ----------
    spec : PropagationSpec
        How it was made; ``spec.on(graph, labeled)`` makes the same on another graph.
    W : csr_array of shape (N, N)
        The affinity.
    n_rows : int
        N.
    labeled : ndarray of shape (n,)
        The labelled rows.
    reachable : ndarray of bool of shape (N,)
        Rows that share a component with a label.
    """

    #: Whether P is non-negative with rows that sum to 1, so that P y is a probability and P h a curvature.
    stochastic: ClassVar[bool]

    def __init__(
        self,
        W: sp.csr_array,
        labeled: Index,
        spec: PropagationSpec,
        *,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.W, self.labeled, self.spec = W, labeled, spec
        self.n_rows: int = W.shape[0]
        self.n_jobs, self.verbose = n_jobs, verbose
        self.reachable, self.component = reachable_rows(W, labeled)

    @cached_property
    def free(self) -> Index:
        """The unlabelled rows that share a component with a label."""
        return np.setdiff1d(np.flatnonzero(self.reachable), self.labeled, assume_unique=True)

    @property
    def kind(self) -> str:
        """Name of the operator."""
        return self.spec.kind

    @property
    def affinity(self) -> sp.csr_array:
        """The affinity whose Laplacian the operator uses: W itself, unless an operator reweighs it."""
        return self.W

    def extend(self, values: ArrayLike) -> NDArray[np.float64]:
        """Extend values from the labelled rows to all rows.

        Parameters
        ----------
        values : array-like of shape (n,) or (n, K)
            Values on the labelled rows, in the order of `labeled`.

        Returns
        -------
        ndarray of shape (N,) or (N, K)
            The values themselves on labelled rows, P times the values on the others, 0 where no label reaches.
        """
        given = np.asarray(values, dtype=np.float64)
        if given.ndim not in (1, 2) or given.shape[0] != self.labeled.size:
            raise ValueError(
                f"values must have one row per labelled row, ({self.labeled.size},) or ({self.labeled.size}, K); "
                f"got shape {given.shape}."
            )
        if not np.isfinite(given).all():
            raise ValueError("values must be finite; got NaN or infinity.")
        extended = np.zeros((self.n_rows, *given.shape[1:]))
        extended[self.labeled] = given
        if self.free.size:
            columns = given.reshape(given.shape[0], -1)
            extended[self.free] = self._extend_free(columns).reshape(-1, *given.shape[1:])
        if not np.isfinite(extended).all():
            raise SolverError(f"The extended values are not finite. {ILL_CONDITIONED}")
        return extended

    def dense(self) -> NDArray[np.float32]:
        r"""Form :math:`\bar P` itself, in the order of all rows.

        Returns
        -------
        ndarray of float32 of shape (N, n)
            Identity on labelled rows, P on the others.

        Raises
        ------
        MemoryError
            If it would need more than `memory_limit` bytes.
        """
        n, limit = self.labeled.size, self.spec.memory_limit
        needed = 4 * self.n_rows * n
        if needed > limit:
            raise MemoryError(
                f"P has {self.n_rows} x {n} entries ({needed / 1e9:.1f} GB), over memory_limit={limit:.3g}"
                " bytes. Raise memory_limit, or use rule='targets', which never forms P."
            )
        P_bar = np.zeros((self.n_rows, n), dtype=np.float32)
        P_bar[self.labeled, np.arange(n)] = 1.0
        if self.free.size:
            self._fill_dense(P_bar)
        if self.stochastic:
            np.maximum(P_bar, 0.0, out=P_bar)
            self._check_row_sums(P_bar[self.free].sum(axis=1, dtype=np.float64))
        return P_bar

    @abstractmethod
    def _extend_free(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return P @ values on the free rows, for values of shape (n, K)."""

    def _fill_dense(self, P_bar: NDArray[np.float32]) -> None:
        identity = np.eye(self.labeled.size)
        self._extend_free(identity[:, :1])  # makes what all blocks share, before several threads ask for it

        def fill(block: slice) -> None:
            P_bar[self.free, block] = self._extend_free(identity[:, block])

        self._each_block(fill, f"{self.kind} operator")

    def _each_block(self, work: Callable[[slice], None], description: str, blocks: list[slice] | None = None) -> None:
        """Do `work` on blocks of labelled columns, on all cores: the sparse kernels release the interpreter."""
        # SuperLU is fast at the sizes it is chosen for and keeps its state in the factor: it stays on one thread.
        n_jobs = 1 if self._direct else self.n_jobs
        width = COLUMNS_PER_BLOCK * (2 if _DIRECT_UP_TO < self.n_rows <= _WIDE_UP_TO else 1)
        blocks = row_blocks(self.labeled.size, width) if blocks is None else blocks
        in_threads(work, blocks, n_jobs=n_jobs, description=description, verbose=self.verbose)

    @property
    def _direct(self) -> bool:
        return self.spec.solver == "direct" or (self.spec.solver == "auto" and self.n_rows <= _DIRECT_UP_TO)

    def _solve(self, A: sp.csr_array) -> Apply:
        """Return a solver of A x = b."""
        return DirectSolver(A) if self._direct else ConjugateGradientSolver(A, self.spec.tol)

    @property
    def _allowed(self) -> float:
        """How far from 1 the rows of P may sum."""
        return max(1e-5, 1e3 * self.spec.tol)

    def _check_row_sums(self, sums: NDArray[np.float64]) -> None:
        """Raise unless P 1 = 1: an error in the solution that the residual alone does not show."""
        error = distance_from_one(sums)
        if not error <= self._allowed:
            raise SolverError(
                f"The rows of P sum to 1 only within {error:.1e} (wanted {self._allowed:.1e}). {ILL_CONDITIONED}"
            )

    __getstate__ = without_cached  # factorisations do not pickle; they are made again when needed


def distance_from_one(sums: NDArray[np.float64]) -> float:
    """Return the largest distance from 1, or 0 for an empty array."""
    return float(np.abs(sums - 1.0).max(initial=0.0))


def _check_labeled(labeled: ArrayLike, n_rows: int) -> Index:
    rows = np.asarray(labeled)
    if rows.ndim != 1 or rows.size == 0 or not np.issubdtype(rows.dtype, np.integer):
        raise ValueError("labeled must list at least one labelled row, as a one-dimensional array of row numbers.")
    if rows.min() < 0 or rows.max() >= n_rows:
        raise ValueError(f"labeled rows must lie in 0..{n_rows - 1}, got {rows.min()}..{rows.max()}.")
    if np.unique(rows).size != rows.size:
        raise ValueError("labeled names a row twice.")
    return rows.astype(np.intp)
