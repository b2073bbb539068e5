"""Feature costs on many machines: every worker makes the same decisions from the same numbers."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import xgboost as xgb
from numpy.typing import NDArray

from grbb_ext.adapters._dask_objective import Gradients, WorkerObjective, sum_over_workers
from grbb_ext.adapters._xgboost_miser import GreedyMiser
from grbb_ext.costs import FeatureCosts


class CollectiveMiser(GreedyMiser):  # type: ignore[misc]  # adapters import each other under their installed name
    """A GreedyMiser that all workers run in step.

    What it decides by is the same on all workers: the trees of the probes, which XGBoost grows together, and the bound
    on their gain, which is a sum over rows and is added up here. So every worker grows the same probes in the same
    order, and closes the same columns of its part of the data.
    """

    _many_machines = True

    def _gain_bound(self, gradient: Any, hessian: Any) -> float:
        here = super()._gain_bound(gradient, hessian)
        return float(sum_over_workers(np.array([here]))[0])


class CostedTraining(xgb.callback.TrainingCallback):
    """Objective and callback in one: XGBoost shows the booster to callbacks, but the DMatrix only to the objective.

    The objective is called after the scores of a round are known and before its trees are grown, which is the time to
    decide what the trees may use.

    Parameters
    ----------
    objective : WorkerObjective
        The objective proper.
    costs : FeatureCosts
        Prices.
    settings : dict
        Of the GreedyMiser.
    """

    def __init__(self, objective: WorkerObjective, costs: FeatureCosts, settings: dict[str, Any]) -> None:
        super().__init__()
        self._objective, self._costs, self._settings = objective, costs, settings
        # Workers that are threads of one process share this object.
        self._of_worker = threading.local()

    def __call__(self, raw_scores: NDArray[Any], data: xgb.DMatrix) -> Gradients:
        """Decide what the round may use, and return its gradient and hessian."""
        of_worker = self._of_worker
        if of_worker.miser is None:
            of_worker.miser = CollectiveMiser(self._costs, self._objective, data, **self._settings)
            of_worker.miser.before_training(of_worker.model)
        of_worker.miser.before_iteration(of_worker.model, 0, {})
        return self._objective(raw_scores, data)

    def before_training(self, model: Any) -> Any:
        """Remember the booster; the data are not known yet."""
        self._of_worker.model, self._of_worker.miser = model, None
        return model

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Pay for what the round used; end training where nothing more can be learned."""
        return bool(self._of_worker.miser.after_iteration(model, epoch, evals_log))

    def after_training(self, model: Any) -> Any:
        """Hand over the ledger."""
        miser = self._of_worker.miser
        self._of_worker.model = self._of_worker.miser = None
        return model if miser is None else miser.after_training(model)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_of_worker"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _of_worker=threading.local())
