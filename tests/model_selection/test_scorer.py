"""A labelled score is the score of the labelled rows, whatever the others hold."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from lightgbm import LGBMClassifier
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, get_scorer, log_loss, make_scorer
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.tree import DecisionTreeClassifier

from grbb_ext import GRBBClassifier, SemiSupervisedSplit, labeled_scorer

X, TRUTH = load_iris(return_X_y=True)
TWO = TRUTH < 2
BINARY = LogisticRegression().fit(X[TWO][:, :1], TRUTH[TWO])
REGRESSION = LinearRegression().fit(X[:, :2], X[:, 3])


@settings(max_examples=20)
@given(seed=st.integers(0, 999), share=st.floats(0.1, 0.9))
@pytest.mark.parametrize("scoring", ["accuracy", "roc_auc", "average_precision", "neg_log_loss", "f1", None])
def test_it_is_the_score_of_the_labeled_rows(scoring, seed, share):
    random = np.random.default_rng(seed)
    y, rows = TRUTH[TWO].copy(), X[TWO][:, :1]
    labeled = random.random(y.size) < share
    labeled[[0, 99]] = True
    y[~labeled] = -1
    scorer = BINARY.score if scoring is None else lambda X, y: get_scorer(scoring)(BINARY, X, y)
    assert labeled_scorer(scoring)(BINARY, rows, y) == scorer(rows[labeled], y[labeled])


@pytest.mark.parametrize("unlabeled", [-1, np.nan])
@pytest.mark.parametrize("decimals", [0, 1])
def test_regression_leaves_out_missing_values_only(unlabeled, decimals):
    y = X[:, 3].round(decimals)
    y[::3] = np.nan
    y[1] = -1.0
    keep = ~np.isnan(y)
    expected = get_scorer("neg_mean_squared_error")(REGRESSION, X[keep][:, :2], y[keep])
    assert labeled_scorer("neg_mean_squared_error", unlabeled=unlabeled)(REGRESSION, X[:, :2], y) == expected


def test_an_estimator_that_is_not_of_scikit_learn():
    class Zero:
        def score(self, X, y):
            return np.mean(np.asarray(y) == 0)

    assert labeled_scorer()(Zero(), [[0.0], [1.0], [2.0]], [0, -1, 1]) == 0.5


@pytest.mark.parametrize("make", [pd.DataFrame, sp.csr_matrix, list])
def test_rows_of_any_kind(make):
    y = np.where(np.arange(100) % 3, TRUTH[TWO], -1)
    scorer = make_scorer(accuracy_score)
    seen = []

    def spy(estimator, X, y):
        seen.append(type(X))
        return scorer(estimator, sp.csr_array(X).toarray() if sp.issparse(X) else np.asarray(X), y)

    result = labeled_scorer(spy)(BINARY, make(X[TWO][:, :1]), y)
    assert result == labeled_scorer("accuracy")(BINARY, X[TWO][:, :1], y)
    assert seen == [np.ndarray if make is list else make]


def test_strings_and_their_marker():
    names = np.array(["setosa", "versicolor"])[TRUTH[TWO]].astype(object)
    model = LogisticRegression().fit(X[TWO], names)
    names[::2] = "?"
    assert labeled_scorer("accuracy", unlabeled="?")(model, X[TWO], names) == 1.0
    assert get_scorer("accuracy")(model, X[TWO], names) == 0.5


def test_weights_are_cut_to_the_labeled_rows():
    y, weight = np.where(np.arange(100) % 3, TRUTH[TWO], -1), np.linspace(1, 5, 100)
    keep, rows = y != -1, X[TWO][:, :1]
    expected = accuracy_score(y[keep], BINARY.predict(rows[keep]), sample_weight=weight[keep])
    assert labeled_scorer("accuracy")(BINARY, rows, y, sample_weight=weight) == expected
    assert labeled_scorer()(BINARY, rows, y, sample_weight=weight) == expected


def test_log_loss_of_a_fold_that_misses_a_class():
    model = LogisticRegression(max_iter=1000).fit(X, TRUTH)
    y = np.where(TRUTH == 2, -1, TRUTH)
    expected = -log_loss(TRUTH[TWO], model.predict_proba(X[TWO]), labels=[0, 1, 2])
    assert_allclose(labeled_scorer("neg_log_loss")(model, X, y), expected, rtol=1e-12)
    assert_allclose(labeled_scorer(["neg_log_loss", "accuracy"])(model, X, y)["neg_log_loss"], expected, rtol=1e-12)
    with pytest.raises(ValueError, match="labels"):  # what scikit-learn's scorer says
        get_scorer("neg_log_loss")(model, X[TWO], TRUTH[TWO])


@pytest.mark.parametrize(
    "scoring",
    [
        ["accuracy", "neg_log_loss"],
        ("accuracy", "neg_log_loss"),
        {
            "accuracy": "accuracy",
            "neg_log_loss": make_scorer(log_loss, greater_is_better=False, response_method="predict_proba"),
        },
    ],
)
def test_several_scores_in_a_search(scoring):
    y = np.where(np.arange(150) % 2, TRUTH, -1)
    model = SelfTrainingClassifier(DecisionTreeClassifier(random_state=0))
    search = GridSearchCV(
        model,
        {"estimator__max_depth": [1, 3]},
        cv=SemiSupervisedSplit(3),
        scoring=labeled_scorer(scoring),
        refit="accuracy",
    ).fit(X, y)
    assert {"mean_test_accuracy", "mean_test_neg_log_loss"} <= search.cv_results_.keys()
    folds = list(SemiSupervisedSplit(3).split(X, y))
    expected = [
        accuracy_score(y[test], model.set_params(estimator__max_depth=3).fit(X[train], y[train]).predict(X[test]))
        for train, test in folds
    ]
    assert_allclose(search.cv_results_["mean_test_accuracy"][1], np.mean(expected))


def test_training_scores_leave_out_unlabeled_rows():
    y = np.where(np.arange(150) % 2, TRUTH, -1)
    model = SelfTrainingClassifier(DecisionTreeClassifier(max_depth=1, random_state=0))
    split = SemiSupervisedSplit(3)
    plain = cross_validate(model, X, y, cv=split, scoring="accuracy", return_train_score=True)
    ours = cross_validate(model, X, y, cv=split, scoring=labeled_scorer("accuracy"), return_train_score=True)
    assert_allclose(ours["test_score"], plain["test_score"])
    # Two in three of 75 labelled rows beside 75 unlabelled ones, which no prediction can be right about.
    assert_allclose(ours["train_score"], plain["train_score"] * (50 + 75) / 50)


def test_routed_metadata_reaches_the_scorer():
    y, weight = np.where(np.arange(150) % 2, TRUTH, -1), np.linspace(0.5, 5, 150)
    model = DecisionTreeClassifier(max_depth=1, random_state=0)
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = labeled_scorer(make_scorer(accuracy_score).set_score_request(sample_weight=True))
        model.set_fit_request(sample_weight=False)
        found = cross_validate(
            model, X, y, cv=KFold(3, shuffle=True, random_state=0), scoring=scorer, params={"sample_weight": weight}
        )
    for score, (train, test) in zip(found["test_score"], KFold(3, shuffle=True, random_state=0).split(X), strict=True):
        rows = test[y[test] != -1]
        predicted = model.fit(X[train], y[train]).predict(X[rows])
        assert_allclose(score, accuracy_score(y[rows], predicted, sample_weight=weight[rows]))


@pytest.mark.parametrize("scoring", [None, "accuracy", "neg_log_loss", ["accuracy", "neg_log_loss"]])
def test_weights_are_routed_as_the_user_says_or_refused(scoring):
    weight, split = np.where(TRUTH, 9.0, 0.1), SemiSupervisedSplit(3)
    arguments = {"X": X, "y": TRUTH, "cv": split, "error_score": "raise"}

    def scores(scoring, **params):
        found = cross_validate(model, scoring=scoring, params=params, **arguments)
        return [values for name, values in sorted(found.items()) if name.startswith("test")]

    def of_scikit_learn(request):
        names = scoring if isinstance(scoring, list) else [scoring]
        own = {str(name): get_scorer(name).set_score_request(sample_weight=request) for name in names if name}
        return scores(own or None, sample_weight=weight)

    with sklearn.config_context(enable_metadata_routing=True):
        for request in (True, False):
            model = DecisionTreeClassifier(max_depth=1, random_state=0).set_fit_request(sample_weight=True)
            model.set_score_request(sample_weight=request)
            with pytest.raises(UnsetMetadataPassedError, match=r"set_(score|fit)_request"):
                scores(labeled_scorer(scoring), sample_weight=weight)
            ours = labeled_scorer(scoring).set_score_request(sample_weight=request)
            assert_allclose(scores(ours, sample_weight=weight), of_scikit_learn(request))


def test_the_marker_is_that_of_the_estimator():
    y = np.where(np.arange(150) % 3 == 0, TRUTH, 99)
    model = GRBBClassifier(LGBMClassifier(n_estimators=2, n_jobs=1, verbosity=-1), graph="knn", unlabeled=99)
    labeled = y != 99
    expected = accuracy_score(y[labeled], model.fit(X, y).predict(X[labeled]))
    search = GridSearchCV(make_pipeline(model), {}, cv=SemiSupervisedSplit(3, unlabeled=99), scoring=labeled_scorer())
    for fitted in (model, make_pipeline(model).fit(X, y), search.fit(X, y)):
        assert labeled_scorer("accuracy")(fitted, X, y) == expected
    with pytest.warns(UserWarning, match=r"no classes of the model: \[99\]"):
        assert labeled_scorer("accuracy", unlabeled="?")(model, X, y) == np.mean(model.predict(X) == y)


def test_it_prints_and_pickles():
    scorer = labeled_scorer(["accuracy", "neg_log_loss"], unlabeled="?")
    assert repr(scorer) == "labeled_scorer(['accuracy', 'neg_log_loss'], unlabeled='?')"
    again = pickle.loads(pickle.dumps(scorer))
    y = TRUTH[TWO].astype(object)
    y[0] = "?"
    assert again(BINARY, X[TWO][:, :1], y) == scorer(BINARY, X[TWO][:, :1], y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        scorer(BINARY, X[TWO][:, :1], y[:99])
    with pytest.raises(ValueError, match="one weight for each of the 100 rows"):
        scorer(BINARY, X[TWO][:, :1], y, sample_weight=np.ones(101))


def test_no_labeled_row_names_the_way_out():
    with pytest.raises(ValueError, match=r"None of the 2 rows to score is labelled.*SemiSupervisedSplit"):
        labeled_scorer("accuracy")(BINARY, [[0.0], [1.0]], [-1, -1])


@pytest.mark.parametrize("scoring", ["", [], {}, ()])
def test_empty_scoring(scoring):
    with pytest.raises(ValueError, match="scoring is empty"):
        labeled_scorer(scoring)


@pytest.mark.parametrize("scoring", ["acuracy", accuracy_score, 3, ["accuracy", 3]])
def test_what_is_no_score_is_refused_by_scikit_learn(scoring):
    with pytest.raises(ValueError, match=r"scoring|scorer|Scor"):
        labeled_scorer(scoring)
