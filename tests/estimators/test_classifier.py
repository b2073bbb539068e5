"""What the classifier learns, predicts and remembers."""

from __future__ import annotations

from functools import partial

import lightgbm as lgb
import numpy as np
import pandas as pd
import polars as pl
import pytest
import xgboost as xgb
from scipy.special import expit
from sklearn.datasets import load_wine

from grbb_ext import GRBBClassifier, GRBBObjective, labeled_scorer, prediction_variance, suggest_labels


def test_unlabeled_rows_are_learned_from(classifier, moons):
    X, truth, y = moons
    model = GRBBClassifier(classifier()).fit(X, y)
    assert model.score(X, truth) > 0.95
    assert model.classes_.tolist() == [0, 1]
    assert model.n_features_in_ == 2
    assert isinstance(model.objective_, GRBBObjective)
    assert model.graph_.shape == (200, 200)
    assert model.n_iter_ == 10
    assert model.stop_reason_ == "All 10 rounds were run."
    assert (model.feature_cost_, model.paid_, model.ledger_) == (None, (), None)


def test_scores_are_those_of_the_native_booster(classifier, library, moons):
    X, _, y = moons
    model = GRBBClassifier(classifier()).fit(X, y)
    if library == "xgboost":
        raw = model.booster_.predict(xgb.DMatrix(X), output_margin=True)
    else:
        raw = model.booster_.predict(X, raw_score=True)
    np.testing.assert_array_equal(model.decision_function(X), raw)
    np.testing.assert_array_equal(model.forest_.predict(X), raw)
    np.testing.assert_array_equal(model.raw_scores_, raw)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expit(raw.astype(float)), rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), model.classes_[(raw > 0).astype(int)])


def test_transduction_keeps_labels_and_predicts_the_rest(classifier, moons):
    X, truth, y = moons
    y = y.copy()
    y[0] = 1 - truth[0]  # a label that the model will not follow
    model = GRBBClassifier(classifier()).fit(X, y)
    np.testing.assert_array_equal(model.transduction_[y != -1], y[y != -1])
    np.testing.assert_array_equal(model.transduction_[y == -1], model.predict(X)[y == -1])


def test_all_rows_labeled_with_the_papers_rule_is_the_plain_booster(classifier, library, moons):
    """Margins equal those of the library's own loop with gradient sigma(H) - y and hessian 1."""
    X, truth, _ = moons
    model = GRBBClassifier(classifier(), rule="paper").fit(X, truth)

    def plain(scores, data):
        return (expit(scores.astype(np.float32)) - truth).astype(np.float32), np.ones(200, dtype=np.float32)

    if library == "xgboost":
        params = {"max_depth": 3, "nthread": 1, "base_score": 0}
        booster = xgb.train(params, xgb.DMatrix(X), 10, obj=plain)
        expected = booster.predict(xgb.DMatrix(X), output_margin=True)
    else:
        params = {"num_leaves": 7, "min_data_in_leaf": 5, "num_threads": 1, "verbosity": -1, "objective": plain}
        expected = lgb.train({**params, "learning_rate": 0.1}, lgb.Dataset(X), 10).predict(X)
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-5, atol=1e-6)


# LightGBM 4.5's own fit warns so under scikit-learn 1.6.
@pytest.mark.filterwarnings("ignore:'force_all_finite' was renamed:FutureWarning")
def test_all_rows_labeled_is_the_wrapped_classifier_itself(classifier, library, moons):
    """With the default rule the gradient is the library's own, up to where scores start."""
    X, truth, _ = moons
    model = GRBBClassifier(classifier()).fit(X, truth)
    # 100 rows of each class: the libraries' own start, the log-odds of the mean, is 0 too.
    plain = classifier().fit(X, truth)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=1e-5)


