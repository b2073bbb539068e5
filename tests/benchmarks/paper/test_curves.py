from __future__ import annotations

import json
import pickle
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.options import Options
from benchmarks.paper import curves, ltr, prices, scene15
from benchmarks.paper.boosted import GBRT
from benchmarks.paper.curve_methods import METHODS, NOTHING, Plan, Problem, Trial, within
from benchmarks.paper.tuning import Manifold, path_of, tune_manifold
from benchmarks.results import ROW, ResultTable
from benchmarks.runner import Row
from grbb_ext import FeatureCosts

PLAN = Plan(n_trees=20, mus=(0.0, 0.25, 4.0, 256.0), exits=(0.6, 0.9, 1.0), n_trials=1, n_penalties=5)
COSTS = FeatureCosts(needs=[["a"], ["a", "b"], ["c"], ["d"]], prices={"a": 1.0, "b": 2.0, "c": 4.0, "d": 8.0})


def toy(seed: int = 0, n_labels: int = 16) -> Problem:
    """Return 120 rows in four columns, dear ones saying more, half of them for testing."""
    random = np.random.default_rng(seed)
    truth = np.arange(120) % 2
    noise = np.array([3.0, 2.0, 1.0, 0.3])
    X = (2 * truth[:, None] + noise * random.normal(size=(120, 4))).astype(np.float32)
    y = np.where(np.arange(60) < n_labels, truth[:60], -1)
    return Problem(X[:60], y, X[60:], truth[60:], COSTS)


@pytest.fixture(scope="module")
def trial() -> Trial:
    return Trial(toy(), PLAN, seed=0)


def test_costs_of_gbrt_are_those_of_its_first_trees(trial: Trial) -> None:
    model = trial.model(GBRT)
    points = list(METHODS["GBRT"].points(trial))
    assert [round(p.cost, 9) for p in points] == [COSTS.total(model.features(10)), COSTS.total(model.features(20))]
    np.testing.assert_allclose(points[1].scores, model.margins(trial.problem.X_test, [20])[0])


def test_a_group_is_paid_once_and_nothing_costs_nothing(trial: Trial) -> None:
    scores = np.linspace(-1, 1, 60)
    assert trial.point([0, 1], scores, {}).cost == 3.0
    assert trial.point([0, 2, 3], scores, {}).cost == 13.0
    empty = trial.point([], scores, {})
    assert empty.cost == 0
    # Eight labels of each class: log odds 0, for any method.
    assert set(empty.scores.tolist()) == {0.0}


def test_mu_buys_from_nearly_everything_to_nothing(trial: Trial) -> None:
    for name in ("Greedy Miser", "CEGB", "LapGBRT", "GRBB (paper)", "GRBB (default)"):
        costs = [point.cost for point in METHODS[name].points(trial)]
        assert costs[-1] == min(costs), name
        assert costs[-1] < costs[0], name
        assert costs[0] >= 8, name  # the best column is the dearest, and without a price it is taken
    assert [p.cost for p in METHODS["Greedy Miser"].points(trial)][-1] == 0


def test_hard_budgets_take_the_place_of_mu_and_of_penalties() -> None:
    budgets = (0.5, 1.0, 6.0, 15.0)
    limited = Trial(toy(), replace(PLAN, budgets=budgets), 0)
    for name in ("Greedy Miser", "CEGB", "LapGBRT", "GRBB (paper)", "GRBB (default)", "LRL1", "LapLRL1"):
        method = METHODS[name]
        costs = [point.cost for point in method.points(limited)]
        assert [settings["budget"] for settings in method.settings(limited.plan)] == list(budgets)
        assert costs[:2] == [0, 1], name  # a budget that buys one source has a model with it
        assert all(cost <= budget for cost, budget in zip(costs, budgets, strict=True)), name
        assert costs[-1] >= 8, name


def test_a_path_goes_on_after_a_column_that_does_not_fit() -> None:
    trial = Trial(toy(n_labels=60), PLAN, 0)
    path = partial(path_of, trial.rows)
    # The path asks for "d" (8) first, which is closed: "c" is 4, "a" and "b" are 3 with each other.
    assert within(path, trial.prices, COSTS, 7.5).features() == [0, 1, 2]
    assert within(path, trial.prices, COSTS, 4.0).features() in ([2], [0, 1])
    assert within(path, trial.prices, COSTS, 15.0).features() == [0, 1, 2, 3]


