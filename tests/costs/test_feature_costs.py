from __future__ import annotations

import copy
import json
import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

from grbb_ext import FeatureCosts
from grbb_ext.costs import Ledger


def blood() -> FeatureCosts:
    return FeatureCosts(
        needs={"chol": ["draw", "chol"], "fbs": ["draw", "fbs"], "ratio": ["draw", "chol", "fbs"], "age": []},
        prices={"draw": 2.10, "chol": 5.17, "fbs": 3.10},
    )


@st.composite
def random_costs(draw) -> FeatureCosts:
    n_features, n_sources = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    needs = draw(
        st.lists(
            st.lists(st.integers(0, n_sources - 1), unique=True, max_size=3), min_size=n_features, max_size=n_features
        )
    )
    used = sorted({source for row in needs for source in row})
    price = st.integers(0, 10_000).map(lambda cents: cents / 100)
    return FeatureCosts(needs=needs, prices={source: draw(price) for source in used})


class TestTotals:
    def test_a_shared_source_is_paid_once(self) -> None:
        costs = blood()
        assert costs.total(["chol"]) == 7.27
        assert costs.total(["chol", "fbs"]) == 10.37
        assert costs.total(["ratio"]) == costs.total(["chol", "fbs", "ratio"]) == 10.37
        assert costs.total(["age"]) == costs.total([]) == 0.0

    def test_prices_add_up_in_decimals(self) -> None:
        assert 0.1 + 0.2 != 0.3
        assert FeatureCosts([0.1, 0.2]).total([0, 1]) == 0.3

    @pytest.mark.parametrize("kind", [np.float16, np.float32])
    def test_prices_of_less_precision_are_the_decimals_that_they_show(self, kind) -> None:
        costs = FeatureCosts(np.array([0.1, 0.2, -0.0], dtype=kind))
        assert costs.total([0, 1, 2]) == 0.3
        assert Ledger(costs, kind(0.3)).fits([0, 1, 2])
        assert Ledger(costs, kind(0.3)).budget == 0.3

    @given(random_costs(), st.data())
    def test_marginal_is_the_difference_of_totals(self, costs: FeatureCosts, data) -> None:
        paid = data.draw(st.sets(st.sampled_from(range(costs.n_features))))
        feature = data.draw(st.sampled_from(range(costs.n_features)))
        difference = costs.total(paid | {feature}) - costs.total(paid)
        assert costs.marginal(feature, paid) == pytest.approx(difference, abs=1e-9)
        unpaid = np.array([source not in costs.paid_sources(paid) for source in costs.sources], dtype=bool)
        assert costs.marginals(~unpaid)[feature] == pytest.approx(difference, abs=1e-9)

    @given(random_costs(), st.data())
    def test_a_price_falls_as_more_is_paid(self, costs: FeatureCosts, data) -> None:
        few = data.draw(st.sets(st.sampled_from(range(costs.n_features))))
        many = few | data.draw(st.sets(st.sampled_from(range(costs.n_features))))
        for feature in range(costs.n_features):
            assert costs.marginal(feature, many) <= costs.marginal(feature, few)

    def test_ways_to_name_features(self) -> None:
        costs = blood().bind(["age", "chol", "fbs", "ratio"])
        mask = np.array([False, True, True, False])
        assert costs.total(["chol", "fbs"]) == costs.total([1, 2]) == costs.total(mask) == costs.total({2, "chol"})
        assert costs.total("chol") == costs.total(1) == 7.27

    def test_a_forest_is_priced_by_its_own_columns(self) -> None:
        forest = SimpleNamespace(
            n_features=4, feature_names=("age", "fbs", "ratio", "chol"), features_used=lambda: np.array([0, 3])
        )
        assert blood().total(forest) == 7.27
        assert blood().paid_sources(forest) == ("draw", "chol")

    def test_on_demand_a_row_pays_for_what_it_touches(self) -> None:
        touched = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]], dtype=bool)
        forest = SimpleNamespace(
            n_features=4, feature_names=("age", "chol", "fbs", "ratio"), features_touched=lambda X: touched
        )
        spent = blood().per_row(forest, np.zeros((5, 4)))
        np.testing.assert_allclose(spent, [0, 7.27, 10.37, 10.37, 0])
        assert blood().expected(forest, np.zeros((5, 4))) == pytest.approx(28.01 / 5)

    def test_evaluation(self) -> None:
        costs = FeatureCosts([1.0], per_tree=2.0, per_split=0.25)
        assert costs.evaluation(SimpleNamespace(n_trees=3, n_splits=8)) == 8.0


