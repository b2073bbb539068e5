"""The choice under a budget, against a slow search over every setting and number of rounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator

from grbb_ext import CostCurve


def random_curve(seed: int, folds: int, n_mu: int, rounds: int) -> CostCurve:
    random = np.random.default_rng(seed)
    score = random.integers(0, 6, (folds, n_mu, rounds)) / 5
    cost = np.cumsum(random.integers(0, 3, (folds, n_mu, rounds)), axis=2).astype(float)
    return CostCurve(np.sort(random.random(n_mu)), score, cost, np.full((folds, n_mu), rounds))


def slow_best(curve: CostCurve, budget: float) -> tuple[float, float, int] | None:
    """Return the largest (mean score, -mean cost, -rounds) of models that are cut where the budget ends."""
    folds, n_mu, rounds = curve.score.shape
    found = []
    for m in range(n_mu):
        for t in range(rounds):
            scores, costs = [], []
            for f in range(folds):
                last = None
                for s in range(t + 1):
                    if curve.cost[f, m, s] <= budget:
                        last = s
                if last is not None:
                    scores.append(curve.score[f, m, last])
                    costs.append(curve.cost[f, m, last])
            if len(scores) == folds:
                found.append((round(float(np.mean(scores)), 12), -float(np.mean(costs)), -(t + 1)))
    return max(found, default=None)


@given(
    seed=st.integers(0, 10**6),
    folds=st.integers(1, 4),
    n_mu=st.integers(1, 4),
    rounds=st.integers(1, 6),
    budget=st.integers(0, 12),
)
def test_best_under_is_that_of_a_slow_search(seed, folds, n_mu, rounds, budget):
    curve = random_curve(seed, folds, n_mu, rounds)
    expected = slow_best(curve, budget)
    if expected is None:
        with pytest.raises(ValueError, match=r"No model costs .* after its first round"):
            curve.best_under(budget)
        return
    best = curve.best_under(budget)
    assert_allclose((best.score, -best.cost, -best.n_rounds), expected, atol=1e-11)
    assert best.cost <= budget
    assert best.mu in curve.mu


@given(seed=st.integers(0, 10**6), budget=st.integers(0, 12))
def test_a_larger_budget_is_never_worse_and_no_limit_is_the_largest(seed, budget):
    curve = random_curve(seed, 3, 4, 6)
    most = float(curve.cost.max())
    assert curve.best_under(None) == curve.best_under(most)
    score, cost = curve.under(budget)
    assert (cost[~np.isnan(cost)] <= budget).all()
    assert_array_equal(np.isnan(score), np.isnan(cost))
    assert_array_equal(np.isnan(score[:, :, 0]), curve.cost[:, :, 0] > budget)
    within = curve.cost <= budget
    assert_array_equal(score[within], curve.score[within])


def test_equal_scores_are_decided_by_cost_then_rounds():
    score = np.array([[[0.8, 0.9, 0.9], [0.9, 0.9, 0.7]]])
    cost = np.array([[[1.0, 4.0, 4.0], [5.0, 5.0, 5.0]]])
    curve = CostCurve(np.array([0.0, 1.0]), score, cost, np.full((1, 2), 3))
    best = curve.best_under(None)
    assert (best.mu, best.n_rounds, best.cost) == (0.0, 2, 4.0)
    assert np.isnan(best.standard_error)


def test_rounding_is_no_improvement():
    score, cost = np.array([[[0.3, 0.1 + 0.2]]]), np.array([[[1.0, 5.0]]])
    curve = CostCurve(np.array([0.0]), score, cost, np.full((1, 1), 2))
    budgets, best = curve.frontier()
    assert (budgets.tolist(), best.tolist()) == ([curve.best_under(None).cost], [0.3])


def test_means_and_errors():
    score = np.array([[[0.0, 1.0]], [[1.0, 1.0]], [[0.5, 1.0]]])
    curve = CostCurve(np.array([0.5]), score, np.ones((3, 1, 2)), np.full((3, 1), 2))
    assert_allclose(curve.mean_score, [[0.5, 1.0]])
    assert_allclose(curve.standard_error, [[0.5 / np.sqrt(3), 0.0]])
    assert_allclose(curve.mean_cost, [[1.0, 1.0]])


def test_columns_leave_out_rounds_that_a_model_does_not_have():
    score = np.array([[[0.5, 0.6, 0.6], [0.1, 0.2, 0.3]]])
    curve = CostCurve(np.array([0.0, 1.0]), score, 10 * score, np.array([[2, 3]]))
    columns = curve.to_dict()
    assert_array_equal(columns["mu"], [0, 0, 1, 1, 1])
    assert_array_equal(columns["n_rounds"], [1, 2, 1, 2, 3])
    assert_allclose(columns["score"], [0.5, 0.6, 0.1, 0.2, 0.3])
    assert_allclose(columns["cost"], [5, 6, 1, 2, 3])
    assert_array_equal(columns["fold"], [0] * 5)


class Recorder(BaseEstimator):
    """Remembers what it was fitted with."""

    def __init__(self, mu=0.0, budget=None, n_estimators=100):
        self.mu, self.budget, self.n_estimators = mu, budget, n_estimators

    def fit(self, X, y, sample_weight=None):
        self.seen_ = (X, y, sample_weight)
        return self


def test_fit_best_sets_mu_rounds_and_the_hard_budget():
    score = np.array([[[0.5, 0.9], [0.6, 0.7]]])
    cost = np.array([[[4.0, 9.0], [1.0, 2.0]]])
    original = Recorder()
    curve = CostCurve(np.array([0.0, 2.0]), score, cost, np.full((1, 2), 2), estimator=original)
    fitted = curve.fit_best("X", "y", 3, sample_weight="w")
    assert (fitted.mu, fitted.budget, fitted.n_estimators) == (2.0, 3, 2)
    assert fitted.seen_ == ("X", "y", "w")
    assert curve.fit_best("X", "y", None).get_params() == {"mu": 0.0, "budget": None, "n_estimators": 2}
    assert original.get_params() == Recorder().get_params()
    original.budget = 1.5  # the estimator's own limit is never raised
    assert curve.fit_best("X", "y", 3).budget == 1.5
    assert curve.fit_best("X", "y", None).budget == 1.5
    assert curve.fit_best("X", "y", 1).budget == 1


def test_a_budget_that_was_swept_is_set_and_never_raised():
    score, cost = np.array([[[0.5, 0.9], [0.6, 0.95]]]), np.array([[[4.0, 9.0], [1.0, 5.0]]])
    curve = CostCurve(
        np.array([0.0, 0.5]), score, cost, np.full((1, 2), 2), budget=np.array([np.inf, 5.0]), estimator=Recorder()
    )
    assert repr(curve) == "CostCurve(score, 1 folds, 1 values of mu, 1 budgets, up to 2 rounds)"
    assert curve.best_under(None)[:3] == (0.5, 5.0, 2)
    for budget, expected in ((None, 5.0), (100, 5.0), (4, 4)):
        fitted = curve.fit_best("X", "y", budget)
        assert (fitted.mu, fitted.budget) == (0.5, expected)


def test_names_tell_settings_apart():
    ones = np.ones((1, 2, 1))
    for budgets, names in (
        ([0.5, np.inf], ("budget 0.5", "mu 4")),
        ([113.37, 113.4], ("budget 113.37", "budget 113.4")),
    ):
        curve = CostCurve(np.array([4.0, 4.0]), ones, ones, np.ones((1, 2), dtype=int), budget=np.array(budgets))
        assert curve.names == names


def test_select():
    curve = random_curve(0, 2, 3, 4)
    part = curve.select(mus=curve.mu[[2, 0]])
    assert_array_equal(part.mu, curve.mu[[0, 2]])
    assert_array_equal(part.score, curve.score[:, [0, 2]])
    assert_array_equal(part.cost, curve.cost[:, [0, 2]])
    with pytest.raises(ValueError, match=r"no mu of \[7.0\]. It has \["):
        curve.select(mus=[7.0])
    with pytest.raises(ValueError, match=r"no budget of \[1.0\]. It has \[\]"):
        curve.select(budgets=[1])
    with pytest.raises(ValueError, match="Select at least one of mu "):
        curve.select()


def test_a_model_without_trees_is_one_row_of_the_columns():
    curve = CostCurve(np.array([0.0]), np.full((1, 1, 3), 0.5), np.zeros((1, 1, 3)), np.array([[0]]))
    assert curve.to_dict()["n_rounds"].tolist() == [0]


def test_scores_that_are_not_numbers():
    score, cost = np.array([[[np.nan, 0.9]], [[0.5, 0.7]]]), np.ones((2, 1, 2))
    curve = CostCurve(np.array([0.0]), score, cost, np.full((2, 1), 2), "roc_auc")
    assert curve.best_under(None).n_rounds == 2
    score[1, 0, 1] = np.nan
    for budget in (None, 5):
        with pytest.raises(ValueError, match="roc_auc is NaN in some fold of every model"):
            curve.best_under(budget)


def test_bad_calls():
    curve = random_curve(0, 2, 2, 3)
    with pytest.raises(ValueError, match="no estimator to train"):
        curve.fit_best([[0]], [0], None)
    with pytest.raises(ValueError, match="budget must be a finite number"):
        curve.best_under(-1)
    with pytest.raises(TypeError, match="budget must be a number"):
        curve.best_under("10")
    dear = CostCurve(curve.mu, curve.score, curve.cost + 5, curve.n_rounds)
    cheapest = dear.cost[:, :, 0].max(axis=0).min()
    with pytest.raises(ValueError, match=f"cheapest costs {cheapest:g} after its first round. Sweep larger mus"):
        dear.best_under(1)
