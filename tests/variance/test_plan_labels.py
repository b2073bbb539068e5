import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_moons

from grbb_ext import grbb_objective, plan_labels, prediction_variance, suggest_labels
from grbb_ext.variance import prior_of

mpl.use("agg")


@pytest.fixture
def problem():
    X, truth = make_moons(120, noise=0.15, random_state=0)
    y = np.where(np.arange(120) < 8, truth, -1)
    return grbb_objective(X, y), 2.0 * truth - 1.0, truth


def test_curve_is_the_present_variance_less_the_expected_drops(problem):
    obj, H, _ = problem
    plan = plan_labels(obj, H, 10, price=2.5, lam=1.0)
    found = suggest_labels(obj, H, 10, lam=1.0)
    (curve,) = plan.curves
    assert_allclose(curve.variance[0], prediction_variance(obj, H, lam=1.0, kind="fisher").mean)
    assert_allclose(-np.diff(curve.variance), found.expected_drop)
    assert_allclose(curve.drop_per_dollar, found.expected_drop / 2.5)
    assert curve.n_labels.tolist() == list(range(8, 19))
    assert curve.rows.tolist() == found.rows.tolist()


def test_recommends_the_fewest_labels_that_bring_the_share(problem):
    obj, H, _ = problem
    plan = plan_labels(obj, H, 10, price=2.0, lam=1.0, share=0.6)
    gained = (plan.curves[0].variance[0] - plan.curves[0].variance) / np.ptp(plan.curves[0].variance)
    assert gained[plan.n_labels] >= 0.6 > gained[plan.n_labels - 1]
    assert f"Buy {plan.n_labels} labels for {2 * plan.n_labels:g}" in plan.recommendation
    assert plan.recommendation.count(". ") == 0
    assert plan_labels(obj, H, 10, price=2.0, lam=1.0, share=1.0).n_labels == 10


def test_money_is_a_limit(problem):
    obj, H, _ = problem
    plan = plan_labels(obj, H, 10, price=2.0, lam=1.0, money=5.0)
    assert plan.n_labels == 2
    assert "all that 5 buys" in plan.recommendation
    enough = plan_labels(obj, H, 10, price=2.0, lam=1.0, money=100.0)
    assert enough.n_labels == plan_labels(obj, H, 10, price=2.0, lam=1.0).n_labels > 2
    assert "all that" not in enough.recommendation


def test_money_is_counted_as_it_is_written(problem):
    obj, H, _ = problem
    assert 0.3 // 0.1 == 2
    assert plan_labels(obj, H, 10, price=0.1, lam=1.0, money=0.3).n_labels == 3
    assert plan_labels(obj, H, 3, price=0.1, lam=1.0, share=1.0, money=0.3).recommendation.startswith(
        "Buy 3 labels for 0.3: "
    )
    assert plan_labels(obj, H, 3, price=1e-9, lam=1.0, money=1e300).n_labels <= 3


def test_one_curve_for_each_feature_budget(problem):
    obj, H, _ = problem
    plan = plan_labels(obj, {30.0: 2 * H, 10.0: H}, 5, price=1.0, lam=1.0)
    assert [curve.feature_budget for curve in plan.curves] == [10.0, 30.0]
    best = min(plan.curves, key=lambda curve: curve.variance[-1])
    assert f"at a feature budget of {best.feature_budget:g}" in plan.recommendation


def test_no_limit_is_the_last_feature_budget(problem):
    obj, H, _ = problem
    plan = plan_labels(obj, {None: 2 * H, 10.0: H}, 5, price=1.0, lam=1.0)
    assert [curve.feature_budget for curve in plan.curves] == [10.0, None]
    names = [text.get_text() for text in plan.plot().get_legend().get_texts()]
    assert names[:2] == list(plan._table()[0][2:]) == ["budget 10", "no budget"]
    plt.close("all")


def test_scores_that_no_label_would_move(problem):
    obj, H, _ = problem
    plan = plan_labels(obj, 1e4 * H, 5, price=1.0, lam=1.0)
    assert plan.n_labels == 0
    assert plan.recommendation == "Buy no label: the posterior variance is 0, and 5 labels would not lower it."
    assert "Buy no label" in str(plan)


def test_training_on_fewer_labels_is_measured(problem):
    obj, H, truth = problem
    seen = []

    def train(smaller, budget):
        seen.append((smaller.labeled_.size, budget))
        return H, H

    plan = plan_labels(obj, H, 5, price=1.0, lam=1.0, train=train, y_valid=truth)
    assert seen == [(2, None), (4, None), (8, None)]
    (curve,) = plan.curves
    assert curve.measured_n_labels.tolist() == [2, 4, 8]
    assert_allclose(curve.measured_accuracy, 1.0)
    assert_allclose(curve.measured_variance[-1], curve.variance[0])


