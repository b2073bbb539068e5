"""Models that travel: saved without pickle, loaded with the same bits, and what is refused."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.exceptions import NotFittedError
from xgboost import XGBClassifier, XGBRegressor
from xgboost.callback import TrainingCallback

import grbb_ext
from grbb_ext import FeatureCosts, Forest, GRBBClassifier, GRBBRegressor, ModelFileError, RefinedGraph
from grbb_ext.persistence import read_folder, sha256

SOURCES = FeatureCosts(
    needs={"a": ["draw", "a"], "b": ["draw"], "c": ["scan"]}, prices={"draw": 1.0, "a": 0.5, "scan": 4.0}
)


def rows(n=120):
    """Three named columns; three classes by thirds of the first; every fourth row labelled."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(size=(n, 3)), columns=["a", "b", "c"])
    code = (3 * X["a"]).astype(int).to_numpy()
    return X, code, np.arange(n) % 4 == 0


def same_bits(left, right):
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()


@pytest.fixture
def model(classifier):
    X, code, labeled = rows()
    y = np.where(labeled, np.array(["low", "mid", "high"])[code], "?")
    return GRBBClassifier(
        classifier(),
        graph=RefinedGraph(n_neighbors=5),
        teacher="graph",
        feature_costs=SOURCES,
        mu=0.01,
        budget=6,
        unlabeled="?",
    ).fit(X, y)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder in which the model of each library is saved once."""
    return tmp_path_factory.mktemp("kept")


@pytest.fixture
def saved(request, library, kept, tmp_path):
    if not (kept / library).exists():
        request.getfixturevalue("model").save(kept / library)
    shutil.copytree(kept / library, tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("load", [grbb_ext.load, GRBBClassifier.load])
def test_everything_a_prediction_needs_is_there(model, saved, load):
    X, _, _ = rows()
    loaded = load(saved)
    assert type(loaded) is GRBBClassifier
    assert same_bits(loaded.decision_function(X), model.decision_function(X))
    assert same_bits(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.predict(X).tolist() == model.predict(X).tolist()
    for left, right in zip(loaded.staged_predict_proba(X), model.staged_predict_proba(X), strict=True):
        assert same_bits(left, right)
    assert same_bits(loaded.classes_, model.classes_)
    assert same_bits(loaded.feature_importances_, model.feature_importances_)
    assert loaded.feature_names_in_.tolist() == ["a", "b", "c"]
    assert loaded.n_features_in_ == 3
    assert loaded.library_ == model.library_
    assert (loaded.n_iter_, loaded.stop_reason_) == (model.n_iter_, model.stop_reason_)
    assert loaded.forest_.features_used().tolist() == model.forest_.features_used().tolist()


def test_costs_and_what_was_paid(model, saved):
    loaded = GRBBClassifier.load(saved)
    assert (loaded.feature_cost_, loaded.paid_, loaded.ledger_) == (model.feature_cost_, model.paid_, model.ledger_)
    assert loaded.feature_costs == SOURCES
    X, _, _ = rows()
    fetch = {source: lambda ids: X.iloc[ids] for source in SOURCES.sources}
    result, expected = (m.on_demand(fetch, verbose=False).predict(np.arange(len(X))) for m in (loaded, model))
    assert same_bits(result.raw_scores, model.decision_function(X))
    assert same_bits(result.spent, expected.spent)


def test_settings_come_back(model, saved):
    loaded = GRBBClassifier.load(saved)
    settings, expected = loaded.get_params(), model.get_params()
    wrapped = type(settings.pop("estimator"))
    assert wrapped is type(expected.pop("estimator"))
    assert str(settings) == str(expected)


def test_a_loaded_model_can_be_fitted_again_and_saved_again(model, saved, tmp_path):
    loaded = GRBBClassifier.load(saved)
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again/grbb.json").read_bytes() == (saved / "grbb.json").read_bytes()
    X, code, labeled = rows()
    y = np.where(labeled, np.array(["low", "mid", "high"])[code], "?")
    assert same_bits(loaded.fit(X, y).raw_scores_, model.raw_scores_)
    assert loaded.transduction_.tolist() == model.transduction_.tolist()


@pytest.mark.parametrize(
    "use",
    [
        lambda model: model.graph_,
        lambda model: model.objective_,
        lambda model: model.raw_scores_,
        lambda model: model.transduction_,
        lambda model: model.prediction_variance(),
        lambda model: model.suggest_labels(2),
    ],
)
def test_what_needs_the_training_rows_says_so(saved, use):
    with pytest.raises(AttributeError, match="a saved model does not hold them"):
        use(GRBBClassifier.load(saved))


def test_the_evidence_for_the_graph_comes_back(classifier, moons, tmp_path):
    X, _, y = moons
    model = GRBBClassifier(classifier()).fit(X, y)
    assert model.evidence_.n_labels == 20
    model.save(tmp_path / "model")
    assert GRBBClassifier.load(tmp_path / "model").evidence_ == model.evidence_


def test_no_attribute_of_a_fit_is_forgotten(model, saved):
    of_rows = {"graph_", "objective_", "raw_scores_", "transduction_"}
    assert vars(GRBBClassifier.load(saved)).keys() | of_rows == vars(model).keys()


def test_before_fit_the_same_attributes_are_merely_absent():
    with pytest.raises(AttributeError, match="GRBBRegressor has no graph_ before fit"):
        GRBBRegressor().graph_  # noqa: B018
    assert not hasattr(GRBBClassifier(), "transduction_")


_PLAIN_SCORES = """
import sys
import lightgbm, numpy, xgboost
X = numpy.load("X.npy")
for task in ("classification", "regression"):
    booster = lightgbm.Booster(model_file=f"lightgbm-{task}/model.txt")
    numpy.save(f"lightgbm-{task}.npy", booster.predict(X, raw_score=True))
    booster = xgboost.Booster(model_file=f"xgboost-{task}/model.ubj")
    data = xgboost.DMatrix(X, feature_names=booster.feature_names)
    numpy.save(f"xgboost-{task}.npy", booster.predict(data, output_margin=True))
