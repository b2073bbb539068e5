from __future__ import annotations

from functools import partial

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

from grbb_ext import FeatureCosts, FetchError, Forest, OnDemandPredictor
from grbb_ext.forest import Tree


def leaf_or_split(feature, low, high):
    return Tree(
        feature=np.array([feature, -1, -1]),
        threshold=np.zeros(3),
        left=np.array([1, 0, 0]),
        right=np.array([2, 0, 0]),
        default_left=np.array([True, False, False]),
        value=np.array([[0.0], [low], [high]]),
        cover=np.array([2.0, 1.0, 1.0]),
        label=np.arange(3),
    )


FOREST = Forest.from_trees(
    [leaf_or_split(0, -1.0, 1.0), leaf_or_split(1, -2.0, 2.0), leaf_or_split(2, -4.0, 4.0)],
    n_features=4,
    feature_names=["age", "chol", "ratio", "unused"],
)
COSTS = FeatureCosts(
    needs={"age": [], "chol": ["draw", "chol"], "ratio": ["draw", "chol", "hdl"], "unused": ["other"]},
    prices={"draw": 2.0, "chol": 5.0, "hdl": 3.0, "other": 1.0},
)
IDS = np.array(["p1", "p2", "p3", "p4", "p5"])
AGE = {"age": np.array([-1.0, 1, 1, -1, 1])}
CHOL = {"p1": 1.0, "p2": -1.0, "p3": 1.0, "p4": -1.0, "p5": 1.0}


def chol(rows):
    return {"chol": [CHOL[row] for row in rows], "raw": np.arange(len(rows)) + 1.0}


def good():
    return {"draw": lambda rows: None, "chol": chol, "hdl": lambda rows: {"hdl": np.full(len(rows), 2.0)}}


def make(fetch=None, derive=None, **options):
    derive = {"ratio": lambda columns: columns["chol"] / columns["hdl"]} if derive is None else derive
    return OnDemandPredictor(
        FOREST, COSTS, good() | (fetch or {}), derive=derive, batch_size=3, verbose=False, **options
    )


EXPECTED = np.array([-1 + 2 + 4, 1 - 2 - 4, 1 + 2 + 4, -1 - 2 - 4, 1 + 2 + 4])


def test_ids_of_several_types():
    ids = np.array(["p1", 2, None, 3.5, "p5"], dtype=object)
    values = dict(zip(ids.tolist(), CHOL.values(), strict=True))
    result = make({"chol": lambda rows: {"chol": [values[row] for row in rows]}}).predict(ids, AGE)
    np.testing.assert_array_equal(result.raw_scores, EXPECTED)
    with pytest.raises(ValueError, match="rows names a row twice"):
        make().predict(np.array(["p1", 2, "p1"], dtype=object), {"age": np.ones(3)})


def test_text_ids_fees_and_derived_features():
    result = make().predict(IDS, AGE)
    np.testing.assert_array_equal(result.raw_scores, EXPECTED)
    np.testing.assert_array_equal(result.spent, [10.0] * 5)
    np.testing.assert_array_equal(result.rows, IDS)
    assert result.rows_fetched() == {"draw": 5, "chol": 5, "hdl": 5, "other": 0}


@pytest.mark.parametrize(
    "form",
    [
        AGE,
        pd.DataFrame(AGE),
        pd.DataFrame({"age": pd.array([-1, 1, 1, -1, 1], dtype="Int64")}),
        np.column_stack([AGE["age"], np.full((5, 3), np.nan)]),
    ],
)
def test_forms_of_free_features(form):
    np.testing.assert_array_equal(make().predict(IDS, form).raw_scores, EXPECTED)


def in_table_order(rows):
    """As of a database: WHERE id IN (...)."""
    return pd.Series(CHOL, name="chol").to_frame().loc[sorted(rows)]