@pytest.mark.filterwarnings("ignore:'force_all_finite' was renamed:FutureWarning")
def test_all_rows_of_three_classes_labeled_is_the_wrapped_classifier_but_for_the_step_of_lightgbm(classifier, library):
    """The page of estimators says so: the curvature is 2 p (1 - p), and LightGBM's own 1.5 p (1 - p)."""
    X, truth = load_wine(return_X_y=True)
    # LightGBM estimates the rows of a leaf from curvatures: near its least number, rounding decides.
    both = {"min_child_samples": 20} if library == "lightgbm" else {}
    steps, start = (0.1 * 4 / 3, {"boost_from_average": False}) if library == "lightgbm" else (0.3, {"base_score": 0})
    model = GRBBClassifier(classifier(**both, learning_rate=steps)).fit(X, truth)
    plain = classifier(**both, **start).fit(X, truth)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize(
    "labels",
    [
        lambda names: names.tolist(),
        lambda names: names,
        lambda names: pd.Series(names),
        lambda names: pd.Series(names).astype("category"),
        lambda names: pd.Series(names, dtype="string"),
        lambda names: pl.Series(names.tolist()),
    ],
    ids=["list", "objects", "pandas", "pandas-category", "pandas-string", "polars"],
)
def test_classes_may_be_text(classifier, moons, labels):
    X, truth, y = moons
    names = np.array([None if k == -1 else ["ham", "spam"][k] for k in y], dtype=object)
    model = GRBBClassifier(classifier()).fit(X, labels(names))
    numbered = GRBBClassifier(classifier()).fit(X, y)
    assert model.classes_.tolist() == ["ham", "spam"]
    np.testing.assert_array_equal(model.predict_proba(X), numbered.predict_proba(X))
    assert set(model.predict(X)) == {"ham", "spam"}
    assert model.score(X, np.array(["ham", "spam"])[truth]) > 0.9


@pytest.mark.parametrize(
    ("marker", "values"), [("?", ["ham", "spam", "?"]), (99, [3, 7, 99]), (-1, ["ham", "spam", -1])]
)
def test_any_marker(classifier, moons, marker, values):
    X, _, y = moons
    model = GRBBClassifier(classifier(), unlabeled=marker).fit(X, [values[k] for k in y])
    assert model.classes_.tolist() == values[:2]
    assert model.objective_.labeled_.tolist() == list(range(20))


def test_nan_marks_too_and_nullable_integers_stay_integers(classifier, moons):
    X, _, y = moons
    expected = GRBBClassifier(classifier()).fit(X, y).predict_proba(X)
    for labels in (np.where(y == -1, np.nan, y), pd.Series(y, dtype="Int64").replace(-1, pd.NA)):
        np.testing.assert_array_equal(GRBBClassifier(classifier()).fit(X, labels).predict_proba(X), expected)


def test_three_classes(classifier):
    X, truth = load_wine(return_X_y=True)
    y = np.where(np.arange(178) % 6 == 0, truth, -1)
    model = GRBBClassifier(classifier()).fit(X, y)
    assert model.score(X[y == -1], truth[y == -1]) > 0.85
    assert model.decision_function(X).shape == (178, 3)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_stages_end_in_the_model(classifier):
    X, truth = load_wine(return_X_y=True)
    model = GRBBClassifier(classifier(n_estimators=4)).fit(X, np.where(np.arange(178) % 6 == 0, truth, -1))
    stages = list(model.staged_predict_proba(X))
    shorter = GRBBClassifier(classifier(n_estimators=2)).fit(X, np.where(np.arange(178) % 6 == 0, truth, -1))
    assert len(stages) == 4
    np.testing.assert_array_equal(stages[3], model.predict_proba(X))
    np.testing.assert_array_equal(stages[1], shorter.predict_proba(X))


def test_labels_that_are_no_classes_count_as_wrong_with_a_warning(classifier, moons):
    X, truth, y = moons
    model = GRBBClassifier(classifier(), teacher="graph").fit(X, y)
    for score in (model.score, partial(labeled_scorer("accuracy"), model)):
        with pytest.warns(UserWarning, match=r"no classes of the model: \[7\]. They count as wrong"):
            assert score(X[:4], [7, 7, -1, truth[3]]) == score(X[3:4], truth[3:4]) / 3
        with pytest.raises(ValueError, match="Use the labels given to fit"):
            score(X[:2], ["0", "1"])


def test_score_leaves_out_rows_without_a_label(classifier, moons):
    X, truth, y = moons
    model = GRBBClassifier(classifier()).fit(X, y)
    assert model.score(X, y) == model.score(X[:20], truth[:20])
    weight = np.arange(200.0)
    assert model.score(X, y, weight) == model.score(X[:20], truth[:20], weight[:20])
    with pytest.raises(ValueError, match="nothing to score"):
        model.score(X, np.full(200, -1))


