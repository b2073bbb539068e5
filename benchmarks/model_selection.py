"""Which scores of a grid search can be believed when most labels are missing, and the pictures of the documentation.

``python -m benchmarks.model_selection`` writes ``docs/results/model_selection.csv`` and ``.md``: digits, 50 labels, the
number of neighbours chosen by 5-fold cross-validation, one row per seed and way of searching; ``budget_choice.csv`` and
``.md``: heart disease with real prices, 100 labels, mu and rounds chosen under a budget; and the pictures
``docs/images/cost_accuracy.png``, ``trees_accuracy.png``, ``propagation.png`` and ``variance.png``. The truth is the
accuracy on the rows whose label nobody was shown. Heart disease is read from the folder GRBB_DATA, see
:mod:`benchmarks.heart`.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from tqdm import tqdm

from benchmarks.heart import load as load_heart
from grbb_ext import (
    CostCurve,
    CostCurveDisplay,
    GRBBClassifier,
    PropagationDisplay,
    SemiSupervisedSplit,
    UnreachableRowsWarning,
    VarianceDisplay,
    cost_curve,
    labeled_scorer,
)

RESULTS, IMAGES = Path("docs/results"), Path("docs/images")
N_LABELED = 50
NEIGHBORS = [3, 9, 30]
BUDGETS = [5.0, 10.0, 20.0, 40.0, None]
BOOSTER = LGBMClassifier(n_estimators=20, num_leaves=8, n_jobs=1, verbosity=-1)


def few_labels(truth: NDArray[Any], n_labeled: int, seed: int) -> NDArray[np.int64]:
    """Return y with the labels of a few rows, -1 elsewhere."""
    y = np.full(truth.size, -1)
    rows = np.random.default_rng(seed).choice(truth.size, n_labeled, replace=False)
    y[rows] = truth[rows]
    return y


def ways() -> dict[str, GridSearchCV]:
    """Return the searches that are compared."""
    grbb, grid = GRBBClassifier(BOOSTER, graph="knn", teacher="graph"), {"graph__n_neighbors": NEIGHBORS}
    split = SemiSupervisedSplit(5, shuffle=True, random_state=0)
    return {
        "LGBMClassifier, cv=5, accuracy": GridSearchCV(BOOSTER, {"num_leaves": [4, 8]}, cv=5, scoring="accuracy"),
        "GRBB, cv=5, accuracy": GridSearchCV(grbb, grid, cv=5, scoring="accuracy"),
        "GRBB, cv=5, labeled_scorer": GridSearchCV(grbb, grid, cv=5, scoring=labeled_scorer("accuracy")),
        "GRBB, SemiSupervisedSplit": GridSearchCV(grbb, grid, cv=split, scoring="accuracy"),
    }


def compare(seeds: int) -> list[dict[str, Any]]:
    X, truth = load_digits(return_X_y=True)
    table = []
    for seed in tqdm(range(seeds), desc="searches", leave=False):
        y = few_labels(truth, N_LABELED, seed)
        hidden = y == -1
        for name, search in ways().items():
            search.fit(X, y)
            table.append(
                {
                    "seed": seed,
                    "search": name,
                    "claimed": round(float(search.best_score_), 4),
                    "truth": round(float(np.mean(search.predict(X[hidden]) == truth[hidden])), 4),
                    "choice": next(iter(search.best_params_.values())),
                    "scores": " ".join(f"{score:.4f}" for score in search.cv_results_["mean_test_score"]),
                }
            )
    return table


def report(table: list[dict[str, Any]]) -> str:
    """Write the table of the documentation."""
    lines = ["| search | score claimed | accuracy on hidden labels | mean error of the claim |", "|---|---|---|---|"]
    for name in dict.fromkeys(row["search"] for row in table):
        claimed, truth = (
            np.array([row[key] for row in table if row["search"] == name]) for key in ("claimed", "truth")
        )
        lines.append(f"| {name} | {claimed.mean():.3f} | {truth.mean():.3f} | {np.abs(claimed - truth).mean():.3f} |")
    return "\n".join(lines) + "\n"


def heart_curve(seed: int) -> tuple[CostCurve, pd.DataFrame, NDArray[np.int64]]:
    """Cross-validate models of heart disease, whose tests have real prices, with 100 labelled patients."""
    patients = load_heart()
    X, y = pd.DataFrame(patients.X, columns=patients.names), few_labels(patients.ill, 100, seed)
    booster = LGBMClassifier(n_estimators=50, num_leaves=4, learning_rate=0.2, n_jobs=1, verbosity=-1)
    model = GRBBClassifier(booster, graph="knn", teacher="graph", feature_costs=patients.costs)
    return cost_curve(model, X, y, random_state=seed), X, y


def budgets(seeds: int) -> list[dict[str, Any]]:
    """Choose under several budgets and look at the patients whose label was hidden."""
    truth, table = load_heart().ill, []
    for seed in tqdm(range(seeds), desc="budgets", leave=False):
        curve, X, y = heart_curve(seed)
        for budget in BUDGETS:
            best, fitted = curve.best_under(budget), curve.fit_best(X, y, budget)
            table.append(
                {
                    "seed": seed,
                    "budget": budget,
                    "mu": best.mu,
                    "rounds": best.n_rounds,
                    "claimed": round(best.score, 4),
                    "truth": round(float(fitted.score(X[y == -1], truth[y == -1])), 4),
                    "spent": fitted.feature_cost_,
                }
            )
    return table


def budget_report(table: list[dict[str, Any]]) -> str:
    """Write the table of the documentation."""
    lines = ["| budget (dollars) | accuracy claimed | accuracy on hidden labels | spent |", "|---|---|---|---|"]
    for budget in BUDGETS:
        claimed, truth, spent = (
            np.mean([row[key] for row in table if row["budget"] == budget]) for key in ("claimed", "truth", "spent")
        )
        limit = "none" if budget is None else f"{budget:g}"
        lines.append(f"| {limit} | {claimed:.3f} | {truth:.3f} | {spent:.2f} |")
    return "\n".join(lines) + "\n"


def draw() -> None:
    """Draw the pictures of the documentation."""
    curve, _, _ = heart_curve(0)
    display = CostCurveDisplay.from_curve(curve, cost_unit="dollars")
    display.ax_.set_xscale("symlog", linthresh=1)  # tests cost from 1 to 103 dollars
    display.figure_.savefig(IMAGES / "cost_accuracy.png", dpi=110)
    CostCurveDisplay.from_curve(curve, x="rounds").figure_.savefig(IMAGES / "trees_accuracy.png", dpi=110)
    X, truth = load_digits(return_X_y=True)
    model = GRBBClassifier(BOOSTER, graph="knn", teacher="graph").fit(X, few_labels(truth, N_LABELED, 0))
    PropagationDisplay.from_estimator(model, X).figure_.savefig(IMAGES / "propagation.png", dpi=110)
    VarianceDisplay.from_estimator(model).figure_.savefig(IMAGES / "variance.png", dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--pictures", action="store_true", help="draw the pictures only")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", UnreachableRowsWarning)
    warnings.filterwarnings("ignore", message="The least populated class")
    draw()
    if arguments.pictures:
        return
    for name, table, text in (
        ("model_selection", found := compare(arguments.seeds), report(found)),
        ("budget_choice", chosen := budgets(arguments.seeds), budget_report(chosen)),
    ):
        print(text)
        with (RESULTS / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(table[0]))
            writer.writeheader()
            writer.writerows(table)
        (RESULTS / f"{name}.md").write_text(text)


if __name__ == "__main__":
    main()
