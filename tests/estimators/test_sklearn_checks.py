"""scikit-learn's estimator checks, with both boosters inside."""

from __future__ import annotations

from typing import Any

import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.utils.estimator_checks import (
    check_classifiers_classes,
    check_sample_weight_equivalence_on_dense_data,
    parametrize_with_checks,
)
from xgboost import XGBClassifier, XGBRegressor

from grbb_ext import GRBBClassifier, GRBBRegressor

# The checks fit a few rows: leaves of one row have to be allowed.
_LGBM = {"n_estimators": 10, "min_child_samples": 1, "min_data_in_bin": 1, "num_leaves": 7, "n_jobs": 1}
_XGB = {"n_estimators": 10, "max_depth": 3, "min_child_weight": 0, "n_jobs": 1, "learning_rate": 0.3}

_WEIGHTS = (
    "LightGBM bins rows without regard to weights: a threshold may lie between rows of weight 0, which then fall "
    "on another side than if they were left out. LGBMClassifier fails the check too."
)
_MARKER = "The check trains on the classes -1 and 1, and -1 marks a row without a label, as in sklearn.semi_supervised."


def expected_failed_checks(estimator: Any) -> dict[str, str]:
    """Return the checks that fail, and why; they are strict (see pyproject.toml), so that none is listed in vain."""
    expected = {}
    if isinstance(estimator, GRBBClassifier):
        expected["check_classifiers_classes"] = _MARKER
        if isinstance(estimator.estimator, LGBMClassifier):
            expected["check_sample_weight_equivalence_on_dense_data"] = _WEIGHTS
            expected["check_sample_weight_equivalence_on_sparse_data"] = _WEIGHTS
    return expected


@parametrize_with_checks(
    [
        GRBBClassifier(LGBMClassifier(**_LGBM)),
        GRBBClassifier(XGBClassifier(**_XGB)),
        GRBBRegressor(LGBMRegressor(**_LGBM)),
        GRBBRegressor(XGBRegressor(**_XGB)),
    ],
    expected_failed_checks=expected_failed_checks,
)
def test_estimator_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def test_what_fails_fails_with_the_wrapped_estimator_alone() -> None:
    with pytest.raises(AssertionError, match="not equivalent to fitting with removed"):
        check_sample_weight_equivalence_on_dense_data("LGBMClassifier", LGBMClassifier(**_LGBM, verbosity=-1))


@pytest.mark.parametrize("booster", [LGBMClassifier(**_LGBM), XGBClassifier(**_XGB)], ids=["lightgbm", "xgboost"])
def test_the_class_minus_one_is_a_class_with_another_marker(booster: Any) -> None:
    check_classifiers_classes("GRBBClassifier", GRBBClassifier(booster, unlabeled=None))
