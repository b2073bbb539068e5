from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xgboost as xgb

from grbb_ext import Forest

N_TRAIN, N_TEST, D = 300, 250, 6
CATEGORICAL = ["c", "c", "q", "q", "q", "q"]


def table(seed, n, *, missing=0.0, zeros=0.0, categories=(7, 40)):
    """Draw rows: two columns of codes, four of numbers on a grid, so that values meet thresholds."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, D)), 1)
    for j, k in enumerate(categories):
        X[:, j] = rng.integers(0, k, n)
    X[rng.random(X.shape) < zeros] = 0.0
    X[rng.random(X.shape) < missing] = np.nan
    return X


def score(X, seed=0):
    filled = np.nan_to_num(X)
    noise = np.random.default_rng(seed).normal(size=len(X))
    return filled[:, 0] % 3 - filled[:, 1] % 2 + filled[:, 2] * filled[:, 3] + filled[:, 4] + noise


def train(params, X, y, rounds=8, **data):
    settings = {"nthread": 1, "max_depth": 5, "min_child_weight": 0, "seed": 1} | params
    return xgb.train(settings, xgb.DMatrix(X, label=y, nthread=1, **data), rounds)


def check(booster, X, *, forest=None, **data):
    """Compare raw scores and leaves with the library's, bit by bit."""
    forest = Forest.from_booster(booster) if forest is None else forest
    rows = xgb.DMatrix(X, nthread=1, **data)
    expected = booster.predict(rows, output_margin=True)
    got = forest.predict(X)
    assert got.dtype == expected.dtype == np.float32
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(
        forest.apply(X), booster.predict(rows, pred_leaf=True).reshape(len(expected), forest.n_trees)
    )
    return forest


SETTINGS = {
    "hist": {"tree_method": "hist"},
    "approx": {"tree_method": "approx"},
    "pruned": {"tree_method": "exact", "gamma": 2.0},
    "lossguide": {"tree_method": "hist", "grow_policy": "lossguide", "max_leaves": 20, "max_depth": 0},
    "dart": {"booster": "dart", "rate_drop": 0.5, "one_drop": 1},
    "dart_forest": {"booster": "dart", "rate_drop": 0.5, "normalize_type": "forest", "sample_type": "weighted"},
    "random_forest": {"num_parallel_tree": 5, "subsample": 0.6, "colsample_bynode": 0.7, "eta": 1.0},
}


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("setting", SETTINGS)
def test_raw_scores_are_bit_equal(walker, setting, classes, missing):
    X, T = table(0, N_TRAIN, missing=missing), table(1, N_TEST, missing=0.2)
    y = np.digitize(score(X), [-1.0, 1.0]) if classes == 3 else score(X) > 0
    objective = {"objective": "multi:softprob", "num_class": 3} if classes == 3 else {"objective": "binary:logistic"}
    forest = check(train(SETTINGS[setting] | objective, X, y), T)
    assert forest.n_outputs == classes
    assert forest.n_features == D


@pytest.mark.parametrize("booster", ["gbtree", "dart"])
@pytest.mark.parametrize("onehot", [1, 100])
def test_categorical_splits(walker, onehot, booster):
    X, T = table(2, N_TRAIN, missing=0.1), table(3, N_TEST, missing=0.2)
    # Unseen, fractional, negative and huge codes; all but NaN are in no set or truncated.
    T[:90, :2] = np.random.default_rng(4).choice([-3.0, -0.5, -0.0, 0.9, 2.5, 6.99, 41.0, 1e7, 2.0**24, 3e9], (90, 2))
    data = {"feature_types": CATEGORICAL, "enable_categorical": True}
    drop = {"rate_drop": 0.5} if booster == "dart" else {}
    model = train({"max_cat_to_onehot": onehot, "booster": booster} | drop, X, score(X), **data)
    forest = check(model, T, **data)
    assert (forest.category_set >= 0).any()


@pytest.mark.parametrize("missing", [0.0, -1.0])
def test_a_value_that_marks_missing_entries(walker, missing):
    X, T = table(5, N_TRAIN, zeros=0.3), table(6, N_TEST, zeros=0.3, missing=0.1)
    X[X == 1.0] = T[T == 1.0] = missing
    model = train({}, X, score(X), missing=missing)
    forest = check(model, T, forest=Forest.from_booster(model, missing=missing), missing=missing)
    assert not np.array_equal(forest.predict(T), Forest.from_booster(model).predict(T))


