"""The default on many machines is that of one: the same teacher, targets, evidence and warnings, from any frame."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from numpy.testing import assert_allclose, assert_array_equal

from grbb_ext import GraphWarning, RefinedGraph, TableGraph, Targets, grbb_objective
from grbb_ext.adapters.dask import predict, train, train_lightgbm
from grbb_ext.adapters.dask._prepare import prepare, read_recipe
from grbb_ext.adapters.dask._rows import release_rows

# What the teacher says of these tables is said by the tests of the teacher.
pytestmark = [pytest.mark.xdist_group("dask"), pytest.mark.filterwarnings("ignore::UserWarning")]

N = 400
COLUMNS = [*"abcdefgh", "color"]
PARAMS = {"max_depth": 3, "eta": 0.3}


def table(n_classes=2, noise=0.0):
    """Return a frame of few values in each column, with text labels on the first 60 rows, and the true classes."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.integers(0, 30, (N, 8)).astype(np.float64), columns=list("abcdefgh"))
    frame.loc[::7, "c"] = np.nan
    frame["color"] = pd.Categorical(random.choice(["red", "green", "blue"], N))
    score = frame["a"] + 8 * (frame["color"] == "red") + noise * random.standard_normal(N)
    truth = np.array(["low", "middle", "high"])[np.digitize(score, [17] if n_classes == 2 else [12, 23])]
    frame["y"] = pd.Series(np.where(np.arange(N) < 60, truth, None), dtype=object)
    return frame, truth


@pytest.fixture
def parquet(tmp_path):
    """Write a table as files whose categories differ; dask reads several into a partition where columns are few."""

    def write(frame, n_files=5):
        for i, rows in enumerate(np.array_split(np.arange(len(frame)), n_files)):
            part = frame.iloc[rows].reset_index(drop=True)
            if "color" in part:
                part["color"] = part["color"].astype(object).astype("category")
            part.to_parquet(tmp_path / f"{i}.parquet")
        return dd.read_parquet(tmp_path)

    return write


def one_process(frame, **settings):
    """Return the objective of one process, and the frame that it was made of."""
    X = frame[COLUMNS]
    return grbb_objective(X, frame["y"].to_numpy(), verbose=False, **settings), X


def taught(client, rows, graph=None, **settings):
    """Return what train() makes before the first round, and the targets in it."""
    recipe = read_recipe(graph, settings)
    ready = prepare(client, rows[COLUMNS], rows["y"], recipe, graph, settings)
    if ready.objective is None:
        return ready, ready.data["label"].compute().to_numpy()
    q, _ = ready.objective.rows.take(np.arange(N))
    release_rows(client, ready.objective.rows)
    return ready, q


def trained(obj, X, rounds=8, **params):
    data = xgb.QuantileDMatrix(X, label=obj.targets_, enable_categorical=True)
    return xgb.train({"objective": "binary:logistic", "base_score": 0.5, **PARAMS, **params}, data, rounds)


