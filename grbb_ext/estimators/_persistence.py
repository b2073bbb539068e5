"""Saving and loading of fitted estimators, without pickle."""

from __future__ import annotations

import importlib
import platform
import warnings
from dataclasses import asdict
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import sklearn
from sklearn.utils.validation import check_is_fitted

from grbb_ext.costs import Ledger
from grbb_ext.estimators._saved_parts import OF_THIS_MACHINE, checked, settings_of, unwrapped, wrapped
from grbb_ext.forest import Forest
from grbb_ext.persistence import (
    Document,
    ModelFileError,
    NotPlainError,
    read_folder,
    to_plain,
    write_folder,
)
from grbb_ext.table import Schema, Table
from grbb_ext.teacher import Evidence

if TYPE_CHECKING:
    from grbb_ext.estimators import GRBBClassifier, GRBBRegressor

_TASKS = {"classification": "GRBBClassifier", "regression": "GRBBRegressor"}
_LIBRARY_OF_FILE = {"model.txt": "lightgbm", "model.ubj": "xgboost"}


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
        library: str = self.library_
        files = _files(library)
        content, left_out = _content(self, files)
        if left_out:
            warnings.warn(
                f"These settings are not saved, since JSON cannot hold them: {', '.join(left_out)}. Predictions do not "
                "need them; set them again before a loaded model is fitted anew.",
                UserWarning,
                stacklevel=2,
            )
        write_folder(path, files.NAME, files.to_bytes(self.booster_), content, _versions(library, files))

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


