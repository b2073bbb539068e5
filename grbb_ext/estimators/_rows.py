"""X as it comes to an estimator: checked as scikit-learn does, and turned into numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from grbb_ext.table import Schema, Table, Unseen, read_table

# Names that both libraries take as they are, and write into their files unchanged.
_PLAIN_NAME = re.compile(r"[^\s\[\]<>{}\",:]+")


class RowReader(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The part of an estimator that reads rows, and remembers what their columns mean."""

    categorical_features: Any
    _schema: Schema | None
    _unseen: Unseen
    _missing: float

    def _read(self, X: Any, *, reset: bool, of_booster: Sequence[Any] = ()) -> Table:
        """Return X as numbers, and set what scikit-learn wants to know of it."""
        table = read_table(
            X,
            categorical=self._categorical(of_booster) if reset else (),
            schema=None if reset else self._schema,
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

    def _booster_names(self) -> tuple[str, ...] | None:
        """Return the column names, if both libraries would keep them as they are."""
        names = getattr(self, "feature_names_in_", None)
        if names is None or not all(_PLAIN_NAME.fullmatch(str(name)) for name in names):
            return None
        return tuple(str(name) for name in names) if len(set(names)) == len(names) else None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags
