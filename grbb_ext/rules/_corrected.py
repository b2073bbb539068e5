"""The paper's rule made self-correcting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grbb_ext.losses._base import Floats
from grbb_ext.rules._labeled_gradient import LabeledGradient
from grbb_ext.rules._product import propagate


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
