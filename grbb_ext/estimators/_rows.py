"""X and y as they come to an estimator: checked as scikit-learn does, and turned into numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import validate_data

from grbb_ext.estimators._job import EvaluationSet, Task
from grbb_ext.labels import is_unlabeled, read_classes, read_numbers
from grbb_ext.table import Schema, Table, Unseen, read_table

# Names that both libraries take as they are, and write into their files unchanged.
_PLAIN_NAME = re.compile(r"[^\s\[\]<>{}\",:]+")


class RowReader(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The part of an estimator that reads rows and labels, and remembers what the columns mean."""

    _task: Task
    categorical_features: Any
    unlabeled: Any = np.nan
    _schema: Schema | None
    _unseen: Unseen
    _missing: float

    def _read(self, X: Any, *, reset: bool, of_booster: Sequence[Any] = (), continued: Schema | None = None) -> Table:
        """Return X as numbers, and set what scikit-learn wants to know of it."""
        table = read_table(
            X,
            categorical=self._categorical(of_booster) if reset else (),
            schema=continued if reset else self._schema,
            unseen=self._unseen,
            missing=self._missing,
            min_rows=2 if reset else 1,
        )
        validate_data(self, X, reset=reset, skip_check_array=True)
        if reset:
            self._schema = table.schema
            if table.schema.names is not None:  # scikit-learn does not see those of all frames
                self.feature_names_in_ = np.array(table.schema.names, dtype=object)
        return table

    def _categorical(self, of_booster: Sequence[Any]) -> Any:
        """Return the columns that are called categorical, by the user or by the wrapped estimator."""
        asked = self.categorical_features
        if not len(of_booster) or not isinstance(asked, (str, list, tuple, type(None))):
            return asked
        if asked is None or asked == "from_dtype":
            return list(of_booster)
        flags = bool(asked) and all(isinstance(entry, (bool, np.bool_)) for entry in asked)
        return [*(np.flatnonzero(asked).tolist() if flags else asked), *of_booster]

    def _read_labeled(self, X: Any, y: Any) -> tuple[Table, NDArray[Any], NDArray[np.intp]]:
        """Return rows with labels that were not given to fit, and the positions of the labelled ones."""
        table, name = self._read(X, reset=False), type(self).__name__
        labels = read_numbers(y, name) if self._task == "regression" else read_classes(y, self.unlabeled, name)
        check_consistent_length(table.values, labels)
        return table, labels, np.flatnonzero(~is_unlabeled(labels, self.unlabeled))

    def _evaluation_sets(self, eval_set: Any) -> list[EvaluationSet]:
        """Return the labelled rows of each pair (X, y)."""
        if eval_set is None:
            return []
        if isinstance(eval_set, tuple) and len(eval_set) == 2:
            eval_set = [eval_set]
        if not isinstance(eval_set, (list, tuple)) or any(not isinstance(e, tuple) or len(e) != 2 for e in eval_set):
            raise ValueError("eval_set must be a list of pairs (X, y).")
        sets = []
        for X, y in eval_set:
            table, labels, rows = self._read_labeled(X, y)
            if not rows.size:
                raise ValueError("A set of eval_set has no labelled row: watch rows that have labels.")
            sets.append(EvaluationSet(table.take(rows), labels[rows]))
        return sets

    @property
    def _names(self) -> tuple[str, ...] | None:
        """Names of the columns, where X has them."""
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else tuple(str(name) for name in names)

    def _booster_names(self) -> tuple[str, ...] | None:
        """Return the column names, if both libraries would keep them as they are."""
        names = self._names
        if names is None or len(set(names)) < len(names):
            return None
        return names if all(_PLAIN_NAME.fullmatch(name) for name in names) else None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags
