"""The extension of values from labelled rows to all rows: the operator P and its solvers."""

from grbb_ext.propagation._anchor import AnchorPropagation
from grbb_ext.propagation._base import Propagation
from grbb_ext.propagation._cg import SolverError
from grbb_ext.propagation._harmonic import HarmonicPropagation, NonlocalPropagation
from grbb_ext.propagation._hung import HungPropagation
from grbb_ext.propagation._make import PropagationKind, make_propagation
from grbb_ext.propagation._poisson import PoissonPropagation
from grbb_ext.propagation._smooth import SmoothPropagation

__all__ = [
    "AnchorPropagation",
    "HarmonicPropagation",
    "HungPropagation",
    "NonlocalPropagation",
    "PoissonPropagation",
    "Propagation",
    "PropagationKind",
    "SmoothPropagation",
    "SolverError",
    "make_propagation",
]
