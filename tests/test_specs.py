"""Options as frozen objects, and how estimators set and search their fields."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
from lightgbm import LGBMClassifier
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.model_selection import GridSearchCV

from grbb_ext import (
    Committee,
    Corrected,
    GRBBClassifier,
    Harmonic,
    KNNGraph,
    Labeled,
    Laplacian,
    Nonlocal,
    Paper,
    Poisson,
    RefinedGraph,
    SemiSupervisedSplit,
    SharedGraph,
    Smooth,
    TableGraph,
    Targets,
    grbb_objective,
    knn_graph,
    labeled_scorer,
)
from grbb_ext.objective import Recipe

SPECS = [
    KNNGraph(),
    RefinedGraph(),
    TableGraph(),
    Smooth(),
    Harmonic(),
    Nonlocal(),
    Poisson(),
    Committee(),
    Targets(),
    Paper(),
    Corrected(),
    Laplacian(),
    Labeled(),
]
X, TRUTH = make_moons(120, noise=0.1, random_state=0)
Y = np.where(np.arange(120) % 6 == 0, TRUTH, -1)
H = np.linspace(-1, 1, 120)


def booster():
    return LGBMClassifier(n_estimators=5, num_leaves=4, min_child_samples=5, n_jobs=1, verbosity=-1)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: type(spec).__name__)
def test_a_spec_does_not_change(spec):
    name = dataclasses.fields(spec)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(spec, name, 1)
    assert spec == type(spec)() == pickle.loads(pickle.dumps(spec)) == clone(spec, safe=False)
    assert hash(spec) == hash(type(spec)())
    assert type(spec)(**spec.get_params()) == spec
    assert type(spec).registry[type(spec).__name__] is type(spec)
    with pytest.raises(ValueError, match=rf"{type(spec).__name__} has no parameter 'colour'. It has \['"):
        spec.replace(colour="red")


def test_replace_makes_another_one():
    first = KNNGraph(n_neighbors=5)
    second = first.replace(weights="binary")
    assert first == KNNGraph(n_neighbors=5)
    assert second == KNNGraph(n_neighbors=5, weights="binary")
    assert isinstance(RefinedGraph(n_trees=7).replace(n_neighbors=3), RefinedGraph)
    with pytest.raises(ValueError, match="n_neighbors must be a positive integer"):
        first.replace(n_neighbors=0)


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (None, TableGraph(n_neighbors=5)),
        ("refined", RefinedGraph(n_neighbors=5)),
        ("knn", KNNGraph(n_neighbors=5)),
        (KNNGraph(weights="heat"), KNNGraph(n_neighbors=5, weights="heat")),
        (RefinedGraph(n_trees=7), RefinedGraph(n_neighbors=5, n_trees=7)),
    ],
)
def test_fields_are_set_from_any_way_to_ask(graph, expected):
    model = GRBBClassifier(graph=graph)
    assert model.set_params(graph__n_neighbors=5) is model
    assert model.graph == expected
    assert model.get_params()["graph__n_neighbors"] == 5
    assert clone(model).graph == expected
    fitted = clone(model).set_params(estimator=booster(), teacher="graph").fit(X, Y)
    by_hand = grbb_objective(X, Y, graph=expected, teacher="graph")
    assert_array_equal(fitted.objective_.targets_, by_hand.targets_)


def test_fields_of_every_spec():
    model = GRBBClassifier()
    model.set_params(rule__lam=0.5, teacher__sharpen=1.0, propagation__tau=0.1, graph__n_components=5)
    assert model.rule == Targets(lam=0.5)
    assert model.teacher == Committee(sharpen=1.0)
    assert model.propagation == Smooth(tau=0.1)
    assert model.graph == TableGraph(n_components=5)


def test_a_field_is_set_after_the_spec_that_is_set_with_it():
    model = GRBBClassifier().set_params(rule__correction=0.5, rule="corrected", graph__n_neighbors=4)
    assert model.rule == Corrected(correction=0.5)
    assert model.graph == KNNGraph(n_neighbors=4)  # the graph of that rule
    assert GRBBClassifier(rule="paper").set_params(graph__n_neighbors=4).graph == KNNGraph(4, weights="binary")
    # A rule that is not complete yet can still be completed.
    assert GRBBClassifier(rule="laplacian").set_params(rule__lam=0.1).rule == Laplacian(lam=0.1)
    assert GRBBClassifier(rule="corrected", propagation="smooth").set_params(rule__hessian="unit").rule.newton is False
    assert GRBBClassifier(rule="corrected", graph="refined").set_params(graph__n_neighbors=4).graph.max_nodes == 20_000


def test_fields_that_are_none():
    with pytest.raises(ValueError, match="KNNGraph has no parameter 'n_trees'"):
        GRBBClassifier(graph="knn").set_params(graph__n_trees=5)
    with pytest.raises(ValueError, match="Paper has no parameter 'hessian'"):
        GRBBClassifier(rule="paper").set_params(rule__hessian="newton")
    for graph in (SharedGraph(X), knn_graph(X)):
        with pytest.raises(ValueError, match=r"graph is .*, which has no parameters to set"):
            GRBBClassifier(graph=graph).set_params(graph__n_neighbors=5)
    with pytest.raises(ValueError, match="Invalid parameter"):
        GRBBClassifier().set_params(grpah__n_neighbors=5)


def test_deep_parameters():
    model = GRBBClassifier(booster(), graph=KNNGraph(n_neighbors=4), rule=Targets(hard=True))
    deep, shallow = model.get_params(), model.get_params(deep=False)
    assert deep["graph__n_neighbors"] == 4
    assert deep["rule__hard"] is True
    assert deep["estimator__num_leaves"] == 4
    assert "teacher__sharpen" not in deep  # left out: the default decides
    assert "graph__n_neighbors" not in shallow
    assert shallow["graph"] == KNNGraph(n_neighbors=4)
    assert clone(model).get_params(deep=False)["rule"] == Targets(hard=True)


def test_searches_over_fields():
    grid = {"graph__n_neighbors": [6, 9], "rule__lam": [0.0, 0.5]}
    search = GridSearchCV(
        GRBBClassifier(booster(), graph="knn"),
        grid,
        cv=SemiSupervisedSplit(2),
        scoring=labeled_scorer("accuracy"),
        error_score="raise",
    ).fit(X, Y)
    assert [params["graph__n_neighbors"] for params in search.cv_results_["params"]] == [6, 6, 9, 9]
    best = search.best_estimator_
    assert best.graph == KNNGraph(n_neighbors=search.best_params_["graph__n_neighbors"])
    assert best.rule == Targets(lam=search.best_params_["rule__lam"])
    assert best.objective_.lam_ == search.best_params_["rule__lam"]
    assert (best.graph_ != knn_graph(X, best.graph.n_neighbors)).nnz == 0


@pytest.mark.parametrize("lam", [0.0, 0.3])
def test_the_papers_rule_is_the_papers_preset_bit_by_bit(lam):
    preset = grbb_objective(X, Y, preset="paper", lam=lam)
    for settings in ({"rule": "paper", "lam": lam}, {"rule": Paper(lam=lam)}, {"rule": Paper(lam=lam), "graph": "knn"}):
        rule = grbb_objective(X, Y, **settings)
        assert_array_equal(rule.graph_.toarray(), preset.graph_.toarray())
        assert_array_equal(np.unique(rule.graph_.data), [1.0])
        assert_array_equal(rule.P_bar_, preset.P_bar_)
        assert_array_equal(rule(H), preset(H))
        assert rule.propagation_.kind == "harmonic"
    other = grbb_objective(X, Y, rule="paper", graph=KNNGraph())  # asked for, and so not binary
    assert np.unique(other.graph_.data).size > 1


def test_what_a_rule_implies():
    found = {rule: Recipe.read(rule=rule) for rule in ("targets", "paper", "corrected", "labeled")}
    assert {rule: recipe.graph for rule, recipe in found.items()} == {
        "targets": TableGraph(),
        "paper": KNNGraph(weights="binary"),
        "corrected": KNNGraph(),
        "labeled": KNNGraph(),
    }
    assert [recipe.propagation.kind for recipe in found.values()][:3] == ["smooth", "harmonic", "nonlocal"]
    assert [recipe.needs_graph for recipe in found.values()] == [True, True, True, False]
    assert Recipe.read(rule="labeled", lam=0.1).needs_graph


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rule": "paper", "teacher": "committee"}, "rule='paper' has no teacher: leave teacher out"),
        ({"rule": "corrected", "teacher": Committee()}, "rule='corrected' has no teacher"),
        ({"rule": "corrected", "propagation": "smooth"}, r"'smooth' can turn negative.*Corrected\(hessian='unit'\)"),
        ({"rule": "corrected", "propagation": Poisson()}, "'poisson' can turn negative"),
        ({"rule": "laplacian"}, "needs lam > 0"),
        ({"rule": Laplacian()}, "needs lam > 0"),
        ({"rule": "labeled", "graph": "refined"}, "no graph can be refined"),
        ({"rule": "labeled", "graph": RefinedGraph()}, "no graph can be refined"),
        ({"preset": "paper", "graph": RefinedGraph()}, "preset='paper' means graph='knn'"),
        ({"preset": "paper", "propagation": Smooth()}, "preset='paper' means propagation='harmonic'"),
        ({"preset": "paper", "rule": "corrected"}, "preset='paper' means rule='paper'"),
    ],
)
def test_contradictions_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Recipe.read(**options)


def test_what_is_no_contradiction():
    assert Recipe.read(rule=Corrected(hessian="unit"), propagation="smooth").propagation == Smooth()
    assert Recipe.read(rule="laplacian", lam=0.1).rule == Laplacian(lam=0.1)
    assert Recipe.read(preset="paper", rule="paper", propagation="harmonic", graph="knn") == Recipe.read(rule="paper")
    assert Recipe.read(preset="paper", graph=KNNGraph(n_neighbors=4)).graph == KNNGraph(n_neighbors=4)


@pytest.mark.parametrize("name", ["rule", "propagation", "teacher"])
def test_what_is_no_spec_is_refused(name):
    with pytest.raises(ValueError, match=f"{name} must be one of .* got 'magic'"):
        Recipe.read(**{name: "magic"})
    with pytest.raises(TypeError, match=f"{name} must be one of .* got 3"):
        Recipe.read(**{name: 3})
    with pytest.raises(TypeError, match=f"{name} must be one of"):
        Recipe.read(**{name: KNNGraph()})
