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


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_no_estimator_is_one_that_suits_a_student_and_with_costs_the_librarys_own(library, task):
    adapter = adapter_named(library)
    student, plain = (adapter.clone(None, task, costs=costs).get_params() for costs in (False, True))
    assert {name: student[name] for name in adapter.student} == adapter.student
    assert plain == adapter.of_task[task]().get_params()
    own = adapter.of_task[task](n_estimators=7)
    assert adapter.clone(own, task, costs=False).get_params() == own.get_params()


def test_settings_of_a_student_are_those_of_the_booster(moons):
    X, _, y = moons
    without, with_costs = GRBBClassifier().fit(X, y), GRBBClassifier(feature_costs=np.ones(X.shape[1])).fit(X, y)
    assert without.n_iter_ > with_costs.n_iter_ == 100
    assert "[extra_trees: 1]" in without.booster_.model_to_string()
    assert "[extra_trees: 0]" in with_costs.booster_.model_to_string()


def test_estimators_on_clusters_are_refused(library):
    # A subclass may live anywhere: what it derives from counts.
    dask = pytest.importorskip(f"{library}.dask")
    base = dask.DaskLGBMClassifier if library == "lightgbm" else dask.DaskXGBClassifier
    derived = type("Classifier", (base,), {"__module__": "elsewhere"})
    wanted = "LGBMClassifier" if library == "lightgbm" else "XGBClassifier"
    with pytest.raises(TypeError, match=f"estimator must be {wanted} for classification, got Classifier"):
        adapter_of(derived.__new__(derived), "classification")
