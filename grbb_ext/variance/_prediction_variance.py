"""Prediction variance from raw scores alone (paper, section 5)."""

from __future__ import annotations

import logging
import warnings
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student

from grbb_ext._options import one_of, positive_int
from grbb_ext.losses import SquaredErrorLoss
from grbb_ext.objective import GRBBObjective
from grbb_ext.variance._information import Curvature, Curvatures, MarginalLikelihood, curvatures, lam_in_use, prior_of
from grbb_ext.variance._posterior import Kind, TraceEstimate, dense_diagonal, hutchpp, schur_diagonal, squared_norm
from grbb_ext.variance._prior import Array, GraphPrior, Product


class VacuousVarianceWarning(UserWarning):
    """The variance is above 1/4, more than a probability can vary, so it carries no information."""


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
        Whether it was chosen by the marginal likelihood of the labels.
    kind, curvature, method : str
        As used; method is never ``"auto"``.
    noise_variance : float
        For squared error, the estimated variance of a label about its score; 1 otherwise.
    message : str
        Notes on automatic choices.
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


Method = Literal["auto", "dense", "schur", "stochastic"]

N_PROBES = 8
_LARGEST_VARIANCE = 0.25
_DENSE_UP_TO = 500
_DENSE_AT_MOST = 20_000
# The diagonal of the prior covariance takes a solve per row, the columns F one per label.
_DIAGONAL_UP_TO = 3_000
_COLUMNS_UP_TO = 20_000
# Products of numbers in the exact form, K N n^2: about a minute.
_WORK_UP_TO = 1e12

_log = logging.getLogger("grbb_ext")


def prediction_variance(
    obj: GRBBObjective,
    raw_scores: ArrayLike,
    lam: float | None = None,
    kind: Kind = "sandwich",
    curvature: Curvature = "logistic",
    method: Method = "auto",
    per_row: bool = False,
    n_probes: int = N_PROBES,
    random_state: int | np.random.Generator = 0,
) -> PredictionVariance:
    r"""Estimate how much the predicted probabilities vary, from a booster's raw scores alone.

    With the information :math:`I = \Delta + \lambda Q` about the scores, :math:`\Delta` the curvature of the loss on
    labelled rows and Q the precision that the objective's operator stands for,

    .. math:: \frac1N \sum_i \Bigl(\frac{\partial p_i}{\partial H_i}\Bigr)^2 [V]_{ii}, \qquad
       V = I^{-1} \Delta I^{-1} \text{ (sandwich) or } I^{-1} \text{ (fisher)}.

    ``"sandwich"`` is the variance over draws of the labels of the penalised maximum-likelihood scores. ``"fisher"`` is
    the paper's number (eq. 11-15): the posterior variance of the probability given these labels. The paper calls it a
    lower bound on the first; in simulations it is not, see the page on variance of the documentation.

    Parameters
    ----------
    obj : GRBBObjective
        The objective; its operator supplies Q: the Laplacian of ``"harmonic"``, ``"nonlocal"`` and ``"poisson"``, the
        inverse kernel of ``"smooth"``. For ``rule="labeled"`` there is none.
    raw_scores : array-like of shape (N,) or (N, K)
        Raw scores on all rows, of either booster.
    lam : float or None, default=None
        Weight of the graph, in units of Q. None takes the objective's and, where that is 0, the one with the largest
        marginal likelihood of the labels (:func:`choose_lam`). The search is made once for each objective.
    kind : {"sandwich", "fisher"}, default="sandwich"
        Which variance.
    curvature : {"logistic", "paper"}, default="logistic"
        p (1 - p), or the p^2 (1 - p) that the paper prints, which changes when the classes swap names.
    method : {"auto", "dense", "schur", "stochastic"}, default="auto"
        A dense inverse; the exact form with n x n matrices; random probes (Hutch++) with a confidence interval.
        ``"auto"`` is exact where that is cheap: up to 20,000 rows for the sandwich and 3,000 for ``"fisher"``, or with
        `per_row`. The work of the exact form is :math:`K N n^2`; ``"auto"`` leaves it to random probes beyond
        :math:`10^{12}`.
    per_row : bool, default=False
        Return the variance of each row too. Exact methods only; for ``"fisher"`` it takes one solve per row.
    n_probes : int, default=8
        Random vectors of ``"stochastic"``; the standard error falls with their square root or faster.
    random_state : int or numpy.random.Generator, default=0
        The source of the probes.

    Returns
    -------
    PredictionVariance
        The mean, its standard error and interval, per row on request, and notes on automatic choices.

    Warns
    -----
    VacuousVarianceWarning
        If the mean is above 1/4, more than a probability can vary.

    Notes
    -----
    With K classes each class is taken against the rest, with curvature :math:`p_k (1 - p_k)`, and the mean is over
    classes too; two classes give the same number in either form. For squared error V is multiplied by the noise
    variance, which is estimated from the labels, and the result is in squared units of y.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from grbb_ext import grbb_objective
    >>> X, truth = make_moons(200, noise=0.1, random_state=0)
    >>> y = np.where(np.arange(200) < 10, truth, -1)
    >>> obj = grbb_objective(X, y)
    >>> H = np.where(truth == 1, 2.0, -2.0)
    >>> v = prediction_variance(obj, H, lam=1.0)
    >>> round(v.mean, 5), v.method
    (0.0011, 'dense')
    >>> round(prediction_variance(obj, H, lam=1.0, kind="fisher").mean, 5)
    0.00888
    """
    for name, given, choices in (("kind", kind, Kind), ("curvature", curvature, Curvature), ("method", method, Method)):
        one_of(given, get_args(choices), name)
    n_probes = positive_int(n_probes, "n_probes", 2)
    if method == "stochastic" and per_row:
        raise ValueError("method='stochastic' estimates the mean only. For per_row=True use method='schur' or 'auto'.")
    prior = prior_of(obj)
    found = curvatures(obj, raw_scores, curvature)
    if method == "dense" and obj.n_rows_ > _DENSE_AT_MOST:
        raise ValueError(
            f"method='dense' inverts an N x N matrix, and N is {obj.n_rows_}. Use method='schur' or 'auto'."
        )

    chosen, lam_chosen = lam_in_use(obj, lam)
    used = method_for(kind, per_row, prior, obj.n_outputs_) if method == "auto" else method
    messages = []
    if lam_chosen:
        bound = " It lies at an end of the range searched: the labels hardly determine it, so give lam if you can."
        messages.append(
            f"lam={chosen.lam:.3g} was chosen by the marginal likelihood of the labels, since the objective's lam is 0."
            + bound * chosen.at_bound
        )
    if method == "auto":
        messages.append(f"method='auto' took {used!r} for {obj.n_rows_} rows.")
    for message in messages:
        _log.info(message)

    random = np.random.default_rng(random_state)
    (value, error, freedom), rows = mean_variance(prior, found, chosen, kind, used, n_probes, random)
    half = float(student.ppf(0.975, freedom)) * error
    if value > _LARGEST_VARIANCE and not isinstance(obj.loss_, SquaredErrorLoss):
        warnings.warn(
            f"The mean variance is {value:.2g}, but a probability cannot vary by more than 0.25: "
            f"lam={chosen.lam:.3g} leaves the scores too free for the number to mean anything. Raise lam, label more "
            "rows, or use kind='sandwich'.",
            VacuousVarianceWarning,
            stacklevel=2,
        )
    return PredictionVariance(
        mean=value,
        per_row=rows if per_row else None,
        standard_error=error,
        confidence_interval=(max(0.0, value - half), value + half),
        n_unreachable=int((~prior.reachable).sum()),
        lam=chosen.lam,
        lam_chosen=lam_chosen,
        kind=kind,
        curvature=curvature,
        method=used,
        noise_variance=chosen.noise_variance,
        message=" ".join(messages),
    )


