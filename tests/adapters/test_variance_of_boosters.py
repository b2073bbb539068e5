import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from sklearn.datasets import make_moons

from grbb_ext import grbb_objective, prediction_variance, suggest_labels


@pytest.mark.parametrize("keywords", [{}, {"preset": "paper"}])
def test_scores_of_either_booster_will_do(keywords):
    X, truth = make_moons(150, noise=0.15, random_state=0)
    y = np.where(np.arange(150) < 12, truth, -1)
    obj = grbb_objective(X, y, **keywords)
    light = lgb.train({"objective": obj, "verbosity": -1, "num_threads": 1}, lgb.Dataset(X), 20)
    data = xgb.DMatrix(X)
    other = xgb.train({"base_score": 0, "nthread": 1, "eta": 0.1}, data, 20, obj=obj)
    scores = [light.predict(X, raw_score=True), other.predict(data, output_margin=True)]
    found = [prediction_variance(obj, H, lam=1.0).mean for H in scores]
    assert 0.5 < found[0] / found[1] < 2
    rows = [suggest_labels(obj, H, 3, lam=1.0).rows for H in scores]
    assert not np.isin(np.concatenate(rows), obj.labeled_).any()


def test_more_labels_lower_the_variance_after_retraining():
    X, truth = make_moons(200, noise=0.2, random_state=1)
    means = []
    for n_labels in (10, 100):
        obj = grbb_objective(X, np.where(np.arange(200) < n_labels, truth, -1), preset="paper")
        booster = lgb.train({"objective": obj, "verbosity": -1, "num_threads": 1}, lgb.Dataset(X), 30)
        means.append(prediction_variance(obj, booster.predict(X, raw_score=True), lam=0.3, kind="fisher").mean)
    assert means[1] < means[0]
