"""The graph expert: labels propagated on a graph, which trees may refine, and other rows that hang on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext._progress import in_threads, row_blocks
from grbb_ext.graph import (
    KNNGraph,
    NeighborLists,
    NodeIndex,
    PreparedGraph,
    RefinedGraph,
    TableGraph,
    choose_method,
    edge_weights,
)
from grbb_ext.labels import Labels
from grbb_ext.losses import per_class
from grbb_ext.propagation import (
    NodePropagation,
    Nodes,
    Propagation,
    PropagationSpec,
    Smooth,
    SmoothPropagation,
    among_all,
    node_matrix,
    reachable_shares,
    without_cached,
)
from grbb_ext.table import CategoryOrder, DistanceSpace, Matrix, Table
from grbb_ext.teacher._targets import centered_labels, finish_targets, soft_targets
from grbb_ext.teacher._trees import TargetTrees, closer_where_shared, shared_leaves, shares

Index = NDArray[np.intp]
Made = TypeVar("Made")


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
    by its sum, is its row of Z. A row that equals unlabelled nodes is the mean of these; one that equals labelled nodes
    alone is weighed as any other, for a label is no prediction.

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
        k = min(self.spec.n_found, self.points.shape[0])
        return NodeIndex(self.points, k, self.spec.metric, self.spec.method, self.n_jobs)

    def nearest(self, table: Table) -> tuple[Index, NDArray[np.float32]]:
        """Find the nodes of any rows, with the precision of :func:`hang`; see :meth:`Nodes.nearest`."""
        nodes, weight = self.weigh(self.space(table), table)
        return nodes, reachable_shares(nodes, weight.astype(np.float32), self.operator.reachable).astype(np.float32)

    def weigh(self, points: Matrix, table: Table) -> tuple[Index, NDArray[np.float64]]:
        """Return the candidates of some rows, of shape (R, C), and their weights, with sum 1 in each row.

        Parameters
        ----------
        points : ndarray or csr_array of shape (R, d)
            Columns for the distances.
        table : Table
            The same rows, for the trees.
        """
        nodes, distance = self._index.search(points)
        squared = distance**2
        graphs = [(squared, self.radius)]
        if self.ranking is not None:
            share = shares(self.ranking.trees.leaves(self.ranking.order(table)), self.ranking.leaves, nodes)
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
        # Distances of a search may miss 0 by rounding.
        same = np.asarray((points != self.points[nodes[:, 0]]).sum(axis=1)).ravel() == 0
        equal = (distance == distance[:, :1]) & same[:, None] & ~np.isin(nodes, self.operator.labeled)
        found = equal.any(axis=1)
        weight[found] = equal[found] / equal[found].sum(axis=1, keepdims=True)
        return nodes, weight

    def all_rows(self, prepared: PreparedGraph, nodes: Index) -> sp.csr_array:
        """Return Z of all rows, of shape (N, M) in float32, block by block: a node has weight 1 on itself."""
        table, points, n_nodes = prepared.table, prepared.points, nodes.size
        assert table is not None
        assert points is not None
        number = np.full(prepared.n_rows, -1, dtype=np.int32)
        number[nodes] = np.arange(n_nodes)

        def block_of(block: slice) -> sp.csr_array:
            found, weight = self.weigh(points[block], table.take(block))
            is_node = number[block] >= 0
            found[is_node, 0] = number[block][is_node]
            weight[is_node] = np.eye(1, weight.shape[1])
            Z = node_matrix(found, weight.astype(np.float32), n_nodes)
            Z.eliminate_zeros()
            return Z

        blocks = row_blocks(prepared.n_rows)
        settings: dict[str, Any] = {"n_jobs": prepared.n_jobs, "verbose": prepared.verbose}
        return sp.csr_array(sp.vstack(in_threads(block_of, blocks, description="neighbours of other rows", **settings)))

    __getstate__ = without_cached  # an index is made again when needed


def nodes_of(prepared: PreparedGraph, operator: Propagation, ranking: Ranking | None = None) -> GraphNodes | None:
    """Return the nodes of a graph, each row a node; None where the graph was given as a matrix."""
    if prepared.spec is None or prepared.lists is None or prepared.space is None:
        return None
    radius = prepared.lists.radius(prepared.spec.n_neighbors)
    return GraphNodes(operator, prepared.spec, prepared.space, prepared.points, radius, ranking, prepared.n_jobs)


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
    held_out : ndarray of shape (n,) or (n, K)
        Predictions of the labelled rows, each label left out in turn; NaN where the operator has no closed form.
    nodes : GraphNodes or None
        For rows that are no nodes; None where the graph was given as a matrix.
    """

    extended: NDArray[np.float64]
    mean: Any
    labels: Labels
    held_out: NDArray[np.float64]
    nodes: GraphNodes | None

    name = "graph"

    @property
    def unknown(self) -> NDArray[np.float64]:
        """The target of a row that no label reaches: the mean of the labels, shrunk."""
        return np.asarray(finish_targets(np.zeros((1, *np.shape(self.mean))), self.mean, self.labels.loss)[0])

    def predict(self, table: Table) -> NDArray[np.float64]:
        """Predict the targets of any rows: probabilities, or values for regression; NaN where no label reaches."""
        if self.nodes is None:
            raise ValueError(
                "The teacher's graph was given as a matrix, so new rows have no neighbours in it. Use graph='table' "
                "or graph='knn', which find the neighbours of any row."
            )
        Z = self.nodes.Z(table)
        predicted = finish_targets(np.asarray(Z @ self.extended), self.mean, self.labels.loss)
        predicted[np.asarray(Z.sum(axis=1)).ravel() == 0] = np.nan
        return predicted


