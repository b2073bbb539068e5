from __future__ import annotations

import pickle

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xgboost as xgb
from hypothesis import given, settings
from hypothesis import strategies as st

from grbb_ext import FeatureCosts, FetchError, Forest, ForestCursor, OnDemandPredictor, grbb_objective
from grbb_ext.forest import Tree

D = 6
NAMES = ["code", "draw_a", "draw_b", "own", "ratio", "age"]
# Two tests share a draw, a ratio is computed from both, age is free.
COSTS = FeatureCosts(
    needs={
        "code": ["code"],
        "draw_a": ["draw", "a"],
        "draw_b": ["draw", "b"],
        "own": ["own"],
        "ratio": ["draw", "a", "b"],
        "age": [],
    },
    prices={"code": 1.0, "draw": 2.1, "a": 5.17, "b": 3.1, "own": 0.4},
)


def table(seed, n, missing=0.15, zeros=0.1):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, D)), 1)
    X[:, 0] = rng.integers(0, 6, n)
    X[rng.random(X.shape) < zeros] = 0.0
    X[rng.random(X.shape) < missing] = np.nan
    return X


def target(X, classes):
    rng = np.random.default_rng(9)
    score = np.nan_to_num(X) @ rng.normal(size=D) + (np.nan_to_num(X[:, 0]) % 2) + rng.normal(size=len(X))
    return np.digitize(score, np.quantile(score, [1 / 3, 2 / 3])) if classes == 3 else (score > 0).astype(int)


def train(library, classes=1, rounds=12, **params):
    X = table(0, 300)
    y = target(X, classes)
    if library == "xgboost":
        data = xgb.DMatrix(
            X, label=y, feature_names=NAMES, feature_types=["c"] + ["q"] * (D - 1), enable_categorical=True, nthread=1
        )
        objective = (
            {"objective": "multi:softprob", "num_class": 3} if classes == 3 else {"objective": "binary:logistic"}
        )
        return xgb.train({"nthread": 1, "max_depth": 4} | objective | params, data, rounds)
    objective = {"objective": "multiclass", "num_class": 3} if classes == 3 else {"objective": "binary"}
    base = {"verbosity": -1, "num_threads": 1, "num_leaves": 8, "min_data_in_leaf": 3, "min_data_per_group": 3}
    data = lgb.Dataset(X, label=y, feature_name=NAMES, categorical_feature=[0], params={"verbosity": -1})
    return lgb.train(base | objective | params, data, rounds)


def native(booster, X):
    if isinstance(booster, xgb.Booster):
        types = ["c"] + ["q"] * (D - 1)
        data = xgb.DMatrix(X, feature_names=NAMES, feature_types=types, enable_categorical=True, nthread=1)
        return booster.predict(data, output_margin=True)
    return booster.predict(X, raw_score=True)


class Laboratory:
    """Sources that answer from a table, and remember what they were asked."""

    def __init__(self, X):
        self.X, self.asked = X, []

    def fetch(self):
        return {source: self._source(source) for source in COSTS.sources}

    def _source(self, source):
        def ask(rows):
            self.asked += [(source, row) for row in rows.tolist()]
            answers = {
                "code": lambda: self.X[rows, 0],  # an array: the one feature that needs this source alone
                "draw": lambda: None,  # only a fee
                "a": lambda: {"draw_a": self.X[rows, 1], "raw_a": self.X[rows, 4]},
                "b": lambda: pd.DataFrame({"draw_b": self.X[rows, 2]}),
                "own": lambda: self.X[rows, 3][:, None],
            }
            return answers[source]()

        return ask

    @staticmethod
    def derive():
        return {"ratio": lambda columns: columns["raw_a"]}

    def matrix(self, n):
        table = np.zeros((n, len(COSTS.sources)), dtype=bool)
        for source, row in self.asked:
            table[row, COSTS.sources.index(source)] = True
        return table


def predictor(forest, lab, **options):
    return OnDemandPredictor(forest, COSTS, lab.fetch(), derive=lab.derive(), verbose=False, **options)


