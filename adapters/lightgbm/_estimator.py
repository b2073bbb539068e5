"""Training of LightGBM's scikit-learn estimators through ``lightgbm.train``, for :mod:`grbb_ext.estimators`."""

from __future__ import annotations

import os
from functools import partial
from typing import Any, ClassVar

import lightgbm as lgb
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext._options import positive_int
from grbb_ext.adapters._wrapped import WrappedBooster, booster_rows, read_metrics, watch
from grbb_ext.adapters.lightgbm import _params as parameters
from grbb_ext.adapters.lightgbm._train import early_stopping, in_places, of_grown_rounds, train
from grbb_ext.adapters.lightgbm._trees import add_link, columns_of, read_trees
from grbb_ext.estimators import Job, Task, Trained
from grbb_ext.objective import GRBBObjective
from grbb_ext.table import Table

# Newton's steps to a constant, and what is no step any more.
_MOST_STEPS, _SMALL_STEP = 100, 1e-9
# Parameters of losses that are not ours, and of samples that are drawn by label.
_NOT_OURS = {
    "alpha": "it belongs to another loss (for L1 regularisation use reg_alpha)",
    "reg_sqrt": "it changes the loss; transform y instead",
    "sigmoid": "it changes the loss",
    **dict.fromkeys(("fair_c", "poisson_max_delta_step", "tweedie_variance_power"), "it belongs to another loss"),
    **dict.fromkeys(
        ("neg_bagging_fraction", "pos_bagging_fraction"),
        "it samples by label, which LightGBM does not see here; use subsample",
    ),
}


