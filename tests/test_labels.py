import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from grbb_ext.labels import is_unlabeled, read_labels

OF_NUMPY_2 = pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="numpy 1 has no text of its own")


@pytest.mark.parametrize(
    ("y", "classes", "labeled"),
    [
        ([0, 1, -1], [0, 1], [0, 1]),
        ([3, -1, 8, 3], [3, 8], [0, 2, 3]),
        ([1.0, np.nan, 0.0], [0.0, 1.0], [0, 2]),
        (["spam", None, "ham"], ["ham", "spam"], [0, 2]),
        (np.array([True, False]), [False, True], [0, 1]),
        (np.array(["b", "a", "b"]), ["a", "b"], [0, 1, 2]),
    ],
)
def test_two_classes_of_any_values(y, classes, labeled):
    labels = read_labels(y, "auto", None, -1)
    assert labels.classes.tolist() == classes
    assert_array_equal(labels.labeled, labeled)
    assert labels.loss.name == "logistic"
    expected = [classes.index(value) for value in np.asarray(y, dtype=object)[labeled]]
    assert_array_equal(labels.targets, expected)


def test_more_classes_are_one_hot_in_their_order():
    labels = read_labels([7, -1, 5, 9], "auto", None, -1)
    assert labels.loss.name == "softmax"
    assert_array_equal(labels.targets, [[0, 1, 0], [1, 0, 0], [0, 0, 1]])
    labels = read_labels([7, -1, 5], "auto", [9, 7, 5], -1)
    assert_array_equal(labels.targets, [[0, 1, 0], [0, 0, 1]])


@pytest.mark.parametrize(
    "hold",
    [
        pa.array,
        lambda y: pa.chunked_array([y]),
        lambda y: pa.array(y).dictionary_encode(),
        lambda y: pd.Series(pd.Categorical(y, categories=y[:3])),
        lambda y: pd.Series(y, dtype="Int64"),
    ],
)
def test_whole_numbers_beside_a_missing_label_stay_whole(hold):
    # As floats the last two would be one class.
    labels = read_labels(hold([5, 2**53, 2**53 + 1, None]))
    assert labels.classes.tolist() == [5, 2**53, 2**53 + 1]
    assert_array_equal(labels.labeled, [0, 1, 2])


def test_another_marker():
    labels = read_labels(np.array(["a", "?", "b"]), "auto", None, "?")
    assert_array_equal(labels.labeled, [0, 2])
    labels = read_labels([-1, 1, 99], "auto", None, 99)
    assert labels.classes.tolist() == [-1, 1]


def test_regression():
    for y in ([1.5, np.nan, -1], [1.5, pd.NA, -1]):
        labels = read_labels(y, "squared_error", None, -1)
        assert_array_equal(labels.labeled, [0, 2])
        assert_array_equal(labels.targets, [1.5, -1])
        assert labels.classes is None


@pytest.mark.parametrize(
    ("y", "arguments", "message"),
    [
        ([-1, -1], {}, "no labelled row.*Label at least one row"),
        ([np.nan, np.nan], {"loss": "squared_error"}, "no labelled row.*NaN marks"),
        ([-1, 1, 1], {}, r"Only the class 1 is labelled.*recode y"),
        ([0, 1, 2], {"classes": [0, 1]}, r"outside the classes \[0, 1\]: \[2\]"),
        ([0, 1, 2], {"loss": "logistic"}, "for two classes, y has 3"),
        ([0.5, 1.5, -1], {}, "loss='squared_error'"),
        ([[0, 1]], {}, "one-dimensional"),
        ({0, 1}, {}, "one-dimensional"),
        ([0, 1], {"loss": "hinge"}, "loss must be"),
        ([0, 1], {"classes": [0]}, "at least two different"),
        ([0, 1], {"classes": [0, 0]}, "at least two different"),
        (["a", "b"], {"loss": "squared_error"}, "needs numbers"),
        ([np.inf, 1.0], {"loss": "squared_error"}, "infinite"),
        (np.array(["a", 1], dtype=object), {}, "different types"),
        (np.array(["2026-01-01", "NaT"], "M8[D]"), {}, "dates or durations.*text or integers"),
        (np.array(["2026-01-01", "NaT"]), {}, "holds the text 'NaT'"),
        ([0, 1], {"classes": 2}, "at least two different"),
    ],
)
def test_wrong_labels(y, arguments, message):
    with pytest.raises(ValueError, match=message):
        read_labels(y, **({"loss": "auto", "classes": None, "unlabeled": -1} | arguments))


