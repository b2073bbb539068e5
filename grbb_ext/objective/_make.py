"""The door: arguments checked, graph built, objective made."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from grbb_ext.graph import Method, Weights, check_graph, knn_graph
from grbb_ext.labels import ClassWeight, LossName, check_sample_weight, read_labels
from grbb_ext.objective._objective import GRBBObjective
from grbb_ext.objective._settings import Hessian, RuleName, Settings, choose_graph, choose_rule
from grbb_ext.propagation import Propagation, PropagationKind
from grbb_ext.table import Scale, read_columns
from grbb_ext.teacher import RefinedGraph, RefinementBasis, make_basis


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
    guard: bool = True,
    random_state: int = 0,
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
    graph : {"knn", "refined"}, RefinedGraph, or sparse matrix or array-like of shape (N, N), default=None
        ``"knn"`` builds :func:`knn_graph`. ``"refined"`` ranks the neighbours again by trees that are fitted to the
        propagated labels, see :class:`RefinedGraph`: it finds the columns that matter, and takes categories and
        missing values as trees do. A matrix is a ready affinity, symmetric and non-negative. None is ``"refined"`` for
        ``rule="targets"`` and ``"knn"`` for the others.
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
    guard : bool, default=True
        Let a forest on the labelled rows speak beside the graph, each with the weight that the labels give it, so that
        unlabelled rows do no harm where neighbours say nothing (see :func:`grbb_ext.teacher.weigh`). It needs X, and
        works for ``rule="targets"`` with ``propagation="smooth"``; elsewhere the graph alone decides.
    random_state : int, default=0
        Seed of the trees of ``graph="refined"`` and of the guard.
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
    rule, propagation, hessian = choose_rule(preset, rule, propagation, hessian)
    settings = Settings(
        rule=rule,
        propagation=propagation,
        hessian=hessian,
        loss=loss,
        unlabeled=unlabeled,
        class_weight=class_weight,
        lam=lam,
        correction=correction,
        sharpen=sharpen,
        hard=hard,
        guard=guard,
        random_state=random_state,
        solver_settings={
            "solver": solver,
            "tol": tol,
            "memory_limit": memory_limit,
            "n_jobs": n_jobs,
            "verbose": verbose,
        },
    )
    settings.check()
    # Wrong labels and weights are found before the graph, which may take minutes, is built.
    labels = read_labels(y, loss, classes, unlabeled)
    if graph is None and labels.labeled.size == labels.n_rows:
        graph = "knn"  # no row is told anything by its neighbours, so there is nothing to refine for
    graph = choose_graph(graph, preset, rule)
    if isinstance(graph, RefinedGraph) and (rule != "targets" or propagation != "smooth"):
        # Rows that hang on nodes have no edges of their own, which the other operators and rules need.
        graph = replace(graph, max_nodes=None)
    sample_weight = check_sample_weight(sample_weight, labels.n_rows)
    if X is not None:
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if n_rows != labels.n_rows:
            raise ValueError(f"X has {n_rows} rows but y has {labels.n_rows}: they must match, row by row.")
    W: sp.csr_array | RefinementBasis | None
    search: dict[str, Any] = {
        "n_neighbors": n_neighbors,
        "weights": weights or ("binary" if preset == "paper" else "self-tuning"),
        "metric": metric,
        "method": method,
        "scale": scale,
        "n_jobs": n_jobs,
        "verbose": verbose,
    }
    if isinstance(graph, RefinementBasis):  # an estimator has searched the neighbours already
        W = graph
    elif not isinstance(graph, str | RefinedGraph):
        W = check_graph(graph, labels.n_rows)
    elif rule == "labeled" and lam == 0:
        W = None
    elif X is None:
        raise ValueError("Pass X, or a ready affinity as graph=.")
    elif isinstance(graph, RefinedGraph):
        W = make_basis(X, graph, random_state=random_state, **search)
    else:
        W = knn_graph(X, **search)
    columns = None
    if X is not None and guard and rule == "targets":
        columns = W.columns if isinstance(W, RefinementBasis) else read_columns(X)
    return GRBBObjective(np.asarray(y), labels, W, settings, sample_weight, columns)
