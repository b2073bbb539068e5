"""Training on a real cluster of two processes gives the model of one process, or an error that says why not."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os
import signal
import threading
import time
import uuid
from functools import partial

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from distributed import Client, LocalCluster, default_client, wait
from numpy.testing import assert_allclose
from xgboost import dask as xgb_dask

from grbb_ext import FeatureCosts, KNNGraph, RefinedGraph, UnreachableRowsWarning, grbb_objective, knn_graph
from grbb_ext.adapters.dask import WorkerLostError, _lost, predict, train
from grbb_ext.adapters.dask import _prepare as _dask_prepare
from grbb_ext.adapters.dask._lost import naming_the_lost
from grbb_ext.adapters.xgboost._miser import GreedyMiser
from grbb_ext.losses import LogisticLoss
from grbb_ext.propagation import PROPAGATIONS, AnchorNodes
from grbb_ext.rules import RULES as SPECS
from grbb_ext.rules import DenseOperator, LabeledGradient, RuleParts
from grbb_ext.table import read_table

pytestmark = pytest.mark.xdist_group("dask")

PARAMS = {"max_depth": 3, "eta": 0.3}
ROUNDS = 8


def problem(n_classes=2, n_rows=300, seed=0):
    """Return features of few values, so that all ways of binning agree, with 30 labels and a graph."""
    random = np.random.default_rng(seed)
    X = np.round(4 * random.standard_normal((n_rows, 5))) / 4
    truth = X[:, :n_classes].argmax(axis=1) if n_classes > 2 else (X[:, 0] + X[:, 1] > 0).astype(int)
    y = np.where(np.arange(n_rows) % 10 == 0, truth, -1)
    y[:n_classes] = np.arange(n_classes)
    return X, y, truth, knn_graph(X, 6)


def on_one_machine(X, y, W, rounds=ROUNDS, soft_labels=False, **settings):
    """Return the scores of one process, with the objective or with XGBoost's own loss on the targets."""
    obj = grbb_objective(None, y, graph=W, **settings)
    if soft_labels:
        loss = {"objective": "reg:squarederror", "base_score": 0}
        if obj.classes_ is not None:
            loss = {"objective": "binary:logistic", "base_score": 0.5}
        return margins(xgb.train({**loss, **PARAMS}, xgb.QuantileDMatrix(X, label=obj.targets_), rounds), X)
    params = {"base_score": 0, **PARAMS, **({"num_class": obj.n_outputs_} if obj.n_outputs_ > 1 else {})}
    return margins(xgb.train(params, xgb.QuantileDMatrix(X), rounds, obj=obj), X)


def margins(model, X):
    booster = model["booster"] if isinstance(model, dict) else model
    return booster.predict(xgb.DMatrix(X), output_margin=True)


def array(values, *lengths):
    """Return an array whose chunks lie on the workers in turn, so that both take part."""
    client = default_client()
    workers = sorted(client.nthreads())
    blocks = np.split(values, np.cumsum(lengths)[:-1])
    name = f"rows-{uuid.uuid4().hex}"
    others = (0,) * (values.ndim - 1)
    graph = {
        (name, i, *others): client.scatter(block, workers=[workers[i % len(workers)]], hash=False)
        for i, block in enumerate(blocks)
    }
    return da.Array(graph, name, (tuple(lengths), *((size,) for size in values.shape[1:])), dtype=values.dtype)


class BothTakePart(xgb.callback.TrainingCallback):
    """Makes sure that a test of two workers is one."""

    def before_training(self, model):
        if xgb.collective.get_world_size() != 2:
            raise RuntimeError("All rows are on one worker.")
        return model


