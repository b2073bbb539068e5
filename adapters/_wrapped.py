"""What the adapters of both libraries share: types of estimators, losses, weights of classes, metrics, and costs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone

from grbb_ext.costs import FeatureCosts, Ledger, stop_reason
from grbb_ext.estimators import BoosterAdapter, Job, Task
from grbb_ext.evaluation import Evaluation, Metric, evaluate
from grbb_ext.labels import Labels, is_unlabeled
from grbb_ext.model_selection import folds_of_model
from grbb_ext.objective import GRBBObjective
from grbb_ext.table import Table

_LOG = logging.getLogger("grbb_ext")

#: Rounds without a split after which training with costs ends although rows or columns are sampled.
PATIENCE = 10


def check_costs(costs: Any) -> None:
    """Refuse what is no FeatureCosts."""
    if not isinstance(costs, FeatureCosts):
        raise TypeError(f"costs must be FeatureCosts, got {type(costs).__name__}. Use FeatureCosts(...).")


def check_objective(obj: Any, name: str = "obj") -> None:
    """Refuse what grbb_objective did not make."""
    if not isinstance(obj, GRBBObjective):
        raise TypeError(f"{name} must be what grbb_objective returned, got {obj!r}.")


def end_for_costs(ledger: Ledger, mu: float, n_rounds: int, *, quiet: bool) -> None:
    """Note in the ledger why training ends, and log it once."""
    ledger.stop_reason = stop_reason(ledger, mu, n_rounds)
    _LOG.log(logging.INFO if quiet else logging.WARNING, ledger.stop_reason)


def booster_rows(table: Table) -> Any:
    """Return the values of a table in a form that both libraries take: they have no sparse arrays yet."""
    return sp.csr_matrix(table.values) if sp.issparse(table.values) else table.values


class WrappedBooster(BoosterAdapter, Protocol):
    """The part of an adapter that is the same for both libraries."""

    #: The wrapped class for each task.
    of_task: ClassVar[Mapping[Task, type]]
    #: Settings of the booster where the user wraps none: trees that differ add up to a smoother function, which is
    #: nearer to the teacher's.
    student: ClassVar[Mapping[str, Any]]
    #: Values of ``objective`` that are the losses of grbb_ext.
    losses: ClassVar[Mapping[Task, tuple[str | None, ...]]]

    def check_type(self, estimator: Any, task: Task) -> None:
        """Refuse estimators for other tasks and for clusters."""
        wanted = self.of_task[task]
        on_cluster = any(cls.__module__.startswith(f"{self.library}.dask") for cls in type(estimator).__mro__)
        if not isinstance(estimator, wanted) or on_cluster:
            raise TypeError(f"estimator must be {wanted.__name__} for {task}, got {type(estimator).__name__}.")

    def clone(self, estimator: Any, task: Task, *, costs: bool) -> Any:
        """Return an unfitted copy of an estimator; None is one that suits a student, or the library's with `costs`."""
        # Chance would decide which columns are looked at, and so which are bought.
        return self.of_task[task](**({} if costs else self.student)) if estimator is None else clone(estimator)

    def class_weight(self, estimator: Any, own: Any, labels: Labels) -> Any:
        """Return the weights of the classes: `own`, or those among the estimator's parameters."""
        given, classes = self.given_weights(estimator), [] if labels.classes is None else labels.classes.tolist()
        for name in ("is_unbalance", "scale_pos_weight"):
            value = given.get(name)
            if value is not None and len(classes) != 2:
                raise ValueError(f"{name}={value!r} is for two classes, and y has {len(classes)}. Use class_weight=.")
            if value is not None:
                given[name] = unbalance_weight(labels) if name == "is_unbalance" else {classes[1]: float(value)}
        return choose(own, given)

    def given_weights(self, estimator: Any) -> dict[str, Any]:
        """Return the estimator's parameters that weigh classes, None where they do not."""

    def check_loss(self, job: Job, objective: Any, num_class: Any) -> None:
        """Refuse losses that are not ours, weights of classes where there are none, and other numbers of classes."""
        if callable(objective) or objective not in self.losses[job.task]:
            raise ValueError(
                f"objective={objective!r} of the wrapped estimator cannot be kept: the loss is "
                f"{'the squared error' if job.task == 'regression' else 'logistic or softmax'}, and unlabelled "
                "rows have targets instead of labels. Leave objective at its default."
            )
        for name, value in self.given_weights(job.estimator).items():
            if job.task == "regression" and value is not None:
                raise ValueError(
                    f"{name}={value!r} of the wrapped estimator is for classes. Use sample_weight for a regression."
                )
        n_classes = 1 if job.obj.classes_ is None else len(job.obj.classes_)
        if num_class is not None and int(num_class) not in (0, n_classes):
            raise ValueError(
                f"num_class={num_class!r} of the wrapped estimator does not fit y. Leave it out; classes= names "
                "classes that have no label."
            )


