"""The extension of values from labelled rows to all rows: the operator P and its solvers."""

from grbb_ext.propagation._base import Propagation
from grbb_ext.propagation._harmonic import HarmonicPropagation, NonlocalPropagation
from grbb_ext.propagation._make import PropagationKind, make_propagation
from grbb_ext.propagation._nodes import AnchorPropagation, HungPropagation, among_all, anchor_matrix
from grbb_ext.propagation._poisson import PoissonPropagation
from grbb_ext.propagation._smooth import SmoothPropagation
from grbb_ext.propagation._solvers import ConjugateGradientSolver, DirectSolver, SolverError

__all__ = [
    "AnchorPropagation",
    "ConjugateGradientSolver",
    "DirectSolver",
    "HarmonicPropagation",
    "HungPropagation",
    "NonlocalPropagation",
    "PoissonPropagation",
    "Propagation",
    "PropagationKind",
    "SmoothPropagation",
    "SolverError",
    "among_all",
    "anchor_matrix",
    "make_propagation",
]
