"""Harmonic extension: the paper's operator (eq. 6), and its nonlocal form for few labels."""

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
        touches = np.zeros(self.n_rows, dtype=bool)
        touches[self.labeled] = True
        W = self.W.tocoo()
        factor = np.where(touches[W.row] | touches[W.col], self.n_rows / self.labeled.size, 1.0)
        return sp.csr_array(sp.coo_array((W.data * factor, (W.row, W.col)), shape=W.shape))


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
