import matplotlib as mpl
import numpy as np
import pytest

mpl.use("agg")

import matplotlib.pyplot as plt

from grbb_ext import VarianceDisplay, grbb_objective, prediction_variance

PATH = np.diag(np.ones(5), 1) + np.diag(np.ones(5), -1)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_points_are_predictions_and_deviations():
    obj = grbb_objective(None, [0, -1, -1, -1, -1, 1], graph=PATH)
    H = np.linspace(-2, 2, 6)
    display = VarianceDisplay.from_objective(obj, H, lam=1.0, kind="fisher")
    expected = prediction_variance(obj, H, lam=1.0, kind="fisher", per_row=True)
    drawn = np.asarray(display.points_.get_offsets())
    np.testing.assert_allclose(drawn[:, 0], 1 / (1 + np.exp(-H)))
    np.testing.assert_allclose(drawn[:, 1], np.sqrt(expected.per_row))
    assert "fisher" in display.ax_.get_ylabel()
    assert display.figure_ is display.ax_.figure


def test_draws_on_the_axes_given_and_again():
    obj = grbb_objective(None, [0, -1, 2, -1, -1, 1], graph=PATH)
    _, ax = plt.subplots()
    display = VarianceDisplay.from_objective(obj, np.zeros((6, 3)), lam=1.0, ax=ax)
    assert display.ax_ is ax
    np.testing.assert_allclose(display.prediction, 1 / 3)
    assert display.plot() is display
    assert display.ax_ is not ax


@pytest.mark.filterwarnings("ignore::grbb_ext.objective.UnreachableRowsWarning")
def test_rows_out_of_reach_are_counted_in_the_legend():
    graph = PATH.copy()
    graph[4, 5] = graph[5, 4] = 0
    obj = grbb_objective(None, [0.0, np.nan, np.nan, 3.0, 2.0, np.nan], graph=graph, loss="squared_error")
    display = VarianceDisplay.from_objective(obj, np.arange(6.0), lam=1.0)
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert "1 rows out of reach" in texts
    assert len(display.points_.get_offsets()) == 5
    assert display.ax_.get_xlabel() == "prediction"


def test_deviations_stay_below_what_a_probability_can_have():
    variance = np.array([0.01, 0.09, 0.36, 4.0])
    shared = {
        "prediction": np.full(4, 0.5),
        "variance": variance,
        "labeled": np.array([0]),
        "mean": 0.09,
        "kind": "fisher",
    }
    display = VarianceDisplay(**shared, is_probability=True).plot()
    np.testing.assert_allclose(np.asarray(display.points_.get_offsets())[:, 1], [0.1, 0.3])
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert "2 rows above 0.5, no information" in texts
    # The legend names the height of the line.
    assert "root of the mean variance, 0.3" in texts
    assert max(np.asarray(points.get_offsets())[:, 1].max() for points in display.ax_.collections) == 0.5
    display = VarianceDisplay(**shared).plot()  # of numbers
    np.testing.assert_allclose(np.asarray(display.points_.get_offsets())[:, 1], [0.1, 0.3, 0.6, 2.0])
