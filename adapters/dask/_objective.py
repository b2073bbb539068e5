"""Feature costs on many machines: every worker makes the same decisions from the same numbers."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
import xgboost as xgb
from numpy.typing import NDArray
from xgboost import collective

from grbb_ext.adapters.dask._rows import Ids, Rows, check_ids, read_ids
from grbb_ext.adapters.xgboost import GreedyMiser
from grbb_ext.costs import FeatureCosts
from grbb_ext.losses import Floats, Loss
from grbb_ext.objective import RuleName, check_raw_scores
from grbb_ext.propagation import anchor_matrix
from grbb_ext.rules import LabeledGradient, LabeledRule, TargetsRule, corrected, propagate

Gradients = tuple[Floats, Floats]


def sum_over_workers(values: NDArray[Any]) -> NDArray[Any]:
    """Return the sum of all workers' arrays, in the shape of this one's."""
    return np.asarray(collective.allreduce(values, collective.Op.SUM).reshape(values.shape))


@dataclass(frozen=True)
class LabeledRows:
    """What every worker knows of the n labelled rows.

    Attributes
    ----------
    ids : ndarray of int64 of shape (n,)
        Their ids.
    targets : ndarray of shape (n,) or (n, K)
        0/1, one-hot, or values.
    weights : ndarray of shape (n,)
        Weights of their losses.
    """

    ids: Ids
    targets: NDArray[np.float64]
    weights: NDArray[np.float64]


@dataclass(frozen=True)
class _Local:
    """What a worker has made of its own rows before the first round."""

    ids: Ids
    here: NDArray[np.intp]  # positions of the labelled rows that are on this worker
    which: NDArray[np.intp]  # and their numbers among the n
    rule: Callable[[Floats], Gradients]


@dataclass(frozen=True)
class WorkerObjective:
    r"""A custom objective for ``xgboost.dask.train``: gradients of this worker's rows.

    The rules are those of :class:`grbb_ext.GRBBObjective`. With ``"targets"`` and ``"labeled"`` a row's gradient
    depends on its own score alone. With ``"paper"`` and ``"corrected"`` it depends on the n labelled scores too: every
    worker puts those it has into an array of n zeros, and one allreduce tells them to all,

    .. math:: H_l = \sum_w S_w H_w, \qquad g_w = P_w\, g_l(H_l).

    The sum adds zeros to single numbers, so it has no rounding. The Laplacian term adds n numbers, the workers'
    parts of :math:`(L H)_l`.

    Attributes
    ----------
    n_rows, n_outputs : int
        N, and scores per row.
    loss : Loss
        The loss.
    labeled : LabeledRows
        The labelled rows.
    rule : {"targets", "paper", "corrected", "labeled"}
        The rule.
    newton : bool
        Curvature of the loss, or hessian 1.
    correction : float
        rho of ``"corrected"``.
    rows : mapping of str to Rows
        ``"targets"`` and ``"weight"``; or ``"P"``; or ``"index"`` and ``"share"`` of the nearest anchors.
    P_A : ndarray of shape (A, n) or None
        The operator on the anchors, where there are any.
    unreachable : ndarray of int64
        Ids of rows that no label reaches (with anchors they are known from their shares).
    lam : float
        Weight of the Laplacian term.
    L_l : csr_array of shape (n, N) or None
        The labelled rows of the Laplacian, where lam is not 0.
    weighted : bool
        Whether the DMatrix carries a weight of each row, as its label: the labels themselves are in `labeled`.
    total : callable
        The sum over all workers.
    """

    n_rows: int
    n_outputs: int
    loss: Loss
    labeled: LabeledRows
    rule: RuleName
    newton: bool
    correction: float
    rows: Mapping[str, Rows]
    P_A: NDArray[np.float32] | None
    unreachable: Ids
    lam: float
    L_l: sp.csr_array | None
    weighted: bool
    total: Callable[[NDArray[Any]], NDArray[Any]] = sum_over_workers
    _locals: weakref.WeakKeyDictionary[xgb.DMatrix, _Local] = field(
        default_factory=weakref.WeakKeyDictionary, repr=False, compare=False
    )

    @property
    def numbers_per_round(self) -> int:
        """Numbers that the workers add up in a round."""
        n = int(self.labeled.ids.size) * self.n_outputs
        return n * ((self.rule in ("paper", "corrected")) + (self.lam > 0))

    def __call__(self, raw_scores: NDArray[Any], data: xgb.DMatrix) -> Gradients:
        """Return gradient and hessian of the rows of this worker."""
        local = self._locals.get(data)
        if local is None:
            # Workers run as threads of one process share this object, but not their data.
            local = self._locals[data] = self._prepare(data)
        n_local = local.ids.size
        if self.n_outputs > 1 and n_local == 0:
            raw_scores = np.empty((0, self.n_outputs), dtype=np.float32)
        H = check_raw_scores(raw_scores, n_local, self.n_outputs, single_precision=True)
        gradient, hessian = local.rule(H)
        return np.ascontiguousarray(gradient, dtype=np.float32), np.ascontiguousarray(hessian, dtype=np.float32)

    def _prepare(self, data: xgb.DMatrix) -> _Local:
        ids = read_ids(data)
        if ids.size != data.num_row():
            raise ValueError("The DMatrix does not carry row ids: use grbb_ext.adapters.dask.train.")
        check_ids(ids, self.n_rows)
        order = np.argsort(self.labeled.ids)
        place = np.minimum(np.searchsorted(self.labeled.ids[order], ids), order.size - 1)
        here = np.flatnonzero(self.labeled.ids[order[place]] == ids)
        which = order[place[here]]
        weight = data.get_label() if self.weighted else None
        make = {
            "targets": self._targets_rule,
            "labeled": self._labeled_rule,
            "paper": self._paper_rule,
            "corrected": self._corrected_rule,
        }
        return _Local(ids, here, which, make[self.rule](ids, here, which, weight))

    def _targets_rule(self, ids: Ids, here: Any, which: Any, weight: Any) -> Callable[[Floats], Gradients]:
        targets = self.rows["targets"].take(ids)
        of_row = self.rows["weight"].take(ids)
        if weight is not None:
            of_row = of_row * weight
        rule = TargetsRule(self.loss, targets, None if (of_row == 1).all() else of_row, self.newton, None)
        return self._penalized(rule, ids, here, which)

    def _labeled_rule(self, ids: Ids, here: Any, which: Any, weight: Any) -> Callable[[Floats], Gradients]:
        labeled = self.labeled
        gradient = LabeledGradient(self.loss, here, labeled.targets[which], labeled.weights[which], None)
        return self._penalized(LabeledRule(gradient, self.newton), ids, here, which)

    def _penalized(
        self, rule: Callable[[Floats], Gradients], ids: Ids, here: Any, which: Any
    ) -> Callable[[Floats], Gradients]:
        """Add the Laplacian term to the labelled rows."""
        if self.lam == 0:
            return rule
        share, degree = self._penalty(ids)

        def penalized(H: Floats) -> Gradients:
            gradient, hessian = rule(H)
            gradient[here] += self.total(share @ H)[which]
            if self.newton:
                hessian[here] += _column(degree, H)[which]
            return gradient, hessian

        return penalized

    def _paper_rule(self, ids: Ids, here: Any, which: Any, weight: Any) -> Callable[[Floats], Gradients]:
        extend = self._operator(ids, here, which)[0]
        everywhere = self._everywhere(ids, here, which)

        def paper(H: Floats) -> Gradients:
            g_l, _, _ = everywhere(H)
            gradient = extend(g_l)
            return gradient, np.ones_like(gradient)

        return _weighted(paper, weight, here)

    def _corrected_rule(self, ids: Ids, here: Any, which: Any, weight: Any) -> Callable[[Floats], Gradients]:
        extend, unreachable = self._operator(ids, here, which)
        everywhere = self._everywhere(ids, here, which)

        def corrected_here(H: Floats) -> Gradients:
            g_l, H_l, h_l = everywhere(H)
            return corrected(H, extend, g_l, H_l, h_l if self.newton else None, self.correction, unreachable)

        return _weighted(corrected_here, weight, here)

    def _everywhere(self, ids: Ids, here: Any, which: Any) -> Callable[[Floats], tuple[Floats, Floats, Floats]]:
        """Return the map from this worker's scores to gradient, score and curvature of all labelled rows."""
        n = self.labeled.ids.size
        of_labeled = LabeledGradient(self.loss, np.arange(n), self.labeled.targets, self.labeled.weights, None)
        penalty = self._penalty(ids) if self.lam > 0 else None

        def labeled_scores(H: Floats) -> tuple[Floats, Floats, Floats]:
            H_l = np.zeros((n, *H.shape[1:]), dtype=np.float32)
            H_l[which] = H[here]
            if penalty is None:
                H_l = self.total(H_l)
                g_l, h_l = of_labeled(H_l)
                return g_l, H_l, h_l
            share, degree = penalty
            both = self.total(np.stack([H_l, share @ H]))
            H_l = both[0].astype(np.float32)
            g_l, h_l = of_labeled(H_l)
            return g_l + both[1], H_l, h_l + _column(degree, H)

        return labeled_scores

    def _penalty(self, ids: Ids) -> tuple[sp.csr_array, NDArray[np.float64]]:
        """Return lam L[l, these rows], and the diagonal of lam L on the labelled rows."""
        assert self.L_l is not None
        n = self.labeled.ids.size
        degree = np.asarray(self.L_l[np.arange(n), self.labeled.ids]).ravel()
        return sp.csr_array(self.lam * self.L_l[:, ids]), self.lam * degree

    def _operator(self, ids: Ids, here: Any, which: Any) -> tuple[Callable[[Floats], Floats], NDArray[np.bool_]]:
        """Return the product with these rows of P_bar, and which of the rows no label reaches."""
        if self.P_A is None:
            return partial(propagate, self.rows["P"].take(ids)), np.isin(ids, self.unreachable)
        P_A, share = self.P_A, self.rows["share"].take(ids)
        Z = anchor_matrix(self.rows["index"].take(ids), share, P_A.shape[0])

        def product(vectors: Floats) -> Floats:
            extended = np.asarray(Z @ propagate(P_A, vectors))
            extended[here] = vectors[which]
            return extended

        unreachable: NDArray[np.bool_] = np.asarray(~share.any(axis=1))
        unreachable[here] = False
        return product, unreachable

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_locals"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _locals=weakref.WeakKeyDictionary())


def _column(values: NDArray[np.float64], H: Floats) -> NDArray[np.float64]:
    return values if H.ndim == 1 else values[:, None]


def _weighted(rule: Callable[[Floats], Gradients], weight: Any, here: Any) -> Callable[[Floats], Gradients]:
    """Multiply by the weights of the rows; the loss has those of labelled rows already."""
    if weight is None:
        return rule
    factor = np.asarray(weight, dtype=np.float32).copy()
    factor[here] = 1.0

    def weighted(H: Floats) -> Gradients:
        gradient, hessian = rule(H)
        by_row = factor if H.ndim == 1 else factor[:, None]
        return gradient * by_row, hessian * by_row

    return weighted


class CollectiveMiser(GreedyMiser):
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
