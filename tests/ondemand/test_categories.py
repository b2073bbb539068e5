"""Features on demand of a model that was trained on a frame: categories by name, classes and probabilities."""

from __future__ import annotations

from dataclasses import replace

import lightgbm as lgb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from xgboost import XGBClassifier

from grbb_ext import FeatureCosts, FetchError, Forest, GRBBClassifier, GRBBRegressor, OnDemandPredictor

N = 300
BOOSTERS = {
    "lightgbm": LGBMClassifier(n_estimators=10, n_jobs=1, min_child_samples=5),
    "xgboost": XGBClassifier(n_estimators=10, n_jobs=1),
}
COSTS = FeatureCosts(
    needs={"color": ["look"], "district": ["address"], "idle": [], "size": [], "count": ["address"]},
    prices={"look": 1.0, "address": 2.0},
)


def make_frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "color": rng.choice(["red", "green", "blue"], N),
            # Numbers that are names: their codes are 0, 1 and 2.
            "district": pd.Categorical(rng.choice([1, 2, 3], N), categories=[3, 1, 2]),
            # A categorical column that no tree reads: LightGBM numbers only those that it splits.
            "idle": pd.Categorical(["same"] * N),
            "size": rng.normal(size=N),
            "count": rng.integers(0, 9, N).astype(float),
        }
    )


FRAME = make_frame()
TRUTH = np.where((FRAME["color"] == "red") ^ (FRAME["district"] == 2) ^ (FRAME["size"] > 1), "yes", "no").astype(object)
Y = np.where(np.arange(N) < 150, TRUTH, None)


@pytest.fixture(scope="module", params=BOOSTERS)
def model(request):
    return GRBBClassifier(BOOSTERS[request.param], rule="labeled", feature_costs=COSTS).fit(FRAME, Y)


def sources(frame=FRAME):
    return {
        "look": lambda rows: {"color": frame["color"].to_numpy()[rows].tolist()},
        "address": lambda rows: frame[["district", "count"]].iloc[rows],
    }


IDS = np.arange(N)


def test_names_are_mapped_by_the_estimator(model):
    assert 2 not in model.forest_.features_used()
    assert {0, 1, 3} <= set(model.forest_.features_used())
    result = model.on_demand(sources(), verbose=False).predict(IDS, FRAME)
    np.testing.assert_array_equal(result.raw_scores, model.decision_function(FRAME))


def test_the_forest_of_an_estimator_knows_the_columns(model, tmp_path):
    model.save(tmp_path / "model")
    loaded = GRBBClassifier.load(tmp_path / "model")
    for forest in (model.forest_, Forest.from_booster(loaded), Forest.from_booster(loaded, iterations=10)):
        result = OnDemandPredictor(forest, COSTS, sources(), verbose=False).predict(IDS, FRAME)
        np.testing.assert_array_equal(result.raw_scores, model.decision_function(FRAME))
    unreadable = replace(model.forest_, categories={0: ()})  # as of XGBoost before 3.4, where names are not ASCII
    with pytest.raises(ValueError, match=r"does not tell which names.* Pass categories="):
        OnDemandPredictor(unreadable, COSTS, sources())


@pytest.mark.parametrize(
    ("other", "is_certain"),
    [
        (pd.Categorical(np.where(IDS == 0, "p", "q")), True),  # never split
        (pd.Categorical(IDS > 0), True),
        (pd.Categorical(IDS % 3, ordered=True), True),  # split as numbers
        (IDS % 3, False),  # as far as the model tells, these could be the codes of the district
    ],
)
def test_columns_of_a_booster(other, is_certain):
    district = FRAME["district"].cat.rename_categories([30, 10, 20])
    frame = pd.DataFrame({"size": FRAME["size"], "district": district, "other": other})
    y = (frame["size"] > 0) ^ (district == 20) ^ (IDS % 3 == 1)
    params = {"objective": "binary", "verbosity": -1, "num_threads": 1, "min_data_per_group": 5}
    booster = lgb.train(params, lgb.Dataset(frame, y), 10)
    fetch = {name: (lambda rows, name=name: frame[name].iloc[rows]) for name in frame}
    costs, forest = FeatureCosts(dict.fromkeys(frame, 1.0)), Forest.from_booster(booster)
    np.testing.assert_array_equal(forest.predict(frame), booster.predict(frame, raw_score=True))
    plain, known = frame.assign(district=district.astype(int)), None
    if is_certain:
        np.testing.assert_array_equal(forest.predict(plain), forest.predict(frame))
    else:
        with pytest.raises(ValueError, match="Pass a frame with the types of the training frame"):
            forest.predict(plain)
        with pytest.raises(ValueError, match=r"does not tell which names.* Pass categories="):
            OnDemandPredictor(forest, costs, fetch)
        known = {"district": district.cat.categories}
    result = OnDemandPredictor(forest, costs, fetch, categories=known, verbose=False).predict(IDS)
    np.testing.assert_array_equal(result.raw_scores, booster.predict(frame, raw_score=True))


