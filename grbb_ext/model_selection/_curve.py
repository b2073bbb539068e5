"""Score, cost and number of rounds of models along mu and along budgets, and the best of them under a budget."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from grbb_ext.costs import check_budget

Floats = NDArray[np.float64]

# Scores that differ by rounding are equal, and the cheaper model is taken.
_DIGITS = 12


class CostPoint(NamedTuple):
    """A model on a curve.

    Attributes
    ----------
    mu : float
        The trade-off to train with; NaN for a budget of a training function.
    budget : float or None
        The hard budget to train with; None where mu was swept.
    n_rounds : int
        The boosting rounds to train for. For a training function, the number of trees of its model.
    score : float
        Mean score over the folds.
    standard_error : float
        Its standard error, from the folds; NaN with a single one. Folds share training rows, so it is a guide only.
    cost : float
        Mean cost over the folds.
    model : object
        What a training function returned; None for an estimator, see :meth:`CostCurve.fit_best`.
    """

    mu: float
    budget: float | None
    n_rounds: int
    score: float
    standard_error: float
    cost: float
    model: Any = None


@dataclass(frozen=True, eq=False)
class CostCurve:
    r"""Score and cost of models for values of mu, hard budgets and numbers of rounds.

    Made by :func:`~grbb_ext.model_selection.cost_curve`. A setting is one mu, or one hard budget. There is
    one model per fold and setting; its first t rounds are a model too, which pays only for what those rounds use. A
    model that ended early keeps its last score and cost.

    Parameters
    ----------
    mu : ndarray of shape (M,)
        Trade-off of each setting.
    score : ndarray of shape (F, M, T)
        Score on the test rows of each fold after 1, ..., T rounds. With a training function F = T = 1.
    cost : ndarray of shape (F, M, T)
        Price of all that the first t rounds use.
    n_rounds : ndarray of int of shape (F, M)
        Rounds that each model has, at most T; with a training function, its trees.
    score_name : str, default="score"
        What the score is.
    budget : ndarray of shape (M,) or None, default=None
        Hard budget of each setting; inf where mu was swept. None is inf everywhere.
    n_features : ndarray of int of shape (F, M) or None, default=None
        Features that each model uses after all rounds.
    higher_is_better : bool, default=True
        Direction of the score.
    estimator : estimator or None, default=None
        Not fitted; what :meth:`fit_best` trains.
    n_rounds_name : str, default="n_estimators"
        Its parameter for the number of rounds.
    models : tuple, default=()
        What a training function returned, one for each setting.
    weighted : bool, default=False
        Whether rows had weights in training, which :meth:`fit_best` then needs, too.

    Examples
    --------
    Two folds, two values of mu, three rounds. Without a limit mu = 0 is best. With 4 to spend, its models have to be
    cut after the first round, and mu = 1 is better:

    >>> score = [[[0.7, 0.8, 0.9], [0.7, 0.7, 0.8]], [[0.7, 0.8, 0.9], [0.6, 0.8, 0.8]]]
    >>> cost = [[[3, 5, 9], [1, 1, 4]], [[3, 5, 7], [1, 2, 2]]]
    >>> curve = CostCurve(np.array([0.0, 1.0]), np.array(score), np.array(cost), np.full((2, 2), 3))
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
    budget: Any = None
    n_features: NDArray[np.intp] | None = field(default=None, repr=False)
    higher_is_better: bool = True
    estimator: Any = field(default=None, repr=False)
    n_rounds_name: str = "n_estimators"
    models: tuple[Any, ...] = field(default=(), repr=False)
    weighted: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        if self.budget is None:
            object.__setattr__(self, "budget", np.full(self.mu.size, np.inf))

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

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each setting, e.g. ``"mu 0.25"`` or ``"budget 20"``, with as many digits as tell them apart."""
        for digits in (3, 6, 15):
            names = tuple(
                f"mu {mu:.{digits}g}" if np.isinf(budget) else f"budget {budget:.{digits}g}"
                for mu, budget in zip(self.mu, self.budget, strict=True)
            )
            if len(set(names)) == len(names):
                break
        return names

    def select(self, mus: Iterable[float] = (), budgets: Iterable[float] = ()) -> CostCurve:
        """Return the part of the curve that has some values of mu and some hard budgets.

        Examples
        --------
        >>> curve = CostCurve(np.array([0.0, 1.0, 4.0]), np.ones((1, 3, 2)), np.ones((1, 3, 2)), np.full((1, 3), 2))
        >>> curve.select(mus=[4, 0]).names
        ('mu 0', 'mu 4')
        """
        by_mu = np.isinf(self.budget)
        kept = np.zeros(len(self), dtype=bool)
        for name, wanted, values, among in (
            ("mu", list(map(float, mus)), self.mu, by_mu),
            ("budget", list(map(float, budgets)), self.budget, ~by_mu),
        ):
            unknown = [value for value in wanted if value not in values[among]]
            if unknown:
                raise ValueError(f"The curve has no {name} of {unknown}. It has {values[among].tolist()}.")
            kept |= among & np.isin(values, wanted)
        if not kept.any():
            raise ValueError(f"Select at least one of {', '.join(self.names)}.")
        return replace(
            self,
            mu=self.mu[kept],
            budget=self.budget[kept],
            score=self.score[:, kept],
            cost=self.cost[:, kept],
            n_rounds=self.n_rounds[:, kept],
            n_features=None if self.n_features is None else self.n_features[:, kept],
            models=tuple(model for model, keep in zip(self.models, kept, strict=False) if keep),
        )

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
        budget = check_budget(budget)
        if budget is None:
            return self.score, self.cost
        paid = (self.cost <= budget).sum(axis=2, keepdims=True)
        at = np.minimum(np.arange(self.cost.shape[2]), np.maximum(paid - 1, 0))
        score, cost = (np.take_along_axis(values, at, axis=2) for values in (self.score, self.cost))
        return np.where(paid > 0, score, np.nan), np.where(paid > 0, cost, np.nan)

    def best_under(self, budget: float | None) -> CostPoint:
        """Choose the setting and the number of rounds with the best mean score within a budget; of equals the cheapest.

        In every fold a model is cut before the round that would exceed the budget, so each score is that of a model
        within the budget. A larger budget cuts later, and may score worse; :meth:`frontier` has the budgets that pay.
        The score of the choice is the best of many and therefore optimistic: score the refitted model on other rows.

        Parameters
        ----------
        budget : float or None
            The most that a model may cost; None is no limit.

        Returns
        -------
        CostPoint
        """
        score, cost = self.under(budget)
        mean, price = np.round(score.mean(axis=0), _DIGITS), cost.mean(axis=0)
        if np.isnan(price).all():
            least = f"{self.cost[:, :, 0].max(axis=0).min():g}" + ("" if self.models else " after its first round")
            raise ValueError(
                f"No model costs {budget:g} or less; the cheapest costs {least}. Sweep larger mus, or budgets=, which "
                "buys nothing that does not fit."
            )
        if np.isnan(mean).all():
            raise ValueError(
                "The best model is chosen by its score: pass scoring= to cost_curve."
                if self.models
                else f"{self.score_name} is NaN in some fold of every model, e.g. where the test rows hold a single "
                "class. Use fewer folds, or another score."
            )
        worst_last = np.nan_to_num(-mean if self.higher_is_better else mean, nan=np.inf)
        rounds = np.broadcast_to(np.arange(mean.shape[1]), mean.shape)
        ranked = np.lexsort((rounds.ravel(), price.ravel(), worst_last.ravel()))
        m, t = np.unravel_index(ranked[0], mean.shape)
        return CostPoint(
            float(self.mu[m]),
            float(self.budget[m]) if np.isfinite(self.budget[m]) else None,
            int(self.n_rounds[0, m]) if self.models else int(t) + 1,
            float(mean[m, t]),
            float(_standard_error(score)[m, t]),
            float(price[m, t]),
            self.models[m] if self.models else None,
        )

    def frontier(self) -> tuple[Floats, Floats]:
        """Return the budgets that improve the best mean score, ascending, and that score.

        Examples
        --------
        >>> score, cost = np.array([[[0.7, 0.9], [0.6, 0.8]]]), np.array([[[3.0, 9.0], [1.0, 2.0]]])
        >>> budgets, best = CostCurve(np.array([0.0, 1.0]), score, cost, np.full((1, 2), 2)).frontier()
        >>> budgets.tolist(), best.tolist()
        ([1.0, 2.0, 9.0], [0.6, 0.8, 0.9])
        """
        sign = 1.0 if self.higher_is_better else -1.0
        budgets = np.unique(self.cost)
        means = [np.round(sign * self.under(budget)[0].mean(axis=0), _DIGITS) for budget in budgets.tolist()]
        best = np.array([np.fmax.reduce(mean, axis=None, initial=-np.inf) for mean in means])
        improves = best > np.maximum.accumulate([-np.inf, *best[:-1]])
        if not improves.any():
            self.best_under(None)  # raises, and says why
        return budgets[improves], sign * best[improves]

    def fit_best(self, X: Any, y: Any, budget: float | None, **fit_params: Any) -> Any:
        """Train the estimator on all rows with the setting and the number of rounds that are best under a budget.

        The budget is set as the estimator's hard one, so the cost of the model never exceeds it, even if more rows make
        it buy more. Where the budget binds, training goes on with features that are paid or still affordable, where
        :meth:`best_under` cut the model.

        Parameters
        ----------
        X, y
            The rows, as given to :func:`cost_curve`.
        budget : float or None
            The most that the model may cost; None is the estimator's own budget, if it has one.
        **fit_params
            Passed to ``fit``; `sample_weight` is required where :func:`cost_curve` was given one.

        Returns
        -------
        estimator
            A fitted copy.
        """
        if self.estimator is None:
            raise ValueError(
                "The curve has no estimator to train: make it with cost_curve(estimator, X, y). With a training "
                "function, best_under(budget).model is the model."
            )
        if self.weighted and "sample_weight" not in fit_params:
            raise ValueError(
                "The curve was made with weights of rows: pass sample_weight= as to cost_curve, or sample_weight=None "
                "to train without."
            )
        best = self.best_under(budget)
        limits = [limit for limit in (budget, best.budget, self.estimator.budget) if limit is not None]
        chosen = {"mu": best.mu, "budget": min(limits, default=None), self.n_rounds_name: best.n_rounds}
        fitted = clone(self.estimator).set_params(**chosen).fit(X, y, **fit_params)
        if getattr(fitted, "n_iter_", 0) > best.n_rounds:
            raise ValueError(
                f"{fitted.n_iter_} rounds were trained in place of {best.n_rounds}: the booster has another parameter "
                "for the number of rounds beside n_estimators, such as num_iterations. Set n_estimators in its place."
            )
        return fitted

    def to_dict(self) -> dict[str, NDArray[Any]]:
        """Return the curve as columns of equal length, e.g. for ``pandas.DataFrame``.

        Returns
        -------
        dict of ndarray
            ``fold``, ``mu``, ``budget``, ``n_rounds``, ``score`` and ``cost``, with one row per fold, setting and
            round; rounds that a model does not have are left out. Where mu was swept, ``budget`` is inf, which
            estimators take as no limit.
        """
        last = self.score.shape[2] - 1
        fold, m, t = np.nonzero(np.arange(last + 1) < np.maximum(self.n_rounds, 1)[:, :, None])
        n_rounds = self.n_rounds[fold, m]
        return {
            "fold": fold,
            "mu": self.mu[m],
            "budget": self.budget[m],
            "n_rounds": np.where(t == last, n_rounds, np.minimum(t + 1, n_rounds)),
            "score": self.score[fold, m, t],
            "cost": self.cost[fold, m, t],
        }

    def __len__(self) -> int:
        return self.mu.size

    def __repr__(self) -> str:
        folds, _, n_rounds = self.score.shape
        if self.models:
            return f"CostCurve({len(self)} models, cost {self.cost.min():g} to {self.cost.max():g})"
        n_mu = int(np.isinf(self.budget).sum())
        kinds = [f"{n} {what}" for n, what in ((n_mu, "values of mu"), (len(self) - n_mu, "budgets")) if n]
        return f"CostCurve({self.score_name}, {folds} folds, {', '.join(kinds)}, up to {n_rounds} rounds)"


def _standard_error(score: Floats) -> Floats:
    folds = score.shape[0]
    if folds == 1:
        return np.full(score.shape[1:], np.nan)
    return np.asarray(score.std(axis=0, ddof=1) / np.sqrt(folds))
