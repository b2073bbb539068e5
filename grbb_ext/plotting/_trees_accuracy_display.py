"""Score against the number of boosting rounds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from grbb_ext.model_selection import ScoreCostCurve
from grbb_ext.model_selection._staged import score_name, staged_scores
from grbb_ext.plotting._legend import legend_above
from grbb_ext.plotting._mu_colors import mu_bar, mu_colors

Floats = NDArray[np.float64]

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
