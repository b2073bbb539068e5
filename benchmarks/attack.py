"""What gets through: mutated files, forged folders and random models, against the readers and ``load``.

``python -m benchmarks.attack --full`` runs what is missing of the batches in ``docs/results/attack.csv`` and writes the
table ``attack.md`` beside it. ``make fuzz`` runs new cases for a minute (``--seconds 60``), elsewhere, and fails if one
comes through. Batches run in processes of their own with a limit of memory, so that an abort or a hang of a library is
counted and the next case goes on. A case ends in one of these ways:

- *equal*: read, and the raw scores have the bits of the library's.
- *refused*: with the exception that the documentation promises (ValueError, ModelFileError).
- *refused by the library*: we read it and the library does not.
- *different*: both read it and the scores differ, or damage went unnoticed.
- *foreign*: another exception.
- *abort*, *hang*: the process ended, or did not go on for half a minute.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.results import PACKAGES, RESULTS, ResultTable, package_versions

ENDS = ("equal", "refused", "refused by the library", "different", "foreign", "abort", "hang")
#: What must not happen.
BAD = ("different", "foreign", "abort", "hang")
COLUMNS = ("attack", "batch", "cases", *ENDS, "seconds", "details", *PACKAGES)
_PATIENCE = 30.0
_MEMORY = 6 * 2**30

#: One case: draws from the generator, and returns how it ended and a word about it.
Case = Callable[[np.random.Generator], tuple[str, str]]


class Attack(NamedTuple):
    """A kind of case: what prepares it (once in a process), and how much of it a full run takes."""

    prepare: Callable[[Path], Case]
    batches: int
    cases: int


# Models to start from.


def _rows(rng: np.random.Generator, n: int, d: int, kinds: int) -> Any:
    X = np.round(rng.normal(size=(n, d)), 1)
    X[:, :kinds] = rng.integers(0, int(rng.choice([3, 12, 60])), (n, kinds))
    X[rng.random(X.shape) < rng.choice([0.0, 0.2])] = np.nan
    X[rng.random(X.shape) < rng.choice([0.0, 0.4])] = 0.0
    return X


def _target(rng: np.random.Generator, X: Any) -> Any:
    filled = np.nan_to_num(X)
    return filled @ rng.normal(size=X.shape[1]) + (filled[:, 0] % 3) + rng.normal(size=len(X))


def random_xgboost(rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Train a small model of random parameters; return it, rows to predict and what makes a matrix of them."""
    import xgboost as xgb

    d = int(rng.integers(1, 7))
    kinds = int(rng.integers(0, d + 1)) if rng.random() < 0.4 else 0
    X = _rows(rng, int(rng.integers(20, 150)), d, kinds)
    y = _target(rng, X)
    params: dict[str, Any] = {
        "nthread": 1, "verbosity": 0, "seed": int(rng.integers(100)), "max_depth": int(rng.integers(1, 7)),
        "eta": float(rng.choice([0.1, 0.5, 1.0])), "lambda": float(rng.choice([0.0, 1.0])),
        "min_child_weight": float(rng.choice([0.0, 1.0, 5.0])), "gamma": float(rng.choice([0.0, 1.0])),
        "tree_method": "hist" if kinds else str(rng.choice(["hist", "exact", "approx"])),
        "max_cat_to_onehot": int(rng.choice([1, 4, 100])), "subsample": float(rng.choice([0.6, 1.0])),
    }  # fmt: skip
    if rng.random() < 0.3:
        params |= {"booster": "dart", "rate_drop": 0.5, "one_drop": 1}
    if rng.random() < 0.2:
        params |= {"num_parallel_tree": 3}
    if rng.random() < 0.2 and params["tree_method"] == "hist":
        params |= {"grow_policy": "lossguide", "max_leaves": 8, "max_depth": 0}
    task = str(rng.choice(["squared", "binary", "multi", "poisson", "vectors", "targets", "rank", "aft", "quantile"]))
    label: Any = y
    if task == "binary":
        params |= {"objective": str(rng.choice(["binary:logistic", "binary:logitraw", "binary:hinge"]))}
        label = y > np.median(y)
    elif task == "multi":
        params |= {"objective": "multi:softprob", "num_class": 3}
        label = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    elif task == "poisson":
        params |= {"objective": str(rng.choice(["count:poisson", "reg:gamma", "reg:tweedie"]))}
        label = np.abs(y) + 0.1
    elif task in ("vectors", "targets"):
        label = np.column_stack([y, -y + X[:, -1:].sum(axis=1, where=~np.isnan(X[:, -1:]))])
        if task == "vectors" and params.get("booster") != "dart" and not kinds:
            params |= {"multi_strategy": "multi_output_tree", "tree_method": "hist", "gamma": 0.0}
    elif task == "quantile" and params["tree_method"] != "exact":
        params |= {"objective": "reg:quantileerror", "quantile_alpha": [0.2, 0.8]}
    if rng.random() < 0.3 and task not in ("poisson",):
        params["base_score"] = float(rng.choice([0.1, 0.5, 0.9]))
    types = ["c"] * kinds + ["q"] * (d - kinds)
    more = {"feature_types": types, "enable_categorical": True} if kinds else {}

    def matrix(values: Any, **info: Any) -> Any:
        return xgb.DMatrix(values, nthread=1, **more, **info)

    data = matrix(X, label=label)
    if task == "rank":
        params |= {"objective": "rank:ndcg"}
        data = matrix(X, label=np.digitize(y, [0]))
        data.set_group([len(X)])
    elif task == "aft":
        params |= {"objective": "survival:aft"}
        data = matrix(X, label_lower_bound=np.abs(y) + 0.1, label_upper_bound=np.abs(y) + 1)
    return xgb.train(params, data, int(rng.integers(1, 5))), X, matrix


