"""Parameters of the wrapped estimator: honoured, mapped to ours, or refused by name."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from lightgbm import LGBMClassifier, LGBMRanker, LGBMRegressor
from xgboost import XGBClassifier, XGBRanker, XGBRegressor, XGBRFClassifier, XGBRFRegressor
from xgboost.callback import LearningRateScheduler, TrainingCallback

from grbb_ext import GRBBClassifier, GRBBRegressor, RefinedGraph


def _trees(model) -> list:
    if model.library_ == "xgboost":
        return [json.loads(tree) for tree in model.booster_.get_dump(dump_format="json")]
    return model.booster_.dump_model()["tree_info"]


def test_the_wrapped_estimator_is_not_changed(classifier, moons):
    X, _, y = moons
    wrapped = classifier(random_state=3)
    before = wrapped.get_params()
    model = GRBBClassifier(wrapped, random_state=1).fit(X, y)
    assert wrapped.get_params() == before
    assert vars(wrapped) == vars(classifier(random_state=3))
    assert model.estimator_ is not wrapped


@pytest.mark.parametrize(
    ("settings", "seen"),
    [
        ({"n_estimators": 3}, lambda model: model.n_iter_ == 3),
        ({"max_depth": 1}, lambda model: model.forest_.depth.max() == 1),
        ({"learning_rate": 1e-9}, lambda model: np.abs(model.raw_scores_).max() < 1e-6),
        ({"reg_lambda": 1e9}, lambda model: np.abs(model.raw_scores_).max() < 1e-3),
        ({"monotone_constraints": (1, 0)}, lambda model: _rises(model)),
        ({"interaction_constraints": "[[0], [1]]"}, lambda model: _paths_are_pure(model)),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_honoured(classifier, moons, settings, seen):
    X, _, y = moons
    assert seen(GRBBClassifier(classifier(**settings)).fit(X, y))


@pytest.mark.parametrize("names", [["left", "right"], ["to the left", "to the right"]])
def test_constraints_of_xgboost_go_by_name(moons, names):
    X, _, y = moons
    frame = pd.DataFrame(X, columns=names)
    of_one = {"monotone_constraints": {names[0]: 1}, "interaction_constraints": [[names[0]], [names[1]]]}
    by_place = {"monotone_constraints": (1, 0), "interaction_constraints": "[[0], [1]]"}
    model, other = (GRBBClassifier(XGBClassifier(**settings)).fit(frame, y) for settings in (of_one, by_place))
    np.testing.assert_array_equal(model.raw_scores_, other.raw_scores_)
    assert _paths_are_pure(model)
    with pytest.raises(ValueError, match="nowhere"):
        GRBBClassifier(XGBClassifier(monotone_constraints={"nowhere": 1})).fit(frame, y)


def _rises(model) -> bool:
    grid = np.column_stack([np.linspace(-2, 3, 50), np.zeros(50)])
    return bool((np.diff(model.decision_function(grid)) >= 0).all())


def _paths_are_pure(model) -> bool:
    # A tree that starts with one column cannot go on with the other.
    forest = model.forest_
    return all(
        np.unique(forest.feature[a:b][forest.feature[a:b] >= 0]).size == 1
        for a, b in zip(forest.tree_start[:-1], forest.tree_start[1:], strict=True)
    )


def test_rows_and_columns_are_sampled_by_the_seed(classifier, library, moons):
    X, _, y = moons
    frequency = {"subsample_freq": 1} if library == "lightgbm" else {}

    def scores(seed, own=None):
        sampled = classifier(subsample=0.5, random_state=seed, **frequency)
        return GRBBClassifier(sampled, graph="knn", teacher="graph", random_state=own).fit(X, y).raw_scores_

    np.testing.assert_array_equal(scores(1), scores(1))
    assert (scores(1) != scores(2)).any()
    np.testing.assert_array_equal(scores(None, own=2), scores(2))
    np.testing.assert_array_equal(scores(1, own=2), scores(1))


def test_dart_is_honoured(classifier, library, moons):
    X, truth, y = moons
    kind = {"boosting_type": "dart"} if library == "lightgbm" else {"booster": "dart", "rate_drop": 0.5}
    model = GRBBClassifier(classifier(**kind)).fit(X, y)
    assert model.score(X, truth) > 0.9
    np.testing.assert_array_equal(model.forest_.predict(X), model.decision_function(X))


@pytest.mark.filterwarnings("ignore:.*XGBRF.* is deprecated:FutureWarning")  # from XGBoost 3.4 on
def test_random_forests_of_xgboost_are_honoured(moons):
    X, truth, y = moons
    model = GRBBClassifier(XGBRFClassifier(n_estimators=8, n_jobs=1)).fit(X, y)
    assert (model.n_iter_, model.forest_.n_trees) == (1, 8)
    assert model.score(X, truth) > 0.9
    np.testing.assert_array_equal(next(model.staged_predict_proba(X)), model.predict_proba(X))
    assert GRBBRegressor(XGBRFRegressor(n_estimators=8, n_jobs=1)).fit(X, truth).score(X, truth) > 0.8


def test_callbacks_are_called(classifier, library, moons):
    X, _, y = moons
    rounds = []
    if library == "lightgbm":
        GRBBClassifier(classifier()).fit(X, y, callbacks=[lambda env: rounds.append(env.iteration)])
    else:

        class Count(TrainingCallback):
            def after_iteration(self, model, epoch, evals_log):
                rounds.append(epoch)
                return False

        GRBBClassifier(classifier()).fit(X, y, callbacks=[Count()])
    assert rounds == list(range(10))


def test_callbacks_of_the_wrapped_xgboost_estimator_are_called(moons):
    X, _, y = moons
    still = XGBClassifier(n_estimators=3, callbacks=[LearningRateScheduler(lambda epoch: 0.0)], n_jobs=1)
    first, *_, last = GRBBClassifier(still).fit(X, y).staged_predict_proba(X)
    np.testing.assert_array_equal(first, last)  # XGBoost takes a new rate from the second round on


def test_a_number_for_missing_values(moons):
    X, _, y = moons
    holes = X.copy()
    holes[::5, 0] = np.nan
    filled = np.nan_to_num(holes, nan=-999.0)
    wrapped = {"n_estimators": 5, "n_jobs": 1}
    with_nan = GRBBClassifier(XGBClassifier(**wrapped)).fit(holes, y)
    with_number = GRBBClassifier(XGBClassifier(**wrapped, missing=-999.0)).fit(filled, y)
    np.testing.assert_array_equal(with_number.predict_proba(filled), with_nan.predict_proba(holes))
    np.testing.assert_array_equal(with_number.forest_.predict(filled), with_nan.decision_function(holes))


@pytest.mark.parametrize(("labels", "count"), [(None, 200), (20, 20)])
def test_weights_of_classes_are_mapped(classifier, library, moons, labels, count):
    X, truth, _ = moons
    y = np.where(np.arange(200) < (labels or 200), truth, -1)
    y[np.flatnonzero(y == 1)[: (y == 1).sum() // 2]] = -1  # fewer of class 1
    ours = GRBBClassifier(classifier(), class_weight={1: 4.0}).fit(X, y)
    mapped = [classifier(scale_pos_weight=4.0)]
    if library == "lightgbm":
        mapped.append(classifier(class_weight={1: 4.0}))
    for wrapped in mapped:
        np.testing.assert_array_equal(GRBBClassifier(wrapped).fit(X, y).raw_scores_, ours.raw_scores_)


def test_unbalance_is_mapped(moons):
    X, truth, _ = moons
    y = np.where((np.arange(200) < 40) & ((truth == 0) | (np.arange(200) < 10)), truth, -1)
    ratio = (y == 0).sum() / (y == 1).sum()
    assert ratio > 2
    wrapped = {"n_estimators": 5, "verbosity": -1, "n_jobs": 1}
    mapped = GRBBClassifier(LGBMClassifier(**wrapped, is_unbalance=True)).fit(X, y)
    ours = GRBBClassifier(LGBMClassifier(**wrapped), class_weight={1: ratio}).fit(X, y)
    np.testing.assert_array_equal(mapped.raw_scores_, ours.raw_scores_)


def test_base_score_of_each_class_is_that_of_plain_xgboost():
    X = np.random.default_rng(0).normal(size=(90, 3))
    y, start = np.arange(90) % 3, [0.2, 0.9, -0.5]
    few = {"n_estimators": 3, "n_jobs": 1}
    for several in (start[:2], [*start, 0.0]):
        with pytest.raises(ValueError, match="must be one number, or 3, one for each class"):
            GRBBClassifier(XGBClassifier(**few, base_score=several)).fit(X, y)
    alone = GRBBClassifier(XGBClassifier(**few, base_score=[0.2])).fit(X, np.minimum(y, 1))
    assert alone.forest_.base == pytest.approx(np.log(0.25))
    if tuple(map(int, xgb.__version__.split(".")[:2])) >= (3, 1):  # where XGBoost takes them
        plain = XGBClassifier(**few, base_score=start).fit(X, y)
        model = GRBBClassifier(XGBClassifier(**few, base_score=start)).fit(X, y)
        np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), rtol=1e-5)


def test_base_score_is_a_probability_for_classes_and_a_value_for_numbers(moons):
    X, truth, y = moons
    still = {"n_estimators": 1, "learning_rate": 1e-9, "n_jobs": 1}
    model = GRBBClassifier(XGBClassifier(**still, base_score=0.2)).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 0.2, atol=1e-6)
    model = GRBBRegressor(XGBRegressor(**still, base_score=7.0)).fit(X, truth)
    np.testing.assert_allclose(model.predict(X), 7.0, atol=1e-6)


@pytest.mark.parametrize(
    ("wrapped", "match"),
    [
        (LGBMClassifier(objective="cross_entropy"), "objective='cross_entropy'"),
        (LGBMClassifier(objective=lambda y, p: (p, p)), "objective=<function"),
        (LGBMClassifier(application="poisson"), "objective='poisson'"),
        (LGBMClassifier(boosting_type="rf"), "boosting_type='rf'"),
        (LGBMClassifier(linear_tree=True), "linear_tree"),
        (LGBMClassifier(boost_from_average=True), "boost_from_average"),
        (LGBMClassifier(pos_bagging_fraction=0.5), "pos_bagging_fraction"),
        (LGBMClassifier(sigmoid=2.0), "sigmoid"),
        (LGBMClassifier(class_weight="balanced", is_unbalance=True), "class_weight and is_unbalance"),
        (LGBMClassifier(early_stopping_round=3), "eval_set"),
        (LGBMClassifier(categorical_feature="d"), "categorical_feature='d' .* 'name:d' for names"),
        (XGBClassifier(objective="binary:hinge"), "objective='binary:hinge'"),
        (XGBClassifier(objective=lambda y, p: (p, p)), "objective=<function"),
        (XGBClassifier(booster="gblinear"), "gblinear"),
        (XGBClassifier(base_score=2.0), "base_score=2.0"),
        (XGBClassifier(tweedie_variance_power=1.5), "tweedie_variance_power"),
        (XGBClassifier(early_stopping_rounds=3), "eval_set"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refused_by_name(moons, wrapped, match):
    X, _, y = moons
    with pytest.raises(ValueError, match=match):
        GRBBClassifier(wrapped).fit(X, y)


def test_names_of_the_squared_error(moons):
    X, truth, _ = moons
    plain, *others = (
        GRBBRegressor(LGBMRegressor(n_estimators=3, n_jobs=1, verbosity=-1, objective=name)).fit(X, truth).predict(X)
        for name in (None, "l2", "mse", "mean_squared_error", "rmse", "l2_root", "root_mean_squared_error")
    )
    for predicted in others:
        np.testing.assert_array_equal(predicted, plain)


@pytest.mark.parametrize("wrapped", [LGBMRegressor(objective="l1"), XGBRegressor(objective="reg:absoluteerror")])
def test_other_losses_of_regressors_are_refused(moons, wrapped):
    X, truth, _ = moons
    with pytest.raises(ValueError, match="objective="):
        GRBBRegressor(wrapped).fit(X, truth)


@pytest.mark.parametrize(
    "wrapped",
    [
        XGBRegressor(scale_pos_weight=2.0),
        LGBMRegressor(scale_pos_weight=2.0),
        LGBMRegressor(is_unbalance=True),
        LGBMRegressor(class_weight="balanced"),
    ],
)
def test_weights_of_classes_are_refused_for_numbers(moons, wrapped):
    X, truth, _ = moons
    with pytest.raises(ValueError, match="is for classes"):
        GRBBRegressor(wrapped).fit(X, truth)


def test_the_number_of_classes_must_be_that_of_y(classifier, moons):
    X, _, y = moons
    assert GRBBClassifier(classifier(num_class=2)).fit(X, y).n_iter_ == 10
    with pytest.raises(ValueError, match="num_class=3"):
        GRBBClassifier(classifier(num_class=3)).fit(X, y)


def test_leaves_without_curvature_are_refused_for_lightgbm(moons):
    X, _, y = moons
    with pytest.raises(ValueError, match="min_child_weight=0"):
        GRBBClassifier(LGBMClassifier(min_child_weight=0), rule="labeled").fit(X, y)


def test_weights_given_twice_or_for_many_classes_are_refused(classifier, moons):
    X, _, y = moons
    with pytest.raises(ValueError, match="Leave scale_pos_weight out"):
        GRBBClassifier(classifier(scale_pos_weight=2.0), class_weight="balanced").fit(X, y)
    y = y.copy()
    y[:3] = 2
    with pytest.raises(ValueError, match=r"scale_pos_weight=2.0 is for two classes"):
        GRBBClassifier(classifier(scale_pos_weight=2.0)).fit(X, y)


@pytest.mark.parametrize(
    "settings",
    [
        {"lightgbm": {"boosting_type": "dart"}, "xgboost": {"booster": "dart", "rate_drop": 0.1}},
        {"lightgbm": {"cegb_penalty_split": 1.0}, "xgboost": {"num_parallel_tree": 3}},
        {"lightgbm": {"device_type": "gpu"}, "xgboost": {"multi_strategy": "multi_output_tree"}},
    ],
)
def test_refused_with_costs(classifier, library, moons, settings):
    X, _, y = moons
    name = next(iter(settings[library])).replace("boosting_type", "boosting")
    with pytest.raises(ValueError, match=f"{name}"):
        GRBBClassifier(classifier(**settings[library]), feature_costs=[1.0, 1.0], budget=1).fit(X, y)


@pytest.mark.parametrize(
    ("model", "wrapped"),
    [
        (GRBBClassifier, LGBMRegressor()),
        (GRBBClassifier, XGBRegressor()),
        (GRBBClassifier, LGBMRanker()),
        (GRBBClassifier, XGBRanker()),
        (GRBBClassifier, LGBMClassifier),
        (GRBBClassifier, "lightgbm"),
        (GRBBRegressor, LGBMClassifier()),
        (GRBBRegressor, XGBClassifier()),
    ],
)
def test_other_estimators_are_refused(moons, model, wrapped):
    X, _, y = moons
    with pytest.raises(TypeError, match="estimator must be"):
        model(wrapped).fit(X, y)


def test_none_takes_what_is_installed(moons, monkeypatch):
    X, _, y = moons
    assert GRBBClassifier().fit(X, y).library_ == "lightgbm"
    found = {"lightgbm": None, "xgboost": object()}
    monkeypatch.setattr("importlib.util.find_spec", found.get)
    assert GRBBClassifier(graph=RefinedGraph(n_neighbors=5)).fit(X, y).library_ == "xgboost"
    found["xgboost"] = None
    with pytest.raises(ImportError, match=r"grbb_ext\[lightgbm\].*grbb_ext\[xgboost\]"):
        GRBBClassifier().fit(X, y)


@pytest.mark.filterwarnings("ignore::grbb_ext.table.GraphWarning")
def test_missing_counts_where_labels_are_suggested():
    rng = np.random.default_rng(0)
    rows = np.where(rng.random((120, 3)) < 0.15, np.nan, rng.normal(size=(120, 3)))
    y = np.where(np.arange(120) < 40, rng.random(120) > 0.5, -1)
    marked = np.where(np.isnan(rows), -999.0, rows)
    plain = GRBBClassifier(XGBClassifier(n_estimators=3, n_jobs=1), verbose=False).fit(rows, y)
    model = GRBBClassifier(XGBClassifier(n_estimators=3, missing=-999.0, n_jobs=1), verbose=False).fit(marked, y)
    found = model.suggest_labels(5, X=marked).rows
    np.testing.assert_array_equal(found, plain.suggest_labels(5, X=rows).rows)


def test_missing_counts_for_the_teacher(moons):
    X, _, y = moons
    holes = np.where(np.arange(400).reshape(200, 2) % 7 == 0, np.nan, X)
    filled = np.nan_to_num(holes, nan=-999.0)
    model = GRBBClassifier(XGBClassifier(n_estimators=2, missing=-999.0, n_jobs=1)).fit(filled, y)
    teacher = model.objective_.teacher_
    np.testing.assert_array_equal(teacher.predict(filled), teacher.predict(holes))
    free = y == -1
    np.testing.assert_allclose(teacher.predict(filled)[free], model.objective_.targets_[free], atol=1e-12)
