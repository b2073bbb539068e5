from __future__ import annotations

import logging
import pickle
from typing import Any

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest

from grbb_ext import FeatureCosts, grbb_objective
from grbb_ext.adapters.lightgbm import metric
from grbb_ext.adapters.lightgbm._train import train
from grbb_ext.costs import BudgetError

FAST = {"verbosity": -1, "num_threads": 1, "num_leaves": 6, "min_data_in_leaf": 5}
STUMP = {
    "objective": "regression",
    "boost_from_average": False,
    "num_leaves": 2,
    "min_data_in_leaf": 1,
    "min_sum_hessian_in_leaf": 0.0,
    "min_data_in_bin": 1,
    "verbosity": -1,
    "num_threads": 1,
}


def features_of(booster: lgb.Booster) -> set[int]:
    found: set[int] = set()

    def walk(node: dict[str, Any]) -> None:
        if "split_feature" in node:
            found.add(node["split_feature"])
            walk(node["left_child"])
            walk(node["right_child"])

    for tree in booster.dump_model(num_iteration=-1)["tree_info"]:
        walk(tree["tree_structure"])
    return found


def trees(booster: lgb.Booster) -> list[Any]:
    return booster.dump_model()["tree_info"]


def noisy(n_rows: int = 300, n_columns: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    return X, X @ np.linspace(2, 0.5, n_columns) + X[:, 0] * X[:, 1] + rng.normal(size=n_rows)


SHARED = FeatureCosts(
    needs=[["A", "a0"], ["A", "a1"], ["A", "a2"], ["B"], ["B"], ["B"], [], ["dear"]],
    prices={"A": 5.0, "a0": 1.0, "a1": 1.0, "a2": 1.0, "B": 8.0, "dear": 40.0},
)


class TestTradeOff:
    # Column 0 takes the squared error from 6 to 0, column 1 from 6 to 3.
    X = np.array([[0, 0], [0, 0], [0, 1], [1, 1], [1, 1], [1, 1]], dtype=float)
    y = np.array([-1.0, -1.0, -1.0, 1.0, 1.0, 1.0])

    def bought(self, prices: list[float], mu: float, **params: Any) -> tuple[Any, ...]:
        data = lgb.Dataset(self.X, self.y)
        return train({**STUMP, **params}, data, 1, costs=FeatureCosts(prices), mu=mu).ledger_.features

    @pytest.mark.parametrize("prices", [[1.0, 0.0], [4.0, 1.0], [0.3, 0.1], [100.0, 99.0]])
    @pytest.mark.parametrize("learning_rate", [1.0, 0.1])
    def test_the_feature_switches_where_mu_times_price_is_the_difference_of_gains(self, prices, learning_rate) -> None:
        switch = 3.0 / (prices[0] - prices[1])
        if switch * prices[1] < 3.0:  # otherwise nothing is worth buying at the switch
            assert self.bought(prices, switch * (1 - 1e-9), learning_rate=learning_rate) == (0,)
            assert self.bought(prices, switch * (1 + 1e-9), learning_rate=learning_rate) == (1,)
        nothing = max(6.0 / prices[0], 3.0 / prices[1] if prices[1] else np.inf)
        if np.isfinite(nothing):
            assert self.bought(prices, nothing * (1 - 1e-9)) != ()
            assert self.bought(prices, nothing * (1 + 1e-9)) == ()

    def test_a_shared_source_counts_in_the_penalty_and_once_in_the_bill(self) -> None:
        costs = FeatureCosts(needs=[["draw"], ["draw"]], prices={"draw": 1.0})
        booster = train({**STUMP, "learning_rate": 0.5}, lgb.Dataset(self.X, self.y), 8, costs=costs, mu=1.0)
        assert booster.ledger_.spent == costs.total(features_of(booster)) == 1.0

    def test_a_paid_source_makes_features_cheaper_from_the_next_round(self) -> None:
        """Column 1 alone is worth 3 a round, not the 4 of draw and own; once the draw is paid it is worth its own 1."""
        X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 3, dtype=float)
        y = 4 * X[:, 0] + X[:, 1]  # gains 48 and 3
        costs = FeatureCosts(needs=[["draw", "x0"], ["draw", "x1"]], prices={"draw": 3.0, "x0": 0.0, "x1": 1.0})
        data = {"params": {**STUMP, "learning_rate": 1.0, "boost_from_average": True}}
        alone = train(data["params"], lgb.Dataset(X[:, 1:].copy(), y), 1, costs=FeatureCosts([4.0]), mu=1.0)
        assert alone.ledger_.features == ()
        booster = train(data["params"], lgb.Dataset(X, y), 2, costs=costs, mu=1.0)
        assert [(line.round, line.features, line.price) for line in booster.ledger_.history] == [
            (0, (0,), 3.0),
            (1, (1,), 1.0),
        ]


