"""Bad calls: each ends with an exception that says what to do, or with a documented result; none hangs, none is NaN.

docs/errors.md has the same list in prose.
"""

from __future__ import annotations

import datetime
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from xgboost import XGBClassifier

import grbb_ext
from grbb_ext import FeatureCosts, GRBBClassifier, GRBBRegressor, KNNGraph, ModelFileError, SharedGraph

N = 40
X = np.random.default_rng(0).normal(size=(N, 3))
TRUTH = (X[:, 0] > 0).astype(int)
LABELED = np.arange(N) < 10
Y = np.where(LABELED, TRUTH, -1)
NUMBERS = np.where(LABELED, X[:, 0], np.nan)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
CODES = np.abs(np.round(X))
COSTS = FeatureCosts([1.0, 2.0, 3.0])
BIG = 1e300
# These rows have no structure that a graph could find; what the labels say of it is tested elsewhere.
GRAPH_ALONE = {"teacher": "graph"}


@dataclass
class Kit:
    """What a bad call needs: a booster of either library, and a folder."""

    booster: Callable[..., Any]
    booster_for_numbers: Callable[..., Any]
    folder: Path

    def classify(self, rows=X, y=Y, weight=None, *, of_booster=None, fit=None, predict=None, **settings):
        """Fit a classifier and return its probabilities."""
        model = GRBBClassifier(self.booster(**(of_booster or {}))).set_params(**GRAPH_ALONE).set_params(**settings)
        model.fit(rows, y, weight, **(fit or {}))
        return model.predict_proba(rows if predict is None else predict)

    def regress(self, rows=X, y=NUMBERS, weight=None, *, of_booster=None, fit=None, **settings):
        """Fit a regressor and return its predictions."""
        model = GRBBRegressor(self.booster_for_numbers(**(of_booster or {})), **{**GRAPH_ALONE, **settings})
        return model.fit(rows, y, weight, **(fit or {})).predict(rows)

    def fitted(self, rows=X, **settings):
        return GRBBClassifier(self.booster(), **{**GRAPH_ALONE, **settings}).fit(rows, Y)

    def saved(self, name: str = "", change: Callable[[bytes], bytes] = bytes) -> Path:
        """Save a model and damage one of its files."""
        self.fitted().save(self.folder / "model")
        if name:
            file = next((self.folder / "model").glob(name))
            file.write_bytes(change(file.read_bytes()))
        return self.folder / "model"


@pytest.fixture
def kit(classifier, regressor, tmp_path) -> Kit:
    return Kit(
        lambda **settings: classifier(**{"n_estimators": 4, **settings}),
        lambda **settings: regressor(**{"n_estimators": 4, **settings}),
        tmp_path,
    )


@pytest.fixture(autouse=True)
def no_call_hangs() -> Iterator[None]:
    """Interrupt a test that takes a minute: it should take a fraction of a second."""

    def interrupt(*_: Any) -> None:
        raise TimeoutError("the call hangs")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def with_entry(value: float) -> Any:
    changed = X.copy()
    changed[0, 0] = value
    return changed


Call = Callable[[Kit], Any]
Refused = dict[str, tuple[Call, type[Exception], str]]

