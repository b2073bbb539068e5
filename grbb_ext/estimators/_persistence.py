"""Saving and loading of fitted estimators, without pickle."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from grbb_ext._options import Spec
from grbb_ext.costs import FeatureCosts, Ledger
from grbb_ext.estimators._job import BoosterAdapter, adapter_named
from grbb_ext.estimators._rows import RowReader
from grbb_ext.forest import Forest
from grbb_ext.persistence import (
    LIBRARY_OF_FILE,
    ModelFileError,
    NotPlainError,
    from_plain,
    read_folder,
    to_plain,
    versions_of,
    write_folder,
)
from grbb_ext.table import Schema, Table
from grbb_ext.teacher import Evidence

if TYPE_CHECKING:
    from grbb_ext.estimators import GRBBClassifier, GRBBRegressor

_TASKS = {"classification": "GRBBClassifier", "regression": "GRBBRegressor"}


# Caches, and parameters of LightGBM that name files and machines: a fit would read, write, execute or call them. They
# are not saved, and a file that has one is refused.
_OF_THIS_MACHINE = re.compile(
    r"memory|.*(file|machine|forced).*|(data|train|test|valid)(_data)?|valid_data_initscores|config|fs|mlist|workers|nodes|"
    r"(input|output)_(model|result)|model_(input|in|output|out)|predict(ion)?_(result|name)|pred_name|name_pred|"
    r"convert_model|(is_)?save_binary|snapshot_freq|save_period|(local_)?(listen_)?port"
)


class OfTrainingRows:
    """An attribute that fit sets and a saved model does not hold; this is what is found where it is not set."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, model: Any, owner: type) -> Any:
        if model is None:
            return self
        message = f"{type(model).__name__} has no {self._name} before fit."
        if "booster_" in vars(model):
            message = (
                f"{self._name} is made of the rows given to fit, and a saved model does not hold them. So graph_, "
                "objective_, raw_scores_, transduction_, prediction_variance(), suggest_labels(), plan_labels() and "
                "report() do not work after load(): fit again, or keep the model with pickle or joblib."
            )
        raise AttributeError(message, name=self._name, obj=model)


