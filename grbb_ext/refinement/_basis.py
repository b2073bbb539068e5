"""What a refined graph needs of X: found once, before any label is looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext.graph._columns import Scale, prepare_columns
from grbb_ext.graph._lists import NeighborLists, check_neighbors, search_lists
from grbb_ext.graph._neighbors import Method
from grbb_ext.graph._weights import Weights
from grbb_ext.refinement._columns import TreeColumns, read_columns
from grbb_ext.refinement._settings import RefinedGraph


@dataclass(frozen=True)
class RefinementBasis:
    """What does not depend on labels, so that a fold can be refined from its own labels alone.

    Attributes
    ----------
    settings : RefinedGraph
        How to refine.
    columns : TreeColumns
        Columns for the trees.
    lists : NeighborLists
        Candidates: the nearest rows of every row, by distance.
    plain : csr_array of shape (N, N)
        The graph before the refinement.
    n_neighbors : int
        k.
    weights : {"self-tuning", "binary", "heat"}
        Formula of the weights.
    random_state : int
        Seed of the trees.
    """

    settings: RefinedGraph
    columns: TreeColumns
    lists: NeighborLists
    plain: sp.csr_array
    n_neighbors: int
    weights: Weights
    random_state: int

    def subset(self, rows: NDArray[np.intp]) -> RefinementBasis:
        """Cut to some of the rows."""
        return RefinementBasis(
            self.settings,
            self.columns.subset(rows),
            self.lists.subset(rows),
            sp.csr_array(self.plain[rows][:, rows]),
            self.n_neighbors,
            self.weights,
            self.random_state,
        )


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
) -> RefinementBasis:
    """Read the columns and search the candidates; the first k of them make the plain graph.

    The parameters are those of :func:`knn_graph` and :class:`RefinedGraph`.

    Examples
    --------
    >>> basis = make_basis(np.arange(40.0)[:, None], RefinedGraph(n_candidates=12), n_neighbors=2)
    >>> basis.lists.neighbors.shape, basis.plain.shape
    ((40, 12), (40, 40))
    """
    columns = read_columns(X)
    for_distances = prepare_columns(columns.distance_columns(), scale)
    check_neighbors(n_neighbors, for_distances)
    n_candidates = max(int(n_neighbors), settings.n_candidates)
    lists = search_lists(for_distances, n_candidates, metric, method, n_jobs, verbose)
    plain = lists.graph(int(n_neighbors), weights)
    return RefinementBasis(settings, columns, lists, plain, int(n_neighbors), weights, random_state)
