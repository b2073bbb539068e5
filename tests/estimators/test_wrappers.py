"""Wrappers of scikit-learn that count the marker of unlabelled rows as a class are refused, with advice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from lightgbm import LGBMClassifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_predict
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from grbb_ext import GRBBClassifier, SemiSupervisedSplit


def small(**settings: Any) -> GRBBClassifier:
    return GRBBClassifier(LGBMClassifier(n_estimators=3, n_jobs=1, verbosity=-1), n_jobs=1, **settings)


# Bags draw each row with its weight, votes clone in the main process and fit in others, calibration hands y on as is.
WRAPPERS: dict[str, Callable[[Any], Any]] = {
    "CalibratedClassifierCV": lambda model: CalibratedClassifierCV(model, cv=3),
    "CalibratedClassifierCV, two processes": lambda model: CalibratedClassifierCV(model, cv=3, n_jobs=2),
    "CalibratedClassifierCV, one model": lambda model: CalibratedClassifierCV(model, cv=3, ensemble=False),
    "CalibratedClassifierCV, our folds": lambda model: CalibratedClassifierCV(model, cv=SemiSupervisedSplit(3)),
    "VotingClassifier": lambda model: VotingClassifier([("a", model)]),
    "VotingClassifier, two processes": lambda model: VotingClassifier([("a", model), ("b", model)], n_jobs=2),
    "StackingClassifier": lambda model: StackingClassifier([("a", model)], LogisticRegression(), cv=3),
    "BaggingClassifier": lambda model: BaggingClassifier(model, 2),
    "BaggingClassifier, two processes": lambda model: BaggingClassifier(model, 2, n_jobs=2),
    "OneVsRestClassifier": OneVsRestClassifier,
    "OneVsOneClassifier": OneVsOneClassifier,
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_the_marker_is_not_a_class(name, moons):
    X, truth, y = moons
    wrapper = WRAPPERS[name](make_pipeline(StandardScaler(), small()))
    with pytest.raises(
        ValueError, match=rf"{name.split(',')[0]} of scikit-learn takes -1 for a class.*(Fit|fit|teacher)"
    ):
        wrapper.fit(X, y)
    assert wrapper.fit(X, truth).score(X, truth) > 0.8  # every row labelled: nothing is refused


def test_other_markers(moons):
    X, truth, y = moons
    with pytest.raises(ValueError, match="takes 7 for a class"):
        VotingClassifier([("a", small(unlabeled=7))]).fit(X, np.where(y < 0, 7, y))
    # -1 is a class where another marker says so
    signs = np.where(truth == 0, -1, 1)
    assert VotingClassifier([("a", small(unlabeled=7))]).fit(X, signs).classes_.tolist() == [-1, 1]


def test_fitted_models_are_not_asked_about_the_marker(moons):
    X, _, y = moons
    model = small().fit(X, y)
    with pytest.raises(ValueError, match="CalibratedClassifierCV of scikit-learn takes -1"):
        CalibratedClassifierCV(FrozenEstimator(model)).fit(X, y)
    with pytest.raises(ValueError, match="StackingClassifier of scikit-learn takes -1"):
        StackingClassifier([("a", model)], LogisticRegression(), cv="prefit").fit(X, y)


def test_the_advice_for_calibration_works(moons):
    X, truth, y = moons
    model = small().fit(X, y)
    calibrated = CalibratedClassifierCV(FrozenEstimator(model)).fit(X[100:], truth[100:])
    assert calibrated.classes_.tolist() == [0, 1]
    # Three small trees are too timid.
    assert log_loss(truth, calibrated.predict_proba(X)) < log_loss(truth, model.predict_proba(X)) - 0.05


def test_cross_val_predict(moons):
    X, truth, y = moons
    assert (cross_val_predict(small(), X, y, cv=3) == truth).mean() > 0.8
    for n_jobs in (1, 2):
        with pytest.raises(ValueError, match=r"cross_val_predict of scikit-learn takes -1.*held_out_predict"):
            cross_val_predict(small(), X, y, cv=3, method="predict_proba", n_jobs=n_jobs)
