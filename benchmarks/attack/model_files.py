"""Attacks on the readers of model files and on ``load``."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.attack import Attack, Case
from benchmarks.attack.random_files import changed_document, damaged, random_lightgbm, random_xgboost


def _same(left: Any, right: Any) -> bool:
    return left.shape == right.shape and np.array_equal(left, right, equal_nan=True)


def _read_both(data: bytes, predict: Callable[[bytes, Any], Any]) -> tuple[str, str]:
    """Read a file, and let the library read it too if we do; compare scores on rows that meet the splits."""
    from grbb_ext import Forest

    try:
        forest = Forest.from_bytes(data)
        rows = forest.rows_at_splits(min(20, 100_000 // forest.n_features + 1))
        ours = forest.predict(rows)
    except ValueError as error:
        return "refused", str(error)
    try:
        scores = predict(data, rows)
    except Exception as error:
        return "refused by the library", str(error)
    return ("equal", "") if _same(ours, scores) else ("different", f"{ours.ravel()[:3]} {scores.ravel()[:3]}")


def xgboost_files(folder: Path) -> Case:
    """Mutated JSON and UBJSON."""
    import xgboost as xgb

    rng = np.random.default_rng(0)
    models = [random_xgboost(rng)[0] for _ in range(30)]

    def predict(data: bytes, rows: Any) -> Any:
        booster = xgb.Booster({"nthread": 1}, model_file=bytearray(data))
        types = booster.feature_types
        matrix = xgb.DMatrix(rows, feature_types=types, enable_categorical=True, nthread=1)
        return booster.predict(matrix, output_margin=True, validate_features=False)

    def case(rng: np.random.Generator) -> tuple[str, str]:
        model = models[int(rng.integers(len(models)))]
        kind = int(rng.integers(3))
        data = bytes(model.save_raw("ubj" if kind == 0 else "json"))
        if kind == 2:
            return _read_both(json.dumps(changed_document(json.loads(data), rng)).encode(), predict)
        return _read_both(damaged(data, rng), predict)

    return case


def lightgbm_files(folder: Path) -> Case:
    """Mutated texts."""
    import lightgbm as lgb

    rng = np.random.default_rng(0)
    texts = [random_lightgbm(rng)[0].model_to_string().encode() for _ in range(30)]

    def predict(data: bytes, rows: Any) -> Any:
        return lgb.Booster(model_str=data.decode()).predict(rows, raw_score=True, num_threads=1)

    def case(rng: np.random.Generator) -> tuple[str, str]:
        text = texts[int(rng.integers(len(texts)))]
        # The trees are at the beginning; what follows is a list of parameters.
        end = text.index(b"end of trees") + 40
        part = damaged(text[:end], rng) + text[end:] if rng.random() < 0.9 else damaged(text, rng)
        if rng.random() < 0.7:
            part = _with_sizes(part)
        return _read_both(part, predict)

    return case


def _with_sizes(text: bytes) -> bytes:
    """Renew the lengths of the trees, so that damage in a tree is not noticed by them."""
    head, *blocks = text.split(b"\nTree=")
    if not blocks:
        return text
    sizes = [len(block) + 6 for block in blocks]
    sizes[-1] = blocks[-1].find(b"end of trees") + 4
    lines = [b"tree_sizes=" + b" ".join(b"%d" % size for size in sizes) if line.startswith(b"tree_sizes=") else line
             for line in head.split(b"\n")]  # fmt: skip
    return b"\nTree=".join([b"\n".join(lines), *blocks])


def _saved(folder: Path) -> dict[str, tuple[Any, Any]]:
    """Save a few estimators; return them and the rows to predict."""
    import lightgbm as lgb
    import pandas as pd
    import xgboost as xgb

    from grbb_ext import FeatureCosts, GRBBClassifier, GRBBRegressor

    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(size=(120, 3)), columns=["a", "b", "c"])
    code = (3 * X["a"]).astype(int).to_numpy()
    kinds = X.assign(kind=pd.Categorical.from_codes(code, categories=["x", "y", "z"]))
    labeled = np.arange(120) % 4 == 0
    prices = {"draw": 1.0, "a": 0.5, "scan": 4.0}
    costs = FeatureCosts(needs={"a": ["draw", "a"], "b": ["draw"], "c": ["scan"]}, prices=prices)
    words = np.where(labeled, np.array(["lo", "mid", "hi"])[code], "?")
    bits, numbers = np.where(labeled, code % 2, -1), np.where(labeled, X["a"] + code, np.nan)
    settings: dict[str, Any] = {"n_estimators": 4, "max_depth": 3, "n_jobs": 1}
    small: dict[str, Any] = {**settings, "verbose": -1, "min_child_samples": 2}
    dart: dict[str, Any] = {**settings, "booster": "dart", "rate_drop": 0.5}
    paid: dict[str, Any] = {"feature_costs": costs, "mu": 0.01, "unlabeled": "?"}
    models = {
        "lightgbm-costs": (GRBBClassifier(lgb.LGBMClassifier(**small), **paid).fit(X, words), X),
        "lightgbm-kinds": (GRBBClassifier(lgb.LGBMClassifier(**small)).fit(kinds, bits), kinds),
        "lightgbm-numbers": (GRBBRegressor(lgb.LGBMRegressor(**small)).fit(X, numbers), X),
        "xgboost-costs": (GRBBClassifier(xgb.XGBClassifier(**settings), **paid).fit(X, words), X),
        "xgboost-kinds": (GRBBClassifier(xgb.XGBClassifier(**dart)).fit(kinds, bits), kinds),
        "xgboost-numbers": (GRBBRegressor(xgb.XGBRegressor(**settings)).fit(X, numbers), X),
    }
    for name, (model, _) in models.items():
        model.save(folder / name)
    return models


def _copied(folder: Path, names: list[str], rng: np.random.Generator) -> tuple[str, Path]:
    """Draw a saved model; return its name and the path of a fresh copy, to be changed."""
    name, path = str(rng.choice(names)), folder / "copy"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(folder / name, path)
    return name, path


def forged_folders(folder: Path) -> Case:
    """Mutated boosters and JSON with renewed checksums: refused, or a model that agrees with its own file."""
    from dataclasses import replace

    import grbb_ext
    from grbb_ext.persistence import read_folder, sha256

    models = _saved(folder)

    def case(rng: np.random.Generator) -> tuple[str, str]:
        name, path = _copied(folder, list(models), rng)
        _, rows = models[name]
        document, data = read_folder(path)
        if rng.random() < 0.5:
            data = damaged(data, rng)
            data = _with_sizes(data) if name.startswith("lightgbm") and rng.random() < 0.7 else data
        else:
            document = replace(document, content=changed_document(dict(document.content), rng))
        (path / document.model_file).write_bytes(data)
        document = replace(document, model_sha256=sha256(data))
        (path / "grbb.json").write_text(document.text(), encoding="utf-8")
        try:
            loaded = grbb_ext.load(path)
        except grbb_ext.ModelFileError as error:
            return "refused", str(error)
        try:
            loaded.predict(rows)
        except ValueError as error:  # other names of columns or categories: the rows are refused
            return "refused", str(error)
        if hasattr(loaded, "predict_proba"):
            loaded.predict_proba(rows)
        assert repr(loaded)
        assert loaded.feature_importances_.size
        assert list(loaded._staged_raw_scores(rows))
        scores = loaded._raw_scores(rows)
        if not _same(scores, loaded.forest_.predict(rows)):
            return "different", f"{name}"
        return "equal", ""

    return case


def damaged_folders(folder: Path) -> Case:
    """Random damage of the files, without renewed checksums: refused, or what was saved."""
    import grbb_ext

    models = _saved(folder)

    def case(rng: np.random.Generator) -> tuple[str, str]:
        name, path = _copied(folder, list(models), rng)
        model, rows = models[name]
        file = path / str(rng.choice([entry.name for entry in path.iterdir()]))
        file.write_bytes(damaged(file.read_bytes(), rng))
        try:
            loaded = grbb_ext.load(path)
        except grbb_ext.ModelFileError as error:
            return "refused", str(error)
        return ("equal", "") if _same(loaded._raw_scores(rows), model._raw_scores(rows)) else ("different", name)

    return case


def _model_rows(forest: Any, X: Any, rng: np.random.Generator) -> Any:
    return np.vstack([X, forest.rows_at_splits(40, int(rng.integers(2**31)))])


def xgboost_models(folder: Path) -> Case:
    """Random models against Forest."""
    import xgboost as xgb

    from grbb_ext import Forest

    def case(rng: np.random.Generator) -> tuple[str, str]:
        try:
            booster, X, matrix = random_xgboost(rng)
        except xgb.core.XGBoostError as error:
            return "refused by the library", str(error)
        try:
            forest = Forest.from_booster(booster)
        except ValueError as error:
            return "refused", str(error)
        rows = _model_rows(forest, X, rng)
        scores = booster.predict(matrix(rows), output_margin=True)
        again = Forest.from_bytes(bytes(booster.save_raw("json")))
        return (
            ("equal", "")
            if _same(forest.predict(rows), scores) and _same(again.predict(rows), scores)
            else ("different", "")
        )

    return case


def lightgbm_models(folder: Path) -> Case:
    """Random models against Forest, dense and sparse."""
    import lightgbm as lgb
    import scipy.sparse as sp

    from grbb_ext import Forest

    def case(rng: np.random.Generator) -> tuple[str, str]:
        try:
            booster, X = random_lightgbm(rng)
        except lgb.basic.LightGBMError as error:
            return "refused by the library", str(error)
        try:
            forest = Forest.from_booster(booster)
        except ValueError as error:
            return "refused", str(error)
        rows = _model_rows(forest, X, rng)
        for form in (np.asarray, sp.csr_matrix, sp.csc_matrix, lambda values: sp.csr_matrix(values.astype(np.float32))):
            if not _same(forest.predict(form(rows)), booster.predict(form(rows), raw_score=True, num_threads=1)):
                return "different", str(form)
        return "equal", ""

    return case


ATTACKS = {
    "mutated XGBoost files": Attack(xgboost_files, 40, 200),
    "mutated LightGBM files": Attack(lightgbm_files, 40, 200),
    "forged saved models": Attack(forged_folders, 30, 200),
    "damaged saved models": Attack(damaged_folders, 15, 200),
    "random XGBoost models": Attack(xgboost_models, 10, 60),
    "random LightGBM models": Attack(lightgbm_models, 10, 60),
}