class TestBudget:
    @pytest.mark.parametrize("mu", [0.0, 0.5])
    @pytest.mark.parametrize("budget", [0.0, 6.0, 7.5, 13.0, 20.0, 21.0])
    def test_never_exceeded_and_the_ledger_is_the_model(self, budget: float, mu: float) -> None:
        X, y = noisy()
        bills = []

        def after(env: Any) -> None:
            bills.append(SHARED.total(features_of(env.model)))

        data = lgb.Dataset(X, y)
        booster = train(
            {**FAST, "objective": "regression"}, data, 12, costs=SHARED, mu=mu, budget=budget, callbacks=[after]
        )
        assert max(bills) <= budget
        assert set(np.flatnonzero(booster.ledger_.used)) == features_of(booster)
        assert booster.ledger_.spent == bills[-1] == SHARED.total(features_of(booster))

    def test_a_budget_of_nothing_leaves_free_features(self) -> None:
        X, y = noisy()
        booster = train({**FAST, "objective": "regression"}, lgb.Dataset(X, y), 3, costs=SHARED, budget=0.0)
        assert features_of(booster) == {6}

    def test_without_penalties_all_that_fits_is_open_in_every_round(self) -> None:
        """Also after the first tree, which wants more than the budget holds, was taken back."""
        X, y = noisy()
        costs = FeatureCosts([5.0, 5.0, 5.0, 5.0, 1.0, 1.0, 1.0, 1.0])
        closed: list[np.ndarray] = []

        def just_before_the_round(env: Any) -> None:
            paid = features_of(env.model) if env.model.num_trees() else set()
            fits = np.array([costs.total(paid | {column}) <= 8.0 for column in range(8)])
            np.testing.assert_array_equal(np.array(env.model.params.get("feature_contri", [1.0] * 8)) > 0, fits)
            closed.append(~fits)

        just_before_the_round.before_iteration = True
        just_before_the_round.order = 2 * 10**9
        params = {**FAST, "objective": "regression", "num_leaves": 4}
        train(params, lgb.Dataset(X, y), 30, costs=costs, budget=8.0, callbacks=[just_before_the_round])
        assert not closed[0].any()
        assert closed[1].any()

    def test_the_end_is_told_once(self, caplog) -> None:
        X, y = noisy(60)
        X = (X > 0).astype(float)
        costs = FeatureCosts([1.0] * 8)
        record: dict[str, Any] = {}
        with caplog.at_level(logging.INFO, logger="grbb_ext"):
            data = lgb.Dataset(X, y)
            booster = train(
                {**STUMP, "boost_from_average": True, "learning_rate": 1.0, "min_gain_to_split": 1e-6},
                data,
                500,
                valid_sets=[data],
                costs=costs,
                budget=1.5,
                callbacks=[lgb.record_evaluation(record)],
            )
        reason = booster.ledger_.stop_reason
        assert [line.getMessage() for line in caplog.records] == [reason]
        assert "the cheapest of the 7 others costs 1 while 0.5 of the budget of 1.5 is left" in reason
        assert booster.num_trees() < 10
        assert booster.best_iteration == 0
        assert len(record["training"]["l2"]) == booster.num_trees() + 1
        assert booster.best_score["training"]["l2"] == record["training"]["l2"][-1]

    def test_the_end_by_mu(self, caplog) -> None:
        X, y = noisy(60)
        with caplog.at_level(logging.WARNING, logger="grbb_ext"):
            data = lgb.Dataset(X, y)
            booster = train({**STUMP, "verbosity": 0}, data, 50, costs=FeatureCosts([1.0] * 8), mu=1e6)
        assert "is worth its price at mu=1e+06" in booster.ledger_.stop_reason
        assert len(caplog.records) == 1
        assert booster.ledger_.spent == 0.0

    def test_an_empty_round_with_sampling_is_not_the_end(self) -> None:
        """Two of eight columns are drawn for each tree, and only two are affordable: most rounds are empty."""
        X, y = noisy()
        params = {**FAST, "objective": "regression", "feature_fraction": 0.25, "seed": 1}
        costs = FeatureCosts([1.0, 1.0] + [100.0] * 6)
        booster = train(params, lgb.Dataset(X, y), 30, costs=costs, budget=2.0)
        assert booster.ledger_.stop_reason is None
        assert 3 < booster.num_trees() < 30
        assert booster.ledger_.spent == 2.0

    def test_what_was_dear_for_one_round_is_bought_when_it_pays(self) -> None:
        """Columns that LightGBM no longer penalises are not lost, and not free."""
        X, y = noisy(400, seed=3)
        costs = FeatureCosts(np.linspace(1, 3, 8))
        for mu in (1.0, 5.0, 20.0, 60.0):
            booster = train({**FAST, "objective": "regression"}, lgb.Dataset(X, y), 40, costs=costs, mu=mu)
            assert set(np.flatnonzero(booster.ledger_.used)) == features_of(booster)
            if mu == 1.0:
                assert booster.ledger_.used.all()


