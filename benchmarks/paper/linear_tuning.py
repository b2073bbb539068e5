"""Weight of the manifold term and neighbours of LapLRL1, searched like the settings of the boosted methods."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import optuna
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.paper.boosted import Rows
from benchmarks.paper.linear import Linear, linear_path
from benchmarks.paper.tuning import N_TRIALS, log_loss, rows_and_folds, search
from grbb_ext.graph import laplacian

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
