"""What becomes of a trained model outside of the package; each test is a cell of the table in docs/deployment.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from numpy.typing import NDArray
from sklearn.datasets import load_wine, make_moons

import grbb_ext
from grbb_ext import Forest, GRBBClassifier, GRBBRegressor

PAGE = Path(__file__).resolve().parents[1] / "docs" / "deployment.md"


class Case(NamedTuple):
    """A trained model, its predictions where it was trained, and rows in single precision, which all exporters take."""

    library: str
    task: str
    booster: Any
    file: Path
    X: NDArray[np.float32]
    #: Probabilities, or values.
    expected: NDArray[Any]

    @property
    def raw(self) -> NDArray[Any]:
        """Raw scores, by the library itself."""
        if self.library == "XGBoost":
            return np.asarray(self.booster.predict(xgb.DMatrix(self.X), output_margin=True))
        return np.asarray(self.booster.predict(self.X, raw_score=True))

    def same(self, found: Any) -> None:
        """Compare predictions, of the second of two classes or of each class, with those of grbb_ext."""
        values = np.asarray(found, dtype=np.float64)
        expected = self.expected[:, 1] if self.task == "two classes" and values.ndim == 1 else self.expected
        np.testing.assert_allclose(values.reshape(expected.shape), expected, rtol=1e-5, atol=1e-6)


WRAPPED: dict[tuple[str, bool], type] = {
    ("XGBoost", True): xgb.XGBRegressor,
    ("XGBoost", False): xgb.XGBClassifier,
    ("LightGBM", True): lgb.LGBMRegressor,
    ("LightGBM", False): lgb.LGBMClassifier,
}


def rows(task: str) -> tuple[NDArray[np.float32], NDArray[Any]]:
    if task == "two classes":
        X, truth = make_moons(300, noise=0.2, random_state=0)
    elif task == "several classes":
        X, truth = load_wine(return_X_y=True)
    else:
        X = np.random.default_rng(0).uniform(-2, 2, size=(300, 3))
        truth = 5 + np.sin(X[:, 0]) + X[:, 1]
    marker = np.nan if task == "regression" else -1
    return X.astype(np.float32), np.where(np.arange(len(X)) % 5 == 0, truth, marker)


def on_one_machine(library: str, task: str, folder: Path, _: pytest.FixtureRequest) -> Case:
    """Train an estimator, save it, and name the file that the library reads."""
    X, y = rows(task)
    regression = task == "regression"
    wrapped = WRAPPED[library, regression](n_estimators=15, n_jobs=1)
    # By the graph alone, here and below: what the teacher is plays no part.
    model = (GRBBRegressor if regression else GRBBClassifier)(wrapped, teacher="graph").fit(X, y)
    model.save(folder / "model")
    expected = np.asarray(model.predict(X) if regression else model.predict_proba(X))
    file = folder / "model" / ("model.ubj" if library == "XGBoost" else "model.txt")
    return Case(library, task, model.booster_, file, X, expected)


def on_dask(library: str, task: str, folder: Path, request: pytest.FixtureRequest) -> Case:
    """Train on two workers, and predict there."""
    from dask import array as da

    from grbb_ext.adapters import dask as ours

    client = request.getfixturevalue("client")
    X, y = rows(task)
    lazy = da.from_array(X, chunks=(60, X.shape[1]))
    settings: dict[str, Any] = {"num_boost_round": 15, "teacher": "graph"}
    if task == "regression":
        settings["loss"] = "squared_error"
    if library == "XGBoost":
        model, file = ours.train(client, {"max_depth": 4}, lazy, y, **settings), folder / "model.ubj"
    else:
        model, file = ours.train_lightgbm(client, {"verbosity": -1}, lazy, y, **settings), folder / "model.txt"
    expected = ours.predict(client, model, lazy, kind="margin" if task == "regression" else "probability").compute()
    model["booster"].save_model(file)
    return Case(library, task, model["booster"], file, X, expected)


def on_spark(library: str, task: str, folder: Path, request: pytest.FixtureRequest) -> Case:
    """Teach rows in Spark, train ``xgboost.spark`` as its page says, and predict there."""
    if OLD_WRAPPERS:
        pytest.skip(OLD_WRAPPERS)
    spark = request.getfixturevalue("spark")
    from pyspark.ml.feature import VectorAssembler
    from pyspark.sql import functions as sql
    from xgboost.spark import SparkXGBClassifier, SparkXGBRegressor

    from grbb_ext.adapters.spark import fit_teacher, teach

    X, y = rows(task)
    names = [f"x{j}" for j in range(X.shape[1])]
    frame = spark.createDataFrame(pd.DataFrame(X.astype(np.float64), columns=names).assign(y=y, id=np.arange(len(X))))
    loss = {"loss": "squared_error"} if task == "regression" else {}
    taught = teach(frame, fit_teacher(frame, "y", names, teacher="graph", **loss), "y")
    taught = VectorAssembler(inputCols=names, outputCol="vector").transform(taught)
    settings: dict[str, Any] = {"features_col": "vector", "n_estimators": 15, "max_depth": 4}
    if task == "several classes":
        copies = taught.select("*", sql.posexplode("q").alias("class", "weight"))
        model = SparkXGBClassifier(label_col="class", weight_col="weight", **settings).fit(copies)
        column = "probability"
    else:
        objective = {"objective": "binary:logistic", "base_score": 0.5} if task == "two classes" else {}
        model = SparkXGBRegressor(label_col="q", **objective, **settings).fit(taught)
        column = "prediction"
    found = model.transform(taught.drop("q")).select("id", column).toPandas().sort_values("id")[column]
    expected = np.array([getattr(value, "toArray", lambda value=value: value)() for value in found])
    if task == "two classes":
        expected = np.column_stack([1 - expected, expected])
    model.get_booster().save_model(folder / "model.ubj")
    return Case(library, task, model.get_booster(), folder / "model.ubj", X, expected)


#: Where a model may be trained.
TRAINED: dict[str, Callable[[str, str, Path, pytest.FixtureRequest], Case]] = {
    "one machine": on_one_machine,
    "Dask": on_dask,
    "Spark": on_spark,
}
TASKS = ("two classes", "several classes", "regression")


LIBRARIES = ("XGBoost", "LightGBM")
#: What cannot be trained, and what says so.
NOT_TRAINED = {("LightGBM", "several classes", "Dask"): "refused", **{("LightGBM", t, "Spark"): "" for t in TASKS}}
OLD_WRAPPERS = (
    "the wrappers of XGBoost before 2.1.4 do not go with scikit-learn 1.6 or later"
    if tuple(map(int, xgb.__version__.split(".")[:3])) < (2, 1, 4)
    else ""
)


def saved_and_loaded(case: Case) -> None:
    loaded = grbb_ext.load(case.file.parent)
    case.same(loaded.predict(case.X) if case.task == "regression" else loaded.predict_proba(case.X))


def plain_booster(case: Case) -> None:
    if case.library == "XGBoost":
        case.same(xgb.Booster(model_file=case.file).predict(xgb.DMatrix(case.X)))
    else:
        case.same(lgb.Booster(model_file=case.file).predict(case.X))


def wrapper(case: Case) -> None:
    if OLD_WRAPPERS:
        pytest.skip(OLD_WRAPPERS)
    wrapped: Any = WRAPPED["XGBoost", case.task == "regression"]()
    wrapped.load_model(case.file)
    case.same(wrapped.predict(case.X) if case.task == "regression" else wrapped.predict_proba(case.X))


def forest(case: Case) -> None:
    np.testing.assert_array_equal(Forest.from_file(case.file).predict(case.X), case.raw)


def shap(case: Case) -> None:
    explainer = pytest.importorskip("shap", reason="shap is not installed").TreeExplainer(case.booster)
    explanation = explainer(case.X)
    np.testing.assert_allclose(explanation.values.sum(axis=1) + explanation.base_values, case.raw, atol=1e-5)
    # They explain the model: a column that no tree reads has no part.
    unread = np.setdiff1d(np.arange(case.X.shape[1]), Forest.from_file(case.file).features_used())
    assert not explanation.values[:, unread].any()


def treelite(case: Case) -> None:
    treelite = pytest.importorskip("treelite", reason="treelite is not installed")
    if case.library == "XGBoost":
        model = treelite.frontend.load_xgboost_model(case.file, format_choice="ubjson")
    else:
        model = treelite.frontend.load_lightgbm_model(case.file)
    case.same(np.squeeze(treelite.gtil.predict(model, case.X)))


def onnx(case: Case) -> None:
    onnxmltools = pytest.importorskip("onnxmltools", reason="onnxmltools is not installed")
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    from onnxmltools.convert.common.data_types import FloatTensorType

    types = [("X", FloatTensorType([None, case.X.shape[1]]))]
    if case.library == "XGBoost":
        booster = xgb.Booster(model_file=case.file)
        model = onnxmltools.convert_xgboost(booster, initial_types=types, target_opset=15)
    else:
        booster = lgb.Booster(model_file=case.file)
        model = onnxmltools.convert_lightgbm(booster, initial_types=types, target_opset=15, zipmap=False)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # the converter declares labels of one row
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    case.same(session.run(None, {"X": case.X})[-1])


#: Columns of the table, with the libraries that they are for.
ROUTES: dict[str, tuple[Callable[[Case], None], tuple[str, ...]]] = {
    "`save`, `grbb_ext.load`": (saved_and_loaded, LIBRARIES),
    "plain `Booster.predict`": (plain_booster, LIBRARIES),
    "`XGBClassifier`, `XGBRegressor`": (wrapper, ("XGBoost",)),
    "`Forest.from_file`": (forest, LIBRARIES),
    "SHAP": (shap, LIBRARIES),
    "treelite": (treelite, LIBRARIES),
    "ONNX": (onnx, LIBRARIES),
}


def is_tested(library: str, task: str, where: str, route: str) -> bool:
    """Tell whether there is such a cell; ``save`` is a method of the estimators."""
    check, libraries = ROUTES[route]
    trained = (library, task, where) not in NOT_TRAINED
    return trained and library in libraries and (check is not saved_and_loaded or where == "one machine")


def table() -> str:
    """Write the table: a cell says "equal" where there is a test of it."""
    lines = [f"| library | task | trained on | {' | '.join(ROUTES)} |", "|---" * (3 + len(ROUTES)) + "|"]
    for library, task, where in product(LIBRARIES, TASKS, TRAINED):
        said = NOT_TRAINED.get((library, task, where), "equal")
        cells = ["equal" if is_tested(library, task, where, route) else "" for route in ROUTES]
        if said == "refused":
            cells[0] = said
        if said:
            lines.append(f"| {library} | {task} | {where} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def trained(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Callable[[str, str, str], Case]:
    @cache
    def train(library: str, task: str, where: str) -> Case:
        return TRAINED[where](library, task, tmp_path_factory.mktemp("model"), request)

    return train


def cells() -> Iterator[Any]:
    for cell in product(LIBRARIES, TASKS, TRAINED, ROUTES):
        if is_tested(*cell):
            # What shares a cluster runs in one process.
            yield pytest.param(*cell, marks=pytest.mark.xdist_group(cell[2].lower()))


# Dask and Spark warn of their own affairs; our own warnings have tests of their own.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("library", "task", "where", "route"), cells())
def test_models_predict_the_same_elsewhere(trained, library, task, where, route):
    check, _ = ROUTES[route]
    check(trained(library, task, where))


@pytest.mark.xdist_group("dask")
def test_several_classes_of_lightgbm_on_dask_are_refused(trained):
    with pytest.raises(ValueError, match="takes no soft labels"):
        trained("LightGBM", "several classes", "Dask")


def test_the_table_of_the_docs_is_that_of_the_tests():
    assert table() in PAGE.read_text(encoding="utf-8"), f"The table in {PAGE.name} should be:\n\n{table()}"
