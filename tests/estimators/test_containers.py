"""Arrays, sparse matrices, and frames of pandas and polars; names, categories, missing values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import xgboost as xgb

from grbb_ext import GRBBClassifier, SharedGraph, grbb_objective


@pytest.fixture
def table():
    """A pandas frame with a category, a nullable boolean and integer, and holes; and labels of a fifth of the rows."""
    rng = np.random.default_rng(0)
    color = rng.choice(["red", "green", "blue"], 200)
    size = rng.normal(size=200)
    truth = np.where((color == "red") ^ (size > 0), "yes", "no")
    frame = pd.DataFrame(
        {
            "size": np.where(np.arange(200) % 9 == 0, np.nan, size),
            "color": pd.Categorical(color),
            "new": pd.array(rng.random(200) < 0.5, dtype="boolean"),
            "count": pd.array(rng.integers(0, 5, 200), dtype="Int64"),
        }
    )
    frame.loc[3, "color"] = np.nan
    frame.loc[4, "new"] = pd.NA
    frame.loc[5, "count"] = pd.NA
    return frame, np.where(np.arange(200) < 60, truth, None)


def _polars(frame: pd.DataFrame, kind) -> pl.DataFrame:
    columns = {name: [None if pd.isna(value) else value for value in frame[name].tolist()] for name in frame.columns}
    return pl.DataFrame(columns).with_columns(pl.col("color").cast(kind))


def _rows(frame) -> list:
    return frame.rows() if isinstance(frame, pl.DataFrame) else frame.to_numpy().tolist()


def test_pandas(classifier, library, table):
    frame, y = table
    model = GRBBClassifier(classifier()).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["size", "color", "new", "count"]
    names = model.booster_.feature_names if library == "xgboost" else model.booster_.feature_name()
    assert names == ["size", "color", "new", "count"]
    assert model.score(frame, y) > 0.85
    # Splits on colors are sets of categories, i.e. the booster knows the type.
    assert (model.forest_.category_set >= 0).any()
    np.testing.assert_array_equal(model.forest_.predict(frame), model.decision_function(frame))
    data = xgb.DMatrix(frame, enable_categorical=True) if library == "xgboost" else frame
    np.testing.assert_allclose(model.booster_.predict(data), model.predict_proba(frame)[:, 1], rtol=1e-5)


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["blue", "green", "red"])], ids=["Categorical", "Enum"])
def test_polars_is_the_same_as_pandas(classifier, table, kind):
    frame, y = table
    other = _polars(frame, kind)
    model, expected = (
        GRBBClassifier(classifier(), teacher="graph").fit(other, y),
        GRBBClassifier(classifier(), teacher="graph").fit(frame, y),
    )
    assert model.feature_names_in_.tolist() == ["size", "color", "new", "count"]
    np.testing.assert_array_equal(model.predict_proba(other), expected.predict_proba(frame))
    np.testing.assert_array_equal(model.predict_proba(frame), expected.predict_proba(frame))
    with pytest.raises(TypeError, match=r"collect\(\)"):
        model.predict(other.lazy())


def test_categories_keep_their_codes_in_other_frames(classifier, table):
    frame, y = table
    model = GRBBClassifier(classifier(), teacher="graph").fit(frame, y)
    expected = model.predict_proba(frame)
    recoded = frame.assign(color=frame["color"].cat.reorder_categories(["red", "green", "blue"]))
    as_text = frame.assign(color=frame["color"].astype(object))
    np.testing.assert_array_equal(model.predict_proba(recoded), expected)
    np.testing.assert_array_equal(model.predict_proba(as_text), expected)
    one = frame.iloc[[0]].copy()
    one["color"] = one["color"].cat.remove_unused_categories()
    np.testing.assert_array_equal(model.predict_proba(one), expected[:1])


def test_a_new_category_is_missing_for_lightgbm_and_refused_by_xgboost(classifier, library, table):
    frame, y = table
    model = GRBBClassifier(classifier(), teacher="graph").fit(frame, y)
    strange = frame.iloc[:2].assign(color=pd.Categorical(["mauve", "red"]))
    if library == "xgboost":
        with pytest.raises(ValueError, match=r"'color'.*never saw.*mauve"):
            model.predict(strange)
    else:
        missing = frame.iloc[:2].assign(color=pd.Categorical([np.nan, "red"], categories=["blue", "green", "red"]))
        np.testing.assert_array_equal(model.predict_proba(strange), model.predict_proba(missing))


def test_other_columns_or_another_order_are_refused(classifier, table):
    frame, y = table
    model = GRBBClassifier(classifier(), teacher="graph").fit(frame, y)
    with pytest.raises(ValueError, match="order"):
        model.predict(frame[["color", "size", "new", "count"]])
    with pytest.raises(ValueError, match="unseen at fit time"):
        model.predict(frame.rename(columns={"size": "length"}))
    with pytest.raises(ValueError, match="missing"):
        model.predict(frame.drop(columns="size"))


def test_dates_are_refused_by_name(classifier, table):
    frame, y = table
    with pytest.raises(ValueError, match="Column 'day' of X holds dates"):
        GRBBClassifier(classifier(), teacher="graph").fit(frame.assign(day=pd.Timestamp("2020-01-01")), y)


@pytest.mark.parametrize("asked", ["from_dtype", ["color"]])
def test_text_is_a_category(classifier, table, asked):
    frame, y = table
    text = frame.assign(color=frame["color"].astype(object))
    model = GRBBClassifier(classifier(), teacher="graph", categorical_features=asked).fit(text, y)
    expected = GRBBClassifier(classifier(), teacher="graph").fit(frame, y)
    np.testing.assert_array_equal(model.predict_proba(text), expected.predict_proba(frame))


@pytest.mark.parametrize("how", [[1], [False, True, False, False], "booster"])
def test_categories_of_an_array_are_codes(classifier, library, table, how):
    frame, y = table
    codes = frame.assign(color=frame["color"].cat.codes.replace(-1, np.nan)).to_numpy(dtype=float, na_value=np.nan)
    expected = GRBBClassifier(classifier(), teacher="graph").fit(frame, y).predict_proba(frame)
    settings = {}
    if how == "booster":
        settings = {"categorical_feature": [1]} if library == "lightgbm" else {"feature_types": ["q", "c", "q", "q"]}
        how = "from_dtype"
    model = GRBBClassifier(classifier(**settings), teacher="graph", categorical_features=how).fit(codes, y)
    np.testing.assert_array_equal(model.predict_proba(codes), expected)
    codes[0, 1] = -2
    with pytest.raises(ValueError, match="Column 1 of X is categorical"):
        GRBBClassifier(classifier(), teacher="graph", categorical_features=[1]).fit(codes, y)


@pytest.mark.parametrize("how", [[1], np.array([1]), pd.Index([1]), np.array([False, True, False])])
def test_categories_of_the_wrapper_and_of_the_booster_add_up(classifier, library, how):
    X = np.random.default_rng(0).integers(0, 4, size=(60, 3)).astype(float)
    settings = {"categorical_feature": [0]} if library == "lightgbm" else {"feature_types": ["c", "q", "q"]}
    model = GRBBClassifier(classifier(**settings), categorical_features=how)
    assert model.read_rows(X).schema.categorical == (0, 1)


def test_names_that_boosters_do_not_take(classifier, table):
    frame, y = table
    odd = frame.rename(columns={"size": "size [cm]", "new": "new, or not: a {flag}"})
    model = GRBBClassifier(classifier(), teacher="graph", feature_costs=dict.fromkeys(odd.columns, 1.0), budget=2).fit(
        odd, y
    )
    assert model.feature_names_in_.tolist() == odd.columns.tolist()
    assert set(model.paid_) <= set(odd.columns)
    assert len(model.paid_) == 2
    np.testing.assert_array_equal(model.forest_.predict(odd), model.decision_function(odd))


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_sparse(classifier, library, kind):
    rng = np.random.default_rng(0)
    dense = rng.poisson(0.3, size=(150, 20)).astype(float)
    truth = (dense[:, 0] > 0).astype(int)
    y = np.where(np.arange(150) < 50, truth, -1)
    X = kind(dense)
    model = GRBBClassifier(classifier(min_child_weight=0.01), teacher="graph").fit(X, y)
    np.testing.assert_array_equal(model.forest_.predict(X), model.decision_function(X))
    # What a sparse matrix leaves out is missing for XGBoost and 0 for LightGBM, as in the libraries.
    same = np.where(dense == 0, np.nan, dense) if library == "xgboost" else dense
    np.testing.assert_array_equal(model.predict_proba(X), model.predict_proba(same))
    assert model.score(X, y) > 0.9


def test_one_graph_for_parts_of_a_frame(classifier, table):
    frame, y = table
    part = np.random.default_rng(1).permutation(200)[:120]
    for X, take in ((frame, lambda X, rows: X.iloc[rows]), (_polars(frame, pl.Categorical), lambda X, rows: X[rows])):
        shared = SharedGraph(X, "knn")
        found = shared.rows(take(X, part))
        # Rows that are equal may change places, and only these.
        assert np.unique(found).size == 120
        assert [repr(row) for row in _rows(take(X, found))] == [repr(row) for row in _rows(take(X, part))]
        model = GRBBClassifier(classifier(), teacher="graph", graph=shared).fit(take(X, part), y[part])
        assert (model.graph_ != shared.prepared(X).W[found][:, found]).nnz == 0


def test_columns_without_names(classifier, moons):
    X, _, y = moons
    model = GRBBClassifier(classifier(), teacher="graph", feature_costs={0: 1.0, 1: 2.0}, mu=0.0).fit(
        pd.DataFrame(X), y
    )
    assert not hasattr(model, "feature_names_in_")
    assert model.paid_ == (0, 1)


def test_an_index_in_another_order_is_said(classifier, moons):
    X, _, y = moons
    rows, labels = pd.DataFrame(X, columns=["a", "b"]), pd.Series(y)
    model = GRBBClassifier(classifier(), teacher="forest")
    with pytest.warns(UserWarning, match="paired by their place"):
        model.fit(rows, labels.iloc[::-1])
    with pytest.warns(UserWarning, match="paired by their place"):
        grbb_objective(rows, labels.iloc[::-1], teacher="forest")
    for same in (labels, labels.to_numpy(), labels.set_axis(np.arange(200) + 1000)):
        model.fit(rows, same)
    weight = pd.Series(np.arange(200.0))
    with pytest.warns(UserWarning, match=r"sample_weight has the index of X.*sample_weight\.loc"):
        model.fit(rows, labels, sample_weight=weight.iloc[::-1])
    with pytest.warns(UserWarning, match=r"sample_weight has the index of X.*sample_weight\.loc"):
        grbb_objective(rows, labels, teacher="forest", sample_weight=weight.iloc[::-1])
    with pytest.warns(UserWarning, match="y has the index of X"):
        model.fit(rows, labels, eval_set=[(rows, labels.iloc[::-1])])
    with pytest.warns(UserWarning, match="y has the index of X"):
        model.score(rows, labels.iloc[::-1])
    model.fit(rows, labels, sample_weight=weight, eval_set=[(rows, labels)]).score(rows, labels, weight)
