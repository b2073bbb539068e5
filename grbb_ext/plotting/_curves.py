"""Score against cost, and against the number of trees."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from grbb_ext.model_selection import ScoreCostCurve, score_cost_curve, score_name, staged_scores


def legend_above(ax: Any, n_columns: int = 2) -> Any:
    """Draw the legend above the axes, its keys in rows of `n_columns`."""
    return ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=n_columns, frameon=False, borderaxespad=0.2)


def legend_right(ax: Any) -> Any:
    """Draw the legend to the right of the axes, one key below the other."""
    return ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)


def mu_colors(mu: NDArray[np.float64]) -> tuple[Any, Any]:
    """Return a colour for each value and the mappable for :func:`mu_bar`: dark is small.

    The yellow end of viridis is left out, for it is hard to see on white.
    """
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm, ListedColormap

    colors = colormaps["viridis"](np.linspace(0.0, 0.9, mu.size))
    norm = BoundaryNorm(np.arange(mu.size + 1) - 0.5, mu.size)
    return colors, ScalarMappable(norm, ListedColormap(colors))


def mu_bar(ax: Any, mu: NDArray[np.float64], mappable: Any) -> Any:
    """Draw a bar with one field for each value."""
    bar = ax.figure.colorbar(mappable, ax=ax, ticks=np.arange(mu.size), label="mu")
    bar.ax.set_yticklabels([f"{value:.3g}" for value in mu])
    bar.minorticks_off()
    bar.ax.tick_params(length=0)
    return bar


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


# Bands of more lines than this cover each other.
_BANDS = 3
# More lines than this are explained by a bar, not by keys in the legend.
_KEYS = 5


class TreesAccuracyDisplay:
    """Score after each boosting round, one line for each mu.

    Make it with :meth:`from_curve` (cross-validated) or :meth:`from_estimator` (a fitted model on other rows); the
    constructor takes numbers only.

    Parameters
    ----------
    score : ndarray of shape (M, T)
        Scores after 1, ..., T rounds.
    error : ndarray of shape (M, T) or None
        Their standard errors.
    mu : ndarray of shape (M,) or None
        The trade-off of each line; None for a single line without one.
    score_name : str
        What the score is.
    averaged : bool, default=False
        Whether scores are means over folds, for the axis.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        The axes, once drawn.
    figure_ : matplotlib.figure.Figure
        Their figure.
    lines_ : list of matplotlib.lines.Line2D
        The lines.
    best_ : matplotlib.lines.Line2D
        The mark of the best score.
    colorbar_ : matplotlib.colorbar.Colorbar or None
        The values of mu.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> score = np.array([[[0.7, 0.9, 0.8], [0.6, 0.8, 0.8]]])
    >>> curve = ScoreCostCurve(np.array([0.0, 1.0]), score, np.zeros((1, 2, 3)), np.full((1, 2), 3), "accuracy")
    >>> display = TreesAccuracyDisplay.from_curve(curve)
    >>> display.lines_[0].get_xdata().tolist(), display.lines_[0].get_ydata().tolist()
    ([1, 2, 3], [0.7, 0.9, 0.8])
    """

    def __init__(
        self, *, score: Floats, error: Floats | None, mu: Floats | None, score_name: str, averaged: bool = False
    ) -> None:
        self.score, self.error, self.mu, self.score_name, self.averaged = score, error, mu, score_name, averaged

    @classmethod
    def from_curve(
        cls, curve: ScoreCostCurve, *, mus: Iterable[float] | None = None, ax: Any = None, **keywords: Any
    ) -> TreesAccuracyDisplay:
        """Draw the mean scores of a cross-validation.

        Parameters
        ----------
        curve : ScoreCostCurve
            What :func:`~grbb_ext.model_selection.score_cost_curve` returned.
        mus : iterable of float or None, default=None
            Which values of mu to draw; None is all.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a figure.
        **keywords
            Passed to :meth:`plot`.

        Returns
        -------
        TreesAccuracyDisplay
            Drawn.
        """
        if not isinstance(curve, ScoreCostCurve):
            raise TypeError(f"curve must be what score_cost_curve returned, got {type(curve).__name__}.")
        at = np.arange(curve.mu.size)
        if mus is not None:
            wanted = [float(mu) for mu in mus]
            unknown = [mu for mu in wanted if mu not in curve.mu]
            if unknown or not wanted:
                raise ValueError(f"The curve has no mu of {unknown}. It has {curve.mu.tolist()}.")
            at = np.flatnonzero(np.isin(curve.mu, wanted))
        error = None if curve.score.shape[0] == 1 else curve.standard_error[at]
        display = cls(
            score=curve.mean_score[at], error=error, mu=curve.mu[at], score_name=curve.score_name, averaged=True
        )
        return display.plot(ax=ax, **keywords)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, scoring: Any = None, ax: Any = None, **keywords: Any
    ) -> TreesAccuracyDisplay:
        """Score a fitted model after each of its rounds.

        Parameters
        ----------
        estimator : GRBBClassifier or GRBBRegressor
            Fitted.
        X, y
            Rows that it was not trained on, and their labels; unlabelled ones are left out.
        scoring : str, callable or None, default=None
            A score of scikit-learn; None is accuracy, or R^2 for regression.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a figure.
        **keywords
            Passed to :meth:`plot`.

        Returns
        -------
        TreesAccuracyDisplay
            Drawn.
        """
        check_is_fitted(estimator)
        score = staged_scores(estimator, X, y, scoring)
        display = cls(score=score[None, :], error=None, mu=None, score_name=score_name(scoring, estimator))
        return display.plot(ax=ax, **keywords)

    def plot(self, ax: Any = None, *, name: str | None = None, **keywords: Any) -> TreesAccuracyDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a figure.
        name : str or None, default=None
            Label of a single line, to compare several on one axes.
        **keywords
            Passed to ``ax.plot`` for the lines.

        Returns
        -------
        TreesAccuracyDisplay
            Itself, with `ax_`, `figure_` and `lines_`.
        """
        import matplotlib.pyplot as plt
        from matplotlib.ticker import MaxNLocator

        if ax is None:
            _, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
        if np.isnan(self.score).all():
            raise ValueError(f"There is nothing to draw: {self.score_name} is NaN after every round.")
        n_lines, n_rounds = self.score.shape
        rounds = np.arange(1, n_rounds + 1)
        several = self.mu is not None and n_lines > 1
        self.lines_, self.colorbar_ = [], None
        if several:
            assert self.mu is not None
            colors, mappable = mu_colors(self.mu)
            if n_lines > _KEYS:
                self.colorbar_ = mu_bar(ax, self.mu, mappable)
        for i in range(n_lines):
            style = ({"color": colors[i]} if several else {}) | {"lw": 1.5} | keywords
            label = f"mu {self.mu[i]:.3g}" if several and self.mu is not None and n_lines <= _KEYS else name
            (line,) = ax.plot(rounds, self.score[i], label=None if self.colorbar_ else label, **style)
            self.lines_.append(line)
            if self.error is not None and n_lines <= _BANDS:
                low, high = self.score[i] - self.error[i], self.score[i] + self.error[i]
                label = "± standard error" if i == n_lines - 1 and name is None else None
                ax.fill_between(rounds, low, high, color=line.get_color(), alpha=0.2, lw=0, label=label)
        m, t = np.unravel_index(int(np.nanargmax(self.score)), self.score.shape)
        value = f", mu {self.mu[m]:.3g}" if several and self.mu is not None else ""
        label = f"best: {self.score[m, t]:.3f} after {t + 1} rounds{value}"
        color = self.lines_[m].get_color()
        (self.best_,) = ax.plot(
            [t + 1], [self.score[m, t]], marker="*", color=color, mec="black", ms=11, ls="", label=label
        )
        ax.set(xlabel="boosting rounds", ylabel=self.score_name + (", mean over folds" if self.averaged else ""))
        if ax.get_xscale() == "linear":  # there is no half round
            ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
        legend_above(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
