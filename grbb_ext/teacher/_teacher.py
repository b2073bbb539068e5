"""The teacher: experts on the same labels, averaged with the weights that held-out labels give them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grbb_ext._options import Spec, finite_number
from grbb_ext._progress import one_thread_of_blas, over_rows, timed, warn_caller
from grbb_ext.graph import PreparedGraph
from grbb_ext.labels import Labels
from grbb_ext.propagation import Propagation, PropagationSpec, SmoothPropagation
from grbb_ext.table import Schema, Table, read_table
from grbb_ext.teacher._evidence import Evidence, weigh
from grbb_ext.teacher._forest import ForestExpert
from grbb_ext.teacher._graph import GraphExpert, Refinement, once, spread
from grbb_ext.teacher._held_out import EstimatorExpert, check_estimator
from grbb_ext.teacher._linear import LinearExpert
from grbb_ext.teacher._shares import class_shares, ratio_to_labels
from grbb_ext.teacher._targets import shifted, tempered

Expert = GraphExpert | ForestExpert | LinearExpert | EstimatorExpert
_EXPERTS = ("graph", "forest", "linear")


@dataclass(frozen=True)
class Committee(Spec):
    r"""Ask for a teacher: ``grbb_objective(X, y, teacher=Committee(class_prior={"no": 0.9, "yes": 0.1}))``.

    ``teacher="committee"`` is short for ``teacher=Committee()``, and ``teacher="graph"``, ``"forest"`` or ``"linear"``
    for one expert alone. A list is short for its experts: ``teacher=["graph", "linear", TabPFNClassifier()]``.

    Parameters
    ----------
    experts : tuple of {"graph", "forest", "linear"} or estimators, default=("graph", "forest", "linear")
        ``"graph"``: labels propagated on the graph. ``"forest"``: extremely randomised trees, and ``"linear"``: a
        logistic or ridge regression, on the labelled rows. Any classifier or regressor of scikit-learn's kind can be
        another. They are averaged with weights from held-out labels (:func:`grbb_ext.teacher.weigh`). Experts other
        than the graph need X, and take part with ``propagation="smooth"`` where some rows have no label; elsewhere the
        graph, if it is one of the experts, decides alone. They may use columns that the model which learns from them
        will not.
    sharpen : "auto" or float, default="auto"
        Power s by which the averaged probabilities are sharpened, :math:`q_k^s / \sum_j q_j^s`; 1 leaves them alone.
        ``"auto"`` averages over the powers that held-out labels support.
    class_prior : "auto", "unlabeled", dict, array-like or None, default="auto"
        Shares of the classes among all rows, where labels were drawn at other rates, such as ten of each class:
        targets are multiplied by these shares over those of the labels. A dict by class, or shares in the order of
        ``classes_``. ``"unlabeled"`` estimates them by comparing labelled with unlabelled rows
        (:func:`grbb_ext.teacher.matched_shares`). ``"auto"`` does so where all classes have equally many labels, five
        or more: these were hardly drawn at random. None trusts the labels. A class without a label has little of the
        targets, whatever its share.
    """

    experts: tuple[Any, ...] = _EXPERTS
    sharpen: float | str = "auto"
    class_prior: Any = "auto"

    def __post_init__(self) -> None:
        if not isinstance(self.experts, list | tuple | str):
            raise TypeError(f"experts must be a list or a tuple, also for one expert; got {self.experts!r}.")
        named = [one for one in self.experts if isinstance(one, str)]
        if not self.experts or not set(named) <= set(_EXPERTS) or len(set(named)) < len(named):
            raise ValueError(f"experts must be some of {_EXPERTS}, each once, or estimators; got {self.experts!r}.")
        for one in self.experts:
            if not isinstance(one, str):
                check_estimator(one)
        if self.sharpen != "auto":
            if isinstance(self.sharpen, str):
                raise ValueError(f"sharpen must be 'auto' or a number of at least 1, got {self.sharpen!r}.")
            finite_number(self.sharpen, "sharpen", least=1.0)
        if isinstance(self.class_prior, str) and self.class_prior not in ("auto", "unlabeled"):
            raise ValueError(
                f"class_prior must be 'auto', 'unlabeled', or the share of each class as a dict or a list; got "
                f"{self.class_prior!r}."
            )

    @property
    def has_graph(self) -> bool:
        """Whether the graph is one of the experts."""
        return any(map(_is_graph, self.experts))


#: Short forms of ``teacher=``.
TEACHERS: dict[str, Committee] = {
    "committee": Committee(),
    **{name: Committee(experts=(name,)) for name in _EXPERTS},
}


@dataclass(frozen=True, eq=False)
class Teacher:
    """A fitted teacher: it predicts targets for any block of rows, on any machine.

    ``obj.teacher_`` of :func:`grbb_ext.grbb_objective` is one, and ``grbb_objective(X, y, teacher=obj.teacher_)`` uses
    it for other rows. It is small (the nodes of the graph, at most 20,000 by default, and trees), does not change, and
    pickles. A row that is a node of the graph gets the answer of the operator itself; any other row the weighted mean
    of the nodes that would be its neighbours. Labels of labelled rows are not put in: the objective does that.

    Attributes
    ----------
    experts : tuple
        The fitted experts.
    labels : Labels
        Loss and classes.
    schema : Schema or None
        The columns; None where a graph was given without rows.
    unknown : ndarray
        Target of a row that no expert knows anything about.
    evidence : Evidence
        Weights and powers, and what they rest on.
    prior_ratio : ndarray of shape (K,) or None
        Shares of the classes among all rows over those of the labels; None where they are taken to be the same.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from grbb_ext import grbb_objective
    >>> X, truth = make_moons(300, noise=0.05, random_state=0)
    >>> y = np.where(np.arange(200) < 10, truth[:200], -1)
    >>> teacher = grbb_objective(X[:200], y).teacher_
    >>> teacher
    Teacher(graph 0.42, forest 0.34, linear 0.24, 10 labels)
    >>> float(np.mean((teacher.predict(X[200:]) > 0.5) == truth[200:]))
    0.96
    """

    experts: tuple[Expert, ...]
    labels: Labels
    schema: Schema | None
    unknown: NDArray[np.float64]
    evidence: Evidence
    prior_ratio: NDArray[np.float64] | None = None

    def predict(self, X: Any, *, n_jobs: int | None = None, verbose: bool = False) -> NDArray[np.float64]:
        """Predict the targets of any rows.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or Table of shape (M, d)
            Rows, with the columns that the teacher was fitted to.
        n_jobs : int or None, default=None
            Threads; None takes all cores.
        verbose : bool, default=False
            Draw a progress bar if it takes more than two seconds.

        Returns
        -------
        ndarray of shape (M,) or (M, K)
            The probability of the second of two classes, those of all K classes, or values for regression.
        """
        table = read_table(X, schema=self.schema)
        if self.schema is not None and isinstance(X, Table):
            table = _recoded(table, self.schema)

        def block_of(block: slice) -> NDArray[np.float64]:
            rows = table.take(block)
            return self.mix([expert.predict(rows) for expert in self.experts])

        if any(isinstance(expert, EstimatorExpert) for expert in self.experts):
            n_jobs = 1  # a user's model may not bear threads
        return over_rows(block_of, table.n_rows, n_jobs=n_jobs, description="targets", verbose=verbose)

    def check_labels(self, labels: Labels) -> None:
        """Raise a ValueError unless the teacher was fitted to labels with the same classes and the same loss."""
        mine, theirs = (None if one.classes is None else one.classes.tolist() for one in (labels, self.labels))
        if mine != theirs:
            raise ValueError(
                f"The teacher was fitted to the classes {theirs}, but y has {mine}. Pass classes= with those of the "
                "teacher, or fit another one."
            )
        if self.labels.n_outputs != labels.n_outputs:
            raise ValueError(
                f"The teacher was fitted with the loss {self.labels.loss.name!r}, but the labels have "
                f"{labels.loss.name!r}. Pass the same loss= to both."
            )

    def warn_where_labels_are_held_out(self) -> None:
        """Warn that a teacher which was fitted before may have seen them."""
        warn_caller(
            "teacher= was fitted before. If it has seen labels of these rows, scores of held-out rows are too good: "
            "pass teacher='committee', which is fitted in each fold.",
            UserWarning,
        )

    def mix(self, predicted: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Average the predictions of the experts, in their order, sharpen them, and shift the shares of classes.

        NaN does not count: an expert need not know every row.
        """
        mixed, total = np.zeros(predicted[0].shape), np.zeros(predicted[0].shape)
        for weight, one in zip(self.evidence.weight, predicted, strict=True):
            known = np.isfinite(one)
            mixed += np.where(known, weight * one, 0.0)
            total += np.where(known, weight, 0.0)
        q = np.where(total > 0, mixed / np.where(total > 0, total, 1.0), self.unknown)
        if self.labels.classes is None:
            return q
        # What rounding leaves beyond 1 has no power.
        q = tempered(np.clip(q, 0.0, 1.0), self.evidence.powers, self.evidence.shares)
        return q if self.prior_ratio is None else shifted(q, self.prior_ratio)

    def __repr__(self) -> str:
        listed = ", ".join(f"{name} {weight:.2f}" for name, weight in self.evidence.weights.items())
        return f"Teacher({listed}, {self.labels.labeled.size} labels)"


