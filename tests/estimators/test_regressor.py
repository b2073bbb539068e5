"""What the regressor learns, predicts and remembers."""

from __future__ import annotations

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb

from grbb_ext import GRBBRegressor


@pytest.fixture
def sine():
    X = np.random.default_rng(0).uniform(-3, 3, size=(200, 1))
    truth = np.sin(X[:, 0]) + 50
    return X, truth, np.where(np.arange(200) < 40, truth, np.nan)


def test_unlabeled_rows_are_learned_from(regressor, sine):
    X, truth, y = sine
    model = GRBBRegressor(regressor(n_estimators=40), teacher="graph").fit(X, y)
    assert model.score(X[40:], truth[40:]) > 0.9
    assert model.score(X, y) == model.score(X[:40], truth[:40])
    np.testing.assert_array_equal(model.transduction_[:40], truth[:40])
    np.testing.assert_array_equal(model.transduction_[40:], model.predict(X)[40:])


def test_the_start_is_the_mean_and_part_of_the_native_model(regressor, library, sine):
    X, truth, y = sine
    weight = np.linspace(1, 3, 200)
    model = GRBBRegressor(regressor(learning_rate=1e-6, n_estimators=1), teacher="graph").fit(X, y, weight)
    mean = np.average(truth[:40], weights=weight[:40])
    native = model.booster_.predict(xgb.DMatrix(X) if library == "xgboost" else X)
    np.testing.assert_allclose(native, mean, atol=1e-4)
    np.testing.assert_array_equal(model.predict(X), native)
    np.testing.assert_array_equal(model.forest_.predict(X), native)


def test_all_rows_labeled_with_the_papers_rule_is_the_plain_booster(regressor, library, sine):
    """Margins equal those of the library's own loop with gradient H - y and hessian 1, from the mean on."""
    X, truth, _ = sine
    model = GRBBRegressor(regressor(), rule="paper").fit(X, truth)
    mean = float(truth.mean())

    def plain(scores, data):
        return (scores - truth).astype(np.float32), np.ones(200, dtype=np.float32)

    if library == "xgboost":
        booster = xgb.train({"max_depth": 3, "nthread": 1, "base_score": mean}, xgb.DMatrix(X), 10, obj=plain)
        expected = booster.predict(xgb.DMatrix(X), output_margin=True)
    else:
        params = {"num_leaves": 7, "min_data_in_leaf": 5, "num_threads": 1, "verbosity": -1, "objective": plain}
        data = lgb.Dataset(X, init_score=np.full(200, mean))
        expected = mean + lgb.train(params, data, 10).predict(X)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-6)


# LightGBM 4.5's own fit warns so under scikit-learn 1.6.
@pytest.mark.filterwarnings("ignore:'force_all_finite' was renamed:FutureWarning")
def test_all_rows_labeled_is_the_wrapped_regressor_itself(regressor, sine):
    X, truth, _ = sine
    np.testing.assert_allclose(
        GRBBRegressor(regressor()).fit(X, truth).predict(X), regressor().fit(X, truth).predict(X), rtol=1e-5
    )


def test_a_mean_of_one_half_is_not_taken_for_a_forgotten_start(regressor):
    X = np.arange(40.0)[:, None]
    model = GRBBRegressor(regressor(), rule="paper").fit(X, (X[:, 0] >= 20).astype(float))
    assert model.predict(X)[0] < 0.3 < 0.7 < model.predict(X)[-1]


def test_minus_one_is_a_number(regressor):
    X = np.arange(40.0)[:, None]
    model = GRBBRegressor(regressor()).fit(X, np.where(X[:, 0] < 20, -1.0, 1.0))
    assert model.objective_.labeled_.size == 40
    assert model.predict(X)[0] < -0.5


def test_none_marks_a_row_too(regressor, sine):
    X, _, y = sine
    with_none = [None if np.isnan(value) else value for value in y]
    expected = GRBBRegressor(regressor(), teacher="graph").fit(X, y).predict(X)
    np.testing.assert_array_equal(GRBBRegressor(regressor(), teacher="graph").fit(X, with_none).predict(X), expected)


def test_stages_end_in_the_model(regressor, sine):
    X, _, y = sine
    model = GRBBRegressor(regressor(n_estimators=5), teacher="graph").fit(X, y)
    stages = list(model.staged_predict(X))
    assert len(stages) == 5
    np.testing.assert_array_equal(stages[-1], model.predict(X))
    np.testing.assert_array_equal(
        stages[1], GRBBRegressor(regressor(n_estimators=2), teacher="graph").fit(X, y).predict(X)
    )
