"""Two functions around ``toPandas`` and ``mapInPandas``; training itself is that of ``xgboost.spark``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, DoubleType, StructField, StructType

from grbb_ext.graph import KNNGraph, TableGraph
from grbb_ext.labels import encode, is_unlabeled
from grbb_ext.objective import Recipe, grbb_objective
from grbb_ext.rules import Targets
from grbb_ext.teacher import Teacher


def fit_teacher(
    rows: Any, label_col: str, features: Sequence[str] | None = None, *, unlabeled: Any = -1, **settings: Any
) -> Teacher:
    """Fit a teacher on the driver to the labelled rows and a sample of the others.

    Parameters
    ----------
    rows : pyspark.sql.DataFrame
        All rows. They are read three times: cache them, if that is expensive.
    label_col : str
        The column of labels; `unlabeled`, null or NaN marks a row without one.
    features : sequence of str or None, default=None
        Columns of numbers, or of text, which are categories; None takes all but the labels.
    unlabeled : object, default=-1
        The marker of unlabelled rows. For regression only null and NaN are.
    **settings
        Of :func:`grbb_ext.grbb_objective`: `graph`, `teacher`, `propagation`, `loss`, `classes`, `random_state`, ...
        The sample has about 20,000 rows, or the ``max_nodes`` of a TableGraph. What changes gradients and no target is
        refused: options of the rule, and weights, for which ``xgboost.spark`` has ``weight_col``.

    Returns
    -------
    Teacher
        Small, and the same on all machines; ``teacher.evidence`` tells how far each expert is trusted.
    """
    for name in ("class_weight", "sample_weight"):
        if settings.get(name) is not None:
            raise ValueError(f"{name} is not for a teacher: weigh the rows by weight_col of xgboost.spark.")
    read = ("graph", "teacher", "propagation", "rule", "preset", "lam")
    recipe = Recipe.read(**{name: settings[name] for name in read if name in settings})
    if recipe.rule != Targets() or isinstance(recipe.teacher, Teacher) or not isinstance(recipe.graph, KNNGraph):
        raise ValueError(
            "Spark trains on the targets of a teacher that is fitted to rows: use rule='targets' without options of "
            "its own, a graph by name or spec, and no fitted teacher."
        )
    if features is not None and label_col in features:
        raise ValueError(f"{label_col!r} is the column of labels, and one of features=. Take it out of features=.")
    chosen = rows.select(label_col, *_features(rows, label_col, features))
    if dict(chosen.dtypes)[label_col].startswith("decimal"):  # objects of Python, which are no classes
        chosen = chosen.withColumn(label_col, sql.col(label_col).cast("double"))
    marked = _marked(chosen, label_col, None if settings.get("loss") == "squared_error" else unlabeled)
    labeled, others = chosen.where(~marked).toPandas(), chosen.where(marked)
    limit = recipe.graph.max_nodes if isinstance(recipe.graph, TableGraph) else TableGraph().max_nodes
    if limit is not None:
        share = max(limit - len(labeled), limit // 2) / max(1, others.count())
        if share < 1:
            others = others.sample(fraction=share, seed=settings.get("random_state", 0))
    sample = pd.concat([labeled, others.toPandas()], ignore_index=True)
    y = np.full(len(sample), None, dtype=object)
    y[: len(labeled)] = labeled[label_col]
    obj = grbb_objective(sample.drop(columns=label_col), y, unlabeled=unlabeled, **settings)
    assert obj.teacher_ is not None
    return obj.teacher_


def teach(
    rows: Any,
    teacher: Teacher,
    label_col: str | None = None,
    features: Sequence[str] | None = None,
    *,
    target_col: str = "q",
) -> Any:
    """Add the targets of the rows as a column, where the rows are.

    Parameters
    ----------
    rows : pyspark.sql.DataFrame
        Any rows with the columns of the teacher.
    teacher : Teacher
        Of :func:`fit_teacher`, or ``obj.teacher_`` of :func:`grbb_ext.grbb_objective`.
    label_col : str or None, default=None
        The column of labels: labelled rows keep theirs. None, where there are no labels.
    features : sequence of str or None, default=None
        The columns of the teacher, in its order; None takes those that it names.
    target_col : str, default="q"
        Name of the new column; one that is there already is refused.

    Returns
    -------
    pyspark.sql.DataFrame
        `rows` with the probability of the second class (or a value, for regression); of more than two classes with an
        array of the probabilities of all.
    """
    named = None if teacher.schema is None else teacher.schema.names
    if target_col in rows.columns:
        raise ValueError(f"The rows have a column {target_col!r} already: drop it, or pass another target_col.")
    columns = list(features or named or _features(rows, label_col, None))
    labels = teacher.labels
    classes, marker = labels.classes, labels.unlabeled
    several = classes is not None and classes.size > 2
    kind = ArrayType(DoubleType()) if several else DoubleType()

    def taught(blocks: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for block in blocks:
            if not len(block):
                continue
            q = teacher.predict(block[columns], n_jobs=1)
            if label_col is not None:
                y = np.array(block[label_col], dtype=object)
                known = np.flatnonzero(~is_unlabeled(y, marker))
                values = np.array(y[known].tolist())
                if known.size and classes is not None:
                    code = encode(values, classes)
                    q[known] = np.eye(classes.size)[code] if several else code
                elif known.size:
                    q[known] = values
            yield block.assign(**{target_col: list(q) if several else q})

    return rows.mapInPandas(taught, StructType([*rows.schema.fields, StructField(target_col, kind)]))


def _features(rows: Any, label_col: str | None, features: Sequence[str] | None) -> list[str]:
    return [name for name in rows.columns if name != label_col] if features is None else list(features)


def _marked(rows: Any, label_col: str, unlabeled: Any) -> Any:
    """Return the condition that a row has no label. Spark does not compare text, truth values and numbers."""
    label, kind = sql.col(label_col), dict(rows.dtypes)[label_col]
    marked = label.isNull()
    if kind in ("float", "double"):
        marked = marked | sql.isnan(label)
    of_kind = {str: "string", bool: "boolean"}
    if unlabeled is not None and of_kind.get(type(unlabeled)) == (kind if kind in of_kind.values() else None):
        marked = marked | (label == sql.lit(unlabeled))
    return marked
