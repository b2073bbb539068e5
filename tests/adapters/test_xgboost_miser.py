import contextlib
import copy
import json
import logging
import pickle
import re

import numpy as np
import pytest
import xgboost as xgb

from grbb_ext import grbb_objective
from grbb_ext.adapters.xgboost import _probe
from grbb_ext.adapters.xgboost._miser import GreedyMiser
from grbb_ext.adapters.xgboost._probe import builtin_gradients
from grbb_ext.costs import FeatureCosts, Ledger

# A stump on column 0 gains 6, one on column 1 gains 3 (hand-computed in tests/miser).
X_PAIR = np.array([[0, 0], [0, 0], [0, 1], [1, 1], [1, 1], [1, 1]])
Y_PAIR = np.array([-1.0, -1.0, -1.0, 1.0, 1.0, 1.0])
STUMP = {
    "objective": "reg:squarederror",
    "base_score": 0,
    "max_depth": 1,
    "eta": 1,
    "lambda": 0,
    "min_child_weight": 0,
    "nthread": 1,
}
BINARY = {"objective": "binary:logistic", "max_depth": 3, "nthread": 1}


def make_data(seed=0, n=120, d=6, n_classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32)
    score = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] + 0.3 * rng.normal(size=n)
    y = np.searchsorted(np.quantile(score, np.arange(1, n_classes) / n_classes), score)
    return X, y.astype(np.float32)


def dump(booster):
    return booster.get_dump(dump_format="json")


def columns(trees):
    """Return the columns in the splits of dumped trees."""
    return {int(part.split('"')[0]) for tree in trees for part in tree.split('"split": "f')[1:]}


def paths(tree, above=frozenset()):
    if "leaf" in tree:
        yield above
    else:
        for child in tree["children"]:
            yield from paths(child, above | {int(tree["split"][1:])})


class WatchedMiser(GreedyMiser):
    """After every round: the ledger is the model, and within the budget.

    A callback of its own would not do: XGBoost before 3.1 calls callbacks in no fixed order.
    """

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        self.spent = []

    def after_iteration(self, model, epoch, evals_log):
        stop = super().after_iteration(model, epoch, evals_log)
        ledger = self.ledger_
        assert columns(dump(model)) == set(np.flatnonzero(ledger.used).tolist())
        assert ledger.spent == ledger.costs.total(ledger.used)
        assert ledger.budget is None or ledger.costs.total(ledger.used) <= ledger.budget
        self.spent.append(ledger.spent)
        return stop


def train(params, dtrain, rounds, costs, obj=None, xgb_model=None, callbacks=(), **settings):
    miser = WatchedMiser(costs, obj or params["objective"], dtrain, **settings)
    custom = obj if callable(obj) else None
    booster = xgb.train(params, dtrain, rounds, obj=custom, xgb_model=xgb_model, callbacks=[miser, *callbacks])
    assert booster.ledger_ is miser.ledger_
    assert columns(dump(booster)) == set(np.flatnonzero(booster.ledger_.used).tolist())
    return booster, miser


@pytest.mark.parametrize("strategy", ["levels", "interaction"])
@pytest.mark.parametrize(
    ("mu", "bought"), [(0.0, {0}), (0.9999, {0}), (1.0, {1}), (1.0001, {1}), (2.9999, {1}), (3.0, set()), (9.0, set())]
)
def test_the_feature_switches_where_mu_times_price_is_the_difference_in_gain(strategy, mu, bought):
    dtrain = xgb.DMatrix(X_PAIR, label=Y_PAIR)
    booster, miser = train(STUMP, dtrain, 1, FeatureCosts([4.0, 1.0]), mu=mu, strategy=strategy)
    assert columns(dump(booster)) == bought
    assert miser.ledger_.spent == sum([4.0, 1.0][column] for column in bought)


def test_a_shared_source_is_charged_once():
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    dtrain = xgb.DMatrix(X, label=[-2.0, 0.0, 0.0, 2.0])
    costs = FeatureCosts(needs=["bank", "bank"], prices={"bank": 5.0})
    params = {**STUMP, "max_depth": 2}
    # Depth 2 gains 4 + 2 + 2 = 8, so the source pays below mu = 1.6.
    for mu, bought in ((1.59, {0, 1}), (1.61, set())):
        booster, miser = train(params, dtrain, 1, costs, mu=mu)
        assert columns(dump(booster)) == bought
        assert miser.ledger_.spent == (5.0 if bought else 0.0)
    # Bought in different rounds it is still charged once.
    booster, miser = train(STUMP, dtrain, 3, costs, mu=0.5)
    assert miser.spent[0] == miser.spent[-1] == 5.0
    assert columns(dump(booster)) == {0, 1}


