"""How far a call travels: ``python -m benchmarks.walks`` counts the files visited and the package changes."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import lightgbm as lgb
import numpy as np
import xgboost as xgb
from sklearn.datasets import make_moons

import grbb_ext

ROOT = Path(grbb_ext.__file__).resolve().parents[1]


def objective(X: Any, y: Any) -> None:
    """Make the default objective and train one round of XGBoost."""
    params = {"objective": "binary:logistic", "base_score": 0.5}
    xgb.train(params, xgb.DMatrix(X), 1, obj=grbb_ext.grbb_objective(X, y, verbose=False))


def estimator(X: Any, y: Any) -> None:
    """Fit, predict, save, load and predict."""
    model = grbb_ext.GRBBClassifier(lgb.LGBMClassifier(n_estimators=1)).fit(X, y)
    model.predict(X)
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model")
        grbb_ext.GRBBClassifier.load(f"{folder}/model").predict(X)


def walk(call: Callable[[], None]) -> tuple[int, int]:
    """Return the files of grbb_ext that a call visits, and how often it enters another package than the one before.

    A package is a folder or a module of ``grbb_ext/``, or all of ``adapters/``. What is done once in a process, such
    as imports, and comprehensions and lambdas do not count.
    """
    files, packages = set(), []

    def note(frame: FrameType, event: str, argument: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and not frame.f_code.co_name.startswith("<") and path.is_relative_to(ROOT):
            folder, *below = path.relative_to(ROOT).parts
            if folder in ("grbb_ext", "adapters"):
                files.add(path)
                packages.append(below[0] if folder == "grbb_ext" else folder)

    call()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len(files), sum(one != other for one, other in pairwise(packages))


if __name__ == "__main__":
    X, truth = make_moons(300, noise=0.1, random_state=0)
    y = np.where(np.arange(300) < 20, truth, -1)
    for name, call in (("objective", objective), ("estimator", estimator)):
        n_files, n_changes = walk(partial(call, X, y))
        print(f"{name}: {n_files} files, {n_changes} package changes")
