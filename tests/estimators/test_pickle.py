"""pickle, joblib and skops keep everything, the training rows among it."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pytest
import skops.io
from sklearn.base import clone

from grbb_ext import Corrected, FeatureCosts, GRBBClassifier, GRBBRegressor, Laplacian


def by_pickle(model, folder):
    return pickle.loads(pickle.dumps(model))


def by_joblib(model, folder):
    joblib.dump(model, folder / "model.joblib")
    return joblib.load(folder / "model.joblib")


def by_skops(model, folder):
    skops.io.dump(model, folder / "model.skops")
    trusted = skops.io.get_untrusted_types(file=folder / "model.skops")
    assert {name.split(".")[0] for name in trusted} <= {
        *("collections", "grbb_ext", "lightgbm", "scipy", "sklearn", "xgboost")  # sklearn: the trees of the teacher
    }
    return skops.io.load(folder / "model.skops", trusted=trusted)


@pytest.fixture(params=[by_pickle, by_joblib, by_skops])
def travel(request):
    return request.param


@pytest.mark.parametrize("rule", ["targets", "paper", "corrected", "laplacian", "labeled"])
def test_a_classifier_travels_whole(classifier, moons, tmp_path, travel, rule):
    X, _, y = moons
    rule = {"corrected": Corrected(hessian="unit"), "laplacian": Laplacian(lam=0.1)}.get(rule, rule)
    model = GRBBClassifier(classifier(), rule=rule, feature_costs=FeatureCosts([1.0, 2.0]), mu=0.01)
    model.fit(X, y)
    copy = travel(model, tmp_path)
    assert copy.decision_function(X).tobytes() == model.decision_function(X).tobytes()
    assert copy.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    assert copy.transduction_.tolist() == model.transduction_.tolist()
    assert copy.ledger_ == model.ledger_
    assert copy.feature_costs == model.feature_costs
    if rule != "labeled":
        assert (copy.graph_ != model.graph_).nnz == 0
        assert copy.prediction_variance().mean == model.prediction_variance().mean
        assert copy.suggest_labels(2).rows.tolist() == model.suggest_labels(2).rows.tolist()
    assert clone(copy).fit(X, y).raw_scores_.tobytes() == model.raw_scores_.tobytes()


def test_a_regressor_travels_whole(regressor, moons, tmp_path, travel):
    X, _, y = moons
    model = GRBBRegressor(regressor()).fit(X, np.where(y == -1, np.nan, X[:, 0]))
    copy = travel(model, tmp_path)
    assert copy.predict(X).tobytes() == model.predict(X).tobytes()
    assert copy.transduction_.tobytes() == model.transduction_.tobytes()


def test_a_loaded_model_can_be_pickled(classifier, moons, tmp_path, travel):
    X, _, y = moons
    GRBBClassifier(classifier()).fit(X, y).save(tmp_path / "model")
    loaded = GRBBClassifier.load(tmp_path / "model")
    copy = travel(loaded, tmp_path)
    assert copy.decision_function(X).tobytes() == loaded.decision_function(X).tobytes()
    with pytest.raises(AttributeError, match="a saved model does not hold them"):
        copy.graph_  # noqa: B018
