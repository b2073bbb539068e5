"""Training watched on labelled rows, and cut to its best round."""

from __future__ import annotations

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from sklearn.datasets import make_moons
from sklearn.metrics import average_precision_score, log_loss, mean_squared_error, roc_auc_score

from grbb_ext import GRBBClassifier, GRBBRegressor


@pytest.fixture
def parts():
    X, truth = make_moons(400, noise=0.3, random_state=0)
    y = np.where(np.arange(400) < 40, truth, -1)
    return X[:300], y[:300], X[300:], truth[300:]


def test_the_model_is_cut_to_the_best_round(classifier, library, parts):
    X, y, X_valid, y_valid = parts
    model = GRBBClassifier(classifier(n_estimators=200, early_stopping_rounds=5)).fit(
        X, y, eval_set=[(X_valid, y_valid)]
    )
    losses = model.evals_result_["validation_0"]["logistic"]
    assert model.n_iter_ == int(np.argmin(losses)) + 1 < 100
    assert len(losses) == model.n_iter_ + 5
    assert f"round {model.n_iter_} of {len(losses)}" in model.stop_reason_
    assert log_loss(y_valid, model.predict_proba(X_valid)) == pytest.approx(min(losses), rel=1e-5)
    short = GRBBClassifier(classifier(n_estimators=model.n_iter_)).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), short.predict_proba(X))
    native = model.booster_.predict(xgb.DMatrix(X)) if library == "xgboost" else model.booster_.predict(X)
    np.testing.assert_allclose(native, model.predict_proba(X)[:, 1], rtol=1e-5)
    assert model.forest_.n_trees == model.n_iter_


def test_unlabeled_rows_of_the_evaluation_set_are_left_out(classifier, parts):
    X, y, X_valid, y_valid = parts
    marked = np.where(np.arange(100) % 2, y_valid, -1)
    wrapped = classifier(n_estimators=200, early_stopping_rounds=5)
    model = GRBBClassifier(wrapped).fit(X, y, eval_set=[(X_valid, marked)])
    expected = GRBBClassifier(wrapped).fit(X, y, eval_set=[(X_valid[1::2], y_valid[1::2])])
    assert model.evals_result_ == expected.evals_result_


def rank(y, probability):
    return "rank", roc_auc_score(y, probability), True


@pytest.mark.parametrize(
    ("metric", "score"), [("auc", roc_auc_score), ("aucpr", average_precision_score), (rank, roc_auc_score)]
)
def test_a_metric_that_should_rise(classifier, library, parts, metric, score):
    X, y, X_valid, y_valid = parts
    name = "eval_metric" if library == "xgboost" else "metric"
    wrapped = classifier(n_estimators=100, early_stopping_rounds=3, **{name: metric})
    model = GRBBClassifier(wrapped).fit(X, y, eval_set=(X_valid, y_valid))
    (areas,) = model.evals_result_["validation_0"].values()
    assert model.n_iter_ == int(np.argmax(areas)) + 1
    assert score(y_valid, model.decision_function(X_valid)) == pytest.approx(max(areas))


def test_text_classes_and_a_metric_of_the_users_own(classifier, library, parts):
    X, y, X_valid, y_valid = parts
    names = np.array(["ham", "spam", None], dtype=object)

    def brier(labels, probability):
        assert set(labels) == {"ham", "spam"}
        return float(np.mean((probability - (labels == "spam")) ** 2))

    name = "eval_metric" if library == "xgboost" else "metric"
    model = GRBBClassifier(classifier(**{name: brier})).fit(X, names[y], eval_set=[(X_valid, names[y_valid])])
    expected = np.mean((model.predict_proba(X_valid)[:, 1] - y_valid) ** 2)
    assert model.evals_result_["validation_0"]["brier"][-1] == pytest.approx(expected, rel=1e-5)


