"""What an on-demand prediction returns, and the error that keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FINISHED, DECIDED, CONFIDENT, BUDGET, FAILED = "finished", "decided", "confident", "budget", "failed"


@dataclass(frozen=True, eq=False, repr=False)
class OnDemandResult:
    """Predictions of rows, and what was bought for them.

    Attributes
    ----------
    rows : ndarray of shape (N,)
        The row ids.
    raw_scores : ndarray of shape (N,), or (N, K) with K outputs
        Raw scores; NaN for failed rows. What they are depends on `status`.
    status : ndarray of str of shape (N,)
        ``"finished"``: every tree was evaluated, the score has the bits of the booster's. ``"decided"``: the class is
        certain, the score is an estimate on its side. ``"confident"``: the score of the trees that were evaluated.
        ``"budget"``: the budget ran out, the score is an estimate from what is known. ``"failed"``: a source failed.
    trees : ndarray of int of shape (N,)
        How many trees were evaluated before the first open one; all of them for finished rows, and those that make up
        the score for confident ones.
    fetched : ndarray of bool of shape (N, n_sources)
        Which sources were asked for which row. A source that failed was asked, too.
    spent : ndarray of shape (N,)
        Their price.
    sources : tuple of str or int
        Names of the sources.
    errors : tuple of FetchError
        What went wrong.
    """

    rows: NDArray[Any]
    raw_scores: NDArray[np.floating[Any]]
    status: NDArray[np.str_]
    trees: NDArray[np.intp]
    fetched: NDArray[np.bool_]
    spent: NDArray[np.float64]
    sources: tuple[Any, ...]
    errors: tuple[FetchError, ...] = ()

    @property
    def complete(self) -> NDArray[np.bool_]:
        """Which rows have the score of the whole forest."""
        return np.asarray(self.status == FINISHED)

    def rows_fetched(self) -> dict[Any, int]:
        """Return for how many rows each source was asked."""
        return dict(zip(self.sources, self.fetched.sum(axis=0).tolist(), strict=True))

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        kinds, counts = np.unique(self.status, return_counts=True)
        listed = ", ".join(f"{count} {kind}" for kind, count in zip(kinds, counts, strict=True))
        mean = f", {self.spent.mean():g} spent per row" if len(self) else ""
        return f"OnDemandResult({len(self)} rows: {listed}{mean})"


class FetchError(RuntimeError):
    """A source raised, or returned something that cannot be used.

    Attributes
    ----------
    source : str or int
        The source, or the derived feature.
    failed_rows : ndarray
        Ids of the rows that it was asked for.
    result : OnDemandResult or None
        The result for all rows. Those of failed calls have status ``"failed"``; all others were evaluated to the end.
    """

    def __init__(self, message: str, source: Any, failed_rows: NDArray[Any]) -> None:
        super().__init__(message)
        self.source, self.failed_rows = source, failed_rows
        self.result: OnDemandResult | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return FetchError, (str(self), self.source, self.failed_rows), {"result": self.result}


def list_rows(rows: NDArray[Any], most: int = 5) -> str:
    """Write row ids into a message.

    Examples
    --------
    >>> list_rows(np.arange(7), most=2)
    '7 rows (0, 1, ...)'
    """
    ids = [str(row) for row in rows[:most].tolist()] + (["..."] if len(rows) > most else [])
    return f"{len(rows)} row{'s' if len(rows) != 1 else ''} ({', '.join(ids)})"


def join(results: Sequence[OnDemandResult]) -> OnDemandResult:
    """Put the results of batches together."""
    joined = {
        name: np.concatenate([getattr(result, name) for result in results])
        for name in ("rows", "raw_scores", "status", "trees", "fetched", "spent")
    }
    errors = tuple(error for result in results for error in result.errors)
    return OnDemandResult(**joined, sources=results[0].sources, errors=errors)
