"""What becomes of a trained model outside of the package; each test is a cell of the table in docs/deployment.md."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from numpy.typing import NDArray
from sklearn.datasets import load_wine, make_moons

import grbb_ext
from grbb_ext import Forest, GRBBClassifier, GRBBRegressor

PAGE = Path(__file__).resolve().parents[1] / "docs" / "deployment.md"


class Case(NamedTuple):
    """A trained model, its file, and rows in single precision, which all exporters take."""

    library: str
    task: str
    model: Any
    file: Path
    X: NDArray[np.float32]

    @property
    def expected(self) -> NDArray[Any]:
        """What grbb_ext predicts: probabilities, or values."""
        return np.asarray(self.model.predict(self.X) if self.task == "regression" else self.model.predict_proba(self.X))

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


def on_one_machine(library: str, task: str, folder: Path) -> Case:
    """Train an estimator, save it, and name the file that the library reads."""
    X, y = rows(task)
    regression = task == "regression"
    wrapped = WRAPPED[library, regression](n_estimators=15, n_jobs=1)
    # By the graph alone: what the teacher is plays no part here.
    model = (GRBBRegressor if regression else GRBBClassifier)(wrapped, teacher="graph").fit(X, y)
    model.save(folder / "model")
    return Case(library, task, model, folder / "model" / ("model.ubj" if library == "XGBoost" else "model.txt"), X)


#: Where a model may be trained: rows of the table, each for both libraries and three tasks.
TRAINED: dict[str, Callable[[str, str, Path], Case]] = {"one machine": on_one_machine}
TASKS = ("two classes", "several classes", "regression")


def saved_and_loaded(case: Case) -> None:
    loaded = grbb_ext.load(case.file.parent)
    case.same(loaded.predict(case.X) if case.task == "regression" else loaded.predict_proba(case.X))


def plain_booster(case: Case) -> None:
    if case.library == "XGBoost":
        case.same(xgb.Booster(model_file=case.file).predict(xgb.DMatrix(case.X)))
    else:
        case.same(lgb.Booster(model_file=case.file).predict(case.X))


def wrapper(case: Case) -> None:
    if tuple(map(int, xgb.__version__.split(".")[:3])) < (2, 1, 4):
        pytest.skip("XGBClassifier and XGBRegressor of XGBoost before 2.1.4 cannot load with scikit-learn 1.6 or later")
    wrapped: Any = WRAPPED["XGBoost", case.task == "regression"]()
    wrapped.load_model(case.file)
    case.same(wrapped.predict(case.X) if case.task == "regression" else wrapped.predict_proba(case.X))


def forest(case: Case) -> None:
    raw = case.model.predict(case.X) if case.task == "regression" else case.model.decision_function(case.X)
    np.testing.assert_array_equal(Forest.from_file(case.file).predict(case.X), raw)


def shap(case: Case) -> None:
    explainer = pytest.importorskip("shap", reason="shap is not installed").TreeExplainer(case.model.booster_)
    explanation = explainer(case.X)
    raw = case.model.forest_.predict(case.X)
    np.testing.assert_allclose(explanation.values.sum(axis=1) + explanation.base_values, raw, atol=1e-5)
    # They explain the model: a column that no tree reads has no part.
    unread = np.setdiff1d(np.arange(case.X.shape[1]), case.model.forest_.features_used())
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
    "`save`, `grbb_ext.load`": (saved_and_loaded, ("XGBoost", "LightGBM")),
    "plain `Booster.predict`": (plain_booster, ("XGBoost", "LightGBM")),
    "`XGBClassifier`, `XGBRegressor`": (wrapper, ("XGBoost",)),
    "`Forest.from_file`": (forest, ("XGBoost", "LightGBM")),
    "SHAP": (shap, ("XGBoost", "LightGBM")),
    "treelite": (treelite, ("XGBoost", "LightGBM")),
    "ONNX": (onnx, ("XGBoost", "LightGBM")),
}
LIBRARIES = ("XGBoost", "LightGBM")


def table() -> str:
    """Write the table: a cell says "equal" where there is a test of it."""
    lines = [f"| library | task | trained on | {' | '.join(ROUTES)} |", "|---" * (3 + len(ROUTES)) + "|"]
    for library in LIBRARIES:
        for task in TASKS:
            for where in TRAINED:
                cells = ["equal" if library in libraries else "" for _, libraries in ROUTES.values()]
                lines.append(f"| {library} | {task} | {where} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str, str], Case]:
    cases: dict[tuple[str, str, str], Case] = {}

    def train(library: str, task: str, where: str) -> Case:
        key = library, task, where
        if key not in cases:
            cases[key] = TRAINED[where](library, task, tmp_path_factory.mktemp("model"))
        return cases[key]

    return train


@pytest.mark.parametrize(("library", "route"), [(name, route) for route in ROUTES for name in ROUTES[route][1]])
@pytest.mark.parametrize("where", TRAINED)
@pytest.mark.parametrize("task", TASKS)
def test_models_predict_the_same_elsewhere(trained, library, task, where, route):
    check, _ = ROUTES[route]
    check(trained(library, task, where))


def test_the_table_of_the_docs_is_that_of_the_tests():
    assert table() in PAGE.read_text(encoding="utf-8"), f"The table in {PAGE.name} should be:\n\n{table()}"
