"""scikit-learn's estimator checks, with both boosters inside."""

from __future__ import annotations

from typing import Any

import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.utils.estimator_checks import check_classifiers_classes, parametrize_with_checks
from xgboost import XGBClassifier, XGBRegressor

from grbb_ext import GRBBClassifier, GRBBRegressor

# The checks fit a few rows: leaves of one row have to be allowed.
_LGBM = {"n_estimators": 10, "min_child_samples": 1, "min_data_in_bin": 1, "num_leaves": 7, "n_jobs": 1}
_XGB = {"n_estimators": 10, "max_depth": 3, "min_child_weight": 0, "n_jobs": 1, "learning_rate": 0.3}

_WEIGHTS = (
    "A row of weight 0 is still a row of the graph, and a row that stands twice has other neighbours: weights scale "
    "the loss of a row and do not stand for repetitions."
)
_MARKER = "The check trains on the classes -1 and 1, and -1 marks a row without a label, as in sklearn.semi_supervised."


def expected_failed_checks(estimator: Any) -> dict[str, str]:
    expected = {
        "check_sample_weight_equivalence_on_dense_data": _WEIGHTS,
        "check_sample_weight_equivalence_on_sparse_data": _WEIGHTS,
    }
    if isinstance(estimator, GRBBClassifier) and estimator.unlabeled == -1:
        expected["check_classifiers_classes"] = _MARKER
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


@pytest.mark.parametrize("booster", [LGBMClassifier(**_LGBM), XGBClassifier(**_XGB)], ids=["lightgbm", "xgboost"])
def test_the_class_minus_one_is_a_class_with_another_marker(booster: Any) -> None:
    check_classifiers_classes("GRBBClassifier", GRBBClassifier(booster, unlabeled=None))