@dataclass(frozen=True, eq=False)
class Spread:
    """Labels spread on a graph.

    Attributes
    ----------
    operator : Propagation
        The operator for all rows.
    hung : GraphNodes or None
        The same for any other rows; None where the graph was given as a matrix.
    nodes : ndarray of int or None
        The rows that the graph joins, where these are not all.
    refinement : Refinement or None
        How the graph was refined; None for other graphs.
    """

    operator: Propagation
    hung: GraphNodes | None
    nodes: Index | None = None
    refinement: Refinement | None = None

    def expert(self, labels: Labels) -> tuple[GraphExpert, NDArray[np.float64]]:
        """Return what teaches, and its predictions of all rows."""
        values, mean = centered_labels(labels.targets, labels.loss)
        if self.refinement is not None and self.refinement.propagation is self.operator:
            extended, held_out = self.refinement.extended, self.refinement.held_out
        else:
            extended, held_out = self.operator.extend(values), left_out(self.operator, labels)
        on_nodes = extended if self.nodes is None else extended[self.nodes]
        return GraphExpert(on_nodes, mean, labels, held_out, self.hung), finish_targets(extended, mean, labels.loss)


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
    search : {"brute", "tree", "faiss"}
        The search that was used: beyond 8,000 rows neighbours are approximate where faiss is installed, and exact
        where it is not.
    recall : float
        Share of the true nearest neighbours of the nodes that the search found, estimated on a sample of them; 1 where
        it was exact.
    plain_targets : ndarray of shape (R,) or (R, K)
        Labels propagated on the plain affinity of these rows, not sharpened.
    extended : ndarray of shape (N,) or (N, K)
        Centred labels, extended on the refined affinity.
    targets : ndarray of shape (N,) or (N, K)
        Labels propagated on the refined affinity, not sharpened.
    held_out : ndarray of shape (n,) or (n, K)
        Predictions of the labelled rows on the plain affinity, each label left out in turn. The refined one has been
        shaped by all labels, and would flatter itself.
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
    search: str
    recall: float
    plain_targets: NDArray[np.float64]
    extended: NDArray[np.float64]
    targets: NDArray[np.float64]
    held_out: NDArray[np.float64]
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


def once(prepared: PreparedGraph, labels: Labels, settings: Hashable, make: Callable[[], Made]) -> Made:
    """Return what `make` returns; where the graph is shared, it is kept for the next fit to the same rows.

    Parameters
    ----------
    prepared, labels, settings
        All that the result depends on: rows, labels, and the rest.
    make : callable
        Makes it. What it returns is not to be changed.
    """
    return make() if prepared.kept is None else prepared.kept.get((labels.key, settings), make)


def spread(prepared: PreparedGraph, labels: Labels, propagation: PropagationSpec, *, random_state: int = 0) -> Spread:
    """Make the operator on a graph, refined where it was asked for; once for equal labels where the graph is shared.

    Parameters
    ----------
    prepared : PreparedGraph
        The graph.
    labels : Labels
        The labels.
    propagation : PropagationSpec
        The operator.
    random_state : int, default=0
        Seed of the sample of nodes, and of the trees of a refined graph.
    """
    make = partial(_spread, prepared, labels, propagation, random_state)
    return once(prepared, labels, (propagation, random_state), make)


def _spread(prepared: PreparedGraph, labels: Labels, propagation: PropagationSpec, random_state: int) -> Spread:
    settings: dict[str, Any] = {"n_jobs": prepared.n_jobs, "verbose": prepared.verbose}
    if isinstance(prepared.spec, RefinedGraph):
        smooth = propagation if isinstance(propagation, Smooth) else Smooth()
        refinement = refine(prepared, labels, smooth, random_state=random_state)
        if smooth is propagation:
            return Spread(refinement.propagation, refinement.hung, refinement.nodes, refinement)
        return Spread(propagation.operator(refinement.graph, labels.labeled, **settings), None, None, refinement)
    on_nodes, labels_on_nodes, nodes = _on_nodes(prepared, labels, np.random.default_rng(random_state))
    operator = propagation.operator(on_nodes.W, labels_on_nodes.labeled, **settings)
    hung = nodes_of(on_nodes, operator)
    if on_nodes is prepared:
        return Spread(operator, hung)
    assert isinstance(operator, SmoothPropagation)
    assert hung is not None
    return Spread(NodePropagation(operator, hung.all_rows(prepared, nodes), nodes), hung, nodes)


