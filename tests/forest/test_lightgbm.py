from __future__ import annotations

import warnings

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from grbb_ext import Forest

N_TRAIN, N_TEST, D = 300, 250, 6
# LightGBM reads |x| <= 1e-35 (a float32 constant) as zero.
TINY = [0.0, -0.0, 1e-36, -1e-36, 1e-35, -1e-35, float(np.float32(1e-35)), -float(np.float32(1e-35)), 2e-35, -2e-35]


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
    settings = {
        "verbosity": -1, "num_threads": 1, "num_leaves": 20, "min_data_in_leaf": 3, "min_data_per_group": 5,
        "cat_smooth": 1.0, "seed": 1,
    }  # fmt: skip
    dataset = lgb.Dataset(X, label=y, params={"verbosity": -1}, **data)
    return lgb.train(settings | params, dataset, rounds)


def check(booster, X, **options):
    """Compare raw scores and leaves with the library's, bit by bit."""
    forest = Forest.from_booster(booster, **options)
    expected = booster.predict(X, raw_score=True)
    got = forest.predict(X)
    assert got.dtype == expected.dtype == np.float64
    np.testing.assert_array_equal(got, expected)
    leaves = booster.predict(X, pred_leaf=True).reshape(len(expected), forest.n_trees)
    np.testing.assert_array_equal(forest.apply(X), leaves)
    return forest


SETTINGS = {
    "gbdt": {},
    "deep": {"num_leaves": 120, "min_data_in_leaf": 1},
    "stumps": {"num_leaves": 2},
    "goss": {"data_sample_strategy": "goss", "learning_rate": 0.5},
    "dart": {"boosting": "dart", "drop_rate": 0.5, "skip_drop": 0.0},
    "random_forest": {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.6, "feature_fraction": 0.8},
}
MISSING = {
    "nan": {},
    "ignored": {"use_missing": False},
    "zero": {"zero_as_missing": True},
    "zero_and_ignored": {"zero_as_missing": True, "use_missing": False},
}


@pytest.mark.parametrize("missing", MISSING)
@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("setting", SETTINGS)
def test_raw_scores_are_bit_equal(walker, setting, classes, missing):
    X, T = table(0, N_TRAIN, missing=0.2, zeros=0.2), table(1, N_TEST, missing=0.2, zeros=0.2)
    T[:60] = np.random.default_rng(2).choice(TINY, (60, D))
    y = np.digitize(score(X), [-1.0, 1.0]) if classes == 3 else score(X) > 0
    objective = {"objective": "multiclass", "num_class": 3} if classes == 3 else {"objective": "binary"}
    forest = check(train(SETTINGS[setting] | MISSING[missing] | objective, X, y), T)
    assert forest.n_outputs == classes
    assert forest.averaged == (setting == "random_forest")
    assert forest.zero_is_missing.any() == (missing == "zero")


@pytest.mark.parametrize("missing", MISSING)
def test_missing_values_that_training_never_saw(walker, missing):
    X, T = table(3, N_TRAIN), table(4, N_TEST, missing=0.4)
    check(train(MISSING[missing], X, score(X)), T)


@pytest.mark.parametrize("missing", MISSING)
@pytest.mark.parametrize("onehot", [1, 100])
def test_categorical_splits(walker, onehot, missing):
    X, T = table(5, N_TRAIN, missing=0.1), table(6, N_TEST, missing=0.2)
    # Unseen, fractional, negative and huge codes: truncated towards zero, and right if they are in no set.
    T[:90, :2] = np.random.default_rng(4).choice(
        [-3.0, -1.0, -0.5, -0.0, 0.9, 2.5, 6.99, 41.0, 1e7, 2.0**31, 3e9], (90, 2)
    )
    model = train({"max_cat_to_onehot": onehot} | MISSING[missing], X, score(X), categorical_feature=[0, 1])
    forest = check(model, T)
    assert (forest.category_set >= 0).any()


