"""XGBoost's base score, stored in the units of the prediction, as the raw score at which a forest starts."""

from __future__ import annotations

import ctypes
import math
import os

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]

_LOGIT = {"binary:logistic", "reg:logistic"}
_LOG = {"count:poisson", "reg:gamma", "reg:tweedie", "survival:aft", "survival:cox"}
_IDENTITY = {
    "binary:hinge",
    "binary:logitraw",
    "multi:softmax",
    "multi:softprob",
    "rank:map",
    "rank:ndcg",
    "rank:pairwise",
    "reg:absoluteerror",
    "reg:linear",
    "reg:pseudohubererror",
    "reg:quantileerror",
    "reg:squarederror",
    "reg:squaredlogerror",
}
# XGBoost keeps probabilities this far from 0 and 1 before the logit.
_NEAREST = np.float32(1e-6)


def _logarithm(x: np.float32) -> np.float32:
    """Take the logarithm in float32 as XGBoost does: with the logf of the C library.

    numpy's own float32 logarithm differs from it in the last bit for one number in six, a float64 logarithm rounded to
    float32 for one in two hundred. The latter is used where the C library cannot be reached.
    """
    try:
        logf = ctypes.CDLL(None if os.name == "posix" else "ucrtbase").logf
    except (OSError, AttributeError, TypeError):
        return np.float32(math.log(float(x)))
    logf.argtypes, logf.restype = [ctypes.c_float], ctypes.c_float
    return np.float32(logf(float(x)))


def base_margin(base_score: str, objective: str, n_outputs: int) -> Float32:
    """Read the text of a base score and apply the link of the objective.

    Parameters
    ----------
    base_score : str
        As in a saved model: ``"5E-1"``, or since XGBoost 3.1 ``"[5E-1]"`` with a number for each output.
    objective : str
        Name of the objective.
    n_outputs : int
        Scores per row.

    Returns
    -------
    ndarray of shape (n_outputs,)
        float32.

    Examples
    --------
    >>> base_margin("[5E-1]", "binary:logistic", 1).tolist()
    [-0.0]
    >>> base_margin("2E0", "count:poisson", 1).tolist()
    [0.6931471824645996]
    """
    scores = [np.float32(part) for part in base_score.strip("[] ").split(",")]
    if len(scores) not in (1, n_outputs):
        raise ValueError(f"base_score has {len(scores)} numbers for {n_outputs} outputs.")
    if not np.isfinite(scores).all():
        raise ValueError(f"base_score must be finite, got {base_score!r}.")
    if objective in _LOGIT:
        one = np.float32(1)
        inside = [min(max(score, _NEAREST), one - _NEAREST) for score in scores]
        margins = [-_logarithm(one / score - one) for score in inside]
    elif objective in _LOG:
        margins = [_logarithm(score) for score in scores]
    elif objective in _IDENTITY:
        margins = scores
    else:
        raise ValueError(f"the objective {objective!r} is not known, so the link of its base_score is not.")
    return np.resize(np.array(margins, dtype=np.float32), n_outputs)