assert not any(name.startswith("grbb_ext") for name in sys.modules)
"""


def test_the_libraries_load_their_files_without_us(tmp_path):
    X, code, labeled = rows()
    models = {
        "lightgbm-classification": GRBBClassifier(LGBMClassifier(n_estimators=10, n_jobs=1), teacher="graph"),
        "lightgbm-regression": GRBBRegressor(LGBMRegressor(n_estimators=10, n_jobs=1), teacher="graph"),
        "xgboost-classification": GRBBClassifier(XGBClassifier(n_estimators=10, n_jobs=1), teacher="graph"),
        "xgboost-regression": GRBBRegressor(XGBRegressor(n_estimators=10, n_jobs=1), teacher="graph"),
    }
    for name, model in models.items():
        classes = name.endswith("classification")
        model.fit(X, np.where(labeled, code, -1) if classes else np.where(labeled, 1000 + X["a"] + code, np.nan))
        model.save(tmp_path / name)
    np.save(tmp_path / "X.npy", X.to_numpy())
    command = [sys.executable, "-I", "-c", _PLAIN_SCORES]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for name, model in models.items():
        assert same_bits(np.load(tmp_path / f"{name}.npy"), model.raw_scores_), name


def test_a_regressor(regressor, tmp_path):
    X, code, labeled = rows()
    model = GRBBRegressor(regressor(), teacher="graph").fit(
        X.to_numpy(), np.where(labeled, 1e6 + X["a"] + code, np.nan)
    )
    model.save(tmp_path / "model")
    loaded = grbb_ext.load(tmp_path / "model")
    assert type(loaded) is GRBBRegressor
    assert same_bits(loaded.predict(X.to_numpy()), model.predict(X.to_numpy()))
    for left, right in zip(loaded.staged_predict(X.to_numpy()), model.staged_predict(X.to_numpy()), strict=True):
        assert same_bits(left, right)
    assert not hasattr(loaded, "feature_names_in_")
    assert (loaded.feature_cost_, loaded.paid_, loaded.ledger_) == (None, (), None)


@pytest.mark.parametrize(
    "classes",
    [
        np.array([3, 8]),
        np.array([3, 8, 9], dtype=np.int8),
        np.array([1.0, 2.0]),
        np.array([False, True]),
        np.array(["no", "yes"]),
        np.array(["à", "日本", ""]),
        np.array([2**62, 2**62 + 1]),
    ],
    ids=str,
)
def test_classes_keep_their_type(classifier, tmp_path, classes):
    X, code, labeled = rows()
    marked = classes[code % classes.size].astype(object)
    marked[~labeled] = None
    if classes.dtype != bool and classes.dtype.kind != "U":
        marked = marked.tolist()  # without a marker among them they would all be labelled
    model = GRBBClassifier(classifier(), teacher="graph", unlabeled=None).fit(X, marked, classes=classes)
    model.save(tmp_path / "model")
    loaded = GRBBClassifier.load(tmp_path / "model")
    assert same_bits(loaded.classes_, model.classes_)
    assert loaded.predict(X).tolist() == model.predict(X).tolist()


@pytest.mark.parametrize(
    "categories", [["red", "green", "blue"], [10, 20, 30], [0.5, 1.5, 2.5], [True, False]], ids=str
)
def test_categories_keep_their_codes(classifier, tmp_path, categories):
    X, code, labeled = rows()
    kind = pd.CategoricalDtype(categories)
    X["color"] = pd.Categorical.from_codes(code % len(categories), dtype=kind)
    X.loc[3, "color"] = None
    model = GRBBClassifier(classifier(), teacher="graph").fit(X, np.where(labeled, code % len(categories), -1))
    model.save(tmp_path / "model")
    loaded = GRBBClassifier.load(tmp_path / "model")
    assert same_bits(loaded.decision_function(X), model.decision_function(X))
    # Another order of the categories in the frame changes nothing.
    X["color"] = X["color"].cat.reorder_categories(categories[::-1])
    assert same_bits(loaded.decision_function(X), model.decision_function(X))
    assert loaded.forest_.categories == model.forest_.categories


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["red", "green", "blue"])], ids=str)
def test_categories_of_polars(classifier, tmp_path, kind):
    X, code, labeled = rows()
    frame = pl.DataFrame({"a": X["b"].to_numpy(), "color": pl.Series(np.array(["red", "green", "blue"])[code])})
    frame = frame.with_columns(pl.col("color").cast(kind))
    model = GRBBClassifier(classifier(), teacher="graph").fit(frame, np.where(labeled, code, -1))
    model.save(tmp_path / "model")
    loaded = grbb_ext.load(tmp_path / "model")
    assert same_bits(loaded.decision_function(frame), model.decision_function(frame))
    pandas = pd.DataFrame({"a": X["b"], "color": pd.Categorical(frame["color"].to_list())})
    assert same_bits(loaded.decision_function(pandas), model.decision_function(frame))


def test_categories_that_json_lacks_are_refused_when_saving(classifier, tmp_path):
    X, code, labeled = rows()
    X["day"] = pd.Categorical.from_codes(code, categories=pd.to_datetime(["2026-01-01", "2026-01-02", "2026-01-03"]))
    model = GRBBClassifier(classifier(), teacher="graph").fit(X, np.where(labeled, code, -1))
    with pytest.raises(ValueError, match=r"categories of X cannot be saved: .*Timestamp.*Turn them into text"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_the_best_round_survives(classifier, library, tmp_path):
    X, code, labeled = rows()
    patience = {"lightgbm": "early_stopping_round", "xgboost": "early_stopping_rounds"}[library]
    booster = classifier(n_estimators=200, learning_rate=0.5, **{patience: 3})
    noisy = np.random.default_rng(1).permutation(code)
    model = GRBBClassifier(booster, teacher="graph").fit(X, np.where(labeled, code, -1), eval_set=[(X, noisy)])
    assert model.n_iter_ < 200
    model.save(tmp_path / "model")
    loaded = GRBBClassifier.load(tmp_path / "model")
    assert loaded.n_iter_ == model.n_iter_
    assert loaded.booster_.best_iteration == model.booster_.best_iteration
    assert loaded.stop_reason_ == model.stop_reason_
    assert loaded.evals_result_ == model.evals_result_
    assert same_bits(loaded.decision_function(X), model.decision_function(X))


def test_a_number_that_means_missing_survives(tmp_path):
    X, code, labeled = rows()
    X.iloc[::7, 0] = -999.0
    model = GRBBClassifier(XGBClassifier(n_estimators=5, missing=-999.0, n_jobs=1), teacher="graph").fit(
        X, np.where(labeled, code, -1)
    )
    model.save(tmp_path / "model")
    loaded = GRBBClassifier.load(tmp_path / "model")
    assert same_bits(loaded.decision_function(X), model.decision_function(X))
    assert loaded.estimator.missing == -999.0


def test_sparse_rows_and_constant_columns(classifier, tmp_path):
    _, code, labeled = rows()
    X = sp.csr_matrix(np.ones((120, 2)))
    model = GRBBClassifier(classifier(), rule="labeled").fit(X, np.where(labeled, code, -1))
    model.save(tmp_path / "model")
    assert same_bits(GRBBClassifier.load(tmp_path / "model").decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_array.toarray])
def test_settings_that_json_lacks_are_named(classifier, library, tmp_path, kind):
    X, code, labeled = rows()
    name = {"lightgbm": "random_state", "xgboost": "callbacks"}[library]
    booster = classifier(**{name: {"random_state": np.random.RandomState(0), "callbacks": [TrainingCallback()]}[name]})
    model = GRBBClassifier(
        booster, teacher="graph", graph=kind(sp.csr_array(sp.eye_array(120, k=1) + sp.eye_array(120, k=-1)))
    )
    model.set_params(propagation="harmonic").fit(X, np.where(labeled, code, -1))
    with pytest.warns(UserWarning, match=f"estimator__{name}, graph"):
        model.save(tmp_path / "model")
    loaded = GRBBClassifier.load(tmp_path / "model")
    assert loaded.graph is None
    assert loaded.estimator.get_params()[name] is None
    assert same_bits(loaded.decision_function(X), model.decision_function(X))


def test_without_an_estimator_of_the_user(tmp_path):
    X, code, labeled = rows()
    model = GRBBClassifier(teacher="graph").fit(X, np.where(labeled, code, -1))
    model.save(tmp_path / "model")
    loaded = GRBBClassifier.load(tmp_path / "model")
    assert loaded.estimator is None
    assert type(loaded.estimator_) is type(model.estimator_)


def test_subclasses(classifier, library, tmp_path):
    class Mine(GRBBClassifier):
        pass

    wrapped = type("Theirs", (type(classifier()),), {})
    X, code, labeled = rows()
    Mine(wrapped(n_estimators=3, n_jobs=1), teacher="graph").fit(X, np.where(labeled, code, -1)).save(
        tmp_path / "model"
    )
    assert type(Mine.load(tmp_path / "model")) is Mine
    assert type(grbb_ext.load(tmp_path / "model")) is GRBBClassifier


def test_it_is_not_fitted(tmp_path):
    with pytest.raises(NotFittedError):
        GRBBClassifier().save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


# What is refused. The folder itself is tested in tests/persistence.


def tampered(path: Path, change):
    """Change the content and make the checksums fit, as one who means harm would."""
    document, _ = read_folder(path)
    content = json.loads(json.dumps(dict(document.content)))
    change(content)
    (path / "grbb.json").write_text(replace(document, content=content).text(), encoding="utf-8")


def test_a_classifier_is_no_regressor(saved):
    with pytest.raises(ModelFileError, match=r"holds a GRBBClassifier: use GRBBClassifier\.load"):
        GRBBRegressor.load(saved)


def test_a_truncated_booster(saved):
    file = next(saved.glob("model.*"))
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(ModelFileError, match="cut off"):
        grbb_ext.load(saved)


def test_a_booster_that_never_was_one(saved, library):
    document, _ = read_folder(saved)
    data = b"tree\nnum_class=1\n" if library == "lightgbm" else b"{L\x00"
    (saved / document.model_file).write_bytes(data)
    (saved / "grbb.json").write_text(replace(document, model_sha256=sha256(data)).text(), encoding="utf-8")
    with pytest.raises(ModelFileError, match=rf"cannot be loaded .*written by grbb_ext .*here is {library}"):
        grbb_ext.load(saved)


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.pop("settings"),
        lambda content: content.pop("classes"),
        lambda content: content["settings"].pop("estimator"),
        lambda content: content["settings"].update(unknown=1),
        lambda content: content["estimator"].update({"class": "os.system"}),
        lambda content: content["estimator"].update({"class": "GridSearchCV"}),
        lambda content: content.update(n_iter=10**6),
        lambda content: content.update(n_features=2),
        lambda content: content.update(categories={"dict": [[[0], 1]]}),
        lambda content: content.update(missing={"eval": "1"}),
        lambda content: content.update(task="ranking"),
        lambda content: content.update(library="catboost"),
        lambda content: content.update(ledger={"costs": {}}),
        lambda content: content.update(task=["classification"]),
        lambda content: content.update(task={"classification": 1}),
        lambda content: content.update(library=["xgboost"]),
        lambda content: content.update(something=1),
        lambda content: content.update(settings=[]),
        lambda content: content["settings"].update(memory="cache"),
        lambda content: content["settings"].update(memory=None),
        lambda content: content["settings"].update(n_jobs="2"),
        lambda content: content["settings"].update(n_jobs=10**9),
        lambda content: content["settings"].update(verbose="yes"),
        lambda content: content["settings"].update(budget="much"),
        lambda content: content["settings"].update(mu=True),
        lambda content: content["settings"].update(feature_costs=5),
        lambda content: content["settings"].update(random_state=[1]),
        lambda content: content["settings"].update(estimator="LGBMClassifier"),
        lambda content: content["settings"].update(rule={"spec": "Popen", "fields": {}}),
        lambda content: content["estimator"].update(params=[]),
        lambda content: content["estimator"].update(module="os"),
        lambda content: content["estimator"]["params"].update(n_jobs=10**9),
        lambda content: content["estimator"]["params"].update(n_jobs=[1]),
        lambda content: content["estimator"]["params"].update(importance_type=3),
        lambda content: content["estimator"]["params"].update(importance_type="30000000"),
        lambda content: content["estimator"]["params"].update(missing="nothing"),
        lambda content: content["estimator"]["params"].update(forcedsplits_filename="/etc/passwd"),
        lambda content: content["estimator"]["params"].update(machines="10.0.0.1:80"),
        lambda content: content.update(n_features="3"),
        lambda content: content.update(n_features=True),
        lambda content: content.update(feature_names="abc"),
        lambda content: content.update(feature_names=["a", "b"]),
        lambda content: content.update(feature_names=[1, 2, 3]),
        lambda content: content.update(categorical=[5]),
        lambda content: content.update(categorical=["a"]),
        lambda content: content.update(categories={"dict": [[0, {"tuple": ["x"]}]]}),
        lambda content: content.update(categories=[]),
        lambda content: content.update(missing="nan"),
        lambda content: content.update(unseen="whatever"),
        lambda content: content.update(n_iter=1.0),
        lambda content: content.update(n_iter=0),
        lambda content: content.update(best_iteration="3"),
        lambda content: content.update(stop_reason=5),
        lambda content: content.update(evidence={"unknown": 1}),
        lambda content: content.update(evidence=[1]),
        lambda content: content.update(evals_result=[]),
        lambda content: content.update(evals_result={"dict": [["a", {"dict": [["b", ["c"]]]}]]}),
        lambda content: content.update(feature_cost="free"),
        lambda content: content.update(paid="draw"),
        lambda content: content.update(paid=[["draw"]]),
        lambda content: content.update(classes=["low", "mid", "high"]),
        lambda content: content["classes"].update(dtype="<U999999"),
        lambda content: content["classes"].update(array=["low", "low", "high"]),
        lambda content: content["classes"].update(array=["low", "high"], shape=[2]),
        lambda content: content["classes"].update(shape=[3, 1]),
        lambda content: content.update(classes={"array": [], "dtype": "<U1", "shape": [0]}),
    ],
)
def test_content_that_nobody_wrote(saved, change):
    tampered(saved, change)
    with pytest.raises(ModelFileError):
        grbb_ext.load(saved)


def test_a_poisoned_cache_is_never_opened(saved, tmp_path, monkeypatch):
    """A file that names a cache of joblib, where pickles lie, made a later fit execute them."""
    opened = []
    monkeypatch.setattr("joblib.Memory.__init__", lambda self, *args, **kwargs: opened.append(args))
    tampered(saved, lambda content: content["settings"].update(memory=str(tmp_path / "cache")))
    with pytest.raises(ModelFileError, match="never writes the setting 'memory'"):
        grbb_ext.load(saved)
    assert opened == []


def with_booster(path: Path, data: bytes):
    """Exchange the booster's file and make the checksums fit."""
    document, _ = read_folder(path)
    (path / document.model_file).write_bytes(data)
    (path / "grbb.json").write_text(replace(document, model_sha256=sha256(data)).text(), encoding="utf-8")


