from __future__ import annotations

from typing import Any

import numpy as np
import optuna
import pytest
from numpy.testing import assert_array_equal

from benchmarks.paper import tuning
from benchmarks.paper.boosted import CORRECTED, GBRT, METHODS, PAPER, Boosted, Method, Rows, Settings
from benchmarks.paper.tuning import folds_of, log_loss, propose, some_rows, tune


def small(n: int = 50, n_labels: int = 12) -> tuple[Any, Any]:
    random = np.random.default_rng(3)
    truth = np.arange(n) % 2
    X = random.standard_normal((n, 3)).astype(np.float32)
    X[:, 0] += 2 * truth
    return X, np.where(np.arange(n) < n_labels, truth, -1)


def test_log_loss_by_hand() -> None:
    # p = 1/2 costs log 2 whichever class is true; p = e/(1+e) = .731 for a margin of 1.
    assert log_loss(np.zeros(2), np.array([0, 1])) == pytest.approx(np.log(2))
    assert log_loss(np.array([1.0]), np.array([1])) == pytest.approx(-np.log(np.e / (1 + np.e)))
    assert log_loss(np.array([1.0]), np.array([0])) == pytest.approx(-np.log(1 / (1 + np.e)))
    # Certainty counts as .98, a certain mistake as .02; nothing overflows.
    assert log_loss(np.array([1e9, -1e9]), np.array([1, 0])) == pytest.approx(-np.log(0.98))
    assert log_loss(np.array([1e9]), np.array([0])) == pytest.approx(-np.log(0.02))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_ones", [2, 3, 10])
def test_folds_hide_every_label_once_and_leave_both_classes(seed: int, n_ones: int) -> None:
    y = np.full(40, -1)
    y[::2] = np.arange(20) < n_ones
    folds = list(folds_of(y, seed))
    assert sorted(np.concatenate(folds).tolist()) == np.flatnonzero(y >= 0).tolist()
    for hidden in folds:
        left = np.setdiff1d(np.flatnonzero(y >= 0), hidden)
        assert set(y[left]) == {0, 1}
    # Each class is spread evenly.
    for label in (0, 1):
        counts = [int((y[hidden] == label).sum()) for hidden in folds]
        assert max(counts) - min(counts) <= 1


def test_the_only_label_of_a_class_is_never_hidden() -> None:
    y = np.array([1, 0, 0, 0, 0, -1, -1])
    folds = list(folds_of(y, 0))
    assert folds
    assert all(0 not in hidden for hidden in folds)
    with pytest.raises(ValueError, match="two labels of one class"):
        list(folds_of(np.array([0, 1, -1]), 0))


def test_queries_are_hidden_whole() -> None:
    y = np.array([0, 1, 1, 0, 0, 1, -1, -1])
    qid = np.array([7, 7, 3, 3, 3, 3, 9, 9])
    assert sorted(hidden.tolist() for hidden in folds_of(y, 0, qid)) == [[0, 1], [2, 3, 4, 5]]
    # The first query has one class alone: hiding the other would leave nothing to learn.
    y = np.array([0, 0, 1, 0, 0, 1, -1, -1])
    assert [hidden.tolist() for hidden in folds_of(y, 0, qid)] == [[0, 1]]
    # A class to each: no query can be hidden, so documents are.
    y = np.array([0, 0, 1, 1, 1, 1, -1, -1])
    folds = list(folds_of(y, 0, qid))
    assert sorted(np.concatenate(folds).tolist()) == list(range(6))


def test_rows_of_the_search_are_all_labeled_and_some_others() -> None:
    y = np.full(100, -1)
    y[[5, 50, 95]] = 1
    kept = some_rows(y, seed=0, max_rows=20)
    assert kept.size == 20
    assert {5, 50, 95} <= set(kept.tolist())
    assert_array_equal(kept, np.unique(kept))
    assert_array_equal(some_rows(y, 0, 20), kept)
    assert some_rows(y, 1, 20).tolist() != kept.tolist()
    assert_array_equal(some_rows(y, 0, 500), np.arange(100))
    assert_array_equal(some_rows(np.zeros(30), 0, 20), np.arange(30))  # labels are never left out


