"""Hyper-parameters by Bayesian optimisation on the labelled rows only, with as many trials for every method."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import optuna
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.paper.boosted import Method, Rows, Settings, fit
from benchmarks.paper.linear import Linear, linear_path
from grbb_ext.graph import laplacian

N_TRIALS, N_FOLDS, MAX_ROWS = 8, 3, 400
#: The search grows fewer trees in fewer bins than the final model, which is trained once.
MAX_TREES, MAX_BIN = 50, 16
#: A probability is never taken for more certain than this, so that one confident mistake does not decide.
CERTAIN = 0.98


def tune(
    X: NDArray[Any],
    y: NDArray[Any],
    method: Method,
    n_trees: int,
    seed: int,
    *,
    groups: NDArray[Any] | None = None,
    n_trials: int = N_TRIALS,
) -> tuple[Settings, float]:
    """Search the space of a method for the settings that predict hidden labels best.

    A trial hides a third of the labels at a time, whose rows stay in as unlabelled ones, and is judged by the log-loss
    of the hidden labels. Test rows play no part. The first trial is the same for all methods, the
    others are proposed by a tree-structured Parzen estimator; a trial that is worse than the median after a fold ends
    there.

    Parameters
    ----------
    X, y : ndarray
        Training rows; y is -1 where there is no label. Of many unlabelled rows only some take part (`MAX_ROWS`).
    method : Method
        What to tune.
    n_trees : int
        Trees of the final model; the search grows at most `MAX_TREES`.
    seed : int
        Of folds and proposals.
    groups : ndarray or None, default=None
        Queries: documents of a query are hidden together.
    n_trials : int, default=8
        Trials.

    Returns
    -------
    settings : Settings
        The best.
    loss : float
        Its log-loss on hidden labels.
    """
    n_trees = min(n_trees, MAX_TREES)
    rows, folds = rows_and_folds(X, y, seed, groups)
    X, y = rows.X, rows.y

    def judge(trial: optuna.Trial) -> float:
        settings = propose(trial, method)
        losses: list[float] = []
        for step, (hidden, learned) in enumerate(folds):
            margins = fit(learned, method, settings, n_trees).margins(X[hidden], [n_trees])[0]
            losses.append(log_loss(margins, y[hidden]))
            trial.report(float(np.mean(losses)), step)
            if step + 1 < len(folds) and trial.should_prune():
                raise optuna.TrialPruned
        return float(np.mean(losses))

    first = Settings()
    study = search(judge, {name: getattr(first, name) for name in method.space}, seed, n_trials)
    return replace(first, **study.best_params), float(study.best_value)


def search(
    judge: Callable[[optuna.Trial], float], first: dict[str, Any], seed: int, n_trials: int = N_TRIALS
) -> optuna.Study:
    """Return the study of so many trials, of which `first` is the first."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(
        sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=4),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=3),
    )
    study.enqueue_trial(first)
    study.optimize(judge, n_trials=n_trials)
    return study


def rows_and_folds(
    X: NDArray[Any], y: NDArray[Any], seed: int, groups: NDArray[Any] | None = None
) -> tuple[Rows, list[tuple[NDArray[np.intp], Rows]]]:
    """Return the rows that take part in a search, and for each fold what is hidden and the rows without it."""
    kept = some_rows(y, seed)
    rows = Rows(X[kept], y[kept], MAX_BIN)
    hidden = folds_of(rows.y, seed, None if groups is None else groups[kept])
    return rows, [(fold, rows.hide(fold)) for fold in hidden]


def propose(trial: optuna.Trial, method: Method) -> Settings:
    """Return the settings of a trial: what the paper searches, and the weight of the correction."""
    proposals: dict[str, Callable[[], Any]] = {
        "eta": lambda: trial.suggest_float("eta", 0.02, 0.5, log=True),
        "depth": lambda: trial.suggest_int("depth", 1, 6),
        "n_neighbors": lambda: trial.suggest_categorical("n_neighbors", [5, 9, 15]),
        "lam": lambda: trial.suggest_float("lam", 1e-4, 0.3, log=True),
        "correction": lambda: trial.suggest_float("correction", 0.1, 1.0),
    }
    return replace(Settings(), **{name: proposals[name]() for name in method.space})


def some_rows(y: NDArray[Any], seed: int, max_rows: int = MAX_ROWS) -> NDArray[np.intp]:
    """Return all labelled rows and some of the others, in order."""
    unlabeled = np.flatnonzero(y < 0)
    room = max(max_rows - (y.size - unlabeled.size), 0)
    if room < unlabeled.size:
        unlabeled = np.random.default_rng(seed).choice(unlabeled, room, replace=False)
    return np.sort(np.concatenate([np.flatnonzero(y >= 0), unlabeled]))


def folds_of(
    y: NDArray[Any], seed: int, groups: NDArray[Any] | None = None, n_folds: int = N_FOLDS
) -> Iterator[NDArray[np.intp]]:
    """Yield the labelled rows to hide, fold by fold, so that both classes are always left.

    A fold that would leave a single class is left out. If that is so for every query, documents are hidden by
    themselves.

    Examples
    --------
    >>> y = np.array([0, -1, 0, 0, 1, 1, 1, -1])
    >>> sorted(int(row) for fold in folds_of(y, seed=0) for row in fold)
    [0, 2, 3, 4, 5, 6]
    """
    random = np.random.default_rng(seed)
    labeled = np.flatnonzero(y >= 0)
    fold = np.empty(y.size, dtype=np.intp)
    if groups is None:
        # Class after class, in turn: a class with at least n_folds labels is in every fold.
        order = random.permutation(labeled)
        order = order[np.argsort(y[order], kind="stable")]
        fold[order] = np.arange(order.size) % n_folds
    else:
        queries = random.permutation(np.unique(groups[labeled]))
        for place, query in enumerate(queries):
            fold[labeled[groups[labeled] == query]] = place % n_folds
    n_yielded = 0
    for number in range(n_folds):
        hidden = labeled[fold[labeled] == number]
        left = np.setdiff1d(labeled, hidden)
        if hidden.size and np.unique(y[left]).size == 2:
            n_yielded += 1
            yield hidden
    if n_yielded:
        return
    if groups is None:
        raise ValueError("A search needs two labels of one class and one of the other: none can be hidden here.")
    yield from folds_of(y, seed, n_folds=n_folds)


def log_loss(margins: NDArray[Any], y: NDArray[Any]) -> float:
    r"""Return :math:`-\frac1n \sum_i \log p_i`, with the probabilities of the true classes cut at .02 and .98.

    Examples
    --------
    >>> round(log_loss(np.array([0.0, 100.0]), np.array([0, 1])), 4)
    0.3567
    """
    p = np.clip(1 / (1 + np.exp(-np.clip(np.where(y == 1, margins, -margins), -50, 50))), 1 - CERTAIN, CERTAIN)
    return float(-np.log(p).mean())


N_PENALTIES, SMALLEST = 20, 1e-4


class Manifold(NamedTuple):
    """What LapLRL1 searches."""

    manifold: float = 0.01
    n_neighbors: int = 9


def path_of(
    rows: Rows, prices: NDArray[np.float64], chosen: Manifold | None = None, n_penalties: int = N_PENALTIES
) -> list[Linear]:
    """Return the path of LapLRL1, or of LRL1 where nothing is chosen, on the paper's graph."""
    L: sp.csr_array | None = None if chosen is None else laplacian(rows.graph(chosen.n_neighbors))
    weight = 0.0 if chosen is None else chosen.manifold
    return linear_path(
        rows.X, rows.y, prices, laplacian=L, manifold=weight, n_penalties=n_penalties, smallest=SMALLEST, tol=1e-6
    )


def tune_manifold(
    X: NDArray[Any],
    y: NDArray[Any],
    prices: NDArray[np.float64],
    seed: int,
    *,
    groups: NDArray[Any] | None = None,
    n_trials: int = N_TRIALS,
) -> tuple[Manifold, float]:
    """Search as :func:`benchmarks.paper.tuning.tune` does: the same rows, folds, loss and number of trials.

    A trial is a whole path, and is judged by the penalty that predicts the hidden labels best.

    Parameters
    ----------
    X, y : ndarray
        Training rows; y is -1 where there is no label.
    prices : ndarray
        Price of each column.
    seed : int
        Of folds and proposals.
    groups : ndarray or None, default=None
        Queries.
    n_trials : int, default=8
        Trials.

    Returns
    -------
    chosen : Manifold
        The best.
    loss : float
        Its log-loss on hidden labels.
    """
    rows, folds = rows_and_folds(X, y, seed, groups)

    def judge(trial: optuna.Trial) -> float:
        weight = trial.suggest_float("manifold", 1e-4, 1.0, log=True)
        chosen = Manifold(weight, trial.suggest_categorical("n_neighbors", [5, 9, 15]))
        losses: list[list[float]] = []
        for step, (hidden, learned) in enumerate(folds):
            path = path_of(learned, prices, chosen)
            losses.append([log_loss(m.scores(rows.X[hidden]), rows.y[hidden]) for m in path])
            trial.report(float(np.mean(losses, axis=0).min()), step)
            if step + 1 < len(folds) and trial.should_prune():
                raise optuna.TrialPruned
        return float(np.mean(losses, axis=0).min())

    study = search(judge, Manifold()._asdict(), seed, n_trials)
    return Manifold(**study.best_params), float(study.best_value)