@pytest.mark.parametrize(
    "objective",
    ["regression", "regression_l1", "huber", "quantile", "poisson", "gamma", "tweedie", "cross_entropy", "binary"],
)
def test_objectives(objective):
    X = table(7, N_TRAIN)
    y = (score(X) > 0) * 0.9 + 0.05
    check(train({"objective": objective}, X, y > 0.5 if objective == "binary" else y, rounds=3), table(8, N_TEST))


def test_a_custom_objective_and_a_single_leaf(walker):
    X, T = table(9, N_TRAIN), table(10, N_TEST)
    y = score(X)
    check(train({"objective": lambda H, _: (H - y, np.ones_like(H))}, X, y), T)
    forest = check(train({"min_data_in_leaf": N_TRAIN}, X, y, rounds=3), T)
    assert forest.n_splits == 0
    assert forest.features_used().size == 0
    assert not forest.features_touched(T).any()


def test_continued_training(walker):
    X, T = table(11, N_TRAIN, missing=0.1), table(12, N_TEST, missing=0.1)
    first = train({"objective": "binary"}, X, score(X) > 0, rounds=4)
    data = lgb.Dataset(X, label=score(X) > 0, params={"verbosity": -1})
    both = lgb.train({"objective": "binary", "verbosity": -1, "num_threads": 1}, data, 3, init_model=first)
    assert check(both, T).n_trees == 7


def test_rounds_and_ranges_of_trees():
    X, T = table(13, N_TRAIN), table(14, N_TEST)
    model = train({"objective": "multiclass", "num_class": 3}, X, np.digitize(score(X), [-1.0, 1.0]))
    forest = Forest.from_booster(model)
    for start, n in [(0, 3), (2, 3), (7, 1)]:
        np.testing.assert_array_equal(
            forest.predict(T, start_tree=3 * start, stop_tree=3 * (start + n)),
            model.predict(T, raw_score=True, start_iteration=start, num_iteration=n),
        )
    np.testing.assert_array_equal(
        Forest.from_booster(model, iterations=4).predict(T), model.predict(T, raw_score=True, num_iteration=4)
    )
    with pytest.raises(ValueError, match="between 1 and 8"):
        Forest.from_booster(model, iterations=9)


def test_early_stopping_keeps_the_best_round():
    X, T = table(15, N_TRAIN), table(16, N_TEST)
    y, z = score(X) > 0, score(T, seed=3) > 0
    data = lgb.Dataset(X, label=y, params={"verbosity": -1})
    model = lgb.train(
        {"objective": "binary", "learning_rate": 0.8, "verbosity": -1, "num_threads": 1},
        data,
        80,
        valid_sets=[lgb.Dataset(T, label=z, reference=data)],
        callbacks=[lgb.early_stopping(3, verbose=False)],
        keep_training_booster=True,  # without it LightGBM drops the rounds after the best one
    )
    assert model.best_iteration < model.current_iteration()
    assert check(model, T).n_trees == model.best_iteration
    everything = Forest.from_booster(model, iterations=model.current_iteration())
    np.testing.assert_array_equal(everything.predict(T), model.predict(T, raw_score=True, num_iteration=-1))


def test_the_wrapper():
    X = table(16, N_TRAIN, missing=0.1)
    with warnings.catch_warnings():  # LightGBM 4.5 calls scikit-learn by an old name
        warnings.simplefilter("ignore", FutureWarning)
        wrapper = lgb.LGBMClassifier(n_estimators=5, n_jobs=1, verbosity=-1).fit(X, score(X) > 0)
        expected = wrapper.predict(X, raw_score=True)
    np.testing.assert_array_equal(Forest.from_booster(wrapper).predict(X), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int64, np.uint8, bool])
def test_precisions_of_the_input(dtype):
    X = table(17, N_TRAIN)
    T = (table(18, N_TEST) * 7 + 20).astype(dtype)
    check(train({}, X * 7 + 20, score(X)), T)


