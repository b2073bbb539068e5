"""Score against cost and against the number of rounds."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from grbb_ext._options import one_of
from grbb_ext._show import new_axes
from grbb_ext.model_selection import CostCurve, cost_curve, staged_curve

Axis = Literal["cost", "rounds"]

# Bands of more lines than this cover each other.
_BANDS = 3
# More lines than this are explained by a bar, not by keys in the legend.
_KEYS = 5
_DASHES = ("-", (0, (5, 1.5)), (0, (3, 1.5, 1, 1.5)), (0, (1, 1.2)))


def legend_above(ax: Any, n_columns: int = 2) -> Any:
    """Draw the legend above the axes, its keys in rows of `n_columns`."""
    return ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=n_columns, frameon=False, borderaxespad=0.2)


class Display:
    """A picture on axes of its own, or on those given."""

    def _open(self, ax: Any, width: float, height: float) -> Any:
        """Keep the axes and their figure; None makes a figure of this size."""
        ax = new_axes(width, height) if ax is None else ax
        self.ax_, self.figure_ = ax, ax.figure
        return ax


class CostCurveDisplay(Display):
    """Score of models against the cost of their features, or against their number of boosting rounds.

    Against cost, a point is the model of one setting (one mu, or one hard budget) after all of its rounds, with its
    standard error over the folds. The line is the best score that some setting and number of rounds reach within a
    budget, as :meth:`~grbb_ext.model_selection.CostCurve.best_under` chooses them. Against rounds, there is one line
    for each setting.

    Parameters
    ----------
    curve : CostCurve
        The numbers.
    x : {"cost", "rounds"}, default="cost"
        What is on the horizontal axis.
    cost_unit : str or None, default=None
        Unit of the costs, for the axis.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        The axes, once drawn.
    figure_ : matplotlib.figure.Figure
        Their figure.
    lines_ : list of matplotlib.lines.Line2D
        Against cost the best score within a budget; against rounds the settings.
    points_ : list of matplotlib.container.ErrorbarContainer
        Against cost the models, one for each setting.
    best_ : matplotlib.lines.Line2D or None
        Against rounds the mark of the best score.
    colorbar_ : matplotlib.colorbar.Colorbar or None
        The settings.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> score, cost = np.array([[[0.7, 0.9], [0.6, 0.8]]]), np.array([[[3.0, 9.0], [1.0, 2.0]]])
    >>> curve = CostCurve(np.array([0.0, 1.0]), score, cost, np.full((1, 2), 2), "accuracy")
    >>> display = CostCurveDisplay.from_curve(curve, cost_unit="EUR")
    >>> display.ax_.get_xlabel(), display.lines_[0].get_xdata().tolist(), display.lines_[0].get_ydata().tolist()
    ('cost of the features (EUR)', [1.0, 2.0, 9.0, 9.0], [0.6, 0.8, 0.9, 0.9])
    >>> display = CostCurveDisplay.from_curve(curve, x="rounds")
    >>> display.lines_[0].get_xdata().tolist(), display.lines_[0].get_ydata().tolist()
    ([1, 2], [0.7, 0.9])
    """

    def __init__(self, curve: CostCurve, *, x: Axis = "cost", cost_unit: str | None = None) -> None:
        if not isinstance(curve, CostCurve):
            raise TypeError(f"curve must be what cost_curve returned, got {type(curve).__name__}.")
        one_of(x, ("cost", "rounds"), "x")
        self.curve, self.x, self.cost_unit = curve, x, cost_unit

    @classmethod
    def from_curve(
        cls, curve: CostCurve, *, x: Axis = "cost", cost_unit: str | None = None, ax: Any = None, **keywords: Any
    ) -> CostCurveDisplay:
        """Draw a curve.

        Parameters
        ----------
        curve : CostCurve
            What :func:`~grbb_ext.model_selection.cost_curve` returned; ``curve.select(mus=...)`` for a part of it.
        x, cost_unit
            As for :class:`CostCurveDisplay`.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a figure.
        **keywords
            Passed to :meth:`plot`.

        Returns
        -------
        CostCurveDisplay
            Drawn.
        """
        return cls(curve, x=x, cost_unit=cost_unit).plot(ax=ax, **keywords)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        x: Axis = "cost",
        cost_unit: str | None = None,
        ax: Any = None,
        **settings: Any,
    ) -> CostCurveDisplay:
        """Cross-validate an estimator along mu or along budgets, and draw the curve.

        Parameters
        ----------
        estimator : GRBBClassifier or GRBBRegressor
            What to train.
        X, y
            Rows and labels.
        x, cost_unit, ax
            As for :meth:`from_curve`.
        **settings
            Passed to :func:`~grbb_ext.model_selection.cost_curve`.

        Returns
        -------
        CostCurveDisplay
            Drawn.
        """
        return cls.from_curve(cost_curve(estimator, X, y, **settings), x=x, cost_unit=cost_unit, ax=ax)

    @classmethod
    def from_fitted(
        cls, estimator: Any, X: Any, y: Any, *, scoring: Any = None, x: Axis = "rounds", **keywords: Any
    ) -> CostCurveDisplay:
        """Score a fitted model after each of its rounds, and draw it.

        Parameters
        ----------
        estimator : GRBBClassifier or GRBBRegressor
            Fitted.
        X, y
            Rows that it was not trained on, and their labels; unlabelled ones are left out.
        scoring : str, callable or None, default=None
            A score of scikit-learn; None is accuracy, or R^2 for regression.
        x, **keywords
            As for :meth:`from_curve`, `cost_unit` and `ax` among them.

        Returns
        -------
        CostCurveDisplay
            Drawn.
        """
        return cls.from_curve(staged_curve(estimator, X, y, scoring), x=x, **keywords)

    def plot(
        self, ax: Any = None, *, name: str | None = None, colorbar: bool = True, **keywords: Any
    ) -> CostCurveDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a figure.
        name : str or None, default=None
            Label of a single line, to compare several on one axes.
        colorbar : bool, default=True
            Against cost, whether to colour the points by setting and draw a bar that explains it; without it they have
            the line's colour. Against rounds a bar is drawn where there are many lines.
        **keywords
            Passed to ``ax.plot`` for the lines.

        Returns
        -------
        CostCurveDisplay
            Itself, with `ax_`, `figure_`, `lines_`, `points_`, `best_` and `colorbar_`.
        """
        from matplotlib import colormaps

        ax = self._open(ax, 6.4, 4.2)
        self.lines_: list[Any] = []
        self.points_: list[Any] = []
        self.best_: Any = None
        self.colorbar_: Any = None
        # Dark is the first setting; the yellow end of viridis is hard to see on white.
        colors = colormaps["viridis"](np.linspace(0.0, 0.9, len(self.curve)))
        draw = self._plot_cost if self.x == "cost" else self._plot_rounds
        draw(colors, name, colorbar, keywords)
        ax.set_ylabel(self.curve.score_name + (", mean over folds" if self.curve.score.shape[0] > 1 else ""))
        legend_above(ax, n_columns=1 if self.x == "cost" else 2)
        return self

    def _plot_cost(self, colors: Any, name: str | None, colorbar: bool, keywords: dict[str, Any]) -> None:
        ax, curve = self.ax_, self.curve
        budgets, best = curve.frontier()
        cost, score, error = curve.mean_cost[:, -1], curve.mean_score[:, -1], curve.standard_error[:, -1]
        style = {"drawstyle": "steps-post", "color": "0.35" if colorbar else None, "lw": 1.5} | keywords
        reach, top = np.append(budgets, max(budgets[-1], cost.max())), np.append(best, best[-1])
        self.lines_ = ax.plot(reach, top, label=name or "best within a budget", **style)
        for i, color in enumerate(colors if colorbar else [self.lines_[0].get_color()] * len(curve)):
            bar = None if np.isnan(error[i]) else [error[i]]
            self.points_.append(ax.errorbar([cost[i]], [score[i]], bar, fmt="o", color=color, ms=6, capsize=2, lw=1))
        if name is None:  # one grey key for the points of all colours
            errors = "" if np.isnan(error).all() else ", ± standard error"
            ax.plot([], [], "o", color="0.35", ms=6, label=f"all rounds of a {self._what() or 'setting'}{errors}")
        if colorbar:
            self._draw_bar(colors)
        ax.set_xlabel("cost of the features" + (f" ({self.cost_unit})" if self.cost_unit else ""))

    def _plot_rounds(self, colors: Any, name: str | None, colorbar: bool, keywords: dict[str, Any]) -> None:
        from matplotlib.ticker import MaxNLocator

        ax, curve = self.ax_, self.curve
        score, error = curve.mean_score, curve.standard_error
        if np.isnan(score).all():
            raise ValueError(f"There is nothing to draw: {curve.score_name} is NaN after every round.")
        n_lines, n_rounds = score.shape
        rounds, several = np.arange(1, n_rounds + 1), n_lines > 1
        if n_lines > _KEYS and colorbar:
            self._draw_bar(colors)
        for i in range(n_lines):
            # Later lines are thinner and broken, so that one beneath them is seen.
            apart = {"color": colors[i], "ls": _DASHES[i % len(_DASHES)], "lw": 1.2 + 1.8 * (1 - i / n_lines)}
            style = (apart if several else {"lw": 1.5}) | keywords
            label = curve.names[i] if several and n_lines <= _KEYS else name
            self.lines_ += ax.plot(rounds, score[i], label=None if self.colorbar_ else label, **style)
            if curve.score.shape[0] > 1 and n_lines <= _BANDS:
                label = "± standard error" if i == n_lines - 1 and name is None else None
                color = self.lines_[i].get_color()
                low, high = score[i] - error[i], score[i] + error[i]
                ax.fill_between(rounds, low, high, color=color, alpha=0.2, lw=0, label=label)
        best = curve.best_under(None)  # of equal scores the cheapest
        by_budget = curve.budget == (np.inf if best.budget is None else best.budget)
        m = int(np.argmax(by_budget & ((curve.mu == best.mu) | np.isnan(best.mu))))
        t = min(best.n_rounds, n_rounds) - 1  # a training function has one score, whatever its rounds
        label = f"best: {score[m, t]:.3f} after {t + 1} rounds" + (f", {curve.names[m]}" if several else "")
        mark = {"marker": "*", "color": self.lines_[m].get_color(), "mec": "black", "ms": 11, "ls": "", "label": label}
        (self.best_,) = ax.plot([t + 1], [score[m, t]], **mark)
        ax.set_xlabel("boosting rounds")
        if ax.get_xscale() == "linear":  # there is no half round
            ax.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))

    def _what(self) -> str:
        """Return what the settings are, "mu" or "budget"; empty where they are both."""
        kinds = {name.split()[0] for name in self.curve.names}
        return kinds.pop() if len(kinds) == 1 else ""

    def _draw_bar(self, colors: Any) -> None:
        """Draw a bar with one field for each setting."""
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import BoundaryNorm, ListedColormap

        n = len(self.curve)
        shades = ScalarMappable(BoundaryNorm(np.arange(n + 1) - 0.5, n), ListedColormap(colors))
        self.colorbar_ = self.figure_.colorbar(shades, ax=self.ax_, ticks=np.arange(n), label=self._what())
        self.colorbar_.ax.set_yticklabels([name.removeprefix(f"{self._what()} ") for name in self.curve.names])
        self.colorbar_.minorticks_off()
        self.colorbar_.ax.tick_params(length=0)