def test_an_index_with_the_ids_in_another_order_is_refused():
    np.testing.assert_array_equal(make({"chol": in_table_order}).predict(IDS, AGE).raw_scores, EXPECTED)
    turned, age = IDS[::-1], {"age": AGE["age"][::-1]}
    for answer in (in_table_order, lambda rows: {"chol": in_table_order(rows)["chol"]}):
        with pytest.raises(FetchError, match="another order than asked for"):
            make({"chol": answer}).predict(turned, age)
    by_id = make({"chol": lambda rows: in_table_order(rows).loc[rows]})
    np.testing.assert_array_equal(by_id.predict(turned, age).raw_scores, EXPECTED[::-1])
    free = pd.DataFrame(AGE, index=IDS)
    for form in (free, {"age": free["age"]}):
        with pytest.raises(ValueError, match="free has rows whose index"):
            by_id.predict(turned, form)
    np.testing.assert_array_equal(by_id.predict(turned, free.loc[turned]).raw_scores, EXPECTED[::-1])
    money = pd.Series(np.arange(len(IDS)), index=IDS)
    with pytest.raises(ValueError, match="budget_per_row has rows whose index"):
        make(budget_per_row=money).predict(turned, age)
    assert (make(budget_per_row=money.loc[turned]).predict(turned, age).spent <= money.loc[turned]).all()


def raising(rows):
    if "p2" in rows:
        raise ConnectionError("the laboratory is closed")
    return chol(rows)


def test_a_source_that_raises_costs_only_its_rows():
    with pytest.raises(
        FetchError, match=r"Source 'chol' failed for 3 rows \(p1, p2, p3\): ConnectionError: the lab"
    ) as caught:
        make({"chol": raising}).predict(IDS, AGE)
    error = caught.value
    assert error.source == "chol"
    assert error.failed_rows.tolist() == ["p1", "p2", "p3"]
    assert isinstance(error.__cause__, ConnectionError)
    result = error.result
    assert result.status.tolist() == ["failed", "failed", "failed", "finished", "finished"]
    np.testing.assert_array_equal(result.raw_scores, [np.nan, np.nan, np.nan, *EXPECTED[3:]])
    # a source that raised delivered nothing and is not on the bill; hdl comes after chol and was not asked in vain
    np.testing.assert_array_equal(result.spent, [2.0, 2.0, 2.0, 10.0, 10.0])
    assert result.rows_fetched() == {"draw": 5, "chol": 2, "hdl": 2, "other": 0}
    assert [str(e) for e in result.errors] == [str(error)]


def test_an_answer_that_cannot_be_used_is_paid():
    result = make({"chol": lambda rows: {"chol": ["high"] * len(rows)}}, on_error="return").predict(IDS, AGE)
    assert result.status.tolist() == ["failed"] * 5
    np.testing.assert_array_equal(result.spent, [7.0] * 5)


def test_errors_can_be_returned():
    result = make({"chol": raising, "hdl": lambda rows: 1 / 0}, on_error="return").predict(IDS, AGE)
    assert result.status.tolist() == ["failed"] * 5
    assert [e.source for e in result.errors] == ["chol", "hdl"]
    with pytest.raises(FetchError, match=r"1 more failures in .result.errors"):
        make({"chol": raising, "hdl": lambda rows: 1 / 0}).predict(IDS, AGE)


def test_rows_that_do_not_need_a_broken_source_are_untouched():
    forest = Forest.from_trees([TWO_LEVELS], n_features=2)
    X = np.array([[1.0, 5.0], [-1.0, 5.0], [-1.0, -5.0]])
    fetch = {0: lambda rows: X[rows, 0], 1: lambda rows: 1 / 0}
    with pytest.raises(FetchError) as caught:
        OnDemandPredictor(forest, FeatureCosts([1.0, 1.0]), fetch, verbose=False).predict(np.arange(3))
    assert caught.value.failed_rows.tolist() == [1, 2]
    np.testing.assert_array_equal(caught.value.result.raw_scores, [9.0, np.nan, np.nan])


