"""A real Spark on two threads: its rows get the targets of one machine, and xgboost.spark trains on them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from numpy.testing import assert_allclose, assert_array_equal

from grbb_ext import RefinedGraph, TableGraph, Targets, grbb_objective

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'grbb_ext[spark]'")

from pyspark.ml.feature import VectorAssembler
from pyspark.sql import functions as sql
from xgboost.spark import SparkXGBClassifier, SparkXGBRegressor

from grbb_ext.adapters.spark import fit_teacher, teach

pytestmark = [
    pytest.mark.xdist_group("spark"),
    # Spark and its XGBoost warn of versions of pandas, and leave sockets open; our own warnings have their own tests.
    pytest.mark.filterwarnings("ignore"),
]

N, N_LABELED = 400, 80
COLUMNS = ["a", "b", "c", "color"]


def table(kind):
    """Return rows with an id, text and a missing value, and y: text, numbers or, for regression, floats."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.integers(0, 30, (N, 3)).astype(np.float64), columns=list("abc"))
    frame["color"] = random.choice(["red", "green"], N)
    frame.loc[5, "color"] = None
    score = frame["a"] + 6 * (frame["color"] == "red")
    labeled = np.arange(N) < N_LABELED
    if kind == "regression":
        frame["y"] = np.where(labeled, score, np.nan)
    elif kind == "two classes":
        frame["y"] = pd.Series(np.where(labeled, np.where(score > 17, "yes", "no"), None), dtype=object)
    else:
        frame["y"] = np.where(labeled, np.digitize(score, [12, 22]), -1)
    frame["id"] = np.arange(N)
    return frame, score


def spread(spark, frame):
    """Return the rows of a frame in four partitions of Spark."""
    return spark.createDataFrame(frame.astype(object).where(frame.notna(), None)).repartition(4)


def collected(rows):
    return rows.toPandas().sort_values("id", ignore_index=True)