@pytest.mark.parametrize(
    ("tree_method", "matrix"),
    [("hist", xgb.DMatrix), ("approx", xgb.DMatrix), ("exact", xgb.DMatrix), ("hist", xgb.QuantileDMatrix)],
)
def test_the_mask_gives_the_trees_of_the_cut_columns(tree_method, matrix):
    X, y = make_data(d=7)
    open_columns = [1, 2, 5]
    # Open columns are free, the others beyond the budget.
    costs = FeatureCosts([0.0 if i in open_columns else 2.0 for i in range(7)])
    params = {**BINARY, "tree_method": tree_method}
    masked, _ = train(params, matrix(X, label=y), 5, costs, budget=1.0)
    cut = xgb.train(params, matrix(X[:, open_columns], label=y), 5)
    for i, column in enumerate(open_columns):
        assert columns(dump(cut))  # there is something to compare
        assert cut.get_score(importance_type="total_gain").get(f"f{i}") == masked.get_score(
            importance_type="total_gain"
        ).get(f"f{column}")
    np.testing.assert_array_equal(masked.predict(xgb.DMatrix(X)), cut.predict(xgb.DMatrix(X[:, open_columns])))


def test_interaction_constraints_alone_do_not_bind_the_root():
    X, y = make_data()
    booster = xgb.train({**BINARY, "interaction_constraints": "[[4, 5]]"}, xgb.DMatrix(X, label=y), 3)
    assert columns(dump(booster)) - {4, 5}


def test_weights_of_zero_are_no_mask():
    """The reason why a round with nothing open is made a leaf in another way."""
    X, y = make_data()
    dtrain = xgb.DMatrix(X, label=y, feature_weights=np.zeros(6))
    assert columns(dump(xgb.train({**BINARY, "colsample_bytree": 0.2}, dtrain, 2)))


@pytest.mark.parametrize("strategy", ["levels", "interaction"])
@pytest.mark.parametrize("objective", ["binary:logistic", "reg:squarederror", "multi:softprob"])
def test_without_a_price_that_counts_trees_are_those_of_plain_training(objective, strategy):
    n_classes = 3 if objective == "multi:softprob" else 2
    X, y = make_data(n_classes=n_classes)
    params = {"objective": objective, "max_depth": 3, "nthread": 1, "subsample": 0.7, "colsample_bytree": 0.7}
    if n_classes == 3:
        params["num_class"] = 3
    plain = xgb.train(params, xgb.DMatrix(X, label=y), 6)
    booster, miser = train(params, xgb.DMatrix(X, label=y), 6, FeatureCosts([1.0] * 6), strategy=strategy)
    assert dump(booster) == dump(plain)
    assert miser.n_probes_ == 0


@pytest.mark.parametrize("objective", ["binary:logistic", "reg:squarederror", "multi:softprob", "binary:logitraw"])
def test_probes_grow_the_trees_of_the_rounds(objective):
    """With prices next to nothing the probes choose all columns, so that trees and gains are the plain ones."""
    n_classes = 3 if objective == "multi:softprob" else 2
    X, y = make_data(n_classes=n_classes)
    weight = np.random.default_rng(1).uniform(0.5, 2, y.size)
    params = {"objective": objective, "max_depth": 3, "nthread": 1, "gamma": 0.1}
    if n_classes == 3:
        params["num_class"] = 3
    elif objective != "reg:squarederror":
        params["scale_pos_weight"] = 2.5
    plain = xgb.train(params, xgb.DMatrix(X, label=y, weight=weight), 6)
    dtrain = xgb.DMatrix(X, label=y, weight=weight)
    booster, miser = train(params, dtrain, 6, FeatureCosts([1.0] * 6), mu=1e-6, probe_every=1)
    assert dump(booster) == dump(plain)
    assert miser.n_probes_ > 0