def watch(
    job: Job, data: list[Any], metrics: list[Metric], patience: tuple[str, int | None], *, dart: bool
) -> Callable[[NDArray[Any], Any], list[Evaluation]]:
    """Return a metric of the library that scores the evaluation sets of a training.

    Parameters
    ----------
    job : Job
        The training.
    data : list
        The library's data set of each evaluation set.
    metrics : list
        What to compute.
    patience : tuple of (str, int or None)
        Parameter of early stopping, for messages, and its value.
    dart : bool
        Whether later rounds change earlier trees.
    """
    if patience[1] is not None and not data:
        raise ValueError(
            f"{patience[0]}={patience[1]} needs rows to watch: pass eval_set=[(X, y)] to fit. To train for a fixed "
            "number of rounds, use model.without_early_stopping()."
        )
    if patience[1] is not None and dart:
        raise ValueError(
            f"{patience[0]}={patience[1]} does not go with dart: later rounds change the trees of the best one. Use "
            "another booster, or model.without_early_stopping() to train for a fixed number of rounds."
        )

    def score(raw_scores: NDArray[Any], data_set: Any) -> list[Evaluation]:
        y = next(y for one, (_, y) in zip(data, job.evaluation, strict=True) if one is data_set)
        return [evaluate(job.obj, raw_scores, y, metric) for metric in metrics]

    return score


def labels_of(data: Any, obj: GRBBObjective) -> NDArray[Any]:
    """Return the labels of a data set: the classes themselves where it holds positions, since it cannot hold text."""
    label = np.asarray(data.get_label())
    if obj.classes_ is None or obj.classes_.dtype.kind in "biuf":
        return label
    known = ~(is_unlabeled(label) | is_unlabeled(label, obj.unlabeled_))
    if not np.isin(label[known], np.arange(obj.classes_.size)).all():
        raise ValueError(
            f"The labels of an evaluation set must be positions in obj.classes_, {obj.classes_.tolist()}, and -1 where "
            f"there is none; got {np.unique(label[known])[:5].tolist()}."
        )
    named = np.full(label.size, None, dtype=object)
    named[known] = obj.classes_[label[known].astype(np.intp)]
    return named


def unbalance_weight(labels: Labels) -> dict[Any, float]:
    """Turn LightGBM's ``is_unbalance`` into the weight of the rarer class: the ratio of the labelled counts.

    Examples
    --------
    >>> from grbb_ext.labels import read_labels
    >>> unbalance_weight(read_labels([0, 0, 0, 1, -1], "auto", None, -1))
    {1: 3.0}
    """
    assert labels.classes is not None
    n_positive = float(np.sum(labels.targets))
    n_negative = labels.targets.size - n_positive
    if min(n_positive, n_negative) == 0:
        raise ValueError("is_unbalance needs a labelled row of each class. Use class_weight= with numbers.")
    rare = 0 if n_positive > n_negative else 1
    return {labels.classes.tolist()[rare]: max(n_positive, n_negative) / min(n_positive, n_negative)}


def choose(own: Any, of_booster: dict[str, Any]) -> Any:
    """Return the one weight of classes that was given, or refuse several.

    Parameters
    ----------
    own : "balanced", dict or None
        The ``class_weight`` of the GRBB estimator.
    of_booster : dict
        What the wrapped estimator was given, by parameter.
    """
    given = {name: weight for name, weight in of_booster.items() if weight is not None}
    if own is not None and given:
        raise ValueError(
            f"class_weight of the GRBB estimator and {' and '.join(given)} of the wrapped one weigh the same classes. "
            f"Leave {' and '.join(given)} out."
        )
    if len(given) > 1:
        raise ValueError(f"{' and '.join(given)} of the wrapped estimator weigh the same classes. Keep one.")
    return own if own is not None else next(iter(given.values()), None)