def _recoded(table: Table, schema: Schema) -> Table:
    """Give a table that was read apart the codes of a schema; categories that the schema does not have are missing.

    Examples
    --------
    >>> here = Table(np.array([[0.0], [1.0]]), Schema((0,), {0: ("b", "c")}))
    >>> _recoded(here, Schema((0,), {0: ("a", "b")})).values.ravel().tolist()
    [1.0, nan]
    """
    own = table.schema
    expected = table.n_columns if schema.n_columns is None else schema.n_columns
    names = own.names if schema.names is None else schema.names
    if table.n_columns != expected or own.categorical != schema.categorical or (own.names or names) != names:
        raise ValueError(
            f"The teacher was fitted to {expected} columns, categorical those at {list(schema.categorical)}; X has "
            f"{table.n_columns}, and {list(own.categorical)}. Pass the columns of the teacher, in its order."
        )
    if own.categories == schema.categories:
        return Table(table.values, schema)
    values = table.values.copy()
    for j, codes in zip(schema.categorical, table.codes.T, strict=True):
        if j in schema.categories and j in own.categories:
            code = {category: float(k) for k, category in enumerate(schema.categories[j])}
            values[:, j] = np.array([code.get(category, np.nan) for category in own.categories[j]] + [np.nan])[codes]
    return Table(values, schema)