def load(path: str | PathLike[str]) -> GRBBClassifier | GRBBRegressor:
    """Load a model that ``GRBBClassifier.save`` or ``GRBBRegressor.save`` wrote. Nothing in it is executed.

    Parameters
    ----------
    path : str or path-like
        The folder.

    Returns
    -------
    GRBBClassifier or GRBBRegressor
        Which predicts as the saved one does, bit by bit. What is made of the rows given to fit is not there, see
        :meth:`GRBBClassifier.load`.

    Raises
    ------
    FileNotFoundError
        If there is nothing.
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
    from grbb_ext import estimators  # whose modules import this one

    document, model = read_folder(path)
    name = _TASKS.get(str(document.content.get("task")), "GRBBClassifier")
    return restore(getattr(estimators, name), document, model, path)  # type: ignore[no-any-return]


def restore(cls: Any, document: Document, model: bytes, path: str | PathLike[str]) -> Any:
    """Make the estimator that a saved model describes; `path` is for messages."""
    task, library = document.content.get("task"), _LIBRARY_OF_FILE[document.model_file]
    if not isinstance(task, str) or task not in _TASKS or document.content.get("library") != library:
        raise ModelFileError(f"{str(path)!r} is not the model of a classifier or regressor.")
    if task != cls._task:
        raise ModelFileError(f"{str(path)!r} holds a {_TASKS[task]}: use {_TASKS[task]}.load or grbb_ext.load.")
    files = _files(library)
    try:
        return _restored(cls, document.content, model, files)
    except Exception as error:  # whatever a file provokes that has the right checksums and the wrong content
        written = ", ".join(f"{name} {version}" for name, version in document.versions.items())
        raise ModelFileError(
            f"{str(path)!r} cannot be loaded ({type(error).__name__}: {error}). It was written by {written}; here is "
            f"{library} {files.VERSION}. If the installed versions are older, upgrade them."
        ) from error


def _content(model: Any, files: Any) -> tuple[dict[str, Any], list[str]]:
    """Return what the JSON holds, and the names of settings that it cannot hold."""
    left_out: list[str] = []
    settings = {}
    for name, value in model.get_params(deep=False).items():
        if name == "estimator":
            value, lost = (None, []) if value is None else wrapped(value, files)
            settings[name] = value
            left_out += lost
        elif name == "feature_costs" and value is not None:
            settings[name] = to_plain(model._costs())
        elif not OF_THIS_MACHINE.fullmatch(name):
            try:
                settings[name] = to_plain(value)
            except NotPlainError:
                left_out.append(name)
    content = {
        "task": model._task,
        "library": model.library_,
        "settings": settings,
        "not_saved": left_out,
        "estimator": wrapped(model.estimator_, files)[0],
        "n_features": int(model.n_features_in_),
        "feature_names": [str(name) for name in model.feature_names_in_]
        if hasattr(model, "feature_names_in_")
        else None,
        "categorical": list(model._schema.categorical),
        "categories": _plain(dict(model._schema.categories), "The categories of X"),
        "missing": to_plain(model._missing),
        "unseen": model._unseen,
        "n_iter": int(model.n_iter_),
        "best_iteration": files.best_iteration(model.booster_),
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


def _restored(cls: Any, content: Any, data: bytes, files: Any) -> Any:
    plain = checked(content, cls._task)
    own = plain["settings"].pop("estimator")
    model = cls(estimator=None if own is None else unwrapped(own, files), **settings_of(cls, plain["settings"]))
    model.estimator_ = unwrapped(plain["estimator"], files)
    model.n_features_in_ = plain["n_features"]
    if plain["feature_names"] is not None:
        model.feature_names_in_ = np.array(plain["feature_names"], dtype=object)
    model._schema = Schema(tuple(plain["categorical"]), plain["categories"])
    model._missing = plain["missing"]
    model._unseen = plain["unseen"]
    model.n_iter_ = plain["n_iter"]
    model.stop_reason_ = plain["stop_reason"]
    model.evidence_ = None if plain["evidence"] is None else Evidence(**plain["evidence"])
    model.evals_result_ = plain["evals_result"]
    model.ledger_ = None if plain["ledger"] is None else Ledger.from_dict(plain["ledger"])
    model.feature_cost_ = plain["feature_cost"]
    model.paid_ = tuple(plain["paid"])
    if cls._task == "classification":
        model.classes_ = plain["classes"]
    # Our reader first: the library's own may end the process at what it does not expect.
    forest = Forest.from_bytes(data)
    n_outputs = 1 if cls._task == "regression" or model.classes_.size <= _TWO else model.classes_.size
    rounds = model.n_iter_ * forest.trees_per_round
    if (forest.library, forest.n_features, forest.n_outputs) != (plain["library"], model.n_features_in_, n_outputs):
        raise ValueError("the booster has other columns or outputs than the JSON says")
    if forest.feature_names != model._booster_names():
        raise ValueError("the booster has other names of columns than the JSON says")
    if forest.n_trees != rounds and (rounds == 0 or forest.n_trees % rounds):
        raise ValueError("the booster has other rounds than the JSON says")
    model.booster_ = files.from_bytes(data, plain["best_iteration"])
    if files.size(model.booster_) != (model.n_iter_, model.n_features_in_):
        raise ValueError("the booster has other rounds or columns than the JSON says")
    _compare(model, forest, files)
    return model


def _compare(model: Any, forest: Forest, files: Any) -> None:
    """Refuse a file that the installed library reads in another way: both scores have to have equal bits."""
    rows = forest.rows_at_splits(min(_MOST_ENTRIES // forest.n_features, _MOST_ROWS))
    if len(rows) == 0:
        return  # too many columns for a dense row; a file may say any number
    scores = files.raw_scores(model.booster_, model.estimator_, Table(rows, model._schema), model._booster_names())
    if not np.array_equal(scores, forest.predict(rows)):
        raise ValueError("the installed library reads the booster's file in another way than grbb_ext does")
    files.importances(model.booster_, model.estimator_, forest.n_features)  # refuses an importance_type of its own


_TWO = 2
_MOST_ROWS, _MOST_ENTRIES = 64, 10_000_000


def _plain(value: Any, what: str) -> Any:
    try:
        return to_plain(value)
    except NotPlainError as error:
        raise ValueError(f"{what} cannot be saved: {error}. Turn them into text before fit, or use pickle.") from error


def _files(library: str) -> Any:
    try:
        return importlib.import_module(f"grbb_ext.adapters.{library}._estimator")
    except ImportError as error:
        raise ImportError(f"The model is one of {library}: pip install 'grbb_ext[{library}]'.") from error


def _versions(library: str, files: Any) -> dict[str, str]:
    import grbb_ext  # which imports this module before it knows its version

    return {
        "grbb_ext": grbb_ext.__version__,
        library: files.VERSION,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
