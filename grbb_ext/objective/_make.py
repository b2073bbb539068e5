"""From X, y and options to an objective: table, labels, graph, teacher or operator, and rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from grbb_ext._options import one_of, positive_int, read_spec
from grbb_ext._progress import n_threads, timed, warn_caller
from grbb_ext.graph import (
    GRAPHS,
    KNNGraph,
    PreparedGraph,
    RefinedGraph,
    SharedGraph,
    TableGraph,
    laplacian,
    prepare_graph,
)
from grbb_ext.labels import (
    ClassWeight,
    Labels,
    LossName,
    check_sample_weight,
    class_weights,
    mixed_weight,
    read_labels,
    warn_of_another_order,
)
from grbb_ext.objective._objective import GRBBObjective, UnreachableRowsWarning
from grbb_ext.propagation import PROPAGATIONS, PropagationSpec, Smooth
from grbb_ext.rules import (
    RULES,
    Corrected,
    DenseOperator,
    LabeledGradient,
    Laplacian,
    Paper,
    RuleParts,
    RuleSpec,
    Targets,
)
from grbb_ext.table import Table, read_table
from grbb_ext.teacher import TEACHERS, Committee, Lesson, Teacher, class_shares, sharpened, shifted, spread, teach

_LARGEST_SQUARED_WEIGHT = 1e15

# The paper joins nearest neighbours by edges of weight 1.
_GRAPHS = {**GRAPHS, "paper": KNNGraph(weights="binary")}


@dataclass(frozen=True)
class Recipe:
    """What does not depend on rows: the options of :func:`grbb_objective`, read and checked.

    Attributes
    ----------
    rule : RuleSpec
        The rule.
    propagation : PropagationSpec
        The operator.
    graph : KNNGraph, SharedGraph or matrix
        The graph.
    teacher : Committee or Teacher
        The teacher of ``rule="targets"``.
    class_weight : "balanced", dict or None
        Weights of the classes.
    random_state : int
        Seed of all trees.
    """

    rule: RuleSpec
    propagation: PropagationSpec
    graph: Any
    teacher: Committee | Teacher
    class_weight: ClassWeight = None
    random_state: int = 0

    @classmethod
    def read(
        cls,
        *,
        preset: Literal["paper"] | None = None,
        lam: float | None = None,
        class_weight: ClassWeight = None,
        random_state: int = 0,
        **asked: Any,
    ) -> Recipe:
        """Read names and specs, fill in what a rule implies, and refuse contradictions.

        Parameters
        ----------
        preset, lam, class_weight, random_state
            As in :func:`grbb_objective`.
        **asked
            What :meth:`parts` takes.

        Examples
        --------
        >>> recipe = Recipe.read(rule="paper")
        >>> recipe.propagation.kind, recipe.graph.weights
        ('harmonic', 'binary')
        """
        one_of(preset, ("paper", None), "preset")
        if preset == "paper":
            _refuse_beside_preset(asked)
            asked["rule"] = asked.get("rule") or "paper"
        rule, propagation, graph, teacher = cls.parts(**asked).values()
        if lam is not None:
            rule = rule.replace(lam=lam)
        if isinstance(rule, Laplacian) and rule.lam == 0:
            raise ValueError(
                "rule='laplacian' needs lam > 0: with lam=0 the unlabelled rows are ignored. Pass "
                "rule=Laplacian(lam=0.1)."
            )
        if isinstance(rule, Corrected) and rule.newton and not propagation.made.stochastic:
            raise ValueError(
                f"rule='corrected' propagates curvatures, which {propagation.kind!r} can turn negative. "
                "Use propagation='nonlocal' or 'harmonic', or rule=Corrected(hessian='unit')."
            )
        if asked.get("teacher") is not None and not isinstance(rule, Targets):
            raise ValueError(f"rule={rule.name!r} has no teacher: leave teacher out, or use rule='targets'.")
        if isinstance(teacher, Committee) and not (teacher.has_graph or isinstance(propagation, Smooth)):
            raise ValueError(
                f"propagation={propagation.kind!r} is for the graph, which is none of the experts. Leave it out, or "
                "add 'graph' to them."
            )
        if rule.propagation is None and isinstance(graph, RefinedGraph):
            raise ValueError(f"rule={rule.name!r} propagates nothing, so no graph can be refined: use graph='knn'.")
        seed = positive_int(random_state, "random_state", least=0)
        recipe = cls(rule, propagation, graph, teacher, class_weight, seed)
        if isinstance(graph, TableGraph) and recipe.needs_every_row:
            return replace(recipe, graph=graph.replace(max_nodes=None))
        return recipe

    @staticmethod
    def parts(*, graph: Any = None, teacher: Any = None, propagation: Any = None, rule: Any = None) -> dict[str, Any]:
        """Return what the options stand for, by name, whether or not they go together.

        Examples
        --------
        >>> Recipe.parts(rule="paper")["graph"].weights, Recipe.parts(rule="laplacian")["rule"]
        ('binary', Laplacian(lam=0.0))
        """
        spec = read_spec("targets" if rule is None else rule, RULES, RuleSpec, "rule")
        asked = propagation if propagation is not None else spec.propagation or "harmonic"
        operator = read_spec(asked, PROPAGATIONS, PropagationSpec, "propagation")
        if isinstance(teacher, list | tuple):
            teacher = Committee(experts=tuple(teacher))
        if not isinstance(teacher, Teacher):
            asked = "committee" if teacher is None else teacher
            teacher = read_spec(asked, TEACHERS, Committee, "teacher", " or a fitted Teacher")
        if graph is None or (isinstance(spec, Paper) and isinstance(graph, str) and graph == "knn"):
            graph = spec.graph
        if isinstance(graph, str):
            if graph not in _GRAPHS:
                raise ValueError(f"graph must be 'table', 'knn', 'refined', a KNNGraph or an affinity, got {graph!r}.")
            graph = _GRAPHS[graph]
        return {"rule": spec, "propagation": operator, "graph": graph, "teacher": teacher}

    @property
    def needs_every_row(self) -> bool:
        """Whether every row has to be a node: rows that hang on nodes have no edges of their own."""
        spreads = isinstance(self.propagation, Smooth) and not isinstance(self.teacher, Teacher)
        return not (isinstance(self.rule, Targets) and spreads)

    @property
    def needs_graph(self) -> bool:
        """Whether a graph is looked at: not by a fitted teacher, nor by labelled rows alone."""
        return self.rule.needs_graph and not (isinstance(self.teacher, Teacher) and self.rule.lam == 0)

    def check(self, labels: Labels) -> None:
        """Refuse weights and shares of classes that y does not have."""
        class_weights(self.class_weight, labels)
        shares = getattr(self.teacher, "class_prior", None)
        if shares is not None and not isinstance(shares, str):
            class_shares(shares, None, labels)


def _refuse_beside_preset(asked: Mapping[str, Any]) -> None:
    for name, meant in {"rule": "paper", "propagation": "harmonic", "graph": "knn"}.items():
        value = asked.get(name)
        also = {"rule": isinstance(value, Paper), "graph": not isinstance(value, str | TableGraph)}
        if not (value is None or also.get(name) or (isinstance(value, str) and value == meant)):
            raise ValueError(f"preset='paper' means {name}={meant!r}, got {value!r}. Leave one of them out.")


def grbb_objective(
    X: Any,
    y: Any,
    *,
    graph: Any = None,
    teacher: Any = None,
    propagation: Any = None,
    rule: Any = None,
    preset: Literal["paper"] | None = None,
    loss: LossName = "auto",
    classes: ArrayLike | None = None,
    unlabeled: Any = -1,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight = None,
    lam: float | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    verbose: bool = True,
) -> GRBBObjective:
    """Make the objective that trains a stock booster on labelled and unlabelled rows.

    Pass it as ``obj=`` to ``xgboost.train``, with ``"objective": "binary:logistic", "base_score": 0.5`` in the
    parameters so that the model predicts probabilities (several classes: ``"multi:softprob"`` and 0; regression:
    ``"reg:squarederror"`` and 0), or as ``params["objective"]`` to ``lightgbm.train``. The data set has all N rows in
    the order of y; with ``label=y`` a different order raises an error. For more than two classes also set
    ``num_class`` to ``obj.n_outputs_``.

    Parameters
    ----------
    X : array-like, sparse matrix or frame of shape (N, d), or None
        All rows; None where `graph` is given.
    y : array-like of shape (N,)
        Labels in any row order. `unlabeled`, NaN or None marks a row without one.
    graph : {"table", "knn", "refined"}, KNNGraph, SharedGraph, or sparse matrix or array-like of shape (N, N)
        ``"knn"`` joins nearest neighbours, see :class:`KNNGraph`. ``"table"`` makes columns of all kinds comparable
        before, see :class:`TableGraph`. ``"refined"`` ranks the neighbours again by trees that are fitted to the
        propagated labels, see :class:`RefinedGraph`. A matrix is a ready affinity, symmetric and non-negative. None is
        ``"table"`` for ``rule="targets"`` and ``"knn"`` for the others, with the paper's binary weights for
        ``rule="paper"``.
    teacher : {"committee", "graph", "forest", "linear"}, list, Committee or Teacher, default="committee"
        Predicts the targets of ``rule="targets"``: the graph, a forest and a linear model, averaged with weights
        from held-out labels, or one of them alone. A list may also hold any classifier or regressor with
        scikit-learn's interface; :class:`Committee` has the options. A fitted :class:`Teacher`
        (``obj.teacher_``) predicts the targets of these rows from the labels that it was fitted to.
    propagation : {"smooth", "harmonic", "nonlocal", "poisson"} or PropagationSpec
        The operator. None is ``"smooth"`` for ``"targets"``, ``"nonlocal"`` for ``"corrected"`` and ``"harmonic"`` for
        ``"paper"``. Solver and tolerance are fields of the specs, e.g. ``Smooth(tau=0.1)``.
    rule : {"targets", "paper", "corrected", "laplacian", "labeled"} or RuleSpec, default="targets"
        The gradients, see :mod:`grbb_ext.rules`. ``"laplacian"`` (LapGBRT) and ``"labeled"`` (GBRT) are the
        paper's baselines. Further options are fields of the specs, e.g. ``Corrected(correction=0.5)``.
    preset : {"paper"} or None, default=None
        ``"paper"``: eq. 5-6 exactly, the same as ``rule="paper"``: harmonic propagation, hessian 1, binary weights.
    loss : {"auto", "logistic", "softmax", "squared_error"}, default="auto"
        ``"auto"`` is logistic for two classes and softmax for more. Regression needs ``"squared_error"``.
    classes : array-like or None, default=None
        All classes, where y may miss some. Labels of a single class raise an error without it, and a warning with it.
    unlabeled : object, default=-1
        The marker of unlabelled rows.
    sample_weight : array-like of shape (N,) or None, default=None
        Multiplies the loss of labelled rows and gradient and hessian of unlabelled ones. Boosters do not apply the
        weights of their data sets to a custom objective. The teacher learns from all labels alike, whatever their
        weight: a label that is not to count is marked as missing.
    class_weight : "balanced", dict or None, default=None
        Weights of the classes; ``"balanced"`` by the labelled counts.
    lam : float or None, default=None
        Adds lam (L H)_l to the labelled gradient (eq. 5); for ``"laplacian"`` lam L H to all rows. None is that of
        `rule`, 0 unless it is a spec.
    random_state : int, default=0
        Seed of all trees.
    n_jobs : int or None, default=None
        Threads; None takes all cores.
    verbose : bool, default=True
        Show progress bars for steps that take more than two seconds.

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
    recipe = Recipe.read(
        graph=graph,
        teacher=teacher,
        propagation=propagation,
        rule=rule,
        preset=preset,
        lam=lam,
        class_weight=class_weight,
        random_state=random_state,
    )
    # Wrong labels and weights are found before the graph, which may take minutes, is built.
    labels = read_labels(y, loss, classes, unlabeled)
    warn_of_another_order(X, y)
    warn_of_another_order(X, sample_weight, "sample_weight")
    weight = check_sample_weight(sample_weight, labels.n_rows)
    if weight is not None and not weight[labels.labeled].any():
        raise ValueError(
            "The sample weights of all labelled rows are zero, so there is nothing to learn from. Give some of them a "
            "weight above 0, or leave sample_weight out."
        )
    recipe.check(labels)
    n_threads(n_jobs)  # refuses what is no number of them
    seconds: dict[str, float] = {}
    with timed(seconds, "table"):
        table = None if X is None else read_table(X)
        if table is not None and table.n_rows != labels.n_rows:
            raise ValueError(f"X has {table.n_rows} rows but y has {labels.n_rows}: they must match, row by row.")
    if graph is None and labels.labeled.size == labels.n_rows and isinstance(recipe.graph, TableGraph):
        recipe = replace(recipe, graph=_GRAPHS["knn"])  # without unlabelled rows nothing is propagated
    prepared = PreparedGraph(labels.n_rows, table=table, n_jobs=n_jobs, verbose=verbose)
    if recipe.needs_graph or not isinstance(recipe.graph, KNNGraph | SharedGraph):
        # An estimator has read X already, and documents what becomes of missing values.
        warn = not isinstance(X, Table)
        with timed(seconds, "graph"):
            prepared = prepare_graph(
                recipe.graph, table, labels.n_rows, n_jobs=n_jobs, verbose=verbose, warn_missing=warn
            )
            if prepared.W is None and recipe.needs_every_row:  # of a SharedGraph that was made for other rules
                prepared = prepared.thinned(np.arange(labels.n_rows))
    return assemble(recipe, labels, weight, prepared, seconds)


