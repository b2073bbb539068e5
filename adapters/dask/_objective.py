"""The objective on one worker, and feature costs: what workers add up, so that all decide alike."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
import xgboost as xgb
from numpy.typing import NDArray
from xgboost import collective

from grbb_ext.adapters.dask._rows import Ids, Rows, check_ids, read_ids
from grbb_ext.adapters.xgboost import GreedyMiser, MaskedBooster
from grbb_ext.costs import FeatureCosts, gain_bound
from grbb_ext.labels import Labels
from grbb_ext.losses import Floats
from grbb_ext.objective import check_raw_scores
from grbb_ext.propagation import node_matrix
from grbb_ext.rules import (
    Corrected,
    DenseOperator,
    Gradients,
    LabeledGradient,
    Paper,
    Rule,
    RuleParts,
    RuleSpec,
    Targets,
)


def sum_over_workers(values: NDArray[Any]) -> NDArray[Any]:
    """Return the sum of all workers' arrays, in the shape of this one's."""
    return np.asarray(collective.allreduce(values, collective.Op.SUM).reshape(values.shape))


@dataclass(frozen=True)
class WorkerObjective:
    r"""A custom objective for ``xgboost.dask.train``: gradients of this worker's rows.

    The rules are those of :mod:`grbb_ext.rules`. With ``"targets"`` and ``"labeled"`` a row's gradient depends on its
    own score alone. With ``"paper"`` and ``"corrected"`` it depends on the n labelled scores too: every worker puts
    those it has into an array of n zeros, and one allreduce gives the sum to all,

    .. math:: H_l = \sum_w S_w H_w, \qquad g_w = P_w\, g_l(H_l).

    The sum adds zeros to single numbers, so it has no rounding. The Laplacian term adds n numbers, the workers'
    parts of :math:`(L H)_l`.

    Attributes
    ----------
    n_rows : int
        N.
    labels : Labels
        Of the n labelled rows alone, by their ids, ascending.
    weights : ndarray of shape (n,)
        Weights of their losses.
    rule : RuleSpec
        The rule.
    rows : Rows or None
        Target and weight; or the row of P; or index and share of the nearest nodes.
    P_nodes : ndarray of shape (M, n) or None
        The operator on the nodes, where there are any.
    unreachable : ndarray of int64
        Ids of rows that no label reaches (with nodes they are known from their shares).
    L_l : csr_array of shape (n, N) or None
        The labelled rows of the Laplacian, where lam is not 0.
    total : callable
        The sum over all workers.
    """

    n_rows: int
    labels: Labels
    weights: NDArray[np.float64]
    rule: RuleSpec
    rows: Rows | None = None
    P_nodes: NDArray[np.float32] | None = None
    unreachable: Ids = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    L_l: sp.csr_array | None = None
    total: Callable[[NDArray[Any]], NDArray[Any]] = sum_over_workers
    _rules: weakref.WeakKeyDictionary[xgb.DMatrix, Rule] = field(
        default_factory=weakref.WeakKeyDictionary, init=False, repr=False, compare=False
    )

    @property
    def numbers_per_round(self) -> int:
        """Numbers that the workers add up in a round."""
        n = self.labels.labeled.size * self.labels.n_outputs
        return n * (isinstance(self.rule, Paper | Corrected) + (self.rule.lam > 0))

    def __call__(self, raw_scores: NDArray[Any], data: xgb.DMatrix) -> Gradients:
        """Return gradient and hessian of the rows of this worker."""
        rule = self._rules.get(data)
        if rule is None:
            # Workers run as threads of one process share this object, but not their data.
            rule = self._rules[data] = self._build(data)
        n_local, n_outputs = data.num_row(), self.labels.n_outputs
        if n_outputs > 1 and n_local == 0:
            raw_scores = np.empty((0, n_outputs), dtype=np.float32)
        H = check_raw_scores(raw_scores, n_local, n_outputs, single_precision=True)
        gradient, hessian = rule(H)
        return np.ascontiguousarray(gradient, dtype=np.float32), np.ascontiguousarray(hessian, dtype=np.float32)

    def _build(self, data: xgb.DMatrix) -> Rule:
        """Build the rule of this worker's rows."""
        ids, known = read_ids(data), self.labels
        if ids.size != data.num_row():
            raise ValueError("The DMatrix does not carry row ids: use grbb_ext.adapters.dask.train.")
        check_ids(ids, self.n_rows)
        _, here, which = np.intersect1d(ids, known.labeled, assume_unique=True, return_indices=True)
        L_l = degree = None
        if self.L_l is not None:
            L_l = sp.csr_array(self.L_l[:, ids])
            degree = np.asarray(self.L_l[np.arange(known.labeled.size), known.labeled]).ravel()
        labeled = LabeledGradient(
            known.loss, known.targets, self.weights, here, which, self.rule.lam, L_l, degree, self.total
        )
        if isinstance(self.rule, Targets):
            assert self.rows is not None
            targets, of_row = self.rows.take(ids)
            parts = RuleParts(labeled, targets=targets, weights=None if (of_row == 1).all() else of_row)
        elif self.rule.propagation is None:
            parts = RuleParts(labeled)
        else:
            weight = data.get_label()  # of a row, where it has one: the labels themselves are in `labels`
            weights = np.asarray(weight, dtype=np.float32) if weight.size else None
            parts = RuleParts(labeled, *self._operator(ids, here, which), weights=weights)
        return self.rule.build(parts)

    def _operator(self, ids: Ids, here: Any, which: Any) -> tuple[Callable[[Floats], Floats], NDArray[np.bool_]]:
        """Return the product with these rows of P_bar, and which of the rows no label reaches."""
        assert self.rows is not None
        if self.P_nodes is None:
            return DenseOperator(*self.rows.take(ids)), np.isin(ids, self.unreachable)
        index, share = self.rows.take(ids)
        on_nodes, Z = DenseOperator(self.P_nodes), node_matrix(index, share, self.P_nodes.shape[0])

        def product(vectors: Floats) -> Floats:
            extended = np.asarray(Z @ on_nodes(vectors))
            extended[here] = vectors[which]
            return extended

        unreachable = np.asarray(~share.any(axis=1))
        unreachable[here] = False
        return product, unreachable

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_rules"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _rules=weakref.WeakKeyDictionary())


