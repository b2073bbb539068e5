"""Pictures of the rows: their propagated labels in the plane, and the variance of their predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted

from grbb_ext.objective import GRBBObjective
from grbb_ext.plotting._curves import Display, legend_above
from grbb_ext.table import DistanceSpace, read_table
from grbb_ext.teacher import Evidence
from grbb_ext.variance import prediction_variance

Floats = NDArray[np.float64]

# The faintest row of a multi-class picture is still to be seen.
_FAINTEST = 0.12
# Classes that get a key of their own in the legend.
_KEYS = 20
# A probability is within [0, 1], so that its standard deviation is at most this.
_MOST_DEVIATION = 0.5
_MARK = {"s": 60, "edgecolors": "black", "lw": 1.2}


def plane(X: Any) -> tuple[Floats, tuple[str, str]]:
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
    if table.n_columns == 2 and not table.schema.categorical:
        at = np.asarray(table.values.toarray() if hasattr(table.values, "tocsr") else table.values, dtype=np.float64)
        return np.where(np.isnan(at), np.nanmedian(at, axis=0), at), (names[0], names[1])
    points = DistanceSpace.fit(table, warn_missing=False)(table)
    pca = PCA(2, random_state=0).fit(points)
    first, second = 100 * np.nan_to_num(pca.explained_variance_ratio_)  # rows that are all equal have none
    axis_names = (f"component 1 ({first:.0f} % of the variance)", f"component 2 ({second:.0f} %)")
    return np.asarray(pca.transform(points), dtype=np.float64), axis_names


def _text(name: Any) -> str:
    """Return a name as text in which no two $ enclose a formula."""
    return str(name).replace("$", r"\$")


@dataclass(kw_only=True, eq=False, repr=False)
class PropagationDisplay(Display):
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

    coordinates: Floats
    value: Floats
    labeled: NDArray[np.intp]
    unreachable: NDArray[np.intp]
    classes: NDArray[Any] | None
    axis_names: tuple[str, str] = ("", "")

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
        shape = (obj.n_rows_, *obj.labeled_targets_.shape[1:])
        start = 0.0 if obj.classes_ is not None else float(obj.labeled_targets_.mean())
        H = np.full(shape, start) if raw_scores is None else np.asarray(raw_scores, dtype=np.float64)
        gradient = np.asarray(obj(H)[0], dtype=np.float64)
        # What the rule teaches of each class: the targets, or the prediction less the gradient.
        q = obj.loss_.mean(H) - gradient if obj.targets_ is None else np.asarray(obj.targets_, dtype=np.float64)
        display = cls(
            coordinates=at,
            value=-gradient if gradient.ndim == 1 else q,
            labeled=obj.labeled_,
            unreachable=obj.unreachable_,
            classes=obj.classes_,
            axis_names=names,
        )
        return display.plot(ax=ax, **keywords)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, **keywords: Any) -> PropagationDisplay:
        """Draw the propagated labels of the rows that an estimator was fitted to.

        Parameters
        ----------
        estimator : GRBBClassifier or GRBBRegressor
            Fitted.
        X : array-like, sparse matrix or frame of shape (N, d), default=None
            The rows that it was fitted to.
        **keywords
            As for :meth:`from_objective`: `coordinates`, `raw_scores`, `ax` and those of :meth:`plot`.
            ``raw_scores=estimator.raw_scores_`` shows what is left after the last tree.

        Returns
        -------
        PropagationDisplay
            Drawn.
        """
        check_is_fitted(estimator)
        rows = None if X is None else estimator._rows_of_fit(X)
        return cls.from_objective(estimator.objective_, rows, **keywords)

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
        ax = self._open(ax, 6.4, 4.8)
        (x, y), at, out = self.coordinates.T, self.labeled, self.unreachable
        if self.value.ndim == 1:
            limit = float(np.abs(self.value).max()) or 1.0
            scale = {"cmap": cmap or "coolwarm", "vmin": -limit, "vmax": limit}
            strength, color, mark = np.abs(self.value), self.value, self.value
        else:
            palette = self._palette(cmap)
            scale, strength, mark = {}, self.value.max(axis=1), palette[self.value.argmax(axis=1)]
            color, chance = mark.copy(), 1 / len(palette)
            color[:, 3] = _FAINTEST + (1 - _FAINTEST) * np.clip((strength - chance) / (1 - chance), 0.0, 1.0)
        # Strong rows are drawn last, on top of the many weak ones.
        order = np.argsort(strength, kind="stable")
        style = {"s": 14, "linewidths": 0} | scale | keywords
        self.points_ = ax.scatter(x[order], y[order], c=color[order], **style)
        self.labeled_ = ax.scatter(x[at], y[at], c=mark[at], **scale, **_MARK)
        self.colorbar_ = None
        if self.value.ndim == 1:
            named = [] if self.classes is None else [_text(f"{name!s:.20}") for name in self.classes]
            toward = ",\ntowards {} (-) or {} (+)".format(*named) if named else ""
            self.colorbar_ = ax.figure.colorbar(self.points_, ax=ax, label=f"step that the next tree learns{toward}")
        elif self.classes is not None and len(palette) <= _KEYS:
            for name, shade in zip(self.classes, palette, strict=True):
                ax.scatter([], [], color=shade, s=30, label=_text(name))
        if out.size:
            ax.scatter(x[out], y[out], marker="x", color="0.5", s=16, lw=0.8, label=f"out of reach ({out.size})")
        # One key for labelled rows of all colours.
        ax.scatter([], [], c="white", label=f"labelled ({at.size})", **_MARK)
        if self.value.ndim == 1:
            legend_above(ax)
        else:
            ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
        ax.set(xlabel=_text(self.axis_names[0]), ylabel=_text(self.axis_names[1]))
        return self

    def _palette(self, cmap: Any) -> Floats:
        """Return a colour for each class."""
        from matplotlib import colormaps

        K = self.value.shape[1]
        if cmap is None:
            cmap = "tab10" if K <= 10 else "tab20" if K <= 20 else "turbo"
        colors = colormaps[cmap] if isinstance(cmap, str) else cmap
        qualitative = getattr(colors, "N", 256) < 256
        return np.asarray(colors(np.arange(K) if qualitative else np.linspace(0, 1, K)))


@dataclass(kw_only=True, eq=False, repr=False)
class VarianceDisplay(Display):
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
    is_probability : bool, default=False
        Whether predictions are probabilities, whose standard deviation is 0.5 at most. Rows above it are drawn at 0.5,
        as triangles: their variance carries no information.

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

    prediction: Floats
    variance: Floats
    labeled: NDArray[np.intp]
    mean: float
    kind: str
    is_probability: bool = False

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
        found = prediction_variance(obj, raw_scores, **settings | {"per_row": True})
        assert found.per_row is not None
        prediction = np.asarray(obj.loss_.mean(np.asarray(raw_scores, dtype=np.float64)), dtype=np.float64)
        if prediction.ndim == 2:
            prediction = prediction.max(axis=1)
        display = cls(
            prediction=prediction,
            variance=found.per_row,
            labeled=obj.labeled_,
            mean=found.mean,
            kind=found.kind,
            is_probability=obj.classes_ is not None,
        )
        return display.plot(ax=ax)

    @classmethod
    def from_estimator(cls, estimator: Any, **settings: Any) -> VarianceDisplay:
        """Compute the variance of every row that an estimator was fitted to and draw it.

        Parameters
        ----------
        estimator : GRBBClassifier or GRBBRegressor
            Fitted.
        **settings
            As for :meth:`from_objective`, `ax` among them.

        Returns
        -------
        VarianceDisplay
            Drawn.
        """
        check_is_fitted(estimator)
        return cls.from_objective(estimator.objective_, estimator.raw_scores_, **settings)

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
        ax = self._open(ax, 6, 4)
        deviation, mean = np.sqrt(self.variance), float(np.sqrt(self.mean))
        reached, most = np.isfinite(deviation), _MOST_DEVIATION if self.is_probability else np.inf
        vacuous = reached & (deviation > most)
        deviation = np.minimum(deviation, most)
        style = {"s": 8, "alpha": 0.5, "linewidths": 0} | keywords
        shown = reached & ~vacuous
        self.points_ = ax.scatter(self.prediction[shown], deviation[shown], **style)
        if vacuous.any():
            label = f"{vacuous.sum()} rows above {most:g}, no information"
            ax.scatter(self.prediction[vacuous], deviation[vacuous], marker="^", color="0.6", s=14, label=label)
        at = self.labeled
        ax.scatter(self.prediction[at], deviation[at], marker="x", color="black", s=24, label="labelled")
        # On the axis of deviations a mean of variances stands at its root.
        height = min(mean, most)
        ax.axhline(height, color="0.6", lw=1, ls="--", label=f"root of the mean variance, {mean:.3g}")
        left_out = int((~reached).sum())
        if left_out:
            ax.plot([], [], " ", label=f"{left_out} rows out of reach")
        ax.set_xlabel("predicted probability" if self.is_probability else "prediction")
        ax.set_ylabel(f"standard deviation ({self.kind})")
        ax.set_ylim(bottom=0)
        legend_above(ax, n_columns=2)
        return self


class EvidenceDisplay(Display):
    """Weights of the teacher's experts, as bars.

    Parameters
    ----------
    evidence : Evidence
        ``obj.evidence_`` of an objective or an estimator.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        The axes.
    figure_ : matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from grbb_ext.teacher import Evidence
    >>> display = EvidenceDisplay(Evidence(("graph", "forest"), (-0.6, -0.3), (0.1, 0.9), 20)).plot()
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['graph', 'forest']
    """

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> EvidenceDisplay:
        """Draw the evidence of a fitted estimator or an objective.

        Parameters
        ----------
        estimator : GRBBClassifier, GRBBRegressor or GRBBObjective
            Fitted with a teacher, that is with ``rule="targets"``.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a figure.
        """
        if not isinstance(estimator, GRBBObjective):
            check_is_fitted(estimator)
        if estimator.evidence_ is None:
            raise ValueError("There is no evidence to draw: only rule='targets' has a teacher.")
        return cls(estimator.evidence_).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> EvidenceDisplay:
        """Draw the weights as bars, with the likelihood of held-out labels beside each."""
        ax = self._open(ax, 5.5, 0.6 * len(self.evidence.experts) + 1.2)
        places = np.arange(len(self.evidence.experts))[::-1]
        ax.barh(places, self.evidence.weight, height=0.6, color="C0")
        for place, weight, value in zip(places, self.evidence.weight, self.evidence.log_likelihood, strict=True):
            text = "" if value is None else f"log-likelihood {value:.2f}"
            ax.annotate(text, (weight, place), (4, 0), textcoords="offset points", va="center")
        ax.set(yticks=places, yticklabels=self.evidence.experts, xlim=(0, 1.45), xticks=np.linspace(0, 1, 6))
        ax.set(xlabel="weight in the targets", title=f"{self.evidence.n_labels} held-out labels")
        return self
