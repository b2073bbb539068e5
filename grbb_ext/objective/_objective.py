"""The objective itself: raw scores in, gradient and hessian out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grbb_ext.graph import PreparedGraph
from grbb_ext.labels import Labels
from grbb_ext.losses import Floats, class_probabilities, per_class
from grbb_ext.objective._raw_scores import check_data, check_gradients, check_raw_scores, warn_of_probabilities
from grbb_ext.rules import DenseOperator, RuleParts
from grbb_ext.teacher import Lesson, Teacher

if TYPE_CHECKING:
    from grbb_ext.objective._make import Recipe


class UnreachableRowsWarning(UserWarning):
    """Some rows lie in a component of the graph without a label; they get gradient 0."""


class GRBBObjective:
    """A custom objective for XGBoost and LightGBM; made by :func:`grbb_objective`.

    The object is immutable. Everything that does not depend on raw scores is computed once, so each call is a function
    of the raw scores alone. It can be pickled; a deep copy is the object itself. Labels and weights are copies of what
    was given. An array of rows is not copied: :meth:`subset` and :meth:`with_labels` read it again.

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
    sample_weight_ : ndarray of shape (N,) or None
        The weights of all rows, as they were given.
    lam_ : float
        The weight of the Laplacian term.
    unlabeled_ : object
        The marker of unlabelled rows.
    unreachable_ : ndarray of int
        Rows for which neither the graph nor another expert predicts a target; their gradient is 0.
    graph_ : csr_array of shape (N, N) or None
        The affinity; None for rules without a graph. Where not every row is a node (see :class:`TableGraph`), the
        others have no edges; ``propagation_.Z`` holds their weights on nodes.
    refinement_ : Refinement or None
        How the graph was refined: agreement with the plain graph, time, settings; None for other graphs.
    teacher_ : Teacher or None
        Predicts targets for any other rows; None for rules without targets.
    evidence_ : Evidence or None
        Held-out likelihood and weight of each expert of the teacher; None for rules without targets.
    propagation_ : Propagation or None
        The operator; None for rules without one.
    targets_ : ndarray of shape (N,) or (N, K), or None
        Targets q of ``rule="targets"``.
    loss_ : Loss
        The loss.
    timings_ : dict of str to float
        Seconds of each stage of the set-up: "table" (reading X), "graph" (columns for distances, and neighbours unless
        the graph has to wait for the labels), the experts of the teacher ("graph expert", "forest", "linear", or the
        class of an estimator), "weights", and "gradients" (what is made ready for the rounds). Rules without a teacher
        have "propagation", a fitted teacher "targets". Folds and new labels list only what was done again.
    """

    def __init__(
        self,
        recipe: Recipe,
        labels: Labels,
        weight: NDArray[np.float64] | None,
        prepared: PreparedGraph,
        lesson: Lesson,
        parts: RuleParts,
        timings: dict[str, float],
    ) -> None:
        self._recipe, self._labels, self.sample_weight_, self._prepared = recipe, labels, weight, prepared
        self._parts = parts
        self.classes_, self.loss_, self.labeled_ = labels.classes, labels.loss, labels.labeled
        self.n_rows_, self.n_outputs_, self.unlabeled_ = labels.n_rows, labels.n_outputs, labels.unlabeled
        self.labeled_targets_, self.labeled_weight_ = labels.targets, parts.labeled.weights
        self.lam_, self.targets_ = recipe.rule.lam, parts.targets
        self.propagation_, self.refinement_, self.teacher_ = lesson.propagation, lesson.refinement, lesson.teacher
        self.evidence_ = None if lesson.teacher is None else lesson.teacher.evidence
        self.graph_ = prepared.W if lesson.propagation is None else lesson.propagation.W
        self.unreachable_, self.timings_ = lesson.unreachable, timings

    def __call__(self, raw_scores: ArrayLike, data: Any = None) -> tuple[Floats, Floats]:
        """Return gradient and hessian of every row.

        Parameters
        ----------
        raw_scores : array-like of shape (N,) or (N, K)
            The booster's raw scores (margins) on all rows, in the order of y.
        data : xgboost.DMatrix, lightgbm.Dataset or None
            What the booster passes along. Its labels are not used, but compared with y where it has any: rows in
            another order are refused.

        Returns
        -------
        gradient, hessian : ndarray of the shape of `raw_scores`
            float32 for a booster, else of the precision of `raw_scores`.
        """
        H = check_raw_scores(raw_scores, self.n_rows_, self.n_outputs_, single_precision=data is not None)
        if data is not None:
            check_data(H, data, self._labels)
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused
            gradient, hessian = self._recipe.rule.gradients(self._parts, H)
        check_gradients(gradient, hessian)
        return gradient, hessian

    @property
    def y_(self) -> NDArray[Any]:
        """A copy of the labels as given, unlabelled rows with their marker."""
        return self._labels.y.copy()

    @property
    def P_bar_(self) -> NDArray[np.float32] | None:
        """The operator as an N x n matrix, where the rule has formed it; else None."""
        return self._parts.extend.P_bar if isinstance(self._parts.extend, DenseOperator) else None

    def soft_labels(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return targets and weights of ``rule="targets"``, for engines that take no Python objective.

        A booster that is trained on q with its own logistic loss or squared error, with these weights and from a raw
        score of 0, is the model that this objective trains. For several classes, and for engines whose logistic loss
        takes only 0 and 1, see :meth:`weighted_rows`.

        Returns
        -------
        q : ndarray of shape (N,) or (N, K)
            The target of each row: the probability of the second class, of each of K, or a number.
        weight : ndarray of shape (N,)
            Sample and class weight of each row; 0 where no label reaches.

        Examples
        --------
        >>> from grbb_ext import grbb_objective
        >>> path = np.diag([1.0, 1.0, 1.0], 1) + np.diag([1.0, 1.0, 1.0], -1)
        >>> obj = grbb_objective(None, [0, -1, -1, 1], graph=path, propagation="harmonic", teacher="graph")
        >>> q, weight = obj.soft_labels()
        >>> (q > 0.5).tolist(), weight.tolist()
        ([False, False, True, True], [1.0, 1.0, 1.0, 1.0])
        """
        if self.targets_ is None:
            raise ValueError(f"rule={self._recipe.rule.name!r} has no soft labels. Use rule='targets', the default.")
        if self.lam_ > 0:
            raise ValueError("Soft labels cannot hold the Laplacian term. Use lam=0, the default.")
        weights = self._parts.weights
        return self.targets_.copy(), np.ones(self.n_rows_, dtype=np.float32) if weights is None else weights.copy()

    def weighted_rows(self) -> tuple[NDArray[np.intp], NDArray[Any], NDArray[np.float32]]:
        """Return the soft labels of classes as rows with one class each, for engines that take only those.

        A row comes once for each class that it may belong to, with the probability of that class as its weight. Losses
        add up over rows, so that training on ``X[rows]`` is training on the soft labels. Parameters that count rows
        (LightGBM's ``min_data_in_leaf``) count the copies.

        Returns
        -------
        rows : ndarray of int of shape (M,)
            Positions among the N rows, ascending.
        label : ndarray of shape (M,)
            A class for each, as in ``classes_``.
        weight : ndarray of shape (M,)
            Above 0.

        Examples
        --------
        >>> from grbb_ext import grbb_objective
        >>> path = np.diag([1.0, 1.0, 1.0], 1) + np.diag([1.0, 1.0, 1.0], -1)
        >>> y = ["no", None, None, "yes"]
        >>> obj = grbb_objective(None, y, graph=path, propagation="harmonic", teacher="graph")
        >>> rows, label, weight = obj.weighted_rows()
        >>> rows.tolist(), label.tolist()
        ([0, 1, 1, 2, 2, 3], ['no', 'no', 'yes', 'no', 'yes', 'yes'])
        >>> np.bincount(rows, weight).round(6).tolist()
        [1.0, 1.0, 1.0, 1.0]
        """
        if self.classes_ is None:
            raise ValueError("Numbers need no copies of rows: train on soft_labels().")
        q, weight = self.soft_labels()
        of_class = per_class(q) * weight[:, None]
        rows, code = np.nonzero(of_class)
        return rows, self.classes_[code], of_class[rows, code]

    def predict_proba(self, raw_scores: ArrayLike) -> NDArray[np.float64]:
        """Turn raw scores, of these or any other rows, into class probabilities of shape (rows, K)."""
        if self.classes_ is None:
            raise ValueError("predict_proba is for classification; with squared error the raw scores are predictions.")
        n_rows = np.shape(raw_scores)[0] if np.ndim(raw_scores) else 1
        H = check_raw_scores(raw_scores, n_rows, self.n_outputs_, single_precision=False)
        warn_of_probabilities(H)
        return class_probabilities(H)

    def predict(self, raw_scores: ArrayLike) -> NDArray[Any]:
        """Turn raw scores, of these or any other rows, into classes (or into numbers, for regression)."""
        if self.classes_ is None:
            return np.asarray(raw_scores)
        return np.asarray(self.classes_[self.predict_proba(raw_scores).argmax(axis=1)])

    def subset(self, rows: ArrayLike) -> GRBBObjective:
        """Make the objective of some of the rows, for a fold of a cross-validation.

        Graph and labels are cut to the rows and propagated again, so nothing is learned from the labels left out. A
        refined graph is refined again, from the labels of these rows alone. A teacher that was fitted before stays as
        it is; where labels are left out there is a warning.

        Parameters
        ----------
        rows : array-like of int or bool
            The rows, each once, in the order in which the fold's data set holds them.

        Returns
        -------
        GRBBObjective
            With the same settings and the same classes.
        """
        chosen = np.asarray(rows)
        if chosen.dtype == np.bool_ and chosen.shape == (self.n_rows_,):
            chosen = np.flatnonzero(chosen)
        if not (chosen.dtype.kind in "iu" and 0 < chosen.size == np.intersect1d(chosen, np.arange(self.n_rows_)).size):
            raise ValueError(
                f"rows must be positions among the {self.n_rows_} rows of the objective, each once, or a mask of them."
            )
        if isinstance(self._recipe.teacher, Teacher) and not np.isin(self._labels.labeled, chosen).all():
            self._recipe.teacher.warn_where_labels_are_held_out()
        weight = None if self.sample_weight_ is None else self.sample_weight_[chosen]
        return self._again(self._labels.again(self._labels.y[chosen]), weight, self._prepared.subset(chosen))

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
        labels = self._labels.again(y)
        if labels.n_rows != self.n_rows_:
            raise ValueError(
                f"y must have a label or a marker for each of the {self.n_rows_} rows, got {labels.n_rows}."
            )
        return self._again(labels, self.sample_weight_, self._prepared)

    def _again(self, labels: Labels, weight: NDArray[np.float64] | None, prepared: PreparedGraph) -> GRBBObjective:
        from grbb_ext.objective._make import assemble  # which makes objects of this class

        return assemble(self._recipe, labels, weight, prepared)

    def __deepcopy__(self, memo: dict[int, Any]) -> GRBBObjective:
        # lgb.train deep-copies its params: an immutable object need not be copied, and P may hold gigabytes.
        return self

    def __repr__(self) -> str:
        kind = "" if self.propagation_ is None else f", propagation={self.propagation_.kind!r}"
        return (
            f"GRBBObjective(rule={self._recipe.rule.name!r}{kind}, loss={self.loss_.name!r}, "
            f"{self.labeled_.size} of {self.n_rows_} rows labelled)"
        )