class TestConstruction:
    def test_forms_agree(self) -> None:
        by_name = FeatureCosts({"a": 1.0, "b": 2.5})
        assert FeatureCosts(pd.Series([1.0, 2.5], index=["a", "b"])) == by_name
        assert FeatureCosts(np.array([1.0, 2.5])) == FeatureCosts([1, 2.5])
        assert FeatureCosts([1.0, 2.5]).bind(["a", "b"]).total(["b"]) == by_name.total(["b"]) == 2.5
        np.testing.assert_array_equal(by_name.needs.toarray(), np.eye(2, dtype=bool))

    def test_needs_by_position(self) -> None:
        costs = FeatureCosts(needs=["gist", "gist", ["lbp"]], prices={"gist": 3.0, "lbp": 1.0})
        assert costs.total([0, 1]) == 3.0
        assert costs.bind(3).marginals().tolist() == [3.0, 3.0, 1.0]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"costs": {"a": -1.0}}, "'a' must be a finite number of at least 0, got -1.0"),
            ({"costs": {"a": float("nan")}}, "finite"),
            ({"costs": [1.0, float("inf")]}, "price of 1 must be a finite"),
            ({"costs": []}, "empty"),
            ({"costs": np.ones((2, 2))}, "one dimension"),
            ({"costs": pd.Series([1.0, 2.0], index=["a", "a"])}, "'a' is named twice"),
            ({"costs": {-1: 1.0}}, "index from 0"),
            ({"needs": {"a": ["s"]}}, "go together"),
            ({}, "either one price"),
            ({"costs": [1.0], "needs": {"a": []}, "prices": {}}, "either one price"),
            ({"needs": {"a": ["s"]}, "prices": {}}, "'a' needs 's', which has no price"),
            ({"needs": {"a": ["s"]}, "prices": {"s": 1.0, "t": 2.0}}, "No feature needs 't'"),
            ({"needs": {"a": ["s", "s"]}, "prices": {"s": 1.0}}, "'s' is named twice"),
            ({"needs": {"a": ["s"]}, "prices": {"s": -2}}, "price of 's'"),
            ({"costs": [1.0], "per_tree": -1}, "per_tree"),
            ({"costs": [1.0], "default": -1}, "default"),
        ],
    )
    def test_wrong_values(self, arguments, message) -> None:
        with pytest.raises(ValueError, match=message):
            FeatureCosts(**arguments)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"costs": {"a": "1"}}, "must be a number, got '1'"),
            ({"costs": {"a": None}}, "must be a number"),
            ({"costs": [True]}, "must be a number"),
            ({"costs": {"a": 1, 0: 2}}, "all names or all indices"),
            ({"costs": {1.5: 1}}, "name .* or an index"),
            ({"costs": "abc"}, "dict or a sequence"),
            ({"costs": 3.0}, "dict or a sequence"),
            ({"needs": {"a": 1.5}, "prices": {"s": 1}}, "list of sources"),
            ({"needs": {"a": ["s"]}, "prices": [1.0]}, "dict from source"),
        ],
    )
    def test_wrong_types(self, arguments, message) -> None:
        with pytest.raises(TypeError, match=message):
            FeatureCosts(**arguments)

    def test_unknown_features(self) -> None:
        with pytest.raises(ValueError, match=r"Unknown feature .chl.\. Did you mean .chol."):
            blood().total(["chl"])
        with pytest.raises(ValueError, match="index, but the costs are by name"):
            blood().total([0])
        with pytest.raises(ValueError, match="Unknown feature 7"):
            FeatureCosts([1.0, 2.0]).marginal(7)
        with pytest.raises(ValueError, match="mask needs one entry"):
            FeatureCosts([1.0, 2.0]).total(np.array([True]))


