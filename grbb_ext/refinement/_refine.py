"""The refinement itself: propagate, fit trees, rank the candidates again."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext.graph._lists import NeighborLists
from grbb_ext.labels import Labels
from grbb_ext.propagation import Propagation
from grbb_ext.refinement._basis import RefinementBasis
from grbb_ext.refinement._settings import RefinedGraph
from grbb_ext.refinement._trees import leaf_codes, shared_leaves
from grbb_ext.rules import soft_targets

# Added to 1 - S, so that rows that share every leaf are still ranked by distance.
_OFFSET = 0.1


@dataclass(frozen=True)
class Refinement:
    """What came of a refinement, as evidence.

    Attributes
    ----------
    graph : csr_array of shape (N, N)
        The refined affinity: the mean of the plain one and the re-ranked one.
    plain : csr_array of shape (N, N)
        The affinity before.
    propagation : Propagation
        The smooth operator on the refined affinity.
    plain_targets, targets : ndarray of shape (N,) or (N, K)
        Labels propagated on the plain and on the refined affinity, not sharpened.
    agreement : float
        Share of the unlabelled rows to which both give the same class; for regression the correlation of the two.
    edges_kept : float
        Share of the plain edges that the trees chose as well.
    seconds : float
        Time spent on trees, ranking and propagation, without the neighbour search.
    settings : RefinedGraph
        How it was done.
    """

    graph: sp.csr_array
    plain: sp.csr_array
    propagation: Propagation
    plain_targets: NDArray[np.float64]
    targets: NDArray[np.float64]
    agreement: float
    edges_kept: float
    seconds: float
    settings: RefinedGraph

    def __repr__(self) -> str:
        return (
            f"Refinement(agreement={self.agreement:.3f}, edges_kept={self.edges_kept:.3f}, "
            f"seconds={self.seconds:.2f}, settings={self.settings})"
        )


def refine(
    basis: RefinementBasis,
    labels: Labels,
    propagate: Callable[[sp.csr_array], Propagation],
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Refinement:
    r"""Refine the plain graph by the labels.

    .. math:: q \to \text{trees fitted to } q \to S \to
       W_R = k\text{NN of } d_{ij}^2 (1.1 - S_{ij}) \to W = \tfrac12 (W_A + W_R) \to q

    starting from q propagated on the plain graph :math:`W_A`.

    Parameters
    ----------
    basis : RefinementBasis
        Columns, candidates and the plain graph.
    labels : Labels
        The labels.
    propagate : callable
        Makes the operator on an affinity.
    n_jobs : int or None, default=None
        Threads; None takes all cores.
    verbose : bool, default=False
        Draw progress bars on what takes more than a few seconds.

    Returns
    -------
    Refinement
        The graph and how it came about.
    """
    start = time.perf_counter()
    random = np.random.default_rng(basis.random_state)
    operator = propagate(basis.plain)
    plain_targets = targets = soft_targets(operator, labels.targets, labels.loss)
    graph = learned = basis.plain
    for _ in range(basis.settings.n_passes):
        known = np.flatnonzero(operator.reachable)
        X = basis.columns.ordered(targets)
        codes = leaf_codes(X, targets, known, basis.settings, random, n_jobs)
        learned = ranked_again(basis.lists, codes, n_jobs, verbose).graph(basis.n_neighbors, basis.weights)
        graph = sp.csr_array(0.5 * (basis.plain + learned))
        operator = propagate(graph)
        targets = soft_targets(operator, labels.targets, labels.loss)
    unlabeled = np.ones(labels.n_rows, dtype=bool)
    unlabeled[labels.labeled] = False
    return Refinement(
        graph=operator.W,
        plain=basis.plain,
        propagation=operator,
        plain_targets=plain_targets,
        targets=targets,
        agreement=_agreement(plain_targets[unlabeled], targets[unlabeled], classes=labels.classes is not None),
        edges_kept=(basis.plain.sign() * learned.sign()).nnz / max(1, basis.plain.nnz),
        seconds=time.perf_counter() - start,
        settings=basis.settings,
    )


def ranked_again(
    lists: NeighborLists, codes: NDArray[np.int32], n_jobs: int | None = None, verbose: bool = False
) -> NeighborLists:
    """Order the candidates of each row by their squared distance times 1.1 - S.

    Examples
    --------
    >>> lists = NeighborLists(np.array([[1, 2], [0, 2], [0, 1]]), np.array([[4.0, 5], [4, 9], [5, 9]]), np.arange(3))
    >>> again = ranked_again(lists, np.array([[1, 2, 1]]))
    >>> again.neighbors.tolist(), again.squared.round(2).tolist()
    ([[2, 1], [0, 2], [0, 1]], [[0.5, 4.4], [4.4, 9.9], [0.5, 9.9]])
    """
    first = np.unique(lists.inverse, return_index=True)[1]
    shared = shared_leaves(codes[:, first], lists.neighbors, n_jobs, verbose)
    squared = lists.squared * (1.0 + _OFFSET - shared)
    order = np.argsort(squared, axis=1, kind="stable")
    return NeighborLists(
        np.take_along_axis(lists.neighbors, order, axis=1), np.take_along_axis(squared, order, axis=1), lists.inverse
    )


def _agreement(a: NDArray[np.float64], b: NDArray[np.float64], *, classes: bool) -> float:
    if not a.size:
        return 1.0
    if not classes:
        return float(np.corrcoef(a, b)[0, 1]) if a.std() > 0 and b.std() > 0 else 1.0
    if a.ndim == 1:
        return float(np.mean((a > 0.5) == (b > 0.5)))
    return float(np.mean(a.argmax(axis=1) == b.argmax(axis=1)))