ROWS: Refused = {
    "none": (lambda kit: kit.classify(None), ValueError, "2D array"),
    "text": (lambda kit: kit.classify("rows"), ValueError, "could not convert"),
    "ragged": (lambda kit: kit.classify([[1.0, 2.0], [3.0]] * 20), ValueError, "inhomogeneous"),
    "dict": (lambda kit: kit.classify({"a": 1}), TypeError, "dict"),
    "generator": (lambda kit: kit.classify(row for row in X), TypeError, "generator"),
    "one dimension": (lambda kit: kit.classify(X[:, 0]), ValueError, "Reshape your data"),
    "three dimensions": (lambda kit: kit.classify(X[None]), ValueError, "dim 3"),
    "a series": (lambda kit: kit.classify(FRAME["a"]), ValueError, "Pass a DataFrame"),
    "no rows": (lambda kit: kit.classify(X[:0], Y[:0]), ValueError, "0 sample"),
    "one row": (lambda kit: kit.classify(X[:1], Y[:1]), ValueError, "1 sample"),
    "no columns": (lambda kit: kit.classify(X[:, :0]), ValueError, "0 feature"),
    "infinite": (lambda kit: kit.classify(with_entry(np.inf)), ValueError, "infinity"),
    "infinite in a frame": (lambda kit: kit.classify(FRAME.assign(a=-np.inf)), ValueError, "Replace it by NaN"),
    "infinite, sparse": (lambda kit: kit.classify(sp.csr_matrix(with_entry(np.inf))), ValueError, "infinity"),
    "beyond single precision": (lambda kit: kit.classify(with_entry(BIG)), ValueError, "Scale them"),
    "complex": (lambda kit: kit.classify(X.astype(complex)), ValueError, "Complex"),
    "complex, sparse": (lambda kit: kit.classify(sp.csr_matrix(X.astype(complex))), ValueError, "Complex"),
    "objects": (lambda kit: kit.classify(np.full((N, 2), {}, dtype=object)), TypeError, "a string or a number"),
    "masked": (lambda kit: kit.classify(np.ma.masked_array(X, X > 1)), TypeError, "filled"),
    "np.matrix": (lambda kit: kit.classify(sp.csr_matrix(X).todense()), TypeError, "np.asarray"),
    "dates": (lambda kit: kit.classify(np.full((N, 2), "2026-01-01", "M8[D]")), ValueError, "days since"),
    "durations": (lambda kit: kit.classify(np.full((N, 2), 3, "m8[D]")), ValueError, "days since"),
    "dates in pandas": (lambda kit: kit.classify(FRAME.assign(d=pd.Timestamp(0))), ValueError, "'d' of X holds dates"),
    "lists in pandas": (lambda kit: kit.classify(FRAME.assign(d=[[1]] * N)), TypeError, "a string or a number"),
    "dates in polars": (
        lambda kit: kit.classify(pl.DataFrame({"d": [datetime.date(2026, 1, 1)] * N})),
        ValueError,
        "Turn them into numbers",
    ),
    "a lazy frame": (lambda kit: kit.classify(pl.LazyFrame({"a": X[:, 0]})), TypeError, r"X\.collect\(\)"),
    "a name twice": (
        lambda kit: kit.classify(FRAME.set_axis(["a", "a", "b"], axis=1)),
        ValueError,
        "name of its own",
    ),
    "names and numbers": (
        lambda kit: kit.classify(FRAME.set_axis(["a", 1, 2], axis=1)),
        TypeError,
        "convert them all to strings",
    ),
    "a category without values": (
        lambda kit: kit.classify(FRAME.assign(d=pd.Categorical([None] * N, categories=[]))),
        ValueError,
        "has no category. Drop it",
    ),
}

