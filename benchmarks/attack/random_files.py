"""Small models of random parameters, and random damage of files and documents."""

from __future__ import annotations

import json
from typing import Any

import numpy as np


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
    label: Any = y
    more: dict[str, Any] = {}
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


# What takes the place of a number in a file.
_WORDS = [
    b"0", b"-1", b"1", b"2", b"7", b"-2147483648", b"2147483647", b"99999999999", b"30000000", b"0.5", b"-0", b"1e308",
    b"1e999", b"nan", b"inf", b"1_0", b"0x1p3", b"1 2", b"", b"x", b"\xff", b"null", b"[]", b"{}", b"true", b'"a"',
]  # fmt: skip
# What takes the place of a value in a document.
_VALUES: list[Any] = [
    0, -1, 1, 2, 7, 2**31, 10**12, 0.5, 1e38, -1e-40, None, True, "", "0", "3", "x", "30000000", "[5E-1,1E0]", [],
    [0], {},
]  # fmt: skip


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