class LightGBMAdapter(WrappedBooster):
    """LGBMClassifier and LGBMRegressor, trained by ``lightgbm.train``."""

    library = "lightgbm"
    version = lgb.__version__
    model_file = "model.txt"
    of_task: ClassVar[dict[Task, type]] = {"classification": lgb.LGBMClassifier, "regression": lgb.LGBMRegressor}
    # With the library's min_child_samples of 20, random splits of few rows are refused and the round is lost.
    student: ClassVar[dict[str, Any]] = {
        "n_estimators": 200,
        "extra_trees": True,
        "colsample_bynode": 0.5,
        "min_child_samples": 5,
    }
    estimators: ClassVar[dict[str, type]] = {cls.__name__: cls for cls in (lgb.LGBMClassifier, lgb.LGBMRegressor)}
    losses: ClassVar[dict[Task, tuple[str | None, ...]]] = {
        "classification": (None, "binary", "multiclass", "softmax"),
        # The root changes LightGBM's metric alone: the loss is the same.
        "regression": (
            *(None, "regression", "regression_l2", "l2", "mean_squared_error", "mse"),
            *("l2_root", "root_mean_squared_error", "rmse"),
        ),
    }
    # LightGBM reads a category that it has not seen as missing.
    unseen = "missing"

    def fix_rounds(self, estimator: Any, n_rounds: int | None) -> None:
        """Make an estimator train for a number of rounds, None being its own, without early stopping."""
        own = parameters.get(estimator.get_params(), "num_iterations")
        for name, value in (("early_stopping_round", None), ("num_iterations", n_rounds or own)):
            estimator.set_params(**parameters.given(estimator.get_params(), name, value))

    def categorical(self, estimator: Any) -> list[Any]:
        """Return the columns that the parameter ``categorical_feature`` names."""
        listed = parameters.get(estimator.get_params(), "categorical_feature", "auto")
        if isinstance(listed, str):
            if listed in ("auto", ""):
                return []
            names = listed.removeprefix("name:").split(",")
            if listed.startswith("name:"):
                return names
            if not all(name.strip().isdecimal() for name in names):
                raise ValueError(
                    f"categorical_feature={listed!r} of the wrapped estimator must be a list of columns, or text as "
                    f"LightGBM reads it: 'name:{listed}' for names, '0,1' for positions."
                )
            return [int(name) for name in names]
        return [listed] if np.ndim(listed) == 0 else list(listed)

    def missing(self, estimator: Any) -> float:
        """Return the number that stands for a missing value: NaN, or what LightGBM's own parameters say."""
        return float("nan")

    def given_weights(self, estimator: Any) -> dict[str, Any]:
        """Return ``class_weight``, ``is_unbalance`` and ``scale_pos_weight``, None where they weigh nothing."""
        params = estimator.get_params()
        positive = parameters.get(params, "scale_pos_weight")
        return {
            "class_weight": params.get("class_weight"),
            "is_unbalance": True if parameters.is_true(parameters.get(params, "is_unbalance", False)) else None,
            "scale_pos_weight": None if positive == 1 else positive,
        }

    def train(self, job: Job) -> Trained:
        """Train a booster as the estimator's ``fit`` would, with our objective, metrics and costs."""
        params = self._params(job)
        metrics = read_metrics(parameters.pop(params, "metric"), job.obj, "metric")
        n_rounds = positive_int(parameters.pop(params, "num_iterations"), "n_estimators of the wrapped estimator")
        patience = parameters.get(params, "early_stopping_round")
        average = parameters.pop(params, "boost_from_average")
        start = job.start if job.task == "classification" or average is None or parameters.is_true(average) else 0.0
        if job.init_model is not None:
            start = 0.0  # the scores of that model are the start
        make = partial(_dataset, job, params, start)
        dtrain = make(job.table)
        if not any(map(dtrain.feature_num_bin, range(dtrain.num_feature()))):
            # LightGBM dropped every column, and would fail. A column of ones is kept, and cannot be split.
            params["feature_pre_filter"] = False
            make = partial(make, ones=True)
            dtrain = make(job.table)
        watched = [make(part, dtrain) for part, _ in job.evaluation]
        patience = patience if patience and patience > 0 else None
        dart = parameters.get(params, "boosting") == "dart"
        score = watch(job, watched, metrics, ("early_stopping_round", patience), dart=dart)
        history: dict[str, dict[str, list[float]]] = {}
        callbacks = [*job.callbacks, *([lgb.record_evaluation(history)] if watched else [])]
        if job.costs is None:
            callbacks = in_places([*callbacks, *early_stopping(params)], of_grown_rounds)
        params.pop("forcedbins_filename", None)  # bins are made, and LightGBM takes the name for a change of them
        try:
            booster = train(
                {**params, "objective": job.obj, "metric": "None"},
                dtrain,
                n_rounds,
                valid_sets=watched or None,
                valid_names=[f"validation_{i}" for i in range(len(watched))] or None,
                feval=score if watched else None,
                callbacks=callbacks,
                costs=job.costs,
                mu=job.mu,
                budget=job.budget,
                init_model=job.init_model,
            )
        except lgb.basic.LightGBMError as error:
            if "best_split_info" not in str(error):
                raise
            # It estimates the rows of a leaf from their curvatures, and ends where the estimate is 0.
            raise ValueError(
                "LightGBM cannot split rows whose weights differ by this many orders of magnitude. Bring sample_weight "
                "and class_weight within a factor of 1e12 of each other, or raise min_child_samples."
            ) from error
        n_before = 0 if job.init_model is None else job.init_model.current_iteration()
        if job.init_model is None and not columns_of(booster).any():
            _set_constant(booster, job.obj, start)
        return _finish(add_link(booster, job.obj), n_before, n_rounds, start, history)

    def raw_scores(
        self, booster: lgb.Booster, estimator: Any, table: Table, names: tuple[str, ...] | None
    ) -> NDArray[Any]:
        """Return the raw scores of rows."""
        threads = _threads(parameters.get(estimator.get_params(), "num_threads"))
        return np.asarray(booster.predict(booster_rows(table), raw_score=True, num_threads=threads))

    def importances(self, booster: lgb.Booster, estimator: Any, n_features: int) -> NDArray[np.float64]:
        """Return how much each column matters, by the estimator's ``importance_type``."""
        return np.asarray(booster.feature_importance(estimator.get_params()["importance_type"]), dtype=np.float64)

    def to_bytes(self, booster: lgb.Booster) -> bytes:
        """Return what ``save_model`` writes: text, with every number in full."""
        text: str = booster.model_to_string()
        return text.encode()

    def from_bytes(self, data: bytes, best_iteration: int | None) -> lgb.Booster:
        """Read the model; the file does not hold the best round of an early stop."""
        booster = lgb.Booster(model_str=data.decode())
        booster.best_iteration = -1 if best_iteration is None else best_iteration
        return booster

    def best_iteration(self, booster: lgb.Booster) -> int | None:
        """Return the best round of an early stop, counted from 1."""
        return booster.best_iteration if booster.best_iteration > 0 else None

    def size(self, booster: lgb.Booster) -> tuple[int, int]:
        """Return the numbers of rounds and of columns."""
        return booster.current_iteration(), booster.num_feature()

    def _params(self, job: Job) -> dict[str, Any]:
        params = {name: value for name, value in job.estimator.get_params().items() if value is not None}
        self.check_loss(job, parameters.pop(params, "objective"), parameters.pop(params, "num_class"))
        for name, reason in _NOT_OURS.items():
            if name in params:
                raise ValueError(f"{name} of the wrapped estimator cannot be honoured: {reason}. Leave it out.")
        if parameters.get(params, "boosting") in ("rf", "random_forest"):
            raise ValueError(
                "boosting_type='rf' averages rounds that all follow the first gradient, and its raw scores are sums. "
                "Use 'gbdt', or XGBRFClassifier and XGBRFRegressor."
            )
        if parameters.is_true(parameters.get(params, "linear_tree", False)):
            raise ValueError("linear_tree does not go with the semi-supervised objective. Take it out.")
        if job.task == "classification" and parameters.is_true(parameters.get(params, "boost_from_average", False)):
            raise ValueError("boost_from_average cannot be honoured: scores start at 0. Leave it out.")
        idle = job.obj.propagation_ is None or job.obj.unreachable_.size > 0
        if idle and float(parameters.get(params, "min_sum_hessian_in_leaf", 1e-3)) <= 0:
            raise ValueError(
                "min_child_weight=0 makes LightGBM fail on leaves without curvature, and some rows have none (no label "
                "reaches them, or rule='labeled'). Use its default, 0.001."
            )
        for name in ("class_weight", "is_unbalance", "scale_pos_weight", "categorical_feature", "importance_type"):
            parameters.pop(params, name)
        params["num_threads"] = _threads(parameters.pop(params, "num_threads"))
        seed = parameters.pop(params, "seed")
        seed = job.seed if seed is None else seed
        if seed is not None and not isinstance(seed, (int, np.integer)):
            draw = seed.integers if isinstance(seed, np.random.Generator) else seed.randint
            seed = int(draw(np.iinfo(np.int32).max))
        if seed is not None:
            params["seed"] = seed
        if parameters.get(params, "verbosity") is None:
            params["verbosity"] = -1
        # The same trees with any number of threads; and columns that cannot be split at all are no error.
        params.setdefault("deterministic", True)
        if "force_row_wise" not in params:
            params.setdefault("force_col_wise", True)
        params.setdefault("feature_pre_filter", False)
        if job.obj.n_outputs_ > 1:
            params["num_class"] = job.obj.n_outputs_
        return params