LABELS: Refused = {
    "none": (lambda kit: kit.classify(y=None), ValueError, "Mark unlabelled rows"),
    "too few": (lambda kit: kit.classify(y=Y[:-1]), ValueError, "inconsistent numbers of samples"),
    "two columns": (lambda kit: kit.classify(y=np.column_stack([Y, Y])), ValueError, "1d array"),
    "a number": (lambda kit: kit.classify(y=1), ValueError, "1d array"),
    "unlabelled only": (lambda kit: kit.classify(y=np.full(N, -1)), ValueError, "Label at least one row"),
    "one class only": (lambda kit: kit.classify(y=np.where(Y == 1, 1, -1)), ValueError, "Label a row of another class"),
    "one labelled row": (lambda kit: kit.classify(y=np.where(np.arange(N), -1, 1)), ValueError, "with classes="),
    "continuous": (lambda kit: kit.classify(y=X[:, 0]), ValueError, "continuous"),
    "infinite": (lambda kit: kit.classify(y=np.where(Y == 1, np.inf, Y)), ValueError, "infinity"),
    "text and numbers": (lambda kit: kit.classify(y=["a", 1] * 20), ValueError, "Use one type"),
    "the marker as text": (lambda kit: kit.classify(y=["a", "-1", "b", "-1"] * 10), ValueError, "unlabeled='-1'"),
    "dates": (lambda kit: kit.classify(y=np.array(["2026", "2027"] * 20, "M8[Y]")), ValueError, "dates or durations"),
    "bytes": (lambda kit: kit.classify(y=np.array([b"a", b"b"] * 20)), TypeError, "bytes.*astype"),
    "complex": (lambda kit: kit.classify(y=Y.astype(complex)), ValueError, "Complex"),
    "sparse": (lambda kit: kit.classify(y=sp.csr_matrix(TRUTH)), ValueError, "1d array"),
    "several markers": (lambda kit: kit.classify(unlabeled=[-1, 0]), TypeError, "one marker"),
    "a class beyond classes": (lambda kit: kit.classify(fit={"classes": [0, 5]}), ValueError, "Add them to classes="),
    "the marker among classes": (lambda kit: kit.classify(fit={"classes": [-1, 0, 1]}), ValueError, "Leave it out"),
    "NaN among classes": (lambda kit: kit.classify(fit={"classes": [0.0, 1.0, np.nan]}), ValueError, "Leave it out"),
    "classes in a table": (lambda kit: kit.classify(fit={"classes": [[0, 1]]}), ValueError, "at least two different"),
    "text for numbers": (lambda kit: kit.regress(y=["1.5"] * N), ValueError, "needs numbers in y"),
    "dates for numbers": (lambda kit: kit.regress(y=np.full(N, "2026", "M8[Y]")), ValueError, "needs numbers in y"),
    "infinite numbers": (lambda kit: kit.regress(y=np.full(N, np.inf)), ValueError, "Use NaN for an unlabelled row"),
    "huge numbers": (lambda kit: kit.regress(y=X[:, 0] * BIG), ValueError, "Scale them"),
    "no number": (lambda kit: kit.regress(y=np.full(N, np.nan)), ValueError, "Label at least one row"),
}

WEIGHTS_AND_SETS: Refused = {
    "negative": (lambda kit: kit.classify(weight=-np.ones(N)), ValueError, "not negative"),
    "NaN": (lambda kit: kit.classify(weight=np.full(N, np.nan)), ValueError, "must be finite"),
    "too few": (lambda kit: kit.classify(weight=np.ones(3)), ValueError, "one weight for each of the 40 rows"),
    "one number": (lambda kit: kit.classify(weight=2.0), ValueError, "one weight for each"),
    "text": (lambda kit: kit.classify(weight=["heavy"] * N), ValueError, "sample_weight must hold one number"),
    "huge": (lambda kit: kit.classify(weight=np.full(N, BIG)), ValueError, "Divide the weights"),
    "all zero": (lambda kit: kit.regress(weight=np.zeros(N)), ValueError, "nothing to learn from"),
    "class_weight negative": (lambda kit: kit.classify(class_weight={0: -1, 1: 1}), ValueError, "not negative"),
    "class_weight all zero": (lambda kit: kit.classify(class_weight={0: 0, 1: 0}), ValueError, "nothing to learn"),
    "class_weight a number": (lambda kit: kit.classify(class_weight=3), TypeError, "'balanced', a dict or None"),
    "eval_set an array": (lambda kit: kit.classify(fit={"eval_set": X}), ValueError, r"pairs \(X, y\)"),
    "eval_set two arrays": (lambda kit: kit.classify(fit={"eval_set": [X, Y]}), ValueError, r"pairs \(X, y\)"),
    "eval_set of fewer columns": (
        lambda kit: kit.classify(fit={"eval_set": [(X[:, :2], TRUTH)]}),
        ValueError,
        "expecting 3 features",
    ),
    "eval_set of other lengths": (
        lambda kit: kit.classify(fit={"eval_set": [(X, TRUTH[:5])]}),
        ValueError,
        "inconsistent",
    ),
    "eval_set without labels": (
        lambda kit: kit.classify(fit={"eval_set": [(X, np.full(N, -1))]}),
        ValueError,
        "watch rows that have labels",
    ),
    "eval_set of other classes": (
        lambda kit: kit.classify(fit={"eval_set": [(X, TRUTH + 5)]}),
        ValueError,
        "outside the classes",
    ),
    "callbacks not in a list": (lambda kit: kit.classify(fit={"callbacks": print}), TypeError, "Put it in a list"),
    "callbacks of another kind": (lambda kit: kit.classify(fit={"callbacks": [3]}), TypeError, "booster's library"),
}

