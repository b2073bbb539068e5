"""What :func:`prediction_variance` returns."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


class VacuousVarianceWarning(UserWarning):
    """The variance is above 1/4, more than a probability can vary: it says nothing."""


@dataclass(frozen=True)
class PredictionVariance:
    """Variance of the predictions.

    Attributes
    ----------
    mean : float
        Mean over the rows that a label reaches (and over classes).
    per_row : ndarray of shape (N,) or None
        The variance of each row, inf where no label reaches; None unless asked for.
    standard_error : float
        Standard error of `mean` as an estimate of the exact mean; 0 for the exact methods.
    confidence_interval : tuple of float
        95 % interval of the exact mean, by Student's distribution.
    n_unreachable : int
        Rows left out of the mean, since no label reaches them.
    lam : float
        Weight of the graph that was used.
    lam_chosen : bool
        Whether it was chosen by evidence.
    kind, curvature, method : str
        As used; method is never ``"auto"``.
    noise_variance : float
        For squared error, the estimated variance of a label about its score; 1 otherwise.
    message : str
        What was decided on the way, in sentences.
    """

    mean: float
    per_row: NDArray[np.float64] | None = field(repr=False)
    standard_error: float
    confidence_interval: tuple[float, float]
    n_unreachable: int
    lam: float
    lam_chosen: bool
    kind: str
    curvature: str
    method: str
    noise_variance: float
    message: str = field(repr=False)