RULES = {
    "targets": {},
    "paper": {"preset": "paper"},
    "corrected": {"rule": "corrected"},
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_shuffled_uneven_and_empty_partitions_give_the_model_of_one_process(client, rule, n_classes):
    X, y, _, W = problem(n_classes)
    shuffled = np.random.default_rng(1).permutation(len(X))
    model = train(
        client,
        PARAMS,
        array(X[shuffled], 10, 0, 170, 120, 0),
        array(y[shuffled], 100, 200),
        graph=W,
        row_ids=shuffled,
        num_boost_round=ROUNDS,
        callbacks=[BothTakePart()],
        **RULES[rule],
    )
    expected = on_one_machine(X, y, W, soft_labels=(rule, n_classes) == ("targets", 2), **RULES[rule])
    # Nine vectors at once take another way through BLAS, which rounds a row by its place: a unit in the last place.
    allowed = 1e-6 if (rule, n_classes) == ("corrected", 3) else 0.0
    assert np.abs(margins(model, X) - expected).max() <= allowed
    assert model["info"]["bytes_per_round"] == (0 if rule == "targets" else 4 * np.sum(y >= 0) * (1, 3)[n_classes == 3])


@pytest.mark.parametrize("settings", [{"rule": "labeled"}, {"lam": 0.2}, {"rule": "corrected", "lam": 0.3}], ids=str)
def test_the_other_settings_give_the_model_of_one_process(client, settings):
    X, y, _, W = problem()
    model = train(
        client,
        PARAMS,
        array(X, 100, 200),
        y,
        graph=W,
        num_boost_round=ROUNDS,
        callbacks=[BothTakePart()],
        **settings,
    )
    assert_allclose(margins(model, X), on_one_machine(X, y, W, **settings), rtol=0, atol=1e-6)


@pytest.mark.parametrize("rule", ["targets", "corrected"])
def test_weights_give_the_model_of_one_process(client, rule, tmp_path):
    X, y, _, W = problem()
    weight = 0.5 + np.random.default_rng(2).random(len(X))
    settings = {"rule": rule, "class_weight": "balanced", "graph": W}
    model = train(
        client,
        PARAMS,
        array(X, 100, 200),
        y,
        sample_weight=weight,
        storage=tmp_path,
        num_boost_round=ROUNDS,
        **settings,
    )
    expected = on_one_machine(X, y, settings.pop("graph"), sample_weight=weight, **settings)
    assert_allclose(margins(model, X), expected, rtol=0, atol=1e-6)
    # Targets of two classes are the labels of the DMatrix, and need no store.
    assert sorted(file.stem for file in tmp_path.iterdir()) == (["P"] if rule == "corrected" else [])


def test_frames_with_names_and_labels_of_any_kind(client):
    X, y, truth, _ = problem()
    y[0], y[1] = truth[0], -1
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["label"] = np.array(["no", "yes", None], dtype=object)[y]
    cut = dd.from_pandas(frame, npartitions=3)
    features = cut[list("abcde")]
    model = train(
        client,
        PARAMS,
        features,
        cut["label"],
        num_boost_round=ROUNDS,
        callbacks=[BothTakePart()],
        evals=[(features, da.from_array(np.array(["no", "yes"])[truth], chunks=60), "all")],
        graph="knn",
        teacher="graph",
        eval_metric="error",
    )
    assert model["booster"].feature_names == list("abcde")
    predicted = predict(client, model, features, kind="class").compute()
    probability = predict(client, model, features, kind="probability").compute()
    assert (predicted == np.array(["no", "yes"])[probability.argmax(axis=1)]).all()
    # The metric is the mean over both workers' rows, however they are spread.
    error = np.mean(predicted != np.array(["no", "yes"])[truth])
    assert model["history"]["all"]["error"][-1] == pytest.approx(error, abs=1e-6)
    expected = on_one_machine(X, y, knn_graph(X, 9), soft_labels=True)
    assert np.abs(predict(client, model, features, kind="margin").compute() - expected).max() == 0.0


@pytest.mark.parametrize("rule", ["targets", "corrected"])
def test_a_worker_with_evaluation_rows_only_takes_part(client, rule):
    X, y, truth, W = problem(3)
    everywhere = (array(X, 75, 75, 75, 75), truth, "all")
    model = train(client, PARAMS, array(X, 300), y, graph=W, rule=rule, num_boost_round=ROUNDS, evals=[everywhere])
    expected = on_one_machine(X, y, W, rule=rule)
    assert np.abs(margins(model, X) - expected).max() <= 1e-6
    probability = predict(client, model, everywhere[0], kind="probability").compute()
    loss = -np.log(probability[np.arange(300), truth]).mean()
    assert model["history"]["all"]["mlogloss"][-1] == pytest.approx(loss, abs=1e-5)


def test_regression(client):
    X, _, _, W = problem()
    y = np.where(np.arange(len(X)) % 8 == 0, X[:, 0] - X[:, 1], np.nan)
    model = train(client, PARAMS, array(X, 150, 150), y, graph=W, loss="squared_error", num_boost_round=ROUNDS)
    expected = on_one_machine(X, y, W, loss="squared_error", soft_labels=True)
    assert np.abs(margins(model, X) - expected).max() == 0.0
    assert_allclose(margins(model, X), on_one_machine(X, y, W, loss="squared_error"), rtol=0, atol=2e-6)
    predicted = predict(client, model, array(X, 150, 150)).compute()
    assert_allclose(predicted, expected, rtol=0, atol=1e-6)


def prepared(client, X, y, W, **settings):
    """Return what train() makes before the first round."""
    return _dask_prepare.prepare(client, X, y, _dask_prepare.read_recipe(W, settings), W, settings)


@pytest.mark.parametrize("rule", ["paper", "corrected"])
def test_without_the_sum_over_workers_the_model_is_another(client, rule):
    X, y, _, W = problem()
    expected = on_one_machine(X, y, W, rule=rule)
    ready = prepared(client, array(X, 150, 150), y, W, rule=rule)
    dtrain = _dask_prepare.quantile_matrix(client, ready.data, PARAMS)
    assert len(dtrain.worker_map) == 2
    run = partial(xgb_dask.train, client, {"base_score": 0, **PARAMS}, dtrain, ROUNDS)
    assert np.abs(margins(run(obj=ready.objective), X) - expected).max() == 0.0
    alone = dataclasses.replace(ready.objective, total=np.asarray)
    assert np.abs(margins(run(obj=alone), X) - expected).max() > 0.01


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({3: 4}, r"missing: \[3\]; more than once: \[4\]"),
        ({3: 299, 298: 4}, r"missing: \[3, 298\]; more than once: \[4, 299\]"),
        ({10: 20}, r"more than once: \[20\]"),  # both labelled, which the client sees first
        ({10: 400}, r"400 is too large|1 ids are not in 0\.\.299 \(400\)"),
        ({3: 300}, r"1 ids are not in 0\.\.299 \(300\)"),
    ],
)
@pytest.mark.parametrize("rule", ["targets", "corrected"])
def test_missing_and_repeated_ids_are_named_before_the_first_round(client, change, message, rule):
    X, y, _, W = problem()
    ids = np.arange(len(X))
    for row, other in change.items():
        ids[row] = other
    with pytest.raises(ValueError, match=message):
        train(client, PARAMS, array(X, 150, 150), y, graph=W, rule=rule, row_ids=da.from_array(ids, chunks=150))


