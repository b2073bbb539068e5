"""The expert that never looks at an unlabelled row: a forest on the labelled ones."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesRegressor

from grbb_ext.labels import Labels
from grbb_ext.refinement._columns import TreeColumns

# The out-of-bag means rest on about a third of the trees.
_TREES = 200


def labeled_forest(
    columns: TreeColumns,
    labels: Labels,
    *,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Predict the targets of all rows from the labelled ones alone.

    Extremely randomised trees on bootstrap samples, each split the best of one random threshold per column. With a few
    dozen labels they are ahead of a booster on the same rows nearly everywhere, and as each tree leaves out a third of
    the labels, what the forest says of a label it has not seen comes for free.

    Parameters
    ----------
    columns : TreeColumns
        Columns of all rows; a category is its code, so that no label is looked at.
    labels : Labels
        The labels.
    random_state : int, default=0
        Seed of the trees.
    n_jobs : int or None, default=None
        Threads; None takes all cores.

    Returns
    -------
    targets : ndarray of shape (N,) or (N, K)
        Predicted targets: probabilities, or values for regression.
    held_out : ndarray of shape (n,) or (n, K)
        Out-of-bag predictions of the labelled rows.

    Examples
    --------
    >>> from grbb_ext.labels import read_labels
    >>> from grbb_ext.refinement._columns import read_columns
    >>> X = np.arange(12.0)[:, None]
    >>> y = np.array([0, 0, 0, -1, -1, -1, -1, -1, -1, 1, 1, 1])
    >>> targets, held_out = labeled_forest(read_columns(X), read_labels(y, "auto", None, -1))
    >>> (targets[[3, 8]] > 0.5).tolist(), (held_out[[0, 5]] > 0.5).tolist()
    ([False, True], [False, True])
    """
    X = columns.coded()
    forest = ExtraTreesRegressor(
        _TREES, bootstrap=True, oob_score=True, random_state=random_state, n_jobs=-1 if n_jobs is None else n_jobs
    )
    with warnings.catch_warnings():
        # R2 is not defined for less than two rows; the score itself is not used.
        warnings.simplefilter("ignore")
        forest.fit(X[labels.labeled], labels.targets)
    held_out = np.asarray(forest.oob_prediction_, dtype=np.float64)
    return np.asarray(forest.predict(X), dtype=np.float64), held_out.reshape(labels.targets.shape)
