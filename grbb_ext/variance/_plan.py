"""How many labels to buy, for a price per label and one or more feature budgets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from grbb_ext._options import finite_number, is_number, positive_number
from grbb_ext._show import Shown, new_axes, small_number
from grbb_ext.labels import is_unlabeled
from grbb_ext.objective import GRBBObjective
from grbb_ext.variance._information import SMALLEST, curvatures, lam_in_use, prior_of
from grbb_ext.variance._prediction_variance import N_PROBES, mean_variance, method_for, prediction_variance
from grbb_ext.variance._prior import Array, Index, KernelPrior
from grbb_ext.variance._suggest import Strategy, suggest_labels

Train = Callable[[GRBBObjective, float | None], tuple[ArrayLike, ArrayLike]]


@dataclass(frozen=True)
class LabelCurve:
    """Variance against the number of labels, for one feature budget.

    Attributes
    ----------
    feature_budget : float or None
        The budget under which the scores were trained.
    n_labels : ndarray of int of shape (k + 1,)
        From the labels there are to k more.
    variance : ndarray of shape (k + 1,)
        Mean posterior variance (``kind="fisher"``): first as it is, then as forecast with frozen scores.
    rows : ndarray of int of shape (k,)
        The rows to label, in order.
    drop_per_dollar : ndarray of shape (k,)
        What each label takes off the variance, divided by its price.
    measured_n_labels, measured_variance, measured_accuracy : ndarray
        What retraining gave with some of the labels that there are, at the lam and kernel of all of them; empty
        unless `train` was passed.
    """

    feature_budget: float | None
    n_labels: Index
    variance: Array
    rows: Index
    drop_per_dollar: Array
    measured_n_labels: Index
    measured_variance: Array
    measured_accuracy: Array


@dataclass(frozen=True)
class LabelPlan(Shown):
    """Forecast of what more labels are worth.

    Attributes
    ----------
    curves : tuple of LabelCurve
        One for each feature budget, in ascending order.
    price : float
        Price of one label.
    n_labels : int
        Labels to buy by the recommendation.
    recommendation : str
        One sentence.
    lam : float
        Weight of the graph that was used.
    """

    curves: tuple[LabelCurve, ...] = field(repr=False)
    price: float
    n_labels: int
    recommendation: str
    lam: float

    def _table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]], str]:
        """Return what none, a quarter, half, all and the recommended number of labels bring."""
        k = self.curves[0].rows.size
        counts = sorted({0, -(-k // 4), -(-k // 2), self.n_labels, k})
        lines = [
            (str(n), f"{n * self.price:g}", *(f"{curve.variance[n]:.3g}" for curve in self.curves)) for n in counts
        ]
        return ("more labels", "price", *self._names("forecast variance")), lines, self.recommendation

    def _names(self, alone: str) -> list[str]:
        """Return the name of each curve; `alone` for one without a feature budget that is the only one."""
        unlimited = alone if len(self.curves) == 1 else "no budget"
        return [unlimited if c.feature_budget is None else f"budget {c.feature_budget:g}" for c in self.curves]

    def plot(self, ax: Any = None) -> Any:
        """Draw variance against the number of labels, one line for each feature budget.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        ax = new_axes(6, 4) if ax is None else ax
        for i, (curve, name) in enumerate(zip(self.curves, self._names("forecast"), strict=True)):
            (line,) = ax.plot(
                # Later lines are thinner and broken, so that one beneath them is seen.
                curve.n_labels,
                curve.variance,
                label=name,
                ls=("-", "--", "-.", ":")[i % 4],
                lw=1.2 + 1.3 * (1 - i / len(self.curves)),
            )
            measured = curve.measured_n_labels, curve.measured_variance, curve.measured_accuracy
            if curve.measured_n_labels.size:
                ax.plot(*measured[:2], "o", color=line.get_color(), ms=4)
            for n, v, accuracy in zip(*measured, strict=True):
                if np.isfinite(accuracy):
                    ax.annotate(f"{accuracy:.2f}", (n, v), textcoords="offset points", xytext=(3, 3), fontsize=8)
        start = int(self.curves[0].n_labels[0])
        ax.axvline(start + self.n_labels, color="0.6", lw=1, ls="--", label=f"buy {self.n_labels}")
        ax.set(xlabel="labels", ylabel="mean posterior variance", ylim=(0, None))
        ax.legend()
        in_money = (lambda n: (n - start) * self.price, lambda d: d / self.price + start)
        ax.secondary_xaxis("top", functions=in_money).set_xlabel("price of the labels bought")
        return ax


def plan_labels(
    obj: GRBBObjective,
    raw_scores: ArrayLike | Mapping[float, ArrayLike],
    k: int,
    price: float,
    *,
    strategy: Strategy = "k-means",
    share: float = 0.8,
    money: float | None = None,
    X: Any = None,
    lam: float | None = None,
    train: Train | None = None,
    y_valid: ArrayLike | None = None,
    random_state: int = 0,
) -> LabelPlan:
    """Forecast the variance with up to k more labels, and recommend how many to buy.

    The forecast freezes the scores: labels are added one after the other by `strategy` and only the information grows.
    The page on variance compares it with retraining.

    Parameters
    ----------
    obj : GRBBObjective
        The objective; any rule but ``"labeled"``.
    raw_scores : array-like, or dict of feature budget -> array-like
        Raw scores on all rows. A dict holds those of models trained under several feature budgets, None for no limit,
        and gives one curve each.
    k : int
        The most labels to consider.
    price : float
        Price of one label.
    strategy : {"a-optimal", "k-means", "uncertainty", "random"}, default="k-means"
        How rows are chosen; see :func:`suggest_labels`.
    share : float, default=0.8
        Recommend the fewest labels that bring this share of what k labels bring.
    money : float or None, default=None
        The most to spend on labels; None sets no limit.
    X, lam, random_state
        As in :func:`suggest_labels`.
    train : callable or None, default=None
        ``train(obj, feature_budget) -> (raw_scores, raw_scores_valid)``. Where given, models are trained with a
        quarter, half and all of the labels that there are, and their variance (and accuracy) is measured, so
        that the forecast can be compared with them.
    y_valid : array-like or None, default=None
        Labels of the validation rows that `train` scores, for the accuracy.

    Returns
    -------
    LabelPlan
        Curves, a recommendation in one sentence, and ``plot()``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from grbb_ext import grbb_objective
    >>> X, truth = make_moons(200, noise=0.1, random_state=0)
    >>> obj = grbb_objective(X, np.where(np.arange(200) < 6, truth, -1))
    >>> plan = plan_labels(obj, 2.0 * truth - 1.0, 20, 5.0, strategy="a-optimal", lam=1.0)
    >>> print(plan.recommendation)
    Buy 14 labels for 70: by forecast they lower the mean posterior variance from 0.0302 to 0.0207, 82 % of what 20
    labels for 100 would bring, and the last of them still takes 0.000084 off per unit of money.
    """
    positive_number(price, "price")
    if not (is_number(share) and 0 < share <= 1):
        raise ValueError(f"share must lie in (0, 1], got {share!r}.")
    if money is not None and finite_number(money, "money") < price:
        raise ValueError(f"money must buy at least one label at {price:g}, got {money!r}.")
    if y_valid is not None and train is None:
        raise ValueError("y_valid is compared with the scores that train= returns: pass train= too.")
    if y_valid is not None and obj.classes_ is None:
        raise ValueError("y_valid is for the accuracy of classes. Leave it out for regression.")
    by_budget: Mapping[Any, ArrayLike] = raw_scores if isinstance(raw_scores, Mapping) else {None: raw_scores}
    if not by_budget:
        raise ValueError("raw_scores is an empty dict: pass the scores of at least one feature budget.")
    if not all(budget is None or is_number(budget) for budget in by_budget):
        raise TypeError(f"raw_scores is a dict by feature budget, a number or None; got {list(by_budget)}.")
    lam_used = lam_in_use(obj, lam)[0].lam
    curves = []
    for budget in sorted(by_budget, key=lambda b: np.inf if b is None else b):
        scores = by_budget[budget]
        now = prediction_variance(obj, scores, lam=lam_used, kind="fisher", random_state=random_state).mean
        found = suggest_labels(obj, scores, k, strategy, X=X, lam=lam_used, random_state=random_state)
        curves.append(
            LabelCurve(
                budget,
                obj.labeled_.size + np.arange(k + 1),
                now - np.concatenate([[0.0], np.cumsum(found.expected_drop)]),
                found.rows,
                found.expected_drop / price,
                *_measure(obj, budget, lam_used, train, y_valid, random_state),
            )
        )
    count, sentence = _recommend(curves, price, share, money)
    return LabelPlan(tuple(curves), price, count, sentence, lam_used)


def _measure(
    obj: GRBBObjective, budget: float | None, lam: float, train: Train | None, y_valid: ArrayLike | None, seed: int
) -> tuple[Index, Array, Array]:
    """Retrain with a quarter, half and all of the labels, at random but one of each class first."""
    if train is None:
        return np.empty(0, dtype=np.intp), np.empty(0), np.empty(0)
    order = np.random.default_rng(seed).permutation(obj.labeled_)
    # The noise of a regression takes two labels.
    first = np.unique(obj.y_[order], return_index=True)[1] if obj.classes_ is not None else np.arange(2)
    order = np.concatenate([order[first], np.delete(order, first)])
    measured = []
    for part in (4, 2, 1):
        kept = order[: max(first.size, order.size // part)]
        y = obj.y_
        y[np.setdiff1d(obj.labeled_, kept)] = np.nan if obj.classes_ is None else obj.unlabeled_
        smaller = obj if part == 1 else obj.with_labels(y)
        scores, scores_valid = train(smaller, budget)
        variance = _with_fewer(obj, smaller, scores, lam, seed)
        right = np.nan
        if y_valid is not None:
            truth = np.asarray(y_valid)
            right = np.mean((obj.predict(scores_valid) == truth)[~is_unlabeled(truth, obj.unlabeled_)])
        measured.append((kept.size, variance, right))
    n_labels, variances, accuracies = np.transpose(measured)
    return n_labels.astype(np.intp), variances, accuracies


def _with_fewer(obj: GRBBObjective, smaller: GRBBObjective, scores: ArrayLike, lam: float, seed: int) -> float:
    """Return the variance with some of the labels. A kernel stays that of all of them, whose unit lam has."""
    prior = prior_of(obj)
    if not isinstance(prior, KernelPrior):
        return prediction_variance(smaller, scores, lam=lam, kind="fisher", random_state=seed).mean
    found = curvatures(obj, scores)
    found.delta[~np.isin(obj.labeled_, smaller.labeled_)] = SMALLEST
    method, random = method_for("fisher", False, prior, obj.n_outputs_), np.random.default_rng(seed)
    return mean_variance(prior, found, lam_in_use(obj, lam)[0], "fisher", method, N_PROBES, random)[0].value


def _recommend(curves: list[LabelCurve], price: float, share: float, money: float | None) -> tuple[int, str]:
    """Return how many labels, and why, in one sentence; of several budgets that with the lowest end decides."""
    curve = min(curves, key=lambda c: float(c.variance[-1]))
    k = curve.rows.size
    total = curve.variance[0] - curve.variance[-1]
    if not total > 0:
        return 0, f"Buy no label: the posterior variance is {curve.variance[0]:.3g}, and {k} labels would not lower it."
    gained = (curve.variance[0] - curve.variance[1:]) / total
    count = int(np.argmax(gained >= share - 1e-12)) + 1
    limited = ""
    # As written: 0.3 pays for three of 0.1.
    if money is not None and count * Decimal(str(price)) > Decimal(str(money)):
        count = int(Decimal(str(money)) // Decimal(str(price)))
        limited = f" (all that {money:g} buys)"
    with_budget = "" if curve.feature_budget is None else f" at a feature budget of {curve.feature_budget:g}"
    return count, (
        f"Buy {count} labels for {count * price:g}{limited}: by forecast they lower the mean posterior variance"
        f"{with_budget} from {curve.variance[0]:.3g} to {curve.variance[count]:.3g}, {100 * gained[count - 1]:.0f} % "
        f"of what {k} labels for {k * price:g} would bring, and the last of them still takes "
        f"{small_number(curve.drop_per_dollar[count - 1])} off per unit of money."
    )
