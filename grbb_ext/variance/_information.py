"""The information of the labels about the scores: their curvature, and lam by their marginal likelihood."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_solve
from scipy.optimize import minimize_scalar
from scipy.special import expit

from grbb_ext._options import positive_number
from grbb_ext.losses import Loss, SquaredErrorLoss
from grbb_ext.objective import GRBBObjective, check_raw_scores
from grbb_ext.propagation import HarmonicPropagation, SmoothPropagation
from grbb_ext.variance._prior import (
    Array,
    GraphPrior,
    Index,
    KernelPrior,
    LaplacianPrior,
    information_factor,
    scaled_factor,
)

Curvature = Literal["logistic", "paper"]

# The curvature at a score of 28: below it a label adds next to nothing, and the information must stay positive.
SMALLEST = 1e-12


class Curvatures(NamedTuple):
    """Curvatures and slopes, one column per output.

    Attributes
    ----------
    delta : ndarray of shape (n, K)
        Curvature of the weighted loss on labelled rows, the diagonal of Delta.
    middle : ndarray of shape (n, K)
        Variance of the labelled gradient, the diagonal between the slices of the sandwich. Equal to delta where all
        weights are 1.
    slope : ndarray of shape (N, K)
        Derivative of the prediction with respect to the score.
    """

    delta: Array
    middle: Array
    slope: Array


def curvatures(obj: GRBBObjective, raw_scores: ArrayLike, curvature: Curvature = "logistic") -> Curvatures:
    r"""Evaluate curvatures and slopes at the raw scores.

    .. math:: \Delta_i = w_i\, p_i (1 - p_i) \text{ (logistic) or } w_i\, p_i^2 (1 - p_i) \text{ (paper)}, \qquad
       \frac{\partial p}{\partial H} = p (1 - p).

    The second is printed below eq. 14 of the paper. It is not the curvature of the logistic loss: it changes when the
    two classes swap names. With K classes each is taken against the rest, :math:`p_k (1 - p_k)`; for squared error
    :math:`\Delta_i = w_i` and the slope is 1.

    Parameters
    ----------
    obj : GRBBObjective
        The loss, the labelled rows and their weights.
    raw_scores : array-like of shape (N,) or (N, K)
        Raw scores on all rows.
    curvature : {"logistic", "paper"}, default="logistic"
        The formula.

    Returns
    -------
    Curvatures
        With K columns, 1 for a single score per row.

    Examples
    --------
    >>> from grbb_ext import grbb_objective
    >>> obj = grbb_objective(None, [0, 1, -1], graph=[[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> found = curvatures(obj, np.zeros(3), "paper")
    >>> found.delta.tolist(), found.slope.tolist()
    ([[0.125], [0.125]], [[0.25], [0.25], [0.25]])
    """
    H = check_raw_scores(raw_scores, obj.n_rows_, obj.n_outputs_, single_precision=False)
    p = np.asarray(obj.loss_.mean(H), dtype=np.float64).reshape(obj.n_rows_, -1)
    is_number = isinstance(obj.loss_, SquaredErrorLoss)
    slope = np.ones_like(p) if is_number else p * (1.0 - p)
    unweighted = slope[obj.labeled_]
    if curvature == "paper" and not is_number:
        unweighted *= p[obj.labeled_]
    w = obj.labeled_weight_[:, None]
    return Curvatures(np.maximum(w * unweighted, SMALLEST), w**2 * unweighted, slope)


# In units of the lam at which scores have a prior standard deviation of 1: from a deviation of 5 logits, to which
# labels that the graph separates without error always lead, down to one of 0.05.
_LOWEST, _HIGHEST = 0.04, 400.0
_GRID = 9
_MOST_ROWS = 1_000
_MOST_CLASSES = 30
_NEWTON_STEPS = 100


class MarginalLikelihood(NamedTuple):
    """The marginal likelihood of the labels at one lam, or at the lam where it is largest.

    Attributes
    ----------
    lam : float
        The weight of the prior.
    log_likelihood : float
        Log of the probability of the labels at that lam; NaN where it was not needed.
    at_bound : bool
        Whether the search ended at an end of its range, i.e. the labels do not determine lam.
    noise_variance : float
        Variance of the labels about the scores, for squared error; 1 otherwise.
    """

    lam: float
    log_likelihood: float
    at_bound: bool
    noise_variance: float


def choose_lam(
    prior: GraphPrior, targets: Array, weight: Array, loss: Loss, lam: float | None = None
) -> MarginalLikelihood:
    r"""Choose lam by the marginal likelihood of the labels, which does not depend on any booster.

    For classes it is the Laplace approximation of Gaussian-process classification [1]_,

    .. math:: \log p(y \mid \lambda) \approx \log p(y \mid \hat f) - \tfrac12 \hat f^T K_\lambda^{-1} \hat f -
       \tfrac12 \log |I + \Delta^{1/2} K_\lambda \Delta^{1/2}|,

    with :math:`K_\lambda` the prior covariance of the labelled scores and :math:`\hat f` the mode; with K classes the
    sum over each class against the rest. For squared error it is the restricted likelihood with the noise variance
    profiled out.

    Each class takes several factorisations of an n x n matrix for each lam. So more than 30 classes are thinned evenly
    to 30, and labelled rows to :math:`\min(1000, 2000 / K^{1/3})`, with K the classes that are left: the work never
    exceeds eight times that of two classes on 1,000 rows.

    Parameters
    ----------
    prior : GraphPrior
        The prior.
    targets : ndarray of shape (n,) or (n, K)
        Targets of the labelled rows.
    weight : ndarray of shape (n,)
        The weights of their losses.
    loss : Loss
        The loss.
    lam : float or None, default=None
        Given, it is kept, and only the likelihood and the noise variance are computed.

    Returns
    -------
    MarginalLikelihood
        lam, the likelihood, the noise variance.

    References
    ----------
    .. [1] C. E. Rasmussen and C. K. I. Williams, "Gaussian processes for machine learning", MIT Press 2006, algorithm
       3.1.

    Examples
    --------
    >>> from grbb_ext.losses import LogisticLoss
    >>> from grbb_ext.propagation import Smooth
    >>> from grbb_ext.variance import KernelPrior
    >>> path = np.diag(np.ones(9), 1) + np.diag(np.ones(9), -1)
    >>> prior = KernelPrior(Smooth().on(path, [0, 2, 7, 9]))
    >>> found = choose_lam(prior, np.array([0.0, 1.0, 1.0, 0.0]), np.ones(4), LogisticLoss())
    >>> round(found.lam), found.at_bound
    (400, True)
    """
    Y = targets.reshape(weight.size, -1)
    n_classes = Y.shape[1]
    Y = Y[:, _evenly(n_classes, _MOST_CLASSES)]
    kept = _evenly(weight.size, int(_MOST_ROWS * min(1.0, 2 / Y.shape[1] ** (1 / 3))))
    kept = kept[weight[kept] > 0]
    Y, w, rows = Y[kept], weight[kept], np.ix_(kept, kept)
    if isinstance(loss, SquaredErrorLoss):
        if kept.size < 2:
            raise ValueError("Squared error needs at least two labelled rows with a weight to tell the noise apart.")

        def restricted(value: float) -> tuple[float, float]:
            return _restricted(prior.labeled_covariance(value)[rows], Y[:, 0], w)

        found = _maximum(lambda value: restricted(value)[0], prior.typical_lam, lam)
        return MarginalLikelihood(*found, restricted(found[0])[1])

    modes = np.zeros_like(Y)

    def laplace(value: float) -> float:
        K = prior.labeled_covariance(value)[rows]
        total = sum(_laplace(K, Y[:, k], w, modes[:, k]) for k in range(Y.shape[1]))
        return total * n_classes / Y.shape[1]

    return MarginalLikelihood(*_maximum(laplace, prior.typical_lam, lam), 1.0)


def _evenly(size: int, most: int) -> Index:
    """Return at most `most` of 0, ..., size - 1, evenly spaced."""
    return np.unique(np.linspace(0, size - 1, min(size, most)).astype(np.intp))


def _maximum(score: Callable[[float], float], typical: float, lam: float | None) -> tuple[float, float, bool]:
    """Maximise over log lam: a grid, then Brent's method between the neighbours of its best point. Or keep `lam`."""
    if lam is not None:
        return lam, score(lam), False

    def loss(point: float) -> float:
        return -score(typical * float(np.exp(point)))

    grid = np.linspace(np.log(_LOWEST), np.log(_HIGHEST), _GRID)
    losses = [loss(point) for point in grid]
    best = int(np.argmin(losses))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, _GRID - 1)]
    found = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 0.02})
    point, value = (float(found.x), -float(found.fun)) if found.fun < losses[best] else (grid[best], -losses[best])
    at_bound = min(point - grid[0], grid[-1] - point) < 0.05
    return typical * float(np.exp(point)), value, bool(at_bound)


