"""Colours of the rows are what the objective tells them."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from lightgbm import LGBMClassifier
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from xgboost import XGBClassifier

from grbb_ext import GRBBClassifier, PropagationDisplay, VarianceDisplay, grbb_objective

X, TRUTH = load_wine(return_X_y=True)
Y = np.where(np.random.default_rng(0).random(TRUTH.size) < 0.2, TRUTH, -1)
PATH = np.diag(np.ones(5), 1) + np.diag(np.ones(5), -1)
LINE = np.column_stack([np.arange(6.0), np.zeros(6)])


def legend_texts(ax) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def drawn_values(display) -> dict[tuple[float, float], float]:
    offsets = np.asarray(display.points_.get_offsets())
    return {tuple(at): value for at, value in zip(offsets.tolist(), display.points_.get_array(), strict=True)}


def test_two_classes_are_coloured_by_the_gradient():
    obj = grbb_objective(None, [0, -1, -1, -1, -1, 1], graph=PATH, preset="paper")
    display = PropagationDisplay.from_objective(obj, LINE)
    # Harmonic on a path: -g runs linearly from sigma(0) - 1 ... at one end to the other.
    expected = np.linspace(-0.5, 0.5, 6)
    assert_allclose(display.value, expected, atol=1e-6)
    values = drawn_values(display)
    for row in range(6):
        assert_allclose(values[row, 0.0], expected[row], atol=1e-6)
    assert display.points_.norm.vmin == -display.points_.norm.vmax
    assert_array_equal(np.asarray(display.labeled_.get_offsets()), LINE[[0, 5]])
    assert legend_texts(display.ax_) == ["labelled (2)"]
    assert "towards 0 (-) or 1 (+)" in display.colorbar_.ax.get_ylabel()
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("column 0", "column 1")


def test_gradient_at_given_scores():
    obj = grbb_objective(None, [0, -1, -1, -1, -1, 1], graph=PATH)
    H = np.linspace(-1, 2, 6)
    display = PropagationDisplay.from_objective(obj, LINE, raw_scores=H)
    assert_allclose(display.value, -obj(H)[0])


def test_regression_is_coloured_by_the_gradient():
    obj = grbb_objective(None, [1.0, np.nan, np.nan, np.nan, np.nan, 3.0], graph=PATH, loss="squared_error")
    display = PropagationDisplay.from_objective(obj, LINE)
    assert_allclose(display.value, obj.targets_ - 2.0, atol=1e-6)  # from the mean of the labels
    assert display.colorbar_.ax.get_ylabel() == "step that the next tree learns"


def test_more_classes_are_coloured_by_class_and_confidence():
    obj = grbb_objective(X, Y)
    display = PropagationDisplay.from_objective(obj, X)
    assert_allclose(display.value, obj.targets_, atol=1e-6)
    offsets, colors = np.asarray(display.points_.get_offsets()), display.points_.get_facecolors()
    palette = plt.get_cmap("tab10")
    strength = obj.targets_.max(axis=1)
    order = np.argsort(display.value.max(axis=1), kind="stable")
    assert_allclose(offsets, display.coordinates[order])
    for row, color in zip(order, colors, strict=True):
        assert_allclose(color[:3], palette(int(obj.targets_[row].argmax()))[:3])
        assert_allclose(color[3], 0.12 + 0.88 * (strength[row] - 1 / 3) / (2 / 3), atol=1e-5)
    assert legend_texts(display.ax_) == ["0", "1", "2", f"labelled ({(Y != -1).sum()})"]
    assert display.colorbar_ is None


def test_many_columns_are_projected_on_principal_components():
    obj = grbb_objective(X, Y)
    display = PropagationDisplay.from_objective(obj, X)
    expected = PCA(2).fit(X / X.std(axis=0))
    assert_allclose(np.abs(display.coordinates), np.abs(expected.transform(X / X.std(axis=0))), atol=1e-8)
    share = expected.explained_variance_ratio_
    assert display.ax_.get_xlabel() == f"component 1 ({100 * share[0]:.0f} % of the variance)"
    assert display.ax_.get_ylabel() == f"component 2 ({100 * share[1]:.0f} %)"
    sparse = PropagationDisplay.from_objective(obj, sp.csr_matrix(X))
    assert_allclose(np.abs(sparse.coordinates), np.abs(display.coordinates), atol=1e-5)


def test_frames_with_names_categories_and_missing_values():
    obj = grbb_objective(X, Y)
    two = PropagationDisplay.from_objective(obj, pd.DataFrame(X[:, :2], columns=["alcohol", "acid"]))
    assert (two.ax_.get_xlabel(), two.ax_.get_ylabel()) == ("alcohol", "acid")
    frame = pd.DataFrame(X[:, :3]).assign(kind=pd.Categorical(TRUTH))
    frame.columns = frame.columns.astype(str)
    frame.iloc[0, 0] = np.nan
    assert np.isfinite(PropagationDisplay.from_objective(obj, frame).coordinates).all()


def test_own_coordinates_and_axes():
    obj = grbb_objective(X, Y)
    at = np.random.default_rng(0).random((178, 2))
    _, ax = plt.subplots()
    display = PropagationDisplay.from_objective(obj, coordinates=at, ax=ax, s=3)
    assert_allclose(display.coordinates, at)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert display.points_.get_sizes().tolist() == [3]
    assert display.plot() is display
    assert display.ax_ is not ax


@pytest.mark.filterwarnings("ignore::grbb_ext.objective.UnreachableRowsWarning")
def test_rows_out_of_reach_are_marked():
    graph = PATH.copy()
    graph[4, 5] = graph[5, 4] = 0
    obj = grbb_objective(None, [0, -1, 1, -1, -1, -1], graph=graph)
    display = PropagationDisplay.from_objective(obj, LINE)
    assert legend_texts(display.ax_) == ["out of reach (1)", "labelled (2)"]
    assert display.value[5] == 0


def test_many_classes_have_no_keys():
    random = np.random.default_rng(0)
    rows = random.random((120, 2))
    display = PropagationDisplay.from_objective(grbb_objective(rows, np.arange(120) % 24), rows)
    assert legend_texts(display.ax_) == ["labelled (120)"]


def test_from_estimator():
    model = GRBBClassifier(LGBMClassifier(n_estimators=3, n_jobs=1, verbosity=-1))
    with pytest.raises(NotFittedError):
        PropagationDisplay.from_estimator(model, X)
    with pytest.raises(NotFittedError):
        VarianceDisplay.from_estimator(model)
    model.fit(X, Y)
    display = PropagationDisplay.from_estimator(model, X)
    assert_allclose(display.value, model.objective_.targets_, atol=1e-6)
    with pytest.raises(ValueError, match="not the rows given to fit"):
        PropagationDisplay.from_estimator(model, X[::-1])
    variance = VarianceDisplay.from_estimator(model, lam=1.0)
    expected = VarianceDisplay.from_objective(model.objective_, model.raw_scores_, lam=1.0)
    assert_array_equal(variance.variance, expected.variance)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "Pass either X"),
        ({"X": LINE, "coordinates": LINE}, "Pass either X"),
        ({"X": LINE[:4]}, "There are 4 rows to draw but the objective has 6"),
        ({"X": LINE[:, :1]}, "at least two columns.*Pass coordinates="),
        ({"coordinates": np.zeros((6, 3))}, "two columns, got shape"),
        ({"coordinates": np.full((6, 2), np.nan)}, "must be finite"),
    ],
)
def test_bad_calls(arguments, message):
    obj = grbb_objective(None, [0, -1, -1, -1, -1, 1], graph=PATH)
    with pytest.raises(ValueError, match=message):
        PropagationDisplay.from_objective(obj, **arguments)


def test_weights_do_not_change_the_targets():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(80, 2))
    y = np.where(np.arange(80) < 30, (rows[:, 0] > 0) * 1 + (rows[:, 1] > 0), -1)
    obj = grbb_objective(rows, y, sample_weight=rng.uniform(0.1, 8, 80))
    display = PropagationDisplay.from_objective(obj, rows, raw_scores=rng.normal(size=(80, 3)))
    np.testing.assert_array_equal(display.value, obj.targets_)


def test_an_estimator_draws_rows_as_it_reads_them():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=(80, 2)), rng.integers(0, 3, 80)])
    rows[::9, 0] = -999.0
    y = np.where(np.arange(80) < 30, rows[:, 1] > 0, -1)
    booster = XGBClassifier(n_estimators=2, n_jobs=1, missing=-999.0)
    model = GRBBClassifier(booster, categorical_features=[2]).fit(rows, y)
    frame = pd.DataFrame(np.where(rows == -999.0, np.nan, rows), columns=list("abc"))
    expected = PropagationDisplay.from_objective(model.objective_, frame.astype({"c": "category"}))
    assert_allclose(PropagationDisplay.from_estimator(model, rows).coordinates, expected.coordinates)


def test_long_names_of_classes_fit_beside_the_colours():
    names = np.array(["no sign of the illness at all", "the illness itself"])
    y = [names[0], None, None, None, None, names[1]]
    display = PropagationDisplay.from_objective(grbb_objective(None, y, graph=PATH), LINE)
    label = display.colorbar_.ax.get_ylabel()
    assert label.endswith("towards no sign of the illne (-) or the illness itself (+)")
    display.figure_.canvas.draw()
    box = display.colorbar_.ax.yaxis.label.get_window_extent()
    assert 0 <= box.y0 < box.y1 <= display.figure_.bbox.height


@pytest.mark.parametrize("names", [["$10_$20", "x^^$"], ["a$", "b$_", "c"]])
def test_names_with_dollars_are_no_formulas(names):
    y = [names[0], None, None, None, names[-1], names[1]]
    frame = pd.DataFrame(LINE, columns=["$_$_", "$^^$"])
    display = PropagationDisplay.from_objective(grbb_objective(None, y, graph=PATH), frame)
    display.figure_.canvas.draw()
    assert display.ax_.get_xlabel() == r"\$_\$_"


def test_two_columns_that_are_sparse_or_miss_values():
    obj, rows = grbb_objective(X, Y), X[:, :2].copy()
    rows[3, 0] = np.nan
    expected = np.where(np.isnan(rows), np.nanmedian(rows, axis=0), rows)
    for given in (rows, sp.csr_array(rows)):
        assert_array_equal(PropagationDisplay.from_objective(obj, given).coordinates, expected)
