"""The expert that never looks at an unlabelled row: a forest on the labelled ones."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesRegressor

from grbb_ext._threads import in_threads, row_blocks
from grbb_ext.labels import Labels
from grbb_ext.table import Matrix, TreeColumns

# The out-of-bag means rest on about a third of the trees.
_TREES = 200
# A tree draws no more labels than this, so that the time does not grow with them.
_MOST_LABELS = 10_000


def labeled_forest(
    columns: TreeColumns,
    labels: Labels,
    *,
    components: NDArray[np.floating] | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Predict the targets of all rows from the labelled ones alone.

    Extremely randomised trees on bootstrap samples, each split the best of one random threshold per column. With a few
    dozen labels they are ahead of a booster on the same rows nearly everywhere, and as each tree leaves out a third of
    the labels, what the forest says of a label it has not seen comes for free. The order of the rows does not matter.

    Parameters
    ----------
    columns : TreeColumns
        Columns of all rows; a category is its code, so that no label is looked at.
    labels : Labels
        The labels.
    components : ndarray of shape (N, c) or None, default=None
        Further columns: principal components of many, each of which would say little alone.
    random_state : int, default=0
        Seed of the trees.
    n_jobs : int or None, default=None
        Threads; None takes all cores.
    verbose : bool, default=False
        Draw a progress bar if the prediction takes more than a few seconds.

    Returns
    -------
    targets : ndarray of shape (N,) or (N, K)
        Predicted targets: probabilities, or values for regression.
    held_out : ndarray of shape (n,) or (n, K)
        Out-of-bag predictions of the labelled rows.

    Examples
    --------
    >>> from grbb_ext.labels import read_labels
    >>> from grbb_ext.table import read_columns
    >>> X = np.arange(12.0)[:, None]
    >>> y = np.array([0, 0, 0, -1, -1, -1, -1, -1, -1, 1, 1, 1])
    >>> targets, held_out = labeled_forest(read_columns(X), read_labels(y, "auto", None, -1))
    >>> (targets[[3, 8]] > 0.5).tolist(), (held_out[[0, 5]] > 0.5).tolist()
    ([False, True], [False, True])
    """
    X = columns.coded()

    def some(rows: slice | NDArray[np.intp]) -> Matrix:
        # Side by side for a block at a time: a copy of all columns would be the largest thing in memory.
        return X[rows] if components is None else np.hstack([X[rows], components[rows]])

    X_l, n = some(labels.labeled), labels.labeled.size
    order = _fixed_order(X_l, labels.targets)
    forest = ExtraTreesRegressor(
        _TREES,
        bootstrap=True,
        max_samples=min(n, _MOST_LABELS),
        oob_score=True,
        random_state=random_state,
        n_jobs=1,  # threads of scikit-learn's forests race for the filters of warnings, and may leave them empty
    )
    with warnings.catch_warnings():
        # R2 is not defined for less than two rows; the score itself is not used.
        warnings.simplefilter("ignore")
        forest.fit(X_l[order], labels.targets[order])
    held_out = np.empty(labels.targets.shape)
    held_out[order] = np.reshape(forest.oob_prediction_, labels.targets.shape)
    targets = np.empty((labels.n_rows, *labels.targets.shape[1:]))
    # Threads share the rows, not the trees: a sum in an order that changes would change in its last digit.

    def predict(block: slice) -> None:
        rows = some(block).astype(np.float32)
        total = sum(tree.predict(rows, check_input=False) for tree in forest.estimators_)
        targets[block] = total / _TREES

    blocks = row_blocks(labels.n_rows)
    in_threads(predict, blocks, n_jobs=n_jobs, description="trees on the labelled rows", verbose=verbose)
    return targets, held_out


def _fixed_order(X: Matrix, targets: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return an order of the rows that depends on what they hold alone: bootstrap samples are drawn by position.

    Examples
    --------
    >>> X = np.array([[2.0, 1.0], [1.0, 3.0], [1.0, 3.0]])
    >>> order = _fixed_order(X, np.array([0.0, 1.0, 0.0]))
    >>> again = _fixed_order(X[::-1], np.array([0.0, 1.0, 0.0]))
    >>> np.array_equal(X[order], X[::-1][again])
    True
    """
    if isinstance(X, sp.csr_array):
        X.sort_indices()
        ends = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        keys = [X.indices[a:b].tobytes() + X.data[a:b].tobytes() for a, b in ends]
    else:
        keys = [row.tobytes() for row in np.ascontiguousarray(X)]
    return np.array(sorted(range(len(keys)), key=lambda i: (keys[i], targets[i].tobytes())), dtype=np.intp)
