"""The objective: one callable that makes a stock booster semi-supervised."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from grbb_ext._raw_scores import check_raw_scores, check_start
from grbb_ext.graph import check_graph, knn_graph, laplacian
from grbb_ext.graph._columns import Scale
from grbb_ext.graph._neighbors import Method
from grbb_ext.graph._weights import Weights
from grbb_ext.labels import Labels, LossName, read_labels
from grbb_ext.losses._base import Floats
from grbb_ext.propagation import Propagation, PropagationKind, make_propagation
from grbb_ext.row_weights import ClassWeight, check_sample_weight, class_weights, mixed_weight
from grbb_ext.rules import (
    CorrectedRule,
    LabeledGradient,
    LabeledRule,
    LaplacianRule,
    LaplacianTerm,
    PaperRule,
    Rule,
    TargetsRule,
    soft_targets,
)

RuleName = Literal["paper", "corrected", "targets", "laplacian", "labeled"]
Hessian = Literal["newton", "unit"]

_PROPAGATION_OF_RULE: dict[str, PropagationKind] = {"paper": "harmonic", "corrected": "nonlocal", "targets": "smooth"}
_HESSIAN_OF_RULE: dict[str, Hessian] = {
    "paper": "unit",
    "laplacian": "unit",
    "corrected": "newton",
    "targets": "newton",
    "labeled": "newton",
}


class UnreachableRowsWarning(UserWarning):
    """Some rows lie in a component of the graph without a label; they get gradient 0."""


@dataclass(frozen=True)
class _Settings:
    """How an objective is made from a graph and labels; kept so that a subset can be made the same way."""

    rule: RuleName
    propagation: PropagationKind | Propagation
    hessian: Hessian
    loss: LossName
    unlabeled: Any
    class_weight: ClassWeight
    lam: float
    correction: float
    sharpen: float
    hard: bool
    solver_settings: dict[str, Any]

    def check(self) -> None:
        if self.rule not in _HESSIAN_OF_RULE:
            raise ValueError(f"rule must be one of {sorted(_HESSIAN_OF_RULE)}, got {self.rule!r}.")
        if self.hessian not in ("newton", "unit"):
            raise ValueError(f"hessian must be 'newton' or 'unit', got {self.hessian!r}.")
        if self.hessian == "newton" and self.rule in ("paper", "laplacian"):
            raise ValueError(f"rule={self.rule!r} is defined with hessian 1: leave hessian out, or use 'corrected'.")
        for name, lowest in (("lam", 0.0), ("correction", 0.0), ("sharpen", 1.0)):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= lowest):
                raise ValueError(f"{name} must be a finite number of at least {lowest:g}, got {value!r}.")
        if self.rule == "laplacian" and self.lam == 0:
            raise ValueError("rule='laplacian' needs lam > 0: with lam=0 the unlabelled rows are ignored.")


class GRBBObjective:
    """A custom objective for XGBoost and LightGBM; made by :func:`grbb_objective`.

    The object is immutable: what can be computed before the first round is, and each call is a function of the raw
    scores alone. It pickles, and a deep copy is the object itself.

    Attributes
    ----------
    classes_ : ndarray of shape (K,) or None
        Classes in the order of the scores (with two classes the score is that of the second); None for regression.
    n_rows_ : int
        N, labelled and unlabelled.
    n_outputs_ : int
        Scores per row: 1, or K for softmax. Set it as the booster's ``num_class`` where it is above 1.
    labeled_ : ndarray of int
        The labelled rows.
    unlabeled_ : object
        The marker of unlabelled rows.
    unreachable_ : ndarray of int
        Rows that no label reaches; their gradient is 0.
    graph_ : csr_array of shape (N, N) or None
        The affinity; None for ``rule="labeled"`` without lam.
    propagation_ : Propagation or None
        The operator; None for rules without one.
    targets_ : ndarray of shape (N,) or (N, K), or None
        Targets q of ``rule="targets"``.
    loss_ : Loss
        The loss.
    """

    def __init__(
        self,
        y: NDArray[Any],
        graph: sp.csr_array | None,
        settings: _Settings,
        classes: ArrayLike | None,
        sample_weight: NDArray[np.float64] | None,
    ) -> None:
        settings.check()
        self._y, self._settings, self._sample_weight = y, settings, sample_weight
        labels = read_labels(y, settings.loss, classes, settings.unlabeled)
        self.classes_, self.loss_, self.labeled_ = labels.classes, labels.loss, labels.labeled
        self.n_rows_ = labels.n_rows
        self.unlabeled_ = settings.unlabeled
        self.n_outputs_ = 1 if labels.targets.ndim == 1 else labels.targets.shape[1]
        self.graph_ = graph
        self.propagation_ = self._make_propagation()
        self.unreachable_: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        if self.propagation_ is not None:
            self.unreachable_ = np.flatnonzero(~self.propagation_.reachable)
            self._warn_unreachable()
        self.targets_: NDArray[np.float32] | None = None
        self._unlabeled_weight: NDArray[np.float32] | None = None
        self._rule = self._make_rule(labels)

    def __call__(self, raw_scores: ArrayLike, data: Any = None) -> tuple[Floats, Floats]:
        """Return gradient and hessian of every row.

        Parameters
        ----------
        raw_scores : array-like of shape (N,) or (N, K)
            The booster's raw scores (margins) on all rows, in the order of y.
        data : xgboost.DMatrix, lightgbm.Dataset or None
            What the booster passes along. Its labels are not used.

        Returns
        -------
        gradient, hessian : ndarray of the shape of `raw_scores`
            float32 for a booster, else of the precision of `raw_scores`.
        """
        H = check_raw_scores(raw_scores, self.n_rows_, self.n_outputs_, single_precision=data is not None)
        if data is not None:
            check_start(H, data)
        gradient, hessian = self._rule(H)
        if self._unlabeled_weight is not None:
            weight = self._unlabeled_weight if H.ndim == 1 else self._unlabeled_weight[:, None]
            gradient *= weight
            hessian *= weight
        return gradient, hessian

    def predict_proba(self, raw_scores: ArrayLike) -> NDArray[np.float64]:
        """Turn raw scores, of these or any other rows, into class probabilities of shape (rows, K)."""
        if self.classes_ is None:
            raise ValueError("predict_proba is for classification; with squared error the raw scores are predictions.")
        H = np.asarray(raw_scores, dtype=np.float64)
        probability = self.loss_.mean(H)
        if probability.ndim == 1:
            probability = np.column_stack([1.0 - probability, probability])
        return probability.astype(np.float64, copy=False)

    def predict(self, raw_scores: ArrayLike) -> NDArray[Any]:
        """Turn raw scores, of these or any other rows, into classes (or into numbers, for regression)."""
        if self.classes_ is None:
            return np.asarray(raw_scores)
        return np.asarray(self.classes_[self.predict_proba(raw_scores).argmax(axis=1)])

    def subset(self, rows: ArrayLike) -> GRBBObjective:
        """Make the objective of some of the rows, for a fold of a cross-validation.

        Graph and labels are cut to the rows and propagated again, so nothing is learned from the labels left out.

        Parameters
        ----------
        rows : array-like of int or bool
            The rows, in the order in which the fold's data set holds them.

        Returns
        -------
        GRBBObjective
            With the same settings and the same classes.
        """
        chosen = np.arange(self.n_rows_)[np.asarray(rows)]
        graph = None if self.graph_ is None else sp.csr_array(self.graph_[chosen][:, chosen])
        weight = None if self._sample_weight is None else self._sample_weight[chosen]
        return GRBBObjective(self._y[chosen], graph, self._settings, self.classes_, weight)

    def _make_propagation(self) -> Propagation | None:
        kind = self._settings.propagation
        if self._settings.rule == "labeled":
            return None
        assert self.graph_ is not None
        if isinstance(kind, Propagation):
            same = kind.n_rows == self.n_rows_ and np.array_equal(kind.labeled, self.labeled_)
            return kind if same else kind.on(self.graph_, self.labeled_)
        return make_propagation(kind, self.graph_, self.labeled_, **self._settings.solver_settings)

    def _warn_unreachable(self) -> None:
        if self.unreachable_.size:
            warnings.warn(
                f"{self.unreachable_.size} of {self.n_rows_} rows lie in a component of the graph without a label and "
                "get gradient 0 (obj.unreachable_ names them). Raise n_neighbors, or label a row of each component.",
                UnreachableRowsWarning,
                stacklevel=4,
            )

    def _make_rule(self, labels: Labels) -> Rule:
        settings, operator = self._settings, self.propagation_
        sample_weight = np.ones(self.n_rows_) if self._sample_weight is None else self._sample_weight
        of_class = class_weights(settings.class_weight, labels)
        rows = labels.labeled
        newton = settings.hessian == "newton"

        penalty = None
        if settings.lam > 0 and settings.rule != "laplacian":
            assert self.graph_ is not None
            penalty = LaplacianTerm(settings.lam, rows, sp.csr_array(laplacian(self.graph_)[rows]))
        weight_l = sample_weight[rows] * (1.0 if of_class is None else mixed_weight(labels.targets, of_class))
        labeled_gradient = LabeledGradient(labels.loss, rows, labels.targets, weight_l, penalty)
        if settings.rule == "labeled":
            return LabeledRule(labeled_gradient, newton)
        assert operator is not None
        if settings.rule == "targets":
            q = soft_targets(operator, labels.targets, labels.loss, sharpen=settings.sharpen, hard=settings.hard)
            self.targets_ = _frozen(q.astype(np.float32))
            weight = sample_weight * (1.0 if of_class is None else mixed_weight(q, of_class))
            weight[self.unreachable_] = 0.0
            row_weight = None if (weight == 1.0).all() else weight.astype(np.float32)
            return TargetsRule(labels.loss, self.targets_, row_weight, newton, penalty)

        if self._sample_weight is not None:
            # The loss has the weights of labelled rows already.
            sample_weight = sample_weight.copy()
            sample_weight[rows] = 1.0
            self._unlabeled_weight = sample_weight.astype(np.float32)
        if settings.rule == "laplacian":
            assert self.graph_ is not None
            reached = sp.diags_array(operator.reachable.astype(np.float64))
            return LaplacianRule(labeled_gradient, sp.csr_array(reached @ laplacian(self.graph_)), settings.lam)
        if settings.rule == "corrected":
            if newton and not operator.stochastic:
                raise ValueError(
                    f"rule='corrected' propagates curvatures, which {operator.kind!r} can turn negative. "
                    "Use propagation='nonlocal' or 'harmonic', or hessian='unit'."
                )
            P_bar = _frozen(operator.dense())
            return CorrectedRule(labeled_gradient, P_bar, settings.correction, newton, self.unreachable_)
        return PaperRule(labeled_gradient, _frozen(operator.dense()))

    def __deepcopy__(self, memo: dict[int, Any]) -> GRBBObjective:
        # lgb.train deep-copies its params: an immutable object need not be copied, and P may hold gigabytes.
        return self

    def __repr__(self) -> str:
        kind = "" if self.propagation_ is None else f", propagation={self.propagation_.kind!r}"
        return (
            f"GRBBObjective(rule={self._settings.rule!r}{kind}, loss={self.loss_.name!r}, "
            f"{self.labeled_.size} of {self.n_rows_} rows labelled)"
        )


def _frozen(array: NDArray[np.float32]) -> NDArray[np.float32]:
    array.setflags(write=False)
    return array


def grbb_objective(
    X: Any,
    y: ArrayLike,
    *,
    graph: Any = None,
    n_neighbors: int = 9,
    weights: Weights | None = None,
    metric: str = "euclidean",
    method: Method = "auto",
    scale: Scale = "auto",
    preset: Literal["paper"] | None = None,
    rule: RuleName | None = None,
    propagation: PropagationKind | Propagation | None = None,
    hessian: Hessian | None = None,
    loss: LossName = "auto",
    classes: ArrayLike | None = None,
    unlabeled: Any = -1,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight = None,
    lam: float = 0.0,
    correction: float = 1.0,
    sharpen: float = 3.0,
    hard: bool = False,
    solver: Literal["auto", "direct", "cg", "chebyshev"] = "auto",
    tol: float = 1e-8,
    memory_limit: float = 2e9,
    n_jobs: int | None = None,
    verbose: bool = True,
) -> GRBBObjective:
    """Make the objective that trains a stock booster on labelled and unlabelled rows.

    Pass it as ``obj=`` to ``xgboost.train`` (with ``"base_score": 0`` in the parameters) or as
    ``params["objective"]`` to ``lightgbm.train``, with a data set of all N rows in the order of y. For more than two
    classes also set ``num_class`` to ``obj.n_outputs_``.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (N, d), or None
        All rows, for the graph; None where `graph` is given.
    y : array-like of shape (N,)
        Labels in any row order. `unlabeled`, NaN or None marks a row without one.
    graph : sparse matrix or array-like of shape (N, N), default=None
        A ready affinity, symmetric and non-negative; None builds :func:`knn_graph`.
    n_neighbors, metric, method, scale
        Passed to :func:`knn_graph`.
    weights : {"self-tuning", "binary", "heat"} or None, default=None
        Passed to :func:`knn_graph`; None is ``"self-tuning"``, and ``"binary"`` for the paper's preset.
    preset : {"paper"} or None, default=None
        ``"paper"``: eq. 5-6 exactly, i.e. ``rule="paper"``, harmonic propagation, hessian 1, binary weights.
    rule : {"paper", "corrected", "targets", "laplacian", "labeled"}, default="targets"
        What unlabelled rows are told; see :mod:`grbb_ext.rules`. ``"laplacian"`` (LapGBRT) and ``"labeled"`` (GBRT) are
        the paper's baselines.
    propagation : {"harmonic", "nonlocal", "smooth", "poisson"} or Propagation, default=None
        The operator, or one made beforehand with :func:`make_propagation`. None is ``"smooth"`` for ``"targets"``,
        ``"nonlocal"`` for ``"corrected"`` and ``"harmonic"`` for ``"paper"``.
    hessian : {"newton", "unit"} or None, default=None
        Curvature of the loss, or 1 so that a leaf is the mean of -g and a gain a decrease in squared error. None is
        ``"unit"`` for ``"paper"`` and ``"laplacian"``, else ``"newton"``.
    loss : {"auto", "logistic", "softmax", "squared_error"}, default="auto"
        ``"auto"`` is logistic for two classes and softmax for more. Regression has to be asked for.
    classes : array-like or None, default=None
        All classes, where y may miss some. Labels of a single class are refused without it, and with it warned about.
    unlabeled : object, default=-1
        The marker of unlabelled rows.
    sample_weight : array-like of shape (N,) or None, default=None
        Multiplies the loss of labelled rows and gradient and hessian of unlabelled ones. Weights of the booster's data
        set are not seen by a custom objective.
    class_weight : "balanced", dict or None, default=None
        Weights of the classes; ``"balanced"`` by the labelled counts.
    lam : float, default=0
        Adds lam (L H)_l to the labelled gradient (eq. 5); for ``"laplacian"`` lam L H to all rows.
    correction : float, default=1
        rho of ``"corrected"``.
    sharpen : float, default=3
        Power by which ``"targets"`` sharpens propagated labels; 1 leaves them alone.
    hard : bool, default=False
        Round the targets of ``"targets"`` to the most probable class.
    solver, tol, memory_limit, n_jobs, verbose
        Passed to :func:`make_propagation`.

    Returns
    -------
    GRBBObjective
        A callable ``obj(raw_scores, data=None) -> (gradient, hessian)``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> X, truth = make_moons(200, noise=0.05, random_state=0)
    >>> y = np.full(200, -1)
    >>> y[[0, 1]] = truth[[0, 1]]
    >>> obj = grbb_objective(X, y)
    >>> obj
    GRBBObjective(rule='targets', propagation='smooth', loss='logistic', 2 of 200 rows labelled)
    >>> gradient, hessian = obj(np.zeros(200))
    >>> float(np.mean((gradient < 0) == truth))
    1.0
    """
    if preset not in (None, "paper"):
        raise ValueError(f"preset must be 'paper' or None, got {preset!r}.")
    if preset == "paper":
        for name, given, meant in (
            ("rule", rule, "paper"),
            ("propagation", propagation, "harmonic"),
            ("hessian", hessian, "unit"),
        ):
            if given not in (None, meant):
                raise ValueError(f"preset='paper' means {name}={meant!r}, got {given!r}. Leave one of them out.")
        rule = "paper"
    rule = rule or "targets"
    settings = _Settings(
        rule=rule,
        propagation=propagation or _PROPAGATION_OF_RULE.get(rule, "harmonic"),
        hessian=hessian or _HESSIAN_OF_RULE.get(rule, "newton"),
        loss=loss,
        unlabeled=unlabeled,
        class_weight=class_weight,
        lam=lam,
        correction=correction,
        sharpen=sharpen,
        hard=hard,
        solver_settings={
            "solver": solver,
            "tol": tol,
            "memory_limit": memory_limit,
            "n_jobs": n_jobs,
            "verbose": verbose,
        },
    )
    settings.check()
    labels = np.asarray(y)
    # Wrong labels are found before the graph, which may take minutes, is built.
    read_labels(labels, loss, classes, unlabeled)
    sample_weight = check_sample_weight(sample_weight, labels.size)
    if graph is not None:
        W = check_graph(graph, labels.size)
    elif rule == "labeled" and lam == 0:
        W = None
    elif X is None:
        raise ValueError("Pass X, or a ready affinity as graph=.")
    else:
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if n_rows != labels.size:
            raise ValueError(f"X has {n_rows} rows but y has {labels.size}: they must match, row by row.")
        W = knn_graph(
            X,
            n_neighbors,
            weights=weights or ("binary" if preset == "paper" else "self-tuning"),
            metric=metric,
            method=method,
            scale=scale,
            n_jobs=n_jobs,
            verbose=verbose,
        )
    return GRBBObjective(labels, W, settings, classes, sample_weight)