def test_a_callback_of_the_library_stops_too(classifier, library, parts):
    X, y, X_valid, y_valid = parts
    callback = xgb.callback.EarlyStopping(rounds=5) if library == "xgboost" else lgb.early_stopping(5, verbose=False)
    model = GRBBClassifier(classifier(n_estimators=200)).fit(X, y, eval_set=[(X_valid, y_valid)], callbacks=[callback])
    expected = GRBBClassifier(classifier(n_estimators=200, early_stopping_rounds=5)).fit(
        X, y, eval_set=[(X_valid, y_valid)]
    )
    assert model.n_iter_ == expected.n_iter_ < 100


@pytest.mark.parametrize("metrics", [["average_precision"], ["average_precision", "loss"], "own"])
def test_a_callback_follows_the_direction_of_its_metric(classifier, library, parts, metrics):
    X, y, X_valid, y_valid = parts

    def own(labels, probability):
        return "likelihood", float(np.mean(np.log(np.where(labels == 1, probability, 1 - probability)))), True

    watched = metrics[0] if isinstance(metrics, list) else "likelihood"
    settings = {"eval_metric" if library == "xgboost" else "metric": own if metrics == "own" else metrics}
    if library == "xgboost":
        named = {"metric_name": watched} if len(metrics) == 2 else {}
        callback = xgb.callback.EarlyStopping(rounds=5, **named)
    else:
        callback = lgb.early_stopping(5, first_metric_only=True, verbose=False)
    wrapped = classifier(n_estimators=200, max_depth=2, learning_rate=0.05, **settings)
    model = GRBBClassifier(wrapped).fit(X, y, eval_set=[(X_valid, y_valid)], callbacks=[callback])
    scores = model.evals_result_["validation_0"][watched]
    assert model.n_iter_ == int(np.argmax(scores)) + 1 > 1


def test_a_callback_may_watch_another_metric_next(parts):
    X, y, X_valid, y_valid = parts
    callback = xgb.callback.EarlyStopping(rounds=5)
    for metric, best in (("average_precision", np.argmax), ("loss", np.argmin)):
        wrapped = xgb.XGBClassifier(n_estimators=200, max_depth=2, learning_rate=0.05, n_jobs=1, eval_metric=metric)
        model = GRBBClassifier(wrapped).fit(X, y, eval_set=[(X_valid, y_valid)], callbacks=[callback])
        (scores,) = model.evals_result_["validation_0"].values()
        assert model.n_iter_ == int(best(scores)) + 1 > 1


def test_dart_is_refused(classifier, library, parts):
    """Its later rounds change the weights of the trees up to the best one."""
    X, y, X_valid, y_valid = parts
    dart = {"boosting_type": "dart"} if library == "lightgbm" else {"booster": "dart", "rate_drop": 0.5}
    wrapped = [classifier(**dart, early_stopping_rounds=5)]
    if library == "xgboost":
        wrapped.append(classifier(**dart, callbacks=[xgb.callback.EarlyStopping(rounds=5)]))
    for booster in wrapped:
        model = GRBBClassifier(booster)
        with pytest.raises(ValueError, match=r"early_stopping_rounds?=5 does not go with dart"):
            model.fit(X, y, eval_set=[(X_valid, y_valid)])
        assert model.without_early_stopping().fit(X, y, eval_set=[(X_valid, y_valid)]).n_iter_ == 10


def test_costs_count_what_the_cut_model_uses(classifier, parts):
    X, y, X_valid, y_valid = parts
    noise = np.random.default_rng(0).normal(size=(400, 3))
    X, X_valid = np.hstack([X, noise[:300]]), np.hstack([X_valid, noise[300:]])
    wrapped = classifier(n_estimators=200, early_stopping_rounds=5)
    model = GRBBClassifier(wrapped, feature_costs=[1.0, 2.0, 4.0, 8.0, 16.0], mu=0.1).fit(
        X, y, eval_set=[(X_valid, y_valid)]
    )
    used = model.forest_.features_used()
    assert model.paid_ == tuple(used.tolist())
    assert model.feature_cost_ == (2.0**used).sum()