def anchor_objective(X, y, rule, n_anchors):
    """Return the rules with P = Z P_A, written out for one machine that has all rows."""
    labeled = np.flatnonzero(y >= 0)
    targets, loss = y[labeled].astype(float), LogisticLoss()
    table, spec = read_table(X), SPECS[rule]
    nodes = AnchorNodes(table, table.take(labeled), PROPAGATIONS[spec.propagation], n_anchors=n_anchors)
    of_labeled = LabeledGradient(loss, targets, np.ones(labeled.size), labeled, np.arange(labeled.size))
    Z, on_nodes = nodes.Z(table), DenseOperator(nodes.operator.dense())

    def extend(values):
        extended = Z @ on_nodes(values)
        extended[labeled] = values
        return extended

    made = spec.build(RuleParts(of_labeled, extend=extend, unreachable=np.empty(0, dtype=int)))
    return lambda H, data: made(H)


@pytest.mark.parametrize("rule", ["paper", "corrected"])
def test_anchors_on_the_workers_are_those_of_one_machine(client, rule):
    X, y, truth, _ = problem(n_rows=600)
    settings = {"graph": "anchors", "n_anchors": 120, "rule": rule, "callbacks": [BothTakePart()]}
    model = train(client, PARAMS, array(X, 150, 450), y, num_boost_round=ROUNDS, **settings)
    assert model["info"]["graph"] == "anchors"
    # The sample of so few rows is all of them, so that the anchors are the same.
    obj = anchor_objective(X, y, rule, 120)
    expected = xgb.train({"base_score": 0, **PARAMS}, xgb.QuantileDMatrix(X), ROUNDS, obj=obj)
    assert_allclose(margins(model, X), margins(expected, X), rtol=0, atol=1e-4)
    assert np.mean((margins(model, X) > 0) == truth) > 0.75


