"""Which input columns each output column of a fitted scikit-learn transformer is computed from."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, OneToOneFeatureMixin
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.impute import KNNImputer, MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, Normalizer, OneHotEncoder, PolynomialFeatures
from sklearn.utils.validation import check_is_fitted

from grbb_ext.costs._engine import needs_matrix

#: Every output may depend on every input. Normalizer and TfidfTransformer name their outputs like inputs, but scale a
#: row by its length; what is named by a class and a number (PCA and the like) mixes columns.
_MIXING = (ClassNamePrefixFeaturesOutMixin, KNNImputer, Normalizer, TfidfTransformer)


def input_names(transformer: Any) -> list[str] | None:
    """Return the names of the columns that a transformer was fitted on, None where they had no names."""
    names = getattr(transformer, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def output_names(transformer: Any) -> list[str]:
    """Return the names of the columns that a fitted transformer makes."""
    check_is_fitted(transformer)
    try:
        return [str(name) for name in transformer.get_feature_names_out()]
    except AttributeError as error:
        raise ValueError(
            f"{type(transformer).__name__} does not name its output columns, so prices cannot follow them. Give a "
            f"FunctionTransformer feature_names_out='one-to-one', another one a get_feature_names_out. ({error})"
        ) from None


def inputs_of_outputs(step: Any, n_inputs: int) -> sp.csr_array:
    """Return which inputs each output of a fitted transformer needs, boolean of shape (n_outputs, n_inputs).

    Examples
    --------
    >>> encoder = OneHotEncoder().fit([["a", 1], ["b", 1]])
    >>> inputs_of_outputs(encoder, 2).toarray().astype(int).tolist()
    [[1, 0], [1, 0], [0, 1]]
    """
    if isinstance(step, str):  # "drop" or "passthrough"
        return sp.csr_array(sp.eye_array(n_inputs if step == "passthrough" else 0, n_inputs, dtype=bool))
    if isinstance(step, ColumnTransformer):
        return _of_column_transformer(step, n_inputs)
    if isinstance(step, Pipeline):
        needed = inputs_of_outputs("passthrough", n_inputs)
        for _, part in step.steps:
            if part is not None and part != "passthrough":
                needed = inputs_of_outputs(part, needed.shape[0]) @ needed
        return needed
    if isinstance(step, FeatureUnion):
        parts = [inputs_of_outputs(part, n_inputs) for _, part in step.transformer_list]
        return sp.csr_array(sp.vstack(parts, dtype=bool))
    if not hasattr(step, "transform"):
        raise ValueError(
            f"{type(step).__name__} is no transformer. Of a pipeline that ends with a model pass pipeline[:-1]."
        )
    rows = _rows(step, n_inputs)
    n_outputs = len(output_names(step))
    if rows is None or len(rows) != n_outputs:
        raise ValueError(
            f"It is not known which of its {n_inputs} columns each of the {n_outputs} outputs of {type(step).__name__} "
            "needs. Give it one column at a time, by an entry of the ColumnTransformer for each, or give the sources "
            "of the outputs yourself: FeatureCosts(needs=..., prices=...)."
        )
    return needs_matrix(rows, n_inputs)


def _rows(step: Any, n_inputs: int) -> list[list[int]] | None:
    """Return the inputs of each output of a single transformer, None where they are not known."""
    every, names = list(range(n_inputs)), output_names(step)
    own = input_names(step) or [f"x{i}" for i in every]  # the names that the step itself uses
    if n_inputs == 1 or isinstance(step, _MIXING):
        return [every] * len(names)
    if isinstance(step, OneHotEncoder):
        asked = copy.copy(step).set_params(feature_name_combiner=lambda column, category: str(column))
        return [[own.index(str(name))] for name in asked.get_feature_names_out()]
    if isinstance(step, SimpleImputer):
        missing = [] if step.indicator_ is None else step.indicator_.features_.tolist()
        kept = names[: len(names) - len(missing)]  # a column without a value may have been left out
        return [[own.index(name)] for name in kept] + [[i] for i in missing]
    if isinstance(step, MissingIndicator):
        return [[int(i)] for i in step.features_]
    if isinstance(step, KBinsDiscretizer) and step.encode != "ordinal":
        return [[i] for i in every for _ in range(step.n_bins_[i])]
    if isinstance(step, PolynomialFeatures):
        return [np.flatnonzero(powers).tolist() for powers in step.powers_]
    if isinstance(step, SelectorMixin):
        return [[int(i)] for i in step.get_support(indices=True)]
    one_to_one = isinstance(step, (OneToOneFeatureMixin, KBinsDiscretizer))
    if isinstance(step, FunctionTransformer):
        one_to_one = step.func is None or step.feature_names_out == "one-to-one"
    return [[i] for i in every] if one_to_one else None


def _of_column_transformer(step: ColumnTransformer, n_inputs: int) -> sp.csr_array:
    check_is_fitted(step)
    every, needed = inputs_of_outputs("passthrough", n_inputs), [inputs_of_outputs("drop", n_inputs)]
    for name, part, columns in step.transformers_:
        made = step.output_indices_[name]
        if made.stop == made.start:
            continue
        chosen = _positions(columns, input_names(step), n_inputs)
        inner = inputs_of_outputs(part, len(chosen))
        if inner.shape[0] != made.stop - made.start:
            raise ValueError(f"{name!r} makes {made.stop - made.start} columns, but it names {inner.shape[0]}.")
        needed.append(inner @ every[chosen])
    return sp.csr_array(sp.vstack(needed, dtype=bool))


def _positions(columns: Any, names: list[str] | None, n_inputs: int) -> Any:
    """Return the positions that a selection of a ColumnTransformer means: names, indices, a slice or a mask."""
    index = {name: i for i, name in enumerate(names or [])}
    if isinstance(columns, slice):
        start, stop = columns.start, columns.stop
        if isinstance(start, str):
            start = index[start]
        if isinstance(stop, str):
            stop = index[stop] + 1  # a slice of names includes its end
        return np.arange(n_inputs)[start : stop : columns.step]
    listed = np.atleast_1d(np.asarray(columns))
    if listed.dtype.kind in "biu":
        return np.arange(n_inputs)[listed]
    return np.array([index[str(name)] for name in listed.tolist()], dtype=int)
