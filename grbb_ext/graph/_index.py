"""Approximate neighbours by faiss: an inverted file that probes as many cells as the wanted recall needs."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.intp]

_RECALL_SAMPLE = 200
# k-means of the cells: so many rows for each, of which more would not move the recall.
_ROWS_PER_CELL = 64

_log = logging.getLogger("grbb_ext.graph")


class FaissIndex:
    """Rows in cells around k-means centres; a search looks into the cells nearest to the query.

    Parameters
    ----------
    X : ndarray of shape (M, d)
        Rows to be found.
    k : int
        Neighbours that a query will ask for.
    metric : {"euclidean", "cosine"}
        The distance.
    recall_wanted : float, default=0.98
        The number of cells probed is doubled until the recall is at least this.

    Attributes
    ----------
    recall : float
        Share of the true k nearest that are found, estimated on 200 of the rows. It is also logged, at level INFO, as
        ``grbb_ext.graph``.
    n_cells, n_probed : int
        Cells, and how many of them a search looks into.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(2000, 3)).astype(np.float32)
    >>> index = FaissIndex(X, k=2, metric="euclidean")
    >>> index.search(X[:3])[0][:, 0].tolist(), index.recall > 0.97
    ([0, 1, 2], True)
    """

    def __init__(self, X: NDArray[np.floating[Any]], k: int, metric: str, recall_wanted: float = 0.98) -> None:
        import faiss

        self._k, self._cosine = k, metric == "cosine"
        rows = self._single(X)
        n_rows, n_columns = rows.shape
        self.n_cells = max(1, int(np.sqrt(n_rows)))
        self._index = faiss.IndexIVFFlat(faiss.IndexFlatL2(n_columns), n_columns, self.n_cells)
        random = np.random.default_rng(0)
        self._index.train(rows[random.choice(n_rows, min(n_rows, _ROWS_PER_CELL * self.n_cells), replace=False)])
        self._index.add(rows)

        sample = rows[random.choice(n_rows, min(n_rows, _RECALL_SAMPLE), replace=False)]
        _, truth = faiss.knn(sample, rows, k)
        self._index.nprobe = 1
        self.recall = _recall(self._index.search(sample, k)[1], truth)
        while self._index.nprobe < self.n_cells and self.recall < recall_wanted:
            self._index.nprobe = min(2 * self._index.nprobe, self.n_cells)
            self.recall = _recall(self._index.search(sample, k)[1], truth)
        self.n_probed = int(self._index.nprobe)
        _log.info(
            "%d neighbours among %d rows by faiss: recall %.3f on %d of them, %d of %d cells probed.",
            *(k, n_rows, self.recall, sample.shape[0], self.n_probed, self.n_cells),
        )

    def search(self, X: NDArray[np.floating[Any]]) -> tuple[Index, NDArray[np.float64]]:
        """Return the k nearest rows of each query, nearest first, and their distances."""
        squared, found = self._index.search(self._single(X), self._k)
        distances = squared / 2 if self._cosine else np.sqrt(np.maximum(squared, 0))
        return found.astype(np.intp, copy=False), distances.astype(np.float64)

    def _single(self, X: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
        rows = np.ascontiguousarray(X, dtype=np.float32)
        if self._cosine:
            import faiss

            rows = rows.copy()
            faiss.normalize_L2(rows)
        return rows


def _recall(found: Index, truth: Index) -> float:
    return float((found[:, :, None] == truth[:, None, :]).any(axis=1).mean())
