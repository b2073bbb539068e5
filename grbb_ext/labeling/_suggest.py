"""Which rows to label next."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grbb_ext.labeling._frozen_posterior import FrozenPosterior, allowed_candidates
from grbb_ext.losses import SquaredErrorLoss
from grbb_ext.objective import GRBBObjective, check_raw_scores
from grbb_ext.propagation import Propagation, SmoothPropagation
from grbb_ext.table import prepare_columns
from grbb_ext.variance import curvatures, lam_in_use, prior_of

Strategy = Literal["a-optimal", "k-means", "uncertainty", "random"]
Index = NDArray[np.intp]

_N_GRAPH_COLUMNS = 32
_FULL_K_MEANS_UP_TO = 10_000


def most_uncertain(probability: NDArray[np.float64], candidates: Index, k: int) -> Index:
    """Return the k candidates whose two most probable classes are closest.

    Parameters
    ----------
    probability : ndarray of shape (N,) or (N, K)
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
    >>> most_uncertain(np.array([0.9, 0.4, 0.52, 0.0]), np.array([0, 1, 2, 3]), 2).tolist()
    [2, 1]
    """
    p = probability[candidates]
    if p.ndim == 1:
        margin = np.abs(2.0 * p - 1.0)
    else:
        top = np.partition(p, -2, axis=1)
        margin = top[:, -1] - top[:, -2]
    return candidates[np.argsort(margin, kind="stable")[:k]]


def graph_columns(propagation: Propagation, random: np.random.Generator) -> NDArray[np.float64]:
    r"""Return 32 numbers for each row whose distances are those of the graph, for want of the rows themselves.

    They are the row's entries of :math:`K \Omega`, with K the kernel of the smooth operator and :math:`\Omega` random
    normal: a random projection of the kernel's columns, each row divided by its length.

    Parameters
    ----------
    propagation : Propagation
        The operator; where it is not the smooth one, that of the same graph is made.
    random : numpy.random.Generator
        The source of the projection.

    Returns
    -------
    ndarray of shape (N, 32)
        Columns for k-means.
    """
    if not isinstance(propagation, SmoothPropagation):
        propagation = SmoothPropagation(propagation.W, propagation.labeled, verbose=propagation.verbose)
    projection = random.normal(size=(propagation.n_rows, _N_GRAPH_COLUMNS)).astype(np.float32)
    image = np.asarray(propagation.kernel_product(projection, rough=True), dtype=np.float64)
    length = np.linalg.norm(image, axis=1, keepdims=True)
    return np.asarray(image / np.where(length > 0, length, 1.0))


def spread_out(
    columns: NDArray[np.float64], labeled: Index, candidates: Index, k: int, random: np.random.Generator
) -> Index:
    """Return k candidates that stand for regions without a label (k-means).

    All rows are put into n + k clusters. Of the clusters without a labelled row, the largest come first, each with the
    candidate nearest to its centre; then, if they are fewer than k, the others.

    Parameters
    ----------
    columns : ndarray of shape (N, d)
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
    from sklearn.cluster import KMeans, MiniBatchKMeans

    n_clusters = min(labeled.size + k, columns.shape[0])
    kind = KMeans if columns.shape[0] <= _FULL_K_MEANS_UP_TO else MiniBatchKMeans
    found = kind(n_clusters, n_init=3, random_state=int(random.integers(2**31))).fit(columns)
    cluster = found.labels_
    size = np.bincount(cluster, minlength=n_clusters)
    covered = np.zeros(n_clusters, dtype=bool)
    covered[cluster[labeled]] = True
    distance = np.linalg.norm(columns[candidates] - found.cluster_centers_[cluster[candidates]], axis=1)
    nearest_first = candidates[np.argsort(distance, kind="stable")]
    # One row of each cluster in the order wanted, then a second of each, and so on.
    rank = np.zeros(columns.shape[0], dtype=np.intp)
    seen = np.zeros(n_clusters, dtype=np.intp)
    for row in nearest_first:
        rank[row] = seen[cluster[row]]
        seen[cluster[row]] += 1
    at = cluster[candidates]
    order = np.lexsort((candidates, -size[at], covered[at], rank[candidates]))
    return candidates[order[:k]]


_ALL_UP_TO = 3_000
_SAMPLE = 300