class TestSameAsOneMachine:
    def test_lazy_parquet_with_categories_text_classes_and_unknown_divisions(self, client, parquet):
        frame, truth = table()
        lazy = parquet(frame)
        assert lazy["y"].map_partitions(len).compute().size < lazy.npartitions  # dask fuses partitions here
        assert not lazy.known_divisions
        model = train(client, PARAMS, lazy[COLUMNS], lazy["y"], num_boost_round=8)
        obj, X = one_process(frame)
        expected = trained(obj, X)
        assert model["evidence"] == obj.evidence_
        scores = predict(client, model, lazy[COLUMNS], kind="margin").compute()
        data = xgb.DMatrix(X, enable_categorical=True)
        assert_array_equal(scores, expected.predict(data, output_margin=True))
        assert_array_equal(model["booster"].predict(data), expected.predict(data))
        assert np.mean(predict(client, model, lazy[COLUMNS]).compute() == truth) > 0.8
        again = train(client, PARAMS, lazy[COLUMNS], lazy["y"].compute(), num_boost_round=8)
        assert again["booster"].save_raw("json") == model["booster"].save_raw("json")

    @pytest.mark.parametrize("columns", [list("abd"), "a"], ids=["three", "one"])
    def test_few_columns_of_many_come_in_fewer_partitions(self, client, parquet, columns):
        # What persist() returns for such a frame has partitions that are not there.
        frame, _ = table()
        lazy = parquet(frame, n_files=16)
        X = lazy[columns] if isinstance(columns, list) else lazy[[columns]]
        model = train(client, PARAMS, X, lazy["y"], num_boost_round=3)
        scores = predict(client, model, X, kind="margin").compute()
        obj = grbb_objective(frame[list(X.columns)], frame["y"].to_numpy(), verbose=False)
        expected = trained(obj, frame[list(X.columns)], rounds=3)
        assert_array_equal(scores, expected.predict(xgb.DMatrix(frame[list(X.columns)]), output_margin=True))

    @pytest.mark.parametrize("n_classes", [2, 3])
    @pytest.mark.parametrize("settings", [{}, {"graph": "knn"}, {"rule": Targets(hard=True)}, {"teacher": "forest"}])
    def test_targets_are_those_of_one_machine_to_the_last_bit(self, client, n_classes, settings):
        frame, _ = table(n_classes)
        rows = dd.from_pandas(frame, npartitions=3)
        ready, q = taught(client, rows, **settings)
        obj, _ = one_process(frame, **settings)
        assert_array_equal(q, obj.targets_)
        assert ready.info["n_sample"] == N
        assert ready.teacher.evidence == obj.evidence_

    @pytest.mark.parametrize("name", ["table", "knn", "refined"])
    def test_graphs_have_the_names_of_one_machine(self, client, name):
        frame, _ = table()
        rows = dd.from_pandas(frame, npartitions=3)
        obj, _ = one_process(frame, graph=name)
        assert_array_equal(taught(client, rows, graph=name)[1], obj.targets_)

    @pytest.mark.parametrize("graph", [TableGraph(max_nodes=150), RefinedGraph(max_nodes=150)])
    def test_beyond_the_sample_rows_get_what_the_teacher_predicts(self, client, graph):
        frame, truth = table()
        rows = dd.from_pandas(frame, npartitions=3)
        ready, q = taught(client, rows, graph=graph)
        assert ready.info["n_sample"] == 150
        labeled = frame["y"].notna().to_numpy()
        assert_array_equal(q[labeled], frame["y"][labeled] == "middle")
        predicted = ready.teacher.predict(frame[COLUMNS]).astype(np.float32)
        # Nodes have the answer of the operator itself, which rounding may move.
        assert_allclose(q[~labeled], predicted[~labeled], rtol=0, atol=1e-5)
        assert np.mean((q > 0.5) == (truth == "middle")) > 0.7

    def test_a_fitted_teacher_is_used_as_it_is(self, client):
        frame, _ = table()
        obj, X = one_process(frame)
        rows = dd.from_pandas(frame, npartitions=3)
        model = train(client, PARAMS, rows[COLUMNS], rows["y"], num_boost_round=8, teacher=obj.teacher_)
        again = grbb_objective(X, frame["y"].to_numpy(), teacher=obj.teacher_)
        expected = trained(again, X).predict(xgb.DMatrix(X, enable_categorical=True))
        assert_array_equal(model["booster"].predict(xgb.DMatrix(X, enable_categorical=True)), expected)
        assert model["info"]["n_sample"] == 60
        other, _ = table(3)
        with pytest.raises(ValueError, match="The teacher was fitted to the classes"):
            train(client, PARAMS, rows[COLUMNS], other["y"].to_numpy(), teacher=obj.teacher_)

    def test_the_model_carries_link_and_classes(self, client, tmp_path):
        frame, _ = table()
        rows = dd.from_pandas(frame, npartitions=3)
        model = train(None, PARAMS, rows[COLUMNS], rows["y"], num_boost_round=8)
        model["booster"].save_model(tmp_path / "model.json")
        loaded = xgb.Booster(model_file=tmp_path / "model.json")
        probability = predict(None, model, rows[COLUMNS], kind="probability").compute()
        plain = loaded.predict(xgb.DMatrix(frame[COLUMNS], enable_categorical=True))
        assert_allclose(np.column_stack([1 - plain, plain]), probability, rtol=0, atol=1e-6)
        assert_array_equal(predict(client, loaded, rows[COLUMNS]), predict(client, model, rows[COLUMNS]))
        assert repr(model).startswith(
            "Model(400 rows, 60 labelled, rule 'targets', classes ['low', 'middle'], Teacher("
        )

    def test_several_classes_carry_link_and_classes(self, client, tmp_path):
        frame, truth = table(3)
        rows = dd.from_pandas(frame, npartitions=3)
        model = train(client, PARAMS, rows[COLUMNS], rows["y"], num_boost_round=8)
        model["booster"].save_model(tmp_path / "model.json")
        loaded = xgb.Booster(model_file=tmp_path / "model.json")
        probability = predict(client, model, rows[COLUMNS], kind="probability").compute()
        assert_allclose(loaded.predict(xgb.DMatrix(frame[COLUMNS], enable_categorical=True)), probability, atol=1e-6)
        obj, X = one_process(frame)
        data = xgb.QuantileDMatrix(X, enable_categorical=True)
        one = xgb.train({"base_score": 0, "num_class": 3, **PARAMS}, data, 8, obj=obj)
        scores = predict(client, loaded, rows[COLUMNS], kind="margin").compute()
        assert_allclose(scores, one.predict(data, output_margin=True), rtol=0, atol=1e-6)
        assert np.mean(predict(client, loaded, rows[COLUMNS]).compute() == truth) > 0.7

    def test_prices_as_a_dict(self, client):
        frame, _ = table()
        rows = dd.from_pandas(frame, npartitions=3)
        prices = dict.fromkeys(COLUMNS, 1.0)
        model = train(client, PARAMS, rows[COLUMNS], rows["y"], num_boost_round=8, costs=prices, budget=2)
        assert model["booster"].ledger_.spent <= 2
        probability = predict(client, model, rows[COLUMNS], kind="probability").compute()[:, 1]
        plain = model["booster"].predict(xgb.DMatrix(frame[COLUMNS], enable_categorical=True))
        assert_allclose(plain, probability, rtol=0, atol=1e-6)


