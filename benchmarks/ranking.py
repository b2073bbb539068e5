"""Learning-to-rank data: MQ2008 of the folder GRBB_DATA, and files that need a licence of their own.

Yahoo! LTR (Chapelle and Chang, 2011) and MSLR-WEB10K may not be passed on. Who has them names the folder:
``load_yahoo("…/ltrc_yahoo", costs="costs.txt")`` with ``set1.train.txt`` and ``set1.test.txt``, and
``load_mslr("…/MSLR-WEB10K")`` with ``Fold1/train.txt`` and so on.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_svmlight_file

from benchmarks.data import DATA
from grbb_ext import FeatureCosts

YAHOO_FEATURES, MSLR_FEATURES = 700, 136


@dataclass(frozen=True)
class RankingSet:
    """Documents of queries, with grades of relevance.

    Attributes
    ----------
    X : ndarray of shape (documents, d)
        Features.
    relevance : ndarray of int
        Grades, 0 for useless.
    qid : ndarray of int
        The query of each document; documents of a query are contiguous.
    is_test : ndarray of bool
        Documents of test queries.
    costs : FeatureCosts or None
        Prices by column number.
    """

    X: NDArray[np.float32]
    relevance: NDArray[np.int64]
    qid: NDArray[np.int64]
    is_test: NDArray[np.bool_]
    costs: FeatureCosts | None = None


def load_mq2008(folder: Path | None = None) -> RankingSet:
    """Return MQ2008 (LETOR 4.0, fold 1)."""
    with np.load((folder or DATA) / "mq2008.npz") as file:
        X, relevance, qid = file["X"].astype(np.float32), file["y"].astype(np.int64), file["qid"].astype(np.int64)
        return _checked(RankingSet(X, relevance, qid, file["split"] == 1))


def load_yahoo(folder: str | Path, costs: str | Path | None = None, name: str = "set1") -> RankingSet:
    """Return the Yahoo! LTR data: ``set1.train.txt`` to learn from, ``set1.test.txt`` to test on.

    Parameters
    ----------
    folder : str or Path
        Where the files are.
    costs : str, Path or None, default=None
        The file of prices, in `folder`: see :func:`read_costs`.
    name : {"set1", "set2"}, default="set1"
        Which of the two sets.

    Returns
    -------
    RankingSet
        With 700 columns.
    """
    parts = [Path(folder) / f"{name}.{part}.txt" for part in ("train", "test")]
    prices = None if costs is None else read_costs(Path(folder) / costs, YAHOO_FEATURES)
    return _from_svmlight(parts, YAHOO_FEATURES, prices)


def load_mslr(folder: str | Path, fold: int = 1) -> RankingSet:
    """Return a fold of MSLR-WEB10K: ``Fold1/train.txt`` to learn from, ``Fold1/test.txt`` to test on."""
    parts = [Path(folder) / f"Fold{fold}" / f"{part}.txt" for part in ("train", "test")]
    return _from_svmlight(parts, MSLR_FEATURES, None)


def read_costs(path: Path, n_features: int) -> FeatureCosts:
    """Read prices: a line for each feature, in order, or lines with a feature's number (from 1) and its price.

    A feature without a line is free: features that no document has are not priced.
    """
    lines = [line.replace(",", " ").split() for line in path.read_text().splitlines() if line.strip()]
    prices = np.zeros(n_features)
    if all(len(line) == 1 for line in lines):
        if len(lines) != n_features:
            raise ValueError(f"{path} has {len(lines)} prices for {n_features} features.")
        prices[:] = [float(line[0]) for line in lines]
    else:
        for number, price in lines:
            if not 1 <= int(number) <= n_features:
                raise ValueError(f"{path} prices feature {number}, but features are 1 to {n_features}.")
            prices[int(number) - 1] = float(price)
    return FeatureCosts(prices)


def _from_svmlight(paths: list[Path], n_features: int, costs: FeatureCosts | None) -> RankingSet:
    """Read ``relevance qid:1 1:0.5 7:0.1`` line by line; a feature that is not mentioned is 0."""
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(
                f"{path} is not there. The data need a licence and are not passed on with this code."
            )
    read: list[Any] = [
        load_svmlight_file(str(path), n_features=n_features, dtype=np.float32, query_id=True, zero_based=False)
        for path in paths
    ]
    X = np.vstack([rows.toarray() for rows, _, _ in read])
    relevance = np.concatenate([grades for _, grades, _ in read]).astype(np.int64)
    qid = np.concatenate([queries for _, _, queries in read])
    is_test = np.repeat([False, True], [grades.size for _, grades, _ in read])
    return _checked(RankingSet(X, relevance, qid, is_test, costs))


def _checked(data: RankingSet) -> RankingSet:
    starts = np.flatnonzero(np.diff(data.qid, prepend=data.qid[0] - 1))
    if np.unique(data.qid[starts]).size != starts.size:
        raise ValueError("Documents of a query must follow one another, and no query may be in both parts.")
    return data
