"""A batch of rows: the values that sources return, what was paid for them, what failed, and the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grbb_ext.costs import FeatureCosts
from grbb_ext.losses import class_probabilities
from grbb_ext.table import Unseen, column_names, is_frame, read_column

Bools = NDArray[np.bool_]
Fetch = Callable[[NDArray[Any]], Any]
Derive = Callable[[dict[Any, NDArray[Any]]], Any]
Rows = NDArray[np.intp]

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
        ``"finished"``: every tree was evaluated, the score is bit-equal to the booster's. ``"decided"``: the class is
        certain, the score is an estimate on its side. ``"confident"``: the score of the trees that were evaluated.
        ``"budget"``: the budget ran out, the score is an estimate from what is known. ``"failed"``: a source failed.
    trees : ndarray of int of shape (N,)
        How many trees were evaluated before the first open one; all of them for finished rows, and those that make up
        the score for confident ones.
    fetched : ndarray of bool of shape (N, n_sources)
        Which sources returned something for which row. One that raised did not, and is not paid.
    spent : ndarray of shape (N,)
        Their price.
    sources : tuple of str or int
        Names of the sources.
    errors : tuple of FetchError
        What went wrong.
    classes : ndarray of shape (K,) or None
        The classes of the model; None for numbers, or where they are not known.
    decision_threshold : float
        The raw score above which a row is of the second of two classes.
    """

    rows: NDArray[Any]
    raw_scores: NDArray[np.floating[Any]]
    status: NDArray[np.str_]
    trees: NDArray[np.intp]
    fetched: Bools
    spent: NDArray[np.float64]
    sources: tuple[Any, ...]
    errors: tuple[FetchError, ...] = ()
    classes: NDArray[Any] | None = None
    decision_threshold: float = 0.0

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """The probability of each class, shape (N, K), in the order of `classes`; NaN for failed rows."""
        if self.classes is None:
            raise ValueError(
                "The classes are not known, so there are no probabilities. Use on_demand of a classifier, or pass "
                "classes= to OnDemandPredictor."
            )
        return class_probabilities(self.raw_scores)

    @property
    def predictions(self) -> NDArray[Any]:
        """The class of each row, None where it failed; without `classes` the raw scores, which are a regressor's."""
        if self.classes is None:
            return self.raw_scores
        scores, failed = self.raw_scores, self.status == FAILED
        above = (scores > self.decision_threshold).astype(np.intp)
        found = self.classes[above if scores.ndim == 1 else scores.argmax(axis=1)]
        if failed.any():
            found = found.astype(object)
            found[failed] = None
        return np.asarray(found)

    @property
    def complete(self) -> Bools:
        """Which rows have the score of the whole forest."""
        return np.asarray(self.status == FINISHED)

    def rows_fetched(self) -> dict[Any, int]:
        """Return for how many rows each source returned something."""
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
        Ids of the rows that it was called for.
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


def as_columns(returned: Any, own: Sequence[Any]) -> dict[Any, Any]:
    """Return what a source gave as columns by name.

    Parameters
    ----------
    returned : mapping, frame, array-like or None
        An array has one column for each of `own`, and may be one-dimensional if there is one; None is nothing.
    own : sequence
        The features that need this source and no other.

    Examples
    --------
    >>> as_columns([[1.0, 2.0]], ["a", "b"])["b"].tolist()
    [2.0]
    """
    if returned is None:
        return {}
    if not isinstance(returned, np.ndarray) and (isinstance(returned, Mapping) or is_frame(returned, "it")):
        return by_name(returned, "it")
    array = np.asanyarray(returned)
    if array.dtype.kind in "US" and not isinstance(returned, np.ndarray):
        array = np.asarray(returned, dtype=object)
    if array.ndim == 1 and len(own) == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] != len(own):
        raise ValueError(
            f"it returned an array of shape {array.shape}, where a column for each of {list(own)} belongs. Return a "
            "dict from feature to values to be explicit."
        )
    return {name: array[:, j] for j, name in enumerate(own)}


def by_name(given: Any, name: str) -> dict[Any, Any]:
    """Return the columns of a mapping or a frame by name.

    Examples
    --------
    >>> by_name({"a": [1.0]}, "free")
    {'a': [1.0]}
    """
    if isinstance(given, Mapping):
        return dict(given)
    return {column: given[column] for column in column_names(given, name) or given.columns}