def _laplace(K: Array, y: Array, w: Array, alpha: Array) -> float:
    """Return the log likelihood of labels y; alpha = inverse(K) f is the start, and is left at the mode."""

    def objective(a: Array) -> float:
        f = K @ a
        return float(w @ (y * f - np.logaddexp(0.0, f)) - 0.5 * a @ f)

    if objective(alpha) < objective(np.zeros_like(alpha)):
        alpha[:] = 0.0
    value = objective(alpha)
    for _ in range(_NEWTON_STEPS):
        f = K @ alpha
        p = expit(f)
        delta = w * p * (1.0 - p)
        root = np.sqrt(delta)
        b = delta * f + w * (y - p)
        step = b - root * cho_solve(scaled_factor(K, root), root * (K @ b), check_finite=False) - alpha
        length = 1.0
        while (new := objective(alpha + length * step)) < value and length > 1e-4:
            length /= 2
        gained, value = new - value, max(new, value)
        if gained <= 0:
            break
        alpha += length * step
        if gained < 1e-9 * max(1.0, abs(value)):
            break
    p = expit(K @ alpha)
    factor, _ = scaled_factor(K, np.sqrt(w * p * (1.0 - p)))
    return value - float(np.log(factor.diagonal()).sum())


def _restricted(K: Array, t: Array, w: Array) -> tuple[float, float]:
    """Return the restricted log likelihood of values t, and the noise variance that maximises it."""
    factor = information_factor(K + np.diag(1.0 / w))
    ones = np.ones_like(t)
    weight_of_mean = float(ones @ cho_solve(factor, ones))
    centered = t - float(ones @ cho_solve(factor, t)) / weight_of_mean
    free = t.size - 1
    noise = max(float(centered @ cho_solve(factor, centered)) / free, np.finfo(float).tiny)
    log_determinant = 2.0 * float(np.log(np.diag(factor[0])).sum()) + np.log(weight_of_mean)
    return -0.5 * (free * np.log(noise) + log_determinant), noise


