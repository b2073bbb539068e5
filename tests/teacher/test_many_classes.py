"""Beyond 32 outputs the time and memory of trees are bounded; up to there nothing changes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import pdist
from sklearn.ensemble import ExtraTreesRegressor

from grbb_ext import RefinedGraph, grbb_objective
from grbb_ext.labels import read_labels
from grbb_ext.table import read_table
from grbb_ext.teacher import ForestExpert
from grbb_ext.teacher import _forest as forest_module
from grbb_ext.teacher import _trees as trees_module

SETTINGS = RefinedGraph(n_trees=5, min_samples_leaf=3)


def blobs(n_classes: int, n_rows: int = 600, n_labels: int = 300, seed: int = 0):
    random = np.random.default_rng(seed)
    truth = random.integers(0, n_classes, n_rows)
    truth[:n_classes] = np.arange(n_classes)
    X = random.normal(size=(n_classes, 6))[truth] + 0.3 * random.normal(size=(n_rows, 6))
    return X, truth, np.where(np.arange(n_rows) < n_labels, truth, -1)


@pytest.mark.parametrize("n_outputs", [2, 32])
def test_up_to_32_outputs_the_trees_are_those_of_the_outputs_themselves(n_outputs):
    X, truth, _ = blobs(n_outputs)
    target = np.eye(n_outputs)[truth]
    trees = trees_module.TargetTrees(X, target, SETTINGS, np.random.default_rng(0), 1)
    seed = int(np.random.default_rng(0).integers(2**31))
    plain = ExtraTreesRegressor(5, min_samples_leaf=3, max_features=3, random_state=seed).fit(X, target)
    assert_array_equal(trees.leaves(X), plain.apply(X).T)


def test_outputs_that_vary_in_32_directions_keep_their_distances():
    random = np.random.default_rng(0)
    target = np.round(random.uniform(size=(100, 32)) * 2**15) / 2**16  # 33 directions, one of them constant
    target = np.hstack([target, 0.5 * np.ones((100, 8))])
    found = trees_module.leading_directions(target)
    assert found.shape == (100, 32)
    ratio = pdist(found) / pdist(target)
    assert_allclose(ratio, ratio[0], rtol=1e-3)


def test_the_directions_do_not_depend_on_the_order_of_rows():
    random = np.random.default_rng(0)
    target = np.round(random.uniform(size=(200, 50)) * 2**16) / 2**16
    order = random.permutation(200)
    assert_array_equal(trees_module.leading_directions(target[order]), trees_module.leading_directions(target)[order])


@pytest.mark.parametrize(("n_classes", "n_trees"), [(32, 64), (64, 32), (300, 16)])
def test_the_forest_has_fewer_trees_beyond_32_outputs(n_classes, n_trees):
    X, _, y = blobs(n_classes)
    assert len(ForestExpert.fit(read_table(X), read_labels(y)).trees) == n_trees


@pytest.mark.parametrize("n_classes", [40, 300])
def test_trees_on_all_rows_have_at_most_32_outputs_and_leaves_hold_a_bounded_number_of_values(monkeypatch, n_classes):
    X, _, y = blobs(n_classes)
    fitted = []
    fit = ExtraTreesRegressor.fit

    def counting(self, X, y, *args, **settings):
        fitted.append((X.shape[0], y.shape[1] * self.n_estimators))
        return fit(self, X, y, *args, **settings)

    monkeypatch.setattr(ExtraTreesRegressor, "fit", counting)
    obj = grbb_objective(X, y, graph=SETTINGS)
    on_all = [work for n, work in fitted if n == 600]
    assert on_all
    assert max(on_all) <= 32 * SETTINGS.n_trees
    forest = next(expert for expert in obj.teacher_.experts if expert.name == "forest")
    assert sum(tree.tree_.value.shape[1] for tree in forest.trees) <= max(32 * 100, 25 * n_classes)


def test_a_hundred_classes_are_told_apart_as_well_as_without_bounds(monkeypatch):
    X, truth, y = blobs(100, n_rows=1000, n_labels=400)
    unlabeled = y < 0

    def accuracy() -> float:
        return float(np.mean(grbb_objective(X, y).targets_[unlabeled].argmax(axis=1) == truth[unlabeled]))

    bounded = accuracy()
    for module in (forest_module, trees_module):
        monkeypatch.setattr(module, "MOST_OUTPUTS", 1000)
    full = accuracy()
    assert full > 0.8
    assert bounded >= 0.95 * full
