"""What several machines cannot do, refused by name with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LIGHTGBM_ONLY = {
    "bagging_fraction",
    "boosting",
    "boosting_type",
    "feature_fraction",
    "lambda_l1",
    "lambda_l2",
    "local_listen_port",
    "machines",
    "min_data_in_leaf",
    "num_leaves",
    "num_machines",
    "tree_learner",
}

_WHY_NOT_LIGHTGBM = (
    "grbb_ext.adapters.dask trains XGBoost only. LightGBM's Dask estimators tell a custom objective neither which rows "
    "it has nor what other workers have, and with prices (coupled CEGB) its distributed trainer of version 4.7.0 "
    "silently returns corrupted models. Use XGBoost parameters here, or LightGBM on one machine with "
    "grbb_ext.adapters.lightgbm.train."
)


def check_booster(params: Mapping[str, Any], X: Any) -> None:
    """Refuse what belongs to LightGBM, and what contradicts the objective.

    Examples
    --------
    >>> check_booster({"num_leaves": 31}, None)
    Traceback (most recent call last):
        ...
    ValueError: num_leaves is a parameter of LightGBM. grbb_ext.adapters.dask trains XGBoost only. ...
    """
    if type(X).__module__.split(".")[0] == "lightgbm":
        raise TypeError(f"X is a {type(X).__name__} of LightGBM. {_WHY_NOT_LIGHTGBM}")
    theirs = sorted(name for name in params if name in _LIGHTGBM_ONLY or name.startswith("cegb_"))
    if theirs:
        raise ValueError(f"{theirs[0]} is a parameter of LightGBM. {_WHY_NOT_LIGHTGBM}")
    if "objective" in params:
        raise ValueError("objective is set by rule= and loss=: take it out of params.")
    if params.get("booster", "gbtree") != "gbtree":
        raise ValueError(f"booster={params['booster']!r} is not tested on several machines: use 'gbtree'.")


def complete_params(params: Mapping[str, Any], n_outputs: int) -> dict[str, Any]:
    """Return the parameters with the start at 0 and the number of classes, or refuse another.

    Examples
    --------
    >>> complete_params({"eta": 0.1}, 3)
    {'eta': 0.1, 'base_score': 0, 'disable_default_eval_metric': 1, 'num_class': 3}
    """
    full = dict(params)
    full.setdefault("base_score", 0)
    # XGBoost's own default metric would take the marker of unlabelled rows for a class.
    full.setdefault("disable_default_eval_metric", 1)
    if n_outputs > 1:
        full.setdefault("num_class", n_outputs)
    if full.get("num_class", n_outputs if n_outputs > 1 else 0) not in ({n_outputs} if n_outputs > 1 else {0, 1}):
        raise ValueError(
            f"num_class={full['num_class']}, but y has {max(n_outputs, 2)} classes: take it out of params."
        )
    return full
