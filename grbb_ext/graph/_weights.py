"""Edge weights from distances."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

Weights = Literal["self-tuning", "binary", "heat"]

# exp(-20) = 2e-9: a far row keeps its edges, and stays attached to the graph, however far it is.
_LARGEST_EXPONENT = 20.0


def check_weights(kind: str) -> None:
    """Raise at a name that is none of ours, before neighbours are searched.

    Examples
    --------
    >>> check_weights("cubic")
    Traceback (most recent call last):
        ...
    ValueError: weights must be 'self-tuning', 'binary' or 'heat', got 'cubic'.
    """
    if kind not in get_args(Weights):
        raise ValueError(f"weights must be 'self-tuning', 'binary' or 'heat', got {kind!r}.")


def edge_weights(
    kind: Weights,
    squared_distance: NDArray[np.float64],
    radius_from: NDArray[np.float64],
    radius_to: NDArray[np.float64],
    bandwidth: float | None,
) -> NDArray[np.float64]:
    r"""Weigh edges by their length.

    ``"binary"``: :math:`w_{ij} = 1` (the paper's :math:`k_{ij}`).
    ``"heat"``: :math:`w_{ij} = \exp(-d_{ij}^2 / b^2)`, with b the `bandwidth`, by default the median radius.
    ``"self-tuning"`` [1]_: :math:`w_{ij} = \exp(-d_{ij}^2 / (r_i r_j))`.

    Parameters
    ----------
    kind : {"self-tuning", "binary", "heat"}
        The formula.
    squared_distance : ndarray of shape (E,)
        Squared edge lengths.
    radius_from, radius_to : ndarray of shape (E,)
        Distance r of each end to its own k-th neighbour.
    bandwidth : float or None
        b of ``"heat"``.

    Returns
    -------
    ndarray of shape (E,)
        Weights in [2e-9, 1].

    References
    ----------
    .. [1] L. Zelnik-Manor and P. Perona, "Self-tuning spectral clustering", NIPS 2004.

    Examples
    --------
    >>> edge_weights("self-tuning", np.array([2.0]), np.array([1.0]), np.array([4.0]), None).round(4).tolist()
    [0.6065]
    """
    if kind == "binary":
        return np.ones_like(squared_distance)
    if kind == "heat":
        scale = np.median(radius_from) ** 2 if bandwidth is None else bandwidth**2
        exponent = squared_distance / max(float(scale), np.finfo(np.float64).tiny)
    else:
        product = np.maximum(radius_from * radius_to, np.finfo(np.float64).tiny)
        exponent = squared_distance / product
    return np.exp(-np.minimum(exponent, _LARGEST_EXPONENT))
