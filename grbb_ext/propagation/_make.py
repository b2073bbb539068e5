"""Operators by name."""

from __future__ import annotations

from typing import Any, Literal

from numpy.typing import ArrayLike

from grbb_ext.propagation._base import Propagation
from grbb_ext.propagation._harmonic import HarmonicPropagation, NonlocalPropagation
from grbb_ext.propagation._poisson import PoissonPropagation
from grbb_ext.propagation._smooth import SmoothPropagation

PropagationKind = Literal["harmonic", "nonlocal", "smooth", "poisson"]

_KINDS: dict[str, type[Propagation]] = {
    operator.kind: operator
    for operator in (HarmonicPropagation, NonlocalPropagation, SmoothPropagation, PoissonPropagation)
}


def make_propagation(kind: PropagationKind, graph: Any, labeled: ArrayLike, **settings: Any) -> Propagation:
    """Build a propagation operator by name.

    Parameters
    ----------
    kind : {"harmonic", "nonlocal", "smooth", "poisson"}
        The operator.
    graph : sparse matrix or array-like of shape (N, N)
        Symmetric non-negative affinity.
    labeled : array-like of int of shape (n,)
        The labelled rows.
    **settings
        `solver`, `tol`, `memory_limit`, `n_jobs`, `verbose`, and for ``"smooth"`` also `tau`, `power`, `noise`.

    Returns
    -------
    Propagation
        An object with ``extend(values)`` and ``dense()``.

    Examples
    --------
    >>> P = make_propagation("harmonic", [[0, 1, 0], [1, 0, 1], [0, 1, 0]], labeled=[0, 2])
    >>> P.extend([1.0, 0.0]).tolist()
    [1.0, 0.5, 0.0]
    """
    if kind not in _KINDS:
        raise ValueError(f"propagation must be one of {sorted(_KINDS)}, got {kind!r}.")
    return _KINDS[kind](graph, labeled, **settings)