def test_a_method_is_asked_for_its_own_settings_only() -> None:
    study = optuna.create_study()
    for method in METHODS.values():
        trial = study.ask()
        settings = propose(trial, method)
        assert set(trial.params) == set(method.space)
        assert all(getattr(settings, name) == value for name, value in trial.params.items())
    assert GBRT.space == ("eta", "depth")
    assert set(CORRECTED.space) == {"eta", "depth", "n_neighbors", "lam", "correction"}


class Recorder:
    """Stands in for `fit`: keeps what the search trains on, and scores rows by a rule of the settings."""

    def __init__(self) -> None:
        self.calls: list[tuple[Rows, Settings, int]] = []
        self.tested: list[Any] = []

    def __call__(self, rows: Rows, method: Method, settings: Settings, n_trees: int) -> Any:
        self.calls.append((rows, settings, n_trees))
        recorder = self

        class Model:
            def margins(self, X: Any, trees: list[int]) -> Any:
                recorder.tested.append(X)
                return np.full((len(trees), len(X)), settings.eta)

        return Model()


def test_the_first_trial_is_the_same_for_all_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = small()
    for method in METHODS.values():
        monkeypatch.setattr(tuning, "fit", recorder := Recorder())
        tune(X, y, method, 200, seed=4, n_trials=3)
        assert [settings for _, settings, _ in recorder.calls[: tuning.N_FOLDS]] == [Settings()] * tuning.N_FOLDS
        assert recorder.calls[tuning.N_FOLDS][1] != Settings()
        assert {trees for *_, trees in recorder.calls} == {tuning.MAX_TREES}


def test_what_is_judged_is_hidden_while_training(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = small()
    monkeypatch.setattr(tuning, "fit", recorder := Recorder())
    tune(X, y, PAPER, 10, seed=0, n_trials=1)
    assert {trees for *_, trees in recorder.calls} == {10}
    for (rows, *_), tested in zip(recorder.calls, recorder.tested, strict=True):
        judged = np.flatnonzero((X[:, None] == tested[None]).all(axis=2).any(axis=1))
        assert (y[judged] >= 0).all()
        assert (rows.y[judged] == -1).all()
        assert rows.max_bin == tuning.MAX_BIN
    assert sum(len(tested) for tested in recorder.tested) == 12


def test_a_trial_that_is_worse_than_the_others_ends_early(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = small()
    y[y == 1] = 0
    y[:2] = 1  # mostly zeros: the larger the margin, the worse
    monkeypatch.setattr(tuning, "fit", recorder := Recorder())
    settings, loss = tune(X, y, GBRT, 10, seed=0, n_trials=12)
    etas = [call[1].eta for call in recorder.calls]
    assert len(etas) < 12 * tuning.N_FOLDS
    assert settings.eta == min(eta for eta in etas if etas.count(eta) == tuning.N_FOLDS)
    assert loss > 0


@pytest.mark.parametrize("method", [GBRT, PAPER, CORRECTED], ids=lambda method: method.name)
def test_the_same_seed_finds_the_same_settings(method: Method) -> None:
    X, y = small()
    first = tune(X, y, method, 5, seed=1, n_trials=3)
    assert tune(X, y, method, 5, seed=1, n_trials=3) == first
    assert set(vars(first[0])) == set(vars(Settings()))


def test_the_loss_that_is_returned_is_that_of_the_settings() -> None:
    X, y = small()
    settings, loss = tune(X, y, PAPER, 5, seed=1, n_trials=4)
    rows = Rows(X, y, tuning.MAX_BIN)
    losses = []
    for hidden in folds_of(y, 1):
        model: Boosted = tuning.fit(rows.hide(hidden), PAPER, settings, 5)
        losses.append(log_loss(model.margins(X[hidden], [5])[0], y[hidden]))
    assert loss == pytest.approx(np.mean(losses))


def test_labels_decide_and_the_truth_of_other_rows_has_no_way_in() -> None:
    X, y = small()
    found = tune(X, y, GBRT, 5, seed=1, n_trials=4)
    # With the labels on their heads the search finds something else, so it does look at them.
    assert tune(X, np.where(y >= 0, np.roll(y, 1), -1), GBRT, 5, seed=1, n_trials=4) != found
    # GBRT learns from labelled rows alone: whatever stands in the others changes nothing.
    noise = np.where((y < 0)[:, None], np.float32(1e3), X)
    assert tune(noise, y, GBRT, 5, seed=1, n_trials=4) == found
