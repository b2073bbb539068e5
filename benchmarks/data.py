"""The data sets: scikit-learn's own, npz files of the folder GRBB_DATA, and OpenML by name.

``load("digits")`` works everywhere. ``load("usps")`` and the other names of `FILES` read ``$GRBB_DATA/usps.npz``
(default ``../shared/data``). ``load("openml:spambase")`` asks OpenML, where it is reachable.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_openml, load_breast_cancer, load_diabetes, load_digits, load_wine

from grbb_ext import FeatureCosts

DATA = Path(os.environ.get("GRBB_DATA", "../shared/data"))
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class DataSet:
    """Rows with a binary class.

    Attributes
    ----------
    name : str
        The name it was asked for by.
    X : ndarray of shape (rows, d)
        As stored, NaN where a value is missing.
    y : ndarray of int
        0 or 1 for each row.
    is_test : ndarray of bool or None
        Rows kept for testing, where the data come with a split, else None.
    names : list of str
        Columns.
    costs : FeatureCosts or None
        Prices, where there are any.
    qid : ndarray or None
        The query of each row, for ranking.
    """

    name: str
    X: NDArray[Any]
    y: Labels
    is_test: NDArray[np.bool_] | None = None
    names: list[str] = field(default_factory=list)
    costs: FeatureCosts | None = None
    qid: NDArray[Any] | None = None


def _greater(limit: int) -> Callable[[Any], Any]:
    return lambda y: y > limit


def _pair(first: int, second: int) -> Callable[[Any], Any]:
    """Class `second` against class `first`; all other rows are left out."""
    return lambda y: np.where(y == second, 1, np.where(y == first, 0, -1))


#: File and class of each set. Pairs of digits leave the other rows out.
FILES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "scene15": ("scene15", _greater(8)),
    "coil20": ("coil20", _greater(10)),
    "usps": ("usps", _greater(4)),
    "usps3v5": ("usps", _pair(3, 5)),
    "mnist3v8": ("mnist3v8", lambda y: y == 8),
    "cbcl_faces": ("cbcl_faces", _greater(0)),
    "isolet": ("isolet", _greater(13)),
    "heart_disease": ("heart_disease", _greater(0)),
    "thyroid": ("thyroid", lambda y: y < 3),
    "flights": ("flights", _greater(0)),
    "mq2008": ("mq2008", _greater(0)),
}

#: Sets that come with scikit-learn. Diabetes is a regression: its class is a progression above the median.
BUILT_IN: dict[str, tuple[Callable[..., Any], Callable[[Any], Any]]] = {
    "digits": (load_digits, _greater(4)),
    "digits1v8": (load_digits, _pair(1, 8)),
    "digits4v9": (load_digits, _pair(4, 9)),
    "wine": (load_wine, _greater(0)),
    "breast_cancer": (load_breast_cancer, _greater(0)),
    "diabetes": (load_diabetes, lambda y: y > np.median(y)),
}


def is_available(name: str, folder: Path | None = None) -> bool:
    """Return whether a set can be read without the network."""
    return name in BUILT_IN or (name in FILES and ((folder or DATA) / f"{FILES[name][0]}.npz").exists())


@cache
def load(name: str, folder: Path | None = None) -> DataSet:
    """Return a data set by name.

    Parameters
    ----------
    name : str
        One of `BUILT_IN`, one of `FILES`, or ``"openml:"`` and the name of a binary set there.
    folder : Path or None, default=None
        Where the files are; None is the folder GRBB_DATA.

    Returns
    -------
    DataSet
        In the order of the source: rows may be sorted by class, so shuffle them (:func:`benchmarks.splits.draw` does).

    Examples
    --------
    >>> digits = load("digits")
    >>> digits.X.shape, int(digits.y.sum())
    ((1797, 64), 896)
    """
    if name in BUILT_IN:
        source, binarise = BUILT_IN[name]
        X, y = source(return_X_y=True)
        return _only_labeled(DataSet(name, X, np.asarray(binarise(y), dtype=np.int64)))
    if name in FILES:
        return _from_file(name, folder or DATA)
    if name.startswith("openml:"):
        return _from_openml(name)
    raise ValueError(f"There is no data set {name!r}. Known are {[*BUILT_IN, *FILES]} and 'openml:NAME'.")


def _from_file(name: str, folder: Path) -> DataSet:
    stem, binarise = FILES[name]
    path = folder / f"{stem}.npz"
    if not path.exists():
        raise FileNotFoundError(
            f"{path} is not there. Set GRBB_DATA to the folder with the npz files, or use one of {list(BUILT_IN)}, "
            "which come with scikit-learn."
        )
    with np.load(path) as file:
        X, y = file["X"], np.asarray(binarise(file["y"]), dtype=np.int64)
        names = [str(column) for column in file["feature_names"]] if "feature_names" in file else []
        is_test = file["split"] == 1 if "split" in file else None
        if "part" in file:  # isolet: part 5 has speakers that parts 1 to 4 do not have
            is_test = file["part"] == 5
        qid = file.get("qid")
    prices = folder / f"{stem}_costs.csv"
    costs = FeatureCosts.from_csv(prices).bind(names) if prices.exists() else None
    return _only_labeled(DataSet(name, X, y, is_test, names, costs, qid))


def _from_openml(name: str) -> DataSet:
    try:
        X, y = fetch_openml(name.removeprefix("openml:"), return_X_y=True, as_frame=False, parser="liac-arff")
    except OSError as error:
        raise ConnectionError(
            f"OpenML could not be reached for {name!r} ({error}). Use one of {list(BUILT_IN)}, which come with "
            "scikit-learn, or a file in GRBB_DATA."
        ) from error
    classes, codes = np.unique(y, return_inverse=True)
    if classes.size != 2:
        raise ValueError(f"{name!r} has {classes.size} classes; the study is of two.")
    return DataSet(name, np.asarray(X, dtype=np.float64), codes.astype(np.int64))


def _only_labeled(data: DataSet) -> DataSet:
    """Leave out the rows of other classes, which a pair marks with -1."""
    kept = data.y >= 0
    if kept.all():
        return data
    is_test = None if data.is_test is None else data.is_test[kept]
    return DataSet(data.name, data.X[kept], data.y[kept], is_test, data.names, data.costs)
