"""What a refined graph needs of X: found once, before any label is looked at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext.graph._columns import Matrix, Scale, prepare_columns
from grbb_ext.graph._lists import NeighborLists, check_neighbors, search_lists
from grbb_ext.graph._neighbors import Method
from grbb_ext.graph._normal_scores import NormalScores
from grbb_ext.graph._table_columns import fill_missing
from grbb_ext.graph._weights import Weights, check_weights
from grbb_ext.refinement._columns import TreeColumns, read_columns
from grbb_ext.refinement._components import principal_columns
from grbb_ext.refinement._settings import RefinedGraph
from grbb_ext.refinement._trees import n_threads


@dataclass(frozen=True)
class Search:
    """How neighbours are found and weighed: the arguments of :func:`knn_graph`."""

    n_neighbors: int
    weights: Weights
    metric: str
    method: Method
    n_jobs: int | None
    verbose: bool

    def __call__(self, points: Matrix, settings: RefinedGraph) -> tuple[NeighborLists, sp.csr_array]:
        """Find the candidates; the first k of them make the plain graph."""
        n_candidates = max(self.n_neighbors, settings.n_candidates)
        lists = search_lists(points, n_candidates, self.metric, self.method, self.n_jobs, self.verbose)
        return lists, self.graph(lists)

    def graph(self, lists: NeighborLists) -> sp.csr_array:
        """Join each row to the first k of its list."""
        return lists.graph(self.n_neighbors, self.weights)


@dataclass(frozen=True)
class RefinementBasis:
    """What does not depend on labels, so that a fold can be refined from its own labels alone.

    Attributes
    ----------
    settings : RefinedGraph
        How to refine.
    columns : TreeColumns
        Columns for the trees.
    points : ndarray or csr_array of shape (N, d) or (N, c)
        Columns for the distances: finite and scaled, with normal scores beside them, or principal components of these.
    lists : NeighborLists or None
        Candidates: the nearest rows of every row, by distance. None where not every row will be a node: labelled rows
        have to be, so that the search waits for the labels.
    plain : csr_array of shape (N, N) or None
        The graph before the refinement.
    search : Search
        How neighbours are found and weighed.
    random_state : int
        Seed of the trees.
    """

    settings: RefinedGraph
    columns: TreeColumns
    points: Matrix
    lists: NeighborLists | None
    plain: sp.csr_array | None
    search: Search
    random_state: int

    @property
    def components(self) -> NDArray[np.floating] | None:
        """Principal components, where they are fewer than the columns; else None."""
        few = not sp.issparse(self.points) and self.points.shape[1] < self.columns.numbers.shape[1]
        return self.points if few else None

    def subset(self, rows: NDArray[np.intp]) -> RefinementBasis:
        """Cut to some of the rows."""
        if self.lists is None or self.plain is None:
            if self.settings.every_row_a_node(rows.size):
                return self.thinned(rows)
            return replace(self, columns=self.columns.subset(rows), points=self.points[rows])
        return replace(
            self,
            columns=self.columns.subset(rows),
            points=self.points[rows],
            lists=self.lists.subset(rows),
            plain=sp.csr_array(self.plain[rows][:, rows]),
        )

    def thinned(self, rows: NDArray[np.intp]) -> RefinementBasis:
        """Keep some of the rows, with neighbours found among them alone: a graph as dense as the whole."""
        lists, plain = self.search(self.points[rows], self.settings)
        return replace(self, columns=self.columns.subset(rows), points=self.points[rows], lists=lists, plain=plain)


def make_basis(
    X: Any,
    settings: RefinedGraph,
    *,
    n_neighbors: int = 9,
    weights: Weights = "self-tuning",
    metric: str = "euclidean",
    method: Method = "auto",
    scale: Scale = "auto",
    random_state: int = 0,
    n_jobs: int | None = None,
    verbose: bool = True,
    warn_missing: bool = True,
) -> RefinementBasis:
    """Read the columns and search the candidates; the first k of them make the plain graph.

    The parameters are those of :func:`knn_graph` and :class:`RefinedGraph`; `warn_missing` says whether the user is
    told of missing values, which the distances see as medians.

    Examples
    --------
    >>> basis = make_basis(np.arange(40.0)[:, None], RefinedGraph(n_candidates=12), n_neighbors=2)
    >>> basis.lists.neighbors.shape, basis.plain.shape
    ((40, 12), (40, 40))
    """
    check_weights(weights)
    columns = read_columns(X)
    points = columns.distance_columns()
    points = prepare_columns(points if warn_missing else fill_missing(points), scale)
    check_neighbors(n_neighbors, points)
    if metric == "euclidean":
        more = {}
        if settings.normal_scores and scale is not None and not sp.issparse(points):
            more = {"widened": NormalScores(points)}
        points = principal_columns(points, settings.n_components, n_threads=n_threads(n_jobs), **more)
    search = Search(int(n_neighbors), weights, metric, method, n_jobs, verbose)
    basis = RefinementBasis(settings, columns, points, None, None, search, random_state)
    if not settings.every_row_a_node(points.shape[0]):
        return basis
    lists, plain = search(points, settings)
    return replace(basis, lists=lists, plain=plain)