def test_mu_by_the_row_is_the_same_trade_off() -> None:
    # 16 of 60 rows are labelled: GBRT learns from 16, GRBB from all.
    for name, n_rows in (("Greedy Miser", 16), ("GRBB (paper)", 60)):
        by_row = replace(PLAN, mus=(0.25 / n_rows,), per_row=True)
        in_all = replace(PLAN, mus=(0.25,))
        ours, theirs = (next(METHODS[name].points(Trial(toy(), plan, 0))) for plan in (by_row, in_all))
        np.testing.assert_allclose(ours.scores, theirs.scores)
        assert ours.cost == theirs.cost


def test_the_steps_of_many_trees_are_as_long_as_in_the_search() -> None:
    short, long = (Trial(toy(), replace(PLAN, n_trees=n), 0).tuned(GBRT)[0].eta for n in (50, 200))
    assert short == 0.1  # one trial is the first one
    assert long == pytest.approx(0.1 / 4)


def test_without_a_price_the_miser_is_gbrt(trial: Trial) -> None:
    miser, plain = next(METHODS["Greedy Miser"].points(trial)), list(METHODS["GBRT"].points(trial))[-1]
    np.testing.assert_allclose(miser.scores, plain.scores, rtol=1e-5)


def test_early_exit_never_costs_more_than_gbrt(trial: Trial) -> None:
    whole = list(METHODS["GBRT"].points(trial))
    points = list(METHODS["Early-exit"].points(trial))
    assert all(whole[0].cost - 1e-9 <= point.cost <= whole[-1].cost + 1e-9 for point in points)
    assert [p.cost for p in points] == sorted(p.cost for p in points)
    np.testing.assert_allclose(points[-1].scores, whole[-1].scores)  # nobody leaves at threshold 1


def test_linear_paths_start_with_nothing_and_are_charged_for_the_union(trial: Trial) -> None:
    for name in ("LRL1", "LapLRL1"):
        points = list(METHODS[name].points(trial))
        assert points[0].cost == 0
        assert 8 <= max(p.cost for p in points) <= 15  # 16 if "a" were paid twice
    models = path_of(trial.rows, trial.prices, n_penalties=5)
    assert [p.cost for p in METHODS["LRL1"].points(trial)] == [COSTS.total(m.features()) for m in models]


def test_every_method_has_a_point_for_each_of_its_settings(trial: Trial) -> None:
    for name, method in METHODS.items():
        settings = method.settings(PLAN)
        assert len({json.dumps(s) for s in settings}) == len(settings), name
        assert len(list(method.points(trial))) == len(settings), name


def test_the_search_of_the_manifold_is_that_of_the_others() -> None:
    problem = toy()
    found, loss = tune_manifold(problem.X, problem.y, np.ones(4), 0, n_trials=3)
    assert 0.02 < loss < 1.0
    assert found.n_neighbors in (5, 9, 15)
    assert 1e-4 <= found.manifold <= 1
    first, _ = tune_manifold(problem.X, problem.y, np.ones(4), 0, n_trials=1)
    assert first == Manifold()


def test_no_test_label_plays_a_part() -> None:
    problem = toy()
    other = replace(problem, truth=1 - problem.truth)
    for name in ("GBRT", "Early-exit", "LapLRL1", "GRBB (paper)"):
        ours, theirs = (list(METHODS[name].points(Trial(p, PLAN, 0))) for p in (problem, other))
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(a.scores, b.scores)
            assert a.cost == b.cost
            assert a.details == b.details


def _problem(data: str, n_labels: int, seed: int) -> Problem:
    return toy(seed, n_labels)


QUESTION = curves.Question(
    name="toy",
    problem=_problem,
    cases=(curves.Case("toy", 16, PLAN, n_seeds=1, is_last=True), curves.Case("toy", 10, PLAN)),
    quick_cases=(),
    metrics=("accuracy", "auc"),
    n_seeds=2,
    budgets={"toy": (1.0, 4.0, 15.0)},
    can_read=lambda data: True,
)


def _work(task: curves.Task) -> list[Row]:
    return curves.work(QUESTION, task)