def test_one_class_is_refused_unless_the_others_are_named(classifier, moons):
    X, _, y = moons
    only = np.where(y == 1, 1, -1)
    with pytest.raises(ValueError, match="classes="):
        GRBBClassifier(classifier()).fit(X, only)
    with pytest.warns(UserWarning, match="Only the class 1"):
        model = GRBBClassifier(classifier()).fit(X, only, classes=[1, 0])
    assert model.classes_.tolist() == [0, 1]
    assert (model.predict(X) == 1).all()


def test_weights_of_rows_and_classes_reach_the_objective(classifier, moons):
    X, _, y = moons
    weight = np.linspace(1, 2, 200)
    model = GRBBClassifier(classifier(), class_weight={1: 5.0}).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.objective_.labeled_weight_, weight[:20] * np.where(y[:20] == 1, 5.0, 1.0))


def test_variance_and_suggestions_are_those_of_the_functions(classifier, moons):
    X, _, y = moons
    model = GRBBClassifier(classifier()).fit(X, y)
    assert model.prediction_variance(lam=1.0).mean == prediction_variance(model.objective_, model.raw_scores_, 1.0).mean
    expected = suggest_labels(model.objective_, model.raw_scores_, 3, "uncertainty").rows
    np.testing.assert_array_equal(model.suggest_labels(3, strategy="uncertainty").rows, expected)


def test_other_rows_than_those_of_fit_are_refused(classifier, moons):
    X, _, y = moons
    model = GRBBClassifier(classifier()).fit(X, y)
    np.testing.assert_array_equal(model.suggest_labels(3, X=X.tolist()).rows, model.suggest_labels(3, X=X).rows)
    for rows in (X[::-1], X[:100], X + 1.0):
        with pytest.raises(ValueError, match="not the rows given to fit"):
            model.suggest_labels(3, X=rows)
        with pytest.raises(ValueError, match="not the rows given to fit"):
            model.plan_labels(3, 1.0, X=rows)


def test_importances_add_up_to_one(classifier, library, moons):
    X, _, y = moons
    kind = "total_gain" if library == "xgboost" else "gain"
    X = np.column_stack([X, np.zeros(200)])
    importances = GRBBClassifier(classifier(importance_type=kind)).fit(X, y).feature_importances_
    assert importances[2] == 0
    assert importances.sum() == pytest.approx(1)


@pytest.mark.parametrize("make", [set, frozenset, lambda given: np.array(given, dtype=object)])
def test_classes_may_be_a_set_or_objects(classifier, moons, make):
    X, _, y = moons
    model = GRBBClassifier(classifier(n_estimators=2)).fit(X, y, classes=make([7, 1, 0]))
    assert model.classes_.tolist() == [0, 1, 7]
    assert model.classes_.dtype == model.predict(X).dtype == np.dtype(int)


class _Interrupt(xgb.callback.TrainingCallback):
    """A person who presses Ctrl-C after the first round."""

    def after_iteration(self, *arguments):
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    "settings",
    [
        {"sample_weight": np.full(200, -1.0)},
        {"eval_set": "rows"},
        {"callbacks": _Interrupt()},
    ],
    ids=["weights", "eval_set", "Ctrl-C"],
)
def test_a_fit_that_fails_leaves_the_model_as_it_was(classifier, library, moons, settings):
    X, truth, y = moons
    if "callbacks" in settings:
        interrupt = settings["callbacks"]
        settings = {"callbacks": [interrupt if library == "xgboost" else interrupt.after_iteration]}
    kind = np.where(truth == 1, "high", "low")
    rows = pd.DataFrame({"kind": pd.Categorical(kind, ["low", "high"]), "x": X[:, 0]})
    model = GRBBClassifier(classifier(), teacher="forest").fit(rows, y)
    before, state = model.predict_proba(rows), vars(model).copy()
    others = pd.DataFrame({"x": X[:, 0], "kind": pd.Categorical(kind, ["high", "low"]), "z": X[:, 1]})
    with pytest.raises((ValueError, KeyboardInterrupt)):
        model.fit(others, y, **settings)
    assert vars(model) == state
    np.testing.assert_array_equal(model.predict_proba(rows), before)
    unfitted = GRBBClassifier(classifier())
    with pytest.raises((ValueError, KeyboardInterrupt)):
        unfitted.fit(others, y, **settings)
    assert not hasattr(unfitted, "n_features_in_")
