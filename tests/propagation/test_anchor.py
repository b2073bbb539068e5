"""The anchor operator: its two factors, and how far it is from the operator on all rows."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits, make_moons

from grbb_ext import Smooth, knn_graph
from grbb_ext.propagation import PROPAGATIONS, AnchorNodes
from grbb_ext.table import read_table

KINDS = ["smooth", "nonlocal", "harmonic", "poisson"]


def anchor_nodes(sample, labeled, kind="smooth", **settings):
    return AnchorNodes(read_table(sample), read_table(labeled), PROPAGATIONS[kind], **settings)


def moons(n_rows=1500, n_labels=12):
    X, truth = make_moons(n_rows, noise=0.12, random_state=0)
    return X, truth, np.arange(n_labels)


@pytest.mark.parametrize("kind", KINDS)
def test_the_factors_multiply_to_the_extension(kind):
    X, truth, labeled = moons()
    P = anchor_nodes(X, X[labeled], kind=kind, n_anchors=80)
    values = np.column_stack([2.0 * truth[labeled] - 1.0, np.arange(labeled.size)])
    product = P.Z(read_table(X)).toarray() @ P.operator.dense() @ values
    assert_allclose(P.extend(read_table(X), values), product, rtol=1e-4, atol=1e-4)
    assert_allclose(P.extend(read_table(X), values[:, 0]), product[:, 0], rtol=1e-4, atol=1e-4)
    assert P.operator.stochastic == (kind in ("harmonic", "nonlocal"))


def test_rows_of_z_are_means_of_the_nearest_anchors():
    X, _, labeled = moons()
    P = anchor_nodes(X, X[labeled], n_anchors=80, n_nearest=3, scale=None)
    assert P.Z(read_table(X)).shape == (1500, 80 + labeled.size)
    Z = P.Z(read_table(X)).toarray()
    assert_array_equal(Z[:, 80:], 0)  # a row hangs on anchors alone
    assert_array_equal((Z > 0).sum(axis=1), 3)
    assert_allclose(Z.sum(axis=1), 1, rtol=1e-6)
    distance = np.linalg.norm(X[:, None] - P.anchors[None], axis=2)
    for row in (0, 500, 1499):
        nearest = np.argsort(distance[row])[:3]
        assert set(np.flatnonzero(Z[row])) == set(nearest)
        weight = np.exp(-((distance[row, nearest] / distance[row, nearest[-1]]) ** 2))
        assert_allclose(Z[row, nearest], weight / weight.sum(), rtol=1e-5)


@pytest.mark.parametrize("kind", ["harmonic", "nonlocal"])
def test_a_stochastic_operator_stays_one(kind):
    X, _, labeled = moons()
    P = anchor_nodes(X, X[labeled], kind=kind, n_anchors=60)
    extended = P.extend(read_table(X), np.ones(labeled.size))
    assert_allclose(extended, 1.0, rtol=1e-5)


def test_blocks_of_rows_give_what_all_rows_give():
    X, _, labeled = moons()
    P = anchor_nodes(X, X[labeled], n_anchors=60)
    copy = pickle.loads(pickle.dumps(P))
    whole = P.nearest(read_table(X))
    for rows in (slice(0, 0), slice(0, 1), slice(7, 900)):
        for part, expected in zip(copy.nearest(read_table(X).take(rows)), whole, strict=True):
            assert_allclose(part, expected[rows], rtol=1e-5)


def agreement(X, truth, labeled, n_anchors):
    """Return the accuracy of the operator on all rows and of anchors, and how often their signs agree."""
    rest = np.setdiff1d(np.arange(len(X)), labeled)
    values = 2.0 * truth[labeled] - 1.0
    full = Smooth().on(knn_graph(X), labeled).extend(values)[rest]
    anchors = anchor_nodes(X, X[labeled], n_anchors=n_anchors).extend(read_table(X[rest]), values)
    right = [np.mean((f > 0) == truth[rest]) for f in (full, anchors)]
    return right[0], right[1], np.mean((full > 0) == (anchors > 0))


def test_anchors_follow_the_operator_on_all_rows():
    X, digit = load_digits(return_X_y=True)
    labeled = np.random.default_rng(0).choice(len(X), 100, replace=False)
    full, few, agree_few = agreement(X, digit >= 5, labeled, 200)
    _, many, agree_many = agreement(X, digit >= 5, labeled, 1000)
    assert full > 0.95
    assert few > full - 0.04
    assert many > full - 0.015
    assert agree_many > max(agree_few, 0.97)


def test_where_every_row_is_an_anchor_the_graph_is_that_of_all_rows():
    X, truth, labeled = moons(400)
    full, anchors, agree = agreement(X, truth, labeled, 400)
    assert abs(full - anchors) < 0.01
    assert agree > 0.98


def test_missing_values_are_the_samples_medians():
    X, _, labeled = moons()
    P = anchor_nodes(X, X[labeled], n_anchors=50, scale="standard")
    holes = X[:20].copy()
    holes[:, 0] = np.nan
    filled = X[:20].copy()
    filled[:, 0] = np.median(X[:, 0])
    assert_array_equal(P.nearest(read_table(holes))[0], P.nearest(read_table(filled))[0])


def test_rows_near_anchors_without_a_label_have_no_share():
    X, _, labeled = moons()
    far = X[100:] + 1000.0
    P = anchor_nodes(np.vstack([X, far]), X[labeled], n_anchors=100, n_neighbors=4, scale=None)
    index, share = P.nearest(read_table(far))
    assert index.shape == (1400, 5)
    assert_array_equal(share, 0)
    assert_allclose(P.nearest(read_table(X))[1].sum(axis=1), 1, rtol=1e-6)
    assert_array_equal(P.extend(read_table(far), np.ones(labeled.size)), 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_anchors": 5}, "too few"),
        ({"n_anchors": 0}, "positive integer"),
        ({"sample": np.zeros((50, 2))}, "larger sample of different rows"),
        ({"sample": np.full((50, 2), np.inf)}, "infinite"),
        ({"labeled": np.zeros((3, 5))}, "2 columns but the labelled rows have 5"),
        ({"labeled": np.zeros(2)}, "two-dimensional"),
    ],
)
def test_bad_input_is_named(change, message):
    X, _, labeled = moons(200)
    with pytest.raises(ValueError, match=message):
        anchor_nodes(**{"sample": X, "labeled": X[labeled], "n_anchors": 50, **change})
