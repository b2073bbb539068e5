"""Training of XGBoost's scikit-learn estimators through ``xgboost.train``, for :mod:`grbb_ext.estimators`."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, ClassVar

import numpy as np
import xgboost as xgb
from numpy.typing import NDArray

from grbb_ext._options import positive_int
from grbb_ext.adapters._wrapped import WrappedBooster, booster_rows, read_metrics, watch
from grbb_ext.adapters.xgboost._miser import GreedyMiser
from grbb_ext.costs import unknown_name
from grbb_ext.estimators import Job, Task, Trained
from grbb_ext.evaluation import higher_is_better
from grbb_ext.forest import Forest
from grbb_ext.table import Table

# Named beside the callable, they put the link into the model: its file alone predicts probabilities.
_OBJECTIVES = {"logistic": "binary:logistic", "softmax": "multi:softprob", "squared_error": "reg:squarederror"}
# Parameters of losses that are not ours.
_OF_OTHER_LOSSES = ("aft_loss_distribution", "huber_slope", "quantile_alpha", "tweedie_variance_power")


class XGBoostAdapter(WrappedBooster):
    """XGBClassifier and XGBRegressor, trained by ``xgboost.train``."""

    library = "xgboost"
    version = xgb.__version__
    model_file = "model.ubj"
    of_task: ClassVar[dict[Task, type]] = {"classification": xgb.XGBClassifier, "regression": xgb.XGBRegressor}
    student: ClassVar[dict[str, Any]] = {"learning_rate": 0.1, "colsample_bynode": 0.3}
    estimators: ClassVar[dict[str, type]] = {
        name: getattr(xgb, name)
        for name in ("XGBClassifier", "XGBRegressor", "XGBRFClassifier", "XGBRFRegressor")
        if hasattr(xgb, name)  # the forests are deprecated in 3.4
    }
    losses: ClassVar[dict[Task, tuple[str | None, ...]]] = {
        "classification": (None, "binary:logistic", "multi:softprob", "multi:softmax"),
        "regression": (None, "reg:squarederror"),
    }
    # XGBoost refuses a category that it has not seen.
    unseen = "error"

    def fix_rounds(self, estimator: Any, n_rounds: int | None) -> None:
        """Make an estimator train for a number of rounds, None being its own, without early stopping."""
        stops = xgb.callback.EarlyStopping
        kept = [one for one in estimator.get_params()["callbacks"] or [] if not isinstance(one, stops)]
        estimator.set_params(early_stopping_rounds=None, callbacks=kept or None)
        if n_rounds not in (None, estimator.get_num_boosting_rounds()):  # n_estimators of a forest counts other trees
            estimator.set_params(n_estimators=n_rounds)

    def categorical(self, estimator: Any) -> list[int]:
        """Return the columns that ``feature_types`` calls categorical."""
        types = estimator.get_params()["feature_types"]
        return [j for j, kind in enumerate([] if types is None else types) if kind == "c"]

    def missing(self, estimator: Any) -> float:
        """Return the number that stands for a missing value, beside NaN."""
        value = estimator.get_params()["missing"]
        return float("nan") if value is None else float(value)

    def given_weights(self, estimator: Any) -> dict[str, Any]:
        """Return ``scale_pos_weight``, None where it weighs nothing."""
        positive = estimator.get_xgb_params().get("scale_pos_weight")
        return {"scale_pos_weight": None if positive == 1 else positive}

    def train(self, job: Job) -> Trained:
        """Train a booster as the estimator's ``fit`` would, with our objective, metrics and costs."""
        params = self._params(job)
        wrapped = job.estimator.get_params()
        n_rounds = positive_int(job.estimator.get_num_boosting_rounds(), "n_estimators of the wrapped estimator")
        dtrain = _matrix(job.estimator, job.table, job.names)
        # Bins follow the weights, as in XGBClassifier; the gradients have them from the objective.
        dtrain.set_info(weight=job.weight, feature_weights=wrapped.get("feature_weights"))
        watched = [_matrix(job.estimator, part, job.names) for part, _ in job.evaluation]
        metrics = read_metrics(wrapped["eval_metric"], job.obj, "eval_metric")
        patience = wrapped["early_stopping_rounds"]
        # A copy, for it keeps the direction of its metric and its history, and may watch another metric next.
        stopping = xgb.callback.EarlyStopping
        given = [*(wrapped["callbacks"] or []), *job.callbacks]
        callbacks = [deepcopy(one) if isinstance(one, stopping) else one for one in given]
        stops = [one for one in callbacks if isinstance(one, stopping)]
        asked = stops[0].rounds if patience is None and stops else patience
        # From XGBoost 3.3 on trees are dropped without the name too.
        dart = params.get("booster") == "dart" or bool(params.get("rate_drop") or params.get("one_drop"))
        score = watch(job, watched, metrics, ("early_stopping_rounds", asked), dart=dart)
        for stop in stops:  # XGBoost guesses the direction by the name, and minimises those it does not know
            watching = [m for m in metrics if stop.metric_name in (None, m, getattr(m, "__name__", m))]
            if stop.maximize is None and watching:
                stop.maximize = higher_is_better(job.obj, watching[-1])
        if patience is not None:
            maximize = higher_is_better(job.obj, metrics[-1])
            callbacks.append(stopping(rounds=patience, maximize=maximize))

        def gradients(raw_scores: NDArray[Any], data: xgb.DMatrix) -> tuple[NDArray[Any], NDArray[Any]]:
            return job.obj(raw_scores)

        miser = None
        if job.costs is not None:
            miser = GreedyMiser(job.costs, gradients, dtrain, mu=job.mu, budget=job.budget)
            callbacks.append(miser)
        history: dict[str, dict[str, list[float]]] = {}
        # Read anew: a copy would go on with the random numbers of the model, wherever these are.
        before = None if job.init_model is None else self.from_bytes(self.to_bytes(job.init_model), None)
        if before is not None:
            before.set_attr(best_iteration=None, best_score=None)  # of an early stop that is over
            trial = before.copy()
            if "booster" in params:
                trial.set_param({"booster": params["booster"]})
                trial.save_config()  # puts it in force
            if trial.num_boosted_rounds() < before.num_boosted_rounds():
                raise ValueError(
                    f"booster={params['booster']!r} is not that of init_model, and XGBoost would drop the trees of "
                    "that model. Wrap the same."
                )
            grown, in_vectors = Forest.from_booster(before), params.get("multi_strategy") == "multi_output_tree"
            if grown.n_trees and job.obj.n_outputs_ > 1 and (grown.trees_per_round == 1) != in_vectors:
                raise ValueError(
                    "multi_strategy= is not that of init_model, and a model cannot hold trees for one class beside "
                    "trees for all. Wrap the same."
                )
        booster = xgb.train(
            params,
            dtrain,
            n_rounds,
            obj=gradients,
            evals=[(matrix, f"validation_{i}") for i, matrix in enumerate(watched)],
            custom_metric=(lambda scores, data: [one[:2] for one in score(scores, data)]) if watched else None,
            callbacks=callbacks,
            evals_result=history,
            verbose_eval=False,
            xgb_model=before,
        )
        n_before = 0 if before is None else before.num_boosted_rounds()
        return _finish(booster, n_before + n_rounds, miser, history)

    def raw_scores(
        self, booster: xgb.Booster, estimator: Any, table: Table, names: tuple[str, ...] | None
    ) -> NDArray[Any]:
        """Return the raw scores of rows."""
        return np.asarray(booster.predict(_matrix(estimator, table, names), output_margin=True))

    def importances(self, booster: xgb.Booster, estimator: Any, n_features: int) -> NDArray[np.float64]:
        """Return how much each column matters, by the estimator's ``importance_type``, ``"gain"`` by default."""
        scores = booster.get_score(importance_type=estimator.get_params()["importance_type"] or "gain")
        names = booster.feature_names or [f"f{j}" for j in range(n_features)]
        return np.array([float(np.sum(scores.get(name, 0.0))) for name in names])

    def to_bytes(self, booster: xgb.Booster) -> bytes:
        """Return what ``save_model`` writes: binary JSON, with every bit of every number."""
        return bytes(booster.save_raw("ubj"))

    def from_bytes(self, data: bytes, best_iteration: int | None) -> xgb.Booster:
        """Read the model; the best round of an early stop is among its attributes."""
        return xgb.Booster(model_file=bytearray(data))

    def best_iteration(self, booster: xgb.Booster) -> int | None:
        """Return the best round of an early stop, counted from 0."""
        best = booster.attr("best_iteration")
        return None if best is None else int(best)

    def size(self, booster: xgb.Booster) -> tuple[int, int]:
        """Return the numbers of rounds and of columns."""
        return booster.num_boosted_rounds(), booster.num_features()

    def _params(self, job: Job) -> dict[str, Any]:
        params = {name: value for name, value in job.estimator.get_xgb_params().items() if value is not None}
        self.check_loss(job, job.estimator.get_params()["objective"], params.get("num_class"))
        for name in _OF_OTHER_LOSSES:
            if name in params:
                raise ValueError(f"{name} of the wrapped estimator belongs to another loss. Leave it out.")
        if params.get("booster") == "gblinear":
            raise ValueError("booster='gblinear' has no trees. Use 'gbtree' or 'dart'.")
        start = params.pop("base_score", None)
        for name in ("eval_metric", "scale_pos_weight", "num_class"):
            params.pop(name, None)
        if "random_state" not in params and job.seed is not None:
            params["random_state"] = job.seed
        params |= {"objective": _OBJECTIVES[job.obj.loss_.name], "disable_default_eval_metric": 1}
        if job.init_model is None:  # which has its own
            params["base_score"] = _base_score(job, start)
        if job.obj.n_outputs_ > 1:
            params["num_class"] = job.obj.n_outputs_
        if job.table.schema.names is not None:
            params |= _by_position(params, job.table.schema.names)
        return params