def free(X):
    return {"age": X[:, 5]}


SETTINGS = {
    "xgboost": [{}, {"booster": "dart", "rate_drop": 0.5}, {"num_parallel_tree": 3, "subsample": 0.7}],
    "lightgbm": [{}, {"zero_as_missing": True}, {"use_missing": False}, {"boosting": "dart", "drop_rate": 0.5}],
}


@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize(
    ("library", "setting"), [(library, i) for library, listed in SETTINGS.items() for i in range(len(listed))]
)
def test_the_boosters_bits_for_the_sources_of_the_paths(library, setting, classes):
    booster = train(library, classes, **SETTINGS[library][setting])
    forest, X = Forest.from_booster(booster), table(1, 200, missing=0.25)
    lab = Laboratory(X)
    result = predictor(forest, lab).predict(np.arange(200), free(X))
    np.testing.assert_array_equal(result.raw_scores, native(booster, X))
    assert result.complete.all()
    assert (result.trees == forest.n_trees).all()
    assert len(lab.asked) == len(set(lab.asked))  # never twice for a row
    np.testing.assert_array_equal(result.fetched, lab.matrix(200))
    np.testing.assert_allclose(result.spent, COSTS.per_row(forest, X), rtol=1e-12)
    touched = forest.features_touched(X)
    np.testing.assert_array_equal(result.fetched, touched @ COSTS.bind(NAMES).needs.toarray())
    assert result.rows_fetched() == {s: int(k) for s, k in zip(COSTS.sources, result.fetched.sum(axis=0), strict=True)}


@pytest.mark.parametrize("options", [{}, {"early_exit": "decision"}, {"early_exit": 0.8}, {"budget_per_row": 6.0}])
def test_batches_do_not_matter(options):
    forest, X = Forest.from_booster(train("lightgbm", 3)), table(2, 61)
    whole = predictor(forest, Laboratory(X), **options).predict(np.arange(61), free(X))
    lab = Laboratory(X)
    parts = predictor(forest, lab, batch_size=7, **options).predict(np.arange(61), free(X))
    for name in ("rows", "raw_scores", "status", "trees", "fetched", "spent"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(parts, name))
    assert len(lab.asked) == len(set(lab.asked))
    one_by_one = list(predictor(forest, Laboratory(X), batch_size=7, **options).iterate(np.arange(61), free(X)))
    assert [len(part) for part in one_by_one] == [7] * 8 + [5]


def classes_of(scores):
    return scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)


@pytest.mark.parametrize("unknown", ["mean", "missing"])
@pytest.mark.parametrize("order", ["worth", "trees"])
@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_a_decision_is_that_of_the_whole_forest(library, classes, order, unknown):
    # Shallow trees, of which the first decide for many rows, whatever the version of the library.
    booster = train(library, classes, rounds=25, **({"max_depth": 3} if library == "xgboost" else {}))
    forest, X = Forest.from_booster(booster), table(3, 300, missing=0.2)
    options = {"early_exit": "decision", "order": order, "unknown": unknown}
    result = predictor(forest, Laboratory(X), **options).predict(np.arange(300), free(X))
    full, price = native(booster, X), COSTS.per_row(forest, X)
    np.testing.assert_array_equal(classes_of(result.raw_scores), classes_of(full))
    assert set(result.status) <= {"decided", "finished"}
    np.testing.assert_array_equal(result.raw_scores[result.complete], full[result.complete])
    assert (result.spent <= price + 1e-9).all()
    if classes == 1:
        assert result.spent.sum() < 0.95 * price.sum()
    assert (result.fetched <= forest.features_touched(X) @ COSTS.bind(NAMES).needs.toarray()).all()


def stump(feature, low, high, output=0):
    return Tree(
        feature=np.array([feature, -1, -1]),
        threshold=np.zeros(3),
        left=np.array([1, 0, 0]),
        right=np.array([2, 0, 0]),
        default_left=np.array([True, False, False]),
        value=np.array([[0.0], [low], [high]]),
        cover=np.array([2.0, 1.0, 1.0]),
        label=np.arange(3),
        output=output,
    )