@pytest.mark.parametrize("library", ["lightgbm"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"num_leaves=", b"num_leaves=9"),
        (b"left_child=", b"left_child=7"),
        (b"num_class=3", b"num_class=30000000"),
        (b"tree_sizes=", b"tree_sizes=9"),
        (b"split_feature=", b"split_feature=9"),
        (b"\nshrinkage", b"\nshrinkage shrinkage"),
        (b"num_cat=0", b"num_cat=1"),
    ],
)
def test_lightgbm_never_sees_what_our_reader_refuses(saved, library, old, new, monkeypatch):
    """LightGBM's own loader ends the process at some of these."""
    monkeypatch.setattr("lightgbm.Booster.__init__", None)
    _, model = read_folder(saved)
    assert old in model
    with_booster(saved, model.replace(old, new, 1))
    with pytest.raises(ModelFileError, match=r"cannot be loaded \(ValueError: The model cannot be read"):
        grbb_ext.load(saved)


def test_another_reading_of_the_library_is_noticed(saved, monkeypatch):
    """XGBoost 3.2 ignores the tree weights in a file of 3.4; a model of such a file would predict other numbers."""
    read = Forest.from_bytes.__func__

    def doubled(cls, data):
        forest = read(cls, data)
        return replace(forest, value=2 * forest.value)

    monkeypatch.setattr(Forest, "from_bytes", classmethod(doubled))
    with pytest.raises(ModelFileError, match="in another way than grbb_ext does"):
        grbb_ext.load(saved)


def test_parameters_that_name_files_are_not_saved(tmp_path):
    X, code, labeled = rows()
    (tmp_path / "bins.json").write_text("[]", encoding="utf-8")
    booster = LGBMClassifier(n_estimators=3, n_jobs=1, forcedbins_filename=str(tmp_path / "bins.json"))
    model = GRBBClassifier(booster, teacher="graph").fit(X, np.where(labeled, code, -1))
    with pytest.warns(UserWarning, match="estimator__forcedbins_filename"):
        model.save(tmp_path / "model")
    assert "bins.json" not in (tmp_path / "model/grbb.json").read_text(encoding="utf-8")
    assert same_bits(grbb_ext.load(tmp_path / "model").decision_function(X), model.decision_function(X))


def test_the_library_is_missing(saved, library, monkeypatch):
    monkeypatch.setitem(sys.modules, f"grbb_ext.adapters.{library}", None)
    with pytest.raises(ImportError, match=rf"pip install 'grbb_ext\[{library}\]'"):
        grbb_ext.load(saved)


def test_loading_never_unpickles(saved, monkeypatch):
    def forbidden(*args, **kwargs):
        raise AssertionError("pickle was used")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, forbidden)
    grbb_ext.load(saved)
