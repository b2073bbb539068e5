"""Operators of the Laplacian: harmonic (the paper's, eq. 6), nonlocal for few labels, and Poisson learning."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext.graph import laplacian
from grbb_ext.propagation._base import Apply, Propagation, PropagationSpec, distance_from_one
from grbb_ext.propagation._solvers import ConjugateGradientSolver

# Two steps are enough unless the matrix is beyond double precision.
_MOST_IMPROVEMENTS = 2


class HarmonicPropagation(Propagation):
    r"""The harmonic extension :math:`P = -L_{uu}^{-1} L_{ul}` (paper, eq. 6).

    Each unlabelled value is the weighted mean of its neighbours': :math:`(L f)_u = 0`. P is non-negative and its
    rows sum to 1, so an extension never leaves the range of the given values (maximum principle).

    With few labels per row the extension collapses to a constant with spikes at the labels [1]_; see
    :class:`NonlocalPropagation` and :class:`SmoothPropagation`.

    References
    ----------
    .. [1] B. Nadler, N. Srebro and X. Zhou, "Semi-supervised learning with the graph Laplacian: the limit of infinite
       unlabelled data", NIPS 2009.

    Examples
    --------
    A path of four rows with values at both ends:

    >>> import numpy as np
    >>> W = np.diag([1.0, 1.0, 1.0], 1) + np.diag([1.0, 1.0, 1.0], -1)
    >>> Harmonic().on(W, [0, 3]).extend([0.0, 3.0]).round(9).tolist()
    [0.0, 1.0, 2.0, 3.0]
    """

    stochastic = True

    @cached_property
    def _blocks(self) -> tuple[Apply, sp.csr_array]:
        """The solver of L_uu and the block -L_ul = W_ul."""
        L = laplacian(self.affinity)
        rows = L[self.free]
        return self._solve(sp.csr_array(rows[:, self.free])), sp.csr_array(-rows[:, self.labeled])

    def _extend_free(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        solve, W_ul = self._blocks
        # The column of ones costs little and shows whether the rows of P sum to 1.
        right = W_ul @ np.column_stack([values, np.ones(values.shape[0])])
        solution = solve(np.ascontiguousarray(right))
        if isinstance(solve, ConjugateGradientSolver):
            # A small residual is no small error where rows hang on few edges to the labels.
            for _ in range(_MOST_IMPROVEMENTS):
                if distance_from_one(solution[:, -1]) <= self._allowed:
                    break
                solution = solve.improved(solution, right)
        self._check_row_sums(solution[:, -1])
        return solution[:, :-1]


class NonlocalPropagation(HarmonicPropagation):
    """The harmonic extension on a graph whose edges at labelled rows weigh N / n times more.

    With the weight of the labels kept in proportion to the number of rows the extension does not collapse as
    unlabelled rows are added [1]_.

    References
    ----------
    .. [1] Z. Shi, S. Osher and W. Zhu, "Weighted nonlocal Laplacian on interpolation from sparse data", Journal of
       Scientific Computing 73, 2017.

    Examples
    --------
    >>> import numpy as np
    >>> W = np.ones((4, 4)) - np.eye(4)
    >>> Nonlocal().on(W, [0, 3]).extend([0.0, 1.0]).tolist()
    [0.0, 0.5, 0.5, 1.0]
    """

    @property
    def affinity(self) -> sp.csr_array:
        """W with the edges at labelled rows times N / n."""
        edges = self.W.tocoo()
        touches = np.isin(edges.row, self.labeled) | np.isin(edges.col, self.labeled)
        edges.data = np.where(touches, self.n_rows / self.labeled.size, 1.0) * edges.data
        return sp.csr_array(edges)


class PoissonPropagation(Propagation):
    r"""Poisson learning [1]_ as a linear extension.

    .. math:: f = \bar v + c\, u, \qquad L u = \sum_{j \in l} (v_j - \bar v)\, e_j, \qquad \sum_i d_i u_i = 0,

    separately in every connected component, with :math:`\bar v` the mean of its labels. The scale c makes the mean
    diagonal of the centred :math:`(L^+)_{ll}` equal to 1: the original leaves it open, since its decision does not
    depend on it. Rows of P sum to 1, entries may be negative.

    References
    ----------
    .. [1] J. Calder, B. Cook, M. Thorpe and D. Slepcev, "Poisson learning: graph based semi-supervised learning at very
       low label rates", ICML 2020.

    Examples
    --------
    >>> import numpy as np
    >>> W = np.diag([1.0, 1.0, 1.0], 1) + np.diag([1.0, 1.0, 1.0], -1)
    >>> Poisson().on(W, [0, 3]).extend([-1.0, 1.0]).round(3).tolist()
    [-1.0, -0.667, 0.667, 1.0]
    """

    stochastic = False

    @cached_property
    def _component_of(self) -> sp.csr_array:
        """Indicator of the components that hold a label, (C, N)."""
        reach = np.flatnonzero(self.reachable)
        _, component = np.unique(self.component[reach], return_inverse=True)
        shape = (int(component.max()) + 1, self.n_rows)
        return sp.csr_array((np.ones(component.size), (component, reach)), shape=shape)

    @cached_property
    def _pseudo_inverse(self) -> Apply:
        """The map from sources that add up to 0 in each component to u, on all rows."""
        L = laplacian(self.W)
        degree = L.diagonal()
        indicator = self._component_of
        mass = indicator @ degree
        kept = np.flatnonzero(self.reachable)
        if self._direct:
            # A factorisation needs a regular matrix: one labelled row of each component is held at 0, and u is centred
            # below all the same. Conjugate gradients converge faster on the singular system itself.
            _, grounded = np.unique(self.component[self.labeled], return_index=True)
            kept = np.setdiff1d(kept, self.labeled[grounded])
        solve = self._solve(sp.csr_array(L[kept][:, kept]))

        def apply(sources: NDArray[np.float64]) -> NDArray[np.float64]:
            u = np.zeros_like(sources)
            u[kept] = solve(np.ascontiguousarray(sources[kept]))
            center = (indicator @ (degree[:, None] * u)) / np.where(mass > 0, mass, 1.0)[:, None]
            return np.asarray(u - indicator.T @ center)

        return apply

    def _centered(self, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Split values into the component's mean, on all rows, and sources that add up to 0 in each component."""
        membership = self._component_of[:, self.labeled]
        mean = (membership @ values) / np.asarray(membership.sum(axis=1)).reshape(-1, 1)
        sources = np.zeros((self.n_rows, values.shape[1]))
        sources[self.labeled] = values - membership.T @ mean
        return self._component_of.T @ mean, sources

    @cached_property
    def _scale(self) -> float:
        n = self.labeled.size
        diagonal = np.empty(n)

        def fill(block: slice) -> None:
            _, sources = self._centered(np.eye(n)[:, block])
            diagonal[block] = np.einsum("ij,ij->j", sources, self._pseudo_inverse(sources))

        _ = self._pseudo_inverse
        self._each_block(fill, "poisson scale")
        mean = float(diagonal.mean())
        return 1.0 / mean if mean > 0 else 1.0

    def _extend_free(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        mean, sources = self._centered(values)
        return (mean + self._scale * self._pseudo_inverse(sources))[self.free]


@dataclass(frozen=True)
class Harmonic(PropagationSpec):
    """The harmonic extension, see :class:`HarmonicPropagation`; the fields are those of :class:`PropagationSpec`."""

    kind = "harmonic"
    made = HarmonicPropagation


@dataclass(frozen=True)
class Nonlocal(PropagationSpec):
    """The nonlocal extension, see :class:`NonlocalPropagation`; the fields are those of :class:`PropagationSpec`."""

    kind = "nonlocal"
    made = NonlocalPropagation


@dataclass(frozen=True)
class Poisson(PropagationSpec):
    """Poisson learning, see :class:`PoissonPropagation`; the fields are those of :class:`PropagationSpec`."""

    kind = "poisson"
    made = PoissonPropagation
