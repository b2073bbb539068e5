"""What training is asked, what it needs and what it returns, and predictions with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import distributed
import numpy as np
from numpy.typing import ArrayLike, NDArray
from xgboost import Booster
from xgboost import dask as xgb_dask

from grbb_ext._options import one_of
from grbb_ext.adapters.dask._objective import WorkerObjective
from grbb_ext.adapters.dask._parts import Parts, Pieces, with_categories
from grbb_ext.labels import Labels, check_sample_weight
from grbb_ext.losses import class_probabilities
from grbb_ext.objective import Recipe
from grbb_ext.rules import Targets
from grbb_ext.table import Unseen
from grbb_ext.teacher import Teacher

# The attribute of an XGBoost model, in its file too, that names the classes.
_CLASSES = "grbb_ext_classes"


class Model(dict[str, Any]):
    """What training returns: a dict, as that of ``xgboost.dask.train``, that prints in one line.

    Examples
    --------
    >>> Model(booster=None, info={"n_rows": 9, "n_labeled": 2, "rule": "targets"}, classes=np.array(["no", "yes"]))
    Model(9 rows, 2 labelled, rule 'targets', classes ['no', 'yes'])
    """

    def __repr__(self) -> str:
        info, classes, teacher = self["info"], self["classes"], self.get("teacher")
        told = [f"{info['n_rows']} rows", f"{info['n_labeled']} labelled", f"rule {info['rule']!r}"]
        told += [] if classes is None else [f"classes {classes.tolist()}"]
        told += [] if teacher is None else [str(teacher)]
        return f"Model({', '.join(told)})"


@dataclass(frozen=True)
class Problem:
    """What training is asked, with X on the workers.

    Attributes
    ----------
    parts : Parts
        The partitions of X.
    y, sample_weight
        Labels and weights of the rows, as :meth:`Parts.align` takes them.
    recipe : Recipe
        The options of the objective, read.
    asked : mapping
        The same as they were given; no graph is ``"auto"``.
    row_ids
        Which row of an affinity each row of X is.
    folder : Path or None
        Where what an objective of ours needs of each row is kept; None is the workers' memory.
    classes, n_anchors
        As in :func:`grbb_ext.adapters.dask.train`.
    custom : bool, default=False
        Whether gradients have to come from an objective of ours.
    """

    parts: Parts
    y: Any
    recipe: Recipe
    asked: Mapping[str, Any]
    row_ids: Any
    folder: Path | None
    sample_weight: Any = None
    classes: Any = None
    n_anchors: int = 1000
    custom: bool = False

    @cached_property
    def ids(self) -> Pieces:
        """Ids of the rows: those in the affinity, if an operator is made on it, or the positions in X."""
        return self.parts.ids(None if isinstance(self.recipe.rule, Targets) else self.row_ids)

    @cached_property
    def weights(self) -> Pieces:
        """Weights of the rows; None in place of each piece where all rows weigh 1."""
        if self.sample_weight is None:
            return [None] * len(self.parts.pieces)
        weights = self.parts.align(self.sample_weight, "sample_weight")
        return self.parts.map(lambda weight: check_sample_weight(weight, weight.size), weights)


class Prepared(NamedTuple):
    """What a training needs.

    Attributes
    ----------
    parts : Parts
        The partitions of X.
    labels : Labels
        Of the labelled rows.
    objective : WorkerObjective or None
        For all workers; None where the loss of the booster does the same.
    data : dict
        Arguments of a DaskDMatrix: X, and labels and weights, or ids.
    info : dict
        Numbers for the user: see :func:`grbb_ext.adapters.dask.train`.
    teacher : Teacher or None
        Of ``rule="targets"``, as it was sent to the workers.
    """

    parts: Parts
    labels: Labels
    objective: WorkerObjective | None
    data: dict[str, Any]
    info: dict[str, Any]
    teacher: Teacher | None = None

    def model(self, result: Mapping[str, Any]) -> Model:
        """Return what training made of it."""
        return Model(
            **result,
            classes=self.labels.classes,
            teacher=self.teacher,
            evidence=None if self.teacher is None else self.teacher.evidence,
            schema=self.parts.schema,
            info=self.info,
        )


def name_classes(booster: Booster, classes: NDArray[Any] | None) -> None:
    """Write the classes into an XGBoost model, so that a file of it has them."""
    if classes is not None:
        booster.set_attr(**{_CLASSES: json.dumps(classes.tolist())})


def connected(client: distributed.Client | None) -> distributed.Client:
    """Return the client, or the one that is open where None was given, as ``xgboost.dask`` does."""
    try:
        client = distributed.default_client() if client is None else client
    except ValueError as error:
        raise ValueError("There is no cluster: open one with distributed.Client(), or pass a client.") from error
    if client.asynchronous:
        raise ValueError("train waits for its results: give it a client made without asynchronous=True.")
    return client


def predict(
    client: distributed.Client | None,
    model: Any,
    X: Any,
    *,
    kind: str = "class",
    classes: ArrayLike | None = None,
    **settings: Any,
) -> Any:
    """Predict rows on the workers.

    Parameters
    ----------
    client : distributed.Client or None
        The cluster; None takes the client that is open.
    model : Model, xgboost.Booster, lightgbm.Booster or Future
        What training returned, or its booster, as trained or loaded from a file.
    X : dask Array or DataFrame
        Rows.
    kind : {"class", "probability", "margin"}, default="class"
        Classes (values, for regression); probabilities, of shape (M, K); or raw scores.
    classes : array-like or None, default=None
        The classes, for a bare booster of LightGBM, whose file does not have them.
    **settings
        Passed to ``xgboost.dask.predict``; a Model knows its `missing`.

    Returns
    -------
    dask Array
        Lazy, like all of dask.
    """
    one_of(kind, ("margin", "probability", "class"), "kind")
    client = connected(client)
    booster = model["booster"] if isinstance(model, dict) else model
    unseen: Unseen = "error" if isinstance(booster, Booster) else "missing"
    known, regression = _classes(model, booster, classes)
    if isinstance(model, dict):
        X = with_categories(X, model["schema"], unseen)
        settings.setdefault("missing", model["schema"].missing)
    if hasattr(booster, "model_to_string"):
        margin = _lightgbm_margins(booster, X)
    else:
        margin = xgb_dask.predict(client, booster, X, **{"output_margin": True, **settings})
    margin = margin if hasattr(margin, "map_blocks") else margin.to_dask_array()
    if kind == "margin":
        return margin
    if hasattr(booster, "model_to_string") and "\naverage_output\n" in booster.model_to_string():
        # Raw scores of random forests are sums, of which LightGBM predicts with the mean.
        margin = margin / (booster.best_iteration if booster.best_iteration > 0 else booster.current_iteration())
    if kind == "class" and regression:
        return margin
    if regression:
        raise ValueError("kind='probability' is for classification.")
    n_classes = 2 if margin.ndim == 1 else margin.shape[1]
    if known is not None and len(known) != n_classes:
        raise ValueError(f"classes= has {len(known)} classes, but the model has {n_classes}: pass all, in order.")
    probability = margin.map_blocks(
        class_probabilities,
        new_axis=1 if margin.ndim == 1 else None,
        chunks=(margin.chunks[0], (n_classes,)),
        dtype=np.float64,
    )
    if kind == "probability":
        return probability
    if known is None:
        raise ValueError("This booster does not say what its classes are: pass classes=, or what training returned.")
    return probability.map_blocks(lambda p: known[p.argmax(axis=1)], drop_axis=1, dtype=known.dtype)


def _classes(model: Any, booster: Any, classes: ArrayLike | None) -> tuple[NDArray[Any] | None, bool]:
    """Return the classes, where they are known, and whether the model is a regression."""
    whole = isinstance(model, dict)
    known, regression = (model["classes"], model["classes"] is None) if whole else own_classes(booster)
    if classes is None:
        return known, regression
    given = np.asarray(classes)
    if whole and regression:
        raise ValueError("The model is a regression, and classes= is for classification: leave it out.")
    if known is not None and known.tolist() != given.tolist():
        raise ValueError(
            f"classes= are {given.tolist()}, but the model has the classes {known.tolist()}: leave classes= out."
        )
    return given, False


def own_classes(booster: Any) -> tuple[NDArray[Any] | None, bool]:
    """Return the classes that a bare booster names, if any, and whether it is a regression."""
    if isinstance(booster, Booster):
        named = booster.attr(_CLASSES)
        squared = "squarederror" in json.loads(booster.save_config())["learner"]["objective"]["name"]
        return (None, squared) if named is None else (np.array(json.loads(named)), False)
    return None, hasattr(booster, "model_to_string") and "objective=regression" in booster.model_to_string()


def _lightgbm_margins(booster: Any, X: Any) -> Any:
    if booster.num_model_per_iteration() > 1:
        raise ValueError(
            "On a cluster a LightGBM model of several classes is not predicted here: use "
            "X.map_blocks(booster.predict, ...) of dask."
        )
    # LightGBM does not look at names, writes blanks as underscores, and numbers the columns of an array.
    columns, names = [str(name).replace(" ", "_") for name in getattr(X, "columns", ())], booster.feature_name()
    if columns and columns != names and names != [f"Column_{j}" for j in range(len(columns))]:
        found = "in another order than" if sorted(columns) == sorted(names) else "not"
        raise ValueError(f"The columns of X are {found} those of the model: pass X[{names[:4]}...].")
    if hasattr(X, "map_partitions"):
        return X.map_partitions(lambda piece: _margins(booster, piece), meta=(None, np.float64))
    return X.map_blocks(lambda piece: _margins(booster, piece), drop_axis=1, dtype=np.float64)


def _margins(booster: Any, piece: Any) -> Any:
    import pandas as pd

    margin = booster.predict(piece, raw_score=True) if len(piece) else np.empty(0)
    return pd.Series(margin, index=piece.index) if hasattr(piece, "index") else margin
