from __future__ import annotations

import json

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from hypothesis import given, settings
from hypothesis import strategies as st

from grbb_ext import Forest
from grbb_ext.forest import _xgboost_model
from grbb_ext.forest._lightgbm_text import read_lightgbm
from grbb_ext.forest._read import _careful, read_ubjson
from grbb_ext.forest._xgboost_model import read_xgboost

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.integers(0, 5, 120), RNG.normal(size=(120, 2))])
Y = X[:, 0] % 2 + X[:, 1] > 0.5


def xgboost_model(**params):
    data = xgb.DMatrix(X, label=Y, feature_types=["c", "q", "q"], enable_categorical=True)
    settings = {"objective": "binary:logistic", "max_depth": 3, "nthread": 1, "base_score": 0.3}
    return xgb.train(settings | params, data, 3)


def lightgbm_model():
    data = lgb.Dataset(X, label=Y, categorical_feature=[0], params={"verbosity": -1})
    settings = {"objective": "binary", "num_leaves": 5, "verbosity": -1, "num_threads": 1, "min_data_per_group": 1}
    return lgb.train(settings, data, 3)


XGBOOST, LIGHTGBM = xgboost_model(), lightgbm_model()


@pytest.mark.parametrize("name", ["model.json", "model.ubj"])
@pytest.mark.parametrize("params", [{}, {"booster": "dart", "rate_drop": 0.5}])
def test_saved_by_xgboost(tmp_path, name, params):
    model = xgboost_model(**params)
    model.save_model(tmp_path / name)
    forest = Forest.from_file(tmp_path / name)
    np.testing.assert_array_equal(forest.predict(X), Forest.from_booster(model).predict(X))
    assert Forest.from_file(tmp_path / name, iterations=2).n_trees == 2
    assert Forest.from_file(tmp_path / name, missing=0.0).missing == 0.0


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_saved_by_lightgbm(tmp_path, newline):
    path = tmp_path / "model.txt"
    path.write_text(LIGHTGBM.model_to_string(), newline=newline)
    np.testing.assert_array_equal(Forest.from_file(path).predict(X), LIGHTGBM.predict(X, raw_score=True))
    assert Forest.from_file(path, iterations=2).n_trees == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no saved model that can be read"),
        (b"binf\x00\x01", "no saved model that can be read"),
        (b"\x80\x04\x95pickle", "no saved model that can be read"),
        (b"{", "cannot be read"),
        (b"{}", "not a saved XGBoost model"),
        (b'{"name": "tree", "tree_info": []}', "dump_model"),
        (b'{"learner": {}}', "'gradient_booster' is missing"),
        (b"{L\x00\x00", "ends early"),
        (b"tree\nversion=v4\n", "has no 'num_class'"),
        (b"tree\xff\xfe", "cannot be read"),
    ],
)
def test_what_is_no_model(tmp_path, content, message):
    path = tmp_path / "model.bin"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        Forest.from_file(path)


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        Forest.from_file(tmp_path / "none.json")


@pytest.mark.parametrize("form", ["json", "ubj", "txt"])
def test_truncated_files(tmp_path, form):
    if form == "txt":
        whole = LIGHTGBM.model_to_string().encode()
        whole = whole[: whole.index(b"end of trees")]  # what follows are importances and parameters
    else:
        whole = bytes(XGBOOST.save_raw(form))
    path = tmp_path / f"model.{form}"
    for share in np.linspace(0.01, 0.99, 40):
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(ValueError, match=r"cannot be read|no saved model"):
            Forest.from_file(path)


def spoil(data, rng):
    """Change a few bytes."""
    spoiled = bytearray(data)
    for _ in range(int(rng.integers(1, 6))):
        spoiled[int(rng.integers(len(spoiled)))] = int(rng.integers(256))
    return bytes(spoiled)


READERS = {
    "json": lambda data: read_xgboost(json.loads(data)),
    "ubj": lambda data: read_xgboost(read_ubjson(data)),
    "txt": lambda data: read_lightgbm(data.decode()),
}
DOCUMENTS = {
    "json": bytes(XGBOOST.save_raw("json")),
    "ubj": bytes(XGBOOST.save_raw("ubj")),
    "txt": LIGHTGBM.model_to_string().encode(),
}


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), form=st.sampled_from(["json", "ubj", "txt"]))
def test_damage_gives_a_value_error_or_a_forest_that_predicts(seed, form):
    data = spoil(DOCUMENTS[form], np.random.default_rng(seed))
    try:
        forest = Forest(**_careful(lambda: READERS[form](data), "The model"))
    except ValueError:
        return  # any other exception fails the test
    assert forest.predict(np.zeros((1, forest.n_features))).shape[0] == 1


def test_a_threshold_that_is_not_a_number_is_damage():
    document = json.loads(DOCUMENTS["json"])
    document["learner"]["gradient_booster"]["model"]["trees"][0]["split_conditions"][0] = float("nan")
    with pytest.raises(ValueError, match="threshold that is not a finite number"):
        read_xgboost(document)