# What depends on the graph and the labels only is kept as long as the objective, which is immutable: the prior, and
# the marginal likelihood at each lam given (None: at the lam where it is largest).
_known: WeakKeyDictionary[GRBBObjective, GraphPrior] = WeakKeyDictionary()
_likelihoods: WeakKeyDictionary[GraphPrior, dict[float | None, MarginalLikelihood]] = WeakKeyDictionary()


def prior_of(obj: GRBBObjective) -> GraphPrior:
    """Return the prior of the objective's operator; what it computes is kept for the next call.

    Parameters
    ----------
    obj : GRBBObjective
        An objective with a propagation operator, i.e. of any rule but ``"labeled"``.

    Returns
    -------
    KernelPrior or LaplacianPrior
        The kernel of ``"smooth"``, the Laplacian of the others.

    Examples
    --------
    >>> from grbb_ext import grbb_objective
    >>> obj = grbb_objective(None, [0, -1, 1], graph=[[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> type(prior_of(obj)).__name__
    'KernelPrior'
    """
    if obj in _known:
        return _known[obj]
    operator = obj.propagation_
    if operator is None:
        raise ValueError(
            "The variance is measured along the graph, and an objective with rule='labeled' or with a fitted teacher "
            "has no operator. Make one with another rule, and without teacher=, on the same rows; it need not be the "
            "one that trained the scores."
        )
    P_bar = obj.P_bar_ if isinstance(operator, HarmonicPropagation) else None
    prior = KernelPrior(operator) if isinstance(operator, SmoothPropagation) else LaplacianPrior(operator, P_bar)
    # Of two threads that come here at once, both go on with the same prior.
    return _known.setdefault(obj, prior)


def lam_in_use(obj: GRBBObjective, lam: float | None) -> tuple[MarginalLikelihood, bool]:
    """Return lam as given, as the objective's, or by marginal likelihood; and whether it was the last.

    The search is made once for each objective.
    """
    lam = None if lam is None else positive_number(lam, "lam", " or None")
    prior = prior_of(obj)
    known = _likelihoods.setdefault(prior, {})
    given = lam if lam is not None else (obj.lam_ or None)
    if given not in known:
        if given is not None and not isinstance(obj.loss_, SquaredErrorLoss):
            return MarginalLikelihood(given, float("nan"), False, 1.0), False
        known[given] = choose_lam(prior, obj.labeled_targets_, obj.labeled_weight_, obj.loss_, given)
    return known[given], given is None
