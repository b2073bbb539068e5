"""What the pictures of a curve show is what the curve holds."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, log_loss, r2_score

from grbb_ext import CostCurve, CostCurveDisplay, GRBBClassifier, GRBBRegressor

X, TRUTH = load_wine(return_X_y=True)
Y = np.where(np.random.default_rng(0).random(TRUTH.size) < 0.3, TRUTH, -1)
BOOSTER = LGBMClassifier(n_estimators=5, num_leaves=4, n_jobs=1, verbosity=-1)


def curve(n_mu: int = 4, folds: int = 3, rounds: int = 5) -> CostCurve:
    random = np.random.default_rng(0)
    score = random.random((folds, n_mu, rounds))
    cost = np.cumsum(random.integers(0, 4, (folds, n_mu, rounds)), axis=2) * np.linspace(1, 0.2, n_mu)[None, :, None]
    return CostCurve(
        np.concatenate([[0.0], 4.0 ** np.arange(n_mu - 1)]), score, cost, np.full((folds, n_mu), rounds), "accuracy"
    )


def legend_texts(ax) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def assert_inside(display) -> None:
    """Everything, the legend too, is inside the figure."""
    figure = display.figure_
    figure.canvas.draw()
    box = display.ax_.get_tightbbox(figure.canvas.get_renderer())
    whole = figure.bbox
    assert box.x0 >= whole.x0 - 1
    assert box.y0 >= whole.y0 - 1
    assert box.x1 <= whole.x1 + 1
    assert box.y1 <= whole.y1 + 1


def test_cost_accuracy_points_and_line():
    made = curve()
    display = CostCurveDisplay.from_curve(made, cost_unit="EUR")
    assert len(display.points_) == 4
    for m, point in enumerate(display.points_):
        (line, _, (bars,)) = point
        assert_allclose(line.get_xydata(), [[made.cost[:, m, -1].mean(), made.score[:, m, -1].mean()]])
        low, high = bars.get_segments()[0][:, 1]
        assert_allclose(high - low, 2 * made.score[:, m, -1].std(ddof=1) / np.sqrt(3))
    budgets, scores = made.frontier()
    for budget, best in zip(budgets, scores, strict=True):
        assert_allclose(best, made.best_under(float(budget)).score)
    assert (np.diff(scores) > 0).all()
    assert_allclose(scores[-1], made.best_under(None).score)
    (line,) = display.lines_
    drawn = line.get_xydata()
    assert_allclose(drawn[:-1], np.column_stack([budgets, scores]))
    assert drawn[-1, 0] == max(made.mean_cost[:, -1].max(), budgets[-1])
    assert line.get_drawstyle() == "steps-post"
    assert display.ax_.get_xlabel() == "cost of the features (EUR)"
    assert display.ax_.get_ylabel() == "accuracy, mean over folds"
    assert [text.get_text() for text in display.colorbar_.ax.get_yticklabels()] == ["0", "1", "4", "16"]
    assert_inside(display)


def test_cost_accuracy_of_two_methods_on_one_axes():
    _, ax = plt.subplots()
    first = CostCurveDisplay.from_curve(curve(), ax=ax, name="LightGBM", colorbar=False)
    second = CostCurveDisplay.from_curve(curve(2), ax=ax, name="XGBoost", colorbar=False, ls="--")
    assert first.ax_ is second.ax_ is ax
    assert legend_texts(ax) == ["LightGBM", "XGBoost"]
    assert first.lines_[0].get_color() != second.lines_[0].get_color()
    assert second.lines_[0].get_linestyle() == "--"
    assert first.colorbar_ is None


def test_cost_accuracy_of_one_fold_has_no_errors():
    display = CostCurveDisplay.from_curve(curve(folds=1))
    assert "all rounds of a mu" in legend_texts(display.ax_)
    assert all(point.lines[2] == () for point in display.points_)


def test_cost_accuracy_from_estimator():
    model = GRBBClassifier(BOOSTER, feature_costs=np.arange(1.0, 14.0))
    display = CostCurveDisplay.from_estimator(model, X, Y, mus=[0.0, 5.0], cv=2, verbose=False)
    assert_array_equal(display.curve.mu, [0.0, 5.0])
    assert display.curve.mean_cost[1, -1] < display.curve.mean_cost[0, -1]


@pytest.mark.parametrize(("n_mu", "bar"), [(2, False), (5, False), (6, True), (11, True)])
def test_trees_accuracy_lines(n_mu, bar):
    made = curve(n_mu)
    display = CostCurveDisplay.from_curve(made, x="rounds")
    assert len(display.lines_) == n_mu
    # Lines that lie on one another are told apart.
    assert len({line.get_linewidth() for line in display.lines_}) == n_mu
    for m, line in enumerate(display.lines_):
        assert_array_equal(line.get_xdata(), [1, 2, 3, 4, 5])
        assert_allclose(line.get_ydata(), made.score[:, m].mean(axis=0))
    assert (display.colorbar_ is not None) == bar
    assert ("mu 0" in legend_texts(display.ax_)) != bar
    top = made.mean_score.max()
    assert_allclose(display.best_.get_ydata(), top)
    m, t = np.argwhere(made.mean_score == top)[0]
    assert f"best: {top:.3f} after {t + 1} rounds, mu {made.mu[m]:.3g}" in legend_texts(display.ax_)
    assert display.ax_.get_xlabel() == "boosting rounds"
    assert_array_equal(display.ax_.get_xticks() % 1, 0)
    assert_inside(display)


def test_of_equal_scores_the_star_is_on_the_cheapest():
    score = np.array([[[0.5, 0.9, 0.9], [0.9, 0.9, 0.8], [0.5, 0.9, 0.9]]])
    cost = np.array([[[4.0, 5.0, 6.0], [3.0, 4.0, 5.0], [1.0, 2.0, 2.0]]])
    made = CostCurve(np.array([0.0, 1.0, 1.0]), score, cost, np.full((1, 3), 3), budget=np.array([np.inf, np.inf, 2.0]))
    display = CostCurveDisplay.from_curve(made, x="rounds")
    assert_array_equal(display.best_.get_xydata(), [[2, 0.9]])
    assert_array_equal(display.best_.get_color(), display.lines_[2].get_color())
    assert "best: 0.900 after 2 rounds, budget 2" in legend_texts(display.ax_)


def test_trees_accuracy_of_some_mus_has_bands():
    made = curve(6)
    display = CostCurveDisplay.from_curve(made.select(mus=[1.0, 0.0]), x="rounds")
    assert_array_equal(display.curve.mu, [0.0, 1.0])
    bands = display.ax_.collections
    assert len(bands) == 2
    vertices = bands[0].get_paths()[0].vertices
    error = made.score[:, 0].std(axis=0, ddof=1) / np.sqrt(3)
    assert_allclose(vertices[:, 1].max(), (made.score[:, 0].mean(axis=0) + error).max())
    assert "± standard error" in legend_texts(display.ax_)
    with pytest.raises(ValueError, match=r"no mu of \[7.0\]. It has \[0.0, 1.0, "):
        made.select(mus=[7.0])


def test_trees_accuracy_of_a_fitted_model():
    model = GRBBClassifier(BOOSTER).fit(X, Y)
    display = CostCurveDisplay.from_fitted(model, X, TRUTH, name="wine")
    expected = [accuracy_score(TRUTH, p.argmax(axis=1)) for p in model.staged_predict_proba(X)]
    assert_allclose(display.lines_[0].get_ydata(), expected)
    assert_allclose(expected[-1], model.score(X, TRUTH))
    assert "wine" in legend_texts(display.ax_)
    assert display.ax_.get_ylabel() == "accuracy"
    # Unlabelled rows are left out.
    half = CostCurveDisplay.from_fitted(model, X, Y, scoring="neg_log_loss", ax=display.ax_)
    known = Y != -1
    assert_allclose(half.curve.score[0, 0, -1], -log_loss(Y[known], model.predict_proba(X[known])), rtol=1e-6)
    assert half.ax_ is display.ax_


def test_trees_accuracy_of_a_regression():
    numbers = np.where(Y == -1, np.nan, X[:, 0])
    model = GRBBRegressor(LGBMRegressor(n_estimators=5, n_jobs=1, verbosity=-1), teacher="graph").fit(X, numbers)
    display = CostCurveDisplay.from_fitted(model, X, X[:, 0])
    assert_allclose(display.curve.score[0, 0, -1], r2_score(X[:, 0], model.predict(X)), rtol=1e-6)
    assert display.ax_.get_ylabel() == "R^2"


@pytest.mark.parametrize("x", ["cost", "rounds"])
def test_bad_calls(x):
    with pytest.raises(TypeError, match="what cost_curve returned, got dict"):
        CostCurveDisplay.from_curve({}, x=x)
    with pytest.raises(ValueError, match="x must be 'cost' or 'rounds', got 'trees'"):
        CostCurveDisplay.from_curve(curve(), x="trees")


@pytest.mark.parametrize("x", ["cost", "rounds"])
def test_scores_that_are_not_numbers(x):
    made = curve()
    made.score[0] = np.nan
    with pytest.raises(ValueError, match="accuracy is NaN"):
        CostCurveDisplay.from_curve(made, x=x)


def test_a_path_of_models_is_drawn_in_order_of_cost():
    score, cost = np.array([[[0.0], [-1.5], [-3.0]]]), np.array([[[7.0], [3.0], [1.0]]])
    made = CostCurve(np.array([0.0, 1.5, 3.0]), score, cost, np.ones((1, 3), dtype=int), models=("a", "b", "c"))
    display = CostCurveDisplay.from_curve(made, color="black")
    assert display.lines_[0].get_xdata()[:-1].tolist() == [1.0, 3.0, 7.0]
    assert display.lines_[0].get_ydata()[:-1].tolist() == [-3.0, -1.5, 0.0]
    assert display.figure_ is display.ax_.figure
    made.score[:] = np.nan
    with pytest.raises(ValueError, match="pass scoring="):
        display.plot()


@pytest.mark.parametrize("x", ["cost", "rounds"])
@pytest.mark.parametrize(("n_budgets", "label"), [(6, "budget"), (3, "")])
def test_the_bar_names_budgets(x, n_budgets, label):
    made = curve(6)
    made.budget[6 - n_budgets :] = 10.0 * np.arange(1, n_budgets + 1)
    display = CostCurveDisplay.from_curve(made, x=x)
    assert display.colorbar_.ax.get_ylabel() == label
    last = display.colorbar_.ax.get_yticklabels()[-1].get_text()
    assert last == ("60" if label else "budget 30")
    assert_inside(display)


def test_a_fitted_model_against_cost():
    model = GRBBClassifier(BOOSTER, feature_costs=np.arange(1.0, 14.0)).fit(X, Y)
    display = CostCurveDisplay.from_fitted(model, X, TRUTH, x="cost", colorbar=False)
    assert display.curve.cost[0, 0, -1] == model.feature_cost_
    assert_allclose(display.points_[0][0].get_xydata(), [[model.feature_cost_, model.score(X, TRUTH)]])


def test_a_model_that_is_not_fitted():
    with pytest.raises(NotFittedError):
        CostCurveDisplay.from_fitted(GRBBClassifier(BOOSTER), X, TRUTH)