def test_regression(regressor, parts):
    X, _, X_valid, _ = parts
    truth, valid = np.sin(X[:, 0]) + 9, np.sin(X_valid[:, 0]) + 9
    y = np.where(np.arange(300) < 60, truth, np.nan)
    wrapped = regressor(n_estimators=500, early_stopping_rounds=5, learning_rate=0.5)
    model = GRBBRegressor(wrapped, teacher="graph").fit(X, y, eval_set=[(X_valid, np.where(valid > 9, valid, np.nan))])
    errors = model.evals_result_["validation_0"]["squared_error"]
    keep = valid > 9
    assert model.n_iter_ == int(np.argmin(errors)) + 1
    assert np.mean((model.predict(X_valid[keep]) - valid[keep]) ** 2) / 2 == pytest.approx(min(errors), rel=1e-3)


def test_evaluation_sets_without_labels_or_shape_are_refused(classifier, parts):
    X, y, X_valid, y_valid = parts
    model = GRBBClassifier(classifier())
    with pytest.raises(ValueError, match="no labelled row"):
        model.fit(X, y, eval_set=[(X_valid, np.full(100, -1))])
    with pytest.raises(ValueError, match="list of pairs"):
        model.fit(X, y, eval_set=[X_valid])
    with pytest.raises(ValueError, match="features"):
        model.fit(X, y, eval_set=[(X_valid[:, :1], y_valid)])
    with pytest.raises(ValueError, match="inconsistent"):
        model.fit(X, y, eval_set=[(X_valid, y_valid[:5])])
    with pytest.raises(ValueError, match="classes="):
        model.fit(X, y, eval_set=[(X_valid, y_valid + 5)])


def test_unknown_metrics_are_refused(classifier, library, parts):
    X, y, X_valid, y_valid = parts
    name = "eval_metric" if library == "xgboost" else "metric"
    with pytest.raises(ValueError, match=f"{name}='ndcg'"):
        GRBBClassifier(classifier(**{name: "ndcg"})).fit(X, y, eval_set=[(X_valid, y_valid)])


@pytest.mark.parametrize(
    "booster",
    [
        lgb.LGBMClassifier(n_estimators=50, n_jobs=1, early_stopping_rounds=5),
        lgb.LGBMClassifier(num_boost_round=50, n_jobs=1, n_iter_no_change=5),
        xgb.XGBClassifier(n_estimators=50, n_jobs=1, early_stopping_rounds=5),
        xgb.XGBClassifier(n_estimators=50, n_jobs=1, callbacks=[xgb.callback.EarlyStopping(rounds=5)]),
    ],
)
def test_without_early_stopping(booster, parts):
    X, y, X_valid, y_valid = parts
    model = GRBBClassifier(booster, class_weight="balanced")
    fixed = model.without_early_stopping().fit(X, y)  # there is nothing to watch
    assert fixed.n_iter_ == 50
    assert fixed.class_weight == "balanced"
    model.fit(X, y, eval_set=[(X_valid, y_valid)])
    assert model.n_iter_ < 50
    again = model.without_early_stopping().fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.filterwarnings("ignore:.*XGBRF.* is deprecated:FutureWarning")  # from XGBoost 3.4 on
def test_a_forest_keeps_its_trees_without_early_stopping(parts):
    X, y = parts[:2]
    model = GRBBClassifier(xgb.XGBRFClassifier(n_estimators=7, n_jobs=1)).fit(X, y)
    assert model.without_early_stopping().fit(X, y).forest_.n_trees == 7


@pytest.mark.parametrize(
    "booster",
    [lgb.LGBMRegressor(n_estimators=3, n_jobs=1, metric="l2"), xgb.XGBRegressor(n_estimators=3, eval_metric="mse")],
)
def test_the_mean_squared_error(booster, parts):
    X, y, X_valid, _ = parts
    model = GRBBRegressor(booster).fit(X, np.where(y >= 0, X[:, 0], np.nan), eval_set=[(X_valid, X_valid[:, 1])])
    (errors,) = model.evals_result_["validation_0"].values()
    assert errors[-1] == pytest.approx(mean_squared_error(X_valid[:, 1], model.predict(X_valid)), rel=1e-5)