class Folds:
    """An objective of all rows, cut to the folds of a cross-validation of the library.

    Parameters
    ----------
    obj : GRBBObjective
        Of all rows.
    n_rows : int
        Rows of the data set.
    folds : int or splitter
        A number of folds, a splitter of scikit-learn, or SemiSupervisedSplit.
    groups : array-like of shape (N,) or None
        Groups that must not be on both sides.
    metric : str, callable or list of these
        What to compute on the labelled rows.
    """

    def __init__(self, obj: GRBBObjective, n_rows: int, folds: Any, groups: Any, metric: Any) -> None:
        if n_rows != obj.n_rows_:
            raise ValueError(
                f"The data set has {n_rows} rows and the objective {obj.n_rows_}. Make both of the same rows."
            )
        classes = obj.classes_ is not None
        split = folds_of_model(folds, obj.unlabeled_ if classes else np.nan, classes=classes)
        self.obj, self._y = obj, obj.y_
        self.metrics: list[Metric] = metric if isinstance(metric, list) else [metric]
        self.rows = [(train, np.sort(test)) for train, test in split.split(None, self._y, groups)]
        self._next = iter(self.rows)
        self._parts: list[tuple[Any, NDArray[Any], GRBBObjective | None]] = []

    def prepare(self, train_set: Any, test_set: Any, params: Any) -> tuple[Any, Any, Any]:
        """Note which data sets are those of the next fold; the libraries call it ``fpreproc``."""
        train, test = next(self._next)
        self._parts += [(train_set, self._y[train], self.obj.subset(train)), (test_set, self._y[test], None)]
        return train_set, test_set, params

    def gradients(self, raw_scores: NDArray[Any], data: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return gradient and hessian of the training rows of a fold."""
        part = next(obj for one, _, obj in self._parts if one is data)
        assert part is not None
        return part(raw_scores, data)

    def score(self, raw_scores: NDArray[Any], data: Any) -> list[Evaluation]:
        """Score the labelled rows of a data set."""
        y = next(y for one, y, _ in self._parts if one is data)
        return [evaluate(self.obj, raw_scores, y, metric) for metric in self.metrics]


def refuse_keywords(keywords: Mapping[str, Any], *ours: str) -> None:
    """Refuse keywords of the library's ``cv`` that the folds of labelled rows replace."""
    for name in set(ours) & set(keywords):
        raise TypeError(f"{name}= is not for semi-supervised folds. Use folds=, groups= and metric=.")


def _named(metric: Metric, names: str) -> dict[str, Metric]:
    return dict.fromkeys(names.split(), metric)


_CLASSIFICATION: dict[str, Metric] = {
    **_named("loss", "loss logloss mlogloss binary_logloss binary multi_logloss multiclass softmax"),
    **_named("error", "error merror binary_error multi_error"),
    **{name: name for name in ("accuracy", "auc", "aucpr", "average_precision")},
}
_REGRESSION: dict[str, Metric] = {
    "loss": "loss",
    **_named("mse", "mse l2 mean_squared_error regression"),
    **_named("rmse", "rmse root_mean_squared_error l2_root"),
}


def read_metrics(asked: Any, obj: GRBBObjective, parameter: str) -> list[Metric]:
    """Return the metrics to compute on labelled rows.

    Parameters
    ----------
    asked : str, callable, list of these, or None
        The wrapped estimator's parameter. Built-in metrics of the libraries would count unlabelled rows and do not
        know the raw scores of a custom objective, so each is computed here.
    obj : GRBBObjective
        The objective.
    parameter : str
        Name of the parameter, for messages.

    Examples
    --------
    >>> from grbb_ext import grbb_objective
    >>> obj = grbb_objective(None, [0, 1, -1], rule="labeled")
    >>> read_metrics(None, obj, "eval_metric"), read_metrics(["auc", "merror"], obj, "eval_metric")
    (['loss'], ['auc', 'error'])
    """
    if asked is None or asked == "":
        return ["loss"]
    if isinstance(asked, str):
        asked = asked.split(",")
    listed = asked if isinstance(asked, (list, tuple, set)) else [asked]
    known = _REGRESSION if obj.classes_ is None else _CLASSIFICATION
    metrics: list[Metric] = []
    for entry in listed:
        if callable(entry):
            metrics.append(entry)
        elif isinstance(entry, str) and entry.strip() in known:
            metrics.append(known[entry.strip()])
        else:
            raise ValueError(
                f"{parameter}={entry!r} cannot be computed on the labelled rows of eval_set. Use one of "
                f"{sorted(known)}, or a function of (y, prediction)."
            )
    return metrics