def assemble(
    recipe: Recipe,
    labels: Labels,
    weight: NDArray[np.float64] | None,
    prepared: PreparedGraph,
    seconds: Mapping[str, float] | None = None,
) -> GRBBObjective:
    """Make the objective of some rows from what was prepared of them.

    Parameters
    ----------
    recipe : Recipe
        The options.
    labels : Labels
        The labels.
    weight : ndarray of shape (N,) or None
        Weights of the rows.
    prepared : PreparedGraph
        Rows and graph.
    seconds : mapping of str to float or None, default=None
        Time of the stages before.

    Returns
    -------
    GRBBObjective
    """
    lesson = _taught(recipe, labels, prepared)
    if lesson.unreachable.size:
        warn_caller(
            f"{lesson.unreachable.size} of {labels.n_rows} rows lie in a component of the graph without a label and "
            "get gradient 0 (obj.unreachable_ names them). Raise n_neighbors, or label a row of each component.",
            UnreachableRowsWarning,
        )
    timings = {**(seconds or {}), **lesson.seconds}
    with timed(timings, "gradients"):
        parts = _rule_parts(recipe, labels, weight, prepared, lesson)
    return GRBBObjective(recipe, labels, weight, prepared, lesson, parts, timings)


def _taught(recipe: Recipe, labels: Labels, prepared: PreparedGraph) -> Lesson:
    """Return the operator, and targets where the rule has any."""
    if isinstance(recipe.rule, Targets):
        if isinstance(recipe.teacher, Teacher):
            lesson = _taught_before(recipe.teacher, labels, prepared)
        else:
            lesson = teach(prepared, labels, recipe.teacher, recipe.propagation, random_state=recipe.random_state)
        if recipe.rule.hard and labels.classes is not None and lesson.targets is not None:
            q = sharpened(lesson.targets, 1.0, hard=True)
            q[labels.labeled] = labels.targets
            return replace(lesson, targets=q)
        return lesson
    if recipe.rule.propagation is None:
        return Lesson()
    seconds: dict[str, float] = {}
    with timed(seconds, "propagation"):
        found = spread(prepared, labels, recipe.propagation, random_state=recipe.random_state)
    unreachable = np.flatnonzero(~found.operator.reachable)
    return Lesson(None, None, found.operator, found.refinement, unreachable, seconds)