class TestBinding:
    def test_order_of_columns(self) -> None:
        bound = blood().bind(["ratio", "age", "fbs", "chol"])
        np.testing.assert_allclose(bound.marginals(), [10.37, 0, 5.2, 7.27])
        assert bound.bound
        assert bound.features == ("ratio", "age", "fbs", "chol")
        assert bound.bind(4) == bound

    def test_a_column_without_a_price_is_refused(self) -> None:
        with pytest.raises(ValueError, match="No price for 'sex', 'cp'"):
            blood().bind(["age", "sex", "cp", "chol", "fbs", "ratio"])

    def test_default_is_a_source_of_its_own(self) -> None:
        costs = FeatureCosts({"chol": 7.27}, default=1.5).bind(["sex", "chol", "age"])
        assert costs.marginals().tolist() == [1.5, 7.27, 1.5]
        assert costs.total(["sex", "age"]) == 3.0
        assert FeatureCosts({2: 7.0}, default=0.0).bind(3).marginals().tolist() == [0.0, 0.0, 7.0]

    def test_default_with_the_name_of_a_source(self) -> None:
        costs = FeatureCosts(needs={"chol": ["draw"]}, prices={"draw": 1.0}, default=2.0)
        with pytest.raises(ValueError, match="'draw' has no price, and a source has its name"):
            costs.bind(["chol", "draw"])

    def test_a_price_without_a_column_is_refused(self) -> None:
        with pytest.raises(ValueError, match="name 'chol', but there is no such column"):
            FeatureCosts({"chol": 1.0, "age": 2.0}, default=0.0).bind(["age", "kol"])
        assert FeatureCosts({"chol": 1.0, "age": 2.0}).select(["age"]).bind(["age"]).total(["age"]) == 2.0

    def test_wrong_length(self) -> None:
        with pytest.raises(ValueError, match="2 entries but there are 3 columns"):
            FeatureCosts([1.0, 2.0]).bind(3)
        with pytest.raises(ValueError, match="2 entries but there are 3 columns"):
            FeatureCosts([1.0, 2.0]).bind(["a", "b", "c"])
        with pytest.raises(ValueError, match="columns have no names"):
            blood().bind(4)
        with pytest.raises(ValueError, match="'a' is named twice"):
            FeatureCosts({"a": 1.0}).bind(["a", "a"])
        with pytest.raises(TypeError, match="list of names"):
            blood().bind("age")

    def test_a_blank_is_not_the_underscore_of_another_column(self) -> None:
        costs = FeatureCosts({"a b": 1.0}, default=5.0)
        assert costs.bind(["a b", "a_b"]).marginals().tolist() == [1.0, 5.0]
        assert costs.bind(["a_b", "c"]).marginals().tolist() == [1.0, 5.0]  # as LightGBM writes it
        with pytest.raises(ValueError, match="No price for 'a_b'"):
            FeatureCosts({"a b": 1.0}).bind(["a b", "a_b"])

    def test_models_are_not_columns(self) -> None:
        for model in (LinearRegression(), xgb.Booster()):
            with pytest.raises(TypeError, match=r"Pass Forest\.from_booster\(model\)"):
                FeatureCosts([1.0]).total(model)
            with pytest.raises(TypeError, match=r"Pass Forest\.from_booster\(model\)"):
                FeatureCosts([1.0]).per_row(model, [[1.0]])

    def test_select_keeps_shared_sources(self) -> None:
        part = blood().select(["fbs", "age"])
        assert part.sources == ("draw", "fbs")
        assert part.total(["fbs"]) == 5.2
        with pytest.raises(ValueError, match="at least one"):
            blood().select([])

    def test_lightgbm_params(self) -> None:
        bound = blood().bind(["age", "chol", "fbs", "ratio"])
        penalties = bound.lightgbm_params(0.5)
        assert penalties["cegb_tradeoff"] == 0.5
        np.testing.assert_allclose(penalties["cegb_penalty_feature_coupled"], [0, 7.27, 5.2, 10.37])
        with pytest.raises(ValueError, match="bind"):
            blood().lightgbm_params(0.5)