@pytest.mark.parametrize(
    "params",
    [
        {"objective": "binary:logistic", "base_score": 0.05},
        {"objective": "binary:logistic", "base_score": 0.9, "scale_pos_weight": 5.0},
        {"objective": "reg:squarederror", "base_score": 7.0},
        {"objective": "multi:softprob", "num_class": 2, "base_score": 0.3},
    ],
)
def test_the_first_round_starts_at_the_base_score(params):
    X, y = make_data()
    params = params | {"max_depth": 2, "nthread": 1}
    costs = FeatureCosts([1.0, 3.0, 3.0, 3.0, 3.0, 3.0])
    gradients = builtin_gradients(params["objective"], params.get("scale_pos_weight", 1.0))
    seen = []

    class Miser(GreedyMiser):
        @staticmethod
        def _gain_bound(gradient, hessian):
            seen.append((gradient, hessian))
            return np.inf

    for obj in (gradients, params["objective"]):  # a callable gets the scores from the booster
        dtrain = xgb.DMatrix(X, label=y)
        custom = obj if callable(obj) else None
        xgb.train(params, dtrain, 1, obj=custom, callbacks=[Miser(costs, obj, dtrain, mu=1.0)])
    np.testing.assert_allclose(seen[1], seen[0], rtol=1e-4, atol=1e-5)


def random_costs(rng, d):
    if rng.random() < 0.4:
        return FeatureCosts(rng.integers(0, 6, d).astype(float))
    n_sources = int(rng.integers(1, 5))
    needs = [sorted(set(rng.choice(n_sources, rng.integers(0, 3)).tolist())) for _ in range(d)]
    needs[0] = list(range(n_sources))
    return FeatureCosts(needs=needs, prices={s: round(float(rng.uniform(0, 5)), 1) for s in range(n_sources)})


@pytest.mark.parametrize("n_classes", [2, 3])
def test_many_rows_are_probed_by_a_sample_that_stands_for_all(n_classes, monkeypatch):
    monkeypatch.setattr(_probe, "_PROBED_ROWS", 2000)
    X, y = make_data(n=8000, n_classes=n_classes)
    kind = {"objective": "multi:softprob", "num_class": 3} if n_classes == 3 else {"objective": "binary:logistic"}
    gains = []
    for make in (xgb.DMatrix, xgb.QuantileDMatrix):  # the second cannot be sliced: all rows are probed
        dtrain = make(X, label=y, feature_weights=np.arange(6.0))
        miser = WatchedMiser(FeatureCosts(np.ones(6)), kind["objective"], dtrain, mu=1.0)
        xgb.train(BINARY | kind, dtrain, 4, callbacks=[miser])
        np.testing.assert_array_equal(dtrain.get_float_info("feature_weights"), np.arange(6.0))
        raw_scores = np.zeros((8000, 3) if n_classes == 3 else 8000, dtype=np.float32)
        miser._prober.look_at(*builtin_gradients(kind["objective"])(raw_scores, dtrain))
        gains.append(miser._prober(np.ones(6, dtype=bool), None))
    assert miser._prober._rows.size == 0
    np.testing.assert_allclose(gains[0].gain[0], gains[1].gain[0], rtol=0.15)
    np.testing.assert_allclose(gains[0].total, gains[1].total, rtol=0.15)


@pytest.mark.parametrize("seed", range(200))
def test_random_draws_keep_budget_and_ledger(seed):
    rng = np.random.default_rng(seed)
    d, n_classes = int(rng.integers(2, 7)), int(rng.choice([2, 2, 3]))
    n = int(rng.integers(20, 80))
    X = rng.normal(size=(n, d))
    if rng.random() < 0.3:
        X[rng.random(X.shape) < 0.2] = np.nan
    y = np.arange(n) % n_classes
    X[:, 0] += y * rng.choice([0, 1])
    params = {
        "max_depth": int(rng.integers(1, 4)),
        "nthread": 1,
        "seed": seed,
        "subsample": float(rng.choice([1.0, 1.0, 0.6])),
        "colsample_bytree": float(rng.choice([1.0, 1.0, 0.5])),
        "colsample_bylevel": float(rng.choice([1.0, 1.0, 0.6])),
        "colsample_bynode": float(rng.choice([1.0, 1.0, 0.6])),
        "gamma": float(rng.choice([0.0, 0.0, 0.5])),
        "tree_method": str(rng.choice(["hist", "approx", "exact"])),
    }
    if params["tree_method"] == "exact":
        params["colsample_bynode"] = 1.0  # XGBoost has no other value for it
    if n_classes == 3:
        params |= {"objective": "multi:softprob", "num_class": 3}
    else:
        params["objective"] = str(rng.choice(["binary:logistic", "reg:squarederror"]))
    weights = rng.choice([0.0, 1.0, 3.0], d) if rng.random() < 0.3 else None
    costs = random_costs(rng, d)
    everything = costs.total(range(d))
    budget = rng.choice([None, 0.0, 0.3 * everything, 0.7 * everything, everything])
    dtrain = xgb.DMatrix(X, label=y)
    if weights is not None:
        dtrain.set_info(feature_weights=weights)
    booster, miser = train(
        params,
        dtrain,
        int(rng.integers(5, 9)),
        costs,
        mu=float(rng.choice([0.0, 0.01, 0.3, 3.0])),
        budget=None if budget is None else float(budget),
        strategy=str(rng.choice(["levels", "interaction"])),
        probe_every=[1, 2, "auto"][int(rng.integers(3))],
    )
    assert miser.spent == sorted(miser.spent)
    assert booster.ledger_ == Ledger.from_dict(json.loads(json.dumps(miser.ledger_.to_dict())))
    expected = np.empty(0) if weights is None else weights
    np.testing.assert_array_equal(dtrain.get_float_info("feature_weights"), expected)


