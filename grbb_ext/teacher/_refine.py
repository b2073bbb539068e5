"""The refinement itself: propagate, fit trees, rank the candidates again; rows that are no nodes hang on nodes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext._threads import in_threads, row_blocks
from grbb_ext.graph import NeighborLists, NodeIndex, Weights, edge_weights
from grbb_ext.labels import Labels
from grbb_ext.propagation import HungPropagation, Propagation, SmoothPropagation, among_all
from grbb_ext.table import Matrix
from grbb_ext.teacher._refined_graph import RefinedGraph, RefinementBasis
from grbb_ext.teacher._targets import soft_targets
from grbb_ext.teacher._trees import TargetTrees, closer_where_shared, shared_leaves, shares

Index = NDArray[np.intp]


class Hangers:
    r"""Weights of the nodes for any row, as if the row were joined to the refined graph.

    A row finds its candidates among the nodes by distance, and weighs k of them as the plain graph would and k as the
    re-ranked one would (:func:`grbb_ext.graph._affinity.edge_weights`); the mean of both, divided by its sum, is its
    row of Z.

    Parameters
    ----------
    index : NodeIndex
        Finds candidates.
    plain, ranked : NeighborLists
        Lists of the nodes, by distance and re-ranked: they tell the radius of each node.
    trees : TargetTrees
        The trees of the refinement.
    node_leaves : ndarray of int of shape (T, M)
        The leaves of the nodes.
    n_neighbors : int
        k.
    weights : {"self-tuning", "binary", "heat"}
        The formula of the weights.
    """

    def __init__(
        self,
        index: NodeIndex,
        plain: NeighborLists,
        ranked: NeighborLists,
        trees: TargetTrees,
        node_leaves: NDArray[np.integer],
        n_neighbors: int,
        weights: Weights,
    ) -> None:
        self._index, self._trees, self._node_leaves = index, trees, node_leaves
        self._k, self._weights = n_neighbors, weights
        self._radii = [lists.radius(n_neighbors) for lists in (plain, ranked)]
        self._bandwidths = [float(np.median(radius)) if weights == "heat" else None for radius in self._radii]

    def weigh(self, points: Matrix, X: Matrix) -> tuple[Index, NDArray[np.float64]]:
        """Return the candidates of some rows, of shape (R, C), and their weights, with sum 1 in each row.

        Parameters
        ----------
        points : ndarray or csr_array of shape (R, d)
            Columns for the distances.
        X : ndarray or csr_array of shape (R, c)
            Columns for the trees.
        """
        nodes, distance = self._index.search(points)
        squared = distance**2
        leaves = self._trees.leaves(X)
        ranked = closer_where_shared(squared, shares(leaves, self._node_leaves, nodes))
        weight = np.zeros(nodes.shape)
        for lengths, radius, bandwidth in zip((squared, ranked), self._radii, self._bandwidths, strict=True):
            chosen = np.argsort(lengths, axis=1, kind="stable")[:, : self._k]
            length = np.take_along_axis(lengths, chosen, axis=1)
            own = np.broadcast_to(np.sqrt(length[:, -1:]), length.shape)
            theirs = radius[np.take_along_axis(nodes, chosen, axis=1)]
            part = edge_weights(self._weights, length, own, theirs, bandwidth)
            np.put_along_axis(weight, chosen, np.take_along_axis(weight, chosen, axis=1) + part, axis=1)
        return nodes, weight / weight.sum(axis=1, keepdims=True)


def hang(
    hangers: Hangers, points: Matrix, X: Matrix, nodes: Index, n_jobs: int | None = None, verbose: bool = False
) -> sp.csr_array:
    """Return Z of all rows, block by block: a node has weight 1 on itself.

    Parameters
    ----------
    hangers : Hangers
        The nodes.
    points, X : ndarray or csr_array
        Columns of all N rows, for the distances and for the trees.
    nodes : ndarray of int of shape (M,)
        The rows that are nodes.
    n_jobs : int or None, default=None
        Threads; None takes all cores.
    verbose : bool, default=False
        Draw a progress bar if it takes more than a few seconds.

    Returns
    -------
    csr_array of float32 of shape (N, M)
        The weights.
    """
    n_rows = points.shape[0]
    number = np.full(n_rows, -1, dtype=np.int32)
    number[nodes] = np.arange(nodes.size)

    def block_of(block: slice) -> tuple[Index, NDArray[np.int32], NDArray[np.float32]]:
        found, weight = hangers.weigh(points[block], X[block])
        own = number[block]
        is_node = own >= 0
        found[is_node, 0] = own[is_node]
        weight[is_node] = 0.0
        weight[is_node, 0] = 1.0
        kept = weight > 0
        return kept.sum(axis=1), found[kept].astype(np.int32), weight[kept].astype(np.float32)

    blocks = in_threads(block_of, row_blocks(n_rows), n_jobs=n_jobs, description="rows on nodes", verbose=verbose)
    counts, indices, data = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    start_of = np.concatenate([[0], np.cumsum(counts)])
    kind = np.int32 if start_of[-1] <= np.iinfo(np.int32).max else np.int64
    return sp.csr_array((data, indices.astype(kind, copy=False), start_of.astype(kind)), shape=(n_rows, nodes.size))


Propagate = Callable[[sp.csr_array, NDArray[np.intp]], Propagation]


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
        The smooth operator on the refined affinity: a :class:`~grbb_ext.propagation.HungPropagation` where not every
        row is a node.
    rows : ndarray of int of shape (R,)
        The rows that trees were fitted to: all, or a sample that holds the labelled ones.
    nodes : ndarray of int of shape (M,)
        The rows that the graph joins: all, or a sample that holds the labelled ones.
    recall : float
        Share of the true nearest neighbours of the nodes that the search found, estimated on a sample of them; 1 where
        it was exact.
    plain_targets : ndarray of shape (R,) or (R, K)
        Labels propagated on the plain affinity of these rows, not sharpened.
    targets : ndarray of shape (N,) or (N, K)
        Labels propagated on the refined affinity, not sharpened.
    agreement : float
        Share of the unlabelled rows, among these, to which both give the same class; for regression the correlation
        of the two.
    edges_kept : float
        Share of the plain edges that the trees chose as well.
    seconds : float
        Time spent on trees, ranking and propagation, without the neighbour search where every row is a node.
    settings : RefinedGraph
        How it was done.
    """

    graph: sp.csr_array
    plain: sp.csr_array
    propagation: Propagation
    rows: NDArray[np.intp]
    nodes: NDArray[np.intp]
    recall: float
    plain_targets: NDArray[np.float64]
    targets: NDArray[np.float64]
    agreement: float
    edges_kept: float
    seconds: float
    settings: RefinedGraph

    def __repr__(self) -> str:
        return (
            f"Refinement(agreement={self.agreement:.3f}, edges_kept={self.edges_kept:.3f}, "
            f"nodes={self.nodes.size} of {self.graph.shape[0]}, recall={self.recall:.3f}, "
            f"seconds={self.seconds:.2f}, settings={self.settings})"
        )