def test_the_warnings_are_those_of_one_machine(client):
    random = np.random.default_rng(1)
    X = random.integers(0, 30, (N, 12)).astype(np.float32)
    y = np.where(np.arange(N) < 60, X[:, 0] > 14, -1)
    X[::5, 3] = np.nan
    with pytest.warns(GraphWarning) as one:
        grbb_objective(X, y)
    with pytest.warns(GraphWarning) as many:
        train(client, PARAMS, da.from_array(X, chunks=(150, 12)), y, num_boost_round=2)
    assert [(warning.category, str(warning.message)) for warning in many] == [
        (warning.category, str(warning.message)) for warning in one
    ]
    assert many[0].filename == one[0].filename == __file__


def test_labels_in_another_order_are_refused(client):
    frame, _ = table()
    rows = dd.from_pandas(frame, npartitions=3)
    shuffled = dd.from_pandas(frame.sample(frac=1.0, random_state=0), npartitions=3, sort=False)
    with pytest.raises(ValueError, match="y has another index than X"):
        train(client, PARAMS, rows[COLUMNS], shuffled["y"], num_boost_round=2)


def test_an_unknown_category_is_named(client):
    frame, _ = table()
    rows = dd.from_pandas(frame, npartitions=3)
    model = train(client, PARAMS, rows[COLUMNS], rows["y"], num_boost_round=2, teacher="forest")
    strange = frame.assign(color=pd.Categorical(["violet", *frame["color"][1:]]))
    with pytest.raises(ValueError, match=r"Column 'color' of X has categories that the model never saw.*'violet'"):
        predict(client, model, dd.from_pandas(strange[COLUMNS], npartitions=2)).compute()


