import numpy as np
import pytest
from numpy.testing import assert_allclose

from grbb_ext import Committee, grbb_objective

PATH = np.diag(np.ones(5), 1) + np.diag(np.ones(5), -1)


def test_other_labels_same_settings():
    first = grbb_objective(None, [0, -1, -1, -1, -1, 1], graph=PATH, lam=0.2, teacher=Committee(sharpen=2.0))
    y = first.y_
    y[2] = 1
    found = first.with_labels(y)
    expected = grbb_objective(None, y, graph=PATH, lam=0.2, teacher=Committee(sharpen=2.0))
    H = np.linspace(-1, 1, 6)
    assert_allclose(found(H), expected(H))
    assert found.lam_ == 0.2
    assert first.labeled_.tolist() == [0, 5]  # the first one is as it was


def test_classes_are_kept():
    first = grbb_objective(None, [0, 2, -1, -1, -1, 1], graph=PATH)
    assert first.with_labels([0, -1, -1, -1, -1, 1]).n_outputs_ == 3


def test_number_of_rows_is_kept():
    first = grbb_objective(None, [0, -1, -1, -1, -1, 1], graph=PATH)
    with pytest.raises(ValueError, match="each of the 6 rows, got 2"):
        first.with_labels([0, 1])


def test_targets_and_weights_of_labelled_rows():
    obj = grbb_objective(
        None, [0, -1, -1, -1, -1, 1], graph=PATH, sample_weight=np.arange(1.0, 7.0), class_weight={1: 2.0}
    )
    assert obj.labeled_targets_.tolist() == [0, 1]
    assert obj.labeled_weight_.tolist() == [1, 12]
    assert obj.P_bar_ is None
    assert grbb_objective(None, [0, -1, -1, -1, -1, 1], graph=PATH, preset="paper").P_bar_.shape == (6, 2)