TWO_LEVELS = Tree(
    feature=np.array([0, 1, -1, -1, -1]),
    threshold=np.zeros(5),
    left=np.array([1, 3, 0, 0, 0]),
    right=np.array([2, 4, 0, 0, 0]),
    default_left=np.array([True] * 5),
    value=np.array([[0.0], [0], [9], [1], [2]]),
    cover=np.ones(5),
    label=np.arange(5),
)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda rows: {"chol": np.ones(len(rows) + 1)}, r"'chol' has shape \(4,\) for 3 rows"),
        (lambda rows: {"chol": np.ones((len(rows), 1))}, r"'chol' has shape \(3, 1\) for 3 rows"),
        (lambda rows: {"chol": ["high"] * len(rows)}, r"'chol' holds text .* codes"),
        (lambda rows: {"chol": pd.Series(["high"] * len(rows))}, r"'chol' holds text"),
        (lambda rows: {"Chol": np.ones(len(rows))}, r"The feature 'chol' failed .* \['draw', 'chol'\] returned it"),
        (lambda rows: None, r"The feature 'chol' failed .* none of its sources"),
        (lambda rows: np.ones((len(rows), 2)), r"array of shape \(3, 2\), where a column for each of \[\] belongs"),
        (lambda rows: 3.0, r"array of shape \(\)"),
        (lambda: None, "takes 0 positional arguments"),
    ],
)
def test_answers_that_cannot_be_used(answer, message):
    with pytest.raises(FetchError, match=message):
        make({"chol": answer}).predict(IDS, AGE)


@pytest.mark.parametrize(
    ("derive", "message"),
    [
        (lambda columns: columns["ldl"], "derives 'ratio' failed for 3 rows .* KeyError"),
        (lambda columns: np.ones(2), r"'ratio' has shape \(2,\) for 3 rows"),
    ],
)
def test_derivations_that_fail(derive, message):
    with pytest.raises(FetchError, match=message) as caught:
        make(derive={"ratio": derive}).predict(IDS, AGE)
    assert caught.value.source == "ratio"
    assert caught.value.failed_rows.tolist() == ["p1", "p2", "p3"]


def test_a_derived_feature_that_nobody_derives():
    with pytest.raises(FetchError, match=r"The feature 'ratio' failed .* use derive="):
        make(derive={}).predict(IDS, AGE)


def test_any_source_may_return_a_shared_feature():
    fetch = {
        "draw": lambda rows: {"chol": np.full(len(rows), -9.0)},  # overwritten by the source that comes last
        "hdl": lambda rows: {"ratio": [1.0] * len(rows), "age": [99.0] * len(rows)},  # age does not need hdl: ignored
    }
    result = make(fetch, derive={}).predict(IDS, AGE)
    np.testing.assert_array_equal(result.raw_scores, [-1 + 2 + 4, 1 - 2 + 4, 1 + 2 + 4, -1 - 2 + 4, 1 + 2 + 4])