@pytest.mark.parametrize(
    "objective",
    [
        "reg:squarederror", "reg:squaredlogerror", "reg:logistic", "reg:pseudohubererror", "reg:absoluteerror",
        "reg:gamma", "reg:tweedie", "binary:logistic", "binary:logitraw", "binary:hinge", "count:poisson",
        "rank:pairwise", "survival:cox",
    ],
)  # fmt: skip
@pytest.mark.parametrize("base_score", [None, 0.37])
def test_the_base_score_of_every_objective(objective, base_score):
    X = table(7, N_TRAIN)
    y = (score(X) > 0) * 0.9 + 0.05
    params = {"objective": objective} | ({} if base_score is None else {"base_score": base_score})
    if objective == "rank:pairwise":
        data = xgb.DMatrix(X, label=y > 0.5, qid=np.zeros(N_TRAIN), nthread=1)
        model = xgb.train(params | {"nthread": 1, "max_depth": 3}, data, 3)
    else:
        model = train(params, X, y > 0.5 if objective.startswith("binary") else y, rounds=3)
    check(model, table(8, N_TEST))


def test_the_link_of_the_base_score_to_the_last_bit():
    X = np.zeros((2, 1))
    for p in np.random.default_rng(0).uniform(0.001, 0.999, 200):
        model = xgb.train(
            {"objective": "binary:logistic", "base_score": p, "nthread": 1}, xgb.DMatrix(X, label=[0, 1]), 1
        )
        check(model, X)


def test_a_model_without_rounds():
    X = table(9, 20)
    for params in ({}, {"objective": "binary:logistic"}, {"objective": "reg:gamma", "base_score": 2.0}):
        model = train(params, X, np.ones(20), rounds=0)
        np.testing.assert_array_equal(
            Forest.from_booster(model).predict(X), model.predict(xgb.DMatrix(X), output_margin=True)
        )


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_vector_leaves(walker, missing):
    X, T = table(10, N_TRAIN, missing=missing), table(11, N_TEST, missing=0.2)
    Y = np.column_stack([score(X), score(X, seed=1) ** 2, np.nan_to_num(X[:, 2])])
    model = train({"multi_strategy": "multi_output_tree", "tree_method": "hist"}, X, Y, rounds=5)
    forest = check(model, T)
    assert (forest.n_trees, forest.n_outputs, forest.trees_per_round) == (5, 3, 1)
    assert forest.leaf_bounds.lowest.shape == (5, 3)


def test_one_tree_for_each_target(walker):
    X, T = table(10, N_TRAIN), table(11, N_TEST)
    forest = check(train({}, X, np.column_stack([score(X), -score(X)])), T)
    assert (forest.n_trees, forest.n_outputs, forest.trees_per_round) == (16, 2, 2)


def test_continued_training(walker):
    X, T = table(12, N_TRAIN, missing=0.1), table(13, N_TEST, missing=0.1)
    first = train({"objective": "binary:logistic"}, X, score(X) > 0, rounds=4)
    both = xgb.train(
        {"objective": "binary:logistic", "nthread": 1}, xgb.DMatrix(X, label=score(X) > 0), 3, xgb_model=first
    )
    assert check(both, T).n_trees == 7


def test_rounds_and_ranges_of_trees():
    X, T = table(14, N_TRAIN), table(15, N_TEST)
    y = np.digitize(score(X), [-1.0, 1.0])
    model = train({"objective": "multi:softprob", "num_class": 3, "num_parallel_tree": 2}, X, y)
    forest, rows = Forest.from_booster(model), xgb.DMatrix(T)
    for begin, end in [(0, 3), (2, 5), (7, 8)]:
        np.testing.assert_array_equal(
            forest.predict(T, start_tree=6 * begin, stop_tree=6 * end),
            model.predict(rows, output_margin=True, iteration_range=(begin, end)),
        )
    np.testing.assert_array_equal(
        Forest.from_booster(model, iterations=4).predict(T),
        model.predict(rows, output_margin=True, iteration_range=(0, 4)),
    )
    with pytest.raises(ValueError, match="between 1 and 8"):
        Forest.from_booster(model, iterations=9)