@dataclass(frozen=True, eq=False)
class Lesson:
    """What labels imply for the rows of one table.

    Attributes
    ----------
    targets : ndarray of shape (N,) or (N, K), or None
        Targets q of all rows; those of labelled rows are their labels. None for rules without targets.
    teacher : Teacher or None
        The same for any other rows.
    propagation : Propagation or None
        The operator; None where a fitted teacher was given, or the forest teaches alone.
    refinement : Refinement or None
        How the graph was refined; None for other graphs.
    unreachable : ndarray of int
        Rows that no label reaches on the graph, and no other expert teaches.
    seconds : dict of str to float
        Time of each stage.
    """

    targets: NDArray[np.float64] | None = None
    teacher: Teacher | None = None
    propagation: Propagation | None = None
    refinement: Refinement | None = None
    unreachable: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    seconds: dict[str, float] = field(default_factory=dict)


def teach(
    prepared: PreparedGraph,
    labels: Labels,
    committee: Committee,
    propagation: PropagationSpec,
    *,
    random_state: int = 0,
) -> Lesson:
    """Fit a teacher and let it predict the targets of all rows.

    Parameters
    ----------
    prepared : PreparedGraph
        Graph and rows.
    labels : Labels
        The labels.
    committee : Committee
        The experts.
    propagation : PropagationSpec
        The operator of the graph.
    random_state : int, default=0
        Seed of all trees.
    """
    with one_thread_of_blas():
        return _taught(prepared, labels, committee, propagation, random_state)


