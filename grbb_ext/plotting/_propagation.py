"""Rows in the plane, coloured by their propagated labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted

from grbb_ext.objective import GRBBObjective
from grbb_ext.plotting._curves import legend_above, legend_right
from grbb_ext.table import DistanceSpace, read_table


def plane(X: Any) -> tuple[NDArray[np.float64], tuple[str, str]]:
    """Return two coordinates of each row and the names of the axes.

    Two columns are drawn as they are. More are scaled as for the graph and projected on their principal components.

    Parameters
    ----------
    X : array-like, sparse matrix or frame of shape (N, d)
        Rows; missing numbers are replaced by the median, categories become one-hot columns.

    Examples
    --------
    >>> coordinates, names = plane([[0.0, 0.0, 1.0], [2.0, 0.0, 1.0], [4.0, 0.1, 1.0]])
    >>> coordinates.shape, names
    ((3, 2), ('component 1 (93 % of the variance)', 'component 2 (7 %)'))
    """
    table = read_table(X)
    names = table.schema.names or [f"column {j}" for j in range(table.n_columns)]
    if table.n_columns < 2:
        raise ValueError(f"X must have at least two columns, got shape {table.values.shape}. Pass coordinates=.")
    if table.values.shape[1] == 2 and not table.schema.categorical and not hasattr(table.values, "tocsr"):
        return np.asarray(table.values, dtype=np.float64), (names[0], names[1])
    _, points = DistanceSpace.fit_transform(table, warn_missing=False)
    pca = PCA(2, random_state=0).fit(points)
    share = np.nan_to_num(pca.explained_variance_ratio_)  # rows that are all equal have none
    coordinates = pca.transform(points)
    return np.asarray(coordinates, dtype=np.float64), (
        f"component 1 ({share[0]:.0%} of the variance)".replace("%", " %"),
        f"component 2 ({share[1]:.0%})".replace("%", " %"),
    )


Floats = NDArray[np.float64]

# The faintest row of a multi-class picture is still to be seen.
_FAINTEST = 0.12
# Classes that get a key of their own in the legend.
_KEYS = 20
_MARK = {"s": 60, "edgecolors": "black", "lw": 1.2}


class PropagationDisplay:
    r"""The propagated labels of every row, drawn in the plane; labelled rows are marked.

    With two classes, or for regression, the colour of a row is its propagated negative gradient -g: the direction and
    size of the step that the next tree is fitted to. With more classes it is the class of the largest entry of
    q = mean(H) - g (the target of the round), and the opacity grows from q = 1/K to q = 1. Make it with
    :meth:`from_objective` or :meth:`from_estimator`; the constructor takes numbers only.

    Parameters
    ----------
    coordinates : ndarray of shape (N, 2)
        Where rows are drawn.
    value : ndarray of shape (N,) or (N, K)
        -g, or q with more than two classes.
    labeled : ndarray of int
        The labelled rows.
    unreachable : ndarray of int
        Rows that no label reaches.
    classes : ndarray of shape (K,) or None
        The classes; None for regression.
    axis_names : tuple of str
        Names of the two coordinates.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        The axes, once drawn.
    figure_ : matplotlib.figure.Figure
        Their figure.
    points_ : matplotlib.collections.PathCollection
        All rows, labelled ones too.
    labeled_ : matplotlib.collections.PathCollection
        The labelled rows.
    colorbar_ : matplotlib.colorbar.Colorbar or None
        Of the gradient.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from grbb_ext import grbb_objective
    >>> path = np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
    >>> obj = grbb_objective(None, [0, -1, -1, 1], graph=path, preset="paper")
    >>> display = PropagationDisplay.from_objective(obj, [[0, 0], [1, 0], [2, 0], [3, 0]])
    >>> display.value.round(3).tolist()
    [-0.5, -0.167, 0.167, 0.5]
    """

    def __init__(
        self,
        *,
        coordinates: Floats,
        value: Floats,
        labeled: NDArray[np.intp],
        unreachable: NDArray[np.intp],
        classes: NDArray[Any] | None,
        axis_names: tuple[str, str] = ("", ""),
    ) -> None:
        self.coordinates, self.value, self.labeled, self.unreachable = coordinates, value, labeled, unreachable
        self.classes, self.axis_names = classes, axis_names

    @classmethod
    def from_objective(
        cls,
        obj: GRBBObjective,
        X: Any = None,
        *,
        coordinates: ArrayLike | None = None,
        raw_scores: ArrayLike | None = None,
        ax: Any = None,
        **keywords: Any,
    ) -> PropagationDisplay:
        """Compute the gradient of every row and draw it.

        Parameters
        ----------
        obj : GRBBObjective
            The objective.
        X : array-like, sparse matrix or frame of shape (N, d), default=None
            The rows of the objective: two columns are drawn as they are, more by their two principal components.
        coordinates : array-like of shape (N, 2), default=None
            Where to draw the rows, in place of X: an embedding of your own.
        raw_scores : array-like of shape (N,) or (N, K), default=None
            Raw scores at which the gradient is taken; None is before the first tree: 0, or for regression the mean of
            the labels.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a figure.
        **keywords
            Passed to :meth:`plot`.

        Returns
        -------
        PropagationDisplay
            Drawn.
        """
        if (X is None) == (coordinates is None):
            raise ValueError("Pass either X, which is projected on a plane, or coordinates= of shape (N, 2).")
        if coordinates is None:
            at, names = plane(X)
        else:
            at, names = np.asarray(coordinates, dtype=np.float64), ("", "")
            if at.ndim != 2 or at.shape[1] != 2:
                raise ValueError(f"coordinates must have two columns, got shape {at.shape}.")
        if len(at) != obj.n_rows_:
            raise ValueError(
                f"There are {len(at)} rows to draw but the objective has {obj.n_rows_}: pass the same ones."
            )
        if not np.isfinite(at).all():
            raise ValueError("Coordinates must be finite: replace missing ones.")
        K = obj.n_outputs_
        shape = (obj.n_rows_,) if K == 1 else (obj.n_rows_, K)
        start = 0.0 if obj.classes_ is not None else float(obj.labeled_targets_.mean())
        H = np.full(shape, start) if raw_scores is None else np.asarray(raw_scores, dtype=np.float64)
        gradient = np.asarray(obj(H)[0], dtype=np.float64)
        display = cls(
            coordinates=at,
            value=-gradient if K == 1 else np.asarray(obj.loss_.mean(H)) - gradient,
            labeled=obj.labeled_,
            unreachable=obj.unreachable_,
            classes=obj.classes_,
            axis_names=names,
        )
        return display.plot(ax=ax, **keywords)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        coordinates: ArrayLike | None = None,
        raw_scores: ArrayLike | None = None,
        ax: Any = None,
        **keywords: Any,
    ) -> PropagationDisplay:
        """Draw the propagated labels of the rows that an estimator was fitted to.

        Parameters
        ----------
        estimator : GRBBClassifier or GRBBRegressor
            Fitted.
        X : array-like, sparse matrix or frame of shape (N, d), default=None
            The rows that it was fitted to.
        coordinates, raw_scores, ax, **keywords
            As for :meth:`from_objective`; ``raw_scores=estimator.raw_scores_`` shows what is left after the last tree.

        Returns
        -------
        PropagationDisplay
            Drawn.
        """
        check_is_fitted(estimator)
        return cls.from_objective(
            estimator.objective_, X, coordinates=coordinates, raw_scores=raw_scores, ax=ax, **keywords
        )

    def plot(self, ax: Any = None, *, cmap: Any = None, **keywords: Any) -> PropagationDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a figure.
        cmap : str, Colormap or None, default=None
            Colours: of the gradient, ``"coolwarm"`` by default, or of the classes, ``"tab10"`` or ``"tab20"``.
        **keywords
            Passed to ``ax.scatter`` for the rows.

        Returns
        -------
        PropagationDisplay
            Itself, with `ax_`, `figure_`, `points_` and `labeled_`.
        """
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots(figsize=(6.4, 4.8), layout="constrained")
        self.ax_, self.figure_, self.colorbar_ = ax, ax.figure, None
        style = {"s": 14, "linewidths": 0} | keywords
        x, y = self.coordinates.T
        if self.value.ndim == 1:
            self._plot_gradient(x, y, cmap or "coolwarm", style)
        else:
            self._plot_classes(x, y, cmap, style)
        if self.unreachable.size:
            at = self.unreachable
            ax.scatter(x[at], y[at], marker="x", color="0.5", s=16, lw=0.8, label=f"out of reach ({at.size})")
        # One key for labelled rows of all colours.
        ax.scatter([], [], c="white", label=f"labelled ({self.labeled.size})", **_MARK)
        if self.value.ndim == 1:
            legend_above(ax)
        else:
            legend_right(ax)
        ax.set(xlabel=self.axis_names[0], ylabel=self.axis_names[1])
        return self

    def _plot_gradient(self, x: Floats, y: Floats, cmap: Any, style: dict[str, Any]) -> None:
        ax, limit = self.ax_, float(np.abs(self.value).max()) or 1.0
        # Strong rows are drawn last, on top of the many weak ones.
        order = np.argsort(np.abs(self.value), kind="stable")
        color = {"cmap": cmap, "vmin": -limit, "vmax": limit}
        self.points_ = ax.scatter(x[order], y[order], c=self.value[order], **(color | style))
        at = self.labeled
        self.labeled_ = ax.scatter(x[at], y[at], c=self.value[at], **color, **_MARK)
        toward = "" if self.classes is None else f", towards {self.classes[0]} (-) or {self.classes[1]} (+)"
        self.colorbar_ = ax.figure.colorbar(self.points_, ax=ax, label=f"propagated -g{toward}")

    def _plot_classes(self, x: Floats, y: Floats, cmap: Any, style: dict[str, Any]) -> None:
        from matplotlib import colormaps

        assert self.classes is not None
        ax, K = self.ax_, self.value.shape[1]
        if cmap is None:
            cmap = "tab10" if K <= 10 else "tab20" if K <= 20 else "turbo"
        palette = colormaps[cmap] if isinstance(cmap, str) else cmap
        qualitative = getattr(palette, "N", 256) < 256
        colors = palette(np.arange(K) if qualitative else np.linspace(0, 1, K))
        largest, strength = self.value.argmax(axis=1), self.value.max(axis=1)
        color = colors[largest].copy()
        color[:, 3] = _FAINTEST + (1 - _FAINTEST) * np.clip((strength - 1 / K) / (1 - 1 / K), 0.0, 1.0)
        order = np.argsort(strength, kind="stable")
        self.points_ = ax.scatter(x[order], y[order], c=color[order], **style)
        at = self.labeled
        self.labeled_ = ax.scatter(x[at], y[at], c=colors[largest[at]], **_MARK)
        if K <= _KEYS:
            for name, shade in zip(self.classes, colors, strict=True):
                ax.scatter([], [], color=shade, s=30, label=str(name))
