"""The graph expert: labels propagated on a graph, which trees may refine, and other rows that hang on it."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext._threads import in_threads, row_blocks
from grbb_ext.graph import KNNGraph, NeighborLists, NodeIndex, PreparedGraph, RefinedGraph, edge_weights
from grbb_ext.labels import Labels
from grbb_ext.propagation import (
    NodePropagation,
    Nodes,
    Propagation,
    Smooth,
    SmoothPropagation,
    among_all,
    reachable_shares,
)
from grbb_ext.table import CategoryOrder, DistanceSpace, Matrix, Table
from grbb_ext.teacher._targets import centered_labels, finish_targets, soft_targets
from grbb_ext.teacher._trees import TargetTrees, closer_where_shared, shared_leaves, shares

Index = NDArray[np.intp]


@dataclass(frozen=True)
class Ranking:
    """Trees that rank candidates again, see :class:`~grbb_ext.RefinedGraph`.

    Attributes
    ----------
    trees : TargetTrees
        Fitted to the propagated labels.
    order : CategoryOrder
        Turns categories into the numbers that the trees take.
    leaves : ndarray of int of shape (T, M)
        The leaves of the nodes.
    radius : ndarray of shape (M,)
        The radius of each node among its re-ranked neighbours.
    """

    trees: TargetTrees
    order: CategoryOrder
    leaves: NDArray[np.integer[Any]]
    radius: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GraphNodes(Nodes):
    r"""Weights of the nodes for any row, as if the row were joined to the graph.

    A row finds its candidates among the nodes by distance. It weighs k of them as the plain graph would, and, where
    the graph is refined, k as the re-ranked one would (:func:`grbb_ext.graph.edge_weights`); the mean of both, divided
    by its sum, is its row of Z. A row that equals a node has weight 1 on that node.

    Attributes
    ----------
    operator : Propagation
        On the nodes.
    spec : KNNGraph
        How neighbours are found and weighed.
    space : DistanceSpace
        The columns that distances are taken of.
    points : ndarray or csr_array of shape (M, d)
        The nodes in that space.
    radius : ndarray of shape (M,)
        The distance of each node to its k-th neighbour.
    ranking : Ranking or None
        The trees of a refined graph.
    n_jobs : int or None
        Threads of the search.
    """

    operator: Propagation
    spec: KNNGraph
    space: DistanceSpace
    points: Matrix
    radius: NDArray[np.float64]
    ranking: Ranking | None = None
    n_jobs: int | None = None

    @cached_property
    def _index(self) -> NodeIndex:
        more = self.spec.n_candidates if isinstance(self.spec, RefinedGraph) else 0
        k = min(max(self.spec.n_neighbors, more), self.points.shape[0])
        return NodeIndex(self.points, k, self.spec.metric, self.spec.method, self.n_jobs)

    def nearest(self, table: Table) -> tuple[Index, NDArray[np.float32]]:
        """Find the nodes of any rows, with the precision of :func:`hang`; see :meth:`Nodes.nearest`."""
        X = None if self.ranking is None else self.ranking.order(table)
        nodes, weight = self.weigh(self.space(table), X)
        return nodes, reachable_shares(nodes, weight.astype(np.float32), self.operator.reachable).astype(np.float32)

    def weigh(self, points: Matrix, X: Matrix | None) -> tuple[Index, NDArray[np.float64]]:
        """Return the candidates of some rows, of shape (R, C), and their weights, with sum 1 in each row.

        Parameters
        ----------
        points : ndarray or csr_array of shape (R, d)
            Columns for the distances.
        X : ndarray or csr_array of shape (R, c) or None
            Columns for the trees; None without trees.
        """
        nodes, distance = self._index.search(points)
        squared = distance**2
        graphs = [(squared, self.radius)]
        if self.ranking is not None:
            share = shares(self.ranking.trees.leaves(X), self.ranking.leaves, nodes)
            graphs.append((closer_where_shared(squared, share), self.ranking.radius))
        weight = np.zeros(nodes.shape)
        for lengths, radius in graphs:
            chosen = np.argsort(lengths, axis=1, kind="stable")[:, : self.spec.n_neighbors]
            length = np.take_along_axis(lengths, chosen, axis=1)
            own = np.broadcast_to(np.sqrt(length[:, -1:]), length.shape)
            theirs = radius[np.take_along_axis(nodes, chosen, axis=1)]
            bandwidth = self.spec.bandwidth or float(np.median(radius))
            part = edge_weights(self.spec.weights, length, own, theirs, bandwidth)
            np.put_along_axis(weight, chosen, np.take_along_axis(weight, chosen, axis=1) + part, axis=1)
        weight /= weight.sum(axis=1, keepdims=True)
        same = self._equals_first(points, nodes[:, 0], distance[:, 0])
        weight[same] = 0.0
        weight[same, 0] = 1.0
        return nodes, weight

    def _equals_first(self, points: Matrix, first: Index, distance: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Tell which rows equal their nearest node: distances of a search may miss 0 by rounding."""
        if sp.issparse(points):
            return np.asarray(distance == 0)
        return np.asarray((points == self.points[first]).all(axis=1))

    def __getstate__(self) -> dict[str, Any]:
        # An index is made again when needed.
        return {name: value for name, value in vars(self).items() if name != "_index"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)


