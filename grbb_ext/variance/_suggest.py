"""Which rows to label next."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.preprocessing import normalize

from grbb_ext._options import one_of, positive_int
from grbb_ext._show import Shown, small_number
from grbb_ext.losses import SquaredErrorLoss, class_probabilities
from grbb_ext.objective import GRBBObjective
from grbb_ext.propagation import Smooth, SmoothPropagation
from grbb_ext.table import DistanceSpace, read_table
from grbb_ext.variance._information import SMALLEST, curvatures, lam_in_use, prior_of
from grbb_ext.variance._posterior import FrozenPosterior
from grbb_ext.variance._prior import Array, Index

Strategy = Literal["a-optimal", "k-means", "uncertainty", "random"]

_N_GRAPH_COLUMNS = 32
_FULL_K_MEANS_UP_TO = 10_000
_ALL_UP_TO = 3_000
_SAMPLE = 300


def most_uncertain(probability: Array, candidates: Index, k: int) -> Index:
    """Return the k candidates whose two most probable classes are closest.

    Parameters
    ----------
    probability : ndarray of shape (N, K)
        Class probabilities.
    candidates : ndarray of int
        Rows to choose from.
    k : int
        How many.

    Returns
    -------
    ndarray of int
        The rows, the most uncertain first.

    Examples
    --------
    >>> p = np.array([0.9, 0.4, 0.52, 0.0])
    >>> most_uncertain(np.column_stack([1 - p, p]), np.array([0, 1, 2, 3]), 2).tolist()
    [2, 1]
    """
    top = np.partition(probability[candidates], -2, axis=1)
    return candidates[np.argsort(top[:, -1] - top[:, -2], kind="stable")[:k]]


def cluster_columns(obj: GRBBObjective, X: Any, random: np.random.Generator) -> Any:
    r"""Return what k-means works on: the rows, scaled as for the graph, or 32 columns made from the graph.

    Where the rows are not given, a row has its entries of :math:`K \Omega`, with K the kernel of the smooth operator
    and :math:`\Omega` random normal: a random projection of the kernel's columns, each row divided by its length.

    Parameters
    ----------
    obj : GRBBObjective
        The objective. Where its operator is not the smooth one, that of the same graph is made.
    X : array-like, sparse matrix, frame or None
        The rows.
    random : numpy.random.Generator
        The source of the projection.

    Returns
    -------
    ndarray or csr_array of shape (N, d)
        The columns.
    """
    if X is not None:
        table = read_table(X)
        if table.n_rows != obj.n_rows_:
            raise ValueError(f"X has {table.n_rows} rows but the objective has {obj.n_rows_}: they must match.")
        return DistanceSpace.fit(table)(table).astype(np.float64)
    operator = obj.propagation_
    assert operator is not None
    if not isinstance(operator, SmoothPropagation):
        operator = SmoothPropagation(operator.W, operator.labeled, Smooth(), verbose=operator.verbose)
    projection = random.normal(size=(obj.n_rows_, _N_GRAPH_COLUMNS)).astype(np.float32)
    return normalize(operator.kernel_product(projection, rough=True).astype(np.float64))


def spread_out(columns: Any, labeled: Index, candidates: Index, k: int, random: np.random.Generator) -> Index:
    """Return k candidates from regions without a label (k-means).

    All rows are put into n + k clusters. Of the clusters without a labelled row, the largest come first, each with the
    candidate nearest to its centre; then, if they are fewer than k, the others.

    Parameters
    ----------
    columns : ndarray or csr_array of shape (N, d)
        All rows, in comparable units.
    labeled, candidates : ndarray of int
        Labelled rows, and rows to choose from.
    k : int
        How many.
    random : numpy.random.Generator
        The source of the first centres.

    Returns
    -------
    ndarray of int
        The rows, the largest cluster first.

    Examples
    --------
    >>> X = np.array([[0.0], [0.1], [5.0], [5.1], [5.2], [9.0]])
    >>> spread_out(X, np.array([0]), np.array([1, 2, 3, 4, 5]), 2, np.random.default_rng(0)).tolist()
    [3, 5]
    """
    n_clusters = min(labeled.size + k, columns.shape[0])
    kind = KMeans if columns.shape[0] <= _FULL_K_MEANS_UP_TO else MiniBatchKMeans
    found = kind(n_clusters, n_init=3, random_state=int(random.integers(2**31))).fit(columns)
    cluster, at = found.labels_, found.labels_[candidates]
    size = np.bincount(cluster, minlength=n_clusters)
    covered = np.isin(at, cluster[labeled])
    distance = np.linalg.norm(columns[candidates] - found.cluster_centers_[at], axis=1)
    # One row of each cluster in the order wanted, then a second of each, and so on.
    nearest_first = np.lexsort((distance, at))
    rank = np.empty_like(nearest_first)
    rank[nearest_first] = np.arange(at.size) - np.searchsorted(at[nearest_first], at[nearest_first])
    return candidates[np.lexsort((candidates, -size[at], covered, rank))[:k]]


@dataclass(frozen=True)
class LabelSuggestions(Shown):
    """Rows to label, in order.

    Attributes
    ----------
    rows : ndarray of int of shape (k,)
        The rows, the most useful first.
    expected_drop : ndarray of shape (k,)
        By how much each label lowers the mean posterior variance (``kind="fisher"``), after those before it, with the
        scores frozen.
    strategy : str
        How they were chosen.
    lam : float
        Weight of the graph that was used.
    n_candidates : int
        Rows that were considered.
    message : str
        Notes on rows that were left out.
    """

    rows: Index
    expected_drop: Array
    strategy: str
    lam: float
    n_candidates: int
    message: str = field(repr=False)

    def _table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]], str]:
        lines: list[tuple[str, ...]] = [
            (str(place), str(row), small_number(drop))
            for place, (row, drop) in enumerate(zip(self.rows.tolist(), self.expected_drop, strict=True), start=1)
        ]
        below = f"Chosen by {self.strategy!r} among {self.n_candidates} unlabelled rows. {self.message}".strip()
        return ("order", "row", "lowers the mean variance by"), lines, below


def suggest_labels(
    obj: GRBBObjective,
    raw_scores: ArrayLike,
    k: int,
    strategy: Strategy = "k-means",
    *,
    X: Any = None,
    lam: float | None = None,
    n_candidates: int | None = None,
    random_state: int | np.random.Generator = 0,
) -> LabelSuggestions:
    r"""Suggest a batch of rows to label next.

    ``"a-optimal"`` is greedy: with c the column of row j in the posterior covariance :math:`I^{-1}` it takes the row
    with the largest drop :math:`\frac{1}{N} \Delta_j\, c^T V c / (1 + \Delta_j c_j)` of the mean variance, updates the
    covariance as if the row had been labelled, and goes on. The scores stay frozen, so no booster is needed.

    Parameters
    ----------
    obj : GRBBObjective
        The objective; any rule but ``"labeled"``.
    raw_scores : array-like of shape (N,) or (N, K)
        Raw scores of the trained booster on all rows.
    k : int
        Labels to buy.
    strategy : {"a-optimal", "k-means", "uncertainty", "random"}, default="k-means"
        Largest drop of the variance; a row in the middle of each cluster without a label; smallest margin between the
        two most probable classes; or random rows. The default had the best mean accuracy in our benchmark, in
        particular with `X`.
    X : array-like, sparse matrix, frame or None, default=None
        The rows, for ``"k-means"`` only; categories become one-hot columns. None clusters the graph instead, by a
        random projection of its kernel.
    lam : float or None, default=None
        Weight of the graph, as in :func:`prediction_variance`.
    n_candidates : int or None, default=None
        Rows that ``"a-optimal"`` looks at, each of which takes a solve. None is all of them up to 3,000 rows, and 300
        drawn at random beyond.
    random_state : int or numpy.random.Generator, default=0
        Seed of candidates, first centres and random rows.

    Returns
    -------
    LabelSuggestions
        Rows and expected drops.

    Notes
    -----
    Rows in a component without a label have no finite variance and are not suggested; the message counts them. Memory
    is of the order N (n + k).

    Examples
    --------
    A path of seven rows with its left end labelled: the next label goes to the far side.

    >>> import numpy as np
    >>> from grbb_ext import grbb_objective
    >>> path = np.diag(np.ones(6), 1) + np.diag(np.ones(6), -1)
    >>> obj = grbb_objective(None, [0, 1, -1, -1, -1, -1, -1], graph=path, propagation="harmonic")
    >>> suggested = suggest_labels(obj, np.zeros(7), 2, "a-optimal", lam=1.0)
    >>> suggested.rows.tolist(), suggested.expected_drop.round(3).tolist()
    ([5, 6], [0.123, 0.033])
    >>> print(suggested)
    order  row  lowers the mean variance by
        1    5                         0.12
        2    6                        0.033
    Chosen by 'a-optimal' among 5 unlabelled rows.
    """
    one_of(strategy, get_args(Strategy), "strategy")
    k = positive_int(k, "k")
    if n_candidates is not None and positive_int(n_candidates, "n_candidates") < k:
        raise ValueError(f"n_candidates must be at least k={k}, got {n_candidates!r}.")
    if strategy == "uncertainty" and isinstance(obj.loss_, SquaredErrorLoss):
        raise ValueError("strategy='uncertainty' is about class probabilities. For squared error use 'a-optimal'.")
    prior = prior_of(obj)
    found = curvatures(obj, raw_scores)
    chosen, _ = lam_in_use(obj, lam)
    random = np.random.default_rng(random_state)
    everyone = np.setdiff1d(np.flatnonzero(prior.reachable), prior.labeled)
    if everyone.size < k:
        raise ValueError(
            f"k={k} labels are wanted, but only {everyone.size} unlabelled rows are within reach of a label."
        )

    # The slope is also the curvature that a label of weight 1 would have at each row. Its class, and so the weight of
    # that class, is not known.
    weight = np.ones(obj.n_rows_) if obj.sample_weight_ is None else obj.sample_weight_
    added = np.maximum(weight[:, None] * found.slope, SMALLEST)
    posterior = partial(FrozenPosterior, prior, found.delta, found.slope, added, chosen.lam)
    looked_at = everyone
    if strategy == "a-optimal":
        most = n_candidates or (obj.n_rows_ if obj.n_rows_ <= _ALL_UP_TO else max(_SAMPLE, 2 * k))
        if everyone.size > most:
            looked_at = np.sort(random.choice(everyone, most, replace=False))
        rows, drops = _greedy(posterior(looked_at), k)
    else:
        if strategy == "random":
            rows = random.choice(everyone, k, replace=False)
        elif strategy == "uncertainty":
            rows = most_uncertain(class_probabilities(raw_scores), everyone, k)
        else:
            rows = spread_out(cluster_columns(obj, X, random), obj.labeled_, everyone, k, random)
        drops = posterior(rows[:0]).drops_in_order(rows)
    message = ""
    if looked_at.size < everyone.size:
        message = f"{looked_at.size} of {everyone.size} unlabelled rows, drawn at random, were looked at. "
    n_unreachable = int((~prior.reachable).sum())
    if n_unreachable:
        message += f"{n_unreachable} rows in components without a label were left out: label one of each by hand."
    return LabelSuggestions(rows, chosen.noise_variance * drops, strategy, chosen.lam, looked_at.size, message.strip())


def _greedy(posterior: FrozenPosterior, k: int) -> tuple[Index, Array]:
    """Label the candidate with the largest drop, k times."""
    chosen: list[int] = []
    drops = []
    for _ in range(k):
        drop = posterior.drop
        drop[chosen] = -np.inf
        chosen.append(int(np.argmax(drop)))
        drops.append(posterior.label(chosen[-1]))
    return posterior.candidates[chosen], np.array(drops)
