"""The refined graph: its settings, and what it needs of X before any label is looked at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext.graph import Method, NeighborLists, Weights, check_neighbors, check_weights, search_lists
from grbb_ext.table import (
    Matrix,
    NormalScores,
    Scale,
    TreeColumns,
    fill_missing,
    prepare_columns,
    principal_columns,
    read_columns,
)

_FEWEST_COLUMNS, _MOST_COLUMNS = 3, 64


@dataclass(frozen=True)
class RefinedGraph:
    r"""Ask for the refined graph: ``grbb_objective(X, y, graph=RefinedGraph(n_trees=200))``.

    ``graph="refined"`` is short for ``graph=RefinedGraph()``. The labels are propagated on the plain graph; extremely
    randomised regression trees are fitted to the result on all rows; and every row takes as neighbours the k of its
    candidates with the smallest

    .. math:: d_{ij}^2\,(1.1 - S_{ij}),

    with S the share of trees in which two rows share a leaf. The affinity is the mean of the plain one and this one.

    Parameters
    ----------
    n_passes : int or None, default=None
        How often trees are fitted, each time to the labels propagated on the graph so far. None is 2, and 1 where the
        trees are found on a sample.
    n_trees : int or None, default=None
        Trees of a pass. None is 100, and 50 where the trees are found on a sample.
    n_candidates : int, default=30
        Nearest rows, by distance, among which a row finds its neighbours.
    n_components : int or None, default=30
        Where X has more columns, normal scores included, distances are those of so many principal components, with
        noise taken out and the large ones damped: component j is multiplied by
        :math:`\lambda_j^{-1/4} \sqrt{1 - \lambda_{c+1} / \lambda_j}`. None keeps all columns, as do sparse rows and
        metrics other than the Euclidean one.
    normal_scores : bool, default=True
        Put normal scores, which are functions of the ranks alone, beside the columns before distances are taken, both
        with the same total variance. They are left out with ``scale=None``, for sparse rows, and for metrics other
        than the Euclidean one.
    min_samples_leaf : int, default=30
        Fewest rows of a leaf; fewer where there are less than 40 times as many rows.
    max_features : float, default=0.3
        Share of the columns that a split may choose from: at least 3, where there are so many, and at most 64. With
        a single one to choose from, trees would not look at the labels.
    max_samples : int, default=10000
        Where there are more rows, the trees are found on the labelled ones and a random sample of the others, and only
        the last of them rank the neighbours of all rows.
    max_nodes : int or None, default=30000
        Where there are more rows, the graph joins the labelled ones and a random sample of the others, and every
        other row takes the weighted mean of the nodes that would be its neighbours: the work before the first tree
        hardly grows beyond. None makes every row a node. It applies to ``rule="targets"`` with
        ``propagation="smooth"``; elsewhere every row is a node.

    Examples
    --------
    >>> RefinedGraph().for_rows(100_000).n_trees
    50
    >>> RefinedGraph().leaf_size(600), RefinedGraph().split_columns(5), RefinedGraph().split_columns(1000)
    (15, 3, 64)
    """

    n_passes: int | None = None
    n_trees: int | None = None
    n_candidates: int = 30
    n_components: int | None = 30
    normal_scores: bool = True
    min_samples_leaf: int = 30
    max_features: float = 0.3
    max_samples: int = 10_000
    max_nodes: int | None = 30_000

    def __post_init__(self) -> None:
        for name in (
            "n_passes",
            "n_trees",
            "n_candidates",
            "n_components",
            "min_samples_leaf",
            "max_samples",
            "max_nodes",
        ):
            value = getattr(self, name)
            if value is None and name in ("n_passes", "n_trees", "n_components", "max_nodes"):
                continue
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise ValueError(f"{name} must be a positive integer, got {value!r}.")
        if not isinstance(self.normal_scores, bool | np.bool_):
            raise ValueError(f"normal_scores must be True or False, got {self.normal_scores!r}.")
        if not 0 < self.max_features <= 1:
            raise ValueError(
                f"max_features is a share of the columns, above 0 and at most 1; got {self.max_features!r}."
            )

    def for_rows(self, n_rows: int) -> RefinedGraph:
        """Fill in what depends on the number of rows: much work where it is cheap, little where rows are many."""
        n_passes, n_trees = (2, 100) if n_rows <= self.max_samples else (1, 50)
        return replace(self, n_passes=self.n_passes or n_passes, n_trees=self.n_trees or n_trees)

    def every_row_a_node(self, n_rows: int) -> bool:
        """Tell whether a graph of so many rows joins them all."""
        return self.max_nodes is None or n_rows <= self.max_nodes

    def leaf_size(self, n_rows: int) -> int:
        """Return the fewest rows of a leaf of trees that are fitted to so many."""
        return max(1, min(self.min_samples_leaf, n_rows // 40))

    def split_columns(self, n_columns: int) -> int:
        """Return the number of columns that a split chooses from."""
        return max(min(_FEWEST_COLUMNS, n_columns), min(int(self.max_features * n_columns), _MOST_COLUMNS))


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
        points = principal_columns(points, settings.n_components, n_jobs=n_jobs, **more)
    search = Search(int(n_neighbors), weights, metric, method, n_jobs, verbose)
    basis = RefinementBasis(settings, columns, points, None, None, search, random_state)
    if not settings.every_row_a_node(points.shape[0]):
        return basis
    lists, plain = search(points, settings)
    return replace(basis, lists=lists, plain=plain)
