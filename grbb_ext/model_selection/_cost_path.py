"""The curve of quality against cost that a sweep of mu draws."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grbb_ext._reporting import progress
from grbb_ext.costs import FeatureCosts, check_price
from grbb_ext.forest import Forest

DEFAULT_MU = (0.0, *(4.0**k for k in range(-5, 5)))


class CostPoint(NamedTuple):
    """One model of a cost path.

    Attributes
    ----------
    mu : float
        The trade-off that it was trained with.
    cost : float
        Price of all features that it uses.
    n_trees, n_features : int
        Its size.
    score : float
        What the user's score says; NaN without one.
    model : object
        What the user's function returned.
    """

    mu: float
    cost: float
    n_trees: int
    n_features: int
    score: float
    model: Any


@dataclass(frozen=True)
class CostPath:
    """Models along a sweep of mu, made by :func:`cost_path`.

    Attributes
    ----------
    points : tuple of CostPoint
        The models in the order of mu as given.
    higher_is_better : bool
        Direction of the score.
    ax_, figure_, line_ : matplotlib objects
        Set by :meth:`plot`.
    """

    points: tuple[CostPoint, ...]
    higher_is_better: bool = True
    ax_: Any = field(default=None, init=False, repr=False, compare=False)
    figure_: Any = field(default=None, init=False, repr=False, compare=False)
    line_: Any = field(default=None, init=False, repr=False, compare=False)

    @property
    def mu(self) -> NDArray[np.float64]:
        """Trade-offs."""
        return np.array([point.mu for point in self.points])

    @property
    def cost(self) -> NDArray[np.float64]:
        """Prices of the models."""
        return np.array([point.cost for point in self.points])

    @property
    def n_trees(self) -> NDArray[np.intp]:
        """Numbers of trees."""
        return np.array([point.n_trees for point in self.points], dtype=np.intp)

    @property
    def n_features(self) -> NDArray[np.intp]:
        """Numbers of features used."""
        return np.array([point.n_features for point in self.points], dtype=np.intp)

    @property
    def score(self) -> NDArray[np.float64]:
        """Scores; NaN without a score function."""
        return np.array([point.score for point in self.points])

    def best_under(self, budget: float) -> CostPoint:
        """Return the model with the best score among those that cost at most `budget`; of equals the cheapest.

        Parameters
        ----------
        budget : float
            The most that a model may cost.

        Returns
        -------
        CostPoint
        """
        budget = check_price(budget, "budget")
        fitting = [point for point in self.points if point.cost <= budget]
        if not fitting:
            raise ValueError(
                f"No model costs {budget:g} or less; the cheapest costs {self.cost.min():g}. Sweep larger mu, or train "
                "with budget=."
            )
        scored = [point for point in fitting if not np.isnan(point.score)]
        if not scored:
            raise ValueError("The best model is chosen by its score: pass score= to cost_path.")
        sign = 1.0 if self.higher_is_better else -1.0
        return max(scored, key=lambda point: (sign * point.score, -point.cost))

    def plot(self, ax: Any = None, **line_settings: Any) -> CostPath:
        """Draw score against cost, one marker for each mu.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a figure.
        **line_settings
            Passed to ``ax.plot``.

        Returns
        -------
        CostPath
            Itself, with `ax_`, `figure_` and `line_` set.
        """
        if np.isnan(self.score).all():
            raise ValueError("There is nothing to draw without scores: pass score= to cost_path.")
        if ax is None:
            from matplotlib import pyplot as plt

            _, ax = plt.subplots()
        order = np.lexsort((self.score, self.cost))
        settings = {"marker": "o", **line_settings}
        (line,) = ax.plot(self.cost[order], self.score[order], **settings)
        for point in self.points:
            ax.annotate(
                f"{point.mu:.3g}",
                (point.cost, point.score),
                xytext=(4, 4),
                textcoords="offset points",
                fontsize="small",
            )
        ax.set_xlabel("cost of the features (labels: mu)")
        ax.set_ylabel("score")
        for name, value in (("ax_", ax), ("figure_", ax.figure), ("line_", line)):
            object.__setattr__(self, name, value)
        return self

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        return f"CostPath({len(self)} models, cost {self.cost.min():g} to {self.cost.max():g})"


def cost_path(
    fit: Callable[[float], Any],
    costs: FeatureCosts,
    *,
    mu: Iterable[float] = DEFAULT_MU,
    score: Callable[[Any], float] | None = None,
    higher_is_better: bool = True,
    verbose: bool = True,
) -> CostPath:
    """Train a model for each mu and return the curve of cost and quality.

    Gains have no natural unit of money: how much squared error, or loss, a unit of cost is worth is a choice. The
    curve shows what each choice buys.

    Parameters
    ----------
    fit : callable
        ``fit(mu)`` trains and returns a model: a booster of either library, or a :class:`grbb_ext.forest.Forest`.
    costs : FeatureCosts
        The prices that the models were trained with.
    mu : iterable of float, default=(0, 4**-5, ..., 4**4)
        Trade-offs to try; the default is that of the paper.
    score : callable or None, default=None
        ``score(model)`` of what `fit` returned, on held-out rows.
    higher_is_better : bool, default=True
        Direction of the score.
    verbose : bool, default=True
        Draw a progress bar.

    Returns
    -------
    CostPath
        With ``best_under(budget)`` and ``plot()``.

    Examples
    --------
    >>> import lightgbm as lgb
    >>> import numpy as np
    >>> from grbb_ext.adapters.lightgbm import train
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 4))
    >>> y = X @ [2.0, 1.0, 0.5, 0.25]
    >>> costs = FeatureCosts([9.0, 1.0, 1.0, 1.0])
    >>> params = {"objective": "regression", "num_leaves": 4, "verbosity": -1, "num_threads": 1}
    >>> data = lgb.Dataset(X[:300], y[:300])
    >>> path = cost_path(lambda mu: train(params, data, 20, costs=costs, mu=mu), costs, mu=[0, 10, 100, 1000],
    ...                  score=lambda model: float(np.mean((model.predict(X[300:]) - y[300:]) ** 2)),
    ...                  higher_is_better=False, verbose=False)
    >>> path.cost
    array([11., 11.,  2.,  0.])
    >>> path.best_under(10).mu
    100.0
    """
    values = [check_price(value, "mu") for value in mu]
    if not values:
        raise ValueError("mu is empty: give at least one value.")
    points = []
    for value in progress(values, total=len(values), description="cost path", verbose=verbose):
        model = fit(value)
        cost, n_trees, n_features = _size(model, costs)
        points.append(
            CostPoint(value, cost, n_trees, n_features, float("nan") if score is None else float(score(model)), model)
        )
    return CostPath(tuple(points), higher_is_better)


def _size(model: Any, costs: FeatureCosts) -> tuple[float, int, int]:
    """Return cost, number of trees and number of features of a model."""
    if model is None:
        raise TypeError("fit(mu) returned None: it has to return the model.")
    if hasattr(model, "ledger_") and hasattr(model, "num_trees"):
        return costs.total(model.ledger_.used), int(model.num_trees()), int(model.ledger_.used.sum())
    forest = model if hasattr(model, "features_used") else Forest.from_booster(model)
    return costs.total(forest), int(forest.n_trees), len(forest.features_used())