class TestSameAsPlain:
    """Where costs say nothing, training is that of LightGBM, to the last bit."""

    @pytest.mark.parametrize(
        "settings",
        [
            {"costs": FeatureCosts([0.0] * 8), "mu": 3.0},
            {"costs": FeatureCosts([0.0] * 8), "mu": 3.0, "budget": 0.0},
            {"costs": SHARED},
            {"costs": SHARED, "budget": 1e6},
            {},
        ],
    )
    @pytest.mark.parametrize("extra", [{}, {"bagging_fraction": 0.5, "bagging_freq": 1, "feature_fraction": 0.5}])
    def test_trees_are_identical(self, settings: dict[str, Any], extra: dict[str, Any]) -> None:
        X, y = noisy()
        params = {**FAST, "objective": "regression", **extra}
        ours = train(params, lgb.Dataset(X, y), 10, **settings)
        plain = lgb.train(params, lgb.Dataset(X, y), 10)
        assert trees(ours) == trees(plain)
        if settings:
            assert set(np.flatnonzero(ours.ledger_.used)) == features_of(plain)
        else:
            assert not hasattr(ours, "ledger_")

    def test_early_stopping_by_parameter_and_by_callback(self) -> None:
        X, y = noisy(300)
        free = FeatureCosts([0.0] * 8)
        params = {**FAST, "objective": "regression", "learning_rate": 0.5}

        def run(trainer: Any, extra: dict[str, Any], callbacks: list[Any], **settings: Any) -> lgb.Booster:
            data = lgb.Dataset(X[:150], y[:150])
            valid = lgb.Dataset(X[150:], y[150:], reference=data)
            return trainer(
                {**params, **extra}, data, 200, valid_sets=[data, valid], valid_names=["fit", "held"],
                callbacks=callbacks, **settings,
            )  # fmt: skip

        plain = run(lgb.train, {}, [lgb.early_stopping(5, verbose=False)])
        for extra, callbacks in (
            ({}, [lgb.early_stopping(5, verbose=False)]),
            ({"early_stopping_rounds": 5}, []),
        ):
            ours = run(train, extra, callbacks, costs=free, mu=1.0)
            assert ours.best_iteration == plain.best_iteration < 200
            assert ours.best_score == plain.best_score
            assert trees(ours) == trees(plain)


