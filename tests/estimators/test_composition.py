"""The estimators among scikit-learn's own: pipelines, searches, calibration, copies."""

from __future__ import annotations

import copy
import io
import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from grbb_ext import (
    Committee,
    FeatureCosts,
    GRBBClassifier,
    GRBBRegressor,
    KNNGraph,
    SharedGraph,
    Targets,
    knn_graph,
)


def test_nested_parameters(classifier):
    model = GRBBClassifier(classifier())
    model.set_params(estimator__max_depth=2, rule__lam=0.5)
    assert model.estimator.max_depth == 2
    assert model.get_params()["estimator__max_depth"] == 2
    assert model.rule == Targets(lam=0.5)
    assert model.get_params()["rule__lam"] == 0.5
    with pytest.raises(ValueError, match="nonsense"):
        model.set_params(nonsense=1)


@pytest.mark.parametrize("costs", [None, [1.0, 1.0]])
def test_parameters_of_the_booster_that_stands_for_none(moons, costs):
    X, _, y = moons
    model = GRBBClassifier().set_params(estimator__n_estimators=3, feature_costs=costs).fit(X, y)
    expected = clone(GRBBClassifier(feature_costs=costs).fit(X, y).estimator_).set_params(n_estimators=3)
    assert model.n_iter_ == 3
    assert model.estimator.get_params() == expected.get_params()


def test_clone_keeps_parameters_and_forgets_the_fit(classifier, moons):
    X, _, y = moons
    shared, costs = SharedGraph(X), FeatureCosts([1.0, 2.0])
    model = GRBBClassifier(classifier(max_depth=2), graph=shared, feature_costs=costs, unlabeled=-1).fit(X, y)
    copied = clone(model)
    assert copied.graph is shared
    assert copied.feature_costs == costs
    assert copied.estimator is not model.estimator
    assert copied.get_params()["estimator__max_depth"] == 2
    assert not hasattr(copied, "booster_")
    np.testing.assert_array_equal(copied.fit(X, y).predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("through", ["pickle", "joblib", "deepcopy"])
def test_copies_predict_the_same(classifier, moons, through):
    X, _, y = moons
    model = GRBBClassifier(classifier(), feature_costs=[1.0, 2.0], budget=3).fit(X, y)
    model.forest_  # noqa: B018  # what is computed on demand travels along
    if through == "pickle":
        other = pickle.loads(pickle.dumps(model))
    elif through == "joblib":
        file = io.BytesIO()
        joblib.dump(model, file)
        file.seek(0)
        other = joblib.load(file)
    else:
        other = copy.deepcopy(model)
    np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(other.forest_.predict(X), model.forest_.predict(X))
    assert (other.paid_, other.feature_cost_, other.n_iter_) == (model.paid_, model.feature_cost_, model.n_iter_)
    assert other.suggest_labels(2).rows.tolist() == model.suggest_labels(2).rows.tolist()


def test_pipeline(classifier, moons):
    X, truth, y = moons
    model = make_pipeline(StandardScaler(), GRBBClassifier(classifier())).fit(X, y)
    assert model.score(X, truth) > 0.9
    assert is_classifier(model)
    assert is_regressor(GRBBRegressor())


def test_grid_search_over_both_sets_of_parameters(classifier, moons):
    X, truth, _ = moons
    shared = SharedGraph(X, KNNGraph(n_neighbors=5))
    grid = {"estimator__max_depth": [1, 3], "teacher__sharpen": [1.0, 3.0]}
    search = GridSearchCV(GRBBClassifier(classifier(), graph=shared), grid, cv=3).fit(X, truth)
    assert set(search.best_params_) == set(grid)
    assert search.best_estimator_.graph is shared
    assert search.best_estimator_.teacher == Committee(sharpen=search.best_params_["teacher__sharpen"])
    assert search.best_score_ > 0.9


def test_cross_validation_and_calibration(classifier, regressor, moons):
    X, truth, _ = moons
    assert cross_val_score(GRBBClassifier(classifier()), X, truth, cv=3).mean() > 0.9
    assert cross_val_score(GRBBRegressor(regressor()), X, truth.astype(float), cv=3).shape == (3,)
    calibrated = CalibratedClassifierCV(GRBBClassifier(classifier()), cv=3).fit(X, truth)
    assert calibrated.score(X, truth) > 0.9


def test_the_same_model_with_any_number_of_threads(classifier, library, moons):
    X, _, y = moons
    X = np.hstack([X, np.random.default_rng(0).normal(size=(200, 6))])
    sampling = {"subsample": 0.7, "colsample_bytree": 0.7, "random_state": 1}
    sampling |= {"subsample_freq": 1} if library == "lightgbm" else {}
    dumps = []
    for n_jobs in (1, 2, 1):
        model = GRBBClassifier(classifier(**{**sampling, "n_jobs": n_jobs}), n_jobs=n_jobs, teacher="graph").fit(X, y)
        booster = model.booster_
        dumps.append(booster.get_dump() if library == "xgboost" else booster.dump_model()["tree_info"])
    assert dumps[0] == dumps[1] == dumps[2]


def test_a_ready_affinity(classifier, moons):
    X, _, y = moons
    W = knn_graph(X, 5, weights="binary")
    model = GRBBClassifier(classifier(), graph=W).fit(X, y)
    expected = GRBBClassifier(classifier(), graph=KNNGraph(n_neighbors=5, weights="binary")).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))
    with pytest.raises(ValueError, match="SharedGraph"):
        model.fit(X[:100], y[:100])


def test_no_graph_is_built_where_the_rule_does_not_look(classifier, moons):
    X, _, y = moons
    model = GRBBClassifier(classifier(min_child_weight=0.01), rule="labeled").fit(X, y)
    assert model.graph_ is None
    with pytest.raises(ValueError, match="labeled"):
        model.prediction_variance()