@pytest.mark.parametrize("loss", ["auto", "squared_error"])
def test_a_mask_is_no_marker(loss):
    y = np.ma.masked_equal([0.0, 1.0, -999.0], -999.0)
    with pytest.raises(TypeError, match=r"y is a masked array.*np\.where\(y\.mask, None, y\.data\)"):
        read_labels(y, loss)
    assert read_labels(np.where(y.mask, None, y.data), loss).labeled.tolist() == [0, 1]


def test_one_class_is_allowed_where_the_others_are_named():
    with pytest.warns(UserWarning, match="Only the class 1 is labelled"):
        labels = read_labels([1, -1, 1], "auto", [0, 1], -1)
    assert_array_equal(labels.targets, [1, 1])


@pytest.mark.parametrize(
    ("y", "unlabeled"),
    [
        (pd.Series([0.0, 1.0, -1.0, np.nan]), -1),  # read as objects, since something is missing
        (pd.Series([0.0, 1.0, -1.0, np.nan], dtype="Float64"), -1),
        ([np.int64(0), np.int64(1), np.int64(-1), None], -1),
        ([0, 1, -1, None], np.int64(-1)),
        ([np.str_("a"), np.str_("b"), np.str_("?"), None], "?"),
        ([0, 1, pd.NA, -1], -1),
        (np.array(["a", "b", pd.NA, "?"], dtype=object), "?"),
        (pd.Series([0, 1, pd.NA, None], dtype="Int64"), pd.NA),
        ([0, 1, pd.NA, None], pd.NA),
        ([np.int64(0), 1, -1, None], -1),  # a list that was filled from an array, and by hand
        ([np.str_("a"), "b", "?", None], "?"),
        pytest.param(lambda: np.array(["a", "b", "?", "?"], np.dtypes.StringDType()), "?", marks=OF_NUMPY_2),
    ],
)
def test_the_marker_is_no_class_in_any_type(y, unlabeled):
    labels = read_labels(y() if callable(y) else y, unlabeled=unlabeled)
    assert labels.labeled.tolist() == [0, 1]
    assert labels.classes.dtype.kind in "ifU"
    assert len(labels.classes) == 2


def test_true_is_not_the_marker_one():
    assert read_labels(np.array([True, False, None], dtype=object), unlabeled=1).labeled.tolist() == [0, 1]
    assert read_labels([0, 1, 2], unlabeled=True).labeled.tolist() == [0, 1, 2]


def test_na_marks_nothing_where_nothing_is_missing():
    assert read_labels([0, 1, 0], unlabeled=pd.NA).labeled.tolist() == [0, 1, 2]
    assert is_unlabeled([0, pd.NA, 1], pd.NA).tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("y", "unlabeled"),
    [([0, 1, -1], "-1"), ([0.0, 1.0, -1.0], "-1"), ([0, 1, 1_000_000], "1000000"), ([0, 1, -1, None], "-1.0")],
)
def test_a_marker_that_is_text_where_labels_are_numbers(y, unlabeled):
    with pytest.raises(ValueError, match=f"y holds the number {unlabeled}.*Pass unlabeled={unlabeled}"):
        read_labels(y, unlabeled=unlabeled)
    assert read_labels(y, unlabeled="?", classes=[*{one for one in y if one is not None}]).labeled.tolist() == [0, 1, 2]


def test_a_set_of_classes_is_sorted():
    assert read_labels(["b", None, "a"], classes={"c", "b", "a"}).classes.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="outside the classes"):
        read_labels([1, 0], classes={1, "0"})


@pytest.mark.parametrize(
    "classes", [pd.Index(["a", "b"], dtype=object), np.array(["a", "b"], dtype=object), {"a": 1, "b": 2}.keys()]
)
def test_classes_of_any_container_have_one_type(classes):
    assert read_labels(["b", None, "a"], classes=classes).classes.dtype == np.dtype("<U1")


@pytest.mark.parametrize("unlabeled", [-999, "none"])
def test_a_regression_has_no_marker_but_nan(unlabeled):
    with pytest.raises(ValueError, match="In a regression NaN marks rows"):
        read_labels([1.0, -999.0], "squared_error", unlabeled=unlabeled)
    for marker in (-1, None, np.nan):
        assert read_labels([1.0, np.nan], "squared_error", unlabeled=marker).labeled.tolist() == [0]