def test_a_run_goes_on_where_it_was_and_the_report_needs_the_csv_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = Options(methods=(NOTHING, "GBRT", "LRL1", "Greedy Miser"), output=tmp_path)
    table = ResultTable(tmp_path / "toy.csv", row=ROW)
    tasks = curves.missing(QUESTION, table, asked)
    assert [(task.seed, task.case.n_labels) for task in tasks] == [(0, 10), (1, 10), (0, 16)]
    assert curves.run(QUESTION, _work, asked) == 0
    rows = ResultTable(table.path, row=ROW).read()
    points = 1 + 2 + 5 + 4
    assert len(rows) == 3 * points * 2  # splits, points, metrics
    assert curves.missing(QUESTION, ResultTable(table.path, row=ROW), asked) == []
    # One lost point is enough for its method to run again, and for no other.
    lost = [r for r in rows if not (r["method"] == "LRL1" and r["seed"] == "1" and '"penalty": 0.1}' in r["settings"])]
    assert len(lost) == len(rows) - 2
    table.replace(lost)
    again = curves.missing(QUESTION, ResultTable(table.path, row=ROW), asked)
    assert [(task.seed, task.methods) for task in again] == [(1, ("LRL1",))]
    capsys.readouterr()
    assert curves.run(QUESTION, _work, Options(report=True, output=tmp_path)) == 0
    text = capsys.readouterr().out
    assert "## toy, 10 labels: accuracy (2 runs)" in text
    assert (tmp_path / "toy.md").read_text() in text
    assert (tmp_path / "toy.png").read_bytes().startswith(b"\x89PNG")
    details = {r["method"]: json.loads(r["details"]) for r in rows}
    assert details[NOTHING]["everything"] == 15.0
    assert {"eta", "depth", "loss"} <= details["GBRT"].keys()


@pytest.mark.parametrize("module", [scene15, ltr, prices])
def test_tasks_can_go_to_other_processes(module: Any) -> None:
    assert module.QUESTION.budgets.keys() >= {
        case.data for case in (*module.QUESTION.cases, *module.QUESTION.quick_cases)
    }
    task = curves.Task(module.QUESTION.cases[0], 0, ("GBRT",))
    assert pickle.loads(pickle.dumps((module.work, task))) == (module.work, task)


def test_scene15_in_a_quick_run(tmp_path: Path) -> None:
    options = Options(quick=True, output=tmp_path, methods=(NOTHING, "GBRT", "GRBB (paper)"))
    assert scene15.run(options) == 0
    rows = ResultTable(tmp_path / "scene15.csv", row=ROW).read()
    assert {r["data"] for r in rows} == {"digits"}
    assert all(float(r["cost"]) <= 8 * 30 + 64 for r in rows)


def test_ranking_in_a_quick_run(tmp_path: Path) -> None:
    options = Options(quick=True, output=tmp_path, methods=(NOTHING, "GBRT", "Early-exit", "LRL1"))
    assert ltr.run(options) == 0
    rows = ResultTable(tmp_path / "ltr.csv", row=ROW).read()
    value = {(r["method"], r["settings"]): float(r["value"]) for r in rows}
    assert value["Early-exit", '{"trees": 30, "keep": 1.0}'] == value["GBRT", '{"trees": 30, "first": 30}']
    assert value["LRL1", '{"penalty": 0.0001}'] > value[NOTHING, "{}"]


def test_labelled_queries_are_nested_and_always_in() -> None:
    qid = np.repeat(np.arange(60), 10)
    relevant = (np.arange(600) % 10 == 0).astype(np.int64)
    chosen, y = ltr.choose_queries(relevant, qid, 4, seed=0, most=105)
    assert chosen.size == 100  # ten queries: eleven would be more than 105 documents
    assert np.unique(qid[chosen][y >= 0]).size == 4
    np.testing.assert_array_equal(y[y >= 0], relevant[chosen][y >= 0])
    more, labels = ltr.choose_queries(relevant, qid, 32, seed=0, most=105)
    assert np.unique(qid[more]).size == 32
    assert (labels >= 0).all()
    assert set(qid[chosen]) <= set(qid[more])


def test_prices_by_number_are_those_by_name() -> None:
    named = FeatureCosts(
        needs={"chol": ["draw", "chol"], "fbs": ["draw", "fbs"]}, prices={"draw": 2, "chol": 5, "fbs": 3}
    )
    numbered = prices.by_number(named)
    assert (numbered.total([0]), numbered.total([1]), numbered.total([0, 1])) == (7, 5, 10)


def test_scenes_are_drawn_as_in_the_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = np.repeat(np.arange(1, 16), 120)
    X: NDArray[Any] = np.column_stack([scene, np.arange(scene.size)]).astype(np.float32)
    monkeypatch.setattr(scene15, "_scenes", lambda: (X, scene, ["view1", "view2"]))
    drawn = scene15.problem("scene15", 20, seed=3)
    assert np.unique(drawn.X[:, 0], return_counts=True)[1].tolist() == [100] * 15
    assert len(drawn.X_test) == 15 * 20
    assert not set(drawn.X[:, 1]) & set(drawn.X_test[:, 1])
    np.testing.assert_array_equal(drawn.truth, drawn.X_test[:, 0] > 8)
    assert (drawn.y >= 0).sum() == 20
