from __future__ import annotations

import json

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from hypothesis import given, settings
from hypothesis import strategies as st

from grbb_ext import Forest
from grbb_ext.forest import Tree, _compiled, _xgboost_model
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


@settings(max_examples=150)
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
    with pytest.raises(ValueError, match="threshold that is not a number"):
        read_xgboost(document)


@pytest.mark.parametrize("method", ["hist", "exact"])
@pytest.mark.parametrize("form", ["json", "ubj"])
def test_xgboost_splits_missing_values_from_very_large_ones_at_infinity(method, form, tmp_path):
    X = np.random.default_rng(0).normal(size=(200, 2))
    X[::3, 0], X[1::3, 0] = np.finfo(np.float32).max, np.nan
    params = {"objective": "binary:logistic", "max_depth": 2, "nthread": 1, "tree_method": method}
    booster = xgb.train(params, xgb.DMatrix(X, label=np.isnan(X[:, 0])), 3)
    assert np.isinf(booster.trees_to_dataframe()["Split"]).any()
    booster.save_model(tmp_path / f"model.{form}")
    forest = Forest.from_file(tmp_path / f"model.{form}")
    rows = forest.rows_at_splits(200)  # which `load` compares on
    assert not np.isinf(rows).any()
    for part in (X, rows):
        np.testing.assert_array_equal(forest.predict(part), booster.predict(xgb.DMatrix(part), output_margin=True))


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


# What a file asks for and does not hold, and what it says twice.


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learner_model_param__num_class": "30000000"}, "not spread evenly over 30000000 outputs"),
        ({"learner_model_param__num_target": "30000000"}, "not spread evenly over 30000000 outputs"),
        ({"learner_model_param__num_class": "3", "learner_model_param__num_target": "2"}, "2 targets and 3 classes"),
        ({"learner_model_param__num_feature": "4"}, "3 feature_types for 4 features"),
        ({"learner_model_param__num_feature": "-3"}, "not a number of something"),
        ({"learner_model_param__base_score": "1_0"}, "base_score must be a number"),
        ({"gradient_booster__model__tree_info": [0, 0]}, "announces another number"),
        ({"gradient_booster__model__tree_info": [0, 1, 0]}, "not spread evenly"),
        ({"gradient_booster__model__tree_info": [0, 0.5, 0]}, "not integers"),
        ({"gradient_booster__model__gbtree_model_param__num_trees": "2"}, "announces another number"),
        ({"gradient_booster__model__iteration_indptr": [0, 1, 2]}, "do not divide the 3 trees"),
        ({"gradient_booster__model__iteration_indptr": [0, 3, 1, 3]}, "do not divide the 3 trees"),
        ({"gradient_booster__model__weight_drop": [1.0, 0.5]}, "2 tree weights for 3 trees"),
        ({"gradient_booster__model__weight_drop": [1.0, 0.5, float("nan")]}, "not finite"),
        (
            {"gradient_booster__weight_drop": [1.0] * 3, "gradient_booster__model__weight_drop": [1.0] * 3},
            "2 lists of tree weights",
        ),
        ({"feature_names": ["a"]}, "1 feature_names for 3 features"),
    ],
    ids=str,
)
def test_xgboost_models_that_do_not_add_up(changes, message):
    with pytest.raises(ValueError, match=message):
        read_xgboost(edited(**changes))


def test_no_trees_and_many_outputs():
    nothing = {
        "gradient_booster__model__trees": [],
        "gradient_booster__model__tree_info": [],
        "gradient_booster__model__iteration_indptr": [0],
        "gradient_booster__model__gbtree_model_param__num_trees": "0",
    }
    assert Forest(**read_xgboost(edited(**nothing, learner_model_param__num_class="5"))).n_outputs == 5
    with pytest.raises(ValueError, match="30000000 outputs and no trees"):
        read_xgboost(edited(**nothing, learner_model_param__num_class="30000000"))