def refine(prepared: PreparedGraph, labels: Labels, smooth: Smooth, *, random_state: int = 0) -> Refinement:
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

    Returns
    -------
    Refinement
        The graph and how it came about.
    """
    start = time.perf_counter()
    assert isinstance(prepared.spec, RefinedGraph)
    random = np.random.default_rng(random_state)
    spec = prepared.spec.for_rows(labels.n_rows)
    on_nodes, labels_on_nodes, nodes = _on_nodes(prepared, labels, random)
    rows = _sample(labels_on_nodes, spec.max_samples, random)
    hung, learned, plain_targets, held_out = _passes(on_nodes, labels_on_nodes, rows, spec, smooth, random)
    operator, plain = hung.operator, on_nodes.W
    assert isinstance(operator, SmoothPropagation)
    assert plain is not None
    assert on_nodes.lists is not None
    edges_kept = (plain.sign() * learned.sign()).nnz / max(1, plain.nnz)
    if prepared.lists is None:
        operator = NodePropagation(operator, hung.all_rows(prepared, nodes), nodes)
        plain = among_all(plain, nodes, labels.n_rows)
    rows = nodes[rows]
    values, mean = centered_labels(labels.targets, labels.loss)
    extended = operator.extend(values)
    targets = finish_targets(extended, mean, labels.loss)
    targets[labels.labeled] = labels.targets
    unlabeled = ~np.isin(rows, labels.labeled)
    before, after = plain_targets[unlabeled], targets[rows][unlabeled]
    return Refinement(
        graph=operator.W,
        plain=plain,
        propagation=operator,
        hung=hung,
        rows=rows,
        nodes=nodes,
        search=choose_method(on_nodes.points, spec.metric, spec.method),
        recall=on_nodes.lists.recall,
        plain_targets=plain_targets,
        extended=extended,
        targets=targets,
        held_out=held_out,
        agreement=_agreement(before, after, classes=labels.classes is not None),
        edges_kept=edges_kept,
        seconds=time.perf_counter() - start,
        settings=spec,
    )


def _passes(
    prepared: PreparedGraph,
    labels: Labels,
    rows: Index,
    spec: RefinedGraph,
    smooth: Smooth,
    random: np.random.Generator,
) -> tuple[GraphNodes, sp.csr_array, NDArray[np.float64], NDArray[np.float64]]:
    """Return nodes of the refined graph, the re-ranked affinity, and targets of `rows` and held out without trees."""
    settings: dict[str, Any] = {"n_jobs": prepared.n_jobs, "verbose": prepared.verbose}
    assert spec.n_passes is not None
    assert prepared.table is not None
    # Trees need no more than a sample of the rows, and on its small graph a pass costs little.
    part = prepared if rows.size == labels.n_rows else prepared.thinned(rows)
    operator = smooth.operator(part.W, labels.among(rows).labeled, **settings)
    plain_targets = targets = soft_targets(operator, labels.targets, labels.loss)
    held_out = left_out(operator, labels)
    for passed in range(1, spec.n_passes + 1):
        known = np.flatnonzero(operator.reachable)
        order = CategoryOrder.fit(prepared.table, targets[known], rows[known])
        X = order(prepared.table)
        trees = TargetTrees(X[rows[known]], targets[known], spec, random, prepared.n_jobs)
        if passed == spec.n_passes:
            part, rows = prepared, np.arange(labels.n_rows)
        leaves = trees.leaves(X if part is prepared else X[rows])
        assert part.lists is not None
        ranked = ranked_again(part.lists, leaves, **settings)
        learned = spec.affinity(ranked)
        operator = smooth.operator(sp.csr_array(0.5 * (part.W + learned)), labels.among(rows).labeled, **settings)
        if passed < spec.n_passes:
            targets = soft_targets(operator, labels.targets, labels.loss)
    hung = nodes_of(prepared, operator, Ranking(trees, order, leaves, ranked.radius(spec.n_neighbors)))
    assert hung is not None
    return hung, learned, plain_targets, held_out


def left_out(operator: Propagation, labels: Labels) -> NDArray[np.float64]:
    """Return predictions of the labelled rows, each label left out in turn; NaN without a closed form."""
    if not isinstance(operator, SmoothPropagation) or labels.labeled.size < 2:
        return np.full(labels.targets.shape, np.nan)
    values, mean = centered_labels(labels.targets, labels.loss)
    return finish_targets(operator.leave_one_out(values), mean, labels.loss)


def _on_nodes(
    prepared: PreparedGraph, labels: Labels, random: np.random.Generator
) -> tuple[PreparedGraph, Labels, Index]:
    """Return the graph of the nodes, their labels, and which rows they are: all, or a sample where there are many."""
    if prepared.W is not None:
        return prepared, labels, np.arange(labels.n_rows)
    assert isinstance(prepared.spec, TableGraph)
    assert prepared.spec.max_nodes is not None
    nodes = _sample(labels, prepared.spec.max_nodes, random)
    return prepared.thinned(nodes), labels.among(nodes), nodes


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
    return float(np.mean(per_class(a).argmax(axis=1) == per_class(b).argmax(axis=1)))
