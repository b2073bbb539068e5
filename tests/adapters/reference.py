"""A slow boosting loop in dense numpy: the paper's algorithm 1 with exact least-squares trees."""

import numpy as np
from scipy.special import expit, softmax


def dense_gradient(W, y, classes, lam):
    """Return the paper's gradient (eq. 5-6) as a function of H, by dense inversion."""
    labeled, free = np.flatnonzero(y >= 0), np.flatnonzero(y < 0)
    L = np.diag(W.sum(axis=1)) - W
    P = -np.linalg.inv(L[np.ix_(free, free)]) @ L[np.ix_(free, labeled)]
    codes = np.searchsorted(classes, y[labeled])
    targets = codes if len(classes) == 2 else np.eye(len(classes))[codes]

    def gradient(H):
        H = np.asarray(H, dtype=np.float64)
        mean = expit(H) if H.ndim == 1 else softmax(H, axis=1)
        g = np.empty_like(H)
        g[labeled] = mean[labeled] - targets + lam * (L @ H)[labeled]
        g[free] = P @ g[labeled]
        return g

    return gradient


def least_squares_tree(X, target, depth):
    """Return the fitted values of a greedy regression tree: at each node the split of least squared error."""
    fitted = np.full(target.shape, target.mean())
    best, chosen = 1e-12, None
    if depth > 0:
        for feature in range(X.shape[1]):
            order = np.argsort(X[:, feature], kind="stable")
            total = np.cumsum(target[order])
            for i in range(1, len(target)):
                left, right = total[i - 1], total[-1] - total[i - 1]
                gain = left**2 / i + right**2 / (len(target) - i) - total[-1] ** 2 / len(target)
                if gain > best * (1 + 1e-9) and X[order[i], feature] > X[order[i - 1], feature]:
                    best, chosen = gain, (order[:i], order[i:])
    if chosen is not None:
        for rows in chosen:
            fitted[rows] = least_squares_tree(X[rows], target[rows], depth - 1)
    return fitted


def boost(X, gradient, n_outputs, n_rounds, learning_rate, depth):
    """Run the loop and return the raw scores."""
    H = np.zeros(X.shape[0] if n_outputs == 1 else (X.shape[0], n_outputs))
    for _ in range(n_rounds):
        step = -gradient(H)
        columns = step.reshape(X.shape[0], -1)
        trees = np.column_stack([least_squares_tree(X, column, depth) for column in columns.T])
        H = H + learning_rate * trees.reshape(H.shape)
    return H
