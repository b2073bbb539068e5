"""Missing values, categories and scales enter through the trees."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from grbb_ext import GraphWarning, RefinedGraph, grbb_objective
from grbb_ext.table import CategoryOrder, read_table

RANDOM = np.random.default_rng(0)
N = 300
TRUTH = RANDOM.integers(2, size=N)
NOISE = RANDOM.normal(size=(N, 5))
Y = np.where(np.arange(N) < 30, TRUTH, -1)
FREE = Y < 0
SMALL = RefinedGraph(n_trees=40)


def objective(X, graph=SMALL):
    """The graph alone decides: no committee."""
    return grbb_objective(X, Y, graph=graph, teacher="graph")


def accuracy(obj):
    return np.mean((obj.targets_[FREE] > 0.5) == TRUTH[FREE])


def test_data_frames_split_into_numbers_and_categories():
    frame = pd.DataFrame(
        {
            "number": [1.0, np.nan, 3.0],
            "flag": [True, False, True],
            "kind": pd.Categorical([2, 1, None]),
            "text": ["b", None, "a"],
        }
    )
    columns = read_table(frame)
    assert_array_equal(columns.numbers, [[1, 1], [np.nan, 0], [3, 1]])
    assert columns.codes[:, 0].tolist() == [1, 0, -1]
    assert (columns.codes[:, 1] < 0).tolist() == [False, True, False]
    assert columns.codes[0, 1] > columns.codes[2, 1]


def test_categories_are_ordered_by_their_mean_target():
    columns = read_table(np.array([["a"], ["b"], ["a"], ["c"]], dtype=object))
    encoded = CategoryOrder.fit(columns, np.array([1.0, 0.0, 1.0, 0.5]), np.arange(4))(columns).ravel()
    assert encoded[0] == encoded[2] > encoded[3] > encoded[1]
    mean = 2.5 / 4
    assert_allclose(encoded[0], (2 + 10 * mean) / 12)
    shares = np.array([[1.0, 0.0, 0], [0.0, 1.0, 0], [1.0, 0.0, 0], [0.5, 0.5, 0]])
    several = CategoryOrder.fit(columns, shares, np.arange(4))(columns).ravel()
    assert abs(several[3]) < min(abs(several[0]), abs(several[1])) + 1e-12
    assert np.sign(several[0]) != np.sign(several[1])


# The graph of the noise is rightly doubted.
def test_a_category_that_tells_the_classes_apart_is_used():
    gains, committee = [], []
    plain = accuracy(objective(NOISE, graph="knn"))
    for seed in range(5):
        kind = np.where(np.random.default_rng(seed).uniform(size=N) < 0.95, TRUTH, 1 - TRUTH)
        frame = pd.DataFrame(NOISE).assign(kind=pd.Categorical(np.array(["x", "y"])[kind]))
        gains.append(accuracy(objective(frame)) - plain)
        committee.append(accuracy(grbb_objective(frame, Y)))
    # Distances leave the category out, so the trees start from noise: a small gain in every draw. The forest of the
    # committee sees it.
    assert min(gains) > 0
    assert np.mean(gains) > 0.015
    assert min(committee) > 0.85


def test_categories_alone_make_a_graph():
    letters = np.array(list("abcdef"))
    random = np.random.default_rng(1)
    frame = pd.DataFrame({i: pd.Categorical(letters[(3 * TRUTH + random.integers(3, size=N))]) for i in range(3)})
    assert accuracy(objective(frame)) > 0.95


def test_what_is_missing_can_tell_the_classes_apart():
    gains = []
    for seed in range(5):
        values = np.random.default_rng(seed).normal(size=N)
        rows = np.column_stack([NOISE, np.where(TRUTH == 1, np.nan, 0.0) + values])
        with pytest.warns(GraphWarning, match="missing values"):
            refined = objective(rows)
        with pytest.warns(GraphWarning, match="missing values"):
            plain = objective(rows, graph="knn")
        gains.append(accuracy(refined) - accuracy(plain))
    # Among five columns of noise the gain is small, .02 to .03, but it is there in every draw.
    assert min(gains) > 0
    assert np.mean(gains) > 0.015


def test_sparse_rows():
    random = np.random.default_rng(1)
    rows = np.where(random.uniform(size=(N, 8)) < 0.4, NOISE[:, :1] + 2 * TRUTH[:, None], 0.0)
    sparse = objective(sp.csr_array(rows))
    dense = objective(rows, graph=RefinedGraph(n_trees=40, normal_scores=False))  # sparse rows have none
    assert_allclose(sparse.graph_.toarray(), dense.graph_.toarray(), atol=1e-6)


def test_numbers_as_objects_are_numbers():
    rows = np.hstack([NOISE, TRUTH[:, None]])
    assert_array_equal(
        objective(rows.astype(object)).graph_.toarray(),
        objective(rows).graph_.toarray(),
    )


def test_infinite_values_are_refused():
    rows = NOISE.copy()
    rows[3, 2] = np.inf
    with pytest.raises(ValueError, match="infinite"):
        objective(rows)
