"""Prices behind transformers: what each output is said to need is what changes it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.base import OneToOneFeatureMixin, clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.utils.discovery import all_estimators

from grbb_ext import FeatureCosts, GRBBClassifier

PRICES = {"age": 1.0, "bmi": 2.0, "city": 4.0, "job": 8.0, "spare": 16.0}


def people(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.normal(50, 9, n),
            "bmi": rng.normal(25, 3, n),
            "city": rng.choice(["Bern", "Oslo", "Rome", "Kiel"], n, p=[0.45, 0.45, 0.05, 0.05]),
            "job": rng.choice(["a", "b", "c"], n),
            "spare": rng.normal(size=n),
        }
    )
    frame.loc[frame.index % 7 == 0, "age"] = np.nan
    return frame


def outputs_that_change(transformer, X: pd.DataFrame) -> list[set[str]]:
    """Return, for each output, the inputs whose exchange between rows changes it."""
    rng = np.random.default_rng(1)

    def transformed(frame: pd.DataFrame) -> np.ndarray:
        made = transformer.transform(frame)
        return np.asarray(made.toarray() if hasattr(made, "toarray") else made).astype(float)

    before = transformed(X)
    found: list[set[str]] = [set() for _ in range(before.shape[1])]
    for name in X.columns:
        other = X.assign(**{name: X[name].to_numpy()[rng.permutation(len(X))]})
        for output in np.flatnonzero(~np.isclose(before, transformed(other), equal_nan=True).all(axis=0)):
            found[output].add(name)
    return found


TRANSFORMERS = {
    "the usual table": ColumnTransformer(
        [
            ("number", make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["bmi", "age"]),
            ("category", OneHotEncoder(), ["city", "job"]),
            ("left out", "drop", ["spare"]),
        ]
    ),
    "rare and dropped categories": ColumnTransformer(
        [("c", OneHotEncoder(drop="first", min_frequency=5), make_column_selector(dtype_include=[object, "string"]))],
        remainder=SimpleImputer(),
    ),
    "codes and the rest": ColumnTransformer(
        [("c", OrdinalEncoder(), ["job", "city"]), ("nothing", StandardScaler(), [])],
        remainder="passthrough",
        verbose_feature_names_out=False,
    ),
    "a slice of names": ColumnTransformer([("n", SimpleImputer(), slice("age", "bmi"))]),
    "a mask": ColumnTransformer([("n", "passthrough", [False, True, False, False, True])]),
    "indices": ColumnTransformer([("a", OneHotEncoder(), [3, 2]), ("b", StandardScaler(), [-1, 1])]),
    "components": ColumnTransformer(
        [
            ("pca", make_pipeline(SimpleImputer(), PCA(2, whiten=True)), ["age", "bmi"]),
            ("row length", Normalizer(), ["bmi", "spare"]),
        ]
    ),
    "products": ColumnTransformer([("p", PolynomialFeatures(2), ["bmi", "spare"])]),
    "bins": ColumnTransformer(
        [
            ("one-hot", KBinsDiscretizer(3, encode="onehot-dense", strategy="uniform"), ["bmi", "spare"]),
            ("codes", KBinsDiscretizer(3, encode="ordinal", strategy="uniform"), ["bmi", "spare"]),
        ]
    ),
    "one column, whatever is done with it": ColumnTransformer(
        [
            ("text", CountVectorizer(analyzer="char"), "city"),
            ("spline", SplineTransformer(), ["bmi"]),
            ("log", FunctionTransformer(np.exp, feature_names_out=lambda self, names: ["e"]), ["spare"]),
        ]
    ),
    "missing": ColumnTransformer([("m", MissingIndicator(), ["bmi", "age"])]),
    "a union in a pipeline": make_pipeline(
        ColumnTransformer([("n", SimpleImputer(), ["bmi", "age", "spare"])]),
        make_union(StandardScaler(), PCA(1), "passthrough"),
        VarianceThreshold(),
    ),
    "declared": ColumnTransformer(
        [("exp", FunctionTransformer(np.exp, feature_names_out="one-to-one"), ["spare", "bmi"])]
    ),
}


@pytest.mark.parametrize(
    ("name", "output"),
    [(name, "default") for name in TRANSFORMERS]
    + [(name, "pandas") for name in TRANSFORMERS if name != "one column, whatever is done with it"],  # that is sparse
)
def test_an_output_needs_the_columns_that_change_it(name, output) -> None:
    X, transformer = people(), clone(TRANSFORMERS[name])
    if output == "pandas":
        for encoder in (step for step in transformer.get_params().values() if hasattr(step, "sparse_output")):
            encoder.set_params(sparse_output=False)
        transformer.set_output(transform="pandas")
    transformer.fit(X)
    costs = FeatureCosts(PRICES).through(transformer)
    found = outputs_that_change(transformer, X)
    assert costs.n_features == len(found)
    assert costs.bound
    for feature, changed_by in zip(costs.features, found, strict=True):
        # A constant (a product of nothing, an indicator that is never set) is changed by nothing.
        assert changed_by <= set(costs.sources_of(feature)), feature
        if changed_by:
            assert changed_by == set(costs.sources_of(feature)), feature
    if output == "pandas":
        assert list(transformer.transform(X).columns) == list(costs.features)
    assert FeatureCosts.from_dict(costs.to_dict()) == costs


def test_what_scikit_learn_calls_one_to_one_is_so_here() -> None:
    """A new class of scikit-learn that mixes the columns of a row, but names its outputs like inputs, fails here."""
    X, y = np.abs(np.random.default_rng(0).normal(1, 1, (40, 3))), np.arange(40) % 2
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    checked = 0
    for name, kind in all_estimators(type_filter="transformer"):
        if issubclass(kind, OneToOneFeatureMixin):
            data = frame.round() if name == "OrdinalEncoder" else frame
            settings = {"n_quantiles": 10} if name == "QuantileTransformer" else {}
            fitted = kind(**settings).fit(data, y)
            costs = FeatureCosts({"a": 1, "b": 2, "c": 4}).through(fitted)
            for feature, changed_by in zip(costs.features, outputs_that_change(fitted, data), strict=True):
                assert changed_by <= set(costs.sources_of(feature)), name
            checked += 1
    assert checked >= 8


def test_a_shared_source_stays_shared() -> None:
    X = people().dropna()
    costs = FeatureCosts(needs={"city": ["form"], "job": ["form", "call"], "bmi": []}, prices={"form": 3, "call": 5})
    encoded = ColumnTransformer([("c", OneHotEncoder(), ["city", "job"]), ("n", "passthrough", ["bmi"])]).fit(X)
    behind = costs.through(encoded)
    assert behind.total(["c__city_Bern", "c__city_Oslo"]) == 3.0
    assert behind.total(["c__city_Bern", "c__job_a", "c__job_b"]) == behind.total(["c__job_c"]) == 8.0
    assert behind.total(["n__bmi"]) == 0.0


def test_prices_by_position_and_columns_without_names() -> None:
    X = people()[["bmi", "spare", "job"]].to_numpy()
    encoded = ColumnTransformer([("c", OneHotEncoder(), [2]), ("n", StandardScaler(), [0])]).fit(X)
    assert FeatureCosts([2.0, 16.0, 8.0]).through(encoded).marginals().tolist() == [8.0, 8.0, 8.0, 2.0]
    assert FeatureCosts({0: 2.0, 2: 8.0}).through(encoded).marginals().tolist() == [8.0, 8.0, 8.0, 2.0]
    with pytest.raises(ValueError, match="columns have no names"):
        FeatureCosts({"bmi": 1.0}).through(encoded)


def test_a_column_that_is_left_out_needs_no_price() -> None:
    kept = ColumnTransformer([("n", "passthrough", ["bmi", "spare"])]).fit(people())
    assert FeatureCosts({"bmi": 2.0, "spare": 1.0}).through(kept).marginals().tolist() == [2.0, 1.0]
    assert FeatureCosts(PRICES).through(kept).sources == ("bmi", "spare")
    assert FeatureCosts({"bmi": 2.0}, default=9.0).through(kept).total(["n__spare"]) == 9.0
    with pytest.raises(ValueError, match=r"No price for 'spare'\. Give one"):
        FeatureCosts({"bmi": 2.0}).through(kept)
    with pytest.raises(ValueError, match="The costs name 'bim', but there is no such column"):
        FeatureCosts({"bim": 2.0, "spare": 1.0}).through(kept)


@pytest.mark.parametrize(
    ("transformer", "message"),
    [
        (SplineTransformer(), "not known which of its 2 columns each of the 14 outputs of SplineTransformer needs"),
        (FunctionTransformer(np.exp), "does not name its output columns"),
        (
            FunctionTransformer(np.exp, feature_names_out=lambda self, names: ["p", "q"]),
            "not known which of its 2 columns each of the 2 outputs of FunctionTransformer",
        ),
        (make_pipeline(StandardScaler(), LogisticRegression()), r"pipeline\[:-1\]"),
        (make_pipeline(StandardScaler(), SplineTransformer()), "one column at a time"),
        (TargetEncoder(target_type="multiclass"), "6 outputs of TargetEncoder"),
    ],
)
def test_what_is_not_known_is_refused(transformer, message) -> None:
    X = people()[["bmi", "spare"]]
    with pytest.raises(ValueError, match=message):
        FeatureCosts(PRICES).select(["bmi", "spare"]).through(transformer.fit(X, np.arange(60) % 3))


def test_a_transformer_must_be_fitted() -> None:
    with pytest.raises(NotFittedError):
        FeatureCosts(PRICES).through(TRANSFORMERS["the usual table"])


@pytest.mark.parametrize("output", ["default", "pandas"])
def test_a_budget_holds_behind_a_transformer(output) -> None:
    X = people(300)
    truth = ((X["city"] == "Bern") & (X["bmi"] > 24)).astype(int)
    y = truth.where(X.index % 4 == 0, -1)
    prepare = clone(TRANSFORMERS["the usual table"]).set_params(category__sparse_output=False)
    prepare.set_output(transform=output).fit(X)
    costs = FeatureCosts(PRICES).through(prepare)
    model = GRBBClassifier(LGBMClassifier(n_estimators=20, num_leaves=6), feature_costs=costs, budget=6.0)
    model.fit(prepare.transform(X), y)
    assert set(model.ledger_.sources) == {"bmi", "city"}
    assert model.feature_cost_ == 6.0
    prepared = pd.DataFrame(np.asarray(prepare.transform(X)), columns=list(costs.features))
    made = {source: [f for f in costs.features if source in costs.sources_of(f)] for source in costs.sources}
    fetch = {source: lambda rows, made=made[source]: prepared.loc[rows, made] for source in costs.sources}
    bill = model.on_demand(fetch, verbose=False).predict(np.arange(300))
    np.testing.assert_array_equal(bill.predictions, model.predict(prepare.transform(X)))
    assert bill.spent.max() <= 6.0
