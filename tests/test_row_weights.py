import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from grbb_ext.labels import check_sample_weight, class_weights, mixed_weight, read_labels

LABELS = read_labels([2, 2, 2, 5, -1, 9], "auto", None, -1)


def test_balanced_weights_give_every_class_the_same_total():
    weight = class_weights("balanced", LABELS)
    assert_allclose(weight * [3, 1, 1], 5 / 3)


def test_weights_by_class():
    assert_allclose(class_weights({5: 4.0}, LABELS), [1, 4, 1])
    assert_allclose(class_weights(pd.Series({9: 3.0, 5: 4.0}), LABELS), [1, 4, 3])
    assert class_weights(None, LABELS) is None
    assert_allclose(mixed_weight(np.array([[0.5, 0.5, 0.0]]), np.array([1.0, 4.0, 1.0])), 2.5)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ({7: 1.0}, r"names \[7\]"),
        ("uniform", "must be 'balanced'"),
        ({5: -1.0}, "not negative"),
        ({5: np.nan}, "finite"),
    ],
)
def test_wrong_class_weights(weight, message):
    with pytest.raises(ValueError, match=message):
        class_weights(weight, LABELS)


def test_class_weights_are_for_classes():
    with pytest.raises(ValueError, match="use sample_weight"):
        class_weights("balanced", read_labels([1.0, 2.5], "squared_error", None, -1))


@pytest.mark.parametrize(
    ("weight", "message"), [([1.0], "each of the 2 rows"), ([1.0, -1.0], "not negative"), ([1.0, np.inf], "finite")]
)
def test_wrong_sample_weights(weight, message):
    with pytest.raises(ValueError, match=message):
        check_sample_weight(weight, 2)


def test_a_mask_is_no_weight():
    with pytest.raises(TypeError, match=r"sample_weight is a masked array.*filled\(0\)"):
        check_sample_weight(np.ma.masked_greater([1.0, 1e6], 10.0), 2)
