"""Rows that XGBoost reads in batches: the objective needs nothing of the data set but the order of its rows."""

import os

import numpy as np
import pytest
import xgboost as xgb

from grbb_ext import grbb_objective

PARAMS = {"base_score": 0, "max_depth": 3, "eta": 0.5, "nthread": 1, "tree_method": "hist", "max_bin": 16}


class Batches(xgb.DataIter):
    """Rows in batches of uneven sizes, as from files."""

    def __init__(self, parts, folder):
        self._parts, self._next = parts, 0
        super().__init__(cache_prefix=os.path.join(folder, "cache"))

    def next(self, input_data):
        if self._next == len(self._parts):
            return 0
        input_data(data=self._parts[self._next])
        self._next += 1
        return 1

    def reset(self):
        self._next = 0


def in_batches(parts, folder):
    """Take the class that the installed XGBoost has: ExtMemQuantileDMatrix came with 3.0, DMatrix does it before."""
    kind = getattr(xgb, "ExtMemQuantileDMatrix", None)
    folder.mkdir(exist_ok=True)
    iterator = Batches(parts, folder)
    return xgb.DMatrix(iterator) if kind is None else kind(iterator, max_bin=PARAMS["max_bin"])


@pytest.fixture
def rows():
    """Features of 16 values, so that both data sets have the same bins."""
    random = np.random.default_rng(0)
    X = random.integers(16, size=(600, 4)).astype(np.float32)
    truth = (X[:, 0] + X[:, 1] > 15).astype(int)
    y = np.full(600, -1)
    labeled = random.choice(600, 40, replace=False)
    y[labeled] = truth[labeled]
    return X, y


def test_batches_give_the_model_of_rows_in_memory(rows, tmp_path):
    X, y = rows
    obj = grbb_objective(X, y, teacher="graph", verbose=False)
    whole = xgb.train(PARAMS, xgb.QuantileDMatrix(X, max_bin=16), 8, obj=obj)
    parts = np.split(X, [50, 51, 400])
    batched = xgb.train(PARAMS, in_batches(parts, tmp_path), 8, obj=obj)
    query = xgb.DMatrix(X)
    np.testing.assert_allclose(batched.predict(query), whole.predict(query), rtol=0, atol=1e-5)
    assert np.ptp(whole.predict(query)) > 1


def test_batches_in_another_order_are_other_rows(rows, tmp_path):
    """The negative control: targets belong to rows by position, so shuffled batches make another model."""
    X, y = rows
    obj = grbb_objective(X, y, teacher="graph", verbose=False)
    first, second = X[:300], X[300:]
    straight = xgb.train(PARAMS, in_batches([first, second], tmp_path / "a"), 8, obj=obj)
    swapped = xgb.train(PARAMS, in_batches([second, first], tmp_path / "b"), 8, obj=obj)
    query = xgb.DMatrix(X)
    assert np.abs(straight.predict(query) - swapped.predict(query)).max() > 0.1


def test_a_missing_batch_is_refused(rows, tmp_path):
    X, y = rows
    obj = grbb_objective(X, y, teacher="graph", verbose=False)
    with pytest.raises(ValueError, match="rows"):
        xgb.train(PARAMS, in_batches([X[:300]], tmp_path), 1, obj=obj)