def test_fewer_labels_are_measured_with_the_kernel_of_all():
    # With a kernel of their own lam has another unit: half of these labels seemed to know less than a quarter.
    X, truth = make_moons(200, noise=0.3, random_state=6)
    rows = np.random.default_rng(6).choice(200, 16, replace=False)
    obj = grbb_objective(X, np.where(np.isin(np.arange(200), rows), truth, -1))
    H, seen = 2.0 * truth - 1.0, []

    def train(smaller, budget):
        seen.append(smaller.labeled_)
        return H, H

    (curve,) = plan_labels(obj, H, 3, price=1.0, lam=2.0, train=train).curves
    K, slope = prior_of(obj).residual_product(np.eye(200)) / 2.0, (1 - np.tanh(H / 2) ** 2) / 4
    for labeled, measured in zip(seen, curve.measured_variance, strict=True):
        information = np.diag(1 / slope[labeled]) + K[np.ix_(labeled, labeled)]
        posterior = K - K[:, labeled] @ np.linalg.solve(information, K[labeled])
        assert_allclose(measured, np.mean(slope**2 * posterior.diagonal()))
    assert (np.diff(curve.measured_variance) < 0).all()


def test_plot_draws_forecast_and_recommendation(problem):
    obj, H, truth = problem
    plan = plan_labels(obj, {1.0: H, 2.0: H}, 5, price=3.0, lam=1.0, train=lambda o, b: (H, H), y_valid=truth)
    ax = plan.plot()
    assert_allclose(ax.lines[0].get_ydata(), plan.curves[0].variance)
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["budget 1", "budget 2", f"buy {plan.n_labels}"]
    assert plan.plot(ax) is ax
    plt.close("all")


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"price": 0.0}, "price must be a positive number"),
        ({"price": "2"}, "price must be a positive number"),
        ({"share": 0.0}, r"share must lie in \(0, 1\]"),
        ({"share": "a"}, r"share must lie in \(0, 1\]"),
        ({"money": 0.5}, "money must buy at least one label at 1"),
        ({"money": np.inf}, "money must be a finite number"),
        ({"y_valid": [0, 1]}, "pass train= too"),
        ({"raw_scores": {}}, "empty dict"),
    ],
)
def test_wrong_arguments_are_named(problem, keywords, message):
    obj, H, _ = problem
    with pytest.raises(ValueError, match=message):
        plan_labels(obj, **{"raw_scores": H, "k": 3, "price": 1.0} | keywords)


@pytest.mark.parametrize("money", [True, "9"])
def test_money_and_feature_budgets_are_numbers(problem, money):
    obj, H, _ = problem
    with pytest.raises(TypeError, match="money must be a number"):
        plan_labels(obj, H, 3, 1.0, money=money)
    with pytest.raises(TypeError, match="a dict by feature budget"):
        plan_labels(obj, {2: H, "a": H}, 3, 1.0)


def test_validation_rows_without_a_label_do_not_count():
    rows = np.random.default_rng(0).normal(size=(80, 2))
    y = np.where(np.arange(80) < 30, rows[:, 0] > 0, -1)
    scores = 3.0 * rows[:, 0]
    plan = plan_labels(grbb_objective(rows, y), scores, 3, 1.0, train=lambda obj, budget: (scores, scores), y_valid=y)
    assert (plan.curves[0].measured_accuracy == 1.0).all()


def test_a_quarter_of_few_values_still_tells_the_noise():
    rows = np.random.default_rng(0).normal(size=(60, 2))
    obj = grbb_objective(rows, np.where(np.arange(60) < 6, rows[:, 0], np.nan), loss="squared_error")
    plan = plan_labels(obj, rows[:, 0], 3, 1.0, train=lambda obj, budget: (rows[:, 0], rows[:, 0]))
    assert plan.curves[0].measured_n_labels.tolist() == [2, 3, 6]


def test_a_regression_has_no_accuracy():
    rows = np.random.default_rng(0).normal(size=(60, 2))
    obj = grbb_objective(rows, np.where(np.arange(60) < 20, rows[:, 0], np.nan), loss="squared_error")
    with pytest.raises(ValueError, match=r"y_valid is for the accuracy of classes\. Leave it out"):
        plan_labels(obj, rows[:, 0], 3, 1.0, train=lambda smaller, budget: (rows[:, 0],) * 2, y_valid=rows[:, 0])
