"""One graph for many fits: built over all rows, cut to the rows that a fit gets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_array

from grbb_ext.graph._affinity import Weights, check_graph
from grbb_ext.graph._knn import knn_graph
from grbb_ext.graph._neighbors import Method
from grbb_ext.table import Scale, Schema, Table, graph_columns, is_frame, read_frame, row_keys


class SharedGraph:
    """The affinity of all rows, for estimators that are fitted to parts of them.

    ``GRBBClassifier(graph=SharedGraph(X))`` in a ``GridSearchCV`` builds the graph once, where ``graph="knn"`` builds
    one for each fit. A fit gets the edges between its own rows. They are recognised by content, never by position: a
    row that is not among those of the graph is refused. Cloning an estimator does not copy the object.

    Parameters
    ----------
    X : array-like, sparse matrix, pandas.DataFrame or polars.DataFrame of shape (N, d)
        All rows that any fit may get, labelled and unlabelled, with the columns that the fits get.
    n_neighbors, weights, metric, method, scale, n_jobs, verbose
        As in :func:`grbb_ext.knn_graph`.
    affinity : sparse matrix or array-like of shape (N, N), default=None
        A ready affinity of the rows; None builds one with :func:`grbb_ext.knn_graph`.
    categorical_features : sequence of int or None, default=None
        Categorical columns of an array; those of a frame are known by their type.

    Attributes
    ----------
    affinity_ : csr_array of shape (N, N)
        The affinity of all rows.
    n_rows_ : int
        N.

    Notes
    -----
    The graph of all rows knows where the rows of the test fold lie (not their labels), and a row of a fold keeps only
    those of its neighbours that are in the fold, a share of about (folds - 1) / folds. A graph built for the fold alone
    would have all k. Equal rows are told apart by their order.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [1.5], [10.0]])
    >>> shared = SharedGraph(X, n_neighbors=1, weights="binary")
    >>> shared
    SharedGraph(4 rows, 6 edges)
    >>> shared.rows(X[[2, 0]]).tolist()
    [2, 0]
    >>> shared.affinity(X[[2, 1, 0]]).toarray().astype(int).tolist()
    [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    >>> shared.rows([[7.0]])
    Traceback (most recent call last):
        ...
    ValueError: Row 0 of X is not a row of the SharedGraph...
    """

    def __init__(
        self,
        X: Any,
        n_neighbors: int = 9,
        *,
        weights: Weights = "self-tuning",
        metric: str = "euclidean",
        method: Method = "auto",
        scale: Scale = "auto",
        affinity: Any = None,
        categorical_features: Sequence[int] | None = None,
        n_jobs: int | None = None,
        verbose: bool = True,
    ) -> None:
        self._categorical = tuple(categorical_features or ())
        table = self._read(X)
        if affinity is None:
            matrix, scale = graph_columns(table, scale)
            k = min(n_neighbors, table.n_rows - 1)
            affinity = knn_graph(
                matrix, k, weights=weights, metric=metric, method=method, scale=scale, n_jobs=n_jobs, verbose=verbose
            )
        self.affinity_: sp.csr_array = check_graph(affinity, table.n_rows)
        self.n_rows_ = table.n_rows
        self._rows: dict[bytes, list[int]] = defaultdict(list)
        for row, key in enumerate(row_keys(table)):
            self._rows[key].append(row)

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
        table = X if isinstance(X, Table) else self._read(X)
        taken: dict[bytes, int] = defaultdict(int)
        found = np.empty(table.n_rows, dtype=np.intp)
        for i, key in enumerate(row_keys(table)):
            places = self._rows.get(key, [])
            if taken[key] >= len(places):
                raise ValueError(self._stranger(i, len(places)))
            found[i] = places[taken[key]]
            taken[key] += 1
        return found

    def affinity(self, X: Any) -> sp.csr_array:
        """Return the affinity between the rows of X, in their order.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (M, d), or Table
            Some of the rows.

        Returns
        -------
        csr_array of shape (M, M)
        """
        rows = self.rows(X)
        return sp.csr_array(self.affinity_[rows][:, rows])

    def _read(self, X: Any) -> Table:
        if is_frame(X):
            return read_frame(X, self._categorical)
        values = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite="allow-nan")
        return Table(values, Schema(self._categorical))

    def _stranger(self, row: int, copies: int) -> str:
        if copies:
            return (
                f"Row {row} of X stands in X more often than in the SharedGraph, which has {copies} of it: rows must "
                "not be repeated by resampling. Use sample_weight, or graph='knn'."
            )
        return (
            f"Row {row} of X is not a row of the SharedGraph, which holds {self.n_rows_}. It must hold all rows of "
            "every fit, with the same columns and the same precision. If X is transformed on the way (a scaler in a "
            "pipeline is fitted to each fold anew), transform it before, or use graph='knn' with memory=."
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> SharedGraph:
        # sklearn.clone copies parameters: an object that does not change need not be copied.
        return self

    def __repr__(self) -> str:
        return f"SharedGraph({self.n_rows_} rows, {self.affinity_.nnz} edges)"