def test_what_derive_gets():
    seen = []

    def ratio(columns):
        seen.append({name: values.tolist() for name, values in columns.items()})
        return np.ones(len(columns["age"]))

    text = {"hdl": lambda rows: {"method": ["enzymatic"] * len(rows)}}
    make(text, derive={"ratio": ratio}).predict(IDS[:2], {"age": AGE["age"][:2]})
    assert seen == [{"age": [-1.0, 1.0], "chol": [1.0, -1.0], "raw": [1.0, 2.0], "method": ["enzymatic"] * 2}]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"early_exit": "soon"}, "early_exit must be 'decision'"),
        ({"early_exit": 1.5}, "between 0 and 1"),
        ({"early_exit": 0.9, "exit_every": 0}, "exit_every"),
        ({"unknown": "zero"}, "unknown must be"),
        ({"order": "price"}, "order must be"),
        ({"on_error": "ignore"}, "on_error must be"),
        ({"batch_size": 0}, "batch_size"),
        ({"budget_per_row": "a"}, "budget_per_row must be numbers, got 'a'"),
        ({"budget_per_row": [1.0, -1.0]}, "budget_per_row must be at least 0"),
        ({"budget_per_row": [[1.0]]}, "one number or one for each row"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        OnDemandPredictor(FOREST, COSTS, good(), **options)


@pytest.mark.parametrize(
    ("params", "averaged"),
    [
        ({"objective": "binary", "sigmoid": 2.0}, False),
        ({"objective": "multiclassova", "num_class": 3}, False),
        ({"objective": "binary", "boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}, True),
        ({"objective": "binary:hinge"}, False),
        *(({"objective": name}, False) for name in ("regression", "poisson", "lambdarank")),
        *(({"objective": name}, False) for name in ("reg:squarederror", "count:poisson", "rank:pairwise")),
    ],
)
def test_probabilities_that_are_no_logistic_function_are_refused(params, averaged):
    X = np.random.default_rng(0).normal(size=(120, 2))
    y = (X[:, 0] > 0) * 1.0 + (params.get("num_class") == 3) * (X[:, 1] > 0)
    group = [120] if params["objective"] in ("lambdarank", "rank:pairwise") else None
    if ":" in params["objective"]:
        booster = xgb.train({**params, "nthread": 1}, xgb.DMatrix(X, y, group=group), 4)
    else:
        booster = lgb.train({**params, "verbosity": -1, "num_threads": 1}, lgb.Dataset(X, y, group=group), 4)
    forest, fetch = Forest.from_booster(booster), {j: lambda rows, j=j: X[rows, j] for j in range(2)}
    make = partial(OnDemandPredictor, forest, FeatureCosts([1.0, 1.0]), fetch, verbose=False)
    with pytest.raises(ValueError, match=r"are not the logistic function.*Leave classes="):
        make(classes=np.arange(max(forest.n_outputs, 2)))
    if not averaged:
        with pytest.raises(ValueError, match=r"Leave .* a probability as early_exit= out"):
            make(early_exit=np.float32(0.9))
    finished = make(early_exit=0.999 if averaged else "decision").predict(np.arange(120))
    assert set(finished.status) <= {"finished", "confident", "decided"}


def test_wrong_callables():
    with pytest.raises(ValueError, match="needs 'hdl': add a callable"):
        OnDemandPredictor(FOREST, COSTS, {"draw": chol, "chol": chol})
    with pytest.raises(ValueError, match=r"Unknown source 'choll'. Did you mean 'chol'"):
        OnDemandPredictor(FOREST, COSTS, good() | {"choll": chol})
    with pytest.raises(ValueError, match=r"Unknown feature 'ratios'. Did you mean 'ratio'"):
        OnDemandPredictor(FOREST, COSTS, good(), derive={"ratios": chol})
    with pytest.raises(ValueError, match=r"Unknown source '0'. Did you mean 0"):
        OnDemandPredictor(FOREST, FeatureCosts([1.0, 1.0, 1.0, 1.0]), {"0": chol})
    with pytest.raises(TypeError, match=r"fetch\['draw'\] must be a callable"):
        OnDemandPredictor(FOREST, COSTS, good() | {"draw": 3})
    with pytest.raises(TypeError, match="fetch must be a dict from source to callable"):
        OnDemandPredictor(FOREST, COSTS, chol)
    with pytest.raises(ValueError, match="No price for"):
        OnDemandPredictor(FOREST, FeatureCosts({"age": 1.0}), {})


def test_wrong_rows_and_budgets():
    predict = make().predict
    with pytest.raises(ValueError, match="a row twice"):
        predict(["p1", "p1"], {"age": [1.0, 1.0]})
    with pytest.raises(ValueError, match="one-dimensional"):
        predict([["p1"]])
    with pytest.raises(ValueError, match="'age', which need no source"):
        predict(IDS)
    with pytest.raises(ValueError, match="free lacks 'age'"):
        predict(IDS, {"sex": [1] * 5})
    with pytest.raises(ValueError, match=r"free\['age'\] has shape \(4,\) for 5 rows"):
        predict(IDS, {"age": [1.0] * 4})
    with pytest.raises(ValueError, match=r"free must have shape \(5, 4\)"):
        predict(IDS, np.ones((5, 3)))
    for budget, message in ((-1.0, "at least 0"), (np.nan, "at least 0"), ([1.0, 2.0], "one for each of 5 rows")):
        with pytest.raises(ValueError, match=message):
            make(budget_per_row=budget).predict(IDS, AGE)


def test_no_rows():
    result = make().predict(np.array([], dtype=str), {"age": []})
    assert len(result) == 0
    assert repr(result) == "OnDemandResult(0 rows: )"