class TestTraining:
    def test_recorded_scores_are_those_of_the_trees_that_stayed(self) -> None:
        X, y = noisy(400)
        costs = FeatureCosts(np.linspace(1, 3, 8))
        data = lgb.Dataset(X[:250], y[:250], free_raw_data=False)
        valid = lgb.Dataset(X[250:], y[250:], reference=data)
        record: dict[str, Any] = {}

        def mean_error(scores: np.ndarray, data: lgb.Dataset) -> tuple[str, float, bool]:
            return "bias", float(np.mean(scores - data.get_label())), False

        booster = train(
            {**FAST, "objective": "regression"}, data, 15, valid_sets=[data, valid], feval=mean_error,
            costs=costs, mu=10.0, budget=9.0, callbacks=[lgb.record_evaluation(record)],
        )  # fmt: skip
        assert len(booster.ledger_.history) > 1
        for name, rows in (("training", slice(250)), ("valid_1", slice(250, None))):
            for i in range(15):
                error = booster.predict(X[rows], num_iteration=i + 1) - y[rows]
                assert record[name]["l2"][i] == pytest.approx(np.mean(error**2), rel=1e-5)
                assert record[name]["bias"][i] == pytest.approx(np.mean(error), abs=1e-5)

    def test_the_ledger_of_a_model_cut_by_early_stopping(self) -> None:
        X, y = noisy(80, seed=2)
        costs = FeatureCosts([1.0] * 8)
        data = lgb.Dataset(X[:40], y[:40])
        valid = lgb.Dataset(X[40:], y[40:], reference=data)
        booster = train(
            {**FAST, "objective": "regression", "learning_rate": 0.9, "num_leaves": 3, "lambda_l2": 20.0}, data, 100,
            valid_sets=[valid], costs=costs, mu=0.2, callbacks=[lgb.early_stopping(10, verbose=False)],
        )  # fmt: skip
        assert booster.num_trees() == booster.best_iteration < 100
        assert set(np.flatnonzero(booster.ledger_.used)) == features_of(booster)

    def test_early_stopping_keeps_its_best_round_when_costs_end_training(self) -> None:
        X, y = noisy(80, seed=2)
        X = (X > 0).astype(float)
        data = lgb.Dataset(X[:40], y[:40])
        valid = lgb.Dataset(X[40:], -y[40:], reference=data)  # the first round is the best
        booster = train(
            {**STUMP, "learning_rate": 1.0, "min_gain_to_split": 1e-6}, data, 100, valid_sets=[valid],
            costs=FeatureCosts([1.0] * 8), budget=1.0, callbacks=[lgb.early_stopping(50, verbose=False)],
        )  # fmt: skip
        assert booster.ledger_.stop_reason is not None
        assert booster.best_iteration == 1

    def test_learning_rates_by_callback(self) -> None:
        X, y = noisy()
        schedule = lgb.reset_parameter(learning_rate=[0.5, 0.25, 0.125, 0.0625])
        booster = train(
            {**FAST, "objective": "regression"}, lgb.Dataset(X, y), 4, costs=SHARED, mu=1.0, callbacks=[schedule]
        )
        assert [tree["shrinkage"] for tree in trees(booster)] == [1, 0.25, 0.125, 0.0625]  # the first holds the mean

    def test_leaves_may_not_grow_during_training(self) -> None:
        X, y = noisy()
        schedule = lgb.reset_parameter(num_leaves=[4, 8])
        with pytest.raises(ValueError, match="num_leaves cannot be raised"):
            train({**FAST, "objective": "regression"}, lgb.Dataset(X, y), 2, costs=SHARED, mu=1.0, callbacks=[schedule])

    def test_keep_training_booster_and_pickle(self) -> None:
        X, y = noisy()
        params = {**FAST, "objective": "regression"}
        kept = train(params, lgb.Dataset(X, y), 3, costs=SHARED, mu=1.0, keep_training_booster=True)
        assert kept.eval_train()[0][1] == "l2"
        copied = pickle.loads(pickle.dumps(train(params, lgb.Dataset(X, y), 3, costs=SHARED, mu=1.0)))
        assert copied.ledger_ == kept.ledger_

    def test_feature_contri_of_the_user_is_kept(self) -> None:
        X, y = noisy()
        params = {**FAST, "objective": "regression", "feature_contri": [1, 0, 1, 1, 1, 1, 1, 1]}
        booster = train(params, lgb.Dataset(X, y), 8, costs=SHARED, budget=20.0)
        assert 1 not in features_of(booster)
        assert booster.ledger_.spent <= 20.0

    def test_gains_too_small_to_be_recorded_are_not_overlooked(self) -> None:
        X, y = noisy()

        def tiny(scores: np.ndarray, data: lgb.Dataset) -> tuple[np.ndarray, np.ndarray]:
            return (scores - y) * 1e-24, np.ones_like(scores)

        booster = train({**FAST, "objective": tiny}, lgb.Dataset(X), 2, costs=SHARED, budget=30.0)
        assert features_of(booster)
        assert features_of(booster) == set(np.flatnonzero(booster.ledger_.used).tolist())
        assert booster.ledger_.spent <= 30.0

    def test_a_callback_that_grows_trees_of_its_own_is_refused(self) -> None:
        X, y = noisy()

        def grow(env: Any) -> None:
            env.model.reset_parameter({"feature_contri": [1.0] * 8})
            env.model.update()

        with pytest.raises(RuntimeError, match="a callback has changed its trees"):
            train({**FAST, "objective": "regression"}, lgb.Dataset(X, y), 1, callbacks=[grow], costs=SHARED, budget=7.0)