@pytest.mark.parametrize("place", ["gradient_booster__weight_drop", "gradient_booster__model__weight_drop"])
def test_weights_of_dart_under_the_name_of_gbtree(place):
    """XGBoost 3.3 wrote them into the booster, 3.4 writes them into the model; both call it gbtree."""
    weights = [0.5, 0.25, 2.0]
    plain = Forest(**read_xgboost(edited()))
    dart = Forest(**read_xgboost(edited(**{place: weights})))
    of_tree = np.repeat(np.float32(weights), np.diff(plain.tree_start))[:, None]
    np.testing.assert_array_equal(dart.value, plain.value * of_tree)


def categorical_node():
    """Return a tree with a split on categories, and the document that it is part of."""
    document = edited()
    trees = document["learner"]["gradient_booster"]["model"]["trees"]
    return document, next(tree for tree in trees if tree["categories_nodes"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tree: tree["split_type"].__setitem__(tree["categories_nodes"][0], 0), "not those whose split"),
        (lambda tree: tree["split_type"].__setitem__(tree["categories_nodes"][0], 2), "that does not exist"),
        (lambda tree: tree["split_type"].pop(), "where .* belong"),
        (lambda tree: tree.update(categories_segments=[10**6] * len(tree["categories_nodes"])), "outside of the list"),
        (lambda tree: tree.update(categories_segments=[-1] * len(tree["categories_nodes"])), "outside of the list"),
        (lambda tree: tree.update(categories_sizes=[0] * len(tree["categories_nodes"])), "outside of the list"),
        (lambda tree: tree.update(categories_sizes=[1] * 50), "more or fewer sets"),
        (lambda tree: tree["categories"].__setitem__(0, 2**24), "between 0 and 16777215"),
        (lambda tree: tree["categories"].__setitem__(0, -1), "between 0 and 16777215"),
        (lambda tree: tree["default_left"].__setitem__(0, 2), "default direction"),
        (lambda tree: tree["right_children"].__setitem__(0, tree["left_children"][0]), "side by side"),
        (lambda tree: tree["right_children"].__setitem__(-1, 1), "side by side"),
        (lambda tree: tree["tree_param"].update(num_nodes="3"), "where 3 belong"),
        (lambda tree: tree.update(id=7), "has the number 7"),
        (lambda tree: tree["split_indices"].__setitem__(0, -1), "a column that does not exist"),
        (lambda tree: tree["split_indices"].__setitem__(0, 3), "column 3 of 3"),
        (lambda tree: tree["parents"].__setitem__(1, 10**6), "the parents of nodes"),
        (lambda tree: tree["parents"].__setitem__(0, 0), "the parents of nodes"),
        (lambda tree: tree["parents"].__setitem__(-1, -1), "the parents of nodes"),
    ],
)
def test_xgboost_trees_that_do_not_add_up(change, message):
    document, tree = categorical_node()
    Forest(**read_xgboost(document))
    change(tree)
    with pytest.raises(ValueError, match=message):
        read_xgboost(document)


def test_leaves_that_are_no_numbers_say_where_they_come_from():
    document = edited()
    tree = document["learner"]["gradient_booster"]["model"]["trees"][0]
    tree["split_conditions"][tree["left_children"].index(-1)] = float("inf")
    with pytest.raises(ValueError, match=r"leaf that is not a finite number.*survival:cox.*smaller eta"):
        read_xgboost(document)


def test_many_sets_of_one_large_category_are_small():
    """A thousand nodes that name category 2**24 - 1 took 2.2 GB."""
    trees = [
        Tree(
            feature=np.array([0, -1, -1]), threshold=np.zeros(3), left=np.array([1, 0, 0]), right=np.array([2, 0, 0]),
            default_left=np.ones(3, dtype=bool), value=np.zeros((3, 1)), cover=np.ones(3), label=np.arange(3),
            categories={0: [0, 2**24 - 1]},
        )
        for _ in range(1000)
    ]  # fmt: skip
    forest = Forest.from_trees(trees, n_features=1)
    assert forest.category_bits.nbytes + forest.category_word.nbytes == 1000 * 2 * 8


