"""X and y as they come to an estimator: checked as scikit-learn does, and turned into numbers."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import validate_data

from grbb_ext.estimators._job import Task
from grbb_ext.labels import is_unlabeled, read_classes, read_numbers, warn_of_another_order
from grbb_ext.table import Schema, Table, Unseen, read_table

# Names that both libraries take as they are, and write into their files unchanged.
_PLAIN_NAME = re.compile(r"[^\s\[\]<>{}\",:]+")


# What to do in place of a wrapper of scikit-learn that counts unlabelled rows as a class of their own.
_ADVICE = {
    "CalibratedClassifierCV": (
        "The probabilities of GRBBClassifier are fitted to held-out labels already. To calibrate them on further "
        "labelled rows, fit the model first: CalibratedClassifierCV(FrozenEstimator(model)).fit(X_more, y_more)."
    ),
    "cross_val_predict": "Use grbb_ext.model_selection.held_out_predict, which predicts the labelled rows.",
    **dict.fromkeys(
        ("VotingClassifier", "StackingClassifier"),
        "To average GRBBClassifier with other classifiers, make them experts: teacher=['graph', other_classifier].",
    ),
}
_FIT_ALONE = "Fit GRBBClassifier by itself, on all rows."


def refuse_marker_as_class(unlabeled: Any) -> None:
    """Raise where scikit-learn code up the stack counts the marker of unlabelled rows as a class.

    Calibration, votes, stacks, bags and others find the classes of y themselves, the marker among them, and many hand
    on y in codes, in which the marker cannot be told from a class. Only their own list of classes shows it.

    Parameters
    ----------
    unlabeled : object
        The marker.
    """
    frame: FrameType | None = sys._getframe(1)
    called = ""
    while frame is not None:  # the outermost is the one that the user called
        if str(frame.f_globals.get("__name__")).startswith("sklearn."):
            for name, value in frame.f_locals.items():
                if any(_holds(classes, unlabeled) for classes in _classes_of(name, value)):
                    # An encoder, or a list, belongs to the function that made it.
                    is_wrapper = isinstance(value, ClassifierMixin)
                    called = type(value).__name__ if is_wrapper else frame.f_code.co_name
        frame = frame.f_back
    if called:
        raise ValueError(
            f"{'A wrapper' if called.startswith('_') else called} of scikit-learn takes {unlabeled!r} for a class, but "
            f"it marks rows without a label. {_ADVICE.get(called, _FIT_ALONE)} Or leave unlabelled rows out of y. If "
            f"{unlabeled!r} is a class, pass another marker as unlabeled=."
        )


def _classes_of(name: str, value: Any) -> list[Any]:
    """Return the lists of classes that a variable of scikit-learn holds, itself or in an encoder of labels."""
    if name == "classes":
        return [value] if isinstance(value, (list, np.ndarray)) else []
    if not isinstance(value, BaseEstimator) or isinstance(value, RowReader):
        return []
    owners = [value, *(part for part in vars(value).values() if isinstance(part, TransformerMixin))]
    return [vars(owner)["classes_"] for owner in owners if "classes_" in vars(owner)]


def _holds(classes: Any, unlabeled: Any) -> bool:
    return any(bool(is_unlabeled([one], unlabeled)[0]) for one in classes if np.ndim(one) == 0)


class RowReader(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The part of an estimator that reads rows and labels, and remembers what the columns mean."""

    _task: Task
    categorical_features: Any
    unlabeled: Any = np.nan
    _library: str
    _schema: Schema
    _unseen: Unseen

    def _read(self, X: Any, *, reset: bool = False, **settings: Any) -> Table:
        """Return X as numbers, by the columns known or by `settings`, and set what scikit-learn wants to know of it."""
        if not reset:
            settings = {"categorical": (), "schema": self._schema}
            if self._schema.categories and (sp.issparse(X) or (isinstance(X, np.ndarray) and X.dtype.kind in "biuf")):
                raise ValueError(
                    "The model was fitted to categories by name, and the numbers of an array are no names. Pass rows "
                    "as they were given to fit, such as a frame."
                )
        table = read_table(X, unseen=self._unseen, min_rows=2 if reset else 1, **settings)
        validate_data(self, X, reset=reset, skip_check_array=True)
        if reset:
            self._schema = table.schema
            if table.schema.names is not None:  # scikit-learn does not see those of all frames
                self.feature_names_in_ = np.array(table.schema.names, dtype=object)
        return table

    def _categorical(self, of_booster: Sequence[Any]) -> Any:
        """Return the columns that are called categorical, by the user or by the wrapped estimator."""
        asked = self.categorical_features
        if not len(of_booster):
            return asked
        if asked is None or (isinstance(asked, str) and asked == "from_dtype"):
            return list(of_booster)
        if np.ndim(asked) != 1:
            return asked  # which is refused
        flags = len(asked) > 0 and all(isinstance(entry, (bool, np.bool_)) for entry in asked)
        return [*(np.flatnonzero(asked).tolist() if flags else asked), *of_booster]

    def _read_labeled(self, X: Any, y: Any, none: str) -> tuple[Table, NDArray[Any], NDArray[np.intp]]:
        """Return the labelled ones of rows that were not given to fit, and their positions; `none` is the error."""
        table, name = self._read(X), type(self).__name__
        labels = read_numbers(y, name) if self._task == "regression" else read_classes(y, self.unlabeled, name)
        check_consistent_length(table.values, labels)
        warn_of_another_order(X, y)
        rows = np.flatnonzero(~is_unlabeled(labels, self.unlabeled))
        if not rows.size:
            raise ValueError(none)
        return table.take(rows), labels[rows], rows

    def _evaluation_sets(self, eval_set: Any) -> list[tuple[Table, NDArray[Any]]]:
        """Return the labelled rows of each pair (X, y)."""
        if eval_set is None:
            return []
        if isinstance(eval_set, tuple) and len(eval_set) == 2:
            eval_set = [eval_set]
        if not isinstance(eval_set, (list, tuple)) or any(not isinstance(e, tuple) or len(e) != 2 for e in eval_set):
            raise ValueError("eval_set must be a list of pairs (X, y).")
        none = "A set of eval_set has no labelled row: watch rows that have labels."
        return [self._read_labeled(X, y, none)[:2] for X, y in eval_set]

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
