"""Score, cost and number of rounds along mu, in every fold, and what to choose under a budget."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from grbb_ext.costs import check_price

Floats = NDArray[np.float64]

# Scores that differ by rounding are equal, and the cheaper model is taken.
_DIGITS = 12


class CurvePoint(NamedTuple):
    """A choice on a curve.

    Attributes
    ----------
    mu : float
        The trade-off to train with.
    n_rounds : int
        The boosting rounds to train for; trees, with a single score per row.
    score : float
        Mean score over the folds.
    standard_error : float
        Its standard error, from the folds; NaN with a single one. Folds share training rows, so it is a guide only.
    cost : float
        Mean cost over the folds.
    """

    mu: float
    n_rounds: int
    score: float
    standard_error: float
    cost: float


@dataclass(frozen=True, eq=False)
class ScoreCostCurve:
    r"""Score and cost of models along mu and along their rounds, made by :func:`score_cost_curve`.

    One model per fold and mu; its first t rounds are a model too, which pays only for what those rounds use. A model
    that ended early keeps its last score and cost.

    Parameters
    ----------
    mu : ndarray of shape (M,)
        Trade-offs, ascending.
    score : ndarray of shape (F, M, T)
        Score on the test rows of each fold after 1, ..., T rounds; higher is better.
    cost : ndarray of shape (F, M, T)
        Price of all that the first t rounds use.
    n_rounds : ndarray of int of shape (F, M)
        Rounds that each model has, at most T.
    score_name : str, default="score"
        What the score is.
    estimator : estimator or None, default=None
        Not fitted; what :meth:`fit_best` trains.
    n_rounds_name : str, default="n_estimators"
        Its parameter for the number of rounds.

    Examples
    --------
    Two folds, two values of mu, three rounds. Without a limit mu = 0 is best. With 4 to spend, its models have to be
    cut after the first round, and mu = 1 is better:

    >>> score = [[[0.7, 0.8, 0.9], [0.7, 0.7, 0.8]], [[0.7, 0.8, 0.9], [0.6, 0.8, 0.8]]]
    >>> cost = [[[3, 5, 9], [1, 1, 4]], [[3, 5, 7], [1, 2, 2]]]
    >>> curve = ScoreCostCurve(np.array([0.0, 1.0]), np.array(score), np.array(cost), np.full((2, 2), 3))
    >>> curve.best_under(None).mu, curve.best_under(4).mu
    (0.0, 1.0)
    >>> best = curve.best_under(4)
    >>> best.n_rounds, round(best.score, 3), best.cost
    (3, 0.8, 3.0)
    """

    mu: Floats
    score: Floats
    cost: Floats
    n_rounds: NDArray[np.intp]
    score_name: str = "score"
    estimator: Any = field(default=None, repr=False)
    n_rounds_name: str = "n_estimators"

    @property
    def mean_score(self) -> Floats:
        """Mean over folds, shape (M, T)."""
        return np.asarray(self.score.mean(axis=0))

    @property
    def standard_error(self) -> Floats:
        """Standard error of the mean over folds, shape (M, T); NaN with a single fold."""
        return _standard_error(self.score)

    @property
    def mean_cost(self) -> Floats:
        """Mean cost over folds, shape (M, T)."""
        return np.asarray(self.cost.mean(axis=0))

    def under(self, budget: float | None) -> tuple[Floats, Floats]:
        """Return scores and costs of models that are cut before they exceed a budget.

        Parameters
        ----------
        budget : float or None
            The most that a model may cost; None is no limit.

        Returns
        -------
        score, cost : ndarray of shape (F, M, T)
            Entry t is that of the first min(t, u) rounds, u being the rounds that the budget pays for in that fold; NaN
            where it does not pay for the first.
        """
        if budget is None:
            return self.score, self.cost
        paid = (self.cost <= check_price(budget, "budget")).sum(axis=2, keepdims=True)
        at = np.minimum(np.arange(self.cost.shape[2]), np.maximum(paid - 1, 0))
        score, cost = (np.take_along_axis(values, at, axis=2) for values in (self.score, self.cost))
        return np.where(paid > 0, score, np.nan), np.where(paid > 0, cost, np.nan)

    def best_under(self, budget: float | None) -> CurvePoint:
        """Choose mu and the number of rounds with the best mean score within a budget; of equals the cheapest.

        In every fold a model is cut before the round that would exceed the budget, so each score is that of a model
        within the budget. The score of the choice is the best of many and so a little too good: score the refitted
        model on rows that had no part in the choice.

        Parameters
        ----------
        budget : float or None
            The most that a model may cost; None is no limit.

        Returns
        -------
        CurvePoint
        """
        score, cost = self.under(budget)
        mean, price = np.round(score.mean(axis=0), _DIGITS), cost.mean(axis=0)
        if np.isnan(self.score.mean(axis=0)).all():
            raise ValueError(
                f"{self.score_name} is NaN in some fold of every model, e.g. where the test rows hold a single class. "
                "Use fewer folds, or another score."
            )
        if np.isnan(mean).all():
            raise ValueError(
                f"A budget of {budget:g} does not pay for the first round of any mu in every fold; first rounds cost "
                f"{self.cost[:, :, 0].max(axis=0).min():g} or more. Sweep larger mus, or set the estimator's budget="
                "before, which buys nothing that does not fit."
            )
        rounds = np.broadcast_to(np.arange(mean.shape[1]), mean.shape)
        ranked = np.lexsort((rounds.ravel(), price.ravel(), -np.nan_to_num(mean, nan=-np.inf).ravel()))
        m, t = np.unravel_index(ranked[0], mean.shape)
        return CurvePoint(
            float(self.mu[m]),
            int(t) + 1,
            float(mean[m, t]),
            float(_standard_error(score)[m, t]),
            float(price[m, t]),
        )

    def fit_best(self, X: Any, y: Any, budget: float | None, **fit_params: Any) -> Any:
        """Train the estimator on all rows with the mu and the number of rounds that are best under a budget.

        The budget is set as the estimator's hard one, so the model never exceeds it, even if more rows make it buy
        more. Where the budget binds, the model goes on with features that are paid or still affordable, where
        :meth:`best_under` cut it.

        Parameters
        ----------
        X, y
            The rows, as given to :func:`score_cost_curve`.
        budget : float or None
            The most that the model may cost; None is the estimator's own budget, if it has one.
        **fit_params
            Passed to ``fit``.

        Returns
        -------
        estimator
            A fitted copy.
        """
        if self.estimator is None:
            raise ValueError("The curve has no estimator to train: make it with score_cost_curve(estimator, X, y).")
        best = self.best_under(budget)
        limits = [limit for limit in (budget, self.estimator.budget) if limit is not None]
        chosen = {"mu": best.mu, "budget": min(limits, default=None), self.n_rounds_name: best.n_rounds}
        return clone(self.estimator).set_params(**chosen).fit(X, y, **fit_params)

    def to_dict(self) -> dict[str, NDArray[Any]]:
        """Return the curve as columns of equal length, one row per fold, mu and round, e.g. for ``pandas.DataFrame``.

        Returns
        -------
        dict of ndarray
            ``fold``, ``mu``, ``n_rounds``, ``score`` and ``cost``; rounds that a model does not have are left out.
        """
        fold, m, t = np.nonzero(np.arange(self.score.shape[2]) < self.n_rounds[:, :, None])
        return {
            "fold": fold,
            "mu": self.mu[m],
            "n_rounds": t + 1,
            "score": self.score[fold, m, t],
            "cost": self.cost[fold, m, t],
        }

    def __repr__(self) -> str:
        folds, n_mu, n_rounds = self.score.shape
        return f"ScoreCostCurve({self.score_name}, {folds} folds, {n_mu} values of mu, up to {n_rounds} rounds)"


def _standard_error(score: Floats) -> Floats:
    folds = score.shape[0]
    if folds == 1:
        return np.full(score.shape[1:], np.nan)
    return np.asarray(score.std(axis=0, ddof=1) / np.sqrt(folds))