def check_order(given: Any, ids: NDArray[Any], what: str) -> None:
    """Refuse values whose index, that of pandas, holds the row ids in another order; other indices say nothing.

    Examples
    --------
    >>> import pandas as pd
    >>> check_order(pd.Series([1.0, 2.0], index=[7, 3]), np.array([3, 7]), "it returned")
    Traceback (most recent call last):
    ...
    ValueError: it returned rows whose index has the ids in another order than asked for. Put them in that order, such
    as frame.loc[ids], or leave the index out by to_numpy() if they are.
    """
    for values in given.values() if isinstance(given, Mapping) else (given,):
        index = getattr(values, "index", None)
        if index is None or callable(index) or len(index) != len(ids):  # lists have a method of this name
            continue
        labels, asked = np.asarray(index).tolist(), ids.tolist()
        if labels != asked and set(labels) == set(asked):
            raise ValueError(
                f"{what} rows whose index has the ids in another order than asked for. Put them in that order, such "
                "as frame.loc[ids], or leave the index out by to_numpy() if they are."
            )


class Users(NamedTuple):
    """The features that need a source: those that need no other, and the positions of all by name."""

    own: list[Any]
    features: dict[Any, int]


def users_of_sources(costs: FeatureCosts) -> list[Users]:
    """Return the features that need each source.

    Examples
    --------
    >>> costs = FeatureCosts(needs={"a": ["draw"], "b": ["draw", "test"]}, prices={"draw": 1.0, "test": 2.0})
    >>> users_of_sources(costs)[0]
    Users(own=['a'], features={'a': 0, 'b': 1})
    """
    users = {source: Users([], {}) for source in costs.sources}
    for j, name in enumerate(costs.features):
        sources = costs.sources_of(name)
        for source in sources:
            users[source].features[name] = j
            if len(sources) == 1:
                users[source].own.append(name)
    return list(users.values())