def columns(X):
    return {j: (lambda rows, j=j: X[rows, j]) for j in range(X.shape[1])}


def test_decisions_by_hand():
    """-1 or 2, then -1 or 1, then -0.5 or 0.5: the second feature is only asked after a loss at the first."""
    forest = Forest.from_trees([stump(0, -1.0, 2.0), stump(1, -1.0, 1.0), stump(2, -0.5, 0.5)], n_features=3)
    X = np.array([[1.0, -1, -1], [-1, -1, 1], [-1, 1, 1], [-1, 1, -1]])
    predict = OnDemandPredictor(
        forest, FeatureCosts([1.0, 1.0, 1.0]), columns(X), early_exit="decision", order="trees", verbose=False
    ).predict
    result = predict(np.arange(4))
    assert result.status.tolist() == ["decided", "decided", "finished", "finished"]
    np.testing.assert_array_equal(result.fetched, [[1, 0, 0], [1, 1, 0], [1, 1, 1], [1, 1, 1]])
    # estimates count open walks with the mean of their leaves: 0 and 0
    np.testing.assert_array_equal(result.raw_scores, [2.0, -2.0, 0.5, -0.5])
    np.testing.assert_array_equal(result.trees, [1, 2, 3, 3])


def test_a_tie_is_not_positive():
    forest = Forest.from_trees([stump(0, -1.0, 0.0)], n_features=1)
    predict = OnDemandPredictor(forest, FeatureCosts([1.0]), {0: lambda rows: rows * 0.0}, early_exit="decision")
    result = predict.predict([0, 1])
    assert result.status.tolist() == ["decided", "decided"]  # at most 0, which is not above 0
    assert result.spent.tolist() == [0.0, 0.0]
    shifted = OnDemandPredictor(
        forest, FeatureCosts([1.0]), {0: lambda rows: rows * 0.0}, early_exit="decision", decision_threshold=-0.5
    ).predict([0, 1])
    assert shifted.status.tolist() == ["finished", "finished"]


def test_worth_before_order():
    """The second tree says more, for less."""
    forest = Forest.from_trees([stump(0, -1.0, 1.0), stump(1, -3.0, 3.0)], n_features=2)
    X = np.ones((2, 2))
    for order, bought in (("worth", [[0, 1]] * 2), ("trees", [[1, 1]] * 2)):
        result = OnDemandPredictor(
            forest, FeatureCosts([5.0, 2.0]), columns(X), early_exit="decision", order=order, verbose=False
        ).predict([0, 1])
        np.testing.assert_array_equal(result.fetched, bought)


@pytest.mark.parametrize("averaged", [False, True])
@pytest.mark.parametrize("classes", [1, 3])
def test_confidence_against_a_slow_reference(classes, averaged):
    params = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5} if averaged else {"learning_rate": 0.3}
    forest, X = Forest.from_booster(train("lightgbm", classes, rounds=23, **params)), table(4, 150)
    threshold = 0.7
    result = predictor(forest, Laboratory(X), early_exit=threshold, exit_every=5).predict(np.arange(150), free(X))
    needs = COSTS.bind(NAMES).needs.toarray()
    seen = set()
    for i in range(150):
        for stop in (5, 10, 15, 20, 23):
            raw = forest.predict(X[i : i + 1], stop_tree=stop * classes)[0]
            mean = raw / stop if averaged else raw
            odds = np.exp(mean - np.max(mean)) if classes == 3 else np.exp([0.0, -abs(mean)])
            if stop == 23 or 1 / odds.sum() > threshold:
                break
        np.testing.assert_array_equal(result.raw_scores[i], raw)
        assert result.status[i] == ("finished" if stop == 23 else "confident")
        assert result.trees[i] == stop * classes
        seen.add(result.status[i])
        cursor, known = ForestCursor(forest, 1), np.zeros((1, D), dtype=bool)
        while cursor.finished_trees()[0] < stop * classes:
            known |= cursor.needed(stop * classes)
            cursor.advance(X[i : i + 1], known, stop_tree=stop * classes)
        np.testing.assert_array_equal(result.fetched[i], (known @ needs)[0])
    assert seen == {"finished", "confident"}


