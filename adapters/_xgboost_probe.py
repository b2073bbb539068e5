"""Trees that XGBoost grows only to be looked at, and how trees are read."""

from __future__ import annotations

from typing import Any

import numpy as np
import xgboost as xgb
from numpy.typing import NDArray

from grbb_ext.adapters._xgboost_mask import ColumnMask
from grbb_ext.adapters._xgboost_settings import Settings
from grbb_ext.miser import Growth
from grbb_ext.miser._choice import Groups, Mask

# Rounds after which the scratch booster is made anew, so that it does not grow without end.
_MOST_ROUNDS = 200


class TreeReader:
    """Read used columns and gains from rounds of a booster.

    Parameters
    ----------
    names : list of str or None
        Names of the columns; None is f0, f1, ... as XGBoost has it.
    n_columns : int
        Number of columns.
    """

    def __init__(self, names: list[str] | None, n_columns: int) -> None:
        listed = names or [f"f{i}" for i in range(n_columns)]
        self._position = {name: i for i, name in enumerate(listed)}

    def used(self, booster: xgb.Booster) -> Mask:
        """Return the columns that some split of a booster reads."""
        used = np.zeros(len(self._position), dtype=bool)
        used[[self._position[name] for name in booster.get_score(importance_type="weight")]] = True
        return used

    def growth(self, booster: xgb.Booster, round: int, gamma: float = 0.0) -> Growth:
        """Return what a round grew; each split's gain is charged gamma, as XGBoost does."""
        one = booster[round : round + 1]
        gain = np.zeros(len(self._position))
        used = np.zeros(gain.size, dtype=bool)
        for name, value in one.get_score(importance_type="total_gain").items():
            gain[self._position[name]], used[self._position[name]] = value, True
        if gamma > 0:
            for name, count in one.get_score(importance_type="weight").items():
                gain[self._position[name]] -= gamma * float(np.sum(count))
        return Growth(used, gain)


class Prober:
    """Grow trees for the present gradients on a booster of their own, with the settings of the user's.

    All rows and all open columns take part, where the user's rounds may sample them: gains are those that a round
    would have on average (times ``subsample``, since fewer rows gain less).

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
    """

    def __init__(self, dtrain: xgb.DMatrix, settings: Settings, mask: ColumnMask, reader: TreeReader) -> None:
        self._dtrain, self._settings, self._mask, self._reader = dtrain, settings, mask, reader
        self._scratch: xgb.Booster | None = None
        self._gradients: tuple[NDArray[Any], NDArray[Any]] | None = None

    def set_gradients(self, gradient: NDArray[Any], hessian: NDArray[Any]) -> None:
        """Set what the next trees are grown on."""
        self._gradients = gradient, hessian

    def __call__(self, allowed: Mask, groups: Groups | None) -> Growth:
        """Grow a round on the open columns and read it."""
        assert self._gradients is not None
        if self._scratch is None or self._scratch.num_boosted_rounds() >= _MOST_ROUNDS:
            self._scratch = self.new_booster()
            self._scratch.set_param({"subsample": 1, "colsample_bylevel": 1, "colsample_bynode": 1})
        round = self._scratch.num_boosted_rounds()
        self._mask.set(self._scratch, allowed, groups, sampling=False)
        self._scratch.boost(self._dtrain, round, grad=self._gradients[0], hess=self._gradients[1])
        growth = self._reader.growth(self._scratch, round, self._settings.gamma)
        return Growth(growth.used, growth.gain * self._settings.subsample)

    def starting_scores(self) -> NDArray[np.float32]:
        """Return the raw scores of a built-in objective before its first round, which only that round makes known."""
        booster = self.new_booster()
        booster.set_param({"eta": 0, "max_depth": 1})
        booster.update(self._dtrain, 0)
        return np.asarray(booster.predict(self._dtrain, output_margin=True))

    def new_booster(self) -> xgb.Booster:
        """Return an empty booster with the user's settings."""
        booster = xgb.Booster({}, [self._dtrain])
        booster.load_config(self._settings.config)
        if self._settings.num_class > 0:
            # A configuration that is loaded loses it for the objective.
            booster.set_param({"num_class": self._settings.num_class})
        return booster
