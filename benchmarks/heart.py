"""Heart disease with real prices: 20 labelled patients, 40 dollars, and the bill of every new patient.

``python -m benchmarks.heart`` reads heart_disease.npz and heart_disease_costs.csv (Turney, 1995) from the folder
GRBB_DATA (default ``../shared/data``) and writes heart.csv (one row per trial), heart.md and heart.png into
``docs/results/``.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import lightgbm as lgb
import numpy as np
from numpy.typing import NDArray

from benchmarks.data import DATA
from benchmarks.results import RESULTS, ResultTable
from benchmarks.runner import Row, run_tasks
from grbb_ext import FeatureCosts, Forest, GraphWarning, OnDemandPredictor, grbb_objective
from grbb_ext.adapters.lightgbm import train

BUDGET, N_LABELED, N_TREES = 40.0, 20, 50
PARAMETERS = {"num_leaves": 8, "learning_rate": 0.1, "min_data_in_leaf": 5, "num_threads": 1, "verbosity": -1}


class Patients(NamedTuple):
    """Rows with their names, and whether a patient is ill."""

    X: NDArray[np.float32]
    ill: NDArray[np.int64]
    names: list[str]
    costs: FeatureCosts


@cache
def load() -> Patients:
    with np.load(DATA / "heart_disease.npz") as file:
        X, ill, names = file["X"], (file["y"] > 0).astype(np.int64), [str(name) for name in file["feature_names"]]
    return Patients(X, ill, names, FeatureCosts.from_csv(DATA / "heart_disease_costs.csv"))


def split(patients: Patients, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int64]]:
    """Return training rows, test rows, and y of the training rows with 20 labels of both classes."""
    random = np.random.default_rng(seed)
    order = random.permutation(patients.ill.size)
    rows, test = order[:600], order[600:]
    y = np.full(rows.size, -1)
    while np.unique(y).size < 3:
        y[:] = -1
        labeled = random.choice(rows.size, N_LABELED, replace=False)
        y[labeled] = patients.ill[rows][labeled]
    return rows, test, y


def fit(patients: Patients, rows: NDArray[np.intp], y: NDArray[np.int64], rule: Any, **limits: Any) -> Any:
    with warnings.catch_warnings():
        # Missing values are replaced by medians in the graph, and only there.
        warnings.simplefilter("ignore", GraphWarning)
        # The graph is a thing of training: it may use tests that no new patient will be asked to pay for.
        teacher = "graph" if rule == "targets" else None
        obj = grbb_objective(patients.X[rows], y, graph="knn", rule=rule, teacher=teacher, verbose=False)
    data = lgb.Dataset(patients.X[rows], feature_name=patients.names)
    return train(PARAMETERS | {"objective": obj}, data, N_TREES, costs=patients.costs, **limits)


METHODS: dict[str, dict[str, Any]] = {
    "20 labels alone, no limit": {"rule": "labeled"},
    "20 labels alone, 40 dollars": {"rule": "labeled", "budget": BUDGET},
    "GRBB, no limit": {"rule": "targets"},
    "GRBB, 40 dollars": {"rule": "targets", "budget": BUDGET},
    "GRBB, 40 dollars, mu = 1": {"rule": "targets", "budget": BUDGET, "mu": 1.0},
}


SHOWN = "GRBB, 40 dollars, mu = 1"
COLUMNS = ["method", "seed", "accuracy", "model_cost", "mean_bill", "mean_bill_early_exit", "features", "lightgbm"]


def on_demand(patients: Patients, booster: Any, test: NDArray[np.intp], **options: Any) -> Any:
    """Predict patients who are asked for a test only when a split needs it."""
    forest = Forest.from_booster(booster)
    needs = {name: patients.costs.sources_of(name) for name in patients.names}

    def source(of: Any) -> Any:
        columns = {name: j for j, name in enumerate(patients.names) if of in needs[name]}
        return lambda row_ids: {name: patients.X[row_ids, j].astype(np.float64) for name, j in columns.items()}

    fetch = {name: source(name) for name in patients.costs.sources}
    return OnDemandPredictor(forest, patients.costs, fetch, verbose=False, **options).predict(test)


def trial(seed: int) -> list[Row]:
    patients = load()
    rows, test, y = split(patients, seed)
    table: list[Row] = []
    for method, settings in METHODS.items():
        booster = fit(patients, rows, y, **settings)
        result = on_demand(patients, booster, test)
        early = on_demand(patients, booster, test, early_exit="decision")
        assert np.array_equal(result.raw_scores, booster.predict(patients.X[test], raw_score=True))
        table.append(
            {
                "method": method,
                "seed": seed,
                "accuracy": float(np.mean((result.raw_scores > 0) == patients.ill[test])),
                "model_cost": round(booster.ledger_.spent, 2),
                "mean_bill": round(float(result.spent.mean()), 2),
                "mean_bill_early_exit": round(float(early.spent.mean()), 2),
                "features": " ".join(str(name) for name in booster.ledger_.features),
                "lightgbm": lgb.__version__,
            }
        )
    return table


def report(table: list[dict[str, str]]) -> str:
    lines = [
        "| | accuracy | model costs | bill per patient, on demand | with exact early exit |",
        "|---|---|---|---|---|",
    ]
    for method in METHODS:
        of = [row for row in table if row["method"] == method]
        accuracy = np.array([float(row["accuracy"]) for row in of])
        mean = {
            key: np.mean([float(row[key]) for row in of]) for key in ("model_cost", "mean_bill", "mean_bill_early_exit")
        }
        lines.append(
            f"| {method} | {accuracy.mean():.3f} ± {accuracy.std(ddof=1) / np.sqrt(accuracy.size):.3f} | "
            f"${mean['model_cost']:.2f} | ${mean['mean_bill']:.2f} | ${mean['mean_bill_early_exit']:.2f} |"
        )
    bought = Counter(name for row in table if row["method"] == SHOWN for name in row["features"].split())
    n_seeds = len({row["seed"] for row in table})
    lines += [
        "",
        f"Bought by *{SHOWN}*: " + ", ".join(f"{n} ({k} of {n_seeds} runs)" for n, k in bought.most_common()) + ".",
    ]
    return "\n".join(lines) + "\n"


def draw(patients: Patients, path: Path, seed: int = 0) -> None:
    """Draw who pays what in one run: the bills of the test patients, and how often each source is asked."""
    import matplotlib.pyplot as plt

    rows, test, y = split(patients, seed)
    booster = fit(patients, rows, y, **METHODS[SHOWN])
    result = on_demand(patients, booster, test)
    early = on_demand(patients, booster, test, early_exit="decision")
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    bins = np.arange(0, booster.ledger_.spent + 2, 0.5)
    left.hist(result.spent, bins=bins, alpha=0.7, label=f"whole forest, mean ${result.spent.mean():.2f}")
    left.hist(early.spent, bins=bins, alpha=0.7, label=f"exact early exit, mean ${early.spent.mean():.2f}")
    left.axvline(booster.ledger_.spent, color="black", linestyle="--", label=f"paid set ${booster.ledger_.spent:.2f}")
    left.set(xlabel="dollars per patient", ylabel="patients", title="What new patients pay")
    left.legend(fontsize=8)
    used = [s for s, source in enumerate(result.sources) if source in booster.ledger_.sources]
    share, share_early = result.fetched[:, used].mean(axis=0), early.fetched[:, used].mean(axis=0)
    order = np.argsort(share_early)
    prices = patients.costs.prices
    names = [f"{result.sources[used[i]]} (${prices[used[i]]:.2f})" for i in order]
    right.barh(names, 100 * share[order], alpha=0.7)
    right.barh(names, 100 * share_early[order], alpha=0.7, height=0.5)
    right.set(xlabel="% of patients asked", title="Sources, by how many patients need them", xlim=(0, 100))
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    n_seeds = parser.parse_args().seeds
    table = ResultTable(RESULTS / "heart.csv", COLUMNS, ["seed"], ["method"])
    run_tasks(table, [s for s in range(n_seeds) if not table.has({"seed": s}, len(METHODS))], trial, "heart")
    text = report(table.read())
    (RESULTS / "heart.md").write_text(text)
    draw(load(), RESULTS / "heart.png")
    print(text)


if __name__ == "__main__":
    main()