@pytest.mark.parametrize("dtype", [np.float32, np.int64, None])
def test_a_number_that_is_a_missing_value_is_one_for_the_teacher_too(client, dtype):
    frame, _ = table()
    holes = frame if dtype is None else frame[list("abcd")].astype(np.float32).to_numpy()
    marked = np.where(np.isnan(holes), -999, holes).astype(dtype) if dtype else frame.fillna({"c": -999})
    X = [
        dd.from_pandas(some[COLUMNS], npartitions=3) if dtype is None else da.from_array(some, chunks=(150, 4))
        for some in (holes, marked)
    ]
    y = frame["y"].to_numpy()
    told = [{}, {"missing": np.float64(-999)}]
    models = [
        train(client, PARAMS, some, y, num_boost_round=3, evals=[(some, y, "all")], **how)
        for some, how in zip(X, told, strict=True)
    ]
    losses = [model["history"]["all"]["logloss"] for model in models]
    assert_allclose(losses[0], losses[1], rtol=1e-6)
    margins = [predict(client, model, some, kind="margin").compute() for model, some in zip(models, X, strict=True)]
    assert_allclose(margins[0], margins[1], rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", ["text beside a number", "boolean", "Int64"])
def test_classes_are_what_one_machine_makes_of_them(client, kind):
    frame, _ = table()
    if kind == "text beside a number":
        y = frame["y"].fillna(-1).tolist()
    else:
        y = (frame["y"] == "low").astype("boolean").mask(frame["y"].isna()).astype(kind)
    expected = grbb_objective(frame[COLUMNS], y, verbose=False).classes_
    given = y if isinstance(y, list) else dd.from_pandas(y, npartitions=2)
    model = train(client, PARAMS, dd.from_pandas(frame[COLUMNS], npartitions=3), given, num_boost_round=2)
    assert model["classes"].tolist() == expected.tolist()
    assert model["classes"].dtype == expected.dtype


@pytest.mark.parametrize("names", ["text", "numbers"])
def test_a_file_without_a_value_of_a_column(client, names):
    frame, _ = table()
    frame.loc[100:199, "b"] = np.nan
    model = train(client, PARAMS, dd.from_pandas(frame[COLUMNS], npartitions=4), frame["y"], num_boost_round=3)
    parts = [frame.loc[i : i + 99, COLUMNS] for i in range(0, N, 100)]
    parts[1] = parts[1].assign(b=pd.Series([None] * 100, index=parts[1].index, dtype=object))
    for part in parts:
        part.columns = part.columns if names == "text" else range(len(COLUMNS))
    rows = dd.from_map(lambda i: parts[i], range(4), meta=parts[0].iloc[:0], enforce_metadata=False)
    again = train(client, PARAMS, rows, frame["y"], num_boost_round=3, evals=[(rows, frame["y"], "all")])
    expected = predict(client, model, dd.from_pandas(frame[COLUMNS], npartitions=4), kind="margin").compute()
    assert_allclose(predict(client, again, rows, kind="margin").compute(), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("training", [train, train_lightgbm])
def test_other_columns_than_those_of_the_model_are_refused(client, training):
    frame, _ = table()
    params = PARAMS if training is train else OF_LIGHTGBM
    model = training(client, params, dd.from_pandas(frame[COLUMNS], npartitions=3), frame["y"], num_boost_round=2)
    for columns in (COLUMNS[::-1], COLUMNS[1:]):
        with pytest.raises(ValueError, match="feature names should match"):
            predict(client, model, dd.from_pandas(frame[columns], npartitions=3))
    with pytest.raises(ValueError, match=r"feature_names mismatch|columns of X are in another order"):
        predict(client, model["booster"], dd.from_pandas(frame[COLUMNS[::-1]], npartitions=3), kind="margin").compute()
    codes = frame[COLUMNS].assign(color=frame["color"].cat.codes)
    with pytest.raises(ValueError, match="'color' of X is categorical, and numbers came"):
        predict(client, model, dd.from_pandas(codes, npartitions=3)).compute()


def test_what_a_fitted_teacher_refuses_is_said_in_its_words(client):
    frame, _ = table()
    X, y = frame[COLUMNS[:8]], frame["y"].to_numpy()
    rows = dd.from_pandas(X, npartitions=3)
    for teacher, message in (
        (grbb_objective(X.iloc[:, :7], y, verbose=False).teacher_, "unseen at fit time:\n- h"),
        (grbb_objective(X, y, loss="softmax", verbose=False).teacher_, "fitted with the loss 'softmax'"),
    ):
        with pytest.raises(ValueError, match=message):
            train(client, PARAMS, rows, y, teacher=teacher)


def test_a_folder_is_that_of_the_client(client, tmp_path, monkeypatch):
    frame, _ = table(3)
    monkeypatch.chdir(tmp_path)
    X = dd.from_pandas(frame[COLUMNS], npartitions=3)
    model = train(client, PARAMS, X, frame["y"], num_boost_round=2, storage="store")
    assert model["booster"].num_boosted_rounds() == 2


def test_no_client_is_said_so(monkeypatch):
    monkeypatch.setattr("distributed.default_client", lambda: (_ for _ in ()).throw(ValueError("No clients found")))
    with pytest.raises(ValueError, match=r"There is no cluster: open one with distributed\.Client"):
        train(None, PARAMS, da.zeros((9, 2)), np.zeros(9))


OF_LIGHTGBM = {"num_leaves": 7, "min_data_in_leaf": 5, "verbosity": -1}


class TestLightGBM:
    @pytest.mark.parametrize("kind", ["frame", "array"])
    def test_two_classes(self, client, kind, tmp_path):
        frame, truth = table()
        numbers = frame[list("abdefgh")]
        rows = dd.from_pandas(numbers, npartitions=3)
        X = da.from_array(numbers.to_numpy(), chunks=(150, 7)) if kind == "array" else rows
        model = train_lightgbm(client, OF_LIGHTGBM, X, frame["y"].to_numpy(), num_boost_round=10)
        probability = predict(client, model, X, kind="probability").compute()
        model["booster"].save_model(tmp_path / "model.txt")
        loaded = lgb.Booster(model_file=tmp_path / "model.txt")
        assert_allclose(loaded.predict(numbers), probability[:, 1], rtol=0, atol=1e-12)
        obj = grbb_objective(numbers, frame["y"].to_numpy(), verbose=False)
        data = lgb.Dataset(numbers, obj.targets_)
        params = {**OF_LIGHTGBM, "objective": "cross_entropy", "boost_from_average": False}
        one = lgb.train(params, data, 10).predict(numbers)
        assert np.corrcoef(one, probability[:, 1])[0, 1] > 0.97  # bins are found apart
        assert np.mean(predict(client, model, X).compute() == truth) > 0.7
        assert_array_equal(
            predict(client, loaded, X, classes=model["classes"]).compute(), predict(client, model, X).compute()
        )
        with pytest.raises(ValueError, match="does not say what its classes are"):
            predict(client, loaded, X)
        with pytest.raises(ValueError, match=r"classes= has 3 classes, but the model has 2"):
            predict(client, loaded, X, classes=["high", "low", "middle"])
        if kind == "frame":
            with pytest.raises(ValueError, match=r"The columns of X are not those of the model: pass X\["):
                predict(client, loaded, rows.rename(columns={"a": "z"}), kind="margin")
        else:  # has no names
            assert_allclose(predict(client, loaded, rows, kind="probability").compute(), probability)

    def test_names_with_blanks(self, client):
        frame, _ = table()
        rows = dd.from_pandas(frame[list("abd")].rename(columns={"a": "the a"}), npartitions=3)
        model = train_lightgbm(client, OF_LIGHTGBM, rows, frame["y"].to_numpy(), num_boost_round=3)
        probability = predict(client, model["booster"], rows, kind="probability").compute()
        assert_allclose(model["booster"].predict(rows.compute()), probability[:, 1], rtol=0, atol=1e-12)

    @pytest.mark.parametrize("objective", ["binary", "regression"])
    def test_a_random_forest_from_elsewhere_predicts_with_the_mean_of_its_trees(self, client, objective):
        frame, truth = table()
        X = frame[list("abd")].to_numpy()
        forest = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5, "objective": objective, "verbosity": -1}
        booster = lgb.train(forest, lgb.Dataset(X, truth == "low"), 5)
        rows = da.from_array(X, chunks=(150, 3))
        kind = "class" if objective == "regression" else "probability"
        predicted = predict(client, booster, rows, kind=kind).compute()
        expected = booster.predict(X)
        assert_allclose(predicted if objective == "regression" else predicted[:, 1], expected, rtol=0, atol=1e-12)
        margin = predict(client, booster, rows, kind="margin").compute()
        assert_allclose(margin, booster.predict(X, raw_score=True), rtol=0, atol=1e-12)

    def test_several_classes_from_elsewhere_are_refused(self, client):
        frame, truth = table()
        X, y = frame[list("abd")].to_numpy(), np.arange(len(truth)) % 3
        booster = lgb.train({"objective": "multiclass", "num_class": 3, "verbosity": -1}, lgb.Dataset(X, y), 1)
        with pytest.raises(ValueError, match="of several classes is not predicted here"):
            predict(client, booster, da.from_array(X, chunks=(150, 3)), kind="margin")

    def test_categories_and_weights(self, client, parquet):
        frame, truth = table()
        lazy = parquet(frame)
        settings = {"num_boost_round": 10, "class_weight": "balanced"}
        model = train_lightgbm(client, OF_LIGHTGBM, lazy[COLUMNS], lazy["y"], **settings)
        probability = predict(client, model, lazy[COLUMNS], kind="probability").compute()
        assert_allclose(model["booster"].predict(frame[COLUMNS]), probability[:, 1], rtol=0, atol=1e-12)
        assert np.mean(predict(client, model, lazy[COLUMNS]).compute() == truth) > 0.8

    def test_regression(self, client):
        frame, _ = table()
        y = np.where(np.arange(N) < 60, frame["a"], np.nan)
        rows = dd.from_pandas(frame[list("abd")], npartitions=3)
        model = train_lightgbm(client, OF_LIGHTGBM, rows, y, num_boost_round=20, loss="squared_error")
        predicted = predict(client, model, rows).compute()
        assert_allclose(model["booster"].predict(frame[list("abd")]), predicted)
        assert np.corrcoef(predicted, frame["a"])[0, 1] > 0.9
        assert_array_equal(predict(client, model["booster"], rows).compute(), predicted)

    @pytest.mark.parametrize("rounds", [{"n_estimators": 3}, {"num_iterations": 3}])
    def test_rounds_among_the_parameters(self, client, rounds):
        frame, _ = table()
        rows = dd.from_pandas(frame[list("abd")], npartitions=3)
        model = train_lightgbm(client, OF_LIGHTGBM | rounds, rows, frame["y"].to_numpy())
        assert model["booster"].current_iteration() == 3

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"costs": {"a": 1.0}}, "silently returns corrupted models"),
            ({"params": {"cegb_tradeoff": 1.0}}, "silently returns corrupted models"),
            ({"rule": "corrected"}, "takes fixed targets"),
            ({"params": {"objective": "binary"}}, "the loss is 'cross_entropy'"),
            ({"params": {"application": "binary"}}, "application='binary', but the loss is 'cross_entropy'"),
            ({"params": {"scale_pos_weight": 3.0}}, "pass class_weight="),
            ({"params": {"boosting": "rf"}}, "boosting='rf' is not for many machines"),
            ({"params": {"unbalance": True}}, "pass class_weight="),
            ({"params": {"class_weight": "balanced"}}, "pass class_weight="),
            ({"n_classes": 3}, "takes no soft labels"),
        ],
        ids=str,
    )
    def test_what_it_cannot_do_is_refused_with_the_reason(self, client, given, message):
        given = {"params": OF_LIGHTGBM, **given}
        frame, _ = table(given.pop("n_classes", 2))
        rows = dd.from_pandas(frame, npartitions=3)
        with pytest.raises(ValueError, match=message):
            train_lightgbm(client, X=rows[COLUMNS], y=rows["y"], **given)
