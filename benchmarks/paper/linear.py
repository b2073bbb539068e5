r"""The paper's linear baselines: l1 logistic regression weighted by price, and the same with a manifold term.

LRL1 (Lee et al., 2006) reads the labelled rows alone; LapLRL1 (after Xu et al., 2010) also keeps the scores of
neighbours close. Both minimise

.. math:: \frac{1}{n} \sum_{i \le n} \log(1 + e^{-y_i (x_i w + b)})
          + \frac{\gamma}{2N} w^\top X^\top L X w + \alpha \sum_j c_j |w_j|

over the weights of standardised columns, y = ±1 on the n labelled of N rows, c the prices, and γ = 0 for LRL1.
Neither scikit-learn's liblinear nor its saga takes the second term, hence a solver of our own for both.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import eigh, solve
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

Array = NDArray[np.float64]
#: A free column counts as this share of the smallest positive price: cheaper than any other, but not unpenalised.
FREE_SHARE = 0.5
NOTHING = "No column differs between the labelled classes: there is nothing to fit. Label more rows."


@dataclass(frozen=True)
class Linear:
    """One model of a path.

    Attributes
    ----------
    alpha : float
        Weight of the l1 penalty.
    weights : ndarray of shape (d,)
        Of the columns as they were given, not of the standardised ones.
    intercept : float
        Score of a row of zeros.
    medians : ndarray of shape (d,)
        What a missing value is taken for.
    """

    alpha: float
    weights: Array
    intercept: float
    medians: Array

    def scores(self, X: Any) -> Array:
        """Return the margin x w + b of each row; class 1 where it is positive."""
        used = self.features()
        rows = np.asarray(X)[:, used].astype(np.float64)
        return np.where(np.isnan(rows), self.medians[used], rows) @ self.weights[used] + self.intercept

    def features(self) -> list[int]:
        """Return the columns with a weight: those that a new row pays for."""
        return [int(j) for j in np.flatnonzero(self.weights)]


def linear_path(
    X: Any,
    y: Any,
    prices: Any,
    *,
    laplacian: sp.sparray | None = None,
    manifold: float = 0.0,
    n_penalties: int = 20,
    smallest: float = 1e-3,
    tol: float = 1e-8,
    max_iter: int = 2000,
) -> list[Linear]:
    r"""Fit LRL1, or LapLRL1 with `manifold`, for a falling sequence of penalties.

    Parameters
    ----------
    X : array of shape (N, d)
        Training rows. Columns are standardised by all of them; NaN becomes the column's median; the weight of a column
        with one value is 0.
    y : array of int of shape (N,)
        0 or 1 for labelled rows, -1 for unlabelled ones. Both classes must occur.
    prices : array of shape (d,)
        Price of each column. With 20 labels an unpenalised column would separate the classes with infinite weights, so
        a free column is taken to cost half the smallest positive price. If all are free, all cost 1.
    laplacian : sparse array of shape (N, N) or None, default=None
        Graph of the rows, normalised or not. Needed for `manifold` above 0.
    manifold : float, default=0.0
        Weight γ of the manifold term.
    n_penalties : int, default=20
        Models of the path.
    smallest : float, default=1e-3
        The last penalty as a share of the first. Penalties between them are equally spaced on the logarithmic scale.
        The first is where the cheapest good column enters: if prices span a wide range, dear ones need a smaller end.
    tol : float, default=1e-8
        Largest violation of the optimality conditions, as a share of the largest slope at w = 0.
    max_iter : int, default=2000
        Steps for each penalty. A model that needs more is returned with a ``ConvergenceWarning``.

    Returns
    -------
    list of Linear
        From the largest penalty, where w = 0, to the smallest.

    Notes
    -----
    At w = 0 the intercept is the log odds of the labels and the manifold term has no slope, so that

    .. math:: \alpha_{\max} = \max_j \frac{1}{c_j} \left| \frac{1}{n} \sum_{i \le n} x_{ij} (\bar{y} - y_i) \right|

    with y = 0, 1 here. Each step is one of proximal gradients, which converges by itself and finds the columns and
    their signs, and one of Newton on those columns, none of which may change its sign. Few such steps are needed.

    Examples
    --------
    The second column says as much as the first at a tenth of its price, and enters first.

    >>> X = np.array([[0.0, 0.1, 5.0], [0.2, 0.0, 4.0], [1.0, 0.8, 5.0], [0.9, 1.0, 4.0], [0.5, 0.4, 4.5]])
    >>> path = linear_path(X, [0, 0, 1, 1, -1], prices=[10.0, 1.0, 1.0], n_penalties=4)
    >>> [model.features() for model in path]
    [[], [1], [1], [1]]
    >>> path[1].scores(X).round(2).tolist()
    [-2.55, -3.25, 2.35, 3.76, -0.45]
    """
    rows, labels, weights = np.array(X, dtype=np.float64), np.asarray(y), _penalty_weights(prices)
    if rows.ndim != 2 or labels.shape != rows.shape[:1] or weights.shape != rows.shape[1:]:
        raise ValueError(
            f"X {rows.shape}, y {labels.shape} and prices {weights.shape} do not fit: give a label (-1 without) for "
            "each row and a price for each column."
        )
    labeled = np.flatnonzero(labels >= 0)
    if set(np.unique(labels[labeled]).tolist()) != {0, 1}:
        raise ValueError("y must be 0 or 1 with both classes, and -1 on unlabelled rows.")
    if np.isinf(rows).any():
        raise ValueError("X must not be infinite; a missing value is NaN.")
    if laplacian is not None and laplacian.shape != (len(rows), len(rows)):
        raise ValueError(f"laplacian {laplacian.shape} must have a row for each of the {len(rows)} rows of X.")
    if manifold < 0 or (manifold > 0 and laplacian is None):
        raise ValueError(f"manifold={manifold:g} must be at least 0, and above 0 it needs laplacian=.")
    if n_penalties < 1 or not 0 < smallest < 1:
        raise ValueError(f"n_penalties={n_penalties} must be at least 1 and smallest={smallest:g} between 0 and 1.")

    medians = _medians(rows)
    rows = np.where(np.isnan(rows), medians, rows)
    varies = np.flatnonzero(rows.min(axis=0) < rows.max(axis=0))
    mean, deviation = rows[:, varies].mean(axis=0), rows[:, varies].std(axis=0)
    if varies.size == 0:
        raise ValueError(NOTHING)
    Z = (rows[:, varies] - mean) / deviation
    curvature = None if manifold == 0 else manifold / len(Z) * (Z.T @ (laplacian @ Z))
    loss = _Loss(Z[labeled], labels[labeled], curvature)

    theta = loss.start()
    slopes = np.abs(loss.gradient(theta)[:-1])
    largest = float(np.max(slopes / weights[varies]))
    if largest == 0:
        raise ValueError(NOTHING)
    path = []
    for alpha in largest * np.geomspace(1.0, smallest, n_penalties):
        if alpha < largest:
            theta = loss.minimise(theta, np.append(alpha * weights[varies], 0.0), tol * float(slopes.max()), max_iter)
        own = np.zeros(rows.shape[1])
        own[varies] = theta[:-1] / deviation
        path.append(Linear(float(alpha), own, float(theta[-1] - own[varies] @ mean), medians))
    return path


def _penalty_weights(prices: Any) -> Array:
    """Return prices with a small one for free columns."""
    c = np.array(prices, dtype=np.float64)
    if not (np.isfinite(c).all() and (c >= 0).all()):
        raise ValueError("prices must be finite numbers of at least 0.")
    if not c.any():
        return np.ones_like(c)
    return np.where(c > 0, c, FREE_SHARE * c[c > 0].min())


def _medians(rows: Array) -> Array:
    """Return the median of the known values of each column; 0 if there is none."""
    known = ~np.isnan(rows).all(axis=0)
    medians = np.zeros(rows.shape[1])
    medians[known] = np.nanmedian(rows[:, known], axis=0)
    return medians


class _Loss:
    """The smooth part, as a function of theta = (w, b)."""

    def __init__(self, Z: Array, y: NDArray[Any], curvature: Array | None) -> None:
        self.A, self.y, self.curvature = np.column_stack([Z, np.ones(len(Z))]), y, curvature
        self.lipschitz = 0.25 * float(np.linalg.norm(self.A, 2)) ** 2 / len(y)
        if curvature is not None:
            last = [len(curvature) - 1] * 2
            self.lipschitz += max(0.0, float(eigh(curvature, eigvals_only=True, subset_by_index=last)[0]))

    def start(self) -> Array:
        """Return w = 0 and the log odds of the labels."""
        share = self.y.mean()
        return np.append(np.zeros(self.A.shape[1] - 1), np.log(share / (1 - share)))

    def value(self, theta: Array) -> float:
        margins = self.A @ theta
        value = float(np.mean(np.logaddexp(0.0, np.where(self.y == 1, -margins, margins))))
        if self.curvature is not None:
            used = np.flatnonzero(theta[:-1])
            value += 0.5 * float(theta[used] @ self.curvature[np.ix_(used, used)] @ theta[used])
        return value

    def gradient(self, theta: Array) -> Array:
        gradient = self.A.T @ (expit(self.A @ theta) - self.y) / len(self.y)
        if self.curvature is not None:
            used = np.flatnonzero(theta[:-1])
            gradient[:-1] += theta[used] @ self.curvature[used]
        return np.asarray(gradient)

    def hessian(self, theta: Array, used: NDArray[np.intp]) -> Array:
        """Return the second derivatives by the used columns and the intercept, which comes last."""
        p = expit(self.A @ theta)
        A = self.A[:, used]
        H = (A * (p * (1 - p))[:, None]).T @ A / len(p)
        if self.curvature is not None:
            H[:-1, :-1] += self.curvature[np.ix_(used[:-1], used[:-1])]
        return np.asarray(H)

    def minimise(self, theta: Array, penalty: Array, tol: float, max_iter: int) -> Array:
        """Return the minimum of the loss + penalty · |theta|, from a start."""
        for _ in range(max_iter):
            gradient = self.gradient(theta)
            if _violation(theta, gradient, penalty) <= tol:
                return theta
            moved = theta - gradient / self.lipschitz
            theta = np.sign(moved) * np.maximum(np.abs(moved) - penalty / self.lipschitz, 0.0)
            theta = self._newton(theta, penalty)
        warnings.warn(f"The path has not converged in {max_iter} steps.", ConvergenceWarning, stacklevel=3)
        return theta

    def _newton(self, theta: Array, penalty: Array) -> Array:
        """Return a better point in the orthant of theta, or theta."""
        used = np.flatnonzero((theta != 0) | (penalty == 0))
        old, signs = theta[used], np.where(penalty > 0, np.sign(theta), 0.0)[used]
        slope = self.gradient(theta)[used] + penalty[used] * signs
        H = self.hessian(theta, used)
        before = self.value(theta) + float(penalty @ np.abs(theta))
        tried = theta.copy()
        # More columns than labels have flat directions. The ridge (Levenberg and Marquardt) shortens steps along them.
        for ridge in (1e-8, 1e-6, 1e-4, 1e-2, 1.0):
            tried[used] = _within_orthant(H + ridge * self.lipschitz * np.eye(used.size), slope, old, signs)
            if self.value(tried) + float(penalty @ np.abs(tried)) < before:
                return tried
        return theta


def _within_orthant(H: Array, slope: Array, old: Array, signs: Array) -> Array:
    """Return Newton's next point, with columns that would change sign at 0 and the others making up for it."""
    new, stays = np.zeros_like(old), np.ones(old.size, dtype=bool)
    while stays.any():
        right = H[np.ix_(stays, ~stays)] @ old[~stays] - slope[stays]
        new[stays] = old[stays] + solve(H[np.ix_(stays, stays)], right, assume_a="pos")
        crosses = new * signs < 0
        if not crosses.any():
            break
        new[crosses] = 0.0
        stays &= ~crosses
    return new


def _violation(theta: Array, gradient: Array, penalty: Array) -> float:
    """Return how far the gradient is from minus the subgradient of penalty · |theta|, at worst."""
    at_zero = np.maximum(np.abs(gradient) - penalty, 0.0)
    return float(np.max(np.where(theta == 0, at_zero, np.abs(gradient + penalty * np.sign(theta)))))