def mean_variance(
    prior: GraphPrior,
    found: Curvatures,
    chosen: MarginalLikelihood,
    kind: Kind,
    method: Method,
    n_probes: int,
    random: np.random.Generator,
) -> tuple[TraceEstimate, Array | None]:
    """Return the mean variance over rows and outputs, and with the exact methods that of each row."""
    if method == "stochastic":
        value, error, freedom = _estimate(prior, found, chosen.lam, kind, n_probes, random)
        return TraceEstimate(chosen.noise_variance * value, chosen.noise_variance * error, freedom), None
    diagonal = dense_diagonal if method == "dense" else schur_diagonal
    rows = np.zeros(prior.n_rows)
    for k in range(found.slope.shape[1]):
        scores = diagonal(prior, found.delta[:, k], found.middle[:, k], chosen.lam, kind)
        rows += found.slope[:, k] ** 2 * scores
    rows *= chosen.noise_variance / found.slope.shape[1]
    mean = float(rows[prior.reachable].mean())
    rows[~prior.reachable] = np.inf
    return TraceEstimate(mean, 0.0, 1), rows


def method_for(kind: Kind, per_row: bool, prior: GraphPrior, n_outputs: int) -> Method:
    """Return what ``"auto"`` stands for."""
    # A dense inverse takes N x N matrices for each output.
    if prior.n_rows <= _DENSE_UP_TO and n_outputs == 1:
        return "dense"
    if per_row:
        return "schur"
    if n_outputs * prior.n_rows * prior.labeled.size**2 > _WORK_UP_TO:
        return "stochastic"
    exact_up_to = _COLUMNS_UP_TO if kind == "sandwich" else _DIAGONAL_UP_TO
    cheap = prior.n_rows <= exact_up_to and prior.columns_fit
    return "schur" if cheap or (kind == "sandwich" and prior.has_columns) else "stochastic"


def _estimate(
    prior: GraphPrior, found: Curvatures, lam: float, kind: Kind, n_probes: int, random: np.random.Generator
) -> TraceEstimate:
    """Return the mean over reachable rows and outputs, by random probes for each output."""
    parts = []
    for k in range(found.slope.shape[1]):
        slope = np.where(prior.reachable, found.slope[:, k], 0.0).astype(np.float32)[:, None]
        delta = found.delta[:, k]
        if kind == "fisher":
            posterior = _between(slope, prior.posterior_product(delta, lam), slope)
            # Each of these probes takes three products where one of the sandwich takes one.
            parts.append(hutchpp(posterior, prior.n_rows, max(2, n_probes // 2), random))
        else:
            # With weights the directions lead a little less, which costs precision and no bias.
            product, leading = prior.labeled_product(delta, lam, n_probes)
            ratio = np.sqrt(found.middle[:, k] / delta)[:, None]
            parts.append(squared_norm(_between(slope, product, ratio), leading, n_probes, random))
    total = int(prior.reachable.sum()) * found.slope.shape[1]
    error = float(np.sqrt(sum(part.standard_error**2 for part in parts)))
    return TraceEstimate(
        sum(part.value for part in parts) / total, error / total, min(part.degrees_of_freedom for part in parts)
    )


def _between(left: NDArray[Any], product: Product, right: NDArray[Any]) -> Product:
    """Return Z -> left * product(right * Z), the factors being diagonal."""
    return lambda Z: left * product(right * Z)