class TestContinuation:
    @pytest.mark.parametrize("from_file", [False, True])
    def test_what_a_model_uses_is_paid(self, from_file: bool, tmp_path) -> None:
        X, y = noisy()
        params = {**FAST, "objective": "regression"}
        first = train(params, lgb.Dataset(X, y, free_raw_data=False), 5, costs=SHARED, mu=0.5, budget=14.0)
        spent = first.ledger_.spent
        assert spent > 0
        model: Any = first
        if from_file:
            model = tmp_path / "model.txt"
            first.save_model(model)
        # At this price nothing new is ever bought, and what is paid is used further.
        more = train(params, lgb.Dataset(X, y), 5, costs=SHARED, mu=1e6, budget=14.0, init_model=model)
        assert more.num_trees() == 10
        assert more.ledger_.spent == spent
        assert more.ledger_.history[0].round == -1
        assert trees(more)[:5] == trees(first)
        assert set(np.flatnonzero(more.ledger_.used)) == features_of(more)
        assert features_of(more) - features_of(first) <= {6}  # which is free
        with pytest.raises(BudgetError, match="of the budget of 1 is left"):
            train(params, lgb.Dataset(X, y), 5, costs=SHARED, budget=1.0, init_model=model)

    def test_rounds_go_on_counting(self) -> None:
        X, y = noisy()
        params = {**FAST, "objective": "regression", "num_leaves": 3}
        first = lgb.train({**params, "feature_contri": [0] * 6 + [1, 0]}, lgb.Dataset(X, y), 5)
        more = train(params, lgb.Dataset(X, y), 5, costs=SHARED, mu=0.01, init_model=first)
        assert [line.round for line in more.ledger_.history][:2] == [-1, 5]


class TestNames:
    def test_columns_of_a_frame(self) -> None:
        X, y = noisy(200, 3)
        frame = pd.DataFrame(X, columns=["age", "chol", "fbs"])
        costs = FeatureCosts(
            needs={"fbs": ["draw", "fbs"], "chol": ["draw", "chol"], "age": []},
            prices={"draw": 2.10, "chol": 5.17, "fbs": 3.10},
        )
        booster = train({**FAST, "objective": "regression"}, lgb.Dataset(frame, y), 10, costs=costs, budget=7.0)
        assert booster.ledger_.features == ("age", "fbs")
        assert booster.ledger_.sources == ("draw", "fbs")

    @pytest.mark.parametrize(
        ("costs", "message"),
        [
            (FeatureCosts({"a": 1.0}), "No price for 'b'"),
            (FeatureCosts({"a": 1.0, "c": 1.0}), "name 'c', but there is no such column"),
            (FeatureCosts([1.0]), "1 entries but there are 2 columns"),
        ],
    )
    def test_wrong_names(self, costs: FeatureCosts, message: str) -> None:
        X, y = noisy(50, 2)
        with pytest.raises(ValueError, match=message):
            train(FAST, lgb.Dataset(X, y, feature_name=["a", "b"]), 1, costs=costs)

    def test_names_without_named_columns(self) -> None:
        X, y = noisy(50, 2)
        with pytest.raises(ValueError, match="columns have no names"):
            train(FAST, lgb.Dataset(X, y), 1, costs=FeatureCosts({"a": 1.0, "b": 2.0}))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"boosting": "dart"}, "boosting='dart'"),
        ({"boosting_type": "rf"}, "boosting='rf'"),
        ({"tree_learner": "data"}, "Distributed"),
        ({"num_machines": 2}, "Distributed"),
        ({"device": "gpu"}, "device_type='gpu'"),
        ({"linear_tree": True}, "linear_tree"),
        ({"linear_tree": "true"}, "linear_tree"),
        ({"forced_splits": "splits.json"}, "forcedsplits_filename"),
        ({"cegb_tradeoff": 1.0}, "cegb_tradeoff is set by costs"),
        ({"cegb_penalty_feature_coupled": [1.0] * 8}, "cegb_penalty_feature_coupled"),
        ({"cegb_penalty_feature_lazy": [1.0] * 8}, "cegb_penalty_feature_lazy"),
        ({"cegb_penalty_split": 0.1}, "cegb_penalty_split"),
    ],
)
def test_refused_parameters(params: dict[str, Any], message: str) -> None:
    X, y = noisy()
    with pytest.raises(ValueError, match=message):
        train({**FAST, **params}, lgb.Dataset(X, y), 1, costs=SHARED, mu=1.0)


def test_refused_parameters_of_the_data_set() -> None:
    X, y = noisy()
    with pytest.raises(ValueError, match="linear_tree does not go with costs"):
        train(FAST, lgb.Dataset(X, y, params={"linear_trees": True}), 1, costs=SHARED, mu=1.0)
    # What a data set has no use for does not reach the booster.
    assert train(FAST, lgb.Dataset(X, y, params={"boosting": "dart"}), 1, costs=SHARED).num_trees() == 1


@pytest.mark.parametrize("seed", range(3))
def test_early_stopping_counts_the_rounds_that_grew(seed: int) -> None:
    """Of few columns that are bought, a sample is often empty: LightGBM keeps no tree of such a round."""
    X, y = noisy(seed=seed)
    data, record = lgb.Dataset(X[:200], y[:200]), {}
    watched = lgb.Dataset(X[200:], y[200:], reference=data)
    params = FAST | {"objective": "regression", "metric": "l2", "feature_fraction": 0.3, "early_stopping_round": 8}
    params |= {"learning_rate": 0.4, "seed": seed}
    booster = train(
        params,
        data,
        60,
        valid_sets=[watched],
        callbacks=[lgb.record_evaluation(record)],
        costs=FeatureCosts([1.0] * 8),
        budget=2.0,
    )
    scores = record["valid_0"]["l2"]
    assert booster.best_iteration < np.argmin(scores) + 1  # as many rounds, of which some are lost
    np.testing.assert_allclose(np.mean((booster.predict(X[200:]) - y[200:]) ** 2), min(scores))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_columns_that_cannot_be_split_buy_nothing(n_classes: int) -> None:
    """With fewer than 40 rows leaves of 20 cannot be: LightGBM drops all columns, and its model is a constant."""
    X, y = noisy(30, 4)
    params: dict[str, Any] = {"objective": "binary", "verbosity": -1, "num_threads": 1}
    if n_classes == 3:
        params |= {"objective": "multiclass", "num_class": 3}
    data = lgb.Dataset(X, np.digitize(y, np.quantile(y, [0.5] if n_classes == 2 else [0.4, 0.7])))
    plain = lgb.train(params, data, 5)
    for setting in ({"mu": 1.0}, {"budget": 0.0}, {"mu": 1.0, "budget": 2.0}):
        booster = train(params, data, 5, costs=FeatureCosts([1.0] * 4), **setting)
        assert booster.ledger_.spent == 0
        assert booster.ledger_.stop_reason
        np.testing.assert_array_equal(booster.predict(X), plain.predict(X))