def test_an_entry_that_occurs_twice(tmp_path):
    (tmp_path / "model.json").write_bytes(DOCUMENTS["json"].replace(b'"learner":', b'"version":[9],"learner":', 1))
    with pytest.raises(ValueError, match="occurs twice"):
        Forest.from_file(tmp_path / "model.json")
    name = b"L" + (1).to_bytes(8, "big") + b"a"
    with pytest.raises(ValueError, match="occurs twice"):
        read_ubjson(b"{" + name + b"i\x01" + name + b"i\x02}")


def test_category_names_that_are_not_ascii():
    """XGBoost writes names from 3.1 on, and before 3.4 counts characters where it writes bytes; trees are intact."""
    code = np.arange(120) % 3
    frame = pd.DataFrame({"kind": pd.Categorical.from_codes(code, categories=["àb", "c", "日本"]), "x": X[:, 1]})
    data = xgb.DMatrix(frame, label=code % 2 + X[:, 1], enable_categorical=True)
    model = xgb.train({"max_depth": 3, "nthread": 1, "max_cat_to_onehot": 1}, data, 3)
    forest = Forest.from_booster(model)
    codes = np.column_stack([code, X[:, 1]])
    np.testing.assert_array_equal(forest.predict(codes), model.predict(data, output_margin=True))
    release = tuple(int(part) for part in xgb.__version__.split(".")[:2])
    if (3, 1) <= release < (3, 4):
        assert forest.categories == {0: ()}
        with pytest.raises(ValueError, match=r"no readable names.*'kind'.*Pass their codes"):
            forest.predict(frame)
        return
    assert forest.categories == ({} if release < (3, 1) else {0: ("àb", "c", "日本")})
    np.testing.assert_array_equal(forest.predict(frame), model.predict(data, output_margin=True))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("num_tree_per_iteration=1\n", "num_tree_per_iteration=1000000000\n", "1 classes, but 1000000000 trees"),
        ("num_class=1\nnum_tree_per_iteration=1\n", "num_class=1000000000\n", "3 trees for rounds of 1000000000"),
        ("num_class=1\n", "num_class=5\n", "5 classes, but 1 trees"),
        ("num_class=1\n", "num_class=1_0\n", "invalid literal"),
        ("version=v4", "version=v9", "'v9' is not known"),
        ("\nlabel_index=0", "", "no 'label_index'"),
        ("feature_infos=", "feature_infos=none ", "4 feature infos for 3"),
        ("label_index=0", "label_index=0\nlabel_index=1", "occurs twice"),
        ("tree_sizes=", "tree_sizes=1", "not as long as the header says"),
        ("\nshrinkage=", "\nwhatever\nshrinkage=", "belongs to no model"),
        ("\nshrinkage=", "\n\nshrinkage=", "do not belong to it"),
        ("\nleaf_value=", "\nleaf_value=nan ", "entries in 'leaf_value' that are not numbers"),
        ("\nleaf_value=", "\nleaf_value=1e999 ", "entries in 'leaf_value'"),
        ("\nleaf_value=", "\nleaf_value=0x10 ", "entries in 'leaf_value' that are not numbers"),
        ("\ndecision_type=", "\ndecision_type=99 ", "entries in 'decision_type'"),
        ("\nis_linear=0", "\nis_linear=2", "is_linear"),
        ("\nend of trees", "\n", "'end of trees' is missing"),
        ("\ninternal_weight=", "\ninternal_weight=x", "'internal_weight' that are not numbers"),
        ("\nsplit_gain=", "\nsplit_gain=1 ", "'split_gain' that are not numbers, or not"),
        ("\nnum_cat=", "\nnum=", "num_cat"),
        ("\n[learning_rate: ", "\n[learning_rate ", "parameters of training are damaged"),
        ("\nend of parameters", "\n", "parameters of training are damaged"),
        ("\npandas_categorical:null", '\npandas_categorical:{"a": 1}', "not a list of lists"),
        ("\npandas_categorical:null", "\npandas_categorical:[[[1]]]", "not a list of lists"),
        ("\npandas_categorical:null", "\npandas_categorical:", "cannot be read"),
    ],
)  # fmt: skip
def test_lightgbm_texts_with_forged_numbers(old, new, message):
    text = LIGHTGBM.model_to_string()
    assert old in text
    changed = text.replace(old, new, 1)
    changed = changed if old == "tree_sizes=" or "end of trees" in old else resized(changed)
    with pytest.raises(ValueError, match=message):
        Forest.from_bytes(changed.encode())


