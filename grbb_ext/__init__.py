"""Gradient Regularized Budgeted Boosting for stock XGBoost and LightGBM.

The package is mathematics on arrays: a neighbour graph (:mod:`grbb_ext.graph`), the extension of values from labelled
to all rows (:mod:`grbb_ext.propagation`), losses (:mod:`grbb_ext.losses`), the gradient rules
(:mod:`grbb_ext.rules`) and the objective that puts them together (:func:`grbb_objective`); beside them what features
cost (:mod:`grbb_ext.costs`), a booster's trees as arrays (:mod:`grbb_ext.forest`), prediction that fetches features on
demand (:mod:`grbb_ext.ondemand`), how far predictions vary and which rows to label next
(:mod:`grbb_ext.variance`). :mod:`grbb_ext.estimators` puts them behind the interface of scikit-learn, with folds,
scores and choices that are right for few labels (:mod:`grbb_ext.model_selection`) and pictures
(:mod:`grbb_ext.plotting`). Everything that knows a booster lives in :mod:`grbb_ext.adapters`.
"""

import sys as _sys
from importlib import util as _util
from pathlib import Path as _Path

from grbb_ext.costs import FeatureCosts
from grbb_ext.estimators import GRBBClassifier, GRBBRegressor, load
from grbb_ext.forest import Forest, ForestCursor
from grbb_ext.graph import KNNGraph, RefinedGraph, SharedGraph, TableGraph, knn_graph
from grbb_ext.model_selection import CostCurve, SemiSupervisedSplit, cost_curve, labeled_scorer, share_graph
from grbb_ext.objective import GRBBObjective, UnreachableRowsWarning, grbb_objective
from grbb_ext.ondemand import FetchError, OnDemandPredictor, OnDemandResult
from grbb_ext.persistence import ModelFileError
from grbb_ext.plotting import CostCurveDisplay, EvidenceDisplay, PropagationDisplay, VarianceDisplay
from grbb_ext.propagation import Harmonic, Nonlocal, Poisson, Smooth
from grbb_ext.rules import Corrected, Labeled, Laplacian, Paper, Targets
from grbb_ext.table import GraphWarning
from grbb_ext.teacher import Committee, Evidence, Refinement, Teacher
from grbb_ext.variance import (
    LabelPlan,
    LabelSuggestions,
    PredictionVariance,
    VacuousVarianceWarning,
    plan_labels,
    prediction_variance,
    suggest_labels,
)

__version__ = "0.2.0"

__all__ = [
    "Committee",
    "Corrected",
    "CostCurve",
    "CostCurveDisplay",
    "Evidence",
    "EvidenceDisplay",
    "FeatureCosts",
    "FetchError",
    "Forest",
    "ForestCursor",
    "GRBBClassifier",
    "GRBBObjective",
    "GRBBRegressor",
    "GraphWarning",
    "Harmonic",
    "KNNGraph",
    "LabelPlan",
    "LabelSuggestions",
    "Labeled",
    "Laplacian",
    "ModelFileError",
    "Nonlocal",
    "OnDemandPredictor",
    "OnDemandResult",
    "Paper",
    "Poisson",
    "PredictionVariance",
    "PropagationDisplay",
    "RefinedGraph",
    "Refinement",
    "SemiSupervisedSplit",
    "SharedGraph",
    "Smooth",
    "TableGraph",
    "Targets",
    "Teacher",
    "UnreachableRowsWarning",
    "VacuousVarianceWarning",
    "VarianceDisplay",
    "cost_curve",
    "grbb_objective",
    "knn_graph",
    "labeled_scorer",
    "load",
    "plan_labels",
    "prediction_variance",
    "share_graph",
    "suggest_labels",
]

# In a checkout `grbb_ext.adapters` is the sibling folder `adapters/`; in a wheel it is a subfolder of this package.
_sibling = _Path(__file__).resolve().parents[1] / "adapters"
if not _Path(__file__).with_name("adapters").is_dir() and (_sibling / "__init__.py").is_file():
    _spec = _util.spec_from_file_location(
        "grbb_ext.adapters", _sibling / "__init__.py", submodule_search_locations=[str(_sibling)]
    )
    assert _spec is not None
    assert _spec.loader is not None
    adapters = _sys.modules["grbb_ext.adapters"] = _util.module_from_spec(_spec)
    _spec.loader.exec_module(adapters)