def test_early_stopping_as_each_predict_does():
    X, T = table(16, N_TRAIN), table(17, N_TEST)
    y, z = score(X) > 0, score(T, seed=3) > 0
    wrapper = xgb.XGBClassifier(n_estimators=60, early_stopping_rounds=3, n_jobs=1, max_depth=5, learning_rate=1.0)
    wrapper.fit(X, y, eval_set=[(T, z)], verbose=False)
    assert wrapper.best_iteration + 1 < wrapper.get_booster().num_boosted_rounds()
    np.testing.assert_array_equal(Forest.from_booster(wrapper).predict(T), wrapper.predict(T, output_margin=True))
    check(wrapper.get_booster(), T)  # the booster itself predicts with all rounds


def test_the_wrappers_missing_value():
    X = table(18, N_TRAIN, zeros=0.3)
    wrapper = xgb.XGBRegressor(n_estimators=5, missing=0.0, n_jobs=1).fit(X, score(X))
    forest = Forest.from_booster(wrapper)
    assert forest.missing == 0.0
    np.testing.assert_array_equal(forest.predict(X), wrapper.predict(X, output_margin=True))
    assert np.isnan(Forest.from_booster(wrapper.set_params(missing=None)).missing)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int64, np.uint8, bool])
def test_precisions_of_the_input(dtype):
    X = table(19, N_TRAIN)
    T = (table(20, N_TEST) * 7 + 20).astype(dtype)
    check(train({}, X * 7 + 20, score(X)), T)


def test_sparse_rows_where_absent_is_missing(walker):
    X, T = (sp.csr_array(table(seed, n, zeros=0.6)) for seed, n in ((21, N_TRAIN), (22, N_TEST)))
    check(train({}, X, score(X.toarray())), T)
    check(train({}, X, score(X.toarray())), sp.csc_array(T))


def frame(seed, n):
    X = table(seed, n, missing=0.1)
    letters = np.array(list("zyxwvut"))
    return pd.DataFrame(
        {
            "letter": pd.Categorical(np.where(np.isnan(X[:, 0]), None, letters[np.nan_to_num(X[:, 0]).astype(int)])),
            "number": pd.Categorical(np.nan_to_num(X[:, 1]).astype(int) * 10),
            "float": X[:, 2],
            "small": X[:, 3].astype(np.float32),
            "int": np.nan_to_num(X[:, 4] * 10).astype(int),
            "nullable": pd.array(np.where(np.isnan(X[:, 5]), None, np.nan_to_num(X[:, 5] * 10).astype(int)), "Int64"),
        }
    )


def test_frames_with_categories_in_another_order(walker):
    X, T = frame(23, N_TRAIN), frame(24, N_TEST)
    y = X["letter"].cat.codes.to_numpy() % 3 + X["number"].cat.codes.to_numpy() % 2 + np.nan_to_num(X["float"])
    model = train({"max_cat_to_onehot": 2}, X, y, enable_categorical=True)
    forest = check(
        model, T.assign(number=T["number"].cat.set_categories(X["number"].cat.categories)), enable_categorical=True
    )
    assert forest.feature_names == tuple(X.columns)
    shuffled = T.assign(
        letter=T["letter"].cat.set_categories(list("uvwxyzt")),
        number=T["number"].cat.set_categories(sorted(X["number"].cat.categories, reverse=True)),
    )
    check(model, shuffled, enable_categorical=True)
    if forest.categories:  # models have the names of categories since XGBoost 3.1
        with pytest.raises(ValueError, match=r"'letter' .* never saw.*: \['new'\]"):
            forest.predict(shuffled.assign(letter=shuffled["letter"].cat.add_categories(["new"]).fillna("new")))
    with pytest.raises(ValueError, match="another order"):
        forest.predict(T[T.columns[::-1]])
    with pytest.raises(ValueError, match="'float' of X holds text or categories"):
        forest.predict(shuffled.assign(float="high"))


def test_models_without_trees_are_refused():
    X = table(25, N_TRAIN)
    model = xgb.train(
        {"booster": "gblinear", "nthread": 1, "updater": "coord_descent"}, xgb.DMatrix(X, label=score(X)), 2
    )
    with pytest.raises(ValueError, match="'gblinear' has no trees"):
        Forest.from_booster(model)


def test_names():
    X = table(26, N_TRAIN)
    names = ["a", "b c", "d", "e", "f", "g"]
    assert Forest.from_booster(train({}, X, score(X), feature_names=names)).feature_names == tuple(names)
    assert Forest.from_booster(train({}, X, score(X))).feature_names is None
