"""The protocol between estimators and adapters, as an estimator uses it."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from grbb_ext import GRBBClassifier
from grbb_ext.estimators import BoosterAdapter, _base
from grbb_ext.estimators._job import adapter_named, adapter_of


def test_adapters_have_all_that_the_protocol_names(library):
    adapter = adapter_named(library)
    for name, member in vars(BoosterAdapter).items():
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            assert getattr(adapter, name)
        else:
            wanted, own = inspect.signature(member), inspect.signature(getattr(type(adapter), name))
            assert list(own.parameters) == list(wanted.parameters), name
    assert adapter.library == library


def test_fit_looks_for_its_adapter_once(classifier, moons, monkeypatch):
    X, _, y = moons
    asked = []
    monkeypatch.setattr(_base, "adapter_of", lambda *arguments: asked.append(arguments) or adapter_of(*arguments))
    model = GRBBClassifier(classifier(n_estimators=3), rule="labeled").fit(X, y)
    assert len(asked) == 1
    assert np.isfinite(model.decision_function(X)).all()
    assert len(asked) == 1


def test_estimators_on_clusters_are_refused(library):
    # A subclass may live anywhere: what it derives from counts.
    dask = pytest.importorskip(f"{library}.dask")
    base = dask.DaskLGBMClassifier if library == "lightgbm" else dask.DaskXGBClassifier
    derived = type("Classifier", (base,), {"__module__": "elsewhere"})
    wanted = "LGBMClassifier" if library == "lightgbm" else "XGBClassifier"
    with pytest.raises(TypeError, match=f"estimator must be {wanted} for classification, got Classifier"):
        adapter_of(derived.__new__(derived), "classification")