PRICES: Refused = {
    "mu without prices": (lambda kit: kit.classify(mu=0.1), ValueError, "pass feature_costs="),
    "budget without prices": (lambda kit: kit.classify(budget=0), ValueError, "pass feature_costs="),
    "mu negative": (lambda kit: kit.classify(feature_costs=COSTS, mu=-1), ValueError, "mu must be"),
    "mu NaN": (lambda kit: kit.classify(feature_costs=COSTS, mu=np.nan), ValueError, "mu must be"),
    "mu text": (lambda kit: kit.classify(feature_costs=COSTS, mu="a"), TypeError, "mu must be"),
    "budget negative": (lambda kit: kit.classify(feature_costs=COSTS, budget=-1), ValueError, "budget must be"),
    "budget NaN": (lambda kit: kit.classify(feature_costs=COSTS, budget=np.nan), ValueError, "budget must be"),
    "a negative price": (lambda kit: kit.classify(feature_costs=[1, -1, 1]), ValueError, "price of 1 must be"),
    "a price that is NaN": (lambda kit: kit.classify(feature_costs=[1, np.nan, 1]), ValueError, "price of 1 must be"),
    "too few prices": (lambda kit: kit.classify(feature_costs=[1, 1]), ValueError, "2 entries"),
    "no prices": (lambda kit: kit.classify(feature_costs={}), ValueError, "at least one"),
    "a text": (lambda kit: kit.classify(feature_costs="abc"), TypeError, "prices by column"),
    "an unknown column": (
        lambda kit: kit.classify(FRAME, feature_costs={"a": 1, "b": 1, "c": 1, "d": 1}),
        ValueError,
        "no such column",
    ),
    "a column without a price": (
        lambda kit: kit.classify(FRAME, feature_costs={"a": 1}),
        ValueError,
        r"FeatureCosts\(default=...\)",
    ),
    "names for an array": (
        lambda kit: kit.classify(feature_costs={"a": 1, "b": 1, "c": 1}),
        ValueError,
        "Name the columns",
    ),
    "on_demand without prices": (lambda kit: kit.fitted().on_demand({}), ValueError, "pass feature_costs="),
    "on_demand without sources": (
        lambda kit: kit.fitted(feature_costs=COSTS).on_demand({}),
        ValueError,
        "add a callable for each",
    ),
}