def test_integers_declared_as_categories_beside_a_column_of_names():
    frame = pd.DataFrame(
        {"size": FRAME["size"], "code": IDS % 4 * 7, "name": pd.Categorical(np.where(IDS == 0, 7, 21))}
    )
    y = (frame["size"] > 0) ^ frame["code"].isin([7, 21])
    params = {"objective": "binary", "verbosity": -1, "num_threads": 1, "min_data_per_group": 5}
    booster = lgb.train(params, lgb.Dataset(frame, y, categorical_feature=["code"]), 10)
    forest = Forest.from_booster(booster)
    np.testing.assert_array_equal(forest.predict(frame), booster.predict(frame, raw_score=True))
    fetch = {name: (lambda rows, name=name: frame[name].iloc[rows]) for name in frame}
    result = OnDemandPredictor(forest, FeatureCosts(dict.fromkeys(frame, 1.0)), fetch, verbose=False).predict(IDS)
    np.testing.assert_array_equal(result.raw_scores, booster.predict(frame, raw_score=True))


def test_batches_without_all_categories(model):
    # One row at a time: codes that are counted within a batch would all be 0.
    predictor = model.on_demand(sources(), batch_size=1, verbose=False)
    result = predictor.predict(IDS[:20], FRAME.iloc[:20])
    np.testing.assert_array_equal(result.raw_scores, model.decision_function(FRAME.iloc[:20]))


def test_numbers_are_names_where_names_are_numbers(model):
    numbers = sources() | {
        "address": lambda rows: {
            "district": FRAME["district"].to_numpy()[rows].astype(int),
            "count": FRAME["count"][rows],
        }
    }
    result = model.on_demand(numbers, verbose=False).predict(IDS, FRAME)
    np.testing.assert_array_equal(result.raw_scores, model.decision_function(FRAME))


def test_codes_of_text_are_refused(model):
    codes = pd.Categorical(FRAME["color"], categories=["red", "green", "blue"]).codes  # not the order of the model
    with pytest.raises(FetchError, match=r"'color' is categorical, and numbers came. Pass its categories by name"):
        model.on_demand(sources() | {"look": lambda rows: codes[rows]}, verbose=False).predict(IDS, FRAME)


def test_missing_and_new_categories(model):
    frame = FRAME.assign(color=FRAME["color"].where(IDS % 5 > 0, None))
    result = model.on_demand(sources(frame), verbose=False).predict(IDS, frame)
    np.testing.assert_array_equal(result.raw_scores, model.decision_function(frame))
    unseen = model.on_demand(sources() | {"look": lambda rows: ["pink"] * len(rows)}, verbose=False)
    if model.library_ == "xgboost":
        with pytest.raises(FetchError, match="never saw"):
            unseen.predict(IDS, FRAME)
    else:
        expected = model.decision_function(FRAME.assign(color="pink"))
        np.testing.assert_array_equal(unseen.predict(IDS, FRAME).raw_scores, expected)


def test_results_carry_classes_and_probabilities(model):
    result = model.on_demand(sources(), verbose=False).predict(IDS, FRAME)
    assert result.classes.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(result.probabilities, model.predict_proba(FRAME))
    np.testing.assert_array_equal(result.predictions, model.predict(FRAME))


def test_failed_rows_have_no_class(model):
    def closed(rows):
        if 3 in rows:
            raise ConnectionError("closed")
        return sources()["look"](rows)

    result = model.on_demand(sources() | {"look": closed}, batch_size=100, on_error="return", verbose=False).predict(
        IDS, FRAME
    )
    failed = result.status == "failed"
    assert failed[:100].any()
    assert not failed[100:].any()
    assert set(result.predictions[failed]) == {None}
    assert np.isnan(result.probabilities[failed]).all()
    np.testing.assert_array_equal(result.predictions[~failed], model.predict(FRAME)[~failed])


