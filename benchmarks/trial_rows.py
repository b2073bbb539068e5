"""The rows of a trial, one for each number of trees, and which methods still lack theirs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from benchmarks.data import Labels
from benchmarks.results import ResultTable, package_versions
from benchmarks.rivals import TREES, Fitted
from benchmarks.runner import Row


def missing_of(table: ResultTable, keys: Iterable[Mapping[str, Any]], n_rows: int = len(TREES)) -> tuple[str, ...]:
    """Return the methods of those trials that have not all of their rows."""
    return tuple(key["method"] for key in keys if not table.has(key, n_rows))


def rows_of(
    key: Mapping[str, Any], fitted: Fitted, seconds: float, truth: Labels, price: Callable[[list[int]], float] | None
) -> list[Row]:
    """Return accuracy and cost of the first 10 trees, and of all 50.

    Parameters
    ----------
    key : mapping
        What identifies the trial.
    fitted : Fitted
        The model.
    seconds : float
        What it took.
    truth : ndarray of int
        The classes of the test rows.
    price : callable or None
        The price of a list of columns; None where there are no prices.

    Returns
    -------
    list of dict
        Rows for :class:`benchmarks.results.ResultTable`.
    """
    rows: list[Row] = []
    for trees in TREES:
        used = fitted.features(trees)
        measured = {
            "trees": trees,
            "metric": "accuracy",
            "cost": "" if price is None or used is None else round(price(used), 2),
            "value": round(float(np.mean(fitted.classes(trees) == truth)), 5),
            "seconds": round(seconds, 3),
            "details": json.dumps(fitted.details) if fitted.details else "",
        }
        rows.append({**key, **measured, **package_versions()})
    return rows
