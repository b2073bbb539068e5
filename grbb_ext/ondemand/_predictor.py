"""Prediction that buys features while it walks down the trees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from grbb_ext._reporting import progress
from grbb_ext.costs import FeatureCosts, shorten, unknown_name
from grbb_ext.forest import Forest, column_categories
from grbb_ext.ondemand._evaluation import Evaluation, Order, Unknown
from grbb_ext.ondemand._result import FetchError, OnDemandResult, StoppingRule, join, make_rule
from grbb_ext.ondemand._sources import Batch, Derive, Fetch, by_name
from grbb_ext.table import Schema, Unseen, is_frame, read_column, read_table


class OnDemandPredictor:
    r"""Predict with features that are fetched only for the rows whose paths need them.

    A row walks down all trees at once and stops where it does not know a feature; the sources of that feature are
    asked, and it walks on. Without a budget and an early exit the scores have the bits of the booster's, and the
    sources asked for a row are those that ``costs.per_row(forest, X)`` counts. No source is asked twice for a row.

    Parameters
    ----------
    forest : Forest
        The model.
    costs : FeatureCosts
        Which feature needs which sources, and their prices.
    fetch : mapping from source to callable
        ``fetch[source](row_ids)`` gets an array of row ids and returns what the source knows of these rows, in order:

        - a dict or DataFrame from feature (its name, or its index where the costs go by index) to values,
        - or an array with a column for each feature that needs this source alone, in the order of the model's columns,
        - or None, for a source that is only a fee, such as a blood draw.

        Values are numbers; NaN is a missing value, and categories are the codes that the model was trained on. A
        feature with several sources may be returned by any of them (the last one counts), and is used once all have
        been asked. Columns of features that do not need the source are ignored. Other names are kept for `derive`.
    derive : mapping from feature to callable, default=None
        ``derive[feature](columns)`` computes a feature once all of its sources have been asked. It gets a dict with all
        columns that are there for these rows, free features and other names that sources returned among them.
    budget_per_row : float or array-like of shape (N,), default=None
        The most to spend on a row. Features are then bought one after the other (see `order`), each if it fits. A row
        that can pay for nothing that it needs is answered from what is known, and its status is ``"budget"``.
    early_exit : {"decision"}, float or None, default=None
        ``"decision"`` stops a row when the leaves that it can still reach leave no doubt about the class: the class is
        that of the whole forest, always. A number stops a row once the probability of a class exceeds it after some
        trees (Cambazoglu et al. 2010, the paper's Early-exit): cheaper, but the class may differ.
    exit_every : int, default=10
        Trees (for each class) between two looks at the probability.
    decision_threshold : float, default=0
        The raw score above which ``"decision"`` counts a row as positive, with one output.
    unknown : {"mean", "missing"}, default="mean"
        How a walk that stands before an unknown feature counts in an estimate: with the mean of the leaves below, by
        training weight, or by going on as if all unknown values were missing, as the booster would.
    order : {"worth", "trees"}, default="worth"
        What to buy first where not all will be bought, with a budget or ``"decision"``: the feature before which the
        most uncertainty for its price waits (the distance between the largest and the smallest leaf below each walk
        that stands before it, added up), or the first one in the order of the trees.
    batch_size : int, default=16384
        Rows that are evaluated together. Every source is called at most a few times for each batch.
    on_error : {"raise", "return"}, default="raise"
        What to do when a source fails: in both cases all other rows are evaluated to the end. Then a
        :class:`FetchError` that holds the result is raised, or the result with its ``errors`` is returned.
    verbose : bool, default=True
        Draw a progress bar on what takes more than a few seconds.

    References
    ----------
    B. B. Cambazoglu et al., "Early exit optimizations for additive machine learned ranking systems", WSDM 2010.

    Examples
    --------
    >>> import lightgbm as lgb
    >>> import numpy as np
    >>> from grbb_ext import FeatureCosts, Forest, OnDemandPredictor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 3))
    >>> y = np.where(X[:, 0] > 0, X[:, 1], X[:, 2]) > 0
    >>> booster = lgb.train({"objective": "binary", "num_leaves": 4, "verbosity": -1}, lgb.Dataset(X, label=y), 1)
    >>> forest, costs = Forest.from_booster(booster), FeatureCosts([1.0, 5.0, 10.0])
    >>> fetch = {j: (lambda rows, j=j: X[rows, j]) for j in range(3)}
    >>> result = OnDemandPredictor(forest, costs, fetch).predict(np.arange(400))
    >>> bool((result.raw_scores == booster.predict(X, raw_score=True)).all())
    True
    >>> bool((result.spent == costs.per_row(forest, X)).all())
    True
    """

    def __init__(
        self,
        forest: Forest,
        costs: FeatureCosts,
        fetch: Mapping[Any, Fetch],
        *,
        derive: Mapping[Any, Derive] | None = None,
        budget_per_row: ArrayLike | None = None,
        early_exit: Literal["decision"] | float | None = None,
        exit_every: int = 10,
        decision_threshold: float = 0.0,
        unknown: Unknown = "mean",
        order: Order = "worth",
        batch_size: int = 16384,
        on_error: Literal["raise", "return"] = "raise",
        verbose: bool = True,
    ) -> None:
        if unknown not in ("mean", "missing"):
            raise ValueError(f"unknown must be 'mean' or 'missing', got {unknown!r}.")
        if order not in ("worth", "trees"):
            raise ValueError(f"order must be 'worth' or 'trees', got {order!r}.")
        if on_error not in ("raise", "return"):
            raise ValueError(f"on_error must be 'raise' or 'return', got {on_error!r}.")
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size!r}.")
        by_index = isinstance(costs.features[0], int) or forest.feature_names is None
        self.forest = forest
        self.costs = costs.bind(forest.n_features if by_index else list(forest.feature_names or ()))
        self.fetch, self.derive = dict(fetch), dict(derive or {})
        self.budget_per_row = budget_per_row
        self.rule: StoppingRule | None = make_rule(forest, early_exit, exit_every, decision_threshold)
        self.unknown, self.order = unknown, order
        self.batch_size, self.on_error, self.verbose = int(batch_size), on_error, verbose
        self._categories = column_categories(forest) or {}
        self._unseen: Unseen = "error" if forest.library == "xgboost" else "missing"
        self._check_callables()

    def predict(self, rows: ArrayLike, free: Any = None) -> OnDemandResult:
        """Predict rows and say what was spent on them.

        Parameters
        ----------
        rows : array-like of shape (N,)
            Row ids, each once: whatever the sources understand (numbers, text).
        free : mapping, frame or array-like of shape (N, d), default=None
            Features that need no source: columns by name, or an array with all columns of the model, of which only the
            free ones are read. Not needed where the forest uses none.

        Returns
        -------
        OnDemandResult
            Scores, status and bill of each row, in the order of `rows`.

        Raises
        ------
        FetchError
            If a source failed and ``on_error="raise"``. Its ``result`` holds all other rows.
        """
        ids = np.asarray(rows)
        n_batches = max(-(-ids.size // self.batch_size), 1)
        batches = progress(self.iterate(ids, free), n_batches, "predicting on demand", self.verbose)
        result = join(list(batches))
        if result.errors and self.on_error == "raise":
            first, *others = result.errors
            more = f" ({len(others)} more failures in .result.errors)" if others else ""
            failure = FetchError(f"{first}{more}", first.source, first.failed_rows)
            failure.result = result
            raise failure from first.__cause__
        return result

    def iterate(self, rows: ArrayLike, free: Any = None) -> Iterator[OnDemandResult]:
        """Yield the results of batches as they are ready, so that an interruption loses none; errors are not raised.

        Parameters
        ----------
        rows, free
            As for :meth:`predict`.

        Yields
        ------
        OnDemandResult
        """
        ids = np.asarray(rows)
        if ids.ndim != 1:
            raise ValueError(f"rows must be one-dimensional (row ids), got shape {ids.shape}.")
        if np.unique(ids).size != ids.size:
            raise ValueError("rows names a row twice, and a source would be paid twice for it. Pass each row id once.")
        given = self._read_free(free, ids.size)
        budget = self._read_budget(ids.size)
        for start in range(0, max(ids.size, 1), self.batch_size):
            part = slice(start, start + self.batch_size)
            batch = Batch(ids[part], self.costs, self.fetch, self.derive, self._categories, self._unseen)
            for feature, values in given.items():
                batch.give(feature, values[part])
            limit = None if budget is None else budget[part]
            evaluation = Evaluation(self.forest, batch, self.rule, limit, self.unknown, self.order)
            evaluation.run()
            yield self._result(batch, evaluation)

    def _result(self, batch: Batch, evaluation: Evaluation) -> OnDemandResult:
        return OnDemandResult(
            rows=batch.ids,
            raw_scores=evaluation.scores[:, 0] if self.forest.n_outputs == 1 else evaluation.scores,
            status=evaluation.status,
            trees=evaluation.trees,
            fetched=batch.fetched,
            spent=self.costs.spent(batch.fetched),
            sources=self.costs.sources,
            errors=tuple(batch.errors),
        )

    def _check_callables(self) -> None:
        """Refuse sources that are unknown or not there before anything is paid."""
        for name in self.fetch:
            if name not in self.costs.sources:
                raise ValueError(unknown_name(name, self.costs.sources, "source"))
        for name in self.derive:
            if name not in self.costs.features:
                raise ValueError(unknown_name(name, self.costs.features, "feature"))
        absent = [source for source in self.costs.paid_sources(self.forest) if source not in self.fetch]
        if absent:
            raise ValueError(f"The forest needs {shorten(absent)}: add a callable for each to fetch=.")
        for table, what in ((self.fetch, "fetch"), (self.derive, "derive")):
            for name, function in table.items():
                if not callable(function):
                    raise TypeError(f"{what}[{name!r}] must be a callable, got {function!r}.")

    def _read_free(self, free: Any, n: int) -> dict[int, NDArray[np.float64]]:
        """Return the features that need no source, by position."""
        needs_none = np.asarray(self.costs.needs.sum(axis=1)).ravel() == 0
        wanted = [int(j) for j in self.forest.features_used() if needs_none[j]]
        if not wanted:
            return {}
        names = [self.costs.features[j] for j in wanted]
        if free is None:
            raise ValueError(f"The forest uses {shorten(names)}, which need no source: pass them as free=.")
        if isinstance(free, Mapping) or is_frame(free, "free"):
            given = by_name(free)
            absent = [name for name in names if name not in given]
            if absent:
                raise ValueError(f"free lacks {shorten(absent)}, which the forest uses and no source returns.")
            columns = {
                j: read_column(given[name], f"Column {name!r} of free", self._categories.get(j), self._unseen)
                for j, name in zip(wanted, names, strict=True)
            }
        else:
            schema = Schema(tuple(self._categories), self._categories)
            table = read_table(free, schema=schema, unseen=self._unseen, name="free")
            if table.values.shape != (n, self.forest.n_features):
                raise ValueError(
                    f"free must have shape {(n, self.forest.n_features)} as an array (only its free columns are read), "
                    f"got {table.values.shape}. A dict with the free features alone will do, too."
                )
            array = table.values.toarray() if sp.issparse(table.values) else table.values
            columns = {j: array[:, j] for j in wanted}
        for j, column in columns.items():
            if column.shape != (n,):
                raise ValueError(f"free[{self.costs.features[j]!r}] has shape {column.shape} for {n} rows.")
        return columns

    def _read_budget(self, n: int) -> NDArray[np.float64] | None:
        if self.budget_per_row is None:
            return None
        budget = np.asarray(self.budget_per_row, dtype=np.float64)
        if budget.ndim > 1 or (budget.ndim == 1 and budget.size != n):
            raise ValueError(f"budget_per_row must be one number or one for each of {n} rows, got {budget.shape}.")
        if np.isnan(budget).any() or (budget < 0).any():
            raise ValueError("budget_per_row must be at least 0.")
        return np.broadcast_to(budget, (n,)).copy()