@pytest.mark.parametrize(
    "form",
    [
        FRAME,
        FRAME[["size"]],
        {"size": FRAME["size"].tolist()},
        pl.from_pandas(FRAME),
        pa.Table.from_pandas(FRAME),
        FRAME.astype(object).to_numpy(),
        FRAME.astype(object).to_numpy().tolist(),
        FRAME[FRAME.columns[::-1]],
    ],
    ids=["pandas", "one column", "dict", "polars", "pyarrow", "objects", "lists", "another order"],
)
def test_free_takes_what_fit_takes(model, form):
    result = model.on_demand(sources(), verbose=False).predict(IDS, form)
    np.testing.assert_array_equal(result.raw_scores, model.decision_function(FRAME))


def test_free_frames_of_a_model_without_names():
    array = FRAME[["size", "count"]].to_numpy()
    y = np.where(np.arange(N) < 150, (array[:, 0] > 0).astype(int), -1)
    plain = GRBBClassifier(BOOSTERS["lightgbm"], rule="labeled", feature_costs=[0.0, 1.0]).fit(array, y)
    fetch = {j: (lambda rows, j=j: array[rows, j]) for j in range(2)}
    expected = plain.decision_function(array)
    for free in (array, array.tolist()):
        np.testing.assert_array_equal(plain.on_demand(fetch, verbose=False).predict(IDS, free).raw_scores, expected)


def test_derive_gets_names():
    costs = FeatureCosts(
        needs={"color": ["look"], "district": ["address"], "idle": [], "size": [], "count": ["look", "address"]},
        prices={"look": 1.0, "address": 2.0},
    )
    truth = np.where((FRAME["color"] == "red") & (FRAME["count"] > 4), "yes", "no")
    model = GRBBClassifier(BOOSTERS["lightgbm"], rule="labeled", feature_costs=costs).fit(FRAME, truth)
    seen = []

    def count(columns):
        seen.extend(columns["color"].tolist())
        return columns["of_look"]

    fetch = {
        "look": lambda rows: {"color": FRAME["color"].to_numpy()[rows], "of_look": FRAME["count"].to_numpy()[rows]},
        "address": lambda rows: {"district": FRAME["district"].iloc[rows]},
    }
    result = model.on_demand(fetch, derive={"count": count}, verbose=False).predict(IDS, FRAME)
    np.testing.assert_array_equal(result.raw_scores, model.decision_function(FRAME))
    assert set(seen) <= {"red", "green", "blue"}
    assert seen


def test_a_regressor_predicts_numbers():
    y = np.where(FRAME["color"] == "red", 5.0, FRAME["size"])
    model = GRBBRegressor(LGBMRegressor(n_estimators=5, n_jobs=1), rule="labeled", feature_costs=COSTS).fit(FRAME, y)
    result = model.on_demand(sources(), verbose=False).predict(IDS, FRAME)
    np.testing.assert_array_equal(result.predictions, model.predict(FRAME))
    with pytest.raises(ValueError, match="there are no probabilities"):
        _ = result.probabilities


def test_several_classes_and_a_loaded_model(tmp_path):
    truth = FRAME["color"].to_numpy(dtype=object)
    model = GRBBClassifier(BOOSTERS["lightgbm"], rule="labeled", feature_costs=COSTS).fit(FRAME, truth)
    model.save(tmp_path / "model")
    result = GRBBClassifier.load(tmp_path / "model").on_demand(sources(), verbose=False).predict(IDS, FRAME)
    np.testing.assert_array_equal(result.predictions, truth)
    assert result.probabilities.shape == (N, 3)


def test_wrong_categories_and_classes(model):
    with pytest.raises(ValueError, match="Unknown feature 'colour'"):
        model.on_demand(sources(), categories={"colour": ["blue"]})
    with pytest.raises(ValueError, match="classes has 3 entries, but the forest has 1 outputs"):
        model.on_demand(sources(), classes=["a", "b", "c"])


def test_a_regression_has_no_class_that_could_be_certain():
    y = np.where(np.arange(N) < 150, FRAME["size"], np.nan)
    model = GRBBRegressor(LGBMRegressor(n_estimators=5, n_jobs=1), rule="labeled", feature_costs=COSTS).fit(FRAME, y)
    for early_exit in ("decision", 0.9):
        with pytest.raises(ValueError, match="Leave it out for regression"):
            model.on_demand(sources(), early_exit=early_exit)
    with pytest.raises(ValueError, match="Leave it out for regression"):
        model.on_demand(sources(), early_exit=0.9, decision_threshold=0.5)
    above = model.on_demand(sources(), early_exit="decision", decision_threshold=0.5, verbose=False).predict(IDS, FRAME)
    np.testing.assert_array_equal(above.raw_scores > 0.5, model.predict(FRAME) > 0.5)
