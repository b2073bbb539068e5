"""Training rows, test rows, labels and irrelevant columns of a trial; the same for all methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import DataSet, Labels

Noise = Literal["none", "gaussian", "permuted"]
NOISES: tuple[Noise, ...] = ("none", "gaussian", "permuted")
MAX_TRAIN, MAX_TEST, TRAIN_SHARE = 1400, 3000, 0.7
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Split:
    """Rows to train on, of which a few are labelled (the others have y = -1), and rows to test on."""

    X: Floats
    y: Labels
    X_test: Floats
    truth: Labels


def draw(
    data: DataSet,
    seed: int,
    n_labels: int,
    noise: Noise = "none",
    max_train: int = MAX_TRAIN,
    max_test: int = MAX_TEST,
) -> Split:
    """Draw a split.

    Rows depend on the seed alone, labels on seed and number of labels, and irrelevant columns on seed and kind, so that
    trials with one thing changed are paired in all others. Labels are drawn until both classes occur.

    Parameters
    ----------
    data : DataSet
        Where it comes with a split, training rows are drawn from one part and test rows from the other; else 70 % of
        the rows are for training.
    seed : int
        The trial.
    n_labels : int
        Labelled rows.
    noise : {"none", "gaussian", "permuted"}, default="none"
        As many irrelevant columns as there are columns, added after them: normal ones, each with mean and standard
        deviation of a real one, or copies of the real ones with the rows in another order.
    max_train, max_test : int, default=1400, 3000
        The most rows of each kind.

    Returns
    -------
    Split
        In float32, as the boosters see them.

    Examples
    --------
    >>> from benchmarks.data import load
    >>> split = draw(load("digits"), seed=0, n_labels=20, noise="permuted")
    >>> split.X.shape, split.X_test.shape, int((split.y >= 0).sum())
    ((1257, 128), (540, 128), 20)
    """
    random = np.random.default_rng(seed)
    if data.is_test is None:
        order = random.permutation(data.y.size)
        n_train = int(TRAIN_SHARE * data.y.size)
        train, test = order[:n_train], order[n_train:]
    else:
        train, test = (random.permutation(np.flatnonzero(part)) for part in (~data.is_test, data.is_test))
    train, test = train[:max_train], test[:max_test]
    X = data.X[np.concatenate([train, test])].astype(np.float32)
    if noise != "none":
        X = np.hstack([X, irrelevant_columns(X, noise, seed)])
    y = choose_labels(data.y[train], seed, n_labels)
    return Split(X[: train.size], y, X[train.size :], data.y[test])


def choose_labels(truth: Labels, seed: int, n_labels: int) -> Labels:
    """Return y with `n_labels` labels, drawn until both classes occur, and -1 elsewhere."""
    if not 2 <= n_labels <= truth.size or np.unique(truth).size < 2:
        raise ValueError(f"{n_labels} labels of both classes cannot be drawn from {truth.size} rows.")
    random = np.random.default_rng([seed, n_labels])
    while True:
        labeled = random.choice(truth.size, n_labels, replace=False)
        if np.unique(truth[labeled]).size == 2:
            return np.where(np.isin(np.arange(truth.size), labeled), truth, -1)


def irrelevant_columns(X: Floats, noise: Noise, seed: int) -> Floats:
    """Return as many columns that say nothing as X has."""
    random = np.random.default_rng([seed, NOISES.index(noise)])
    if noise == "gaussian":
        mean, deviation = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
        return np.asarray(mean + deviation * random.standard_normal(X.shape), dtype=np.float32)
    if noise == "permuted":
        # A permutation of its own for each column: a shared one would keep their geometry.
        return np.asarray(random.permuted(X, axis=0), dtype=np.float32)
    raise ValueError(f"noise must be one of {NOISES}, got {noise!r}.")