def test_rows_that_no_label_reaches_are_reported(client):
    X, y, _, _ = problem()
    X = X + 100 * (np.arange(len(X)) >= 200)[:, None]
    y = np.where(np.arange(len(X)) < 200, y, -1)
    with pytest.warns(UnreachableRowsWarning, match="100 of 300"):
        model = train(
            client,
            PARAMS,
            array(X, 150, 150),
            y,
            graph=KNNGraph(n_neighbors=4),
            teacher="graph",
            num_boost_round=ROUNDS,
        )
    assert model["info"]["n_unreachable"] == 100


@pytest.mark.parametrize(
    "settings",
    [{"mu": 0.5}, {"budget": 9.0}, {"mu": 0.2, "budget": 9.0, "strategy": "interaction"}, {"mu": 1e9}],
    ids=str,
)
@pytest.mark.parametrize("rule", ["targets", "corrected"])
def test_workers_buy_what_one_machine_buys(client, settings, rule):
    X, y, _, W = problem()
    costs = FeatureCosts(
        needs={0: ["a"], 1: ["a", "b"], 2: ["c"], 3: ["d"], 4: ["e"]},
        prices=dict(zip("abcde", (5, 3, 1, 1, 8), strict=True)),
    )
    obj = grbb_objective(None, y, graph=W, rule=rule)
    dtrain = xgb.QuantileDMatrix(X)
    miser = GreedyMiser(costs, obj, dtrain, **settings)
    one = xgb.train({"base_score": 0, **PARAMS}, dtrain, ROUNDS, obj=obj, callbacks=[miser])
    many = train(
        client,
        PARAMS,
        array(X, 110, 190),
        y,
        graph=W,
        rule=rule,
        num_boost_round=ROUNDS,
        callbacks=[BothTakePart()],
        costs=costs,
        **settings,
    )
    ledger = many["booster"].ledger_
    assert ledger.spent == one.ledger_.spent
    assert (ledger.used == one.ledger_.used).all()
    assert ledger.spent <= settings.get("budget", np.inf)
    assert np.abs(margins(many, X) - margins(one, X)).max() <= 1e-6
    assert many["booster"].num_boosted_rounds() == one.num_boosted_rounds()


