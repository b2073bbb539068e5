"""Trees that XGBoost grows only to be looked at, and how trees are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import xgboost as xgb
from numpy.typing import NDArray
from scipy.special import expit, softmax

from grbb_ext.adapters.xgboost._mask import ColumnMask, Settings
from grbb_ext.costs import Groups, Growth, Mask, shorten

Gradients = tuple[NDArray[np.float32], NDArray[np.float32]]

_LOGISTIC = ("binary:logistic", "binary:logitraw", "reg:logistic")
_SOFTMAX = ("multi:softprob", "multi:softmax")
# XGBoost keeps hessians above this.
_LEAST_HESSIAN = 1e-16


def builtin_gradients(name: str, scale_pos_weight: float = 1.0) -> Callable[[NDArray[Any], xgb.DMatrix], Gradients]:
    """Return gradient and hessian of a built-in objective as a function of raw scores and data.

    Parameters
    ----------
    name : str
        Name of the objective.
    scale_pos_weight : float, default=1
        Factor of rows with label 1, for the logistic objectives.

    Returns
    -------
    callable
        ``obj(raw_scores, dmatrix) -> (gradient, hessian)``, with the weights of the DMatrix.

    Examples
    --------
    >>> data = xgb.DMatrix(np.zeros((2, 1)), label=[0.0, 1.0])
    >>> builtin_gradients("binary:logistic")(np.zeros(2), data)[0].tolist()
    [0.5, -0.5]
    """
    known = ("reg:squarederror", *_LOGISTIC, *_SOFTMAX)
    if name not in known:
        raise ValueError(
            f"The gradients of {name!r} are not known here: obj must be one of {sorted(known)}, or a callable "
            "obj(raw_scores, dmatrix) -> (gradient, hessian), given to xgboost.train as well."
        )

    def gradients(raw_scores: NDArray[Any], data: xgb.DMatrix) -> Gradients:
        H, label, weight = raw_scores.astype(np.float32, copy=False), data.get_label(), data.get_weight()
        if name in _LOGISTIC:
            p = expit(H)
            gradient, hessian = p - label, p * (1 - p)
        elif name in _SOFTMAX:
            p = softmax(H, axis=1)
            gradient, hessian = p - np.eye(p.shape[1], dtype=np.float32)[label.astype(np.intp)], 2 * p * (1 - p)
        else:
            gradient, hessian = H - label, np.ones_like(H)
        hessian = np.maximum(hessian, np.float32(_LEAST_HESSIAN))
        factor = np.ones(gradient.shape[0], dtype=np.float32) if weight.size == 0 else weight
        if name in _LOGISTIC and scale_pos_weight != 1:
            factor = np.where(data.get_label() == 1, factor * np.float32(scale_pos_weight), factor)
        if gradient.ndim == 2:
            factor = factor[:, None]
        return gradient * factor, hessian * factor

    return gradients


# Rounds after which the scratch booster is made anew, so that it does not grow without end.
_MOST_ROUNDS = 200
# Rows that take part in probes, where there are at least twice as many.
_PROBED_ROWS = 32_768


class TreeReader:
    """Read used columns and gains from rounds of a booster.

    Parameters
    ----------
    names : sequence of str or None
        Names of the columns; None is f0, f1, ... as XGBoost has it.
    n_columns : int
        Number of columns.
    """

    def __init__(self, names: Sequence[str] | None, n_columns: int) -> None:
        self._unnamed = {f"f{i}": i for i in range(n_columns)}
        self._named = {name: i for i, name in enumerate(names or self._unnamed)}

    def step(self, booster: xgb.Booster) -> float:
        """Return by how much a booster whose trees are single leaves moves the scores, at most."""
        return max(abs(float(tree.split("leaf=")[1].split(",")[0])) for tree in booster.get_dump())

    def growth(self, booster: xgb.Booster, gamma: float = 0.0) -> Growth:
        """Return what the rounds of a booster grew; each split's gain is charged gamma, as XGBoost does."""
        position = self._position(booster)
        gain, used = np.zeros(len(position)), np.zeros(len(position), dtype=bool)
        for name, value in booster.get_score(importance_type="total_gain").items():
            gain[position[name]], used[position[name]] = value, True
        if gamma > 0:
            for name, count in booster.get_score(importance_type="weight").items():
                gain[position[name]] -= gamma * float(np.sum(count))
        return Growth(used, gain)

    def _position(self, booster: xgb.Booster) -> dict[str, int]:
        """Return the positions of columns; XGBoost continues a model without names on named data."""
        if booster.feature_names is None:
            return self._unnamed
        if list(booster.feature_names) != list(self._named):
            raise ValueError(
                f"The model has the columns {shorten(booster.feature_names)}, the DMatrix {shorten(self._named)}. "
                "Continue a model on the columns that it was trained on, in their order."
            )
        return self._named