def _taught_before(teacher: Teacher, labels: Labels, prepared: PreparedGraph) -> Lesson:
    if prepared.table is None:
        raise ValueError("A fitted teacher predicts targets from the columns of X: pass X.")
    teacher.check_labels(labels)
    seconds: dict[str, float] = {}
    with timed(seconds, "targets"):
        q = teacher.predict(prepared.table, n_jobs=prepared.n_jobs, verbose=prepared.verbose)
    q[labels.labeled] = labels.targets
    return Lesson(q, teacher, seconds=seconds)


def _rule_parts(
    recipe: Recipe, labels: Labels, weight: NDArray[np.float64] | None, prepared: PreparedGraph, lesson: Lesson
) -> RuleParts:
    rule, rows, operator, q = recipe.rule, labels.labeled, lesson.propagation, lesson.targets
    of_class = class_weights(recipe.class_weight, labels)
    of_row = np.ones(labels.n_rows) if weight is None else weight.copy()  # it is the caller's
    weight_l = of_row[rows] * (1.0 if of_class is None else mixed_weight(labels.targets, of_class))
    labeled = LabeledGradient(labels.loss, labels.targets, weight_l, rows, np.arange(rows.size))
    L = laplacian(prepared.W if operator is None else operator.W) if rule.lam > 0 else None
    if L is not None and not isinstance(rule, Laplacian):
        labeled = replace(labeled, lam=rule.lam, L_l=sp.csr_array(L[rows]), degree=L.diagonal()[rows])
    if isinstance(rule, Targets):
        assert q is not None
        if of_class is not None:
            # The weighted loss, sum_k q_k w_k l(k), is that of targets in proportion to q_k w_k.
            of_row, q = of_row * mixed_weight(q, of_class), shifted(q, of_class)
        of_row[lesson.unreachable] = 0.0
        weights = None if (of_row == 1.0).all() else of_row.astype(np.float32)
        return RuleParts(labeled, targets=_frozen(q.astype(np.float32)), weights=weights)
    weights = None if weight is None else weight.astype(np.float32)
    parts = RuleParts(labeled, unreachable=lesson.unreachable, weights=weights)
    if operator is None:
        return parts
    if weight is not None and weight.max() > _LARGEST_SQUARED_WEIGHT:
        raise ValueError(
            f"sample_weight holds {weight.max():.3g}; rule={rule.name!r} multiplies weights of labelled and unlabelled "
            f"rows, which single precision takes up to {_LARGEST_SQUARED_WEIGHT:g}. Divide the weights by a constant."
        )
    if isinstance(rule, Laplacian):
        return replace(parts, L=sp.csr_array(sp.diags_array(operator.reachable.astype(np.float64)) @ L))
    return replace(parts, extend=DenseOperator(_frozen(operator.dense())))


def _frozen(array: NDArray[np.float32]) -> NDArray[np.float32]:
    array.setflags(write=False)
    return array
