"""X as it comes to an estimator: checked as scikit-learn does, and turned into numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from grbb_ext.table import (
    Schema,
    Table,
    Unseen,
    check_container,
    check_magnitude,
    column_positions,
    is_frame,
    read_frame,
)

# Names that both libraries take as they are, and write into their files unchanged.
_PLAIN_NAME = re.compile(r"[^\s\[\]<>{}\",:]+")


class RowReader(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The part of an estimator that reads rows, and remembers what their columns mean."""

    categorical_features: Any
    _schema: Schema | None
    _unseen: Unseen
    _missing: float

    def _read(self, X: Any, *, reset: bool, of_booster: Sequence[Any] = ()) -> Table:
        """Return X as numbers, checked as scikit-learn does."""
        check_container(X)
        if is_frame(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            if X.shape[0] < (2 if reset else 1) or X.shape[1] == 0:
                raise ValueError(
                    f"Found array with {X.shape[0]} sample(s) and {X.shape[1]} feature(s), while a minimum of "
                    f"{2 if reset else 1} and 1 is required."
                )
            if all(isinstance(name, str) for name in X.columns) and not hasattr(self, "feature_names_in_") and reset:
                # Without them costs by name and the order of columns at predict could not be checked.
                raise ValueError(
                    f"This scikit-learn does not see the column names of a {type(X).__module__.split('.')[0]} frame. "
                    "Upgrade scikit-learn, or pass X.to_pandas()."
                )
            names = [str(name) for name in X.columns]
            asked = self._categorical(names, len(names), of_booster) if reset else ()
            table = read_frame(X, asked, self._schema, self._unseen)
            if np.isinf(table.values).any():
                raise ValueError("X contains infinity. Replace it by NaN (missing) or by a finite number.")
        else:
            values = validate_data(
                self,
                X,
                reset=reset,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                ensure_all_finite="allow-nan",
                ensure_min_samples=2 if reset else 1,
            )
            schema = Schema(self._categorical(None, values.shape[1], of_booster)) if reset else self._schema
            table = Table(values, schema or Schema())
        if reset:
            self._schema = table.schema
        table = table if np.isnan(self._missing) else _with_nan(table, self._missing)
        check_magnitude(table.values, "X")
        _check_codes(table)
        return table

    def _categorical(self, names: list[str] | None, n_columns: int, of_booster: Sequence[Any]) -> tuple[int, ...]:
        """Return the positions of columns that are called categorical, by the user or by the wrapped estimator."""
        asked = self.categorical_features
        if isinstance(asked, str):
            if asked != "from_dtype":
                raise ValueError(
                    f"categorical_features must be 'from_dtype' or a list of columns, got {asked!r}. Put it in a list."
                )
            asked = None
        listed = [] if asked is None else asked
        positions = column_positions(listed, names, n_columns) | column_positions(list(of_booster), names, n_columns)
        return tuple(sorted(positions))

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


def _with_nan(table: Table, missing: float) -> Table:
    """Replace the number that stands for a missing value by NaN, for the booster and the graph alike."""
    values = table.values.copy()
    numbers = values.data if sp.issparse(values) else values
    numbers[numbers == missing] = np.nan
    return Table(values, table.schema)


def _check_codes(table: Table) -> None:
    """Refuse categorical columns of an array that do not hold codes."""
    if sp.issparse(table.values):
        if table.schema.categorical:
            raise ValueError("Categorical columns of a sparse matrix are not supported. Pass a frame or a dense array.")
        return
    for j in table.schema.categorical:
        codes = table.values[:, j]
        codes = codes[~np.isnan(codes)]
        if (codes < 0).any() or (codes != np.floor(codes)).any() or (codes >= 2**24).any():
            raise ValueError(
                f"Column {j} is categorical and must hold codes 0, 1, 2, ... (NaN where missing). Encode it, or pass a "
                "pandas or polars frame with a categorical column."
            )