def plain_nodes(prepared: PreparedGraph, operator: Propagation) -> GraphNodes | None:
    """Return the nodes of a graph without trees, each row a node; None where the graph was given as a matrix."""
    if prepared.spec is None or prepared.lists is None or prepared.space is None:
        return None
    radius = prepared.lists.radius(prepared.spec.n_neighbors)
    return GraphNodes(operator, prepared.spec, prepared.space, prepared.points, radius, None, prepared.n_jobs)


@dataclass(frozen=True)
class GraphExpert:
    """Labels propagated on a graph.

    Attributes
    ----------
    extended : ndarray of shape (M,) or (M, K)
        The centred labels, extended to the nodes.
    mean : ndarray
        What they were centred by.
    labels : Labels
        Loss and classes.
    held_out : ndarray of shape (n,) or (n, K), or None
        Predictions of the labelled rows, each label left out in turn; None where the operator has no closed form.
    nodes : GraphNodes or None
        For rows that are no nodes; None where the graph was given as a matrix.
    """

    extended: NDArray[np.float64]
    mean: Any
    labels: Labels
    held_out: NDArray[np.float64] | None
    nodes: GraphNodes | None

    name = "graph"

    def predict(self, table: Table) -> NDArray[np.float64]:
        """Predict the targets of any rows: probabilities, not sharpened, or values for regression."""
        if self.nodes is None:
            raise ValueError(
                "The teacher's graph was given as a matrix, so new rows have no neighbours in it. Use graph='refined' "
                "or graph='knn', which find the neighbours of any row."
            )
        return finish_targets(np.asarray(self.nodes.Z(table) @ self.extended), self.mean, self.labels.loss)


@dataclass(frozen=True)
class Refinement:
    """What came of a refinement, as evidence.

    Attributes
    ----------
    graph : csr_array of shape (N, N)
        The refined affinity: the mean of the plain one and the re-ranked one.
    plain : csr_array of shape (N, N)
        The affinity before.
    propagation : SmoothPropagation
        The smooth operator on the refined affinity: a :class:`~grbb_ext.propagation.NodePropagation` where not every
        row is a node.
    hung : GraphNodes
        The same operator for any other rows.
    rows : ndarray of int of shape (R,)
        The rows that trees were fitted to: all, or a sample that holds the labelled ones.
    nodes : ndarray of int of shape (M,)
        The rows that the graph joins: all, or a sample that holds the labelled ones.
    recall : float
        Share of the true nearest neighbours of the nodes that the search found, estimated on a sample of them; 1 where
        it was exact.
    plain_targets : ndarray of shape (R,) or (R, K)
        Labels propagated on the plain affinity of these rows, not sharpened.
    extended : ndarray of shape (N,) or (N, K)
        Centred labels, extended on the refined affinity.
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
    propagation: SmoothPropagation
    hung: GraphNodes
    rows: NDArray[np.intp]
    nodes: NDArray[np.intp]
    recall: float
    plain_targets: NDArray[np.float64]
    extended: NDArray[np.float64]
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
    prepared: PreparedGraph,
    labels: Labels,
    smooth: Smooth,
    *,
    random_state: int = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Refinement:
    r"""Refine the plain graph by the labels.

    .. math:: q \to \text{trees fitted to } q \to S \to
       W_R = k\text{NN of } d_{ij}^2 (1.1 - S_{ij}) \to W = \tfrac12 (W_A + W_R) \to q

    starting from q propagated on the plain graph :math:`W_A`.

    Parameters
    ----------
    prepared : PreparedGraph
        Table, candidates and the plain graph.
    labels : Labels
        The labels.
    smooth : Smooth
        The operator.
    random_state : int, default=0
        Seed of the trees.
    n_jobs : int or None, default=None
        Threads; None takes all cores.
    verbose : bool, default=False
        Draw progress bars on what takes more than two seconds.

    Returns
    -------
    Refinement
        The graph and how it came about.
    """
    start = time.perf_counter()
    assert isinstance(prepared.spec, RefinedGraph)
    random = np.random.default_rng(random_state)
    spec = prepared.spec.for_rows(labels.n_rows)
    passes = _Passes(spec, smooth, random, n_jobs, verbose)
    nodes = np.arange(labels.n_rows)
    if prepared.lists is not None:
        found = passes.run(prepared, labels)
        operator = found.operator
    else:
        assert spec.max_nodes is not None
        nodes = _sample(labels, spec.max_nodes, random)
        found = passes.run(prepared.thinned(nodes), labels.among(nodes))
        Z = hang(found.hung, prepared, nodes, n_jobs, verbose)
        operator = NodePropagation(found.operator, Z, nodes)
    rows = nodes[found.rows]
    values, mean = centered_labels(labels.targets, labels.loss)
    extended = operator.extend(values)
    targets = finish_targets(extended, mean, labels.loss)
    targets[labels.labeled] = labels.targets
    unlabeled = ~np.isin(rows, labels.labeled)
    return Refinement(
        graph=operator.W,
        plain=found.plain if nodes.size == labels.n_rows else among_all(found.plain, nodes, labels.n_rows),
        propagation=operator,
        hung=found.hung,
        rows=rows,
        nodes=nodes,
        recall=found.recall,
        plain_targets=found.plain_targets,
        extended=extended,
        targets=targets,
        agreement=_agreement(
            found.plain_targets[unlabeled], targets[rows][unlabeled], classes=labels.classes is not None
        ),
        edges_kept=found.edges_kept,
        seconds=time.perf_counter() - start,
        settings=spec,
    )


class _Refined(NamedTuple):
    """What the passes leave behind, on the rows that are nodes."""

    operator: SmoothPropagation
    hung: GraphNodes
    plain: sp.csr_array
    rows: Index
    plain_targets: NDArray[np.float64]
    edges_kept: float
    recall: float


class _Passes(NamedTuple):
    """The passes of a refinement, on rows that are all nodes."""

    spec: RefinedGraph
    smooth: Smooth
    random: np.random.Generator
    n_jobs: int | None
    verbose: bool

    def run(self, prepared: PreparedGraph, labels: Labels) -> _Refined:
        spec = self.spec
        assert spec.n_passes is not None
        assert prepared.table is not None
        rows = _sample(labels, spec.max_samples, self.random)
        # Trees need no more than a sample of the rows, and on its small graph a pass costs little.
        part = prepared if rows.size == labels.n_rows else prepared.thinned(rows)
        part_labels = labels.among(rows)

        operator = self._propagate(part.W, part_labels)
        plain_targets = targets = soft_targets(operator, labels.targets, labels.loss)
        for passed in range(1, spec.n_passes + 1):
            known = np.flatnonzero(operator.reachable)
            fitted_rows, fitted_targets = rows[known], targets[known]
            order = CategoryOrder.fit(prepared.table, fitted_targets, fitted_rows)
            X = order(prepared.table)
            trees = TargetTrees(X[fitted_rows], fitted_targets, spec, self.random, self.n_jobs)
            last = passed == spec.n_passes
            if last:
                part, part_labels = prepared, labels
            assert part.lists is not None
            leaves = trees.leaves(X if part is prepared else X[rows])
            ranked = ranked_again(part.lists, leaves, self.n_jobs, self.verbose)
            learned = spec.affinity(ranked)
            operator = self._propagate(sp.csr_array(0.5 * (part.W + learned)), part_labels)
            if not last:
                targets = soft_targets(operator, labels.targets, labels.loss)
        assert part.W is not None
        assert part.lists is not None
        assert part.space is not None
        kept = (part.W.sign() * learned.sign()).nnz / max(1, part.W.nnz)
        hung = GraphNodes(
            operator,
            spec,
            part.space,
            part.points,
            part.lists.radius(spec.n_neighbors),
            Ranking(trees, order, leaves, ranked.radius(spec.n_neighbors)),
            self.n_jobs,
        )
        return _Refined(operator, hung, part.W, rows, plain_targets, kept, ranked.recall)

    def _propagate(self, W: sp.csr_array, labels: Labels) -> SmoothPropagation:
        made = self.smooth.operator(W, labels.labeled, n_jobs=self.n_jobs, verbose=self.verbose)
        assert isinstance(made, SmoothPropagation)
        return made


def hang(
    hung: GraphNodes, prepared: PreparedGraph, nodes: Index, n_jobs: int | None = None, verbose: bool = False
) -> sp.csr_array:
    """Return Z of all rows, of shape (N, M) in float32, block by block: a node has weight 1 on itself."""
    assert prepared.table is not None
    assert prepared.points is not None
    n_rows, table, points = prepared.n_rows, prepared.table, prepared.points
    number = np.full(n_rows, -1, dtype=np.int32)
    number[nodes] = np.arange(nodes.size)

    def block_of(block: slice) -> tuple[Index, NDArray[np.int32], NDArray[np.float32]]:
        X = None if hung.ranking is None else hung.ranking.order(table.take(block))
        found, weight = hung.weigh(points[block], X)
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
    return replace(lists, squared=squared).sorted_by(squared)


def _agreement(a: NDArray[np.float64], b: NDArray[np.float64], *, classes: bool) -> float:
    if not a.size:
        return 1.0
    if not classes:
        return float(np.corrcoef(a, b)[0, 1]) if a.std() > 0 and b.std() > 0 else 1.0
    if a.ndim == 1:
        return float(np.mean((a > 0.5) == (b > 0.5)))
    return float(np.mean(a.argmax(axis=1) == b.argmax(axis=1)))