@pytest.mark.parametrize("order", ["worth", "trees"])
@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_a_budget_is_kept_and_what_is_known_is_used(library, order):
    booster = train(library, 1, rounds=20)
    forest, X = Forest.from_booster(booster), table(5, 200)
    price = COSTS.per_row(forest, X)
    for budget in (0.0, 0.4, 3.0, 7.3, 7.67, 11.0):
        lab = Laboratory(X)
        result = predictor(forest, lab, budget_per_row=budget, order=order).predict(np.arange(200), free(X))
        assert (result.spent <= budget + 1e-12).all()
        assert len(lab.asked) == len(set(lab.asked))
        np.testing.assert_array_equal(result.raw_scores[result.complete], native(booster, X)[result.complete])
        assert set(result.status) <= {"finished", "budget"}
        # a row that stopped could not pay for anything that it needs
        known = (COSTS.bind(NAMES).needs.toarray()[None] <= result.fetched[:, None]).all(axis=2)
        cursor = ForestCursor(forest, 200)
        cursor.advance(np.where(known, X, np.nan), known)
        marginal = np.where(result.fetched, 0.0, COSTS.prices) @ COSTS.bind(NAMES).needs.toarray().T
        affordable = cursor.needed() & (result.spent[:, None] + marginal <= budget + 1e-9)
        assert not affordable[~result.complete].any()
        np.testing.assert_array_equal(result.raw_scores, cursor.expected_scores())
    enough = predictor(forest, Laboratory(X), budget_per_row=price, order=order).predict(np.arange(200), free(X))
    assert enough.complete.all()
    np.testing.assert_array_equal(enough.raw_scores, native(booster, X))


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_unknown_as_missing_is_what_the_booster_says(library):
    booster = train(library, 3)
    forest, X = Forest.from_booster(booster), table(6, 150)
    result = predictor(forest, Laboratory(X), budget_per_row=6.0, unknown="missing").predict(np.arange(150), free(X))
    assert (result.status == "budget").any()
    needs = COSTS.bind(NAMES).needs.toarray()
    known = (needs[None] <= result.fetched[:, None]).all(axis=2)
    np.testing.assert_array_equal(result.raw_scores, native(booster, np.where(known, X, np.nan)))


def test_prices_are_added_as_decimals():
    forest = Forest.from_trees([stump(j, -1.0, 1.0) for j in range(3)], n_features=3)
    X = np.ones((2, 3))
    costs = FeatureCosts([0.1, 0.2, 5.0])
    assert 0.1 + 0.2 > 0.3
    result = OnDemandPredictor(forest, costs, columns(X), budget_per_row=[0.3, 0.29], verbose=False).predict([0, 1])
    assert result.fetched.sum(axis=1).tolist() == [2, 1]
    assert result.status.tolist() == ["budget", "budget"]
    costs, single = FeatureCosts([0.5, 0.2, 5.0]), np.array([0.7, 0.69], dtype=np.float32)  # 0.69999999 and 0.69
    result = OnDemandPredictor(forest, costs, columns(X), budget_per_row=single, verbose=False).predict([0, 1])
    assert result.fetched.sum(axis=1).tolist() == [2, 1]


