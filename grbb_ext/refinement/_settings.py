"""How a graph is refined."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

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
