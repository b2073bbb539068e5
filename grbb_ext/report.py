"""One self-contained HTML page about a fitted model, for people who did not train it."""

from __future__ import annotations

import io
import warnings
from collections import Counter
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import r2_score, roc_auc_score

from grbb_ext._options import positive_int, positive_number
from grbb_ext._show import check_matplotlib, html_table
from grbb_ext.losses import class_probabilities
from grbb_ext.model_selection import CostCurve, HeldOut, held_out_predict
from grbb_ext.persistence import versions_of
from grbb_ext.plotting import CostCurveDisplay, EvidenceDisplay
from grbb_ext.table import GraphWarning

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>
body {{ font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 52rem; margin: 0 auto; padding: 1rem; }}
h1 {{ margin-bottom: 0; }} h2 {{ margin-top: 2rem; border-bottom: 1px solid #ddd; }} .lead {{ color: #555; }}
.wide {{ overflow-x: auto; margin: 1rem 0; }}
table {{ border-collapse: collapse; font-size: 0.95em; }}
caption {{ caption-side: bottom; text-align: left; color: #555; padding-top: 0.4rem; }}
th, td {{ padding: 0.25rem 1.6rem 0.25rem 0; border-bottom: 1px solid #eee; text-align: left; vertical-align: top; }}
svg {{ max-width: 100%; height: auto; }}
</style></head><body><h1>{title}</h1><p class="lead">{lead}</p>{sections}</body></html>
"""
# Fewer held-out labels than this in a bin say nothing about its share.
_LABELS_PER_BIN = 8
_NORMAL = 1.96
_LIBRARIES = {"lightgbm": "LightGBM", "xgboost": "XGBoost"}


def write_report(
    model: Any,
    path: Any,
    X: Any = None,
    *,
    title: str = "Model report",
    cv: Any = 5,
    groups: Any = None,
    curve: CostCurve | None = None,
    n_suggestions: int = 10,
    label_price: float | None = None,
) -> Path:
    """Write a page about a fitted model; see ``report`` of the estimators, which calls it.

    Parameters
    ----------
    model : GRBBClassifier or GRBBRegressor
        Fitted.
    path : str or path
        The file to write.
    X, title, cv, groups, curve, n_suggestions, label_price
        As for ``model.report``.

    Returns
    -------
    pathlib.Path
        The file.
    """
    display = None if curve is None else CostCurveDisplay(curve)
    positive_int(n_suggestions, "n_suggestions", least=0)
    if label_price is not None:
        positive_number(label_price, "label_price")
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder: name a file, such as {str(target / 'report.html')!r}.")
    check_matplotlib()
    obj = model.objective_
    held = None
    if X is not None:
        # As the model read them: columns list all of their categories, of which a fold may miss some.
        rows = model._rows_of_fit(X).native()
        weight = obj.sample_weight_
        held = _once(held_out_predict(model, rows, obj.y_, cv=cv, groups=groups, sample_weight=weight))
    library = _LIBRARIES.get(model.library_, model.library_)
    lead = f"Trained with {library} on {obj.n_rows_:,} rows, of which {obj.labeled_.size:,} have a label."
    if held is not None and held.classes is not None:
        right = held.classes[held.prediction.argmax(axis=1)] == held.y
        low, high = wilson(right.sum(), right.size)
        lead += f" Expected accuracy: {right.mean():.2f}, with 95 % confidence between {low:.2f} and {high:.2f}."
    sections = [
        ("Rows and labels", _labels(model)),
        ("Expected quality", _quality(held)),
        ("Calibration", _calibration(held)),
        ("Evidence", _evidence(obj)),
        ("What it costs", _bill(model, X, display)),
        ("What to label next", _next_labels(model, X, n_suggestions, label_price)),
        ("Versions", _table((), versions_of(model.library_, model._adapter.version).items())),
    ]
    body = "".join(f"<h2>{name}</h2>{text}" for name, text in sections if text)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(_PAGE.format(title=escape(title), lead=escape(lead), sections=body), encoding="utf-8")
    return target


def _once(held: HeldOut) -> HeldOut:
    """Return one prediction for each label, the mean over repeated folds: a label that is repeated is no new one."""
    rows, first, times = np.unique(held.rows, return_index=True, return_counts=True)
    mean = (np.add.reduceat(held.prediction, first).T / times).T
    return held._replace(rows=rows, y=held.y[first], prediction=mean)


def wilson(n_right: float, n: float) -> tuple[float, float]:
    """Return the 95 % interval of a share by Wilson.

    Examples
    --------
    >>> tuple(round(end, 3) for end in wilson(9, 10))
    (0.596, 0.982)
    """
    share, z = n_right / n, _NORMAL**2 / n
    middle, half = share + z / 2, _NORMAL * np.sqrt(share * (1 - share) / n + z / (4 * n))
    return float((middle - half) / (1 + z)), float((middle + half) / (1 + z))


def _table(*arguments: Any) -> str:
    return f'<div class="wide">{html_table(*arguments)}</div>'


def _picture(figure: Any, title: str) -> str:
    """Return a figure as inline SVG that shrinks with the page."""
    import matplotlib

    file = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": title}):
        figure.savefig(file, format="svg", metadata={"Date": None}, transparent=True)
    svg = file.getvalue()
    return f'<div role="img" aria-label="{escape(title)}">{svg[svg.index("<svg") :]}</div>'


def _axes(width: float, height: float) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained").subplots()


def _labels(model: Any) -> str:
    obj = model.objective_
    lines = [("rows", f"{obj.n_rows_:,}"), ("labelled", f"{obj.labeled_.size:,}"), ("columns", model.n_features_in_)]
    if obj.unreachable_.size:
        lines.append(("rows that no label reaches", f"{obj.unreachable_.size:,}"))
    lines += [("boosting rounds", model.n_iter_), ("end of training", model.stop_reason_)]
    if obj.classes_ is None:
        values = obj.labeled_targets_
        lines.append(("labels", f"mean {values.mean():.4g}, from {values.min():.4g} to {values.max():.4g}"))
        return _table((), lines)
    counts = Counter(obj.y_[obj.labeled_].tolist())
    predicted = np.asarray(model.transduction_)
    shares = [(str(c), counts[c], f"{100 * np.mean(predicted == c):.1f} %") for c in obj.classes_.tolist()]
    return _table((), lines) + _table(("class", "labels", "predicted share of all rows"), shares)


def _quality(held: HeldOut | None) -> str:
    if held is None:
        return "<p>Not measured: pass the rows, <code>model.report(path, X)</code>, to test on held-out labels.</p>"
    n = held.rows.size
    if held.classes is None:
        error = np.abs(held.prediction - held.y)
        lines = [
            ("mean absolute error", *_mean(error, ".3g")),
            ("root mean squared error", f"{np.sqrt(np.mean(error**2)):.3g}", "-"),
            ("R²", f"{r2_score(held.y, held.prediction):.2f}" if n > 1 else "-", "-"),
        ]
    else:
        code = np.searchsorted(held.classes, held.y)
        right = held.prediction.argmax(axis=1) == code
        low, high = wilson(right.sum(), n)
        likelihood = np.clip(held.prediction[np.arange(n), code], 1e-15, None)
        lines = [
            ("accuracy", f"{right.mean():.2f}", f"{low:.2f} to {high:.2f}"),
            ("log-loss", *_mean(-np.log(likelihood), ".2f")),
            ("accuracy if the commonest class is always predicted", f"{np.bincount(code).max() / n:.2f}", "-"),
        ]
        if held.classes.size == 2 and np.unique(code).size == 2:
            lines.insert(1, ("area under the ROC curve", f"{roc_auc_score(code, held.prediction[:, 1]):.2f}", "-"))
    below = (
        f"Each of {n} labels was predicted by a model that had not seen it. The interval is for new rows that are "
        "drawn as the labelled ones were."
    )
    return _table(("measure", "value", "95 % interval"), lines, below)


def _mean(values: NDArray[np.float64], digits: str) -> tuple[str, str]:
    mean = values.mean()
    if values.size < 2:
        return f"{mean:{digits}}", "-"
    half = _NORMAL * values.std(ddof=1) / np.sqrt(values.size)
    return f"{mean:{digits}}", f"{mean - half:{digits}} to {mean + half:{digits}}"


def _calibration(held: HeldOut | None) -> str:
    """Draw the share of right answers against the predicted probability."""
    if held is None or held.classes is None:
        return ""
    n, code = held.rows.size, np.searchsorted(held.classes, held.y)
    if held.classes.size == 2:
        name = str(held.classes[1]).replace("$", r"\$")  # two of them would enclose a formula
        probability, happened, what = held.prediction[:, 1], code == 1, f"class {name}"
    else:
        probability, what = held.prediction.max(axis=1), "the predicted class"
        happened = held.prediction.argmax(axis=1) == code
    n_bins = min(10, n // _LABELS_PER_BIN)
    if n_bins < 2:
        return f"<p>{n} held-out labels are too few for this picture: {2 * _LABELS_PER_BIN} are needed.</p>"
    ax = _axes(5, 4)
    ax.plot([0, 1], [0, 1], color="0.7", lw=1, label="perfect")
    bins = np.array_split(np.argsort(probability, kind="stable"), n_bins)
    at, share = [probability[rows].mean() for rows in bins], np.array([happened[rows].mean() for rows in bins])
    ends = np.array([wilson(happened[rows].sum(), rows.size) for rows in bins])
    error = np.abs(ends.T - share)
    ax.errorbar(at, share, error, fmt="o", capsize=3, label="held-out labels, 95 % interval")
    ax.set(xlabel=f"predicted probability of {what}", ylabel="observed share", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, frameon=False)
    below = f"<p>{n_bins} groups of about {n // n_bins} held-out labels each. Points near the line are calibrated.</p>"
    return _picture(ax.figure, "Calibration on held-out labels") + below


def _evidence(obj: Any) -> str:
    evidence = obj.evidence_
    if evidence is None:
        return ""
    display = EvidenceDisplay(evidence).plot(ax=_axes(6, 0.6 * len(evidence.experts) + 1.2))
    text = "The probabilities of these models are averaged. The weights come from labels that were held out."
    return f"<p>{text}</p>" + _picture(display.figure_, "Weights of the experts")


def _bill(model: Any, X: Any, display: CostCurveDisplay | None) -> str:
    text = ""
    if model.ledger_ is not None:
        text = f'<div class="wide">{model.ledger_._repr_html_()}</div>'
        if X is not None:
            cost = model.ledger_.costs.per_row(model.forest_, X)
            text += (
                f"<p>If sources are bought for a row only when a split needs them, a row costs {cost.mean():.4g} on "
                f"average and {cost.max():.4g} at most.</p>"
            )
    if display is not None:
        ax = display.plot(_axes(6.4, 4.2)).ax_
        if model.feature_cost_ is not None:
            ax.axvline(model.feature_cost_, color="C3", ls=":", lw=1.5, label=f"this model: {model.feature_cost_:g}")
            ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), frameon=False)
        text += _picture(ax.figure, "Score against the cost of the features")
    return text


def _next_labels(model: Any, X: Any, k: int, price: float | None) -> str:
    obj = model.objective_
    k = min(k, obj.n_rows_ - obj.labeled_.size - obj.unreachable_.size)
    if k < 1 or obj.propagation_ is None:
        return ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphWarning)  # missing values are as they were in fit
        try:
            rows = model.suggest_labels(k, X=X).rows
        except ValueError as error:  # the graph may reach fewer rows than there are
            return f"<p>No suggestion: {escape(str(error))}</p>"
        plan = None if price is None or k < 2 else model.plan_labels(k, price, X=X)
    now = [str(value) for value in np.asarray(model.transduction_)[rows].tolist()]
    if obj.classes_ is not None:
        sure = class_probabilities(model.raw_scores_[rows]).max(axis=1)
        now = [f"{name}, probability {share:.2f}" for name, share in zip(now, sure, strict=True)]
    lines = [(i + 1, row, text) for i, (row, text) in enumerate(zip(rows.tolist(), now, strict=True))]
    text = _table(("order", "row", "prediction so far"), lines, "Each represents a group of rows without a label.")
    if plan is not None:
        text += f'<div class="wide">{plan._repr_html_()}</div>'
    return f"<p>Rows are counted from 0, in the order of the table that the model was trained on.</p>{text}"