def test_budget_and_early_exit_together():
    forest, X = Forest.from_booster(train("xgboost", 1, rounds=25, max_depth=3)), table(7, 200)
    for early_exit in ("decision", 0.9):
        budget = np.where(np.arange(200) < 100, 7.0, np.inf)
        options = {"early_exit": early_exit, "budget_per_row": budget}
        result = predictor(forest, Laboratory(X), **options).predict(np.arange(200), free(X))
        assert (result.spent <= budget).all()
        assert {"budget", "finished"} < set(result.status)
        certain = result.status != "budget"
        if early_exit == "decision":
            np.testing.assert_array_equal(result.raw_scores[certain] > 0, forest.predict(X)[certain] > 0)
        # an estimate uses all that is known, in all trees
        known = (COSTS.bind(NAMES).needs.toarray()[None] <= result.fetched[:, None]).all(axis=2)
        cursor = ForestCursor(forest, 200)
        cursor.advance(X, known)
        np.testing.assert_array_equal(result.raw_scores[~certain], cursor.expected_scores()[~certain])


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    early_exit=st.sampled_from([None, "decision", 0.75]),
    budget=st.sampled_from([None, 2.0, 5.5]),
    order=st.sampled_from(["worth", "trees"]),
)
def test_random_forests_and_needs(seed, early_exit, budget, order):
    """Whatever the prices and the needs: nothing twice, nothing beyond the paths, nothing beyond the budget."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 5))
    booster = lgb.train(
        {"objective": "binary", "verbosity": -1, "num_threads": 1, "num_leaves": 5, "min_data_in_leaf": 2},
        lgb.Dataset(X, label=X @ rng.normal(size=5) > 0, params={"verbosity": -1}),
        int(rng.integers(1, 8)),
    )
    forest = Forest.from_booster(booster)
    needs = [sorted(rng.choice(4, int(rng.integers(1, 4)), replace=False).tolist()) for _ in range(5)]
    used = sorted({s for row in needs for s in row})
    costs = FeatureCosts(needs=needs, prices={s: float(np.round(rng.choice([0, 1, 2.5]), 2)) for s in used})
    asked = []

    def source(s):
        def ask(rows):
            asked.extend((s, row) for row in rows.tolist())
            return {j: X[rows, j] for j in range(5)}  # more than it owes; the rest is ignored

        return ask

    predict = OnDemandPredictor(
        forest,
        costs,
        {s: source(s) for s in used},
        early_exit=early_exit,
        exit_every=2,
        budget_per_row=budget,
        order=order,
        verbose=False,
    ).predict
    result = predict(np.arange(60))
    assert len(asked) == len(set(asked))
    dense = costs.needs.toarray()
    assert (result.fetched <= forest.features_touched(X) @ dense).all()
    assert not np.isnan(result.raw_scores).any()
    full = forest.predict(X)
    np.testing.assert_array_equal(result.raw_scores[result.complete], full[result.complete])
    if budget is not None:
        assert (result.spent <= budget).all()
    elif early_exit is None:
        np.testing.assert_array_equal(result.fetched, forest.features_touched(X) @ dense)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_models_of_a_semi_supervised_objective(library, classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4))
    y = np.where(np.arange(150) < 30, np.digitize(X[:, 0], [0.0] if classes == 2 else [-0.5, 0.5]), -1)
    objective = grbb_objective(X, y, teacher="graph")
    if library == "xgboost":
        extra = {"num_class": 3} if classes == 3 else {}
        params = {"base_score": 0, "max_depth": 3, "nthread": 1} | extra
        booster = xgb.train(params, xgb.DMatrix(X), 6, obj=objective)
        expected = booster.predict(xgb.DMatrix(X), output_margin=True)
    else:
        extra = {"num_class": 3} if classes == 3 else {}
        params = {"objective": objective, "verbosity": -1, "num_threads": 1} | extra
        booster = lgb.train(params, lgb.Dataset(X, params={"verbosity": -1}), 6)
        expected = booster.predict(X, raw_score=True)
    forest, costs = Forest.from_booster(booster), FeatureCosts([1.0, 2.0, 3.0, 4.0])
    result = OnDemandPredictor(forest, costs, columns(X), verbose=False).predict(np.arange(150))
    np.testing.assert_array_equal(result.raw_scores, expected)
    np.testing.assert_array_equal(result.spent, costs.per_row(forest, X))


def test_results_and_errors_pickle():
    forest, X = Forest.from_booster(train("lightgbm")), table(8, 20)
    result = predictor(forest, Laboratory(X)).predict(np.arange(20), free(X))
    assert repr(result).startswith("OnDemandResult(20 rows: 20 finished, ")
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(result)).spent, result.spent)
    error = FetchError("no", "draw", np.array([3]))
    error.result = result
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.source, len(again.result)) == ("no", "draw", 20)


def test_free_columns_are_those_that_fit_saw():
    """Labels that are numbers are no names; what a sparse matrix leaves out is missing to XGBoost."""
    rng = np.random.default_rng(0)
    rows = np.where(rng.random((300, 3)) < 0.4, 0.0, rng.normal(size=(300, 3)))
    y = rows[:, 0] + rows[:, 1]
    costs = FeatureCosts(needs=[["s"], [], []], prices={"s": 3.0})
    booster = xgb.train({"nthread": 1}, xgb.DMatrix(sp.csr_matrix(rows), label=y), 5)
    forest = Forest.from_booster(booster)
    expected = forest.predict(sp.csr_matrix(rows))
    absent = np.where(rows == 0, np.nan, rows)
    predictor = OnDemandPredictor(forest, costs, {"s": lambda ids: absent[ids, 0]}, verbose=False)
    for free in (absent, sp.csr_matrix(rows), pd.DataFrame(absent, columns=[1, 2, 0])):
        np.testing.assert_array_equal(predictor.predict(np.arange(300), free=free).raw_scores, expected)


def test_large_numbers_for_derive_keep_their_digits():
    large = 2**53 + 1 + np.arange(4)
    seen = []
    booster = lgb.train({"verbosity": -1, "min_data_in_leaf": 1, "min_data_in_bin": 1}, lgb.Dataset(X4, X4[:, 0]), 2)
    OnDemandPredictor(
        Forest.from_booster(booster),
        FeatureCosts(needs=[["s"]], prices={"s": 1.0}),
        {"s": lambda ids: {"id": large[ids]}},
        derive={0: lambda columns: seen.extend(columns["id"]) or X4[:, 0]},
        verbose=False,
    ).predict(np.arange(4))
    assert [int(one) for one in seen] == large.tolist()


def test_numbers_and_text_of_one_name_for_derive():
    """Rows that are asked for later may bring text, or large numbers, where the first ones brought small numbers."""
    tree = Tree(
        feature=np.array([0, 1, 2, -1, -1, 1, -1, -1, -1]),
        threshold=np.zeros(9),
        left=np.array([1, 3, 5, 0, 0, 7, 0, 0, 0]),
        right=np.array([2, 4, 6, 0, 0, 8, 0, 0, 0]),
        default_left=np.ones(9, dtype=bool),
        value=np.arange(9.0)[:, None],
        cover=np.ones(9),
        label=np.arange(9),
    )
    forest, costs, seen = Forest.from_trees([tree], n_features=3), FeatureCosts([1.0, 1.0, 1.0]), []
    derive = {1: lambda columns: seen.extend(columns["note"]) or np.ones(len(columns["note"]))}
    for second in ("none", 2**53 + 1):
        notes = {0: 5, 1: second}
        fetch = {0: lambda rows: rows - 0.5, 2: lambda rows: -1.0 - rows}
        fetch[1] = lambda rows, notes=notes: {"note": [notes[row] for row in rows]}
        result = OnDemandPredictor(forest, costs, fetch, derive=derive).predict([0, 1])
        assert result.raw_scores.tolist() == [4.0, 8.0]
    assert seen == [5, "none", 5, 2**53 + 1]


def test_derive_reads_free_features_that_no_tree_reads():
    rng = np.random.default_rng(0)
    height, weight, age = rng.uniform(1.5, 2, 50), rng.uniform(50, 100, 50), rng.normal(size=50)
    rows = pd.DataFrame({"height": height, "excess": weight - 22 * height**2, "age": age})
    forest = Forest.from_trees([stump(1, -1.0, 1.0), stump(2, -4.0, 4.0)], n_features=3, feature_names=list(rows))
    costs = FeatureCosts(needs={"height": [], "excess": ["scale"], "age": []}, prices={"scale": 1.0})
    derive = {"excess": lambda columns: columns["weight"] - 22 * columns["height"] ** 2}
    predictor = OnDemandPredictor(forest, costs, {"scale": lambda ids: {"weight": weight[ids]}}, derive=derive)
    for free in (rows, rows.to_numpy(), {"height": height, "age": age}):
        np.testing.assert_array_equal(predictor.predict(np.arange(50), free).raw_scores, forest.predict(rows))


def test_a_free_feature_may_be_derived():
    forest = Forest.from_trees([stump(1, -1.0, 1.0)], n_features=2)
    costs = FeatureCosts(needs=[[], []], prices={})
    predictor = OnDemandPredictor(forest, costs, {}, derive={1: lambda columns: columns[0] - 1})
    assert predictor.predict([0, 1], {0: [0.0, 3.0]}).raw_scores.tolist() == [-1.0, 1.0]
    assert predictor.predict([0, 1], {0: [0.0, 3.0], 1: [5.0, -5.0]}).raw_scores.tolist() == [1.0, -1.0]


def test_classes_are_compared_after_equally_many_trees():
    """The trees of a class stand side by side where a round has several."""
    X = table(0, 300)
    y = target(X, 3)
    data = xgb.DMatrix(X, label=y, nthread=1)
    params = {"objective": "multi:softprob", "num_class": 3, "nthread": 1, "max_depth": 3}
    costs, fetch = FeatureCosts([1.0] * D), columns(X)
    one_round = xgb.train(params | {"num_parallel_tree": 8, "subsample": 0.7}, data, 1)
    forest = Forest.from_booster(one_round)
    result = OnDemandPredictor(forest, costs, fetch, early_exit=0.34, exit_every=2).predict(np.arange(300))
    np.testing.assert_array_equal(result.raw_scores, forest.predict(X))
    forest = Forest.from_booster(xgb.train(params | {"num_parallel_tree": 2}, data, 6))
    result = OnDemandPredictor(forest, costs, fetch, early_exit=0.5, exit_every=3).predict(np.arange(300))
    assert set(result.trees[result.status == "confident"]) <= {12, 18, 24, 30}


def test_an_early_exit_does_not_depend_on_the_other_rows():
    """The second row is in the second tree when the first one, which is sure after one tree, gets what it waits for."""
    nodes = {
        "threshold": np.zeros(5),
        "left": np.array([1, 0, 3, 0, 0]),
        "right": np.array([2, 0, 4, 0, 0]),
        "default_left": np.ones(5, dtype=bool),
        "cover": np.ones(5),
        "label": np.arange(5),
    }
    first = Tree(feature=np.array([0, -1, 1, -1, -1]), value=np.array([[0.0], [0], [0], [-3], [3]]), **nodes)
    nodes |= {"left": np.array([1, 3, 0, 0, 0]), "right": np.array([2, 4, 0, 0, 0])}
    second = Tree(feature=np.array([0, 2, -1, -1, -1]), value=np.array([[0.0], [0], [1], [-1], [1]]), **nodes)
    forest, X = Forest.from_trees([first, second], n_features=3), np.array([[1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]])
    predictor = OnDemandPredictor(forest, FeatureCosts([1.0, 1.0, 1.0]), columns(X), early_exit=0.9, exit_every=1)
    assert predictor.predict([0]).raw_scores.tolist() == [3.0]
    both = predictor.predict([0, 1])
    assert both.raw_scores.tolist() == [3.0, 1.0]
    assert both.status.tolist() == ["confident", "finished"]


@pytest.mark.parametrize("early_exit", [None, "decision", 0.9])
def test_a_model_without_trees(early_exit):
    booster = xgb.train({"objective": "binary:logistic"}, xgb.DMatrix(X4, label=[0, 0, 0, 1]), 0)
    forest = Forest.from_booster(booster)
    result = OnDemandPredictor(forest, FeatureCosts([1.0]), {}, early_exit=early_exit).predict(np.arange(4))
    assert (result.status == "finished").all()
    np.testing.assert_array_equal(result.raw_scores, forest.predict(X4))


X4 = np.arange(4.0)[:, None]