SETTINGS: Refused = {
    "the class of a booster": (lambda kit: GRBBClassifier(type(kit.booster())).fit(X, Y), TypeError, "an instance"),
    "another task": (lambda kit: GRBBClassifier(kit.booster_for_numbers()).fit(X, Y), TypeError, "for classification"),
    "another estimator": (lambda kit: GRBBClassifier(LogisticRegression()).fit(X, Y), TypeError, "LGBMClassifier or"),
    "a trained booster": (lambda kit: GRBBClassifier(kit.fitted().booster_).fit(X, Y), TypeError, "got Booster"),
    "a name": (lambda kit: GRBBClassifier("xgboost").fit(X, Y), TypeError, "got str"),
    "no rounds": (lambda kit: kit.classify(of_booster={"n_estimators": 0}), ValueError, "positive integer"),
    "rounds below zero": (lambda kit: kit.classify(of_booster={"n_estimators": -1}), ValueError, "positive integer"),
    "half a round": (lambda kit: kit.regress(of_booster={"n_estimators": 2.5}), ValueError, "positive integer"),
    "another loss": (lambda kit: kit.classify(of_booster={"objective": "x"}), ValueError, "Leave objective"),
    "an absurd learning rate": (lambda kit: kit.regress(of_booster={"learning_rate": 1e30}), ValueError, "lower the"),
    "n_neighbors": (lambda kit: kit.classify(graph__n_neighbors=0), ValueError, "positive integer"),
    "graph of other rows": (lambda kit: kit.classify(graph=np.ones((3, 3))), ValueError, "SharedGraph"),
    "graph with NaN": (lambda kit: kit.classify(graph=np.full((N, N), np.nan)), ValueError, "finite number"),
    "graph one way": (lambda kit: kit.classify(graph=np.triu(np.ones((N, N)), 1)), ValueError, r"W\.maximum"),
    "shared graph of other rows": (lambda kit: kit.classify(graph=SharedGraph(X + 1)), ValueError, "not a row of"),
    "lam": (lambda kit: kit.classify(rule__lam=-1.0), ValueError, "lam must be"),
    "lam as text": (lambda kit: kit.classify(rule__lam="a"), TypeError, "lam must be a number"),
    "sharpen": (lambda kit: kit.classify(teacher__sharpen=np.nan), ValueError, "sharpen must be"),
    "solver": (lambda kit: kit.classify(propagation__solver="magic"), ValueError, "must be one of"),
    "random_state": (lambda kit: kit.classify(random_state="dice"), ValueError, "seed"),
    "categories: no column": (lambda kit: kit.classify(categorical_features=[7]), ValueError, "no such column"),
    "categories: half a column": (lambda kit: kit.classify(CODES, categorical_features=[0.5]), ValueError, "no such"),
    "categories: one number": (lambda kit: kit.classify(CODES, categorical_features=0), TypeError, "list of columns"),
    "categories: two of three": (
        lambda kit: kit.classify(CODES, categorical_features=[True, False]),
        ValueError,
        "X has 3 columns",
    ),
    "categories: no codes": (lambda kit: kit.classify(categorical_features=[0]), ValueError, "Encode it"),
    "categories: sparse": (
        lambda kit: kit.classify(sp.csr_matrix(CODES), categorical_features=[0]),
        ValueError,
        "Pass a frame",
    ),
}

PREDICTIONS: Refused = {
    "not fitted": (lambda kit: GRBBClassifier(kit.booster()).predict(X), NotFittedError, "not fitted"),
    "more columns": (lambda kit: kit.fitted().predict(np.c_[X, X]), ValueError, "expecting 3 features"),
    "one row without brackets": (lambda kit: kit.fitted().predict(X[0]), ValueError, "Reshape your data"),
    "no rows": (lambda kit: kit.fitted().predict_proba(X[:0]), ValueError, "0 sample"),
    "infinite": (lambda kit: kit.fitted().decision_function(with_entry(-np.inf)), ValueError, "infinity"),
    "beyond single precision": (lambda kit: kit.fitted().predict(with_entry(-BIG)), ValueError, "Scale them"),
    "other names": (lambda kit: kit.fitted(FRAME).predict(FRAME.rename(columns={"a": "z"})), ValueError, "unseen"),
    "another order": (lambda kit: kit.fitted(FRAME).predict(FRAME[["c", "b", "a"]]), ValueError, "same order"),
    "text": (
        lambda kit: kit.fitted(FRAME).predict(FRAME.assign(a="x")),
        ValueError,
        "'a' of X holds text",
    ),
    "codes that are none": (
        lambda kit: kit.classify(CODES, predict=CODES + 0.5, categorical_features=[0]),
        ValueError,
        "Encode it",
    ),
    "score without labels": (lambda kit: kit.fitted().score(X, np.full(N, -1)), ValueError, "nothing to score"),
    "score of other lengths": (lambda kit: kit.fitted().score(X[:20], Y), ValueError, "inconsistent"),
    "score with few weights": (lambda kit: kit.fitted().score(X, Y, [1.0]), ValueError, "one weight for each"),
    "score with negative weights": (lambda kit: kit.fitted().score(X, Y, -np.ones(N)), ValueError, "not negative"),
    "no suggestions": (lambda kit: kit.fitted().suggest_labels(0), ValueError, "positive integer"),
    "too many suggestions": (lambda kit: kit.fitted().suggest_labels(1000), ValueError, "only 30 unlabelled"),
}

