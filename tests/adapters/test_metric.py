import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from numpy.testing import assert_allclose
from sklearn.datasets import make_moons
from sklearn.metrics import accuracy_score, average_precision_score, log_loss, roc_auc_score

from grbb_ext import GRBBClassifier, grbb_objective
from grbb_ext.adapters import lightgbm as lgb_adapter
from grbb_ext.adapters import xgboost as xgb_adapter
from grbb_ext.evaluation import evaluate

X, TRUTH = make_moons(200, noise=0.2, random_state=0)
CLASSES = np.array([3, 8])
Y = np.where(np.arange(200) % 10 == 0, CLASSES[TRUTH], -1)
OBJ = grbb_objective(X, Y)
PARTLY = np.where(np.arange(200) % 3 == 0, -1, CLASSES[TRUTH])


def brier(y, probability, sample_weight=None):
    """Score as a user's own metric: labels are the user's, predictions are probabilities of the second class."""
    return np.average((probability - (y == 8)) ** 2, weights=sample_weight)


@pytest.mark.parametrize("name", ["loss", "error", "accuracy", "auc", "aucpr", "average_precision", brier])
def test_both_libraries_report_the_score_of_the_labelled_rows(name):
    kept = PARTLY != -1
    train = xgb.DMatrix(X)
    history: dict = {}
    booster = xgb.train(
        {"base_score": 0, "disable_default_eval_metric": True},
        train,
        3,
        obj=OBJ,
        evals=[(xgb.DMatrix(X, label=PARTLY), "valid")],
        custom_metric=xgb_adapter.metric(OBJ, name),
        evals_result=history,
        verbose_eval=False,
    )
    raw = booster.predict(train, output_margin=True)[kept]
    expected = {
        "loss": log_loss(TRUTH[kept], OBJ.predict_proba(raw)),
        "error": 1 - accuracy_score(CLASSES[TRUTH][kept], OBJ.predict(raw)),
        "accuracy": accuracy_score(CLASSES[TRUTH][kept], OBJ.predict(raw)),
        "auc": roc_auc_score(TRUTH[kept], raw),
        "aucpr": average_precision_score(TRUTH[kept], raw),
        "average_precision": average_precision_score(TRUTH[kept], raw),
        brier: np.mean((OBJ.predict_proba(raw)[:, 1] - TRUTH[kept]) ** 2),
    }
    (values,) = history["valid"].values()
    assert_allclose(values[-1], expected[name], atol=1e-5)

    history = {}
    data = lgb.Dataset(X, free_raw_data=False)
    booster = lgb.train(
        {"objective": OBJ, "verbosity": -1},
        data,
        3,
        valid_sets=[lgb.Dataset(X, label=PARTLY, reference=data)],
        feval=lgb_adapter.metric(OBJ, name),
        callbacks=[lgb.record_evaluation(history)],
    )
    raw = booster.predict(X, raw_score=True)
    (values,) = history["valid_0"].values()
    assert_allclose(values[-1], evaluate(OBJ, raw, PARTLY, name).value, atol=1e-9)


def test_early_stopping_takes_the_right_direction():
    data = lgb.Dataset(X)
    for name in ("accuracy", "loss"):
        history: dict = {}
        booster = lgb.train(
            {"objective": OBJ, "verbosity": -1},
            data,
            60,
            valid_sets=[lgb.Dataset(X, label=CLASSES[TRUTH], reference=data)],
            feval=lgb_adapter.metric(OBJ, name),
            callbacks=[lgb.early_stopping(60, verbose=False), lgb.record_evaluation(history)],
        )
        (values,) = history["valid_0"].values()
        best = max(values) if name == "accuracy" else min(values)
        assert values[booster.best_iteration - 1] == best


def test_several_classes_and_regression():
    y = np.where(np.arange(200) % 5 == 0, np.arange(200) % 3, -1)
    obj = grbb_objective(X, y, teacher="graph")
    raw = np.random.default_rng(0).normal(size=(200, 3))
    kept = y >= 0
    assert_allclose(evaluate(obj, raw, y).value, log_loss(y[kept], obj.predict_proba(raw[kept])))
    target = np.where(np.arange(200) % 5 == 0, X[:, 0], np.nan)
    obj = grbb_objective(X, target, loss="squared_error", teacher="graph")
    assert_allclose(evaluate(obj, X[:, 0] + 2, target, "rmse").value, 2)
    assert_allclose(evaluate(obj, X[:, 0] + 3, target, "mse").value, 9)
    assert_allclose(evaluate(obj, X[:, 0] + 2, target, "loss").value, 2)