def refine(
    basis: RefinementBasis,
    labels: Labels,
    propagate: Propagate,
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
        Makes the operator from an affinity and the labelled rows.
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
    settings = basis.settings.for_rows(labels.n_rows)
    random = np.random.default_rng(basis.random_state)
    if basis.lists is not None:
        found = _refined(basis, labels, propagate, settings, random, n_jobs, verbose)
        operator, nodes = found.operator, np.arange(labels.n_rows)
    else:
        assert settings.max_nodes is not None
        nodes = _sample(labels, settings.max_nodes, random)
        part = basis.thinned(nodes)
        found = _refined(part, labels.among(nodes), propagate, settings, random, n_jobs, verbose)
        operator = _hung(basis, part, nodes, found, n_jobs, verbose)
    rows = nodes[found.rows]
    targets = soft_targets(operator, labels.targets, labels.loss)
    unlabeled = ~np.isin(rows, labels.labeled)
    return Refinement(
        graph=operator.W,
        plain=found.plain if nodes.size == labels.n_rows else among_all(found.plain, nodes, labels.n_rows),
        propagation=operator,
        rows=rows,
        nodes=nodes,
        recall=found.ranked.recall,
        plain_targets=found.plain_targets,
        targets=targets,
        agreement=_agreement(
            found.plain_targets[unlabeled], targets[rows][unlabeled], classes=labels.classes is not None
        ),
        edges_kept=found.edges_kept,
        seconds=time.perf_counter() - start,
        settings=settings,
    )


class _Refined(NamedTuple):
    """What the passes leave behind, on the rows that are nodes."""

    operator: Propagation
    plain: sp.csr_array
    rows: NDArray[np.intp]
    plain_targets: NDArray[np.float64]
    edges_kept: float
    ranked: NeighborLists
    trees: TargetTrees
    leaves: NDArray[np.integer[Any]]
    fitted_rows: NDArray[np.intp]
    fitted_targets: NDArray[np.float64]


def _refined(
    basis: RefinementBasis,
    labels: Labels,
    propagate: Propagate,
    settings: RefinedGraph,
    random: np.random.Generator,
    n_jobs: int | None,
    verbose: bool,
) -> _Refined:
    assert settings.n_passes is not None
    rows = _sample(labels, settings.max_samples, random)
    # Trees need no more than a sample of the rows, and on its small graph a pass costs little.
    part = basis if rows.size == labels.n_rows else basis.thinned(rows)
    part_labels = labels.among(rows)

    assert part.plain is not None
    operator = propagate(part.plain, part_labels.labeled)
    plain_targets = targets = soft_targets(operator, labels.targets, labels.loss)
    for passed in range(1, settings.n_passes + 1):
        known = np.flatnonzero(operator.reachable)
        fitted_rows, fitted_targets = rows[known], targets[known]
        X = basis.columns.ordered(fitted_targets, fitted_rows)
        trees = TargetTrees(X[fitted_rows], fitted_targets, settings, random, n_jobs)
        last = passed == settings.n_passes
        if last:
            part, part_labels = basis, labels
        assert part.lists is not None
        leaves = trees.leaves(X if part is basis else X[rows])
        ranked = ranked_again(part.lists, leaves, n_jobs, verbose)
        learned = basis.search.graph(ranked)
        operator = propagate(sp.csr_array(0.5 * (part.plain + learned)), part_labels.labeled)
        if not last:
            targets = soft_targets(operator, labels.targets, labels.loss)
    assert part.plain is not None
    kept = (part.plain.sign() * learned.sign()).nnz / max(1, part.plain.nnz)
    return _Refined(operator, part.plain, rows, plain_targets, kept, ranked, trees, leaves, fitted_rows, fitted_targets)


def _hung(
    basis: RefinementBasis,
    part: RefinementBasis,
    nodes: NDArray[np.intp],
    found: _Refined,
    n_jobs: int | None,
    verbose: bool,
) -> HungPropagation:
    """Hang all rows on the nodes."""
    assert part.lists is not None
    assert isinstance(found.operator, SmoothPropagation)
    search = basis.search
    n_candidates = min(max(search.n_neighbors, basis.settings.n_candidates), nodes.size)
    index = NodeIndex(part.points, n_candidates, search.metric, search.method, search.n_jobs)
    hangers = Hangers(index, part.lists, found.ranked, found.trees, found.leaves, search.n_neighbors, search.weights)
    X = basis.columns.ordered(found.fitted_targets, nodes[found.fitted_rows])
    return HungPropagation(found.operator, hang(hangers, basis.points, X, nodes, n_jobs, verbose), nodes)


def _sample(labels: Labels, size: int, random: np.random.Generator) -> NDArray[np.intp]:
    """Return all rows, or the labelled ones and as many others as `size` allows; ascending."""
    if labels.n_rows <= size:
        return np.arange(labels.n_rows)
    unlabeled = np.setdiff1d(np.arange(labels.n_rows), labels.labeled)
    n_others = min(unlabeled.size, max(size - labels.labeled.size, size // 2))
    return np.sort(np.concatenate([labels.labeled, random.choice(unlabeled, n_others, replace=False)]))


def ranked_again(
    lists: NeighborLists, codes: NDArray[np.integer[Any]], n_jobs: int | None = None, verbose: bool = False
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
    squared = closer_where_shared(lists.squared, shared)
    order = np.argsort(squared, axis=1, kind="stable")
    return NeighborLists(
        np.take_along_axis(lists.neighbors, order, axis=1),
        np.take_along_axis(squared, order, axis=1),
        lists.inverse,
        lists.recall,
    )


def _agreement(a: NDArray[np.float64], b: NDArray[np.float64], *, classes: bool) -> float:
    if not a.size:
        return 1.0
    if not classes:
        return float(np.corrcoef(a, b)[0, 1]) if a.std() > 0 and b.std() > 0 else 1.0
    if a.ndim == 1:
        return float(np.mean((a > 0.5) == (b > 0.5)))
    return float(np.mean(a.argmax(axis=1) == b.argmax(axis=1)))
