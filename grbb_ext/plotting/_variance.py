"""Variance of every row's prediction against the prediction itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from grbb_ext.objective import GRBBObjective
from grbb_ext.plotting._curves import legend_above
from grbb_ext.variance import PredictionVariance, prediction_variance


class VarianceDisplay:
    """Standard deviation of each row's prediction against the prediction, labelled rows marked.

    Make it with :meth:`from_objective` or :meth:`from_estimator`; the constructor takes numbers only.

    Parameters
    ----------
    prediction : ndarray of shape (N,)
        Predicted probability of the second class, of the most probable one where there are more, or the value.
    variance : ndarray of shape (N,)
        Variance of each prediction; inf where no label reaches.
    labeled : ndarray of int
        The labelled rows.
    mean : float
        Mean variance over the rows that a label reaches.
    kind : str
        ``"sandwich"`` or ``"fisher"``.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        The axes, once drawn.
    figure_ : matplotlib.figure.Figure
        Their figure.
    points_ : matplotlib.collections.PathCollection
        The rows.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from grbb_ext import grbb_objective
    >>> path = np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
    >>> obj = grbb_objective(None, [0, -1, -1, 1], graph=path)
    >>> display = VarianceDisplay.from_objective(obj, [-2.0, -1.0, 1.0, 2.0], lam=1.0)
    >>> display.ax_.get_xlabel()
    'predicted probability'
    """

    def __init__(
        self,
        *,
        prediction: NDArray[np.float64],
        variance: NDArray[np.float64],
        labeled: NDArray[np.intp],
        mean: float,
        kind: str,
    ) -> None:
        self.prediction, self.variance, self.labeled = prediction, variance, labeled
        self.mean, self.kind = mean, kind

    @classmethod
    def from_objective(
        cls, obj: GRBBObjective, raw_scores: ArrayLike, *, ax: Any = None, **settings: Any
    ) -> VarianceDisplay:
        """Compute the variance of every row and draw it.

        Parameters
        ----------
        obj : GRBBObjective
            The objective.
        raw_scores : array-like of shape (N,) or (N, K)
            Raw scores on all rows.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a figure.
        **settings
            Passed to :func:`grbb_ext.variance.prediction_variance`.

        Returns
        -------
        VarianceDisplay
            Drawn.
        """
        found: PredictionVariance = prediction_variance(obj, raw_scores, **settings | {"per_row": True})
        assert found.per_row is not None
        prediction = np.asarray(obj.loss_.mean(np.asarray(raw_scores, dtype=np.float64)), dtype=np.float64)
        if prediction.ndim == 2:
            prediction = prediction.max(axis=1)
        display = cls(
            prediction=prediction, variance=found.per_row, labeled=obj.labeled_, mean=found.mean, kind=found.kind
        )
        return display.plot(ax=ax)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **settings: Any) -> VarianceDisplay:
        """Compute the variance of every row that an estimator was fitted to and draw it.

        Parameters
        ----------
        estimator : GRBBClassifier or GRBBRegressor
            Fitted.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a figure.
        **settings
            Passed to :func:`grbb_ext.variance.prediction_variance`.

        Returns
        -------
        VarianceDisplay
            Drawn.
        """
        check_is_fitted(estimator)
        return cls.from_objective(estimator.objective_, estimator.raw_scores_, ax=ax, **settings)

    def plot(self, ax: Any = None, **keywords: Any) -> VarianceDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a figure.
        **keywords
            Passed to ``ax.scatter``.

        Returns
        -------
        VarianceDisplay
            Itself, with `ax_` and `figure_`.
        """
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots(figsize=(6, 4), layout="constrained")
        deviation = np.sqrt(self.variance)
        reached = np.isfinite(deviation)
        style = {"s": 8, "alpha": 0.5, "linewidths": 0} | keywords
        self.points_ = ax.scatter(self.prediction[reached], deviation[reached], **style)
        at = self.labeled
        ax.scatter(self.prediction[at], deviation[at], marker="x", color="black", s=24, label="labelled")
        ax.axhline(np.sqrt(self.mean), color="0.6", lw=1, ls="--", label=f"mean variance {self.mean:.3g}")
        left_out = int((~reached).sum())
        if left_out:
            ax.plot([], [], " ", label=f"{left_out} rows out of reach")
        inside = bool((self.prediction >= 0).all() and (self.prediction <= 1).all())
        ax.set_xlabel("predicted probability" if inside else "prediction")
        ax.set_ylabel(f"standard deviation ({self.kind})")
        ax.set_ylim(bottom=0)
        legend_above(ax, n_columns=3)
        self.ax_, self.figure_ = ax, ax.figure
        return self