REFUSED = {
    "LightGBM": ({"params": {"num_leaves": 31}}, r"use train_lightgbm\(\)"),
    "laplacian": ({"rule": "laplacian", "lam": 1.0}, "N numbers from"),
    "objective": ({"params": {"objective": "reg:squarederror"}}, "take it out of params"),
    "dart": ({"params": {"booster": "dart"}}, "use 'gbtree'"),
    "num_class": ({"params": {"num_class": 5}}, "num_class=5"),
    "scale_pos_weight": ({"params": {"scale_pos_weight": 3.0}}, "pass class_weight="),
    "base_score 0": ({"params": {"base_score": 0}}, "a probability between 0 and 1: set it to 0.5"),
    "base_score 1": ({"params": {"base_score": "1"}, "rule": "corrected"}, "set it to 0.5"),
    "metrics in params": (
        {
            "params": {"eval_metric": ["error@0.7", "auc"]},
            "evals": [(da.zeros((300, 5)), np.arange(300) % 2, "all")],
        },
        "eval_metric='auc' is no mean over rows",
    ),
    "ids without a graph": ({"row_ids": np.arange(300), "graph": "knn"}, "pass a graph"),
    "lam with anchors": ({"graph": "anchors", "lam": 1.0, "rule": "corrected"}, "lam > 0 needs the graph of all rows"),
    "lam with a sample": ({"graph": RefinedGraph(max_nodes=100), "lam": 1.0}, "lam > 0 needs the graph of all rows"),
    "anchors for targets": ({"graph": "anchors"}, "a teacher learns from a sample"),
    "short y": ({"y": np.zeros(299)}, "y must have a value for each row of X"),
    "short dask y": ({"y": da.zeros(299)}, "it has 299 rows, X has 300"),
    "no label": ({"y": np.full(300, -1)}, "no labelled row"),
    "graph of other rows": ({"graph": np.zeros((9, 9))}, "graph has 9 rows but X has 300"),
    "metric": ({"eval_metric": "auc", "evals": [(da.zeros((300, 5)), np.zeros(300), "all")]}, "no means over rows"),
    "evaluation without labels": ({"evals": [(da.zeros((300, 5)), np.full(300, -1), "all")]}, "no labelled row"),
    "smooth curvature": ({"rule": "corrected", "propagation": "smooth"}, "can turn negative"),
    "budget without prices": ({"budget": 3.0}, "need prices"),
    "fractional ids": ({"row_ids": np.linspace(0, 1, 300)}, "whole numbers"),
    "negative weights": ({"sample_weight": np.full(300, -1.0)}, "not negative"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_done_is_refused_with_the_reason(client, case):
    X, y, _, W = problem()
    given, message = REFUSED[case]
    settings = {"params": PARAMS, "y": y, "graph": W, **given}
    with pytest.raises(ValueError, match=message):
        train(client, X=array(X, 150, 150), **settings)


def test_unknown_settings_and_other_kinds_of_data_are_refused(client):
    X, y, _, _ = problem()
    with pytest.raises(TypeError, match=r"does not have: \['rho'\]"):
        train(client, PARAMS, array(X, 300), y, rho=1.0)
    with pytest.raises(TypeError, match="guard= is now teacher="):
        train(client, PARAMS, array(X, 300), y, guard=False)
    with pytest.raises(TypeError, match="must be a dask Array or DataFrame"):
        train(client, PARAMS, X, y)


def test_continued_training_starts_from_the_scores_of_the_model(client, tmp_path):
    X, y, truth, W = problem()
    values = np.where(y >= 0, X[:, 0] + 50, np.nan)
    before = xgb.train({"objective": "reg:squarederror", **PARAMS}, xgb.DMatrix(X, X[:, 0] + 50), 3)
    settings = {"graph": W, "num_boost_round": 1}
    one = train(client, {"eta": 0.0}, array(X, 150, 150), values, loss="squared_error", xgb_model=before, **settings)
    assert_allclose(margins(one, X), margins(before, X), rtol=0, atol=1e-5)
    before = xgb.train({"objective": "binary:logistic", **PARAMS}, xgb.DMatrix(X, truth * (X[:, 0] > 0)), 3)
    before.save_model(tmp_path / "model.json")
    one = train(client, {"eta": 0.0}, array(X, 150, 150), y, xgb_model=tmp_path / "model.json", **settings)
    assert_allclose(margins(one, X), margins(before, X), rtol=0, atol=1e-5)
    with pytest.raises(ValueError, match="take the place of that of xgb_model"):
        train(client, {"base_score": 0.5}, array(X, 150, 150), y, xgb_model=before, **settings)
    # A base_score of 0 is no probability.
    obj = grbb_objective(None, y, graph=W)
    raw = xgb.train({"base_score": 0, **PARAMS}, xgb.DMatrix(X), 3, obj=obj)
    with pytest.raises(ValueError, match=r"xgb_model\.set_param\(\{'objective': 'binary:logistic', 'base_score'"):
        train(client, {"eta": 0.0}, array(X, 150, 150), y, xgb_model=raw, **settings)
    expected = margins(raw, X)
    raw.set_param({"objective": "binary:logistic", "base_score": 0.5})
    one = train(client, {"eta": 0.0}, array(X, 150, 150), y, xgb_model=raw, **settings)
    assert_allclose(margins(one, X), expected, rtol=0, atol=1e-5)


def test_classes_that_are_not_those_of_the_model_are_refused(client):
    X, y, _, W = problem()
    rows, settings = array(X, 150, 150), {"graph": W, "num_boost_round": 1}
    model = train(client, PARAMS, rows, y, **settings)
    again = train(client, PARAMS, rows, y, xgb_model=model["booster"], **settings)
    assert again["booster"].num_boosted_rounds() == 2
    named = np.array(["no", "yes", None], dtype=object)[y]
    with pytest.raises(ValueError, match=r"xgb_model has the classes \[0, 1\], but y has \['no', 'yes'\]"):
        train(client, PARAMS, rows, named, xgb_model=model["booster"], **settings)
    with pytest.raises(ValueError, match=r"xgb_model has the classes \[0, 1\], but y has numbers"):
        train(client, PARAMS, rows, X[:, 0], loss="squared_error", xgb_model=model["booster"], **settings)
    for known in (model, model["booster"]):
        with pytest.raises(ValueError, match="but the model has the classes"):
            predict(client, known, rows, classes=["no", "yes"])
        assert (predict(client, known, rows, classes=[0, 1]).compute() == predict(client, model, rows).compute()).all()
    values = train(client, PARAMS, rows, X[:, 0], loss="squared_error", **settings)
    with pytest.raises(ValueError, match="The model is a regression"):
        predict(client, values, rows, classes=[0, 1])
    values["booster"].set_attr(grbb_ext_classes=None)
    for classes in (["no"], ["no", "perhaps", "yes"]):
        with pytest.raises(ValueError, match="but the model has 2: pass all"):
            predict(client, values["booster"], rows, classes=classes)


class Dies(xgb.callback.TrainingCallback):
    """Ends the process of one worker in the middle of training."""

    def before_iteration(self, model, epoch, evals_log):
        if epoch == 3 and xgb.collective.get_rank() == 1:
            os._exit(1)
        return False


def test_a_worker_that_dies_is_named_and_the_next_training_is_right(client):
    client.wait_for_workers(2)
    X, y, _, W = problem()
    rows = array(X, 75, 75, 75, 75)
    with pytest.raises(WorkerLostError, match="1 of 2 workers died"):
        train(client, PARAMS, rows, y, graph=W, rule="corrected", num_boost_round=ROUNDS, callbacks=[Dies()])
    # What the test laid on the worker is gone with it; what dask had loaded it would load again.
    model = train(client, PARAMS, array(X, 100, 200), y, graph=W, rule="corrected", num_boost_round=ROUNDS)
    assert np.abs(margins(model, X) - on_one_machine(X, y, W, rule="corrected")).max() == 0.0


def test_what_a_dead_worker_held_is_not_waited_for(monkeypatch):
    monkeypatch.setattr("grbb_ext.adapters.dask._lost._UNTIL_CANCELLED", 2.0)
    settings = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    with LocalCluster(n_workers=2, **settings) as cluster, Client(cluster) as client:
        pids = client.run(os.getpid)
        address, other = pids
        before = client.submit(time.sleep, 0.1)  # somebody else's, which goes on
        for nanny in cluster.workers.values():
            nanny.auto_restart = False
        os.kill(pids[address], signal.SIGKILL)
        with pytest.raises(WorkerLostError, match="1 of 2 workers died"), naming_the_lost(client, set(pids)):
            wait(client.submit(int, 1, workers=[address], allow_other_workers=False), timeout=60)
        # While others work, a loss alone is no reason to give up.
        with naming_the_lost(client, set(pids)):
            assert client.submit(time.sleep, 5.0, workers=[other], pure=False).result(timeout=60) is None
        assert before.result(timeout=60) is None


@pytest.mark.parametrize("seconds", [0.0, 1.5], ids=["before", "while"])
def test_a_worker_that_dies_while_xgboost_connects_them_is_not_waited_for(monkeypatch, seconds):
    original = xgb.dask.train

    def with_a_death(client, *args, **settings):
        # The other worker comes too late: XGBoost's tracker aborts as it introduces the dead worker to it.
        client.submit(time.sleep, 2 * seconds, workers=[survivor], priority=1, pure=False)
        threading.Timer(seconds, os.kill, (victim, signal.SIGKILL)).start()
        return original(client, *args, **settings)

    monkeypatch.setattr("xgboost.dask.train", with_a_death)
    monkeypatch.setattr("grbb_ext.adapters.dask._lost._UNTIL_CANCELLED", 2.0)
    X, y, _, W = problem()
    settings = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    with LocalCluster(n_workers=2, **settings) as cluster, Client(cluster) as client:
        (survivor, pid), (_, victim) = client.run(os.getpid).items()
        started = time.monotonic()
        with pytest.raises(WorkerLostError, match="1 of 2 workers died"):
            train(client, PARAMS, array(X, 75, 75, 75, 75), y, graph=W, num_boost_round=ROUNDS)
        assert time.monotonic() - started < 60
        if not seconds:  # later the survivor may be trying to reach the dead worker itself, as long as XGBoost likes
            # A tracker that nobody ends would wait for the dead worker, and keep the thread of the other one.
            assert client.submit(os.getpid, workers=[survivor], pure=False).result(timeout=60) == pid


def test_the_tracker_listens_where_it_can():
    async def listen(*hosts):
        pid, args = await _lost._start_tracker(1, *hosts, None)
        await _lost._stop_tracker(pid, 0.0)
        return pid, args["dmlc_tracker_uri"]

    elsewhere = "198.51.100.1"  # of no machine
    pid, host = asyncio.run(listen("127.0.0.1", (elsewhere, 0)))
    assert pid != os.getpid()
    assert host == "127.0.0.1"
    with pytest.raises(RuntimeError, match="tracker has not started on the machine of the scheduler"):
        asyncio.run(listen(elsewhere, (elsewhere, 0)))