class SavedModel(RowReader):
    """The methods :meth:`save` and :meth:`load` of an estimator."""

    graph_: Any = OfTrainingRows()
    objective_: Any = OfTrainingRows()
    raw_scores_: Any = OfTrainingRows()
    transduction_: Any = OfTrainingRows()

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a folder: the library's own model file, and a JSON file with classes and columns.

        The library loads its file (``model.txt`` of LightGBM, ``model.ubj`` of XGBoost) without grbb_ext, with equal
        raw scores. The rows given to fit are not written. A saved model in that folder is replaced.

        Parameters
        ----------
        path : str or path-like
            The folder.

        Raises
        ------
        FileExistsError
            If the path holds anything but a saved model.
        ValueError
            If classes or categories are of a type that JSON cannot hold, such as dates.

        See Also
        --------
        grbb_ext.estimators.load : Load a classifier or a regressor.
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
        versions = versions_of(adapter.library, adapter.version)
        write_folder(path, adapter.model_file, adapter.to_bytes(self.booster_), content, versions)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Load a model that :meth:`save` wrote. Nothing in it is executed.

        Attributes of the training rows are not saved: ``graph_``, ``objective_``, ``raw_scores_``,
        ``transduction_``, ``prediction_variance()`` and ``suggest_labels()`` raise AttributeError.

        Parameters
        ----------
        path : str or path-like
            The folder.

        Raises
        ------
        FileNotFoundError
            If the folder does not exist.
        ModelFileError
            If it is damaged, of a later format, of another estimator, or no saved model.
        ImportError
            If the library of the booster is not installed.
        """
        model: Self = _load(path, cls)
        return model


def load(path: str | PathLike[str]) -> GRBBClassifier | GRBBRegressor:
    """Load a model that ``GRBBClassifier.save`` or ``GRBBRegressor.save`` wrote. Nothing in it is executed.

    Parameters
    ----------
    path : str or path-like
        The folder.

    Returns
    -------
    GRBBClassifier or GRBBRegressor
        Its predictions are equal to those of the saved model, bit for bit. Attributes of the training rows are not
        saved, see :meth:`GRBBClassifier.load`.

    Raises
    ------
    FileNotFoundError
        If the folder does not exist.
    ModelFileError
        If it is damaged, of another format, or no saved model.
    ImportError
        If the library of the booster is not installed.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from lightgbm import LGBMClassifier
    >>> from grbb_ext import GRBBClassifier
    >>> X = np.arange(100.0).reshape(-1, 1)
    >>> y = np.where(X[:, 0] < 50, "low", "high").astype(object)
    >>> y[10:90] = None
    >>> model = GRBBClassifier(LGBMClassifier(n_estimators=5)).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model")
    ...     loaded = load(f"{folder}/model")
    >>> loaded.predict([[30.0], [70.0]]).tolist()
    ['low', 'high']
    """
    return _load(path)  # type: ignore[no-any-return]


def _load(path: str | PathLike[str], cls: Any = None) -> Any:
    """Make the estimator that a saved model describes, which has to be a `cls`."""
    from grbb_ext import estimators  # whose modules import this one

    document, model = read_folder(path)
    task, library = document.content.get("task"), LIBRARY_OF_FILE[document.model_file]
    if not isinstance(task, str) or task not in _TASKS or document.content.get("library") != library:
        raise ModelFileError(f"{str(path)!r} is not the model of a classifier or regressor.")
    cls = cls or getattr(estimators, _TASKS[task])
    if task != cls._task:
        raise ModelFileError(f"{str(path)!r} holds a {_TASKS[task]}: use {_TASKS[task]}.load or grbb_ext.load.")
    adapter = adapter_named(library)
    try:
        return _restored(cls, document.content, model, adapter)
    except Exception as error:  # whatever a file provokes that has the right checksums and the wrong content
        written = ", ".join(f"{name} {version}" for name, version in document.versions.items())
        raise ModelFileError(
            f"{str(path)!r} cannot be loaded ({type(error).__name__}: {error}). It was written by {written}; here is "
            f"{library} {adapter.version}. If the installed versions are older, upgrade them."
        ) from error


def _content(model: Any, adapter: BoosterAdapter) -> tuple[dict[str, Any], list[str]]:
    """Return what the JSON holds, and the names of settings that it cannot hold."""
    params = model.get_params(deep=False)
    wrapped, costs = params.pop("estimator"), params.pop("feature_costs")
    estimator, left_out = (None, []) if wrapped is None else _wrapped(wrapped, adapter)
    settings, own_left_out = _saved(params)
    settings |= {"estimator": estimator, "feature_costs": None if costs is None else to_plain(model._costs())}
    left_out += own_left_out
    content = {
        "task": model._task,
        "library": model.library_,
        "settings": settings,
        "not_saved": left_out,
        "estimator": _wrapped(model.estimator_, adapter)[0],
        "n_features": int(model.n_features_in_),
        "feature_names": None if model._names is None else list(model._names),
        "categorical": list(model._schema.categorical),
        "categories": _plain(dict(model._schema.categories), "The categories of X"),
        "missing": to_plain(model._schema.missing),
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
    plain = _checked(content, cls._task)
    wrapped = plain["settings"].pop("estimator")
    settings = _settings(plain["settings"], "setting", _SETTINGS)
    model = cls(estimator=None if wrapped is None else _unwrapped(wrapped, adapter), **settings)
    model._library = adapter.library
    model.estimator_ = _unwrapped(plain["estimator"], adapter)
    model.n_features_in_ = plain["n_features"]
    if plain["feature_names"] is not None:
        model.feature_names_in_ = np.array(plain["feature_names"], dtype=object)
    model._schema = Schema(tuple(plain["categorical"]), plain["categories"], missing=plain["missing"])
    model._unseen = plain["unseen"]
    for name in ("n_iter", "stop_reason", "evals_result", "feature_cost"):
        setattr(model, f"{name}_", plain[name])
    model.evidence_ = None if plain["evidence"] is None else Evidence(**plain["evidence"])
    model.ledger_ = None if plain["ledger"] is None else Ledger.from_dict(plain["ledger"])
    model.paid_ = tuple(plain["paid"])
    if cls._task == "classification":
        model.classes_ = plain["classes"]
    # Our reader first: the library's own may end the process at what it does not expect.
    forest = Forest.from_bytes(data)
    n_outputs = 1 if cls._task == "regression" or model.classes_.size <= 2 else model.classes_.size
    rounds = model.n_iter_ * forest.trees_per_round
    if (forest.library, forest.n_features, forest.n_outputs) != (plain["library"], model.n_features_in_, n_outputs):
        raise ValueError("the booster has other columns or outputs than the JSON says")
    if forest.feature_names != model._booster_names():
        raise ValueError("the booster has other names of columns than the JSON says")
    if forest.n_trees != rounds and (rounds == 0 or forest.n_trees % rounds):
        raise ValueError("the booster has other rounds than the JSON says")
    model.booster_ = adapter.from_bytes(data, plain["best_iteration"])
    if adapter.size(model.booster_) != (model.n_iter_, model.n_features_in_):
        raise ValueError("the booster has other rounds or columns than the JSON says")
    _compare(model, forest, adapter)
    return model


def _compare(model: Any, forest: Forest, adapter: BoosterAdapter) -> None:
    """Refuse a file that the installed library reads in another way: both scores have to have equal bits."""
    rows = forest.rows_at_splits(min(_MOST_ENTRIES // forest.n_features, _MOST_ROWS))
    if len(rows) == 0:
        return  # too many columns for a dense row; a file may say any number
    scores = adapter.raw_scores(model.booster_, model.estimator_, Table(rows, model._schema), model._booster_names())
    if not np.array_equal(scores, forest.predict(rows)):
        raise ValueError("the installed library reads the booster's file in another way than grbb_ext does")
    adapter.importances(model.booster_, model.estimator_, forest.n_features)  # refuses an importance_type of its own


_MOST_ROWS, _MOST_ENTRIES = 64, 10_000_000
_THREADS, _MOST_THREADS = ("n_jobs", "nthread", "nthreads", "num_thread", "num_threads"), 1024


def _is_int(value: Any, least: int = 0) -> bool:
    return type(value) is int and value >= least


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_list(value: Any, check: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(map(check, value))


def _is_wrapped(value: Any) -> bool:
    kinds = {key: type(part) for key, part in value.items()} if isinstance(value, dict) else {}
    return kinds == {"class": str, "params": dict}


def _is_categories(value: Any) -> bool:
    return isinstance(value, dict) and all(
        _is_int(key) and isinstance(names, tuple) and len(set(names)) == len(names) for key, names in value.items()
    )


def _is_history(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(metrics, dict) and all(_is_list(scores, _is_number) for scores in metrics.values())
        for metrics in value.values()
    )


def _is_evidence(value: Any) -> bool:
    """Whether a dict holds names, numbers and weights of experts, all as many, and powers with their shares."""
    if not isinstance(value, dict) or value.keys() != {field.name for field in fields(Evidence)}:
        return False
    return (
        _is_list(value["experts"], _is_text)
        and _is_list(value["log_likelihood"], lambda one: one is None or _is_number(one))
        and all(_is_list(value[name], _is_number) for name in ("weight", "powers", "shares"))
        and (value["class_shares"] is None or _is_list(value["class_shares"], _is_number))
        and len(value["experts"]) == len(value["log_likelihood"]) == len(value["weight"]) > 0
        and len(value["powers"]) == len(value["shares"]) > 0
        and _is_int(value["n_labels"])
    )


def _is_classes(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 1 and np.unique(value).size == value.size > 0


# What save writes: whether a value is None or passes the check.
_PARTS: dict[str, Callable[[Any], bool]] = {
    "task": _is_text,
    "library": _is_text,
    "settings": lambda value: (
        isinstance(value, dict) and (value.get("estimator") is None or _is_wrapped(value["estimator"]))
    ),
    "not_saved": lambda value: _is_list(value, _is_text),
    "estimator": _is_wrapped,
    "n_features": lambda value: _is_int(value, 1),
    "feature_names": lambda value: value is None or _is_list(value, _is_text),
    "categorical": lambda value: _is_list(value, _is_int) and value == sorted(set(value)),
    "unseen": lambda value: value in ("error", "missing"),
    "n_iter": _is_int,
    "best_iteration": lambda value: value is None or _is_int(value),
    "stop_reason": lambda value: value is None or _is_text(value),
    "evidence": lambda value: value is None or _is_evidence(value),
    "feature_cost": lambda value: value is None or _is_number(value),
    "paid": lambda value: _is_list(value, lambda source: type(source) in (int, str)),
    "ledger": lambda value: value is None or isinstance(value, dict),
    "categories": _is_categories,
    "missing": lambda value: type(value) is float,
    "evals_result": _is_history,
    "classes": _is_classes,
}
# Those that to_plain writes.
_PLAIN_PARTS = ("categories", "missing", "evals_result", "classes")


def _checked(content: Mapping[str, Any], task: str) -> dict[str, Any]:
    """Return the parts of the JSON, each of the type that save writes."""
    expected = _PARTS.keys() - ({"classes"} if task == "regression" else set())
    if content.keys() != expected:
        raise ValueError(f"the parts {sorted(content.keys() ^ expected)} are missing, or nobody wrote them")
    parts = {name: from_plain(value) if name in _PLAIN_PARTS else value for name, value in content.items()}
    for name, value in parts.items():
        if not _PARTS[name](value):
            raise ValueError(f"{name} is not what save writes")
    n_features, columns = parts["n_features"], parts["categorical"]
    if len(parts["feature_names"] or []) not in (0, n_features) or (columns and columns[-1] >= n_features):
        raise ValueError("there are more or fewer names than columns, or categories of columns that do not exist")
    if not parts["categories"].keys() <= set(columns):
        raise ValueError("there are categories of columns that have none")
    return parts | {"settings": dict(parts["settings"])}


_SETTING = (bool, int, float, str, list, tuple, dict, np.ndarray, Spec)
# Types of settings, and of the wrapped estimator's parameters, beside None; others may be any of the above.
_SETTINGS: dict[str, tuple[type, ...]] = {
    "graph": (str, Spec),
    "teacher": (str, Spec, list, tuple),
    "propagation": (str, Spec),
    "rule": (str, Spec),
    "feature_costs": (FeatureCosts,),
    "mu": (int, float),
    "budget": (int, float),
    "class_weight": (str, dict, list),
    "unlabeled": (bool, int, float, str),
    "categorical_features": (str, list, tuple, np.ndarray),
    "random_state": (int,),
    "verbose": (bool, int),
}


_PARAMETERS: dict[str, tuple[type, ...]] = {"missing": (bool, int, float), "importance_type": (str,)}


def _settings(plain: dict[str, Any], what: str, types_of: Mapping[str, tuple[type, ...]]) -> dict[str, Any]:
    """Return settings; those that save never writes are refused, for a later fit would act on them."""
    settings = {name: from_plain(value) for name, value in plain.items()}
    for name, value in settings.items():
        if value is None:
            continue
        types = types_of.get(name, _SETTING)
        if _OF_THIS_MACHINE.fullmatch(name):
            raise ValueError(f"save never writes the {what} {name!r}")
        if not isinstance(value, types) or (type(value) is bool and bool not in types):
            raise ValueError(f"the {what} {name} is of type {type(value).__name__}")
        # Refuse numbers of threads that no machine has: the libraries end the process where they cannot start them.
        if name in _THREADS and (type(value) is not int or abs(value) > _MOST_THREADS):
            raise ValueError(f"{name} is {value!r}")
    return settings


def _wrapped(estimator: Any, adapter: BoosterAdapter) -> tuple[dict[str, Any], list[str]]:
    """Return the wrapped estimator as the name of its class and its parameters, and the names of those left out."""
    name = next(cls.__name__ for cls in type(estimator).__mro__ if cls in adapter.estimators.values())
    params, left_out = _saved(estimator.get_params(deep=False))
    return {"class": name, "params": params}, [f"estimator__{key}" for key in left_out]


def _saved(params: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return parameters as JSON holds them, and the names of those that it cannot hold or must not."""
    saved, left_out = {}, []
    for name, value in params.items():
        try:
            of_rows = name == "graph" and not isinstance(value, (str, Spec))  # a matrix, dense or sparse
            if value is not None and (of_rows or _OF_THIS_MACHINE.fullmatch(name)):
                raise NotPlainError
            saved[name] = to_plain(value)
        except NotPlainError:
            left_out.append(name)
    return saved, left_out


def _unwrapped(plain: Any, adapter: BoosterAdapter) -> Any:
    return adapter.estimators[plain["class"]](**_settings(plain["params"], "parameter", _PARAMETERS))


def _plain(value: Any, what: str) -> Any:
    try:
        return to_plain(value)
    except NotPlainError as error:
        raise ValueError(f"{what} cannot be saved: {error}. Turn them into text before fit, or use pickle.") from error
