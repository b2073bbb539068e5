"""Weights of classes of the wrapped estimators, as numbers."""

from __future__ import annotations

import numpy as np
import pytest

from grbb_ext.adapters import _wrapped as class_weights
from grbb_ext.labels import read_labels


def test_the_rarer_class_gets_the_ratio_of_the_labeled_counts():
    assert class_weights.unbalance_weight(read_labels([1, 1, 1, 0, -1, -1], "auto", None, -1)) == {0: 3.0}
    assert class_weights.unbalance_weight(read_labels([0, 1, -1], "auto", None, -1)) == {1: 1.0}


def test_a_class_without_a_label_has_no_ratio():
    with pytest.warns(UserWarning, match="Only the class"):
        labels = read_labels([1, 1, -1], "auto", np.array([0, 1]), -1)
    with pytest.raises(ValueError, match="labelled row of each class"):
        class_weights.unbalance_weight(labels)


def test_one_weight_is_chosen_and_two_are_refused():
    assert class_weights.choose(None, {"a": None}) is None
    assert class_weights.choose("balanced", {"a": None}) == "balanced"
    assert class_weights.choose(None, {"a": None, "b": {1: 2.0}}) == {1: 2.0}
    with pytest.raises(ValueError, match="Leave b out"):
        class_weights.choose("balanced", {"a": None, "b": {1: 2.0}})
    with pytest.raises(ValueError, match="a and b of the wrapped"):
        class_weights.choose(None, {"a": {1: 3.0}, "b": {1: 2.0}})