class TestValue:
    """FeatureCosts are a value: equal by content, unchangeable, stored and read back."""

    @settings(max_examples=30)
    @given(random_costs())
    def test_round_trips(self, costs: FeatureCosts) -> None:
        for other in (
            pickle.loads(pickle.dumps(costs)),
            FeatureCosts.from_dict(json.loads(json.dumps(costs.to_dict()))),
            copy.deepcopy(costs),
        ):
            assert other == costs
            assert hash(other) == hash(costs)
            assert other.bound == costs.bound
            np.testing.assert_array_equal(other.needs.toarray(), costs.needs.toarray())

    def test_settings_survive(self) -> None:
        costs = FeatureCosts({"a": 1.0}, per_tree=0.1, per_split=0.2, default=3.0)
        assert pickle.loads(pickle.dumps(costs)) == costs
        assert costs != FeatureCosts({"a": 1.0})
        assert costs != "costs"
        assert "default=3" in repr(costs)

    def test_it_cannot_be_changed(self) -> None:
        costs = FeatureCosts([1.0, 2.0])
        with pytest.raises(AttributeError, match="cannot be changed"):
            costs.prices = np.zeros(2)
        with pytest.raises(AttributeError, match="cannot be changed"):
            del costs.prices
        with pytest.raises(ValueError, match="read-only"):
            costs.prices[0] = 5.0
        with pytest.raises(ValueError, match="read-only"):
            costs.needs.data[0] = False


class TestBudgets:
    def test_they_are_sums_of_the_cheapest_features(self) -> None:
        costs = FeatureCosts(
            needs=[["draw", "chol"], ["draw", "fbs"], "age"], prices={"draw": 2.1, "chol": 5.17, "fbs": 3.1, "age": 1.0}
        )
        assert costs.budgets(10) == (1.0, 6.2, 11.37)
        assert costs.budgets(2) == (1.0, 11.37)

    def test_a_free_feature_is_a_budget_of_zero(self) -> None:
        assert FeatureCosts([0.0, 0.1, 0.2]).budgets(5) == (0.0, 0.1, 0.3)
        assert FeatureCosts([0.0, 0.1, 0.2]).budgets(2) == (0.0, 0.3)

    @pytest.mark.parametrize("n", [2, 5, 30, 1000])
    def test_there_are_at_most_so_many(self, n: int) -> None:
        prices = np.random.default_rng(0).integers(1, 400, 60) / 4
        found = FeatureCosts(prices).budgets(n)
        assert 2 <= len(found) <= min(n, 60)
        assert (found[0], found[-1]) == (prices.min(), prices.sum())
        assert set(found) <= set(np.cumsum(np.sort(prices)).tolist())

    def test_wrong_use(self) -> None:
        with pytest.raises(ValueError, match="Every feature is free"):
            FeatureCosts([0.0, 0.0]).budgets(3)
        with pytest.raises(ValueError, match="The number of budgets must be an integer of at least 2, got 1"):
            FeatureCosts([1.0]).budgets(1)


def test_costs_by_index_refuse_labels_that_are_other_numbers():
    costs = FeatureCosts({0: 1.0, 1: 2.0, 2: 4.0})
    assert costs.bind([0, 1, 2]).marginals().tolist() == [1.0, 2.0, 4.0]
    with pytest.raises(ValueError, match="position of a column, but the columns are 2, 0, 1"):
        costs.bind([2, 0, 1])
