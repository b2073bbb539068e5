"""Saving and loading of fitted estimators, without pickle."""

from __future__ import annotations

import platform
import warnings
from dataclasses import asdict
from os import PathLike
from typing import Any, Self

import numpy as np
import sklearn
from sklearn.utils.validation import check_is_fitted

from grbb_ext.costs import Ledger
from grbb_ext.estimators._job import BoosterAdapter, adapter_named
from grbb_ext.persistence import (
    Document,
    ModelFileError,
    NotPlainError,
    from_plain,
    read_folder,
    to_plain,
    write_folder,
)
from grbb_ext.table import Schema
from grbb_ext.teacher import Evidence

_TASKS = {"classification": "GRBBClassifier", "regression": "GRBBRegressor"}
_LIBRARY_OF_FILE = {"model.txt": "lightgbm", "model.ubj": "xgboost"}
# A cache of this machine, which holds pickles: a file that names one could make a later fit execute it.
_OF_THIS_MACHINE = ("memory",)


class OfTrainingRows:
    """An attribute that fit sets and a saved model does not hold; this is what is found where it is not set."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, model: Any, owner: type) -> Any:
        if model is None:
            return self
        if "booster_" not in vars(model):
            raise AttributeError(f"{type(model).__name__} has no {self._name} before fit.", name=self._name, obj=model)
        raise AttributeError(
            f"{self._name} is made of the rows given to fit, and a saved model does not hold them. So graph_, "
            "objective_, raw_scores_, transduction_, prediction_variance() and suggest_labels() do not work after "
            "load(): fit again, or keep the model with pickle or joblib.",
            name=self._name,
            obj=model,
        )


class SavedModel:
    """The methods :meth:`save` and :meth:`load` of an estimator."""

    _task: Any
    booster_: Any
    library_: Any
    graph_: Any = OfTrainingRows()
    objective_: Any = OfTrainingRows()
    raw_scores_: Any = OfTrainingRows()
    transduction_: Any = OfTrainingRows()

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a folder: the library's own model file, and a JSON that says what it means.

        The library loads its file (``model.txt`` of LightGBM, ``model.ubj`` of XGBoost) without grbb_ext, with equal
        raw scores. The rows given to fit are not written. A saved model that stands there is replaced.

        Parameters
        ----------
        path : str or path-like
            The folder.

        Raises
        ------
        FileExistsError
            If something else stands there.
        ValueError
            If classes or categories are of a type that JSON cannot hold, such as dates.

        See Also
        --------
        grbb_ext.estimators.load : Load it, whatever estimator it is.
        """
        check_is_fitted(self, "booster_")
        adapter = adapter_named(self.library_)
        content, left_out = _content(self, adapter)
        if left_out:
            warnings.warn(
                f"These settings are not saved, since JSON cannot hold them: {', '.join(left_out)}. Predictions do not "
                "need them; set them again before a loaded model is fitted anew.",
                UserWarning,
                stacklevel=2,
            )
        write_folder(path, adapter.model_file, adapter.to_bytes(self.booster_), content, _versions(adapter))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Load a model that :meth:`save` wrote. Nothing in it is executed.

        What is made of the rows given to fit is not there: ``graph_``, ``objective_``, ``raw_scores_``,
        ``transduction_``, ``prediction_variance()`` and ``suggest_labels()`` raise AttributeError. The rest is.

        Parameters
        ----------
        path : str or path-like
            The folder.

        Raises
        ------
        FileNotFoundError
            If there is nothing.
        ModelFileError
            If it is damaged, of a later format, of another estimator, or no saved model.
        ImportError
            If the library of the booster is not installed.
        """
        model: Self = restore(cls, *read_folder(path), path)
        return model


def restore(cls: Any, document: Document, model: bytes, path: str | PathLike[str]) -> Any:
    """Make the estimator that a saved model describes; `path` is for messages."""
    task, library = document.content.get("task"), _LIBRARY_OF_FILE[document.model_file]
    if task not in _TASKS or document.content.get("library") != library:
        raise ModelFileError(f"{str(path)!r} is not the model of a classifier or regressor.")
    if task != cls._task:
        raise ModelFileError(f"{str(path)!r} holds a {_TASKS[task]}: use {_TASKS[task]}.load or grbb_ext.load.")
    adapter = adapter_named(library)
    try:
        return _restored(cls, document.content, model, adapter)
    except ModelFileError:
        raise
    except Exception as error:  # whatever a file provokes that has the right checksums and the wrong content
        written = ", ".join(f"{name} {version}" for name, version in document.versions.items())
        raise ModelFileError(
            f"{str(path)!r} cannot be loaded ({type(error).__name__}: {error}). It was written by {written}; here is "
            f"{library} {adapter.version}. If the installed versions are older, upgrade them."
        ) from error


def _content(model: Any, adapter: BoosterAdapter) -> tuple[dict[str, Any], list[str]]:
    """Return what the JSON holds, and the names of settings that it cannot hold."""
    left_out: list[str] = []
    settings = {}
    for name, value in model.get_params(deep=False).items():
        if name == "estimator":
            value, lost = (None, []) if value is None else _wrapped(value, adapter)
            settings[name] = value
            left_out += lost
        elif name == "feature_costs" and value is not None:
            settings[name] = to_plain(model._costs())
        elif name not in _OF_THIS_MACHINE:
            try:
                settings[name] = to_plain(value)
            except NotPlainError:
                left_out.append(name)
    content = {
        "task": model._task,
        "library": model.library_,
        "settings": settings,
        "not_saved": left_out,
        "estimator": _wrapped(model.estimator_, adapter)[0],
        "n_features": int(model.n_features_in_),
        "feature_names": [str(name) for name in model.feature_names_in_]
        if hasattr(model, "feature_names_in_")
        else None,
        "categorical": list(model._schema.categorical),
        "categories": _plain(dict(model._schema.categories), "The categories of X"),
        "missing": to_plain(model._missing),
        "unseen": model._unseen,
        "n_iter": int(model.n_iter_),
        "best_iteration": adapter.best_iteration(model.booster_),
        "stop_reason": model.stop_reason_,
        "evidence": None if model.evidence_ is None else asdict(model.evidence_),
        "evals_result": to_plain(model.evals_result_),
        "feature_cost": model.feature_cost_,
        "paid": list(model.paid_),
        "ledger": None if model.ledger_ is None else model.ledger_.to_dict(),
    }
    if model._task == "classification":
        content["classes"] = _plain(model.classes_, "The classes")
    return content, left_out


def _restored(cls: Any, content: Any, data: bytes, adapter: BoosterAdapter) -> Any:
    settings = {name: from_plain(value) for name, value in content["settings"].items() if name != "estimator"}
    wrapped = content["settings"]["estimator"]
    model = cls(estimator=None if wrapped is None else _unwrapped(wrapped, adapter), **settings)
    model._library = adapter.library
    model.estimator_ = _unwrapped(content["estimator"], adapter)
    model.booster_ = adapter.from_bytes(data, content["best_iteration"])
    model.n_features_in_ = content["n_features"]
    if content["feature_names"] is not None:
        model.feature_names_in_ = np.array(content["feature_names"], dtype=object)
    model._schema = Schema(tuple(content["categorical"]), from_plain(content["categories"]))
    model._missing = from_plain(content["missing"])
    model._unseen = content["unseen"]
    model.n_iter_ = content["n_iter"]
    model.stop_reason_ = content["stop_reason"]
    evidence = content.get("evidence")  # files of earlier versions have none
    model.evidence_ = None if evidence is None else Evidence(**evidence)
    model.evals_result_ = from_plain(content["evals_result"])
    model.ledger_ = None if content["ledger"] is None else Ledger.from_dict(content["ledger"])
    model.feature_cost_ = content["feature_cost"]
    model.paid_ = tuple(content["paid"])
    if model._task == "classification":
        model.classes_ = from_plain(content["classes"])
    if adapter.size(model.booster_) != (model.n_iter_, model.n_features_in_):
        raise ModelFileError("The booster has other rounds or columns than the JSON says.")
    return model


def _wrapped(estimator: Any, adapter: BoosterAdapter) -> tuple[dict[str, Any], list[str]]:
    """Return the wrapped estimator as the name of its class and its parameters, and the names of those left out."""
    name = next(cls.__name__ for cls in type(estimator).__mro__ if cls in adapter.estimators.values())
    params, left_out = {}, []
    for key, value in estimator.get_params(deep=False).items():
        try:
            params[key] = to_plain(value)
        except NotPlainError:
            left_out.append(f"estimator__{key}")
    return {"class": name, "params": params}, left_out


def _unwrapped(plain: Any, adapter: BoosterAdapter) -> Any:
    params = {key: from_plain(value) for key, value in plain["params"].items()}
    return adapter.estimators[plain["class"]](**params)


def _plain(value: Any, what: str) -> Any:
    try:
        return to_plain(value)
    except NotPlainError as error:
        raise ValueError(f"{what} cannot be saved: {error}. Turn them into text before fit, or use pickle.") from error


def _versions(adapter: BoosterAdapter) -> dict[str, str]:
    import grbb_ext  # which imports this module before it knows its version

    return {
        "grbb_ext": grbb_ext.__version__,
        adapter.library: adapter.version,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