class Prober:
    """Grow trees for the present gradients on a booster of their own, with the settings of the user's.

    All open columns take part, where the user's rounds may sample them: gains are those that a round would have on
    average (times ``subsample``, since fewer rows gain less). Of many rows a sample of 32,768 takes part, each for as
    many as it stands for: that is enough to compare columns, and takes a part of the time.

    Parameters
    ----------
    dtrain : xgboost.DMatrix
        The training data.
    settings : Settings
        Of the user's booster.
    mask : ColumnMask
        Opens and closes columns.
    reader : TreeReader
        Reads trees.

    Attributes
    ----------
    gradients : tuple of two ndarrays or None
        Gradient and hessian that the next trees are grown on.
    """

    def __init__(self, dtrain: xgb.DMatrix, settings: Settings, mask: ColumnMask, reader: TreeReader) -> None:
        self._dtrain, self._settings, self._mask, self._reader = dtrain, settings, mask, reader
        self._sample, self._rows = dtrain, np.arange(0)
        self._scratch: xgb.Booster | None = None
        self.gradients: tuple[NDArray[Any], NDArray[Any]] | None = None

    def look_at(self, gradient: NDArray[Any], hessian: NDArray[Any], *, sampling: bool = True) -> None:
        """Set the gradients; the first time, choose the rows."""
        n = int(self._dtrain.num_row())
        if self.gradients is None and sampling and n >= 2 * _PROBED_ROWS:
            rows = np.sort(np.random.default_rng(0).choice(n, _PROBED_ROWS, replace=False))
            with suppress(xgb.core.XGBoostError):  # quantile matrices cannot be sliced
                self._sample, self._rows = self._dtrain.slice(rows), rows
                self._mask = ColumnMask(self._sample, self._settings)
        if self._rows.size:
            of_rows = (np.reshape(each, (n, -1))[self._rows] for each in (gradient, hessian))
            gradient, hessian = (each * np.float32(n / self._rows.size) for each in of_rows)
        self.gradients = gradient, hessian

    def __call__(self, allowed: Mask, groups: Groups | None) -> Growth:
        """Grow a round on the open columns and read it."""
        assert self.gradients is not None
        if self._scratch is None or self._scratch.num_boosted_rounds() >= _MOST_ROUNDS:
            self._scratch = xgb.Booster({}, [self._sample])
            self._scratch.load_config(self._settings.config)
            self._scratch.set_param({"subsample": 1, "colsample_bylevel": 1, "colsample_bynode": 1})
            if self._settings.num_class > 0:
                # A configuration that is loaded loses it for the objective.
                self._scratch.set_param({"num_class": self._settings.num_class})
        round = self._scratch.num_boosted_rounds()
        with self._mask.opened(self._scratch, allowed, groups, sampling=False):
            self._scratch.boost(self._sample, round, grad=self.gradients[0], hess=self.gradients[1])
        growth = self._reader.growth(self._scratch[round : round + 1], self._settings.gamma)
        return Growth(growth.used, growth.gain * self._settings.subsample)

    def starting_scores(self, booster: xgb.Booster) -> NDArray[np.float32]:
        """Return the raw scores of a built-in objective before its first round, which only that round makes known."""
        booster = booster.copy()  # a configuration that is loaded loses base_score
        booster.set_param({"eta": 0, "max_depth": 1})
        booster.update(self._dtrain, 0)
        return np.asarray(booster.predict(self._dtrain, output_margin=True))
