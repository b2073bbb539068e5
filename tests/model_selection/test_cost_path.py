from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import lightgbm as lgb
import matplotlib as mpl
import numpy as np
import pytest

from grbb_ext import FeatureCosts, cost_path
from grbb_ext.adapters.lightgbm._train import train

mpl.use("Agg")

COSTS = FeatureCosts([4.0, 2.0, 1.0])


def forest(mu: float) -> Any:
    """Uses fewer features the larger mu is."""
    used = np.arange(3)[mu * COSTS.prices < 5]
    return SimpleNamespace(n_features=3, n_trees=2 * used.size, features_used=lambda: used, mu=mu)


def test_the_default_is_the_grid_of_the_paper() -> None:
    path = cost_path(forest, COSTS, verbose=False)
    assert len(path) == 11
    np.testing.assert_array_equal(path.mu, [0, *(4.0 ** np.arange(-5, 5))])
    assert np.isnan(path.score).all()


def test_by_hand() -> None:
    path = cost_path(forest, COSTS, mu=[0, 1.5, 3, 100], score=lambda f: -f.mu, verbose=False)
    assert path.cost.tolist() == [7.0, 3.0, 1.0, 0.0]
    assert path.n_features.tolist() == [3, 2, 1, 0]
    assert path.n_trees.tolist() == [6, 4, 2, 0]
    assert repr(path) == "CostPath(4 models, cost 0 to 7)"
    best = path.best_under(3.5)
    assert (best.mu, best.cost, best.score, best.model.mu) == (1.5, 3.0, -1.5, 1.5)
    assert path.best_under(7.0).mu == 0.0


def test_lower_may_be_better_and_of_equals_the_cheapest_wins() -> None:
    falling = cost_path(forest, COSTS, mu=[0, 1.5, 3], score=lambda f: f.mu, higher_is_better=False, verbose=False)
    assert falling.best_under(100).mu == 0.0
    level = cost_path(forest, COSTS, mu=[0, 1.5, 3], score=lambda f: 1.0, verbose=False)
    assert level.best_under(100).cost == 1.0


def test_plot_shows_the_points_in_order_of_cost() -> None:
    path = cost_path(forest, COSTS, mu=[0, 3, 1.5], score=lambda f: -f.mu, verbose=False)
    assert path.plot(color="black") is path
    assert path.line_.get_xdata().tolist() == [1.0, 3.0, 7.0]
    assert path.line_.get_ydata().tolist() == [-3.0, -1.5, 0.0]
    assert path.figure_ is path.ax_.figure
    mpl.pyplot.close(path.figure_)


def test_wrong_use() -> None:
    with pytest.raises(ValueError, match="mu must be a finite number"):
        cost_path(forest, COSTS, mu=[-1], verbose=False)
    with pytest.raises(ValueError, match="mu is empty"):
        cost_path(forest, COSTS, mu=[], verbose=False)
    with pytest.raises(TypeError, match="returned None"):
        cost_path(lambda mu: None, COSTS, mu=[1], verbose=False)
    path = cost_path(forest, COSTS, mu=[0], verbose=False)
    with pytest.raises(ValueError, match="No model costs 5 or less; the cheapest costs 7"):
        path.best_under(5)
    with pytest.raises(ValueError, match="pass score="):
        path.best_under(8)
    with pytest.raises(ValueError, match="pass score="):
        path.plot()


def test_lightgbm_cost_falls_along_the_path() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    y = X @ [2.0, 1.5, 1.0, 0.7, 0.4, 0.2] + 0.1 * rng.normal(size=300)
    costs = FeatureCosts(needs=["a", "a", "b", "b", "c", "d"], prices={"a": 4.0, "b": 2.0, "c": 1.0, "d": 1.0})
    params = {"objective": "regression", "num_leaves": 4, "verbosity": -1, "num_threads": 1}
    data = lgb.Dataset(X[:200], y[:200])

    def error(model: lgb.Booster) -> float:
        return float(np.mean((model.predict(X[200:]) - y[200:]) ** 2))

    path = cost_path(
        lambda mu: train(params, data, 40, costs=costs, mu=mu), costs, mu=[0, 1, 10, 100, 1e4], score=error,
        higher_is_better=False, verbose=False,
    )  # fmt: skip
    assert path.cost[0] == 8.0
    assert path.cost[-1] == 0.0
    assert (np.diff(path.cost) <= 0).all()
    assert error(path.best_under(8.0).model) == path.score.min()
