"""The prior that belongs to an objective's operator."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from grbb_ext.objective import GRBBObjective
from grbb_ext.propagation import SmoothPropagation
from grbb_ext.variance._kernel_prior import KernelPrior
from grbb_ext.variance._laplacian_prior import LaplacianPrior

# What a prior computes depends on the graph and the labelled rows only, so it lives as long as the objective.
_known: WeakKeyDictionary[GRBBObjective, KernelPrior | LaplacianPrior] = WeakKeyDictionary()


def prior_of(obj: GRBBObjective) -> KernelPrior | LaplacianPrior:
    """Return the prior of the objective's operator; what it computes is kept for the next call.

    Parameters
    ----------
    obj : GRBBObjective
        An objective with a propagation operator, i.e. of any rule but ``"labeled"``.

    Returns
    -------
    KernelPrior or LaplacianPrior
        The kernel of ``"smooth"``, the Laplacian of the others.

    Examples
    --------
    >>> from grbb_ext import grbb_objective
    >>> obj = grbb_objective(None, [0, -1, 1], graph=[[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> type(prior_of(obj)).__name__
    'KernelPrior'
    """
    operator = obj.propagation_
    if operator is None:
        raise ValueError(
            "The variance is measured along the graph, and rule='labeled' has no operator. Make the objective with "
            "another rule on the same rows; it need not be the one that trained the scores."
        )
    if obj not in _known:
        if isinstance(operator, SmoothPropagation):
            _known[obj] = KernelPrior(operator)
        else:
            _known[obj] = LaplacianPrior(operator, obj.P_bar_ if operator.kind in ("harmonic", "nonlocal") else None)
    return _known[obj]