@pytest.mark.parametrize("kind", ["two classes", "several", "regression"])
def test_rows_get_the_targets_of_the_teacher_and_keep_their_labels(spark, kind):
    frame, _ = table(kind)
    rows = spread(spark, frame)
    settings = {"loss": "squared_error"} if kind == "regression" else {}
    teacher = fit_teacher(rows, "y", COLUMNS, **settings)
    taught = collected(teach(rows, teacher, "y"))
    q = np.array(taught["q"].tolist())
    obj = grbb_objective(frame[COLUMNS], frame["y"].to_numpy(), **settings)
    assert_array_equal(q[:N_LABELED], obj.labeled_targets_)
    expected = teacher.predict(frame[COLUMNS])
    assert_allclose(q[N_LABELED:], expected[N_LABELED:], rtol=0, atol=1e-9)
    assert teacher.labels.classes is None or teacher.labels.classes.tolist() == obj.classes_.tolist()
    assert list(taught.columns) == [*frame.columns, "q"]
    # Without the column of labels nothing is kept, as for rows that come later.
    later = collected(teach(rows.drop("y"), teacher))
    assert_allclose(np.array(later["q"].tolist()), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("graph", [TableGraph(max_nodes=160), RefinedGraph(max_nodes=160)])
def test_the_sample_has_as_many_rows_as_the_graph_may_have(spark, graph):
    frame, _ = table("two classes")
    teacher = fit_teacher(spread(spark, frame), "y", COLUMNS, graph=graph)
    assert 100 < teacher.labels.n_rows < 230
    assert teacher.labels.labeled.size == N_LABELED


WRAPPERS_WORK = pytest.mark.skipif(
    tuple(int(part) for part in xgb.__version__.split(".")[:3]) < (2, 1, 4),
    reason="the wrappers of XGBoost before 2.1.4, xgboost.spark among them, do not go with scikit-learn 1.6 or later",
)


def vectors(frame):
    """Put the columns into one: XGBoost 2.1 takes a list of columns on a GPU alone."""
    return VectorAssembler(inputCols=list("abc"), outputCol="vector", handleInvalid="keep").transform(frame)


@WRAPPERS_WORK
def test_two_classes_to_a_model_that_predicts_probabilities(spark, tmp_path):
    frame, score = table("two classes")
    rows = spread(spark, frame)
    taught = vectors(teach(rows, fit_teacher(rows, "y", COLUMNS), "y"))
    settings = {"label_col": "q", "features_col": "vector", "num_workers": 2, "n_estimators": 20}
    model = SparkXGBRegressor(objective="binary:logistic", base_score=0.5, max_depth=3, **settings).fit(taught)
    probability = collected(model.transform(taught))["prediction"].to_numpy()
    model.get_booster().save_model(tmp_path / "model.json")
    plain = xgb.Booster(model_file=tmp_path / "model.json")
    assert_allclose(plain.predict(xgb.DMatrix(frame[list("abc")].to_numpy())), probability, rtol=0, atol=1e-6)
    assert np.mean((probability > 0.5) == (score > 17)) > 0.8


@WRAPPERS_WORK
def test_several_classes_by_weighted_copies(spark):
    frame, score = table("several")
    rows = spread(spark, frame)
    taught = vectors(teach(rows, fit_teacher(rows, "y", COLUMNS), "y"))
    copies = taught.select("*", sql.posexplode("q").alias("class", "weight"))
    settings = {"features_col": "vector", "num_workers": 1, "n_estimators": 15, "max_depth": 3}
    model = SparkXGBClassifier(label_col="class", weight_col="weight", **settings).fit(copies)
    predicted = collected(model.transform(taught.drop("q")))
    assert np.mean(predicted["prediction"] == np.digitize(score, [12, 22])) > 0.75
    assert_allclose(np.array([np.sum(p.toArray()) for p in predicted["probability"]]), 1.0, atol=1e-5)


def test_truth_values_are_classes(spark):
    frame, _ = table("two classes")
    rows = spread(spark, frame).withColumn("y", sql.col("y") == "yes")
    teacher = fit_teacher(rows, "y", COLUMNS)
    assert teacher.labels.classes.tolist() == [False, True]
    taught = collected(teach(rows, teacher, "y"))
    assert_array_equal(taught["q"][:N_LABELED], frame["y"][:N_LABELED] == "yes")
    with pytest.raises(ValueError, match="have a column 'b' already"):
        teach(rows, teacher, "y", target_col="b")


def test_decimals_are_classes(spark):
    frame, _ = table("several")
    rows = spread(spark, frame).withColumn("y", sql.col("y").cast("decimal(10,0)"))
    teacher = fit_teacher(rows, "y", COLUMNS)
    assert teacher.labels.classes.tolist() == [0, 1, 2]
    q = np.array(collected(teach(rows, teacher, "y"))["q"].tolist())
    assert_array_equal(q[:N_LABELED], np.eye(3)[frame["y"][:N_LABELED]])


def test_the_labels_are_no_feature(spark):
    frame, _ = table("two classes")
    rows = spread(spark, frame)
    with pytest.raises(ValueError, match="'y' is the column of labels, and one of features="):
        fit_teacher(rows, "y", [*COLUMNS, "y"])


@pytest.mark.parametrize("weights", [{"class_weight": "balanced"}, {"sample_weight": np.ones(N)}], ids=list)
def test_weights_are_for_the_booster(spark, weights):
    frame, _ = table("two classes")
    with pytest.raises(ValueError, match="weigh the rows by weight_col"):
        fit_teacher(spread(spark, frame), "y", COLUMNS, **weights)


@pytest.mark.parametrize(
    "settings",
    [{"rule": "paper"}, {"graph": np.zeros((2, 2))}, {"rule": Targets(hard=True)}, {"lam": 0.1}, {"preset": "paper"}],
    ids=str,
)
def test_what_has_no_targets_for_any_row_is_refused(spark, settings):
    frame, _ = table("two classes")
    with pytest.raises(ValueError, match="fitted to rows: use rule='targets'"):
        fit_teacher(spread(spark, frame), "y", COLUMNS, **settings)
