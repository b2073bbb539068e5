"""Parameters of LightGBM that costs have to know: which are refused, and by what names they go."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Names under which LightGBM accepts the parameters read here, the proper one first.
_ALIASES = {
    names.split()[0]: names.split()
    for names in """\
bagging_fraction sub_row subsample bagging
bagging_freq subsample_freq
bagging_seed bagging_fraction_seed
boosting boosting_type boost
categorical_feature cat_feature categorical_column cat_column categorical_features
device_type device
early_stopping_round early_stopping_rounds early_stopping n_iter_no_change
extra_trees extra_tree
feature_contri feature_contrib fc fp feature_penalty
feature_fraction sub_feature colsample_bytree
feature_fraction_bynode sub_feature_bynode colsample_bynode
forcedsplits_filename fs forced_splits_filename forced_splits_file forced_splits
is_unbalance unbalance unbalanced_sets
linear_tree linear_trees
metric metrics metric_types
min_sum_hessian_in_leaf min_sum_hessian_per_leaf min_sum_hessian min_hessian min_child_weight
monotone_penalty monotone_splits_penalty ms_penalty mc_penalty
neg_bagging_fraction neg_sub_row neg_subsample neg_bagging
num_class num_classes
num_iterations num_iteration n_iter num_tree num_trees num_round num_rounds nrounds num_boost_round \
max_iter n_estimators
num_leaves num_leaf max_leaves max_leaf max_leaf_nodes
num_machines num_machine
num_threads num_thread nthread nthreads n_jobs
objective objective_type app application loss
pos_bagging_fraction pos_sub_row pos_subsample pos_bagging
scale_pos_weight
seed random_seed random_state
tree_learner tree tree_type tree_learner_type
verbosity verbose
""".splitlines()
}


def get(params: dict[str, Any], name: str, default: Any = None) -> Any:
    """Return a parameter under whichever of its names it was given.

    Examples
    --------
    >>> get({"subsample": 0.5}, "bagging_fraction", 1.0)
    0.5
    """
    return next((params[alias] for alias in _ALIASES.get(name, [name]) if params.get(alias) is not None), default)


def pop(params: dict[str, Any], name: str) -> Any:
    """Take a parameter out under all of its names, and return it."""
    value = get(params, name)
    for alias in _ALIASES.get(name, [name]):
        params.pop(alias, None)
    return value


def given(params: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    """Return a value under all the names under which a parameter was given.

    Examples
    --------
    >>> given({"n_estimators": 100, "num_trees": 50}, "num_iterations", 20)
    {'num_trees': 20, 'n_estimators': 20}
    """
    return {alias: value for alias in _ALIASES[name] if alias in params}


def check_params(params: dict[str, Any]) -> None:
    """Refuse what costs cannot be kept under, by name.

    Examples
    --------
    >>> check_params({"boosting": "dart"})
    Traceback (most recent call last):
    ...
    ValueError: boosting='dart' does not go with costs: a round that dropped trees cannot be taken back. Use 'gbdt', ...
    """
    for name in ("tradeoff", "penalty_split", "penalty_feature_lazy", "penalty_feature_coupled"):
        if f"cegb_{name}" in params:
            raise ValueError(f"cegb_{name} is set by costs= and mu=. Take it out of params, or leave costs= out.")
    boosting = str(get(params, "boosting", "gbdt"))
    if boosting == "dart":
        raise ValueError(
            "boosting='dart' does not go with costs: a round that dropped trees cannot be taken back. Use 'gbdt', with "
            "data_sample_strategy='goss' where you like."
        )
    if boosting in ("rf", "random_forest"):
        raise ValueError(
            f"boosting={boosting!r} does not go with costs: its rounds do not build on each other. Use 'gbdt'."
        )
    learner = str(get(params, "tree_learner", "serial"))
    if learner != "serial" or int(get(params, "num_machines", 1)) > 1:
        raise ValueError(
            "Distributed training does not go with costs: LightGBM's penalties silently corrupt models on several "
            "machines. Use tree_learner='serial' and num_machines=1."
        )
    device = str(get(params, "device_type", "cpu"))
    if device != "cpu":
        raise ValueError(
            f"device_type={device!r} does not go with costs: its tree learner has no penalties. Use 'cpu'."
        )
    if is_true(get(params, "linear_tree", False)):
        raise ValueError("linear_tree does not go with costs: gains are those of constant leaves. Take it out.")
    if get(params, "forcedsplits_filename", ""):
        raise ValueError("forcedsplits_filename does not go with costs: forced splits buy at any price. Take it out.")


def refuse_forest(params: dict[str, Any]) -> None:
    """Refuse random forests with an objective that is a function: LightGBM has none, and would name its own losses."""
    boosting = get(params, "boosting")
    if boosting in ("rf", "random_forest") and callable(get(params, "objective")):
        raise ValueError(
            f"boosting={boosting!r} of LightGBM takes no objective that is a function. Use 'gbdt', or XGBoost with "
            "num_parallel_tree."
        )


def is_true(value: Any) -> bool:
    """Read a switch, which may be text."""
    return value.strip().lower() in ("true", "+", "1") if isinstance(value, str) else bool(value)


def is_random(params: dict[str, Any]) -> bool:
    """Return whether rows or columns are sampled, so that an empty round may be followed by another.

    Examples
    --------
    >>> is_random({"colsample_bytree": 0.5}), is_random({"bagging_fraction": 0.5})
    (True, False)
    """
    fractions = ("bagging_fraction", "pos_bagging_fraction", "neg_bagging_fraction")
    bagging = int(get(params, "bagging_freq", 0)) > 0 and any(float(get(params, name, 1.0)) < 1.0 for name in fractions)
    columns = any(float(get(params, name, 1.0)) < 1.0 for name in ("feature_fraction", "feature_fraction_bynode"))
    return bagging or columns or is_true(get(params, "extra_trees", False)) or is_goss(params)


def restricts_leaves(params: dict[str, Any]) -> bool:
    """Return whether a leaf may have to refuse or discount a column, for other reasons than costs."""
    return (
        bool(params.get("interaction_constraints"))
        or float(get(params, "feature_fraction_bynode", 1.0)) < 1.0
        or float(get(params, "monotone_penalty", 0.0)) > 0.0
    )


def is_goss(params: dict[str, Any]) -> bool:
    """Return whether rows are sampled by gradient."""
    return "goss" in (get(params, "boosting"), get(params, "data_sample_strategy"))


def user_contri(params: dict[str, Any], n_features: int) -> NDArray[np.float64]:
    """Return the user's feature_contri, which the mask multiplies; 1 by default."""
    value = get(params, "feature_contri", np.ones(n_features))
    return np.array(value.split(",") if isinstance(value, str) else value, dtype=np.float64)