def test_wrong_arguments() -> None:
    X, y = noisy()
    data = lgb.Dataset(X, y)
    with pytest.raises(ValueError, match="need costs="):
        train(FAST, data, 1, mu=1.0)
    with pytest.raises(ValueError, match="need costs="):
        train(FAST, data, 1, budget=1.0)
    with pytest.raises(ValueError, match="mu must be a finite number of at least 0"):
        train(FAST, data, 1, costs=SHARED, mu=-1.0)
    with pytest.raises(ValueError, match="budget must be"):
        train(FAST, data, 1, costs=SHARED, budget=float("nan"))
    with pytest.raises(TypeError, match="costs must be FeatureCosts"):
        train(FAST, data, 1, costs=[1.0] * 8)


@pytest.mark.parametrize("preset", ["paper", None])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_with_the_semi_supervised_objective(n_classes: int, preset: Any) -> None:
    rng = np.random.default_rng(n_classes)
    centers = rng.normal(size=(n_classes, 5)) * 3
    truth = rng.integers(0, n_classes, 240)
    X = centers[truth] + rng.normal(size=(240, 5))
    y = np.where(np.arange(240) < 24, truth, -1)
    if n_classes == 3 and preset == "paper":
        obj = grbb_objective(X, y, preset=preset, loss="softmax", verbose=False)
    else:
        obj = grbb_objective(X, y, preset=preset, verbose=False)
    costs = FeatureCosts(needs=[["s"], ["s"], ["t"], ["t", "u"], []], prices={"s": 2.0, "t": 3.0, "u": 1.0})
    params = {**FAST, "objective": obj}
    if n_classes > 2:
        params["num_class"] = n_classes
    bills: list[float] = []

    def after(env: Any) -> None:
        bills.append(costs.total(features_of(env.model)))

    data = lgb.Dataset(X)
    valid = lgb.Dataset(X, truth, reference=data)
    record: dict[str, Any] = {}
    booster = train(
        params, data, 12, valid_sets=[valid], feval=metric(obj, "accuracy"), costs=costs, mu=0.1, budget=4.0,
        callbacks=[after, lgb.record_evaluation(record)],
    )  # fmt: skip
    assert max(bills) <= 4.0
    assert set(np.flatnonzero(booster.ledger_.used)) == features_of(booster)
    assert booster.ledger_.spent == bills[-1] > 0
    final = np.mean(obj.predict(booster.predict(X, raw_score=True)) == truth)
    assert record["valid_0"]["accuracy"][-1] == pytest.approx(final)
    assert final > 0.7


@pytest.mark.parametrize("names", [["Column_0", "Column_1"], ["blood pressure", "blood_pressure x"]])
def test_names_that_lightgbm_makes_or_changes(names):
    X, y = noisy(n_columns=2)
    costs = FeatureCosts(dict(zip(reversed(names), [1.0, 50.0], strict=True)))
    booster = train({**FAST, "objective": "regression"}, lgb.Dataset(pd.DataFrame(X, columns=names), y), 3, costs=costs)
    assert booster.ledger_.spent == costs.total(names) == 51.0
    cheap = lgb.Dataset(pd.DataFrame(X, columns=names), y)
    budgeted = train({**FAST, "objective": "regression"}, cheap, 3, costs=costs, budget=10)
    assert budgeted.ledger_.features == (names[1],)
    assert features_of(budgeted) == {1}
