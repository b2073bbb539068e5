"""The posterior of the scores as rows are labelled one after the other, with the scores themselves frozen."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from grbb_ext._progress import row_blocks
from grbb_ext.variance._prior import Array, GraphPrior, Index

_EXACT_UP_TO = 3_000
_COLUMNS_AT_ONCE = 64


class FrozenPosterior:
    r"""Covariance :math:`I^{-1}` of the scores, updated as rows are labelled.

    A label at row j adds :math:`\Delta_j e_j e_j^T` to the information. With c the column :math:`I^{-1} e_j`,

    .. math:: I_{new}^{-1} = I^{-1} - \alpha\, c c^T, \qquad \alpha = \frac{\Delta_j}{1 + \Delta_j c_j},

    so the weighted trace :math:`\frac1N \mathrm{tr}(V I^{-1})`, V the squared slopes, drops by :math:`\frac{\alpha}{N}
    c^T V c` (a mean over outputs where there are several). No more than one column per label is kept, and no N x N
    matrix.

    Parameters
    ----------
    prior : GraphPrior
        The prior.
    delta : ndarray of shape (n, K)
        Curvatures of the labelled rows.
    slope : ndarray of shape (N, K)
        Slopes of all rows.
    curvature : ndarray of shape (N, K)
        Curvature that a label would add at each row.
    lam : float
        Weight of the prior.
    candidates : ndarray of int of shape (c,)
        Rows that may be labelled by :meth:`label`; each takes a solve at once. Empty where only
        :meth:`drops_in_order` is wanted.
    """

    def __init__(
        self, prior: GraphPrior, delta: Array, slope: Array, curvature: Array, lam: float, candidates: Index
    ) -> None:
        self._prior, self._lam = prior, lam
        self._curvature = curvature
        self._squared_slope = np.where(prior.reachable[:, None], slope, 0.0) ** 2
        self._outputs = range(delta.shape[1])
        # Beyond a few thousand rows six digits are enough: a column is then two products with the graph.
        self._exact = prior.n_rows <= _EXACT_UP_TO
        if self._exact:
            self._core = [prior.inner(delta[:, k], lam).core for k in self._outputs]
        else:
            self._rough = [prior.posterior_product(delta[:, k], lam) for k in self._outputs]
        self._updates: list[list[tuple[float, Array]]] = [[] for _ in self._outputs]
        self._total = float(prior.reachable.sum()) * len(self._outputs)
        self.candidates = candidates
        self._at = np.empty((candidates.size, len(self._outputs)))
        self._squared = np.empty_like(self._at)
        # [inverse(I)]_jj and the weighted squared norm of column j for every candidate j.
        for block in row_blocks(candidates.size, _COLUMNS_AT_ONCE):
            for k, columns in enumerate(self._columns(candidates[block])):
                self._at[block, k] = columns[candidates[block]].diagonal()
                self._squared[block, k] = self._squared_slope[:, k] @ columns**2

    def _columns(self, rows: Index) -> Iterator[Array]:
        """Yield these columns of the current covariance, of shape (N, k), for each output."""
        Z = self._prior.scatter(np.eye(rows.size), rows)
        # R does not depend on the output.
        residual = self._prior.residual_product(Z) if self._exact else None
        return (self.product(Z, k, residual) for k in self._outputs)

    def product(self, Z: Array, output: int, residual: Array | None = None) -> Array:
        """Return the current covariance of one output's scores times Z; `residual` is R Z, if it is there already."""
        if self._exact:
            F = np.asarray(self._prior.columns, dtype=np.float64)
            residual = self._prior.residual_product(Z) if residual is None else residual
            image = residual / self._lam + F @ (self._core[output] @ (F.T @ Z))
        else:
            image = np.asarray(self._rough[output](Z.astype(np.float32)), dtype=np.float64)
        for alpha, column in self._updates[output]:
            image -= alpha * np.outer(column, column @ Z)
        return image

    @property
    def drop(self) -> Array:
        """By how much the mean variance falls if a candidate is labelled next, of shape (c,)."""
        added = self._curvature[self.candidates]
        return np.asarray((added * self._squared / (1.0 + added * self._at)).sum(axis=1) / self._total)

    def drops_in_order(self, rows: Index) -> Array:
        r"""Return the drops of given rows, labelled one after the other, from one block of columns.

        With C the columns of these rows, everything that the updates need is in the k x k matrices C[rows] and
        :math:`C^T V C`.

        Parameters
        ----------
        rows : ndarray of int of shape (k,)
            The rows, in order.

        Returns
        -------
        ndarray of shape (k,)
            By how much each lowers the mean variance.
        """
        drops = np.zeros(rows.size)
        for k, C in enumerate(self._columns(rows)):
            between, squared = C[rows], C.T @ (self._squared_slope[:, k, None] * C)
            for i, row in enumerate(rows):
                added = self._curvature[row, k]
                alpha = added / (1.0 + added * between[i, i])
                drops[i] += alpha * squared[i, i]
                pull = alpha * between[:, i]
                # C becomes C - C[:, i] pull^T.
                squared = squared - np.outer(pull, squared[i])
                squared = squared - np.outer(squared[:, i], pull)
                between = between - np.outer(pull, between[i])
        return drops / self._total

    def label(self, position: int) -> float:
        """Label a candidate and return the drop.

        Parameters
        ----------
        position : int
            Its position among the candidates.

        Returns
        -------
        float
            By how much the mean variance fell.
        """
        row = self.candidates[position]
        dropped = float(self.drop[position])
        for k, columns in enumerate(self._columns(self.candidates[[position]])):
            column = columns[:, 0]
            added = self._curvature[row, k]
            alpha = float(added / (1.0 + added * column[row]))
            weighted = self._squared_slope[:, k] * column
            pulled = self.product(weighted[:, None], k)[self.candidates, 0]
            shared = column[self.candidates]
            self._squared[:, k] += -2.0 * alpha * shared * pulled + (alpha * shared) ** 2 * float(weighted @ column)
            self._at[:, k] -= alpha * shared**2
            self._updates[k].append((alpha, column))
        return dropped
