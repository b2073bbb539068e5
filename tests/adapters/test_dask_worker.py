"""The parts of the Dask adapter that run on one worker, without a cluster."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
import xgboost as xgb
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from grbb_ext import grbb_objective, knn_graph
from grbb_ext.adapters.dask import _rows as _dask_ids
from grbb_ext.adapters.dask._objective import WorkerObjective
from grbb_ext.adapters.dask._rows import LARGEST_ID, Rows, check_ids, read_ids, split_ids
from grbb_ext.graph import laplacian
from grbb_ext.labels import read_labels
from grbb_ext.rules import RULES


@settings(max_examples=50)
@given(st.lists(st.integers(0, LARGEST_ID), min_size=1, max_size=20))
def test_ids_survive_single_precision(ids):
    lower, upper = split_ids(np.array(ids))
    rows = np.zeros((len(ids), 1), dtype=np.float32)
    for matrix in (xgb.DMatrix, xgb.QuantileDMatrix):
        data = matrix(rows, label_lower_bound=lower, label_upper_bound=upper)
        assert read_ids(data).tolist() == ids


@settings(max_examples=60)
@given(st.lists(st.integers(0, 40), max_size=40), st.integers(1, 9))
def test_only_permutations_pass(ids, block):
    n_rows = max(1, len(ids))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_dask_ids, "_IDS_PER_BLOCK", block)
        if sorted(ids) == list(range(n_rows)):
            check_ids(np.array(ids), n_rows)
        else:
            with pytest.raises(ValueError, match="each once, over all workers"):
                check_ids(np.array(ids, dtype=np.int64), n_rows)


def test_a_file_gives_the_rows_of_the_ids_in_their_order(tmp_path):
    values = np.arange(12.0).reshape(6, 2)
    (tmp_path / "P").mkdir()
    for number, block in enumerate(np.split(values, [2, 5])):
        np.save(tmp_path / "P" / f"{number}.npy", block)
    rows = Rows(np.array([0, 2, 5]), ("P",), tmp_path)
    assert_array_equal(rows.take(np.array([4, 0, 5]))[0], values[[4, 0, 5]])
    assert rows.take(np.empty(0, dtype=np.int64))[0].shape == (0, 2)


@dataclasses.dataclass(frozen=True)
class Held:
    arrays: tuple

    def take(self, ids):
        return [values[ids] for values in self.arrays]


def whole_and_part(rule, lam, n_classes):
    """Return the objective of one machine, and that of a worker which has all rows in another order."""
    random = np.random.default_rng(0)
    X = random.standard_normal((90, 3))
    y = np.where(np.arange(90) % 6 == 0, random.integers(0, n_classes, 90), -1)
    y[:n_classes] = np.arange(n_classes)
    W = knn_graph(X, 5)
    obj = grbb_objective(None, y, graph=W, rule=rule, lam=lam)
    of_rows = (obj.targets_, np.ones(90, dtype=np.float32)) if rule == "targets" else (obj.P_bar_,)
    sent = []

    def total(values):
        sent.append(values.nbytes)
        return values

    worker = WorkerObjective(
        n_rows=90,
        labels=read_labels(y),
        weights=obj.labeled_weight_,
        rule=RULES[rule].replace(lam=lam),
        rows=Held(of_rows),
        P_nodes=None,
        unreachable=np.empty(0, dtype=np.int64),
        L_l=laplacian(W)[obj.labeled_] if lam else None,
        total=total,
    )
    return obj, worker, X, sent


@pytest.mark.parametrize("rule", ["targets", "paper", "corrected", "labeled"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("lam", [0.0, 0.4])
def test_a_worker_with_all_rows_is_one_machine(rule, n_classes, lam):
    obj, worker, X, sent = whole_and_part(rule, lam, n_classes)
    order = np.random.default_rng(1).permutation(90)
    lower, upper = split_ids(order)
    data = xgb.DMatrix(X[order], label_lower_bound=lower, label_upper_bound=upper)
    H = np.random.default_rng(2).standard_normal((90, n_classes) if n_classes > 2 else 90).astype(np.float32)
    n = obj.labeled_.size * obj.n_outputs_
    for _ in range(2):
        sent.clear()
        for mine, theirs in zip(worker(H[order], data), obj(H), strict=True):
            np.testing.assert_allclose(mine, theirs[order], rtol=2e-6, atol=2e-6)
        # One sum of n numbers in a round, and n more for the Laplacian term; none where targets are fixed.
        assert sent == ([] if not worker.numbers_per_round else [worker.numbers_per_round * (8 if lam else 4)])
        assert worker.numbers_per_round == n * ((rule in ("paper", "corrected")) + (lam > 0))


def test_a_pickle_leaves_the_prepared_rows_behind():
    _, worker, X, _ = whole_and_part("paper", 0.0, 2)
    worker = dataclasses.replace(worker, total=np.asarray)
    lower, upper = split_ids(np.arange(90))
    data = xgb.DMatrix(X, label_lower_bound=lower, label_upper_bound=upper)
    first = worker(np.zeros(90, dtype=np.float32), data)
    copy = pickle.loads(pickle.dumps(worker))
    assert len(copy._rules) == 0
    assert_array_equal(copy(np.zeros(90, dtype=np.float32), data)[0], first[0])


def test_a_matrix_without_ids_is_refused():
    _, worker, X, _ = whole_and_part("targets", 0.0, 2)
    with pytest.raises(ValueError, match="does not carry row ids"):
        worker(np.zeros(90, dtype=np.float32), xgb.DMatrix(X))