def _taught(
    prepared: PreparedGraph, labels: Labels, committee: Committee, propagation: PropagationSpec, random_state: int
) -> Lesson:
    seconds: dict[str, float] = {}
    if prepared.table is None and not committee.has_graph:
        raise ValueError("Experts other than 'graph' learn from the columns of X: pass X, or let 'graph' take part.")
    with timed(seconds, "graph expert"):
        found = spread(prepared, labels, propagation, random_state=random_state)
        graph, of_graph = found.expert(labels)
    taught: list[tuple[Expert, NDArray[np.float64]]] = [(graph, of_graph)]
    # Labels are held out of the smooth operator alone, and without unlabelled rows there is nothing to weigh.
    weighed = isinstance(found.operator, SmoothPropagation) and labels.labeled.size < found.operator.n_rows
    if prepared.table is not None and (weighed or not committee.has_graph):
        of_graph[~found.operator.reachable] = np.nan
        taught = taught if committee.has_graph else []
        for one in committee.experts:
            if not _is_graph(one):
                fit = partial(_fitted, one, prepared.table, prepared, labels, random_state)
                with timed(seconds, one if isinstance(one, str) else check_estimator(one)):
                    # An estimator of the user may be changed between two fits.
                    taught += [once(prepared, labels, (one, random_state), fit) if isinstance(one, str) else fit()]
    experts, predicted = (list(part) for part in zip(*taught, strict=True))
    schema = None if prepared.table is None else prepared.table.schema
    with timed(seconds, "weights"):
        held_out = {name: one.held_out for name, one in zip(_names(experts), experts, strict=True)}
        evidence = weigh(held_out, labels.targets, labels.loss, sharpen=committee.sharpen)
        shares = class_shares(committee.class_prior, prepared.table, labels)
        teacher = Teacher(tuple(experts), labels, schema, graph.unknown, evidence)
        if shares is not None:
            evidence = replace(evidence, class_shares=tuple(shares.tolist()))
            teacher = replace(teacher, evidence=evidence, prior_ratio=ratio_to_labels(shares, labels))
        q = teacher.mix(predicted)
        q[labels.labeled] = labels.targets
    unreachable = np.flatnonzero(~found.operator.reachable) if experts == [graph] else np.empty(0, dtype=np.intp)
    return Lesson(q, teacher, found.operator, found.refinement, unreachable, seconds)


def _is_graph(expert: Any) -> bool:
    return isinstance(expert, str) and expert == "graph"


def _names(experts: Sequence[Expert]) -> list[str]:
    """Return a name for each expert; experts of one class are numbered."""
    names = [one.name for one in experts]
    return [f"{name} {names[: i + 1].count(name)}" if names.count(name) > 1 else name for i, name in enumerate(names)]


def _fitted(
    expert: Any, table: Table, prepared: PreparedGraph, labels: Labels, random_state: int
) -> tuple[Expert, NDArray[np.float64]]:
    """Fit an expert on the labelled rows, and return it with its predictions of all rows."""
    settings: dict[str, Any] = {"n_jobs": prepared.n_jobs, "verbose": prepared.verbose}
    if isinstance(expert, str) and expert == "forest":
        points = prepared.components
        space = None if points is None else prepared.space
        forest = ForestExpert.fit(table, labels, space=space, points=points, random_state=random_state, **settings)
        return forest, forest.predict(table, points, **settings)
    if isinstance(expert, str):
        linear = LinearExpert.fit(table, labels, random_state=random_state)
        return linear, linear.predict(table, **settings)
    other = EstimatorExpert.fit(expert, check_estimator(expert), table, labels)
    return other, other.predict(table, **settings)