ADAPTER = LightGBMAdapter()


def _threads(n_jobs: int | None) -> int:
    """Count threads as joblib does; 0 is LightGBM's own choice, all cores."""
    if n_jobs is None or n_jobs == -1:
        return 0
    return n_jobs if n_jobs >= 0 else max((os.cpu_count() or 1) + 1 + n_jobs, 1)


def _dataset(
    job: Job, params: dict[str, Any], start: float, table: Table, reference: Any = None, *, ones: bool = False
) -> lgb.Dataset:
    """Make a data set of a training; with `ones` it is a column of ones, the others empty."""
    values = booster_rows(table)
    if ones:
        rows = np.arange(table.n_rows)
        values = sp.csr_matrix((np.ones(rows.size), (rows, np.zeros_like(rows))), shape=values.shape)
    return lgb.Dataset(
        values,
        reference=reference,
        init_score=np.full(table.n_rows, start) if start != 0 else None,
        feature_name="auto" if job.names is None else list(job.names),
        categorical_feature="auto" if ones else list(table.schema.categorical) or "auto",
        params={**params, "objective": "none"},
        free_raw_data=False,  # LightGBM 4.5 refuses to be given the categorical columns again without them
    ).construct()


def _set_constant(booster: lgb.Booster, obj: GRBBObjective, start: float) -> None:
    """Give a model without a split the scores at which the gradients of all rows sum to 0.

    LightGBM ends at once and says 0. XGBoost gets there by rounds of single leaves.
    """
    scores = np.full((obj.n_rows_, obj.n_outputs_) if obj.n_outputs_ > 1 else obj.n_rows_, start)
    for _ in range(_MOST_STEPS):
        gradient, hessian = (np.sum(part, axis=0) for part in obj(scores))
        step = gradient / np.maximum(hessian, _SMALL_STEP)
        scores -= step
        if np.max(np.abs(step)) < _SMALL_STEP:
            break
    for output, score in enumerate(np.atleast_1d(scores[0])):
        booster.set_leaf_output(output, 0, float(score - start))


def _finish(
    booster: lgb.Booster, n_before: int, n_rounds: int, start: float, history: dict[str, dict[str, list[float]]]
) -> Trained:
    ledger = getattr(booster, "ledger_", None)
    n_grown, n_rounds = booster.current_iteration(), n_before + n_rounds
    reason = f"All {n_rounds} rounds were run."
    if n_grown < n_rounds:
        reason = f"Training ended after {n_grown} round{'s' * (n_grown > 1)}: no split was left that helps."
    if booster.best_iteration > 0 and history:  # lightgbm.train has cut the model to its best round
        n_run = n_before + len(next(iter(next(iter(history.values())).values())))
        reason = f"Early stopping: round {booster.best_iteration} of {n_run} was the best."
    if start != 0:
        # As LightGBM does for its own objectives: the start becomes a part of the first tree.
        for leaf in range(len(read_trees(booster, 0, 1)[0].column) + 1):
            booster.set_leaf_output(0, leaf, booster.get_leaf_output(0, leaf) + start)
    if ledger is not None and ledger.stop_reason:
        reason = ledger.stop_reason
    return Trained(booster, n_grown, reason, ledger, history)