def edited(**changes):
    document = json.loads(DOCUMENTS["json"])
    for path, value in changes.items():
        *parents, last = path.split("__")
        part = document["learner"]
        for key in parents:
            part = part[key]
        part[last] = value
    return document


def test_documents_of_older_versions():
    """Before 3.1 the base score was one number, before 1.7 rounds were not delimited."""
    document = edited(learner_model_param__base_score="3E-1")
    model = document["learner"]["gradient_booster"]["model"]
    del model["iteration_indptr"], document["learner"]["learner_model_param"]["boost_from_average"]
    model.pop("cats", None)
    np.testing.assert_array_equal(Forest(**read_xgboost(document)).predict(X), Forest.from_booster(XGBOOST).predict(X))
    assert Forest(**read_xgboost(document, iterations=2)).n_trees == 2


def test_vector_leaves_of_older_versions():
    """Before 3.2 every node of a vector-leaf tree had its weights in base_weights."""
    Z = np.column_stack([X[:, 1], X[:, 2]])
    model = xgb.train({"multi_strategy": "multi_output_tree", "nthread": 1}, xgb.DMatrix(X, label=Z), 2)
    document = json.loads(bytes(model.save_raw("json")))
    for tree in document["learner"]["gradient_booster"]["model"]["trees"]:
        tree.pop("leaf_weights", None)
        tree.pop("sum_hessian", None)
    np.testing.assert_array_equal(Forest(**read_xgboost(document)).predict(X), Forest.from_booster(model).predict(X))


def test_an_unknown_objective_is_named():
    with pytest.raises(ValueError, match="'my:objective' is not known"):
        read_xgboost(edited(objective__name="my:objective"))


@pytest.mark.parametrize("score", ["[1,2]", "nan", "inf", "x"])
def test_impossible_base_scores(score):
    with pytest.raises(ValueError, match=r"base_score|could not convert"):
        read_xgboost(edited(learner_model_param__base_score=score))


def test_the_logarithm_without_a_c_library(monkeypatch):
    def none(_):
        raise OSError

    with_library = _xgboost_model.base_margin("3E-1", "binary:logistic", 1)
    monkeypatch.setattr(_xgboost_model.ctypes, "CDLL", none)
    np.testing.assert_allclose(_xgboost_model.base_margin("3E-1", "binary:logistic", 1), with_library, rtol=1e-6)
    np.testing.assert_allclose(with_library, np.log(0.3 / 0.7), rtol=1e-6)


def resized(text):
    """Renew the lengths of the trees in the header, as many as it has."""
    head, *blocks = text.split("\nTree=")
    blocks[-1] = blocks[-1].split("end of trees")[0]
    announced = next(line for line in head.split("\n") if line.startswith("tree_sizes=")).split("=")[1].split()
    sizes = [str(len(block.encode()) + 6) for block in blocks][: len(announced)]
    sizes[-1] = str(int(sizes[-1]) - 2)
    return text.replace(f"tree_sizes={' '.join(announced)}", f"tree_sizes={' '.join(sizes)}")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\nleaf_value=", "\nleaf_value=0.5 ", "entries in 'leaf_value'"),
        ("\nnum_leaves=", "\nnum_leaves=-", "leaves"),
        ("left_child=", "left=", "'left_child' is missing"),
        ("\nend of trees", "\nTree=3\n\nend of trees", "announces 3 trees, but there are 4"),
        ("feature_names=Column_0", "feature_names=", "2 feature names for 3"),
        ("max_feature_idx=2", "max_feature_idx=x", "invalid literal"),
    ],
)
def test_lightgbm_texts_that_do_not_add_up(tmp_path, old, new, message):
    text = LIGHTGBM.model_to_string()
    assert old in text
    (tmp_path / "model.txt").write_text(resized(text.replace(old, new, 1)))
    with pytest.raises(ValueError, match=message):
        Forest.from_file(tmp_path / "model.txt")


def test_ubjson_values():
    def text(word):
        return b"L" + len(word.encode()).to_bytes(8, "big") + word.encode()

    numbers = b"[i\x01U\xffI\xff\xfel\x00\x00\x00\x07ZTF]"
    document = b"{" + text("a") + numbers + text("b") + b"S" + text("hé") + b"}"
    assert read_ubjson(document) == {"a": [1, 255, -2, 7, None, True, False], "b": "hé"}
    typed = read_ubjson(b"[$d#L" + (2).to_bytes(8, "big") + np.array([0.1, -2.0], dtype=">f4").tobytes())
    np.testing.assert_array_equal(typed, np.array([0.1, -2.0], dtype=np.float32))
    assert read_ubjson(b"D" + np.array(0.1, dtype=">f8").tobytes()) == 0.1
    for wrong, message in [
        (b"x", "unknown marker"),
        (b"[$x#", "unknown array type"),
        (b"i\x01i", "follow the end"),
        (b"[" * 100, "nested deeper"),
        (b"[$d#L" + b"\xff" * 8, "ends early"),
        (b"{i\x01", "expected 'L'"),
    ]:
        with pytest.raises(ValueError, match=message):
            read_ubjson(wrong)
