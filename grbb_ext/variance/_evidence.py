"""How strongly to believe the graph: lam by the evidence of the labelled rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize_scalar
from scipy.special import expit

from grbb_ext.losses import Loss, SquaredErrorLoss
from grbb_ext.variance._prior import Array, GraphPrior

# In units of the lam at which scores have a prior standard deviation of 1: from a deviation of 5 logits, to which
# labels that the graph separates without error always lead, down to one of .05.
_LOWEST, _HIGHEST = 0.04, 400.0
_GRID = 9
_MOST_ROWS = 1_000
_NEWTON_STEPS = 100


class Evidence(NamedTuple):
    """The lam with the largest evidence.

    Attributes
    ----------
    lam : float
        The weight of the prior.
    log_evidence : float
        Log of the probability of the labels at that lam.
    at_bound : bool
        Whether the search ended at an end of its range, i.e. the labels do not determine lam.
    noise_variance : float
        Variance of the labels about the scores, for squared error; 1 otherwise.
    """

    lam: float
    log_evidence: float
    at_bound: bool
    noise_variance: float


def choose_lam(prior: GraphPrior, targets: Array, weight: Array, loss: Loss, lam: float | None = None) -> Evidence:
    r"""Choose lam by the evidence of the labels, which does not depend on any booster.

    For classes it is the Laplace approximation of Gaussian-process classification [1]_,

    .. math:: \log p(y \mid \lambda) \approx \log p(y \mid \hat f) - \tfrac12 \hat f^T K_\lambda^{-1} \hat f -
       \tfrac12 \log |I + \Delta^{1/2} K_\lambda \Delta^{1/2}|,

    with :math:`K_\lambda` the prior covariance of the labelled scores and :math:`\hat f` the mode; with K classes the
    sum over each class against the rest. For squared error it is the restricted likelihood with the noise variance
    profiled out. More than 1,000 labelled rows are thinned evenly to 1,000.

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
        Given, it is kept, and only the evidence and the noise variance are computed.

    Returns
    -------
    Evidence
        lam, the evidence, the noise variance.

    References
    ----------
    .. [1] C. E. Rasmussen and C. K. I. Williams, "Gaussian processes for machine learning", MIT Press 2006, algorithm
       3.1.

    Examples
    --------
    >>> from grbb_ext.losses import LogisticLoss
    >>> from grbb_ext.propagation import SmoothPropagation
    >>> from grbb_ext.variance import KernelPrior
    >>> path = np.diag(np.ones(9), 1) + np.diag(np.ones(9), -1)
    >>> prior = KernelPrior(SmoothPropagation(path, [0, 2, 7, 9]))
    >>> found = choose_lam(prior, np.array([0.0, 1.0, 1.0, 0.0]), np.ones(4), LogisticLoss())
    >>> round(found.lam), found.at_bound
    (400, True)
    """
    kept = np.unique(np.linspace(0, weight.size - 1, min(weight.size, _MOST_ROWS)).astype(np.intp))
    Y, w = targets.reshape(weight.size, -1)[kept], weight[kept]
    seen = w > 0
    kept, Y, w = kept[seen], Y[seen], w[seen]
    rows = np.ix_(kept, kept)
    if isinstance(loss, SquaredErrorLoss):
        if kept.size < 2:
            raise ValueError("Squared error needs at least two labelled rows with a weight to tell the noise apart.")

        def score(value: float) -> float:
            return _restricted(prior.labeled_covariance(value)[rows], Y[:, 0], w)[0]

        found = _maximum(score, prior.typical_lam) if lam is None else (lam, score(lam), False)
        noise = _restricted(prior.labeled_covariance(found[0])[rows], Y[:, 0], w)[1]
        return Evidence(*found, noise)

    modes = np.zeros_like(Y)

    def laplace(value: float) -> float:
        K = prior.labeled_covariance(value)[rows]
        return sum(_laplace(K, Y[:, k], w, modes[:, k]) for k in range(Y.shape[1]))

    return Evidence(*(_maximum(laplace, prior.typical_lam) if lam is None else (lam, laplace(lam), False)), 1.0)


def _maximum(score: Callable[[float], float], typical: float) -> tuple[float, float, bool]:
    """Maximise over log lam: a grid, then Brent's method between the neighbours of its best point."""
    grid = np.linspace(np.log(_LOWEST), np.log(_HIGHEST), _GRID)
    values = [score(typical * float(np.exp(point))) for point in grid]
    best = int(np.argmax(values))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, _GRID - 1)]
    found = minimize_scalar(
        lambda point: -score(typical * float(np.exp(point))), bounds=bounds, method="bounded", options={"xatol": 0.02}
    )
    point, value = (float(found.x), -float(found.fun)) if -found.fun > values[best] else (grid[best], values[best])
    at_bound = min(point - grid[0], grid[-1] - point) < 0.05
    return typical * float(np.exp(point)), value, bool(at_bound)


def _laplace(K: Array, y: Array, w: Array, alpha: Array) -> float:
    """Return the log evidence of labels y; alpha = inverse(K) f is the start, and is left at the mode."""

    def objective(a: Array) -> float:
        f = K @ a
        return float(w @ (y * f - np.logaddexp(0.0, f)) - 0.5 * a @ f)

    value = objective(alpha)
    if value < objective(np.zeros_like(alpha)):
        alpha[:] = 0.0
        value = objective(alpha)
    for _ in range(_NEWTON_STEPS):
        f = K @ alpha
        p = expit(f)
        delta = w * p * (1.0 - p)
        root = np.sqrt(delta)
        B = cho_factor(np.eye(y.size) + root[:, None] * K * root)
        b = delta * f + w * (y - p)
        step = b - root * cho_solve(B, root * (K @ b)) - alpha
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
    root = np.sqrt(w * p * (1.0 - p))
    sign_free = np.linalg.slogdet(np.eye(y.size) + root[:, None] * K * root)[1]
    return value - 0.5 * float(sign_free)


def _restricted(K: Array, t: Array, w: Array) -> tuple[float, float]:
    """Return the restricted log likelihood of values t, and the noise variance that maximises it."""
    factor = cho_factor(K + np.diag(1.0 / w))
    ones = np.ones_like(t)
    weight_of_mean = float(ones @ cho_solve(factor, ones))
    centered = t - float(ones @ cho_solve(factor, t)) / weight_of_mean
    free = t.size - 1
    noise = max(float(centered @ cho_solve(factor, centered)) / free, np.finfo(float).tiny)
    log_determinant = 2.0 * float(np.log(np.diag(factor[0])).sum()) + np.log(weight_of_mean)
    return -0.5 * (free * np.log(noise) + log_determinant), noise
