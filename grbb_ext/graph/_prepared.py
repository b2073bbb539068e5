"""A graph before any label is looked at: what it needs of X, found once, and cut to the rows of each fit."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext._options import is_number, positive_int, read_spec
from grbb_ext._progress import n_threads, one_thread_of_blas
from grbb_ext.graph._affinity import check_graph
from grbb_ext.graph._knn import KNNGraph, NeighborLists
from grbb_ext.table import DistanceSpace, Matrix, Table, read_table, row_keys

_FEWEST_COLUMNS, _MOST_COLUMNS = 3, 64
# What a shared graph keeps: sets of rows (folds), as many as these numbers are enough for, and results for each.
_SETS_KEPT, _NUMBERS_KEPT, _RESULTS_KEPT = 10, 2**25, 8

Made = TypeVar("Made")


@dataclass(frozen=True)
class TableGraph(KNNGraph):
    r"""Options of the nearest-neighbour graph of a table: ``grbb_objective(X, y, graph=TableGraph())``.

    ``graph="table"`` is short for it, and the default of ``rule="targets"``. Columns of all kinds are made comparable
    before distances are taken, and the work does not grow with the rows beyond `max_nodes`.

    Parameters
    ----------
    n_neighbors, weights, metric, method, scale, bandwidth
        As in :class:`KNNGraph`.
    n_components : int or None, default=30
        Where X has more columns, normal scores included, distances are those of so many principal components, with
        noise taken out and the large ones damped: component j is multiplied by
        :math:`\lambda_j^{-1/4} \sqrt{1 - \lambda_{c+1} / \lambda_j}`. None keeps all columns, as do sparse rows and
        metrics other than the Euclidean one.
    normal_scores : bool, default=True
        Put normal scores, which are functions of the ranks alone, beside the columns before distances are taken, both
        with the same total variance. They are left out with ``scale=None``, for sparse rows, and for metrics other
        than the Euclidean one.
    max_nodes : int or None, default=20000
        Where there are more rows, the graph joins the labelled ones and a random sample of the others, and every
        other row takes the weighted mean of the nodes that would be its neighbours: the work before the first tree
        hardly grows after that. None makes every row a node. It applies to ``rule="targets"`` with
        ``propagation="smooth"``; elsewhere every row is a node.
    """

    n_components: int | None = 30
    normal_scores: bool = True
    max_nodes: int | None = 20_000

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("n_components", "max_nodes"):
            if getattr(self, name) is not None:
                positive_int(getattr(self, name), name)
        if not isinstance(self.normal_scores, bool | np.bool_):
            raise ValueError(f"normal_scores must be True or False, got {self.normal_scores!r}.")

    def every_row_a_node(self, n_rows: int) -> bool:
        """Tell whether a graph of so many rows joins them all."""
        return self.max_nodes is None or n_rows <= self.max_nodes


@dataclass(frozen=True)
class RefinedGraph(TableGraph):
    r"""Options of the refined graph: ``grbb_objective(X, y, graph=RefinedGraph(n_trees=200))``.

    ``graph="refined"`` is short for ``graph=RefinedGraph()``. The labels are propagated on the graph of
    :class:`TableGraph`; extremely randomised regression trees are fitted to the result on all rows; and every row takes
    as neighbours the k of its candidates with the smallest

    .. math:: d_{ij}^2\,(1.1 - S_{ij}),

    with S the share of trees in which two rows share a leaf. The affinity is the mean of the plain one and this one.
    Among many irrelevant columns it is a little ahead of the plain one, for several times the work.

    Parameters
    ----------
    n_neighbors, weights, metric, method, scale, bandwidth, n_components, normal_scores, max_nodes
        As in :class:`TableGraph`.
    n_passes : int or None, default=None
        How often trees are fitted, each time to the labels propagated on the graph so far. None is 2, and 1 where the
        trees are found on a sample.
    n_trees : int or None, default=None
        Trees of a pass. None is 100, and 50 where the trees are found on a sample.
    n_candidates : int, default=30
        Nearest rows, by distance, among which a row finds its neighbours.
    min_samples_leaf : int, default=30
        Fewest rows of a leaf; fewer where there are less than 40 times as many rows.
    max_features : float, default=0.3
        Share of the columns that a split may choose from: at least 3, where there are so many, and at most 64. With
        a single one to choose from, trees would not look at the labels.
    max_samples : int, default=10000
        Where there are more rows, the trees are found on the labelled ones and a random sample of the others, and only
        the last of them rank the neighbours of all rows.

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
    min_samples_leaf: int = 30
    max_features: float = 0.3
    max_samples: int = 10_000

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("n_candidates", "min_samples_leaf", "max_samples"):
            positive_int(getattr(self, name), name)
        for name in ("n_passes", "n_trees"):
            if getattr(self, name) is not None:
                positive_int(getattr(self, name), name)
        if not (is_number(self.max_features) and 0 < self.max_features <= 1):
            raise ValueError(
                f"max_features is a share of the columns, above 0 and at most 1; got {self.max_features!r}."
            )

    @property
    def n_found(self) -> int:
        """How many neighbours of each row are searched: the candidates."""
        return int(max(self.n_neighbors, self.n_candidates))

    def for_rows(self, n_rows: int) -> RefinedGraph:
        """Fill in what depends on the number of rows: much work where it is cheap, little where rows are many."""
        n_passes, n_trees = (2, 100) if n_rows <= self.max_samples else (1, 50)
        return replace(self, n_passes=self.n_passes or n_passes, n_trees=self.n_trees or n_trees)

    def leaf_size(self, n_rows: int) -> int:
        """Return the fewest rows of a leaf of trees that are fitted to so many."""
        return max(1, min(self.min_samples_leaf, n_rows // 40))

    def split_columns(self, n_columns: int) -> int:
        """Return the number of columns that a split chooses from."""
        return max(min(_FEWEST_COLUMNS, n_columns), min(int(self.max_features * n_columns), _MOST_COLUMNS))


#: Short forms of ``graph=``.
GRAPHS: dict[str, KNNGraph] = {"knn": KNNGraph(), "table": TableGraph(), "refined": RefinedGraph()}


class Kept:
    """The results made last, by what they depend on. Copies and pickles of it are empty.

    Examples
    --------
    >>> kept = Kept(2)
    >>> [kept.get(key, lambda: key.upper()) for key in "abac"], len(kept)
    (['A', 'B', 'A', 'C'], 2)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._made: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return what was made of the key, or make it; what was asked for longest ago is forgotten."""
        made: Made | None = self._made.pop(key, None)
        if made is None:
            made = make()
        self._made[key] = made
        while len(self._made) > self._most:
            self._made.popitem(last=False)
        return made

    def __len__(self) -> int:
        return len(self._made)

    def __reduce__(self) -> tuple[Any, ...]:
        return Kept, (self._most,)


@dataclass(frozen=True)
class PreparedGraph:
    """What does not depend on labels, so that a fold, or other labels, need not search neighbours again.

    Attributes
    ----------
    n_rows : int
        N.
    W : csr_array of shape (N, N) or None
        The affinity; that before the refinement for a :class:`RefinedGraph`. None where not every row will be a node:
        labelled rows have to be, so that the search waits for the labels.
    spec : KNNGraph or None
        How the graph was asked for; None for a given affinity.
    table : Table or None
        The rows; None where a graph was given without them.
    space : DistanceSpace or None
        The columns that distances are taken of.
    points : ndarray or csr_array or None
        The rows in that space.
    lists : NeighborLists or None
        Candidates: the nearest rows of every row, by distance.
    n_jobs, verbose
        Threads, and whether there are progress bars.
    kept : Kept or None
        What was made of these rows, for the next fit to them; None where there will be none.
    """

    n_rows: int
    W: sp.csr_array | None = None
    spec: KNNGraph | None = None
    table: Table | None = None
    space: DistanceSpace | None = None
    points: Matrix | None = None
    lists: NeighborLists | None = None
    n_jobs: int | None = None
    verbose: bool = False
    kept: Kept | None = None

    @property
    def components(self) -> NDArray[np.floating[Any]] | None:
        """Principal components, where they are fewer than the numbers of the table; else None."""
        if not isinstance(self.spec, TableGraph) or sp.issparse(self.points):
            return None
        assert self.table is not None
        assert self.points is not None
        return self.points if self.points.shape[1] < self.table.numbers.shape[1] else None

    def subset(self, rows: NDArray[np.intp]) -> PreparedGraph:
        """Cut to some of the rows."""
        if isinstance(self.spec, TableGraph) and self.lists is None and self.spec.every_row_a_node(rows.size):
            return self.thinned(rows)
        return replace(
            self._at(rows),
            W=None if self.W is None else sp.csr_array(self.W[rows][:, rows]),
            lists=None if self.lists is None else self.lists.subset(rows),
        )

    def thinned(self, rows: NDArray[np.intp]) -> PreparedGraph:
        """Keep some of the rows, with neighbours found among them alone: a graph as dense as the whole."""
        return self._at(rows)._searched()

    def _at(self, rows: NDArray[np.intp]) -> PreparedGraph:
        return replace(
            self,
            kept=None,
            n_rows=rows.size,
            table=None if self.table is None else self.table.take(rows),
            points=None if self.points is None else self.points[rows],
        )

    def _searched(self) -> PreparedGraph:
        assert self.spec is not None
        lists = self.spec.search(self.points, n_jobs=self.n_jobs, verbose=self.verbose)
        return replace(self, lists=lists, W=self.spec.affinity(lists))


def prepare_graph(
    graph: Any,
    table: Table | None,
    n_rows: int,
    *,
    n_jobs: int | None = None,
    verbose: bool = False,
    warn_missing: bool = True,
) -> PreparedGraph:
    """Find what a graph needs of X before any label is looked at.

    Parameters
    ----------
    graph : KNNGraph, SharedGraph, PreparedGraph, or sparse matrix or array-like of shape (N, N)
        What was asked for.
    table : Table or None
        All rows.
    n_rows : int
        N.
    n_jobs : int or None, default=None
        Threads; None takes all cores.
    verbose : bool, default=False
        Show progress bars for steps that take more than two seconds.
    warn_missing : bool, default=True
        Warn about missing values, which distances see as medians.

    Examples
    --------
    >>> rows = read_table(np.arange(40.0)[:, None])
    >>> prepared = prepare_graph(RefinedGraph(n_neighbors=2, n_candidates=12), rows, 40)
    >>> prepared.lists.neighbors.shape, prepared.W.shape
    ((40, 12), (40, 40))
    """
    if isinstance(graph, PreparedGraph):
        return graph
    if isinstance(graph, SharedGraph):
        if table is None:
            raise ValueError("A SharedGraph finds the rows of a fit by their content: pass X.")
        return graph.prepared(table)
    if not isinstance(graph, KNNGraph):
        return PreparedGraph(n_rows, check_graph(graph, n_rows), table=table, n_jobs=n_jobs, verbose=verbose)
    if table is None:
        raise ValueError("Pass X, or a ready affinity as graph=.")
    if graph.n_neighbors >= table.n_rows:
        graph = graph.replace(n_neighbors=max(1, table.n_rows - 1))
    settings: dict[str, Any] = {"scale": graph.scale, "warn_missing": warn_missing}
    if isinstance(graph, TableGraph):
        settings["categories"] = "only without numbers"
        if graph.metric == "euclidean":
            settings |= {"normal_scores": graph.normal_scores, "n_components": graph.n_components}
    with one_thread_of_blas():
        space = DistanceSpace.fit(table, **settings)
        points = space(table, n_jobs, verbose)
        prepared = PreparedGraph(n_rows, None, graph, table, space, points, n_jobs=n_jobs, verbose=verbose)
        waits = isinstance(graph, TableGraph) and not graph.every_row_a_node(n_rows)
        return prepared if waits else prepared._searched()


class SharedGraph:
    """The graph of all rows, for estimators that are fitted to parts of them.

    ``GRBBClassifier(graph=SharedGraph(X))`` in a ``GridSearchCV`` searches neighbours once, where ``graph="table"``
    searches them in each fit, and fits the experts of the teacher once for each fold, as long as the rows are few. A
    fit gets the neighbours among its own rows. They are recognised by content, never by position: a row that is not
    among those of the graph is refused. Cloning an estimator does not copy the object.

    Parameters
    ----------
    X : array-like, sparse matrix or frame of shape (N, d)
        All rows that any fit may get, labelled and unlabelled, with the columns that the fits get.
    graph : {"table", "knn", "refined"}, KNNGraph, or array-like of shape (N, N), default="table"
        How to build it, or a ready affinity. A refined graph is refined in each fit, from its own labels alone.
    categorical_features : "from_dtype" or list of names, positions or bools, default="from_dtype"
        Categorical columns, as given to the estimators.
    n_jobs : int or None, default=None
        Threads; None takes all cores.
    verbose : bool, default=True
        Draw a progress bar if the search takes more than two seconds.

    Attributes
    ----------
    n_rows_ : int
        N.

    Notes
    -----
    The graph of all rows has been made with the rows of the test fold (not with their labels), and a row of a fold
    keeps only those of its neighbours that are in the fold, a share of about (folds - 1) / folds. A graph built for the
    fold alone would have all k. Equal rows are told apart by their order.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [1.5], [10.0]])
    >>> shared = SharedGraph(X, KNNGraph(n_neighbors=1, weights="binary"))
    >>> shared
    SharedGraph(4 rows, 6 edges)
    >>> shared.rows(X[[2, 0]]).tolist()
    [2, 0]
    >>> shared.prepared(X[[2, 1, 0]]).W.toarray().astype(int).tolist()
    [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    >>> shared.rows([[7.0]])
    Traceback (most recent call last):
        ...
    ValueError: Row 0 of X is not a row of the SharedGraph...
    """

    def __init__(
        self,
        X: Any,
        graph: Any = "table",
        *,
        categorical_features: Any = "from_dtype",
        n_jobs: int | None = None,
        verbose: bool = True,
    ) -> None:
        n_threads(n_jobs)  # refuses what is no number of them
        table = read_table(X, categorical=categorical_features)
        if isinstance(graph, str):
            graph = read_spec(graph, GRAPHS, KNNGraph, "graph", " or an affinity")
        self._categorical = table.schema.categorical
        self._all = prepare_graph(graph, table, table.n_rows, n_jobs=n_jobs, verbose=verbose, warn_missing=False)
        self.n_rows_ = table.n_rows
        self._rows: dict[bytes, list[int]] = defaultdict(list)
        for row, key in enumerate(row_keys(table)):
            self._rows[key].append(row)
        self._parts = Kept(min(_SETS_KEPT, _NUMBERS_KEPT // max(table.values.size, 1)))

    def rows(self, X: Any) -> NDArray[np.intp]:
        """Return where the rows of X stand among those of the graph.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (M, d), or Table
            Some of the rows, in any order.

        Returns
        -------
        ndarray of int of shape (M,)
            Different positions; equal rows in the order in which they stand in the graph.
        """
        table = read_table(X, categorical=self._categorical)
        taken: dict[bytes, int] = defaultdict(int)
        found = np.empty(table.n_rows, dtype=np.intp)
        for i, key in enumerate(row_keys(table)):
            places = self._rows.get(key, [])
            if taken[key] >= len(places):
                raise ValueError(self._stranger(i, len(places), table.schema.missing))
            found[i] = places[taken[key]]
            taken[key] += 1
        return found

    def prepared(self, X: Any) -> PreparedGraph:
        """Return the graph of the rows of X, in their order.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (M, d), or Table
            Some of the rows.

        Returns
        -------
        PreparedGraph
        """
        rows = self.rows(X)
        return self._parts.get(rows.tobytes(), lambda: replace(self._all.subset(rows), kept=Kept(_RESULTS_KEPT)))

    def _stranger(self, row: int, copies: int, missing: float) -> str:
        if copies:
            return (
                f"Row {row} of X stands in X more often than in the SharedGraph, which has {copies} of it: rows must "
                "not be repeated by resampling. Use sample_weight, or graph='knn'."
            )
        holes = "" if np.isnan(missing) else f" Make it of rows with NaN for the missing value {missing:g}."
        return (
            f"Row {row} of X is not a row of the SharedGraph, which holds {self.n_rows_}.{holes} It must hold all rows "
            "of every fit, with the same columns and the same precision. If X is transformed on the way (a scaler in a "
            "pipeline is fitted to each fold anew), transform it before, or use graph='knn'."
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> SharedGraph:
        # sklearn.clone copies parameters: an object that does not change need not be copied.
        return self

    def __repr__(self) -> str:
        edges = "" if self._all.W is None else f", {self._all.W.nnz} edges"
        return f"SharedGraph({self.n_rows_} rows{edges})"
