"""Shares of the classes: given, estimated, and when they are estimated unasked."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.datasets import make_moons

from grbb_ext import Committee, GRBBClassifier, grbb_objective, knn_graph
from grbb_ext.labels import read_labels
from grbb_ext.table import DistanceSpace, read_table
from grbb_ext.teacher import class_shares, matched_shares

MOONS, TRUTH = make_moons(300, noise=0.1, random_state=0)


def drawn_by_class(truth, n):
    """Label the first n rows of each class."""
    y = np.full(truth.size, -1)
    for k in np.unique(truth):
        y[np.flatnonzero(truth == k)[:n]] = k
    return y


def rare_class(n_rows=4_000, share=0.2, distance=3.0, seed=0):
    random = np.random.default_rng(seed)
    truth = (random.uniform(size=n_rows) < share).astype(int)
    return random.normal(size=(n_rows, 1)) + distance * truth[:, None], truth


def at_random(truth, n, seed=0):
    y = np.full(truth.size, -1)
    rows = np.random.default_rng(seed).choice(truth.size, n, replace=False)
    y[rows] = truth[rows]
    return y


def test_given_shares_move_the_targets_by_bayes_rule():
    y = at_random(TRUTH, 20)
    plain = grbb_objective(MOONS, y)
    share = np.mean(y[y >= 0])
    obj = grbb_objective(MOONS, y, teacher=Committee(class_prior={0: 0.9, 1: 0.1}))
    q = plain.targets_[y < 0].astype(float)
    odds = q / (1 - q) * (0.1 / share) / (0.9 / (1 - share))
    assert_allclose(obj.targets_[y < 0], odds / (1 + odds), atol=1e-6)
    assert_allclose(obj.teacher_.predict(MOONS[y < 0]), obj.targets_[y < 0], atol=1e-6)
    assert_array_equal(obj.targets_[y >= 0], y[y >= 0])
    assert obj.evidence_.class_shares == (0.9, 0.1)
    assert "Classes moved to the shares 0.90, 0.10." in str(obj.evidence_)


def test_shares_may_be_a_series_that_names_its_classes():
    labels = read_labels([0, 0, 1, 1, 1, -1])
    counts = pd.Series([1, 1, 1, 0]).value_counts(normalize=True)  # the most frequent class first
    assert class_shares(counts, None, labels).tolist() == [0.25, 0.75]
    with pytest.raises(ValueError, match=r"class_prior names \['0', '1'\]; the classes are \[0, 1\]"):
        class_shares(counts.rename(str), None, labels)


@pytest.mark.parametrize("n", [2, 5, 40])
def test_estimated_shares_have_the_least_energy_distance(n):
    X, truth = rare_class(300)
    y = drawn_by_class(truth, n)
    table, labels = read_table(X), read_labels(y)
    space = DistanceSpace.fit(table, scale="standard", normal_scores=True)
    Z = np.asarray(space(table))
    rows = [Z[y == k] for k in (0, 1)]
    b = np.array([cdist(own, Z[y < 0]).mean() for own in rows])
    A = np.array([[cdist(one, two).mean() for two in rows] for one in rows])
    A[np.diag_indices(2)] *= n / (n - 1)  # a label has no distance to itself
    grid = np.linspace(0.001, 0.999, 9_981)
    pi = np.column_stack([1 - grid, grid])
    energy = 2 * pi @ b - np.einsum("gk,kl,gl->g", pi, A, pi)
    loss = energy / b.mean() - 6 / n**2 * 0.5 * np.log(pi).sum(axis=1)
    assert_allclose(matched_shares(table, labels)[1], grid[loss.argmin()], atol=2e-3)


def test_many_labels_drawn_by_class_give_the_shares_of_all_rows():
    X, truth = rare_class()
    y = drawn_by_class(truth, 200)
    plain, found = (grbb_objective(X, y, teacher=Committee(("linear",), class_prior=p)) for p in (None, "unlabeled"))
    plain, found = (np.mean(obj.targets_[y < 0]) for obj in (plain, found))
    share = np.mean(truth[y < 0])
    assert abs(found - share) < 0.02 < abs(plain - share)


def test_shares_of_three_classes_and_of_classes_with_one_label_or_none():
    random = np.random.default_rng(0)
    truth = random.choice(3, size=3_000, p=[0.6, 0.3, 0.1])
    X = random.normal(size=(3_000, 2)) + 4.0 * np.eye(3)[truth][:, :2]
    table = read_table(X)
    y = drawn_by_class(truth, 50)
    assert_allclose(matched_shares(table, read_labels(y)), [0.6, 0.3, 0.1], atol=0.05)
    assert_allclose(matched_shares(read_table(sp.csr_array(X)), read_labels(y)), [0.6, 0.3, 0.1], atol=0.06)
    y[np.flatnonzero(y == 2)[1:]] = -1
    shares = matched_shares(table, read_labels(y))
    assert (shares > 0).all()
    assert_allclose(shares.sum(), 1.0)
    one_each = read_labels(drawn_by_class(truth, 1))
    assert_allclose(matched_shares(table, one_each), np.full(3, 1 / 3))
    unseen = read_labels(drawn_by_class(truth, 20), classes=[0, 1, 2, 3])
    assert_allclose(matched_shares(table, unseen)[3], 0.0, atol=2e-6)


@pytest.mark.parametrize(
    ("y", "estimated"),
    [
        (drawn_by_class(TRUTH, 5), True),
        (drawn_by_class(TRUTH, 4), False),  # too few to say what a class looks like
        (np.where(np.arange(300) == np.flatnonzero(TRUTH)[50], 1, drawn_by_class(TRUTH, 5)), False),  # 5 and 6
        (TRUTH, False),  # nothing to compare with
    ],
)
def test_shares_are_estimated_unasked_where_classes_have_equally_many_labels(y, estimated):
    labels, table = read_labels(y), read_table(MOONS)
    assert (class_shares("auto", table, labels) is not None) == estimated
    assert (grbb_objective(MOONS, y).evidence_.class_shares is not None) == estimated
    assert class_shares(None, table, labels) is None


def test_without_unlabeled_rows_the_shares_are_those_of_the_labels():
    table, labels = read_table(MOONS), read_labels(TRUTH)
    assert_allclose(class_shares("unlabeled", table, labels), [np.mean(TRUTH == 0), np.mean(TRUTH)])
    assert_allclose(grbb_objective(MOONS, TRUTH, teacher=Committee(class_prior="unlabeled")).targets_, TRUTH)


def test_shares_are_not_estimated_without_columns_or_classes():
    y = drawn_by_class(TRUTH, 10)
    W = knn_graph(MOONS)
    assert grbb_objective(None, y, graph=W).evidence_.class_shares is None
    with pytest.raises(ValueError, match="compares rows of X: pass X"):
        grbb_objective(None, y, graph=W, teacher=Committee(class_prior="unlabeled"))
    values = np.where(y >= 0, MOONS[:, 0], np.nan)
    assert grbb_objective(MOONS, values, loss="squared_error").evidence_.class_shares is None
    with pytest.raises(ValueError, match="leave it out for regression"):
        grbb_objective(MOONS, values, loss="squared_error", teacher=Committee(class_prior="unlabeled"))


def test_estimated_shares_are_saved_with_the_model(tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    model = GRBBClassifier(lightgbm.LGBMClassifier(n_estimators=2, verbosity=-1))
    model.fit(MOONS, drawn_by_class(TRUTH, 5)).save(tmp_path / "model")
    again = GRBBClassifier.load(tmp_path / "model")
    assert again.evidence_ == model.evidence_
    assert again.evidence_.class_shares is not None


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ({0: 0.9}, "the classes are"),
        ([0.5, 0.6], "with sum 1"),
        ([1.0, 0.0], "positive share"),
        ([0.2, 0.3, 0.5], "each of the classes"),
        ("balanced", "class_prior must be 'auto', 'unlabeled'"),
    ],
)
def test_shares_that_are_none(prior, message):
    with pytest.raises(ValueError, match=message):
        grbb_objective(MOONS, at_random(TRUTH, 20), teacher=Committee(class_prior=prior))


@pytest.mark.filterwarnings("ignore:Only the class")
@pytest.mark.parametrize("seen", [[0], [0, 1]])
def test_a_given_share_teaches_nothing_of_a_class_without_a_label(seen):
    X = np.random.default_rng(0).normal(size=(80, 3))
    y = np.where(np.arange(80) < 24, np.resize(seen, 80), -1)
    prior = Committee(class_prior=dict(zip(range(3), (0.3, 0.3, 0.4), strict=True)))
    q = grbb_objective(X, y, classes=[0, 1, 2], teacher=prior, verbose=False).targets_
    assert q[:, [k for k in range(3) if k not in seen]].max() < 0.1


def test_shares_do_not_depend_on_where_a_column_begins():
    random = np.random.default_rng(0)
    truth = np.arange(1000) < 100
    X = random.normal(size=(1000, 3)) + 1.5 * truth[:, None]
    y = np.full(1000, -1)
    y[:10], y[100:110] = 1, 0
    shares = [
        grbb_objective(rows, y, verbose=False).evidence_.class_shares
        for rows in (X, np.column_stack([X, np.full(1000, 1.7e9)]), X + np.array([1.7e9, 0, 0]))
    ]
    assert shares[0][1] < 0.25
    assert_allclose(shares[1:], [shares[0], shares[0]], atol=1e-4)
