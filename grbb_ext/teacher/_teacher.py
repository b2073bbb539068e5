"""The teacher: experts on the same labels, averaged with the weights that held-out labels give them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grbb_ext._checks import finite_number
from grbb_ext._progress import in_threads, row_blocks
from grbb_ext._spec import Spec
from grbb_ext.graph import PreparedGraph, RefinedGraph
from grbb_ext.labels import Labels
from grbb_ext.propagation import Propagation, PropagationSpec, Smooth, SmoothPropagation
from grbb_ext.table import Schema, Table, read_table
from grbb_ext.teacher._evidence import Evidence, smoothness, weigh
from grbb_ext.teacher._forest import ForestExpert
from grbb_ext.teacher._graph import GraphExpert, Refinement, nodes_of, refine
from grbb_ext.teacher._targets import centered_labels, finish_targets, sharpened

_EXPERTS = ("graph", "forest")


@dataclass(frozen=True)
class Committee(Spec):
    r"""Ask for a teacher: ``grbb_objective(X, y, teacher=Committee(sharpen=1))``.

    ``teacher="committee"`` is short for ``teacher=Committee()``, ``teacher="graph"`` for the graph alone and
    ``teacher="forest"`` for the forest alone.

    Parameters
    ----------
    experts : tuple of {"graph", "forest"}, default=("graph", "forest")
        ``"graph"``: labels propagated on the graph. ``"forest"``: extremely randomised trees on the labelled rows. Two
        experts are averaged; their weights come from held-out labels (:func:`grbb_ext.teacher.weigh`). The forest
        needs X. It takes part with ``propagation="smooth"`` and two labels or more; elsewhere the graph alone decides.
    sharpen : float, default=3
        Power s by which each expert's probabilities are sharpened, :math:`q_k^s / \sum_j q_j^s`; 1 leaves them alone.
    """

    experts: tuple[str, ...] = _EXPERTS
    sharpen: float = 3.0

    def __post_init__(self) -> None:
        if not self.experts or not set(self.experts) <= set(_EXPERTS) or len(set(self.experts)) < len(self.experts):
            raise ValueError(f"experts must be some of {_EXPERTS}, each once, got {self.experts!r}.")
        finite_number(self.sharpen, "sharpen", least=1.0)


#: Short forms of ``teacher=``.
TEACHERS: dict[str, Committee] = {
    "committee": Committee(),
    "graph": Committee(experts=("graph",)),
    "forest": Committee(experts=("forest",)),
}


@dataclass(frozen=True, eq=False)
class Teacher:
    """A fitted teacher: it predicts targets for any block of rows, on any machine.

    ``obj.teacher_`` of :func:`grbb_ext.grbb_objective` is one, and ``grbb_objective(X, y, teacher=obj.teacher_)`` uses
    it for other rows. It is small (the nodes of the graph, at most 30,000 by default, and trees), does not change, and
    pickles. A row that is a node of the graph gets the answer of the operator itself; any other row the weighted mean
    of the nodes that would be its neighbours. Labels of labelled rows are not put in: the objective does that.

    Attributes
    ----------
    experts : tuple
        The fitted experts.
    weights : tuple of float
        Their weights.
    labels : Labels
        Loss and classes.
    schema : Schema or None
        The columns; None where a graph was given without rows.
    sharpen : float
        Power by which probabilities are sharpened.
    evidence : Evidence or None
        What the weights rest on; None for a single expert.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from grbb_ext import grbb_objective
    >>> X, truth = make_moons(300, noise=0.05, random_state=0)
    >>> y = np.where(np.arange(200) < 10, truth[:200], -1)
    >>> teacher = grbb_objective(X[:200], y).teacher_
    >>> float(np.mean((teacher.predict(X[200:]) > 0.5) == truth[200:]))
    1.0
    """

    experts: tuple[GraphExpert | ForestExpert, ...]
    weights: tuple[float, ...]
    labels: Labels
    schema: Schema | None
    sharpen: float
    evidence: Evidence | None = None

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

        blocks = in_threads(block_of, row_blocks(table.n_rows), n_jobs=n_jobs, description="targets", verbose=verbose)
        return np.concatenate(blocks)

    def mix(self, predicted: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Sharpen the predictions of the experts, in their order, and average them."""
        if self.labels.classes is not None:
            predicted = [sharpened(one, self.sharpen) for one in predicted]
        return np.asarray(sum(weight * one for weight, one in zip(self.weights, predicted, strict=True)))

    def __repr__(self) -> str:
        listed = ", ".join(
            f"{expert.name} {weight:.2f}" for expert, weight in zip(self.experts, self.weights, strict=True)
        )
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
    values = table.values
    for j in schema.categorical:
        theirs, mine = schema.categories.get(j), own.categories.get(j)
        if theirs is None or mine is None or mine == theirs:
            continue
        values = values.copy() if values is table.values else values
        code = {category: float(k) for k, category in enumerate(theirs)}
        codes = np.array([code.get(category, np.nan) for category in mine] + [np.nan])
        values[:, j] = codes[np.where(np.isnan(values[:, j]), -1, values[:, j]).astype(np.intp)]
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
    """

    targets: NDArray[np.float64] | None = None
    teacher: Teacher | None = None
    propagation: Propagation | None = None
    refinement: Refinement | None = None

    @property
    def unreachable(self) -> NDArray[np.intp]:
        """The rows that no label reaches; none where there is no operator."""
        return np.flatnonzero([] if self.propagation is None else ~self.propagation.reachable)


def spread(
    prepared: PreparedGraph, labels: Labels, propagation: PropagationSpec, *, random_state: int = 0
) -> tuple[Propagation, Refinement | None]:
    """Make the operator on a graph, refined where it was asked for.

    Parameters
    ----------
    prepared : PreparedGraph
        The graph.
    labels : Labels
        The labels.
    propagation : PropagationSpec
        The operator.
    random_state : int, default=0
        Seed of the trees of a refined graph.
    """
    W, refinement = prepared.W, None
    if isinstance(prepared.spec, RefinedGraph):
        smooth = propagation if isinstance(propagation, Smooth) else Smooth()
        refinement = refine(prepared, labels, smooth, random_state=random_state)
        W = refinement.graph
        if smooth is propagation:
            return refinement.propagation, refinement
    assert W is not None
    return propagation.operator(W, labels.labeled, n_jobs=prepared.n_jobs, verbose=prepared.verbose), refinement


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
    operator, refinement = spread(prepared, labels, propagation, random_state=random_state)
    graph, of_graph = _graph_expert(prepared, labels, operator, refinement)
    experts: tuple[GraphExpert | ForestExpert, ...] = (graph,)
    predicted, evidence = [of_graph], None
    # A single label cannot be predicted from others, and without unlabelled rows there is nothing to weigh.
    useful = prepared.table is not None and graph.held_out is not None and operator.free.size > 0
    if "forest" in committee.experts and useful:
        forest, of_forest = _forest_expert(prepared, labels, random_state)
        experts, predicted = (forest,), [of_forest]
        if "graph" in committee.experts:
            experts, predicted = (graph, forest), [of_graph, of_forest]
            plain = operator.W if refinement is None else refinement.plain
            assert graph.held_out is not None
            held_out = {"graph": graph.held_out, "forest": forest.held_out}
            evidence = weigh(held_out, labels.targets, labels.loss, smoothness(plain, of_forest))
            evidence.warn_if_doubtful()
    weights = (1.0,) if evidence is None else evidence.weight
    schema = None if prepared.table is None else prepared.table.schema
    teacher = Teacher(experts, weights, labels, schema, committee.sharpen, evidence)
    q = teacher.mix(predicted)
    q[labels.labeled] = labels.targets
    return Lesson(q, teacher, operator, refinement)


def _graph_expert(
    prepared: PreparedGraph, labels: Labels, operator: Propagation, refinement: Refinement | None
) -> tuple[GraphExpert, NDArray[np.float64]]:
    """Return the expert, and its predictions of all rows."""
    values, mean = centered_labels(labels.targets, labels.loss)
    known = None if refinement is None or refinement.propagation is not operator else refinement.extended
    extended = operator.extend(values) if known is None else known
    held_out = None
    if isinstance(operator, SmoothPropagation) and labels.labeled.size > 1:
        held_out = finish_targets(operator.leave_one_out(values), mean, labels.loss)
    nodes, on_nodes = nodes_of(prepared, operator), extended
    if refinement is not None:
        nodes, on_nodes = refinement.hung, extended[refinement.nodes]
    return GraphExpert(on_nodes, mean, labels, held_out, nodes), finish_targets(extended, mean, labels.loss)


def _forest_expert(
    prepared: PreparedGraph, labels: Labels, random_state: int
) -> tuple[ForestExpert, NDArray[np.float64]]:
    assert prepared.table is not None
    points = prepared.components
    space = None if points is None else prepared.space
    forest = ForestExpert.fit(prepared.table, labels, space=space, points=points, random_state=random_state)
    return forest, forest.predict(prepared.table, points, n_jobs=prepared.n_jobs, verbose=prepared.verbose)
