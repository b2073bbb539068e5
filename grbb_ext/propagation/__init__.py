"""The extension of values from labelled rows to all rows: the operator P, its specs and its solvers."""

from grbb_ext.propagation._base import Propagation, PropagationSpec, without_cached
from grbb_ext.propagation._laplacian import (
    Harmonic,
    HarmonicPropagation,
    Nonlocal,
    NonlocalPropagation,
    Poisson,
    PoissonPropagation,
)
from grbb_ext.propagation._nodes import AnchorNodes, NodePropagation, Nodes, among_all, node_matrix, reachable_shares
from grbb_ext.propagation._smooth import Smooth, SmoothPropagation
from grbb_ext.propagation._solvers import ConjugateGradientSolver, DirectSolver, SolverError

#: Short forms of ``propagation=``.
PROPAGATIONS: dict[str, PropagationSpec] = {
    "harmonic": Harmonic(),
    "nonlocal": Nonlocal(),
    "poisson": Poisson(),
    "smooth": Smooth(),
}

__all__ = [
    "PROPAGATIONS",
    "AnchorNodes",
    "ConjugateGradientSolver",
    "DirectSolver",
    "Harmonic",
    "HarmonicPropagation",
    "NodePropagation",
    "Nodes",
    "Nonlocal",
    "NonlocalPropagation",
    "Poisson",
    "PoissonPropagation",
    "Propagation",
    "PropagationSpec",
    "Smooth",
    "SmoothPropagation",
    "SolverError",
    "among_all",
    "node_matrix",
    "reachable_shares",
    "without_cached",
]
