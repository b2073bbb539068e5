"""The objective itself: raw scores in, gradient and hessian out."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from grbb_ext._reporting import warn_caller
from grbb_ext.graph import laplacian
from grbb_ext.labels import Labels, class_weights, mixed_weight, read_labels
from grbb_ext.losses import Floats, class_probabilities
from grbb_ext.objective._raw_scores import check_raw_scores, check_start
from grbb_ext.objective._settings import Settings
from grbb_ext.propagation import Propagation, SmoothPropagation, make_propagation
from grbb_ext.rules import (
    CorrectedRule,
    LabeledGradient,
    LabeledRule,
    LaplacianRule,
    LaplacianTerm,
    PaperRule,
    Rule,
    TargetsRule,
)
from grbb_ext.table import TreeColumns
from grbb_ext.teacher import (
    Evidence,
    Refinement,
    RefinementBasis,
    centered_labels,
    finish_targets,
    labeled_forest,
    refine,
    sharpened,
    smoothness,
    soft_targets,
    weigh,
)


class UnreachableRowsWarning(UserWarning):
    """Some rows lie in a component of the graph without a label; they get gradient 0."""


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
    labeled_targets_ : ndarray of shape (n,) or (n, K)
        Their targets: 0/1, one-hot, or values.
    labeled_weight_ : ndarray of shape (n,)
        The weights of their losses, sample and class weight together.
    lam_ : float
        The weight of the Laplacian term.
    unlabeled_ : object
        The marker of unlabelled rows.
    unreachable_ : ndarray of int
        Rows that no label reaches; their gradient is 0.
    graph_ : csr_array of shape (N, N) or None
        The affinity; None for ``rule="labeled"`` without lam. Where not every row is a node (see
        :class:`RefinedGraph`), the others have no edges; ``propagation_.Z`` tells on which nodes they hang.
    refinement_ : Refinement or None
        How the graph was refined: agreement with the plain graph, time, settings; None for other graphs.
    evidence_ : Evidence or None
        What the labels say for the graph and for a forest on the labelled rows alone; None without a guard.
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
        labels: Labels,
        graph: sp.csr_array | RefinementBasis | None,
        settings: Settings,
        sample_weight: NDArray[np.float64] | None,
        columns: TreeColumns | None = None,
    ) -> None:
        self._y, self._settings, self._sample_weight, self._columns = y, settings, sample_weight, columns
        self.classes_, self.loss_, self.labeled_ = labels.classes, labels.loss, labels.labeled
        self.n_rows_ = labels.n_rows
        self.labeled_targets_, self.lam_ = labels.targets, settings.lam
        self.unlabeled_ = settings.unlabeled
        self.n_outputs_ = 1 if labels.targets.ndim == 1 else labels.targets.shape[1]
        self.refinement_: Refinement | None = None
        # What the graph is made from again where the labels change: a refined graph has learned from them.
        self._source = graph
        if isinstance(graph, RefinementBasis):
            self.refinement_ = self._refine(graph, labels)
            graph = self.refinement_.graph
        self.graph_ = graph
        self.propagation_ = self._make_propagation()
        self.unreachable_: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        if self.propagation_ is not None:
            self.graph_ = self.propagation_.W  # one copy serves both
            if self.refinement_ is None:
                self._source = self.graph_
            self.unreachable_ = np.flatnonzero(~self.propagation_.reachable)
            self._warn_unreachable()
        self.evidence_: Evidence | None = None
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

    @property
    def y_(self) -> NDArray[Any]:
        """A copy of the labels as given, unlabelled rows with their marker."""
        return self._y.copy()

    @property
    def P_bar_(self) -> NDArray[np.float32] | None:
        """The operator as an N x n matrix, where the rule has formed it; else None."""
        return getattr(self._rule, "P_bar", None)

    def predict_proba(self, raw_scores: ArrayLike) -> NDArray[np.float64]:
        """Turn raw scores, of these or any other rows, into class probabilities of shape (rows, K)."""
        if self.classes_ is None:
            raise ValueError("predict_proba is for classification; with squared error the raw scores are predictions.")
        return class_probabilities(raw_scores)

    def predict(self, raw_scores: ArrayLike) -> NDArray[Any]:
        """Turn raw scores, of these or any other rows, into classes (or into numbers, for regression)."""
        if self.classes_ is None:
            return np.asarray(raw_scores)
        return np.asarray(self.classes_[self.predict_proba(raw_scores).argmax(axis=1)])

    def subset(self, rows: ArrayLike) -> GRBBObjective:
        """Make the objective of some of the rows, for a fold of a cross-validation.

        Graph and labels are cut to the rows and propagated again, so nothing is learned from the labels left out. A
        refined graph is refined again, from the labels of these rows alone.

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
        graph = self._source
        if isinstance(graph, RefinementBasis):
            graph = graph.subset(chosen)
        elif graph is not None:
            graph = sp.csr_array(graph[chosen][:, chosen])
        weight = None if self._sample_weight is None else self._sample_weight[chosen]
        y = self._y[chosen]
        labels = read_labels(y, self._settings.loss, self.classes_, self._settings.unlabeled)
        columns = None if self._columns is None else self._columns.subset(chosen)
        return GRBBObjective(y, labels, graph, self._settings, weight, columns)

    def with_labels(self, y: ArrayLike) -> GRBBObjective:
        """Make the same objective, on the same graph, with other labels. A refined graph is refined again from them.

        Parameters
        ----------
        y : array-like of shape (N,)
            The labels, marked as before (see :attr:`y_`). Classes that y does not hold are kept.

        Returns
        -------
        GRBBObjective
            With the same settings and the same classes.
        """
        labels = read_labels(y, self._settings.loss, self.classes_, self._settings.unlabeled)
        if labels.n_rows != self.n_rows_:
            raise ValueError(
                f"y must have a label or a marker for each of the {self.n_rows_} rows, got {labels.n_rows}."
            )
        return GRBBObjective(np.asarray(y), labels, self._source, self._settings, self._sample_weight, self._columns)

    def _refine(self, basis: RefinementBasis, labels: Labels) -> Refinement:
        settings = self._settings.solver_settings
        return refine(
            basis,
            labels,
            lambda W, labeled: make_propagation("smooth", W, labeled, **settings),
            n_jobs=settings["n_jobs"],
            verbose=settings["verbose"],
        )

    def _make_propagation(self) -> Propagation | None:
        kind = self._settings.propagation
        if self._settings.rule == "labeled":
            return None
        assert self.graph_ is not None
        if self.refinement_ is not None:
            if kind == "smooth":
                return self.refinement_.propagation
            if isinstance(kind, Propagation):
                return kind.on(self.graph_, self.labeled_)
        if isinstance(kind, Propagation):
            same = kind.n_rows == self.n_rows_ and np.array_equal(kind.labeled, self.labeled_)
            return kind if same else kind.on(self.graph_, self.labeled_)
        return make_propagation(kind, self.graph_, self.labeled_, **self._settings.solver_settings)

    def _warn_unreachable(self) -> None:
        if self.unreachable_.size:
            warn_caller(
                f"{self.unreachable_.size} of {self.n_rows_} rows lie in a component of the graph without a label and "
                "get gradient 0 (obj.unreachable_ names them). Raise n_neighbors, or label a row of each component.",
                UnreachableRowsWarning,
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
        self.labeled_weight_ = weight_l
        labeled_gradient = LabeledGradient(labels.loss, rows, labels.targets, weight_l, penalty)
        if settings.rule == "labeled":
            return LabeledRule(labeled_gradient, newton)
        assert operator is not None
        if settings.rule == "targets":
            q = self._guarded_targets(labels, operator)
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

    def _guarded_targets(self, labels: Labels, operator: Propagation) -> NDArray[np.float64]:
        sharpen, hard = self._settings.sharpen, self._settings.hard
        # A single label cannot be predicted from others, and without unlabelled rows there is nothing to guard.
        idle = labels.labeled.size < 2 or not operator.free.size
        if self._columns is None or idle or not isinstance(operator, SmoothPropagation):
            return soft_targets(operator, labels.targets, labels.loss, sharpen=sharpen, hard=hard)
        of_forest, unseen = labeled_forest(
            self._columns,
            labels,
            components=self._source.components if isinstance(self._source, RefinementBasis) else None,
            random_state=self._settings.random_state,
            n_jobs=self._settings.solver_settings["n_jobs"],
            verbose=self._settings.solver_settings["verbose"],
        )
        values, mean = centered_labels(labels.targets, labels.loss)
        held_out = finish_targets(operator.leave_one_out(values), mean, labels.loss)
        graph = self.graph_ if self.refinement_ is None else self.refinement_.plain
        self.evidence_ = weigh(held_out, unseen, labels.targets, labels.loss, smoothness(graph, of_forest))
        self.evidence_.warn_if_doubtful()
        q = soft_targets(operator, labels.targets, labels.loss, sharpen=sharpen)
        if labels.classes is not None:
            of_forest = sharpened(of_forest, sharpen)
        q = self.evidence_.graph_weight * q + (1.0 - self.evidence_.graph_weight) * of_forest
        if hard and labels.classes is not None:
            q = sharpened(q, 1.0, hard=True)
        q[labels.labeled] = labels.targets
        return q

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