class CollectiveMiser(GreedyMiser):
    """A GreedyMiser that all workers run in step.

    What it decides by is the same on all workers: the trees of the probes, which XGBoost grows together, and the bound
    on their gain, which is a sum over rows and is added up here. So every worker grows the same probes in the same
    order, and closes the same columns of its part of the data.
    """

    _many_machines = True

    @staticmethod
    def _gain_bound(gradient: Any, hessian: Any) -> float:
        return float(sum_over_workers(np.array([gain_bound(gradient, hessian)]))[0])


class CostedTraining(xgb.callback.TrainingCallback):
    """The GreedyMiser of each worker, made when its data are known: callbacks are shown the booster alone.

    Parameters
    ----------
    costs : FeatureCosts
        Prices.
    settings : dict
        Of the GreedyMiser.
    """

    def __init__(self, costs: FeatureCosts, settings: dict[str, Any]) -> None:
        super().__init__()
        self._costs, self._settings = costs, settings
        # Workers that are threads of one process share this object.
        self._of_worker = threading.local()

    def before_training(self, model: Any) -> Any:
        """Wait for the first round."""
        self._of_worker.miser = None
        MaskedBooster.take(model, self._begin)
        return model

    def _begin(self, model: xgb.Booster, dtrain: xgb.DMatrix, objective: Any) -> AbstractContextManager[None]:
        """Let a miser take the booster, and open the first round."""
        miser = self._of_worker.miser = CollectiveMiser(self._costs, objective, dtrain, **self._settings)
        miser.before_training(model)
        return miser._opened(model, dtrain, objective)

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Pay for what the round used; end training where nothing more can be learned."""
        return bool(self._of_worker.miser.after_iteration(model, epoch, evals_log))

    def after_training(self, model: Any) -> Any:
        """Hand over the ledger."""
        miser, self._of_worker.miser = self._of_worker.miser, None
        MaskedBooster.give_back(model)
        return model if miser is None else miser.after_training(model)

    def __reduce__(self) -> Any:
        return CostedTraining, (self._costs, self._settings)
