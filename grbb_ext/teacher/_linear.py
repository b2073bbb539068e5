"""The linear expert: a logistic or ridge regression on the labelled rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logsumexp, softmax

from grbb_ext._progress import over_rows
from grbb_ext.labels import Labels
from grbb_ext.losses import SquaredErrorLoss
from grbb_ext.table import DistanceSpace, Matrix, Table
from grbb_ext.teacher._held_out import MOST_LABELS, MOST_OUTPUTS, cross_fitted, fixed_order

Floats = NDArray[np.float64]

# Rows are scaled to this mean squared norm; together with C it says how far one label may move a prediction.
_SQUARED_NORM, _C = 20.0, 0.3
# Directions that are kept where there are many classes.
_FEW_DIRECTIONS = 64
_ALPHAS = tuple(10.0**k for k in range(-3, 5))


@dataclass(frozen=True)
class LinearExpert:
    r"""A linear model that was fitted to the labelled rows.

    Columns are scaled, their normal scores put beside them, and categories are one-hot (:class:`DistanceSpace`). With
    rows centred and scaled to a mean squared norm of 20, classes minimise

    .. math:: 0.3 \sum_{i \in l} \ell(y_i, w^\top x_i + b) + \tfrac12 \|w\|^2

    and values the same with a squared error, its weight averaged over what the errors of leaving one out say.

    Attributes
    ----------
    space : DistanceSpace
        Makes the columns.
    center : ndarray of shape (d,)
        Subtracted from each row.
    coefficients : ndarray of shape (d,) or (d, K)
        w.
    intercept : ndarray of shape () or (K,)
        b.
    held_out : ndarray of shape (n,) or (n, K)
        Predictions of the labelled rows by models that have not seen their label.
    values : bool
        Whether it predicts values rather than probabilities.
    """

    space: DistanceSpace
    center: Floats
    coefficients: Floats
    intercept: Floats
    held_out: Floats
    values: bool

    name = "linear"

    @classmethod
    def fit(cls, table: Table, labels: Labels, *, random_state: int = 0) -> LinearExpert:
        """Fit the model, and as many again as there are folds of labels.

        Parameters
        ----------
        table : Table
            All rows; scales and scores are taken of them.
        labels : Labels
            The labels.
        random_state : int, default=0
            Draws the labels that are used where there are more than 10,000.

        Examples
        --------
        >>> from grbb_ext.labels import read_labels
        >>> from grbb_ext.table import read_table
        >>> table = read_table(np.arange(12.0)[:, None])
        >>> linear = LinearExpert.fit(table, read_labels([0, 0, 0, -1, -1, -1, -1, -1, -1, 1, 1, 1]))
        >>> (linear.predict(table)[[3, 8]] > 0.5).tolist(), (linear.held_out[[0, 5]] > 0.5).tolist()
        ([False, True], [False, True])
        """
        space = DistanceSpace.fit(table, scale="standard", normal_scores=True, warn_missing=False)
        points = space(table.sampled(), 1)
        dense = not sp.issparse(points)
        center = np.asarray(points.mean(axis=0, dtype=np.float64)).ravel() if dense else np.zeros(points.shape[1])
        squared = (points.multiply(points) if not dense else (points - center) ** 2).sum(axis=1)
        spread = float(np.mean(squared))
        factor = np.sqrt(_SQUARED_NORM / spread) if spread > np.finfo(np.float64).eps else 1.0  # constant columns
        rows, targets = table.take(labels.labeled), labels.targets
        points = space(rows, 1)
        X = np.asarray(points - center if dense else points.toarray(), dtype=np.float64) * factor
        order = fixed_order(rows, targets)
        drawn = order
        if order.size > MOST_LABELS:
            chosen = np.random.default_rng(random_state).choice(order.size, MOST_LABELS, replace=False)
            drawn = order[np.sort(chosen)]
        # Directions in which labelled rows do not vary have no part in the model.
        _, size, directions = np.linalg.svd(X[drawn], full_matrices=False)
        kept = size > 1e-9 * max(float(size[0]), np.finfo(np.float64).tiny)
        directions = directions[kept][: _FEW_DIRECTIONS if labels.n_outputs > MOST_OUTPUTS else None].T
        Z, values = X @ directions, isinstance(labels.loss, SquaredErrorLoss)
        known, y = Z[drawn], targets[drawn]

        def predicted(train: NDArray[np.intp], test: NDArray[np.intp]) -> Floats:
            w, b = _logistic(known[train], y[train])
            return _probabilities(known[test] @ w + b)

        if values:
            w, b, left_out = _ridge(known, y)
        else:
            (w, b), left_out = _logistic(known, y), cross_fitted(y, predicted)
        held_out = Z @ w + b if values else _probabilities(Z @ w + b)
        held_out[drawn] = left_out
        return cls(space, center, factor * directions @ w, np.asarray(b), held_out, values)

    def predict(self, table: Table, *, n_jobs: int | None = 1, verbose: bool = False) -> Floats:
        """Predict the targets of any rows: probabilities, or values for regression.

        Parameters
        ----------
        table : Table
            R rows.
        n_jobs : int or None, default=1
            Threads that share the rows.
        verbose : bool, default=False
            Draw a progress bar if it takes more than two seconds.

        Returns
        -------
        ndarray of shape (R,) or (R, K)
        """

        def block_of(block: slice) -> Floats:
            points: Matrix = self.space(table.take(block), 1)
            scores = np.asarray(points @ self.coefficients) + (self.intercept - self.center @ self.coefficients)
            return scores if self.values else _probabilities(scores)

        return over_rows(block_of, table.n_rows, n_jobs=n_jobs, description="linear model: all rows", verbose=verbose)


def _probabilities(scores: Floats) -> Floats:
    return np.asarray(expit(scores) if scores.ndim == 1 else softmax(scores, axis=1))


def _logistic(Z: Floats, targets: Floats) -> tuple[Floats, Any]:
    """Return coefficients and intercepts; a class without a label gets a probability next to 0."""
    classes = targets.astype(np.intp) if targets.ndim == 1 else targets.argmax(axis=1)
    seen = np.unique(classes)
    n_outputs = 1 if targets.ndim == 1 else targets.shape[1]
    if seen.size == 1 or Z.shape[1] == 0:
        share = targets.mean(axis=0).clip(0.01, 0.99)
        scores = np.log(share) if n_outputs > 1 else np.log(share / (1.0 - share))
        return np.zeros((Z.shape[1], n_outputs)[: targets.ndim]), scores
    # Of two classes the second alone has a score.
    scored = seen[1:] if seen.size == 2 else seen
    found = _regressed(Z, (classes[:, None] == scored).astype(np.float64))
    if targets.ndim == 1:
        return found[:-1, 0], found[-1, 0]
    w, b = np.zeros((Z.shape[1], n_outputs)), np.full(n_outputs, -50.0)
    b[seen] = 0.0
    w[:, scored], b[scored] = found[:-1], found[-1]
    return w, b


def _regressed(Z: Floats, is_class: Floats) -> Floats:
    r"""Return coefficients, and intercepts in the last line, of a logistic regression with a ridge.

    The model of scikit-learn's ``LogisticRegression``, to the last digit, without what it does around ten fits to a few
    dozen rows: that takes three times as long, and to silence its warnings is not safe where there are threads.
    """
    (n, d), K = Z.shape, is_class.shape[1]

    def loss_and_gradient(flat: Floats) -> tuple[float, Floats]:
        W = flat.reshape(d + 1, K)
        scores = Z @ W[:-1] + W[-1]
        normalizer = np.logaddexp(0.0, scores[:, 0]) if K == 1 else logsumexp(scores, axis=1)
        residual = (expit(scores) if K == 1 else softmax(scores, axis=1)) - is_class
        ridge = W[:-1] / (_C * n)
        loss = (normalizer.sum() - (is_class * scores).sum()) / n + 0.5 * (ridge * W[:-1]).sum()
        return float(loss), np.vstack([Z.T @ residual / n + ridge, residual.mean(axis=0)]).ravel()

    # The last digit does not matter, and few labels of many classes are no mistake: it ends where it has not converged.
    options = {"gtol": 1e-3, "ftol": 64 * np.finfo(np.float64).eps, "maxiter": 100}
    found = minimize(loss_and_gradient, np.zeros((d + 1) * K), jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x.reshape(d + 1, K))


def _ridge(Z: Floats, y: Floats) -> tuple[Floats, float, Floats]:
    r"""Return coefficients, intercept and held-out predictions of a ridge regression.

    Leaving row i out changes its residual to :math:`r_i / (1 - h_i)`, h the diagonal of the matrix that makes fitted
    values of y. Each strength of the penalty counts by the likelihood of these residuals.
    """
    n, center, mean = y.size, Z.mean(axis=0), float(y.mean())
    U, size, V = np.linalg.svd(Z - center, full_matrices=False)
    fits = []
    for alpha in _ALPHAS:
        shrink = size**2 / (size**2 + alpha)
        residual = y - mean - U @ (shrink * (U.T @ (y - mean)))
        leverage = 1.0 / n + (U**2 @ shrink)
        left_out = residual / np.maximum(1.0 - leverage, 1e-6)
        fits.append((V.T @ (shrink / np.where(size > 0, size, 1.0) * (U.T @ (y - mean))), y - left_out, left_out))
    errors = np.array([np.mean(left_out**2) for *_, left_out in fits])
    share = (
        (errors.min() / np.maximum(errors, np.finfo(np.float64).tiny)) ** (n / 2) if errors.min() > 0 else errors == 0
    )
    share = share / share.sum()
    w = np.asarray(sum(part * fit[0] for part, fit in zip(share, fits, strict=True)))
    held_out = np.asarray(sum(part * fit[1] for part, fit in zip(share, fits, strict=True)))
    return w, mean - float(center @ w), held_out
