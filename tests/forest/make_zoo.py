"""Train the models of the zoo: small ones of every kind, by every released line of both libraries.

``python tests/forest/make_zoo.py`` makes an environment for each line with pip and writes ``tests/forest/zoo``: for
each version an archive of the files that ``save_model`` wrote, and ``scores.npz`` with the rows (``T``, and ``D`` with
categories) and, by name of the file, which of them were predicted and the raw scores. With ``train`` only
the libraries of the running interpreter are used. The interpreters are those of pyenv.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import traceback
import warnings
import zipfile
from pathlib import Path

import numpy as np

ZOO = Path(__file__).parent / "zoo"
# Requirement, Python, and numpy of that time.
LINES = [
    ("xgboost==1.3.3", "3.9", "numpy<1.24"),
    ("xgboost==1.7.6", "3.10", "numpy<2"),
    ("xgboost==2.0.3", "3.10", "numpy<2"),
    ("xgboost-cpu==2.1.4", "3.10", "numpy<2"),
    ("xgboost-cpu==3.0.5", "3.11", "numpy"),
    ("xgboost-cpu==3.2.0", "3.11", "numpy"),
    ("xgboost-cpu==3.3.0", "3.13", "numpy"),
    ("xgboost-cpu==3.4.1", "3.13", "numpy"),
    ("lightgbm==2.0.12", "3.9", "numpy<1.24"),
    ("lightgbm==2.2.3", "3.9", "numpy<1.24"),
    ("lightgbm==2.3.1", "3.9", "numpy<1.24"),
    ("lightgbm==3.3.5", "3.10", "numpy<2"),
    ("lightgbm==4.0.0", "3.10", "numpy<2"),
    ("lightgbm==4.6.0", "3.11", "numpy"),
    ("lightgbm==4.7.0", "3.11", "numpy"),
]
KINDS = ["c", "c", "q", "q", "q"]


def rows(seed, n, categories=False):
    """Draw numbers on a grid, so that values meet thresholds, some missing; with two columns of codes if asked."""
    rng = np.random.RandomState(seed)
    X = np.round(rng.normal(size=(n, 5)), 1)
    if categories:
        X[:, 0], X[:, 1] = rng.randint(0, 6, n), rng.randint(0, 40, n)
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    return X


def target(X):
    filled = np.nan_to_num(X)
    noise = np.random.RandomState(7).normal(size=len(X))
    return filled[:, 0] % 3 - filled[:, 1] % 2 + filled[:, 2] * filled[:, 3] + filled[:, 4] + noise


X, T = rows(0, 160), rows(1, 60)
C, D = rows(2, 160, categories=True), rows(3, 60, categories=True)


def xgboost_cases(xgb):
    """Yield the name of a case, its parameters, training data and rows to predict."""
    version = tuple(int(part) for part in xgb.__version__.split(".")[:2])
    y = target(X)
    binary, counts, classes = y > 0, np.floor(np.abs(y)), np.digitize(y, [-1, 1])
    plain = xgb.DMatrix(X, label=y)
    yield "squared", {}, plain, T
    yield "named", {}, xgb.DMatrix(X, label=y, feature_names=["a", "b b", "ç", "d=", "e"]), T
    yield "start", {"base_score": 3.25}, plain, T
    yield "pruned", {"gamma": 2, "max_depth": 5, "tree_method": "exact"}, plain, T
    yield "lossguide", {"grow_policy": "lossguide", "max_leaves": 6, "tree_method": "hist"}, plain, T
    yield "forest", {"num_parallel_tree": 3, "subsample": 0.6, "eta": 1}, plain, T
    for name in ("binary:logistic", "binary:logitraw", "binary:hinge", "reg:logistic"):
        yield name.replace(":", "-"), {"objective": name}, xgb.DMatrix(X, label=binary), T
    for name in ("count:poisson", "reg:gamma", "reg:tweedie", "reg:squaredlogerror"):
        yield name.replace(":", "-"), {"objective": name}, xgb.DMatrix(X, label=counts + 0.5), T
    if version >= (1, 7):
        for name in ("reg:absoluteerror", "reg:pseudohubererror"):
            yield name.replace(":", "-"), {"objective": name}, plain, T
    for name in ("multi:softprob", "multi:softmax"):
        yield name.replace(":", "-"), {"objective": name, "num_class": 3}, xgb.DMatrix(X, label=classes), T
    dart = {"booster": "dart", "rate_drop": 0.5, "one_drop": 1}
    if version >= (1, 7):  # before, dart added up in another order
        yield "dart", dart, plain, T
        yield "dart-multi", {**dart, "objective": "multi:softprob", "num_class": 3}, xgb.DMatrix(X, label=classes), T
    if version >= (3, 3):
        yield "dart-gbtree", {"rate_drop": 0.5, "one_drop": 1}, plain, T
        yield "expectile", {"objective": "reg:expectileerror", "expectile_alpha": [0.2, 0.8]}, plain, T
    ranking = xgb.DMatrix(X, label=classes)
    ranking.set_group([20] * 8)
    for name in ("rank:ndcg", "rank:pairwise", "rank:map"):
        data = ranking
        if name == "rank:map":
            data = xgb.DMatrix(X, label=binary)
            data.set_group([20] * 8)
        yield name.replace(":", "-"), {"objective": name}, data, T
    survival = xgb.DMatrix(X)
    survival.set_float_info("label_lower_bound", np.exp(y))
    survival.set_float_info("label_upper_bound", np.where(binary, np.exp(y) + 1, np.inf))
    yield "aft", {"objective": "survival:aft"}, survival, T
    times = np.where(binary, 1, -1) * (np.abs(y) + 0.1)
    yield "cox", {"objective": "survival:cox", "eval_metric": "cox-nloglik"}, xgb.DMatrix(X, label=times), T
    yield "cox-astray", {"objective": "survival:cox", "eta": 1e6, "lambda": 0}, xgb.DMatrix(X, label=times), T
    if version >= (1, 7):
        two = np.column_stack([y, -y + classes])
        yield "two-targets", {}, xgb.DMatrix(X, label=two), T
        codes = {"feature_types": KINDS, "enable_categorical": True}
        labeled = xgb.DMatrix(C, label=target(C), **codes)
        for name, onehot in (("one-hot", 100), ("partition", 1)):
            yield name, {"tree_method": "hist", "max_cat_to_onehot": onehot}, labeled, D
        yield "dart-partition", {**dart, "tree_method": "hist", "max_cat_to_onehot": 1}, labeled, D
    if version >= (2, 0):
        vectors = {"multi_strategy": "multi_output_tree", "tree_method": "hist"}
        yield "vectors", vectors, xgb.DMatrix(X, label=two), T
        yield "vectors-partition", vectors, xgb.DMatrix(C, label=np.column_stack([target(C), C[:, 2] > 0]), **codes), D
        yield (
            "quantile",
            {"objective": "reg:quantileerror", "quantile_alpha": [0.1, 0.9], "tree_method": "hist"},
            plain,
            T,
        )
    yield "linear", {"booster": "gblinear"}, plain, T


def write_archive(folder, name, scores):
    """Put the files and the scores of a version into one archive, with the same bytes for the same content."""
    np.savez_compressed(folder / "scores.npz", **scores)
    ZOO.mkdir(exist_ok=True)
    with zipfile.ZipFile(ZOO / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.iterdir()):
            info = zipfile.ZipInfo(file.name)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, file.read_bytes())


def attempt(train, case):
    """Train a model, or say that the library fails."""
    try:
        return train()
    except Exception:
        print(f"{case}: {traceback.format_exc().strip().splitlines()[-1][:200]}")
        return None


def train_xgboost(xgb, folder):
    scores = {"T": T, "D": D}
    version = ".".join(xgb.__version__.split(".")[:3])

    def save(booster, case, forms, data):
        for form in forms:
            name = f"{case}.{form}"
            booster.save_model(str(folder / name))
            of_categories = data is D
            matrix = xgb.DMatrix(
                data, **({"feature_types": KINDS, "enable_categorical": True} if of_categories else {})
            )
            matrix.feature_names = booster.feature_names
            raw = booster.predict(matrix, output_margin=True)
            scores[name] = np.asarray(raw)
            scores["rows of " + name] = np.array("D" if of_categories else "T")

    newest = tuple(int(part) for part in version.split(".")[:2]) >= (1, 7)
    for case, params, dtrain, data in xgboost_cases(xgb):
        settings = {"nthread": 1, "max_depth": 3, "seed": 1, "verbosity": 0, **params}
        if settings.get("booster") == "gblinear":
            settings = {"booster": "gblinear", "nthread": 1}
        booster = attempt(lambda: xgb.train(settings, dtrain, 3), case)  # noqa: B023
        if booster is None:
            continue
        both = case in ("squared", "dart", "partition", "vectors", "multi-softprob", "dart-gbtree")
        save(booster, case, ["json", "ubj"] if both and newest else ["json"], data)
    plain = xgb.DMatrix(X, label=target(X))
    booster = xgb.train({"nthread": 1, "max_depth": 3}, plain, 6)
    if hasattr(booster, "__getitem__"):
        save(booster[1:4], "slice", ["json"], T)
        save(booster[::2], "slice-of-every-second", ["json"], T)
    watched = [(xgb.DMatrix(T, label=-target(T)), "watched")]
    booster = xgb.train({"nthread": 1, "max_depth": 3}, plain, 30, watched, early_stopping_rounds=2, verbose_eval=False)
    save(booster, "early-stopped", ["json"], T)
    booster = xgb.train({"nthread": 1, "objective": "binary:logistic", "base_score": 0.3}, plain, 0)
    save(booster, "no-trees", ["json"], T)
    if newest and version < "3.1":
        save(xgb.train({"nthread": 1, "max_depth": 3}, plain, 3), "binary-format", ["deprecated"], T)
    if version >= "3.1":
        import pandas as pd

        for case, names in (("names", ["x", "yy", "zzz"]), ("names-not-ascii", ["àb", "c", "日本"])):
            code = np.random.RandomState(0).randint(0, 3, 160)
            frame = pd.DataFrame({"kind": pd.Categorical.from_codes(code, categories=names), "x": X[:, 2]})
            matrix = xgb.DMatrix(frame, label=code % 2 + np.nan_to_num(X[:, 2]), enable_categorical=True)
            booster = xgb.train({"nthread": 1, "max_depth": 3, "max_cat_to_onehot": 1}, matrix, 3)
            for form in ("json", "ubj"):
                name = f"{case}.{form}"
                booster.save_model(str(folder / name))
                codes = np.column_stack([code, X[:, 2]])
                scores[name] = booster.predict(matrix, output_margin=True)
                scores["rows of " + name] = np.array("codes")
                scores["codes"] = codes
    write_archive(folder, f"xgboost-{version}", scores)


def lightgbm_cases(lgb):
    version = tuple(int(part) for part in lgb.__version__.split(".")[:2])
    y = target(X)
    binary, counts, classes = y > 0, np.floor(np.abs(y)), np.digitize(y, [-1, 1])

    def data(label, rows_=X, **more):
        return lgb.Dataset(rows_, label=np.asarray(label, dtype=float), params={"verbose": -1}, **more)

    yield "regression", {}, data(y), T
    yield "named", {}, data(y, feature_name=["a", "bb", "c", "d", "e"]), T
    yield "binary", {"objective": "binary"}, data(binary), T
    yield "xentropy", {"objective": "xentropy" if version < (4, 0) else "cross_entropy"}, data(binary), T
    for name in ("quantile", "huber", "poisson", "tweedie", "gamma", "mape", "regression_l1"):
        yield name, {"objective": name}, data(counts + 0.5), T
    for name in ("multiclass", "multiclassova"):
        yield name, {"objective": name, "num_class": 3}, data(classes), T
    yield "dart", {"boosting": "dart", "drop_rate": 0.5, "skip_drop": 0}, data(y), T
    bagging = {"bagging_fraction": 0.6, "bagging_freq": 1}
    yield "rf", {"boosting": "rf", **bagging}, data(y), T
    yield "rf-multiclass", {"boosting": "rf", "objective": "multiclass", "num_class": 3, **bagging}, data(classes), T
    yield "goss", {"boosting": "goss", "learning_rate": 0.6}, data(y), T
    yield "lambdarank", {"objective": "lambdarank"}, data(classes, group=[20] * 8), T
    if version >= (3, 0):
        yield "xendcg", {"objective": "rank_xendcg"}, data(classes, group=[20] * 8), T
        yield "linear", {"linear_tree": True}, lgb.Dataset(X, label=y, params={"verbose": -1, "linear_tree": True}), T
        yield "extra", {"extra_trees": True}, data(y), T
    yield (
        "zero-is-missing",
        {"zero_as_missing": True},
        lgb.Dataset(X, label=y, params={"verbose": -1, "zero_as_missing": True}),
        T,
    )
    yield "no-missing", {"use_missing": False}, lgb.Dataset(X, label=y, params={"verbose": -1, "use_missing": False}), T
    yield "monotone", {"monotone_constraints": [1, 0, -1, 0, 0]}, data(y), T
    yield "constant", {}, data(np.zeros(len(X))), T
    for name, onehot in (("one-hot", 100), ("partition", 1)):
        settings = {"max_cat_to_onehot": onehot, "min_data_per_group": 5, "cat_smooth": 1}
        yield name, settings, data(target(C), C, categorical_feature=[0, 1]), D


def train_lightgbm(lgb, folder):
    scores = {"T": T, "D": D}
    version = lgb.__version__

    def save(booster, case, data):
        name = f"{case}.txt"
        booster.save_model(str(folder / name))
        scores[name] = booster.predict(data, raw_score=True)
        scores["rows of " + name] = np.array("D" if data is D else "T")

    base = {"num_threads": 1, "num_leaves": 6, "min_data_in_leaf": 5, "seed": 1, "verbose": -1}
    for case, params, dtrain, data in lightgbm_cases(lgb):
        booster = attempt(lambda: lgb.train({**base, **params}, dtrain, 3), case)  # noqa: B023
        if booster is not None:
            save(booster, case, data)
    plain = lgb.Dataset(X, label=target(X), params={"verbose": -1}, free_raw_data=False)
    booster = lgb.train(base, plain, 6)
    if version >= "3":
        text = booster.model_to_string(start_iteration=1, num_iteration=3)
        save(lgb.Booster(model_str=text), "slice", T)
        watched = lgb.Dataset(T, label=-target(T), reference=plain, params={"verbose": -1})
        stopping = {**base, "early_stopping_round": 2, "metric": "l2"}
        save(lgb.train(stopping, plain, 30, valid_sets=[watched]), "early-stopped", T)
    write_archive(folder, f"lightgbm-{version}", scores)


def train():
    warnings.simplefilter("ignore")
    for library, run in (("xgboost", train_xgboost), ("lightgbm", train_lightgbm)):
        try:
            module = __import__(library)
        except ImportError:
            continue
        with tempfile.TemporaryDirectory() as folder:
            run(module, Path(folder))


def make_environments(folder):
    """Install each line and let it train."""
    for requirement, python, numpy in LINES:
        where = Path(folder) / requirement.replace("==", "-")
        pythons = sorted(Path.home().glob(f".pyenv/versions/{python}.*/bin/python"))
        if not pythons:
            print(f"Python {python} is missing, so {requirement} is left out.")
            continue
        subprocess.run([pythons[-1], "-m", "venv", where], check=True)
        pip = [where / "bin/python", "-m", "pip", "install", "-q", "--no-cache-dir"]
        subprocess.run([*pip, numpy, "scipy", "pandas", "scikit-learn"], check=True)
        subprocess.run([*pip, "--no-deps", requirement], check=True)
        subprocess.run([where / "bin/python", __file__, "train"], check=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", choices=["train"])
    if parser.parse_args(sys.argv[1:]).what == "train":
        train()
    else:
        with tempfile.TemporaryDirectory() as environments:
            make_environments(environments)
