"""What the JSON of an estimator holds, part by part: only what save writes passes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from grbb_ext._spec import Spec
from grbb_ext.costs import FeatureCosts
from grbb_ext.persistence import NotPlainError, from_plain, to_plain

# Caches, and parameters of LightGBM that name files and machines: a fit would read, write, execute or call them. They
# are not saved, and a file that has one is refused.
OF_THIS_MACHINE = re.compile(
    r"memory|.*(file|machine|forced).*|(data|train|test|valid)(_data)?|valid_data_initscores|config|fs|mlist|workers|nodes|"
    r"(input|output)_(model|result)|model_(input|in|output|out)|predict(ion)?_(result|name)|pred_name|name_pred|"
    r"convert_model|(is_)?save_binary|snapshot_freq|save_period|(local_)?(listen_)?port"
)
_MOST_THREADS = 1024


def _is_int(value: Any, least: int = 0) -> bool:
    return type(value) is int and value >= least


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _is_text_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


def _is_wrapped(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == {"class", "params"}
        and isinstance(value["class"], str)
        and isinstance(value["params"], dict)
    )


def _is_categories(value: Any) -> bool:
    return isinstance(value, dict) and all(
        _is_int(key) and isinstance(names, tuple) and len(set(names)) == len(names) for key, names in value.items()
    )


def _is_history(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(metrics, dict)
        and all(isinstance(scores, list) and all(map(_is_number, scores)) for scores in metrics.values())
        for metrics in value.values()
    )


def _is_classes(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 1 and np.unique(value).size == value.size > 0


# What save writes: whether a value is None or passes the check. Those of the second part are plain values.
_PARTS: dict[str, Callable[[Any], bool]] = {
    "task": lambda value: isinstance(value, str),
    "library": lambda value: isinstance(value, str),
    "settings": lambda value: (
        isinstance(value, dict) and (value.get("estimator") is None or _is_wrapped(value["estimator"]))
    ),
    "not_saved": _is_text_list,
    "estimator": _is_wrapped,
    "n_features": lambda value: _is_int(value, 1),
    "feature_names": lambda value: value is None or _is_text_list(value),
    "categorical": lambda value: isinstance(value, list) and all(map(_is_int, value)) and value == sorted(set(value)),
    "unseen": lambda value: value in ("error", "missing"),
    "n_iter": _is_int,
    "best_iteration": lambda value: value is None or _is_int(value),
    "stop_reason": lambda value: value is None or isinstance(value, str),
    "evidence": lambda value: value is None or (isinstance(value, dict) and all(map(_is_number, value.values()))),
    "feature_cost": lambda value: value is None or _is_number(value),
    "paid": lambda value: isinstance(value, list) and all(type(source) in (int, str) for source in value),
    "ledger": lambda value: value is None or isinstance(value, dict),
}
_PLAIN_PARTS: dict[str, Callable[[Any], bool]] = {
    "categories": _is_categories,
    "missing": lambda value: type(value) is float,
    "evals_result": _is_history,
    "classes": _is_classes,
}


def checked(content: Mapping[str, Any], task: str) -> dict[str, Any]:
    """Return the parts of the JSON, each of the type that save writes."""
    expected = {*_PARTS, *_PLAIN_PARTS} - ({"classes"} if task == "regression" else set())
    if content.keys() != expected:
        raise ValueError(f"the parts {sorted(content.keys() ^ expected)} are missing, or nobody wrote them")
    parts = {name: content[name] for name in _PARTS} | {
        name: from_plain(content[name]) for name in _PLAIN_PARTS if name in expected
    }
    for name, check in (_PARTS | _PLAIN_PARTS).items():
        if name in parts and not check(parts[name]):
            raise ValueError(f"{name} is not what save writes")
    n_features = parts["n_features"]
    columns = parts["categorical"]
    if len(parts["feature_names"] or []) not in (0, n_features) or (columns and columns[-1] >= n_features):
        raise ValueError("there are more or fewer names than columns, or categories of columns that do not exist")
    if not parts["categories"].keys() <= set(columns):
        raise ValueError("there are categories of columns that have none")
    return parts | {"settings": dict(parts["settings"])}


_SETTING = (bool, int, float, str, list, tuple, dict, np.ndarray, Spec)
# Types of settings beside None; those that are not listed may be any of the above.
_SETTINGS: dict[str, tuple[type, ...]] = {
    "graph": (str, Spec, np.ndarray, list),
    "teacher": (str, Spec, list, tuple),
    "propagation": (str, Spec),
    "rule": (str, Spec),
    "feature_costs": (FeatureCosts,),
    "mu": (int, float),
    "budget": (int, float),
    "class_weight": (str, dict, list),
    "unlabeled": (bool, int, float, str),
    "categorical_features": (str, list, tuple, np.ndarray),
    "random_state": (int,),
    "verbose": (bool, int),
}


def settings_of(cls: Any, plain: dict[str, Any]) -> dict[str, Any]:
    """Return the settings; those that save never writes are refused, for a later fit would act on them."""
    for name in plain:
        if name not in cls._get_param_names() or OF_THIS_MACHINE.fullmatch(name):
            raise ValueError(f"save never writes the setting {name!r}")
    settings = {name: from_plain(value) for name, value in plain.items()}
    for name, value in settings.items():
        types = _SETTINGS.get(name, _SETTING)
        if value is not None and (not isinstance(value, types) or (type(value) is bool and bool not in types)):
            raise ValueError(f"the setting {name} is of type {type(value).__name__}")
    _check_threads(settings)
    return settings


def _check_threads(settings: Mapping[str, Any]) -> None:
    """Refuse numbers of threads that no machine has: the libraries end the process where they cannot start them."""
    for name in ("n_jobs", "nthread", "nthreads", "num_thread", "num_threads"):
        threads = settings.get(name)
        if threads is not None and (type(threads) is not int or abs(threads) > _MOST_THREADS):
            raise ValueError(f"{name} is {threads!r}")


def wrapped(estimator: Any, files: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the wrapped estimator as the name of its class and its parameters, and the names of those left out."""
    name = next(cls.__name__ for cls in type(estimator).__mro__ if cls in files.ESTIMATORS.values())
    params, left_out = {}, []
    for key, value in estimator.get_params(deep=False).items():
        try:
            if OF_THIS_MACHINE.fullmatch(key) and value is not None:
                raise NotPlainError
            params[key] = to_plain(value)
        except NotPlainError:
            left_out.append(f"estimator__{key}")
    return {"class": name, "params": params}, left_out


def unwrapped(plain: Any, files: Any) -> Any:
    params = {key: from_plain(value) for key, value in plain["params"].items()}
    for key, value in params.items():
        if value is not None and (OF_THIS_MACHINE.fullmatch(key) or not isinstance(value, _SETTING)):
            raise ValueError(f"save never writes the parameter {key!r}, or not as a {type(value).__name__}")
    _check_threads(params)
    for key, types in (("missing", (int, float)), ("importance_type", (str,))):
        if not isinstance(params.get(key), (*types, type(None))):
            raise ValueError(f"the parameter {key} is of type {type(params[key]).__name__}")
    return files.ESTIMATORS[plain["class"]](**params)