ADAPTER = XGBoostAdapter()


def _by_position(params: dict[str, Any], names: tuple[str, ...]) -> dict[str, str]:
    """Return constraints by name as XGBoost writes those by position: the booster may have no names."""
    place = {name: j for j, name in enumerate(names)}
    monotone, interaction = (params.get(f"{kind}_constraints") for kind in ("monotone", "interaction"))
    signs = dict(monotone) if isinstance(monotone, Mapping) else {}
    groups = [] if interaction is None or isinstance(interaction, str) else [list(group) for group in interaction]
    for name in [*signs, *(name for group in groups for name in group)]:
        if name not in place:
            raise ValueError(unknown_name(name, names, "column"))
    found = {}
    if signs:
        found["monotone_constraints"] = str(tuple(int(signs.get(name, 0)) for name in names))
    if groups:
        found["interaction_constraints"] = str([[place[name] for name in group] for group in groups])
    return found


def _base_score(job: Job, asked: Any) -> float | list[float]:
    """Return the start in the units of the named objective: a probability for two classes, as in XGBClassifier."""
    n_outputs = job.obj.n_outputs_
    start = np.ravel(np.asarray([] if asked is None else asked, dtype=np.float64)).tolist()
    if len(start) not in (0, 1, n_outputs):
        several = f", or {n_outputs}, one for each class" if n_outputs > 1 else ""
        raise ValueError(f"base_score={asked!r} must be one number{several}.")
    if job.task == "regression":
        return start[0] if start else job.start
    if n_outputs > 1:  # a start that is the same for all classes changes nothing
        return start if len(start) == n_outputs else 0.0
    if start and not 0 < start[0] < 1:
        raise ValueError(f"base_score={asked!r} must be a probability between 0 and 1.")
    return start[0] if start else 0.5