def test_large_integers_lose_digits_as_in_lightgbm():
    X = 2**25 + np.arange(400)[:, None]
    model = train({"num_leaves": 50}, X.astype(float), np.arange(400) % 7)
    forest = check(model, X)
    assert not np.array_equal(forest.predict(X), forest.predict(X.astype(float)))


def test_sparse_rows_where_absent_is_zero(walker):
    X, T = (sp.csr_matrix(table(seed, n, zeros=0.6)) for seed, n in ((19, N_TRAIN), (20, N_TEST)))
    for params in MISSING.values():
        model = train(params, X, score(X.toarray()))
        check(model, T)
        np.testing.assert_array_equal(Forest.from_booster(model).predict(T), model.predict(T.toarray(), raw_score=True))


def frame(seed, n):
    X = table(seed, n, missing=0.1)
    letters = np.array(list("zyxwvut"))
    return pd.DataFrame(
        {
            "float": X[:, 2],
            "letter": pd.Categorical(np.where(np.isnan(X[:, 0]), None, letters[np.nan_to_num(X[:, 0]).astype(int)])),
            "small": X[:, 3].astype(np.float32),
            "with blank": pd.Categorical(np.nan_to_num(X[:, 1]).astype(int) * 10),
            "int": np.nan_to_num(X[:, 4] * 10).astype(int),
            "flag": X[:, 5] > 0,
        }
    )


def test_frames_with_other_categories(walker):
    X, T = frame(21, N_TRAIN), frame(22, N_TEST)
    y = X["letter"].cat.codes.to_numpy() % 3 + X["with blank"].cat.codes.to_numpy() % 2 + np.nan_to_num(X["float"])
    model = train({"max_cat_to_onehot": 2}, X, y)
    forest = check(model, T)  # the second frame has fewer numbers in its categories
    assert forest.feature_names == ("float", "letter", "small", "with_blank", "int", "flag")
    assert (forest.category_set >= 0).any()
    shuffled = T.assign(letter=T["letter"].cat.set_categories(list("uvwxy")))
    check(model, shuffled)
    check(model, shuffled.assign(letter=shuffled["letter"].cat.add_categories(["new"]).fillna("new")))
    with pytest.raises(ValueError, match="another order"):
        forest.predict(T[T.columns[::-1]])


def test_linear_trees_are_refused():
    X = table(23, N_TRAIN)
    with pytest.raises(ValueError, match="linear_tree"):
        Forest.from_booster(train({"linear_tree": True}, X, score(X)))


def test_missing_is_for_xgboost():
    X = table(24, N_TRAIN)
    with pytest.raises(ValueError, match="missing= is for XGBoost"):
        Forest.from_booster(train({}, X, score(X)), missing=0.0)


def test_names():
    X = table(25, N_TRAIN)
    assert Forest.from_booster(train({}, X, score(X), feature_name=list("abcdef"))).feature_names == tuple("abcdef")
    assert Forest.from_booster(train({}, X, score(X))).feature_names is None


@pytest.mark.parametrize("zero_as_missing", [False, True])
@pytest.mark.parametrize("use_missing", [False, True])
@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csc_matrix])
def test_tiny_numbers_in_sparse_rows(walker, make, use_missing, zero_as_missing):
    """LightGBM reads numbers up to 1e-35 as zero, except from rows of a csr matrix."""
    rng = np.random.default_rng(5)
    X = rng.choice([*TINY, -1.0, 1.0, np.nan], (N_TRAIN, D))
    settings = {"use_missing": use_missing, "zero_as_missing": zero_as_missing, "min_data_in_bin": 1}
    model = train(settings, X, (X < 0).sum(axis=1) + 3.0 * (X[:, 0] == 0))
    forest = Forest.from_booster(model)
    for dtype in (np.float64, np.float32):
        T = make(rng.choice([*TINY, -1.0, 1.0, np.nan], (N_TEST, D)).astype(dtype))
        np.testing.assert_array_equal(forest.predict(T), model.predict(T, raw_score=True))