@dataclass(frozen=True)
class LabelSuggestions:
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
        Rows that were looked at.
    message : str
        What was left out, in sentences.
    """

    rows: NDArray[np.intp]
    expected_drop: NDArray[np.float64]
    strategy: str
    lam: float
    n_candidates: int
    message: str = field(repr=False)


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
        two most probable classes; or chance. The default had the best accuracy on average at 5, 10, 20 and 40 labels
        in the benchmark of ``docs/variance.md``, all the more so with `X`.
    X : array-like of shape (N, d) or None, default=None
        The rows, for ``"k-means"`` only. None clusters the graph instead, by a random projection of its kernel.
    lam : float or None, default=None
        Weight of the graph, as in :func:`grbb_ext.variance.prediction_variance`.
    n_candidates : int or None, default=None
        Rows that ``"a-optimal"`` looks at, each of which takes a solve. None is all of them up to 3,000 rows, and 300
        drawn at random beyond.
    random_state : int or numpy.random.Generator, default=0
        For the candidates, the first centres, and chance.

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
    """
    if strategy not in ("a-optimal", "k-means", "uncertainty", "random"):
        raise ValueError(f"strategy must be 'a-optimal', 'k-means', 'uncertainty' or 'random', got {strategy!r}.")
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ValueError(f"k must be a positive integer, got {k!r}.")
    if n_candidates is not None and n_candidates < k:
        raise ValueError(f"n_candidates must be at least k={k}, got {n_candidates!r}.")
    if lam is not None and not (np.isfinite(lam) and lam > 0):
        raise ValueError(f"lam must be a positive number or None, got {lam!r}.")
    if strategy == "uncertainty" and isinstance(obj.loss_, SquaredErrorLoss):
        raise ValueError("strategy='uncertainty' is about class probabilities. For squared error use 'a-optimal'.")
    prior = prior_of(obj)
    H = check_raw_scores(raw_scores, obj.n_rows_, obj.n_outputs_, single_precision=False)
    random = np.random.default_rng(random_state)
    everyone = allowed_candidates(prior.reachable, prior.labeled, obj.n_rows_, random)
    if everyone.size < k:
        raise ValueError(
            f"k={k} labels are wanted, but only {everyone.size} unlabelled rows are within reach of a label."
        )

    evidence, _ = lam_in_use(obj, prior, lam)
    all_rows = np.arange(obj.n_rows_)
    # The curvature that a label of weight 1 would have at each row.
    at_all = curvatures(H, all_rows, np.ones(obj.n_rows_), obj.loss_, "logistic")
    delta = curvatures(H, obj.labeled_, obj.labeled_weight_, obj.loss_, "logistic").delta

    message = ""
    if strategy == "a-optimal":
        most = n_candidates or (obj.n_rows_ if obj.n_rows_ <= _ALL_UP_TO else max(_SAMPLE, 2 * int(k)))
        candidates = allowed_candidates(prior.reachable, prior.labeled, most, random)
        if candidates.size < everyone.size:
            message = f"{candidates.size} of {everyone.size} unlabelled rows, drawn at random, were looked at. "
        n_looked_at = candidates.size
    else:
        if strategy == "random":
            candidates = random.choice(everyone, int(k), replace=False)
        elif strategy == "uncertainty":
            candidates = most_uncertain(np.asarray(obj.loss_.mean(H)), everyone, int(k))
        else:
            candidates = spread_out(_columns(obj, X, random), obj.labeled_, everyone, int(k), random)
        n_looked_at = everyone.size
    greedy = strategy == "a-optimal"
    looked_at = candidates if greedy else candidates[:0]
    posterior = FrozenPosterior(prior, delta, at_all.slope, at_all.delta, evidence.lam, looked_at)
    if greedy:
        candidates, drops = _greedy(posterior, int(k))
    else:
        drops = posterior.drops_in_order(candidates)
    n_unreachable = int((~prior.reachable).sum())
    if n_unreachable:
        message += f"{n_unreachable} rows in components without a label were left out: label one of each by hand."
    drops = evidence.noise_variance * drops
    return LabelSuggestions(candidates, drops, strategy, evidence.lam, n_looked_at, message.strip())


def _greedy(posterior: FrozenPosterior, k: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Label the candidate with the largest drop, k times."""
    chosen: list[int] = []
    drops = []
    for _ in range(k):
        drop = posterior.drop
        drop[chosen] = -np.inf
        chosen.append(int(np.argmax(drop)))
        drops.append(posterior.label(chosen[-1]))
    return posterior.candidates[chosen], np.array(drops)


def _columns(obj: GRBBObjective, X: Any, random: np.random.Generator) -> NDArray[np.float64]:
    """Return what k-means works on: the rows, scaled as for the graph, or the graph."""
    if X is None:
        assert obj.propagation_ is not None
        return graph_columns(obj.propagation_, random)
    columns = np.asarray(prepare_columns(X, "auto"), dtype=np.float64)
    if columns.shape[0] != obj.n_rows_:
        raise ValueError(f"X has {columns.shape[0]} rows but the objective has {obj.n_rows_}: they must match.")
    return columns