def _matrix(estimator: Any, table: Table, names: tuple[str, ...] | None) -> xgb.DMatrix:
    kinds = None
    if table.schema.categorical:
        kinds = ["c" if j in table.schema.categorical else "float" for j in range(table.n_columns)]
    return xgb.DMatrix(
        booster_rows(table),
        feature_names=None if names is None else list(names),
        feature_types=kinds,
        nthread=estimator.get_params()["n_jobs"],
        enable_categorical=kinds is not None,
    )


def _finish(
    booster: xgb.Booster, n_rounds: int, miser: GreedyMiser | None, history: dict[str, dict[str, list[float]]]
) -> Trained:
    n_grown = booster.num_boosted_rounds()
    reason = f"All {n_rounds} rounds were run."
    if n_grown < n_rounds:
        reason = f"A callback ended training after {n_grown} round{'s' * (n_grown > 1)}."
    best = booster.attr("best_iteration")
    if best is not None:
        n_best = int(best) + 1
        reason = f"Early stopping: round {n_best} of {n_grown} was the best."
        if n_best < n_grown:
            booster, n_grown = booster[:n_best], n_best
            booster.set_attr(best_iteration=best)  # a slice forgets it
    if miser is None:
        return Trained(booster, n_grown, reason, None, history)
    ledger = miser.ledger_.before(n_grown)
    return Trained(booster, n_grown, ledger.stop_reason or reason, ledger, history)
