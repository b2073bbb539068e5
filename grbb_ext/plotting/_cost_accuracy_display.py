"""Score against cost along mu."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from grbb_ext.model_selection import ScoreCostCurve, score_cost_curve
from grbb_ext.plotting._legend import legend_above
from grbb_ext.plotting._mu_colors import mu_bar, mu_colors

Floats = NDArray[np.float64]


class CostAccuracyDisplay:
    """What a budget buys: cross-validated score against the cost of the features.

    A point is the model of one mu after all of its rounds, with its standard error over the folds. The line is the best
    score that some mu and number of rounds reach within a budget, as
    :meth:`~grbb_ext.model_selection.ScoreCostCurve.best_under` chooses them. Make it with :meth:`from_curve` or
    :meth:`from_estimator`; the constructor takes numbers only.

    Parameters
    ----------
    mu, cost, score, error : ndarray of shape (M,)
        Trade-offs, with mean cost, mean score and its standard error after all rounds.
    budget, best : ndarray of shape (B,)
        Budgets in ascending order, and the best mean score within each.
    score_name : str
        What the score is.
    cost_unit : str or None, default=None
        Unit of the costs, for the axis.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        The axes, once drawn.
    figure_ : matplotlib.figure.Figure
        Their figure.
    line_ : matplotlib.lines.Line2D
        The best score within a budget.
    points_ : list of matplotlib.container.ErrorbarContainer
        The models, one for each mu.
    colorbar_ : matplotlib.colorbar.Colorbar or None
        The values of mu.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> score, cost = np.array([[[0.7, 0.9], [0.6, 0.8]]]), np.array([[[3.0, 9.0], [1.0, 2.0]]])
    >>> curve = ScoreCostCurve(np.array([0.0, 1.0]), score, cost, np.full((1, 2), 2), "accuracy")
    >>> display = CostAccuracyDisplay.from_curve(curve, cost_unit="EUR")
    >>> display.budget.tolist(), display.best.tolist()
    ([1.0, 2.0, 9.0], [0.6, 0.8, 0.9])
    >>> display.ax_.get_xlabel()
    'cost of the features (EUR)'
    """

    def __init__(
        self,
        *,
        mu: Floats,
        cost: Floats,
        score: Floats,
        error: Floats,
        budget: Floats,
        best: Floats,
        score_name: str,
        cost_unit: str | None = None,
    ) -> None:
        self.mu, self.cost, self.score, self.error = mu, cost, score, error
        self.budget, self.best = budget, best
        self.score_name, self.cost_unit = score_name, cost_unit

    @classmethod
    def from_curve(
        cls, curve: ScoreCostCurve, *, cost_unit: str | None = None, ax: Any = None, **keywords: Any
    ) -> CostAccuracyDisplay:
        """Draw a curve.

        Parameters
        ----------
        curve : ScoreCostCurve
            What :func:`~grbb_ext.model_selection.score_cost_curve` returned.
        cost_unit : str or None, default=None
            Unit of the costs, for the axis.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a figure.
        **keywords
            Passed to :meth:`plot`.

        Returns
        -------
        CostAccuracyDisplay
            Drawn.
        """
        if not isinstance(curve, ScoreCostCurve):
            raise TypeError(f"curve must be what score_cost_curve returned, got {type(curve).__name__}.")
        budgets: list[float] = []
        best: list[float] = []
        for budget in np.unique(curve.cost):
            mean = curve.under(float(budget))[0].mean(axis=0)
            if np.isnan(mean).all():
                continue
            top = float(np.nanmax(mean))
            if not best or top > best[-1]:  # only what a larger budget improves is drawn
                budgets.append(float(budget))
                best.append(top)
        if not best:
            curve.best_under(None)  # says why there is none
        display = cls(
            mu=curve.mu,
            cost=curve.mean_cost[:, -1],
            score=curve.mean_score[:, -1],
            error=curve.standard_error[:, -1],
            budget=np.array(budgets),
            best=np.array(best),
            score_name=curve.score_name,
            cost_unit=cost_unit,
        )
        return display.plot(ax=ax, **keywords)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, cost_unit: str | None = None, ax: Any = None, **settings: Any
    ) -> CostAccuracyDisplay:
        """Cross-validate an estimator along mu and draw the curve.

        Parameters
        ----------
        estimator : GRBBClassifier or GRBBRegressor
            What to train.
        X, y
            Rows and labels.
        cost_unit, ax
            As for :meth:`from_curve`.
        **settings
            Passed to :func:`~grbb_ext.model_selection.score_cost_curve`.

        Returns
        -------
        CostAccuracyDisplay
            Drawn.
        """
        return cls.from_curve(score_cost_curve(estimator, X, y, **settings), cost_unit=cost_unit, ax=ax)

    def plot(
        self, ax: Any = None, *, name: str | None = None, colorbar: bool = True, **keywords: Any
    ) -> CostAccuracyDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a figure.
        name : str or None, default=None
            Label of the line, to compare several on one axes.
        colorbar : bool, default=True
            Whether to colour the points by mu and draw a bar that explains it; without it they have the line's colour.
        **keywords
            Passed to ``ax.plot`` for the line.

        Returns
        -------
        CostAccuracyDisplay
            Itself, with `ax_`, `figure_`, `line_` and `points_`.
        """
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
        style = {"drawstyle": "steps-post", "color": "0.35" if colorbar else None, "lw": 1.5} | keywords
        most = max(float(self.budget[-1]), float(self.cost.max()))
        reach, top = np.append(self.budget, most), np.append(self.best, self.best[-1])
        (self.line_,) = ax.plot(reach, top, label=name or "best within a budget", **style)
        colors, mappable = mu_colors(self.mu)
        self.points_ = []
        for i in range(self.mu.size):
            color = colors[i] if colorbar else self.line_.get_color()
            error = None if np.isnan(self.error[i]) else [self.error[i]]
            point = ax.errorbar([self.cost[i]], [self.score[i]], error, fmt="o", color=color, ms=6, capsize=2, lw=1)
            self.points_.append(point)
        # One grey key stands for the points of all colours.
        label = "all rounds of a mu" if np.isnan(self.error).all() else "all rounds of a mu, ± standard error"
        if name is None:
            ax.plot([], [], "o", color="0.35", ms=6, label=label)
        self.colorbar_ = mu_bar(ax, self.mu, mappable) if colorbar else None
        unit = f" ({self.cost_unit})" if self.cost_unit else ""
        ax.set(xlabel=f"cost of the features{unit}", ylabel=f"{self.score_name}, mean over folds")
        legend_above(ax, n_columns=1)
        self.ax_, self.figure_ = ax, ax.figure
        return self