@dataclass(eq=False)
class Batch:
    """The values of some rows as far as they are known.

    Parameters
    ----------
    ids : ndarray of shape (n,)
        Row ids, as sources get them.
    costs : FeatureCosts
        Bound to the columns of the forest.
    fetch : mapping from source to callable
        The sources.
    derive : mapping from feature to callable
        Features that are computed from what sources return.
    categories : mapping from position to tuple
        Categories of features, in the order of their codes: sources return them by name.
    unseen : {"error", "missing"}
        What to do with other categories.
    users : sequence of Users
        The features that need each source.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        Values, NaN where unknown.
    present : ndarray of bool of shape (n, d)
        Which values are there. They are known once all of their sources are paid.
    known : ndarray of bool of shape (n, d)
        Which values may be read.
    fetched : ndarray of bool of shape (n, n_sources)
        Which sources were called and did not raise.
    failed : ndarray of bool of shape (n,)
        Rows of calls that failed.
    errors : list of FetchError
        Those failures.
    """

    ids: NDArray[Any]
    costs: FeatureCosts
    fetch: Mapping[Any, Fetch]
    derive: Mapping[Any, Derive]
    categories: Mapping[int, tuple[Any, ...]]
    unseen: Unseen
    users: Sequence[Users]

    def __post_init__(self) -> None:
        n, d = len(self.ids), self.costs.n_features
        # Values come by columns, so these are what is contiguous.
        self.X = np.full((n, d), np.nan, order="F")
        self.present = np.zeros((n, d), dtype=bool, order="F")
        self.known = np.zeros((n, d), dtype=bool, order="F")
        self.fetched = np.zeros((n, len(self.costs.sources)), dtype=bool, order="F")
        self.failed = np.zeros(n, dtype=bool)
        self.errors: list[FetchError] = []
        self._extra: dict[Any, NDArray[Any]] = {}

    def at(self, rows: Rows) -> Rows | slice:
        """Return an index of some rows, in order: a slice if they are all, which copies nothing."""
        return slice(None) if rows.size == len(self.ids) else rows

    def give(self, feature: int, values: Any) -> None:
        """Set a feature that needs no source, for all rows."""
        self.X[:, feature] = values
        self.present[:, feature] = self.known[:, feature] = True

    def buy(self, source: int, rows: Rows) -> None:
        """Call a source for some rows, given by position; a failure marks these rows and is kept in :attr:`errors`.

        Rows that have failed before are left out: they get no score.
        """
        rows = rows[~self.failed[rows]] if self.errors else rows
        if rows.size == 0:
            return
        name, users = self.costs.sources[source], self.users[source]
        try:
            returned = self.fetch[name](self.ids[rows])
            self.fetched[:, source][self.at(rows)] = True  # what was delivered is paid, usable or not
            check_order(returned, self.ids[rows], "it returned")
            self._store(as_columns(returned, users.own), users.features, rows)
        except Exception as error:
            self._fail(error, name, f"Source {name!r}", rows)

    def complete(self, rows: Rows, wanted: NDArray[np.bool_]) -> None:
        """Make known what has all its sources now, deriving what is wanted.

        Parameters
        ----------
        rows : ndarray of int of shape (n_rows,)
            Positions of rows.
        wanted : ndarray of bool of shape (n_rows, d)
            Features that these rows need next. It is a failure if one has all its sources and still no value.
        """
        at = self.at(rows)
        paid = self.costs.covered(self.fetched[at])
        lacking = wanted & paid & ~self.present[at]
        for feature in np.flatnonzero(lacking.any(axis=0)):
            self._derive(int(feature), rows[lacking[:, feature] & ~self.failed[rows]])
        self.known[at] = paid & self.present[at]

    def _derive(self, feature: int, rows: Rows) -> None:
        """Compute a feature that no source returned."""
        name = self.costs.features[feature]
        if rows.size == 0:
            return
        if name in self.derive:
            try:
                self._store({name: self.derive[name](self._columns(rows))}, {name: feature}, rows)
            except Exception as error:
                self._fail(error, name, f"The callable that derives {name!r}", rows)
        else:
            sources = self.costs.sources_of(name)
            lacks = ValueError(f"none of its sources {list(sources)} returned it. Return it, or use derive=.")
            self._fail(lacks, sources[-1], f"The feature {name!r}", rows)

    def _store(self, columns: Mapping[Any, Any], features: Mapping[Any, int], rows: Rows) -> None:
        """Keep columns; those of features that do not need the source are left out, other names wait for `derive`."""
        for name, values in columns.items():
            if np.shape(values) != rows.shape:
                raise ValueError(f"{name!r} has shape {np.shape(values)} for {rows.size} rows.")
            if name in features:
                at, j = self.at(rows), features[name]
                self.X[:, j][at] = read_column(values, f"Column {name!r}", self.categories.get(j), self.unseen)
                self.present[:, j][at] = True
            elif name not in self.costs.features:
                array = np.asarray(values)
                exact = array.dtype.kind in "bf" or (array.dtype.kind in "iu" and np.abs(array).max(initial=0) <= 2**53)
                dtype = np.float64 if exact else object
                kept = self._extra.setdefault(name, np.full(len(self.ids), np.nan, dtype=dtype))
                if kept.dtype != dtype:  # other rows brought numbers, and these text, or the other way round
                    kept = self._extra[name] = kept.astype(object)
                kept[rows] = array

    def _columns(self, rows: Rows) -> dict[Any, NDArray[Any]]:
        """Return all values of some rows, by name; NaN where a source was not called, None for categories."""
        features = {
            name: self._named(rows, j) for j, name in enumerate(self.costs.features) if self.present[rows, j].any()
        }
        return features | {name: values[rows] for name, values in self._extra.items()}

    def _named(self, rows: Rows, feature: int) -> NDArray[Any]:
        """Return the values of a feature as sources return them: categories by name."""
        values = np.asarray(self.X[rows, feature])
        names = self.categories.get(feature)
        if names is None:
            return values
        named = np.array([*names, None], dtype=object)
        return np.asarray(named[np.where(np.isnan(values), -1, values).astype(np.intp)])

    def _fail(self, error: Exception, source: Any, who: str, rows: Rows) -> None:
        """Keep what a user's callable raised as a failure of these rows."""
        self.failed[rows] = True
        ids = self.ids[rows]
        failure = FetchError(f"{who} failed for {list_rows(ids)}: {type(error).__name__}: {error}", source, ids)
        failure.__cause__ = error
        self.errors.append(failure)
