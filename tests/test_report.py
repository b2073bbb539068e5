from __future__ import annotations

import re
import sys
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.datasets import load_wine, make_moons
from sklearn.model_selection import GroupKFold
from xgboost import XGBClassifier

from grbb_ext import EvidenceDisplay, GRBBClassifier, GRBBRegressor, KNNGraph, SemiSupervisedSplit
from grbb_ext.model_selection import held_out_predict
from grbb_ext.report import wilson

BOOSTER = LGBMClassifier(n_estimators=4, n_jobs=1, verbosity=-1)
MOONS, TRUTH = make_moons(120, noise=0.2, random_state=0)
X = pd.DataFrame(MOONS, columns=["<i>a", "b&c"])
Y = np.where(np.arange(120) % 4 == 0, np.array(["<b>no", "yes"])[TRUTH], None)


class Balanced(HTMLParser):
    """Keep the open elements and the headings, and refuse elements that are closed in another order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: dict[str, str] = {}

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "h2" in self.open:
            self.text[data] = ""
        elif self.text:
            self.text[list(self.text)[-1]] += f" {data}"


def sections(path):
    page = path.read_text(encoding="utf-8")
    # No network: nothing is loaded, and the names in SVG are no addresses to fetch.
    assert not re.search(r"<(script|link|img|iframe)|@import|src=|url\((?!#)", page)
    parser = Balanced()
    parser.feed(page)
    assert not parser.open
    return page, parser.text


def test_the_whole_page(tmp_path):
    model = GRBBClassifier(BOOSTER, feature_costs={"<i>a": 1.0, "b&c": 2.0}, n_jobs=1).fit(X, Y)
    curve = model.cost_curve(X, Y, budgets=[1, 3], cv=2, verbose=False)
    path = tmp_path / "report.html"
    assert model.report(path, X, title="<script>x", curve=curve, label_price=2, cv=3) == path
    page, found = sections(path)
    assert list(found) == [
        "Rows and labels",
        "Expected quality",
        "Calibration",
        "Evidence",
        "What it costs",
        "What to label next",
        "Versions",
    ]
    assert page.count("<svg") == 3
    assert "<i>" not in page
    assert "<b>no" not in page
    held = held_out_predict(model, X, Y, cv=3)
    accuracy = (held.classes[held.prediction.argmax(axis=1)] == held.y).mean()
    assert f"accuracy {accuracy:.2f}" in " ".join(found["Expected quality"].split())
    assert "on average" in found["What it costs"]
    assert f" {model.suggest_labels(10, X=X).rows[0]} " in found["What to label next"]
    assert "Buy " in found["What to label next"]


def test_without_rows_and_without_prices(tmp_path):
    model = GRBBClassifier(BOOSTER, n_jobs=1).fit(X, Y)
    _, found = sections(model.report(tmp_path / "report.html"))
    assert "Not measured" in found["Expected quality"]
    assert not {"What it costs", "Calibration"} & set(found)


def test_several_classes_and_numbers(tmp_path):
    rows, truth = load_wine(return_X_y=True)
    y = np.where(np.arange(178) % 4 == 0, truth, -1)
    model = GRBBClassifier(BOOSTER, teacher="graph", n_jobs=1).fit(rows, y)
    _, found = sections(model.report(tmp_path / "classes.html", rows, cv=3))
    assert "Calibration" in found
    number = np.where(np.arange(178) % 4 == 0, rows[:, 0], np.nan)
    regressor = LGBMRegressor(n_estimators=4, n_jobs=1, verbosity=-1)
    model = GRBBRegressor(regressor, teacher="graph", n_jobs=1).fit(rows, number)
    _, found = sections(model.report(tmp_path / "numbers.html", rows, cv=3))
    assert "mean absolute error" in found["Expected quality"]


def test_repeated_folds_give_one_prediction_for_each_label(tmp_path):
    model = GRBBClassifier(BOOSTER, n_jobs=1).fit(X, Y)
    cv = SemiSupervisedSplit(3, n_repeats=4, random_state=0)
    page, found = sections(model.report(tmp_path / "report.html", X, cv=cv))
    held = held_out_predict(model, X, Y, cv=cv)
    mean = np.array([held.prediction[held.rows == row].mean(axis=0) for row in np.unique(held.rows)])
    y = Y[np.unique(held.rows)]
    assert held.rows.size == 4 * y.size == 120
    right = held.classes[mean.argmax(axis=1)] == y
    low, high = wilson(right.sum(), 30)
    assert f"Expected accuracy: {right.mean():.2f}, with 95 % confidence between {low:.2f} and {high:.2f}." in page
    assert "Each of 30 labels" in page
    likelihood = mean[np.arange(30), np.searchsorted(held.classes, y)]
    assert f"log-loss {-np.log(likelihood).mean():.2f}" in " ".join(found["Expected quality"].split())
    assert "3 groups of about 10" in page
    number = np.where(Y == None, np.nan, MOONS[:, 0])  # noqa: E711
    regressor = LGBMRegressor(n_estimators=4, n_jobs=1, verbosity=-1)
    model = GRBBRegressor(regressor, n_jobs=1).fit(X, number)
    assert "Each of 30 labels" in model.report(tmp_path / "numbers.html", X, cv=cv).read_text(encoding="utf-8")


def test_wrong_arguments(tmp_path):
    model = GRBBClassifier(BOOSTER, n_jobs=1).fit(X, Y)
    with pytest.raises(ValueError, match="Pass the same rows"):
        model.report(tmp_path / "report.html", X[:50])
    with pytest.raises(ValueError, match="not the rows given to fit"):
        model.report(tmp_path / "report.html", X[::-1])
    with pytest.raises(TypeError, match="cost_curve"):
        model.report(tmp_path / "report.html", curve=[1, 2])


@pytest.mark.filterwarnings("ignore")
def test_rows_out_of_reach_do_not_stop_a_report(tmp_path):
    rng = np.random.default_rng(0)
    rows = np.r_[rng.normal(size=(50, 2)), rng.normal(size=(50, 2)) + 1000.0]
    y = np.where(np.arange(100) < 48, rows[:, 0] > 0, -1)
    booster = LGBMClassifier(n_estimators=3, n_jobs=1, verbosity=-1)
    model = GRBBClassifier(booster, graph=KNNGraph(n_neighbors=3, scale=None), verbose=False).fit(rows, y)
    page = model.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "No suggestion: k=10 labels are wanted" in page


def test_a_model_that_was_stopped_early(tmp_path):
    booster = LGBMClassifier(n_estimators=100, early_stopping_rounds=2, n_jobs=1, verbosity=-1)
    model = GRBBClassifier(booster, n_jobs=1).fit(X, Y, eval_set=[(X, Y)])
    _, text = sections(model.report(tmp_path / "report.html", X))
    assert "accuracy" in text["Expected quality"]


@pytest.mark.filterwarnings("ignore:Only the class:UserWarning")
def test_labels_of_one_class(tmp_path):
    y = np.where(Y == "yes", Y, None)
    model = GRBBClassifier(BOOSTER, n_jobs=1).fit(X, y, classes=["no", "yes"])
    _, text = sections(model.report(tmp_path / "report.html", X, cv=2))
    assert "accuracy" in text["Expected quality"]


def test_weights_of_rows_count_in_the_folds(tmp_path):
    weight = np.linspace(0.1, 3.0, 120)
    model = GRBBClassifier(BOOSTER, n_jobs=1).fit(X, Y, sample_weight=weight)
    _, text = sections(model.report(tmp_path / "report.html", X, cv=3))
    held = held_out_predict(model, X, Y, cv=3, sample_weight=weight)
    likelihood = held.prediction[np.arange(held.y.size), np.searchsorted(held.classes, held.y)]
    assert f"{-np.log(likelihood).mean():.2f}" in text["Expected quality"]
    plain = held_out_predict(model, X, Y, cv=3).prediction
    assert not np.array_equal(plain, held.prediction)


def test_groups_are_not_on_both_sides_of_a_fold(tmp_path):
    model = GRBBClassifier(BOOSTER, n_jobs=1).fit(X, Y)
    groups = np.arange(120) // 12  # 3 labels in each
    _, text = sections(model.report(tmp_path / "report.html", X, cv=GroupKFold(3), groups=groups))
    held = held_out_predict(model, X, Y, cv=GroupKFold(3), groups=groups)
    likelihood = held.prediction[np.arange(held.y.size), np.searchsorted(held.classes, held.y)]
    assert f"{-np.log(likelihood).mean():.2f}" in text["Expected quality"]


def test_pictures_without_matplotlib_say_what_to_install(tmp_path, monkeypatch):
    model = GRBBClassifier(BOOSTER, n_jobs=1).fit(X, Y)
    plan = model.plan_labels(3, 1.0)
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    for draw in (
        plan.plot,
        lambda: EvidenceDisplay.from_estimator(model),
        lambda: model.report(tmp_path / "a.html", X),
    ):
        with pytest.raises(ImportError, match=r"grbb_ext\[plot\]"):
            draw()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_suggestions": 2.5}, "n_suggestions must be an integer of at least 0"),
        ({"label_price": "5"}, "label_price must be a positive number"),
        ({"path": "."}, r"is a folder: name a file, such as 'report\.html'"),
    ],
)
def test_settings_are_looked_at_before_the_folds(monkeypatch, settings, message):
    model = GRBBClassifier(BOOSTER, n_jobs=1).fit(X, Y)
    monkeypatch.setattr("grbb_ext.report.held_out_predict", lambda *_, **__: pytest.fail("trained in folds"))
    with pytest.raises((ValueError, IsADirectoryError), match=message):
        model.report(**{"path": "report.html", "X": X} | settings)


def test_names_with_dollars_are_no_formulas(tmp_path):
    y = np.where(Y == "yes", "up to $1^^$", Y)
    GRBBClassifier(BOOSTER, n_jobs=1).fit(X, y).report(tmp_path / "a.html", X)


def test_folders_of_the_page_are_made(tmp_path):
    GRBBClassifier(BOOSTER, n_jobs=1).fit(X, Y).report(tmp_path / "new" / "folder" / "a.html")
    assert (tmp_path / "new" / "folder" / "a.html").is_file()


def test_a_fold_may_miss_a_category(tmp_path):
    rows = X.assign(kind=np.where(np.arange(120) == 4, "rare", "common"))
    model = GRBBClassifier(XGBClassifier(n_estimators=2, n_jobs=1), n_jobs=1).fit(rows, Y)
    _, text = sections(model.report(tmp_path / "a.html", rows, cv=3))
    assert "Each of 30 labels" in text["Expected quality"]
