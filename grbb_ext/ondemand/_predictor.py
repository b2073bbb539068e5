"""Prediction that fetches, and pays for, the features that the trees reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from grbb_ext._options import one_of, positive_int
from grbb_ext._progress import progress
from grbb_ext.costs import FeatureCosts, shorten, unknown_name
from grbb_ext.forest import Forest, filled
from grbb_ext.ondemand._batch import (
    Batch,
    Derive,
    Fetch,
    FetchError,
    OnDemandResult,
    by_name,
    check_order,
    users_of_sources,
)
from grbb_ext.ondemand._evaluation import Evaluation
from grbb_ext.table import Schema, Unseen, column_names, is_frame, read_column, read_table


@dataclass(eq=False, repr=False)
class OnDemandPredictor:
    r"""Predict with features that are fetched only for the rows whose paths need them.

    Each row descends all trees at once. Where a split needs a feature that has not been fetched, the row stops; the
    sources of that feature are called, and the row continues. Without a budget and an early exit the scores are
    bit-equal to the booster's, and what is spent on a row is ``costs.per_row(forest, X)``. No source is called twice
    for a row.

    Parameters
    ----------
    forest : Forest
        The model.
    costs : FeatureCosts
        Which feature needs which sources, and their prices.
    fetch : mapping from source to callable
        ``fetch[source](row_ids)`` gets an array of row ids and returns the values of these rows, in order:

        - a dict or DataFrame from feature (its name, or its index where the costs go by index) to values,
        - or an array with a column for each feature that needs this source alone, in the order of the model's columns,
        - or None, for a source that is only a fee, such as a blood draw.

        Values are numbers, NaN where missing, or categories by name, as in the frame that the model was trained on;
        codes only where no names are known. A feature with several sources may be returned by any of them (the last
        one counts), and is used once all have been called. Columns of features that do not need the source are ignored.
        Other names are kept for `derive`.
    derive : mapping from feature to callable, default=None
        ``derive[feature](columns)`` computes a feature once all of its sources have been called. It gets a dict with
        all columns of these rows so far, free features and other names that sources returned among them.
    budget_per_row : float or array-like of shape (N,), default=None
        The most to spend on a row; the total never exceeds it. Features are then bought one after the other (see
        `order`), each if it fits. When no feature that a row needs is affordable, its score is estimated from what has
        been fetched, and its status is ``"budget"``.
    early_exit : {"decision"}, float or None, default=None
        ``"decision"`` stops a row when all leaves that it can still reach give the same class: the class is always that
        of the whole forest. A number stops a row once the probability of a class exceeds it after some trees
        (Cambazoglu et al. 2010, the paper's Early-exit): cheaper, but the class may differ.
    exit_every : int, default=10
        Trees (for each class) between two checks of the probability.
    decision_threshold : float, default=0
        The raw score above which ``"decision"`` counts a row as positive, with one output.
    unknown : {"mean", "missing"}, default="mean"
        What a tree that stopped at an unknown feature adds to an estimate: the mean of the leaves below, weighted by
        training rows, or the leaf that the booster reaches when all unknown values are missing.
    order : {"worth", "trees"}, default="worth"
        What to buy first where not all will be bought, with a budget or ``"decision"``: the feature that removes the
        most uncertainty for its price (the difference between the largest and the smallest leaf below, summed over the
        trees that stopped at it), or the first one in the order of the trees.
    batch_size : int, default=16384
        Rows that are evaluated together. Every source is called at most a few times for each batch.
    on_error : {"raise", "return"}, default="raise"
        What to do when a source fails: in both cases all other rows are evaluated to the end. Then a
        :class:`FetchError` that holds the result is raised, or the result with its ``errors`` is returned.
    categories : mapping from feature to sequence, default=None
        Categories of columns in the order of their codes, ``{}`` where sources return codes. None takes those that the
        forest has, and is refused where it does not tell whose they are (``forest.category_lists``).
    classes : array-like of shape (K,), default=None
        The classes of the model, for ``predictions`` and ``probabilities`` of the result. Refused, as a probability is
        as `early_exit`, where probabilities are not the logistic function or the softmax of raw scores.
        :meth:`GRBBClassifier.on_demand <grbb_ext.estimators.GRBBClassifier.on_demand>` passes both.
    verbose : bool, default=True
        Draw a progress bar if prediction takes more than a few seconds.

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

    forest: Forest
    costs: FeatureCosts
    fetch: Mapping[Any, Fetch]
    _: KW_ONLY
    derive: Mapping[Any, Derive] | None = None
    budget_per_row: ArrayLike | None = None
    early_exit: Literal["decision"] | float | None = None
    exit_every: int = 10
    decision_threshold: float = 0.0
    unknown: Literal["mean", "missing"] = "mean"
    order: Literal["worth", "trees"] = "worth"
    batch_size: int = 16384
    on_error: Literal["raise", "return"] = "raise"
    categories: Mapping[Any, Sequence[Any]] | None = None
    classes: ArrayLike | None = None
    verbose: bool = True

    def __post_init__(self) -> None:
        one_of(self.unknown, ("mean", "missing"), "unknown")
        one_of(self.order, ("worth", "trees"), "order")
        one_of(self.on_error, ("raise", "return"), "on_error")
        early = self.early_exit
        if not (early in (None, "decision") or (not isinstance(early, str) and 0 < float(early) < 1)):
            raise ValueError(f"early_exit must be 'decision', a probability between 0 and 1 or None, got {early!r}.")
        self.exit_every = positive_int(self.exit_every, "exit_every")
        self.batch_size = positive_int(self.batch_size, "batch_size")
        self.costs = self.costs.bind(self.forest)
        self._users = users_of_sources(self.costs)
        if not isinstance(self.fetch, Mapping):
            raise TypeError(f"fetch must be a dict from source to callable, got {self.fetch!r}.")
        self.fetch, self._derive = dict(self.fetch), dict(self.derive or {})
        no_source = np.flatnonzero(self.costs.covered(np.zeros(len(self.costs.sources), dtype=bool)))
        derived = [j for j, name in enumerate(self.costs.features) if name in self._derive]
        self._free = np.setdiff1d(np.intersect1d(self.forest.features_used(), no_source), derived).tolist()
        # What derives a feature may read free ones that no tree does.
        self._read = no_source.tolist() if self._derive else self._free
        self._categories = self._read_categories()
        self._classes = None if self.classes is None else np.asarray(self.classes)
        if self._classes is not None and self._classes.size != max(self.forest.n_outputs, 2):
            raise ValueError(
                f"classes has {self._classes.size} entries, but the forest has {self.forest.n_outputs} outputs. Pass "
                "those of the model, in the order of its scores."
            )
        link, by_probability = _other_link(self.forest), early not in (None, "decision")
        if (link and by_probability) or ((link or self.forest.averaged) and self.classes is not None):
            raise ValueError(
                f"The probabilities of this model ({link or 'averaged trees'}) are not the logistic function or the "
                "softmax of its raw scores. Leave classes= and a probability as early_exit= out. If a callable trained "
                "it, name its loss: dataclasses.replace(forest, objective='binary:logitraw')."
            )
        self._read_budget(None)
        self._unseen: Unseen = "error" if self.forest.library == "xgboost" else "missing"
        self._check_callables()

    def predict(self, rows: ArrayLike, free: Any = None) -> OnDemandResult:
        """Predict rows, and return what was spent on them.

        Parameters
        ----------
        rows : array-like of shape (N,)
            Row ids, each once: numbers or text that the sources accept.
        free : mapping, frame or array-like of shape (N, d), default=None
            Features that need no source: columns by name, or rows with all columns of the model, as for its
            prediction, of which only the free ones are read, in the order of `rows`. Not needed where the forest uses
            none.

        Returns
        -------
        OnDemandResult
            Scores, status and cost of each row, in the order of `rows`.

        Raises
        ------
        FetchError
            If a source failed and ``on_error="raise"``. Its ``result`` holds all other rows.
        """
        ids = np.asarray(rows)
        n_batches = max(-(-ids.size // self.batch_size), 1)
        batches = list(progress(self.iterate(ids, free), n_batches, "predicting on demand", self.verbose))
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(batch, name) for batch in batches])
            for name in ("rows", "raw_scores", "status", "trees", "fetched", "spent")
        }
        errors = tuple(error for batch in batches for error in batch.errors)
        result = replace(batches[0], **joined, errors=errors)
        if result.errors and self.on_error == "raise":
            first, *others = result.errors
            more = f" ({len(others)} more failures in .result.errors)" if others else ""
            failure = FetchError(f"{first}{more}", first.source, first.failed_rows)
            failure.result = result
            raise failure from first.__cause__
        return result

    def iterate(self, rows: ArrayLike, free: Any = None) -> Iterator[OnDemandResult]:
        """Yield the results of batches as they are ready, so that an interruption loses none. Errors are not raised.

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
        if len(set(ids.tolist())) != ids.size:
            raise ValueError("rows names a row twice, and a source would be paid twice for it. Pass each row id once.")
        given = self._read_free(free, ids)
        check_order(self.budget_per_row, ids, "budget_per_row has")
        budget = self._read_budget(ids.size)
        for start in range(0, max(ids.size, 1), self.batch_size):
            part = slice(start, start + self.batch_size)
            batch = Batch(ids[part], self.costs, self.fetch, self._derive, self._categories, self._unseen, self._users)
            for feature, values in given.items():
                batch.give(feature, values[part])
            evaluation = Evaluation(self, batch, None if budget is None else budget[part])
            evaluation.run()
            yield OnDemandResult(
                rows=batch.ids,
                raw_scores=evaluation.scores[:, 0] if self.forest.n_outputs == 1 else evaluation.scores,
                status=evaluation.status,
                trees=evaluation.trees,
                fetched=batch.fetched,
                spent=self.costs.spent(batch.fetched),
                sources=self.costs.sources,
                errors=tuple(batch.errors),
                classes=self._classes,
                decision_threshold=self.decision_threshold,
            )

    def _read_categories(self) -> dict[int, tuple[Any, ...]]:
        """Return the categories by position of the column."""
        if self.categories is None:
            known = self.forest.categories
            if self.forest.category_lists or any(known.get(j) == () for j in self.forest.features_used()):
                raise ValueError(
                    "The model does not tell which names the categories of each column have. Pass categories=, a dict "
                    "from feature to its categories in the order of their codes, such as {name: "
                    "train[name].cat.categories for name in train.select_dtypes('category')} of the training frame."
                )
            return dict(known)
        place = {name: j for j, name in enumerate(self.costs.features)}
        for name in self.categories:
            if name not in place:
                raise ValueError(unknown_name(name, self.costs.features, "feature"))
        return {place[name]: tuple(listed) for name, listed in self.categories.items()}

    def _check_callables(self) -> None:
        """Refuse unknown and missing sources before anything is paid."""
        for option, callables, known, what in (
            ("fetch", self.fetch, self.costs.sources, "source"),
            ("derive", self._derive, self.costs.features, "feature"),
        ):
            for name, function in callables.items():
                if name not in known:
                    raise ValueError(unknown_name(name, known, what))
                if not callable(function):
                    raise TypeError(f"{option}[{name!r}] must be a callable, got {function!r}.")
        absent = [source for source in self.costs.paid_sources(self.forest) if source not in self.fetch]
        if absent:
            raise ValueError(f"The forest needs {shorten(absent)}: add a callable for each to fetch=.")

    def _read_free(self, free: Any, ids: NDArray[Any]) -> dict[int, NDArray[np.float64]]:
        """Return the features that need no source, by position."""
        n, names = ids.size, [self.costs.features[j] for j in self._free]
        if not self._read or (free is None and not names):
            return {}
        if free is None:
            raise ValueError(f"The forest uses {shorten(names)}, which need no source: pass them as free=.")
        check_order(free, ids, "free has")
        # Labels that are numbers are no names: such a frame is read by position, as in fit.
        has_names = isinstance(free, Mapping) or (is_frame(free, "free") and column_names(free, "free"))
        given = by_name(free, "free") if has_names else {}
        absent = [name for name in names if name not in given]
        if has_names and not absent:
            columns = {
                j: read_column(given[name], f"Column {name!r} of free", self._categories.get(j), self._unseen)
                for j in self._read
                if (name := self.costs.features[j]) in given
            }
        elif isinstance(free, Mapping) or (given and len(given) != self.forest.n_features):
            raise ValueError(f"free lacks {shorten(absent)}, which the forest uses and no source returns.")
        else:
            schema = Schema(tuple(self._categories), self._categories, self.forest.feature_names if given else None)
            table = read_table(free, schema=schema, unseen=self._unseen, name="free")
            if table.values.shape != (n, self.forest.n_features):
                raise ValueError(
                    f"free must have shape {(n, self.forest.n_features)} as an array (only its free columns are read), "
                    f"got {table.values.shape}. A dict with the free features alone is accepted, too."
                )
            array = filled(self.forest, table.values) if sp.issparse(table.values) else table.values
            columns = {j: array[:, j] for j in self._read}
        for j, column in columns.items():
            if column.shape != (n,):
                raise ValueError(f"free[{self.costs.features[j]!r}] has shape {column.shape} for {n} rows.")
        return columns

    def _read_budget(self, n: int | None) -> NDArray[np.float64] | None:
        """Return the budget of each row; before predict their number is not known (None)."""
        if self.budget_per_row is None:
            return None
        try:
            budget = np.asarray(self.budget_per_row)
            # Single precision is read as prices are: 0.7 is not 0.69999999.
            budget = (budget.astype(str) if budget.dtype in (np.float16, np.float32) else budget).astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"budget_per_row must be numbers, got {self.budget_per_row!r}.") from error
        if not (budget >= 0).all():
            raise ValueError("budget_per_row must be at least 0.")
        if budget.ndim > 1 or (n is not None and budget.shape not in ((), (n,))):
            rows = "each row" if n is None else f"each of {n} rows"
            raise ValueError(f"budget_per_row must be one number or one for {rows}, got {budget.shape}.")
        return np.broadcast_to(budget, budget.shape if n is None else (n,)).copy()


def _other_link(forest: Forest) -> str:
    """Return the loss of a model whose probabilities come neither by the logistic function nor by a softmax."""
    name, _, settings = forest.objective.partition(" ")
    scaled = any(word.startswith("sigmoid:") and float(word[8:]) != 1 for word in settings.split())
    return forest.objective if name not in _OWN_LINK or scaled else ""


# Callables of LightGBM and Forest.from_trees leave no name.
_OWN_LINK = {
    "", "binary", "cross_entropy", "multiclass", "xentropy",
    "binary:logistic", "binary:logitraw", "multi:softmax", "multi:softprob", "reg:logistic",
}  # fmt: skip