def random_lightgbm(rng: np.random.Generator) -> tuple[Any, Any]:
    """Train a small model of random parameters; return it and rows to predict."""
    import lightgbm as lgb

    d = int(rng.integers(1, 7))
    kinds = int(rng.integers(0, d + 1)) if rng.random() < 0.4 else 0
    X = _rows(rng, int(rng.integers(30, 200)), d, kinds)
    X[: len(X) // 2, -1] += 1e-3 * np.arange(len(X) // 2)  # a column that can be split
    y = _target(rng, X)
    params: dict[str, Any] = {
        "num_threads": 1, "verbosity": -1, "seed": int(rng.integers(100)), "num_leaves": int(rng.integers(2, 20)),
        "min_data_in_leaf": int(rng.integers(1, 10)), "max_bin": int(rng.choice([7, 255])), "min_data_in_bin": 1,
        "boosting": str(rng.choice(["gbdt", "dart", "rf"])), "use_missing": bool(rng.random() < 0.7),
        "zero_as_missing": bool(rng.random() < 0.3), "max_cat_to_onehot": int(rng.choice([1, 4, 100])),
        "min_data_per_group": 2, "cat_smooth": 1.0, "bagging_fraction": 0.7, "bagging_freq": 1,
        "extra_trees": bool(rng.random() < 0.2), "linear_tree": bool(rng.random() < 0.05),
    }  # fmt: skip
    label, more = y, {}
    task = str(rng.choice(["regression", "binary", "multiclass", "poisson", "lambdarank", "quantile", "cross_entropy"]))
    params["objective"] = task
    if task in ("binary", "cross_entropy"):
        label = y > np.median(y)
    elif task == "multiclass":
        params["num_class"] = 3
        label = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    elif task == "poisson":
        label = np.abs(y)
    elif task == "lambdarank":
        label, more = np.digitize(y, [0]), {"group": [len(X)]}
    data = lgb.Dataset(X, label=label, categorical_feature=list(range(kinds)) or "auto", params=params, **more)
    return lgb.train(params, data, int(rng.integers(1, 5))), X


# Damage.

_WORDS = [b"0", b"-1", b"1", b"2", b"7", b"-2147483648", b"2147483647", b"99999999999", b"1e308", b"1e999", b"nan", b"inf",
          b"0.5", b"-0", b"", b"x", b"1 2", b"\xff", b"1_0", b"0x1p3", b"null", b"[]", b"{}", b"true", b'"a"', b"30000000"]  # fmt: skip
_VALUES: list[Any] = [0, -1, 1, 2, 7, 2**31, 10**12, 0.5, 1e38, -1e-40, None, True, "", "0", "3", "x", "30000000", [], [0], {}, "[5E-1,1E0]"]  # fmt: skip


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """Change a few places of a file: bytes, digits, numbers, pieces, lines."""
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        if not changed:
            break
        at = int(rng.integers(len(changed)))
        kind = int(rng.integers(8))
        length = int(rng.integers(1, 40))
        if kind == 0:
            changed[at] = int(rng.integers(256))
        elif kind == 1:
            digits = [i for i in range(at, min(at + 400, len(changed))) if 48 <= changed[i] < 58]
            if digits:
                changed[int(rng.choice(digits))] = int(rng.integers(48, 58))
        elif kind == 2:
            del changed[at : at + length]
        elif kind == 3:
            changed[at:at] = changed[at : at + length]
        elif kind == 4:
            other = int(rng.integers(len(changed)))
            changed[at : at + length] = changed[other : other + length]
        elif kind == 5:
            end = at
            while end < len(changed) and chr(changed[end]) in "0123456789.eE+-":
                end += 1
            changed[at:end] = _WORDS[int(rng.integers(len(_WORDS)))]
        elif kind == 6:
            lines = bytes(changed).split(b"\n")
            i, j = (int(rng.integers(len(lines))) for _ in range(2))
            lines[i], lines[j] = lines[j], lines[i]
            changed = bytearray(b"\n".join(lines))
        elif rng.random() < 0.2:
            del changed[at:]
    return bytes(changed)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the places in a document, a few of each long list."""
    below: list[tuple[Any, ...]] = []
    if isinstance(value, dict):
        below = [place for key in value for place in _paths(value[key], (*path, key))]
    elif isinstance(value, list):
        below = [place for i in range(len(value))[:12] for place in _paths(value[i], (*path, i))]
    return [path, *below] if path else below


def changed_document(document: Any, rng: np.random.Generator) -> Any:
    """Change, remove, repeat or exchange values of a JSON document."""
    document = json.loads(json.dumps(document))
    for _ in range(int(rng.integers(1, 3))):
        places = _paths(document)
        if not places:
            break
        *parents, last = places[int(rng.integers(len(places)))]
        part = document
        for key in parents:
            part = part[key]
        kind = int(rng.integers(6))
        if kind == 0:
            del part[last]
        elif kind == 1 and isinstance(part, list):
            part.insert(int(rng.integers(len(part) + 1)), part[last])
        elif kind == 2 and isinstance(part[last], (int, float)) and not isinstance(part[last], bool):
            part[last] = part[last] + type(part[last])(rng.choice([-1, 1, 2, 100]))
        elif kind == 3 and isinstance(part, list) and len(part) > 1:
            other = int(rng.integers(len(part)))
            part[last], part[other] = part[other], part[last]
        else:
            part[last] = _VALUES[int(rng.integers(len(_VALUES)))]
    return document


# The attacks.


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
    costs = FeatureCosts(
        needs={"a": ["draw", "a"], "b": ["draw"], "c": ["scan"]}, prices={"draw": 1.0, "a": 0.5, "scan": 4.0}
    )
    words, numbers = (
        np.where(labeled, np.array(["lo", "mid", "hi"])[code], "?"),
        np.where(labeled, X["a"] + code, np.nan),
    )
    settings = {"n_estimators": 4, "max_depth": 3, "n_jobs": 1}
    models = {
        "lightgbm-costs": (GRBBClassifier(lgb.LGBMClassifier(**settings, verbose=-1), feature_costs=costs, mu=0.01, unlabeled="?").fit(X, words), X),
        "lightgbm-kinds": (GRBBClassifier(lgb.LGBMClassifier(**settings, verbose=-1, min_child_samples=2)).fit(kinds, np.where(labeled, code % 2, -1)), kinds),
        "lightgbm-numbers": (GRBBRegressor(lgb.LGBMRegressor(**settings, verbose=-1)).fit(X, numbers), X),
        "xgboost-costs": (GRBBClassifier(xgb.XGBClassifier(**settings), feature_costs=costs, mu=0.01, unlabeled="?").fit(X, words), X),
        "xgboost-kinds": (GRBBClassifier(xgb.XGBClassifier(**settings, booster="dart", rate_drop=0.5)).fit(kinds, np.where(labeled, code % 2, -1)), kinds),
        "xgboost-numbers": (GRBBRegressor(xgb.XGBRegressor(**settings)).fit(X, numbers), X),
    }  # fmt: skip
    for name, (model, _) in models.items():
        model.save(folder / name)
    return models


def forged_folders(folder: Path) -> Case:
    """Mutated boosters and JSON with renewed checksums: refused, or a model that agrees with its own file."""
    from dataclasses import replace

    import grbb_ext
    from grbb_ext.persistence import read_folder, sha256

    models = _saved(folder)

    def case(rng: np.random.Generator) -> tuple[str, str]:
        name = str(rng.choice(list(models)))
        model, rows = models[name]
        path = folder / "forged"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(folder / name, path)
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
        repr(loaded), loaded.feature_importances_, list(loaded._staged_raw_scores(rows))
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
        name = str(rng.choice(list(models)))
        model, rows = models[name]
        path = folder / "damaged"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(folder / name, path)
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
    from grbb_ext import Forest

    def case(rng: np.random.Generator) -> tuple[str, str]:
        booster, X, matrix = random_xgboost(rng)
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


# Running them.


def work(name: str, batch: int, first: int, cases: int) -> None:
    """Run cases of a batch in this process; a line for each."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    warnings.simplefilter("ignore")
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the libraries print
    with tempfile.TemporaryDirectory() as folder:
        case = ATTACKS[name].prepare(Path(folder))
        print("ready", file=out, flush=True)
        for i in range(first, cases):
            try:
                end, word = case(np.random.default_rng([*name.encode(), batch, i]))
            except Exception as error:
                end, word = "foreign", f"{type(error).__name__}: {error}"
            print(json.dumps([i, end, word[:300]]), file=out, flush=True)


def run_batch(name: str, batch: int, cases: int) -> dict[str, Any]:
    """Run a batch in other processes, and count how its cases end."""
    started, ends, details, i = time.perf_counter(), Counter[str](), [], 0
    while i < cases:
        command = [sys.executable, "-m", "benchmarks.attack", "--work", name, str(batch), str(i), str(cases)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        )
        assert process.stdout is not None
        hung, prepared = False, False
        with selectors.DefaultSelector() as waiting:
            waiting.register(process.stdout, selectors.EVENT_READ)
            while True:
                if not waiting.select(_PATIENCE * (1 if prepared else 10)):
                    hung = True
                    process.kill()
                    break
                line = process.stdout.readline()
                if not line:
                    break
                if line == "ready\n":
                    prepared = True
                    continue
                i, end, word = json.loads(line)
                i += 1
                ends[end] += 1
                if end in BAD:
                    details.append(f"{i - 1} {end}: {word}")
        process.wait()
        if i < cases:
            if not prepared:
                raise RuntimeError(f"{name} cannot be prepared: run {' '.join(command)}")
            end = "hang" if hung else "abort"
            ends[end] += 1
            details.append(f"{i} {end}")
            i += 1
    return {
        "attack": name, "batch": batch, "cases": cases, **{end: ends[end] for end in ENDS},
        "seconds": f"{time.perf_counter() - started:.1f}", "details": "; ".join(details)[:2000], **package_versions(),
    }  # fmt: skip


def report(rows: list[dict[str, str]]) -> str:
    """Return the table: what was attacked, how often, what came through."""
    lines = ["| attack | cases | " + " | ".join(ENDS) + " |", "|---|" + "---|" * (1 + len(ENDS))]
    for name in dict.fromkeys(row["attack"] for row in rows):
        of_attack = [row for row in rows if row["attack"] == name]
        sums = [sum(int(row[column]) for row in of_attack) for column in ("cases", *ENDS)]
        lines.append(f"| {name} | " + " | ".join(f"{value:,}" for value in sums) + " |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="all batches that are missing")
    parser.add_argument("--seconds", type=float, default=60, help="without --full: new cases for that long")
    parser.add_argument("--attacks", nargs="+", choices=list(ATTACKS), default=list(ATTACKS))
    parser.add_argument("--results", type=Path, help="folder of attack.csv and attack.md")
    parser.add_argument("--report", action="store_true", help="only make the table")
    parser.add_argument("--work", nargs=4, metavar=("ATTACK", "BATCH", "FIRST", "CASES"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        name, *numbers = options.work
        work(name, *map(int, numbers))
        return 0
    results = options.results or (RESULTS if options.full or options.report else Path("docs/_build/fuzz"))
    table = ResultTable(results / "attack.csv", COLUMNS, COLUMNS[:2])
    bad = 0
    if not options.report:
        end = time.monotonic() + options.seconds
        # Cases that nobody has run: batches are numbered by the clock.
        batch = 0 if options.full else time.time_ns() // 10**6
        while options.full or time.monotonic() < end:
            left = [name for name in options.attacks if not options.full or batch < ATTACKS[name].batches]
            if not left:
                break
            for name in left:
                if table.has({"attack": name, "batch": batch}) or (not options.full and time.monotonic() > end):
                    continue
                row = run_batch(name, batch, ATTACKS[name].cases if options.full else 40)
                table.append([row])
                came_through = sum(row[how] for how in BAD)
                bad += came_through
                if came_through:
                    print(f"{name}, batch {batch}: {row['details']}", flush=True)
            batch += 1
    rows = table.read()
    (results / "attack.md").write_text(report(rows) + "\n", encoding="utf-8")
    print(report(rows))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