@pytest.mark.parametrize("strategy", ["levels", "interaction"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_works_with_a_semi_supervised_objective(n_classes, strategy):
    X, truth = make_data(n=150, n_classes=n_classes)
    y = np.where(np.arange(150) < 30, truth, -1)
    obj = grbb_objective(X, y, teacher="graph", verbose=False)
    params = {"base_score": 0, "max_depth": 3, "nthread": 1}
    if n_classes == 3:
        params["num_class"] = obj.n_outputs_
    costs = FeatureCosts([5.0, 1.0, 1.0, 2.0, 0.5, 0.5])
    plain = xgb.train(params, xgb.DMatrix(X), 8, obj=obj)
    for mu, budget in ((0.0, 4.0), (5.0, None), (0.2, 7.0)):
        booster, miser = train(params, xgb.DMatrix(X), 8, costs, obj=obj, mu=mu, budget=budget, strategy=strategy)
        assert miser.ledger_.spent > 0
        assert miser.ledger_.spent < costs.total(range(6))
        assert len(miser.spent) == 8
    booster, _ = train(params, xgb.DMatrix(X), 8, costs, obj=obj, mu=1e-9, probe_every=1, strategy="levels")
    assert dump(booster) == dump(plain)


def test_no_path_buys_more_than_one_feature_of_a_round():
    X, y = make_data(n=300)
    costs = FeatureCosts([1.0, 1.0, 1.0, 1.0, 0.0, 1.0])

    class Paths(GreedyMiser):
        n_bought = 0

        def after_iteration(self, model, epoch, evals_log):
            paid = self.ledger_.used.copy()
            stop = super().after_iteration(model, epoch, evals_log)
            new = set(np.flatnonzero(self.ledger_.used & ~paid & (costs.marginals() > 0)).tolist())
            assert all(len(new & path) <= 1 for path in paths(json.loads(dump(model)[-1])))
            self.n_bought += len(new)
            return stop

    dtrain = xgb.DMatrix(X, label=y)
    miser = Paths(costs, "binary:logistic", dtrain, mu=0.1, strategy="interaction")
    booster = xgb.train(BINARY, dtrain, 8, callbacks=[miser])
    assert miser.n_bought >= 3
    # Later rounds may use everything paid on one path, and the booster has its own parameters again.
    assert any(len(path - {4}) > 1 for tree in dump(booster) for path in paths(json.loads(tree)))
    tree = json.loads(booster.save_config())["learner"]["gradient_booster"]["tree_train_param"]
    assert tree["interaction_constraints"] == ""


def test_a_budget_of_nothing_ends_after_one_leaf_with_one_message(caplog):
    X, y = make_data()
    dtrain = xgb.DMatrix(X, label=y)
    # A parameter verbosity=0 of any training before is XGBoost's setting for the process.
    with caplog.at_level(logging.INFO, logger="grbb_ext"), xgb.config_context(verbosity=1):
        booster, miser = train(BINARY, dtrain, 20, FeatureCosts([3.0] * 6), budget=2.0)
    assert miser.spent == [0.0]  # training ended with the first round
    assert booster.num_boosted_rounds() == 1
    assert "leaf" in json.loads(dump(booster)[0])
    message = (
        "Training with costs ended after 1 round: no split on the 0 features bought helps, and the cheapest of the 6 "
        "others costs 3 while 2 of the budget of 2 is left."
    )
    assert caplog.messages == [message]
    assert caplog.records[0].levelno == logging.WARNING
    assert booster.ledger_.stop_reason == message


@pytest.mark.parametrize(("budget", "spent"), [(1.0, 1.0), (0.5, 0.0)])
def test_scores_far_from_their_mean_are_no_reason_to_end(budget, spent):
    """One row in twenty is of class 1. Beside the long first step a weak column gains nothing, because of lambda."""
    X = (np.arange(400) % 2)[:, None].astype(float)
    y = np.where(X[:, 0] == 1, 0.06, 0.04)

    def obj(scores, data):
        p = 1 / (1 + np.exp(-scores))
        return p - y, np.maximum(p * (1 - p), 1e-6)

    params = {"base_score": 0, "eta": 0.3, "max_depth": 1, "lambda": 1}
    dtrain = xgb.DMatrix(X)
    assert columns(dump(xgb.train(params, dtrain, 1, obj=obj))) == set()
    miser = GreedyMiser(FeatureCosts([1.0]), obj, dtrain, budget=budget)
    booster = xgb.train(params, dtrain, 100, obj=obj, callbacks=[miser])
    assert booster.ledger_.spent == spent
    p = 1 / (1 + np.exp(-booster.predict(dtrain, output_margin=True)))
    np.testing.assert_allclose(p, y if spent else 0.05, atol=0.002)
    assert booster.num_boosted_rounds() < 60  # and it ends when the steps have ended


def test_training_ends_when_nothing_is_worth_its_price():
    dtrain = xgb.DMatrix(X_PAIR, label=Y_PAIR)
    booster, _ = train(STUMP, dtrain, 20, FeatureCosts([4.0, 1.0]), mu=0.1)
    # Column 0 fits in one round; then all gradients are 0.
    assert booster.num_boosted_rounds() == 2
    assert "is worth its price at mu=0.1" in booster.ledger_.stop_reason


def test_a_purchase_that_pays_later_is_made_later():
    """Free column first: what is left after it pays for column 0."""
    X, y = make_data(n=400)
    costs = FeatureCosts([30.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    _, miser = train(BINARY, xgb.DMatrix(X, label=y), 30, costs, mu=1.0)
    assert miser.ledger_.used[0]
    _, never = train(BINARY, xgb.DMatrix(X, label=y), 30, costs, mu=1e6)
    assert not never.ledger_.used[0]
    assert never.n_probes_ == 0  # the bound on gains says so without a tree


def test_users_column_sampling_and_weights_are_kept_within_the_mask():
    X, y = make_data(n=300)
    weights = np.array([0.0, 1.0, 2.0, 1.0, 1.0, 1.0])
    dtrain = xgb.DMatrix(X, label=y)
    dtrain.set_info(feature_weights=weights)
    params = {**BINARY, "colsample_bytree": 0.5, "max_depth": 4}
    costs = FeatureCosts([0.0, 0.0, 0.0, 0.0, 0.0, 9.0])
    booster, _ = train(params, dtrain, 20, costs, budget=1.0)
    assert columns(dump(booster)) == {1, 2, 3, 4}  # 0 has weight 0, 5 is too dear
    # Half of the five open columns, rounded down, in each tree.
    assert max(len(columns([tree])) for tree in dump(booster)) == 2
    np.testing.assert_array_equal(dtrain.get_float_info("feature_weights"), weights)
    tree = json.loads(booster.save_config())["learner"]["gradient_booster"]["tree_train_param"]
    assert tree["colsample_bytree"] == "0.5"


class Break(xgb.callback.TrainingCallback):
    """End a training in its second round, one way or another."""

    def __init__(self, where, error):
        super().__init__()
        self.where, self.error = where, error

    def reach(self, where, epoch):
        if where == self.where and epoch == 1 and self.error is not None:
            raise self.error
        return where == self.where and epoch == 1

    def before_iteration(self, model, epoch, evals_log):
        return self.reach("before", epoch)

    def after_iteration(self, model, epoch, evals_log):
        return self.reach("after", epoch)


@pytest.mark.parametrize("users_weights", [[], np.arange(1.0, 7.0)], ids=["no weights", "weights"])
@pytest.mark.parametrize(
    "error", [None, KeyboardInterrupt(), ValueError("of a callback")], ids=["stop", "interrupt", "error"]
)
@pytest.mark.parametrize("where", ["before", "objective", "after"])
def test_however_training_ends_the_data_are_the_users(where, error, users_weights):
    X, y = make_data()
    dtrain = xgb.DMatrix(X, label=y)
    dtrain.set_info(feature_weights=users_weights)
    gradients = builtin_gradients("binary:logistic")
    breaker = Break(where, error)

    def objective(raw_scores, data):
        if miser.ledger_.used.any():  # from the second round on
            breaker.reach("objective", 1)
        return gradients(raw_scores, data)

    costs = FeatureCosts([3.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    miser = GreedyMiser(costs, objective, dtrain, budget=2.0)
    ended = contextlib.nullcontext() if error is None else pytest.raises(type(error))
    with ended:
        xgb.train(BINARY, dtrain, 5, obj=objective, callbacks=[miser, breaker])
    assert 0 < miser.ledger_.used.sum() <= 2
    np.testing.assert_array_equal(dtrain.get_float_info("feature_weights"), users_weights)
    plain, fresh = (xgb.train(BINARY, data, 3) for data in (dtrain, xgb.DMatrix(X, label=y)))
    assert dump(plain) == dump(fresh)


def test_copies_and_checkpoints_made_during_training_are_ordinary_boosters(tmp_path):
    X, y = make_data()
    dtrain = xgb.DMatrix(X, label=y)

    class Keep(xgb.callback.TrainingCallback):
        def after_iteration(self, model, epoch, evals_log):
            self.kept = [copy.deepcopy(model), pickle.loads(pickle.dumps(model)), model[:]]
            return False

    keep = Keep()
    booster, _ = train(BINARY, dtrain, 3, FeatureCosts([1.0] * 6), budget=2.0, callbacks=[keep])
    for other in [booster, *keep.kept]:
        assert type(other) is xgb.Booster
        assert dump(other) == dump(booster)
        xgb.train(BINARY, dtrain, 1, xgb_model=other)
    assert dtrain.get_float_info("feature_weights").size == 0


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"booster": "gblinear"}, "booster='gblinear' does not go with costs"),
        ({"booster": "dart", "rate_drop": 0.1}, "booster='dart' does not go with costs"),
        ({"num_parallel_tree": 3}, "num_parallel_tree=3 does not go with costs"),
        ({"multi_strategy": "multi_output_tree"}, "multi_strategy='multi_output_tree' does not go with costs"),
        ({"objective": "reg:squarederror"}, "obj='binary:logistic', but the booster's objective is 'reg:squared"),
        ({"interaction_constraints": "[[0, 1]]"}, "interaction_constraints are used by strategy='interaction' itself"),
    ],
)
def test_what_costs_cannot_be_kept_under_is_refused_by_name(params, message):
    X, y = make_data()
    dtrain = xgb.DMatrix(X, label=y)
    miser = GreedyMiser(FeatureCosts([1.0] * 6), "binary:logistic", dtrain, mu=1.0, strategy="interaction")
    with xgb.config_context(verbosity=0), pytest.raises(ValueError, match=re.escape(message)):
        xgb.train({**BINARY, **params}, dtrain, 2, callbacks=[miser])


def test_a_model_without_names_is_continued_on_named_columns():
    X, y = make_data()
    names = [f"f{j}" for j in range(X.shape[1])][::-1]  # names of other positions
    before = xgb.train({"max_depth": 1, "nthread": 1}, xgb.DMatrix(X, y), 1)
    (first,) = before.get_score()
    dtrain = xgb.DMatrix(X, y, feature_names=names)
    costs = FeatureCosts(dict.fromkeys(names, 1.0))
    miser = GreedyMiser(costs, "reg:squarederror", dtrain, budget=1)
    booster = xgb.train({"max_depth": 1, "nthread": 1}, dtrain, 2, xgb_model=before, callbacks=[miser])
    assert booster.ledger_.history[0].features == (names[int(first[1:])],)
    assert booster.ledger_.spent == 1.0
    for other in (None, names[::-1]):
        dtrain = xgb.DMatrix(X, y, feature_names=other)
        miser = GreedyMiser(FeatureCosts([1.0] * len(names)).bind(other or len(names)), "reg:squarederror", dtrain)
        with pytest.raises(ValueError, match="The model has the columns 'f5', 'f4'"):
            xgb.train({"nthread": 1}, dtrain, 1, xgb_model=booster, callbacks=[miser])


def test_updating_a_model_is_refused():
    X, y = make_data()
    dtrain = xgb.DMatrix(X, label=y)
    model = xgb.train(BINARY, dtrain, 2)
    params = {**BINARY, "process_type": "update", "updater": "refresh", "refresh_leaf": True}
    with xgb.config_context(verbosity=0), pytest.raises(ValueError, match="updater='refresh' does not go with costs"):
        train(params, dtrain, 2, FeatureCosts([1.0] * 6), xgb_model=model)


def test_distributed_training_is_refused(monkeypatch):
    X, y = make_data()
    monkeypatch.setattr(xgb.collective, "get_world_size", lambda: 2)
    with pytest.raises(ValueError, match="A GreedyMiser is for one machine"):
        train(BINARY, xgb.DMatrix(X, label=y), 2, FeatureCosts([1.0] * 6))


def test_one_instance_serves_one_training():
    X, y = make_data()
    dtrain = xgb.DMatrix(X, label=y)
    miser = GreedyMiser(FeatureCosts([1.0] * 6), "binary:logistic", dtrain, mu=1.0)
    xgb.train(BINARY, dtrain, 2, callbacks=[miser])
    with pytest.raises(RuntimeError, match="make a new one for each"):
        xgb.train(BINARY, dtrain, 2, callbacks=[miser])
    other = GreedyMiser(FeatureCosts([1.0] * 6), "binary:logistic", dtrain, mu=1.0)
    with pytest.raises(TypeError, match=r"xgboost\.cv trains several boosters"):
        xgb.cv(BINARY, dtrain, 2, callbacks=[other])


def test_another_objective_than_that_of_the_training_is_noticed():
    X, y = make_data()
    dtrain, unlabeled = xgb.DMatrix(X, label=y), xgb.DMatrix(X)
    costs = FeatureCosts([5.0] + [1.0] * 5)

    def obj(scores, data):
        return scores - y, np.ones_like(scores)

    for of_miser, of_training in ((obj, None), ("binary:logistic", obj)):
        miser = GreedyMiser(costs, of_miser, dtrain, budget=2.0)
        with pytest.raises(ValueError, match="pass obj= to both"):
            xgb.train(BINARY, dtrain, 5, obj=of_training, callbacks=[miser])
        assert dtrain.get_float_info("feature_weights").size == 0
    with pytest.raises(ValueError, match=r"has no labels, which obj='binary:logistic' needs.* a callable as obj="):
        xgb.train(BINARY, unlabeled, 5, obj=obj, callbacks=[GreedyMiser(costs, "binary:logistic", unlabeled)])


def test_another_matrix_than_that_of_the_training_is_noticed():
    X, y = make_data()
    other = xgb.DMatrix(X, label=y)
    miser = GreedyMiser(FeatureCosts([5.0] + [1.0] * 5), "binary:logistic", other, budget=2.0)
    with pytest.raises(RuntimeError, match="must be the one given to"):
        xgb.train(BINARY, xgb.DMatrix(X, label=y), 5, callbacks=[miser])
    assert other.get_float_info("feature_weights").size == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"obj": "count:poisson"}, "The gradients of 'count:poisson' are not known here"),
        ({"obj": 3}, "obj must be a callable or the name"),
        ({"strategy": "depth"}, "strategy must be 'levels' or 'interaction'"),
        ({"probe_every": 0}, "probe_every, where it is not 'auto', must be a positive integer, got 0"),
        ({"max_levels": 1.5}, "max_levels must be a positive integer, got 1.5"),
        ({"mu": -1}, "mu must be a finite number"),
        ({"budget": float("nan")}, "budget must be a finite number"),
        ({"costs": [1.0] * 6}, "costs must be FeatureCosts, got list"),
        ({"dtrain": np.zeros((3, 6))}, "dtrain must be the DMatrix"),
    ],
)
def test_wrong_arguments_are_refused_with_the_fix(settings, message):
    X, y = make_data()
    arguments = {"costs": FeatureCosts([1.0] * 6), "obj": "binary:logistic", "dtrain": xgb.DMatrix(X, label=y)}
    arguments |= settings
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        GreedyMiser(**arguments)