def test_weights():
    weight = np.where(np.arange(200) < 100, 1.0, 0.0)
    raw = np.random.default_rng(0).normal(size=200)
    y = CLASSES[TRUTH]
    expected = accuracy_score(y[:100], OBJ.predict(raw[:100]))
    assert_allclose(evaluate(OBJ, raw, y, "accuracy", weight).value, expected)
    expected = np.mean((OBJ.predict_proba(raw)[:100, 1] - TRUTH[:100]) ** 2)
    assert evaluate(OBJ, raw, y, brier, weight) == ("brier", pytest.approx(expected), False)


def test_functions_may_say_their_name_and_direction():
    raw = np.random.default_rng(0).normal(size=200)
    found = evaluate(OBJ, raw, CLASSES[TRUTH], lambda y, p: ("right", np.mean((p > 0.5) == (y == 8)), True))
    assert found == ("right", evaluate(OBJ, raw, CLASSES[TRUTH], "accuracy").value, True)
    with pytest.raises(TypeError, match="must return a number"):
        evaluate(OBJ, raw, CLASSES[TRUTH], lambda y, p: "high")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": np.full(200, -1)}, "no labelled row"),
        ({"y": np.full(200, 4)}, r"outside the classes \[3, 8\]"),
        ({"y": CLASSES[TRUTH][:50]}, "same rows"),
        ({"metric": "ndcg"}, "metric must be"),
        ({"metric": "rmse"}, "does not suit the loss 'logistic'"),
    ],
)
def test_wrong_evaluations(arguments, message):
    with pytest.raises(ValueError, match=message):
        evaluate(**({"obj": OBJ, "raw_scores": np.zeros(200), "y": CLASSES[TRUTH]} | arguments))


@pytest.mark.parametrize("metric", ["auc", "aucpr", lambda y, probability, sample_weight=None: np.nan])
@pytest.mark.parametrize("only", ["label", "weight"])
def test_a_metric_that_is_nan_is_refused(metric, only):
    y, weight = (np.full(200, 8), None) if only == "label" else (CLASSES[TRUTH], 1.0 * TRUTH)
    data = lgb.Dataset(X)
    params = {"objective": OBJ, "verbosity": -1, "early_stopping_round": 2}
    valid = lgb.Dataset(X, label=y, weight=weight, reference=data)
    with pytest.raises(ValueError, match=r"is NaN on the evaluation set, .* both classes"):
        lgb.train(params, data, 5, valid_sets=[valid], feval=lgb_adapter.metric(OBJ, metric))


def test_one_class_in_training_is_no_matter_for_early_stopping():
    model = GRBBClassifier(xgb.XGBClassifier(n_estimators=3, early_stopping_rounds=2, eval_metric="auc", n_jobs=1))
    model.set_params(rule="labeled")
    with pytest.warns(UserWarning, match="class"):
        model.fit(X, np.where(Y == 8, Y, -1), classes=CLASSES, eval_set=[(X, PARTLY)])


def test_data_sets_hold_positions_of_classes_of_text():
    names = np.array(["a", "b"])
    obj = grbb_objective(X, [names[TRUTH[i]] if i % 10 == 0 else None for i in range(200)])
    raw = np.random.default_rng(0).normal(size=200)
    position = np.where(PARTLY == -1, -1, TRUTH)
    expected = accuracy_score(names[TRUTH][PARTLY != -1], obj.predict(raw)[PARTLY != -1])
    for make, adapter in (
        (xgb.DMatrix, xgb_adapter),
        (lambda *rows, **label: lgb.Dataset(*rows, **label).construct(), lgb_adapter),
    ):
        score = adapter.metric(obj, "accuracy")
        assert score(raw, make(X, label=position))[:2] == ("accuracy", pytest.approx(expected))
        with pytest.raises(ValueError, match=r"must be positions in obj\.classes_, \['a', 'b'\].*got .*2\.0"):
            score(raw, make(X, label=position + 1.0))


def test_without_an_objective():
    for adapter in (xgb_adapter, lgb_adapter):
        with pytest.raises(TypeError, match="obj must be what grbb_objective returned, got 'auc'"):
            adapter.metric("auc")


def test_labels_that_lightgbm_invents_are_no_labels():
    obj = grbb_objective(X, np.where(np.arange(len(X)) % 5 == 0, TRUTH, -1), rule="labeled")
    data = lgb.Dataset(X)
    with pytest.raises(ValueError, match=r"labels of a validation set are 0, .* left out"):
        lgb.train(
            {"objective": obj, "verbosity": -1}, data, 2, valid_sets=[data], feval=lgb_adapter.metric(obj, "accuracy")
        )
