"""Load a saved model, whatever estimator it is."""

from __future__ import annotations

from os import PathLike

from grbb_ext.estimators._classifier import GRBBClassifier
from grbb_ext.estimators._persistence import restore
from grbb_ext.estimators._regressor import GRBBRegressor
from grbb_ext.persistence import read_folder


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
        If it is damaged, of a later format, or no saved model.
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
    document, model = read_folder(path)
    cls = GRBBRegressor if document.content.get("task") == "regression" else GRBBClassifier
    return restore(cls, document, model, path)  # type: ignore[no-any-return]