FILES: Refused = {
    "saved before fit": (lambda kit: GRBBClassifier().save(kit.folder / "model"), NotFittedError, "not fitted"),
    "saved over a folder": (lambda kit: kit.fitted().save(kit.folder.parent), FileExistsError, "Choose another path"),
    "saved nowhere": (lambda kit: kit.fitted().save(None), TypeError, "PathLike"),
    "nothing there": (lambda kit: grbb_ext.load(kit.folder / "model"), FileNotFoundError, "no saved model"),
    "an empty folder": (lambda kit: grbb_ext.load(kit.folder), ModelFileError, r"no grbb\.json"),
    "the booster alone": (
        lambda kit: grbb_ext.load(next(kit.saved().glob("model.*"))),
        ModelFileError,
        "Pass the folder",
    ),
    "a booster cut off": (
        lambda kit: grbb_ext.load(kit.saved("model.*", lambda data: data[: len(data) // 2])),
        ModelFileError,
        "save the model again",
    ),
    "an empty booster": (lambda kit: grbb_ext.load(kit.saved("model.*", lambda _: b"")), ModelFileError, "cut off"),
    "a JSON cut off": (
        lambda kit: grbb_ext.load(kit.saved("grbb.json", lambda data: data[:200])),
        ModelFileError,
        "cut off",
    ),
    "a later format": (
        lambda kit: grbb_ext.load(
            kit.saved("grbb.json", lambda data: data.replace(b'"format_version": 2', b'"format_version": 99'))
        ),
        ModelFileError,
        "pip install -U grbb_ext",
    ),
    "another program's JSON": (
        lambda kit: grbb_ext.load(kit.saved("grbb.json", lambda _: b'{"learner": {}}')),
        ModelFileError,
        "not that of a model saved by grbb_ext",
    ),
    "another estimator": (lambda kit: GRBBRegressor.load(kit.saved()), ModelFileError, "use GRBBClassifier.load"),
}

GROUPS = {
    "rows": ROWS,
    "labels": LABELS,
    "weights and sets": WEIGHTS_AND_SETS,
    "prices": PRICES,
    "settings": SETTINGS,
    "predictions": PREDICTIONS,
    "files": FILES,
}


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize(
    ("call", "error", "match"),
    [pytest.param(*case, id=f"{group}: {name}") for group, cases in GROUPS.items() for name, case in cases.items()],
)
def test_a_bad_call_says_what_to_do(kit, call, error, match):
    with pytest.raises(error, match=match) as caught:
        call(kit)
    assert type(caught.value).__module__.split(".")[0] in ("builtins", "grbb_ext", "sklearn")


FINITE: dict[str, Call] = {
    "rows as lists": lambda kit: kit.classify(X.tolist(), Y.tolist()),
    "rows of objects": lambda kit: kit.classify(X.astype(object)),
    "all missing": lambda kit: kit.classify(np.full((N, 2), np.nan)),
    "sparse with NaN": lambda kit: kit.classify(sp.csr_matrix(with_entry(np.nan))),
    "zeros": lambda kit: kit.classify(np.zeros((N, 3))),
    "sparse zeros": lambda kit: kit.regress(sp.csr_matrix((N, 3))),
    "constant columns": lambda kit: kit.regress(np.ones((N, 2))),
    "one row many times": lambda kit: kit.classify(np.repeat(X[:2], N // 2, axis=0)),
    "two rows": lambda kit: kit.classify(X[:2], [0, 1]),
    "odd names": lambda kit: kit.classify(FRAME.set_axis(["a b", "[x]", "<"], axis=1)),
    "more neighbours than rows": lambda kit: kit.classify(graph=KNNGraph(n_neighbors=1000)),
    "one labelled number": lambda kit: kit.regress(y=np.where(np.arange(N), np.nan, 5.0)),
    "as many classes as labels": lambda kit: kit.classify(y=np.where(LABELED, np.arange(N), -1)),
    "no eval_set": lambda kit: kit.classify(fit={"eval_set": []}),
    "no budget": lambda kit: kit.classify(feature_costs=COSTS, budget=0),
    "a budget below the cheapest source": lambda kit: kit.regress(feature_costs=COSTS, budget=0.5),
    "no budget, three classes": lambda kit: kit.classify(
        y=np.where(np.arange(N) < 12, np.arange(N) % 3, -1), feature_costs=COSTS, budget=0
    ),
    "a price that nothing is worth": lambda kit: kit.classify(feature_costs=COSTS, mu=1e9),
    "prices in a Series": lambda kit: kit.classify(FRAME, feature_costs=pd.Series({"a": 1.0, "b": 1.0, "c": 0.0})),
    "a row of NaN to predict": lambda kit: kit.fitted().predict_proba(np.full((1, 3), np.nan)),
    "sparse rows to predict": lambda kit: kit.fitted().predict_proba(sp.coo_matrix(X)),
    "codes never seen": lambda kit: kit.classify(CODES, predict=CODES + 500, categorical_features=[0]),
    "score with markers in y": lambda kit: kit.fitted().score(sp.coo_matrix(X), Y),
}


@pytest.mark.parametrize("call", FINITE.values(), ids=FINITE)
def test_an_odd_call_gives_a_finite_result(kit, call):
    assert np.isfinite(call(kit)).all()


def test_without_a_feature_that_is_affordable_the_model_is_constant(kit):
    for budget in (0.0, 0.99):
        model = GRBBClassifier(kit.booster(), feature_costs=COSTS, **GRAPH_ALONE, budget=budget).fit(X, Y)
        assert (model.feature_cost_, model.paid_) == (0.0, ())
        assert np.ptp(model.predict_proba(X), axis=0).tolist() == [0.0, 0.0]
        assert f"the budget of {budget:g}" in model.stop_reason_


def test_one_labelled_row_with_all_classes_named(kit):
    with pytest.warns(UserWarning, match="Only the class 1 is labelled"):
        probability = kit.classify(y=np.where(np.arange(N), -1, 1), fit={"classes": [0, 1]})
    assert (probability[:, 1] > 0.5).all()


def test_a_graph_without_edges_warns(kit):
    with pytest.warns(grbb_ext.UnreachableRowsWarning, match="30 of 40 rows"):
        assert np.isfinite(kit.classify(graph=np.zeros((N, N)))).all()


def test_an_array_for_a_frame_warns(kit):
    model = kit.fitted(FRAME)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert model.predict(X).tolist() == model.predict(FRAME).tolist()


def test_a_failed_fit_leaves_nothing_that_predicts(kit):
    model = GRBBClassifier(kit.booster(), mu=-1.0, feature_costs=COSTS, **GRAPH_ALONE)
    with pytest.raises(ValueError, match="mu"):
        model.fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_a_code_that_stands_for_missing_is_no_bad_code():
    codes = CODES.copy()
    codes[::5, 0] = -1
    model = GRBBClassifier(XGBClassifier(n_estimators=4, missing=-1, n_jobs=1), categorical_features=[0], **GRAPH_ALONE)
    expected = np.where(codes == -1, np.nan, codes)
    assert model.fit(codes, Y).predict(codes).tolist() == model.predict(expected).tolist()