def test_lightgbm_without_the_end_of_trees():
    """Files of version v2 did not have that line."""
    text = LIGHTGBM.model_to_string().replace("version=v4", "version=v2").replace("end of trees\n\n", "")
    np.testing.assert_array_equal(Forest(**read_lightgbm(text)).predict(X), LIGHTGBM.predict(X, raw_score=True))
    without_sizes = "\n".join(line for line in text.split("\n") if not line.startswith("tree_sizes="))
    np.testing.assert_array_equal(
        Forest(**read_lightgbm(without_sizes)).predict(X), LIGHTGBM.predict(X, raw_score=True)
    )
    for cut in (text.index("feature_importances"), text.index("Tree=2") + 40):
        with pytest.raises(ValueError, match=r"end of trees|cut off|announces|is not in list"):
            read_lightgbm(text[:cut])


def test_lightgbm_categories_beyond_float32():
    """LightGBM takes any int32 for a category; the text holds all words of its bitset."""
    rng = np.random.default_rng(0)
    large = rng.choice([3, 5, 2**24 + 7, 2**24 + 9], 200).astype(float)
    data = np.column_stack([large, rng.normal(size=200)])
    settings = {"verbosity": -1, "num_threads": 1, "min_data_per_group": 1, "min_data_in_leaf": 1, "cat_smooth": 0}
    train = lgb.Dataset(data, label=np.isin(large, [3, 2**24 + 9]), categorical_feature=[0], params={"verbosity": -1})
    model = lgb.train(settings, train, 1)
    assert max(map(len, model.model_to_string().split("\n"))) > 2**19
    forest = Forest.from_booster(model)
    np.testing.assert_array_equal(forest.predict(data), model.predict(data, raw_score=True))
    assert forest.category_bits.nbytes < 10_000


def test_numba_without_a_place_for_its_cache(monkeypatch):
    """Neither the package nor the home folder can be written: compile anew in each process."""
    import numba

    compile_ = numba.njit

    def refuse(function, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function '_walk': no locator available")
        return compile_(function, **options)

    monkeypatch.setattr(numba, "njit", refuse)
    _compiled._compile.cache_clear()
    try:
        forest = Forest.from_booster(LIGHTGBM)
        np.testing.assert_array_equal(forest.predict(X), LIGHTGBM.predict(X, raw_score=True))
    finally:
        _compiled._compile.cache_clear()


@pytest.mark.parametrize("name", ["loss_changes", "sum_hessian", "base_weights", "parents", "split_type", "categories"])
def test_xgboost_trees_without_what_only_the_library_reads(name):
    """XGBoost 3.2 ends the process where the gains are missing."""
    document, tree = categorical_node()
    del tree[name]
    with pytest.raises(ValueError, match=f"the entry '{name}' is missing"):
        Forest.from_bytes(json.dumps(document).encode())


@pytest.mark.parametrize("value", ["0.5", 1, None, [0.5], True])
def test_thresholds_that_are_not_written_as_numbers(value):
    document, tree = categorical_node()
    tree["split_conditions"][0] = value
    with pytest.raises(ValueError, match=r"not numbers with a fraction|inhomogeneous"):
        Forest.from_bytes(json.dumps(document).encode())
