"""Is the variance of section 5 a bound? Sampling variance of the penalised MLE and of boosters against both formulas.

Rows, graph and labelled positions of a cell are fixed, and labels are drawn again and again from a known smooth
probability. A trial is a pair of draws: half the mean squared difference of the two predictions is an unbiased
estimate of the mean sampling variance, and the formulas are evaluated at the first draw.

``python -m benchmarks variance`` appends to ``docs/results/variance_simulation.csv``, one row per trial;
finished trials are not run again. The table is printed and written to ``docs/results/variance_simulation.md``. Figure 5
follows, unless the run is quick.
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import lightgbm as lgb
import numpy as np
import xgboost as xgb
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.datasets import make_moons

from benchmarks import variance_figure5
from benchmarks.options import Options
from benchmarks.results import ResultTable
from benchmarks.runner import Row, run_tasks
from grbb_ext import grbb_objective, knn_graph, prediction_variance
from grbb_ext.graph import laplacian
from grbb_ext.propagation import Smooth, SmoothPropagation

N_ROWS, N_TREES = 300, 50
OPERATORS: dict[str, dict[str, Any]] = {"harmonic": {"preset": "paper"}, "smooth": {}}
CELLS = list(itertools.product(OPERATORS, (20, 80), (0.1, 1.0)))
NUMBERS = ["mle", "lightgbm", "xgboost", "sandwich", "fisher", "fisher_paper", "sandwich_lightgbm", "fisher_lightgbm"]
FIELDS = ["operator", "n_labels", "lam", "pair", *NUMBERS]

Array = NDArray[np.float64]


class Cell:
    """Rows, graph, labelled positions and true probabilities."""

    def __init__(self, operator: str, n_labels: int, lam: float) -> None:
        random = np.random.default_rng(7)
        self.X, half = make_moons(N_ROWS, noise=0.15, random_state=7)
        self.graph = knn_graph(self.X, weights="binary" if operator == "harmonic" else "self-tuning")
        self.truth = expit(3.0 * half - 1.5 + np.sin(3 * self.X[:, 0]))
        self.labeled = np.sort(random.choice(N_ROWS, n_labels, replace=False))
        self.operator, self.n_labels, self.lam = operator, n_labels, lam
        if operator == "smooth":
            kernel = Smooth().on(self.graph, self.labeled)
            assert isinstance(kernel, SmoothPropagation)
            self.Q = np.linalg.inv(np.asarray(kernel.kernel_product(np.eye(N_ROWS)), dtype=np.float64))
        else:
            self.Q = laplacian(self.graph).toarray()

    def draw(self, random: np.random.Generator) -> NDArray[np.int64]:
        """Return labels drawn from the true probabilities, at least one of each class."""
        while True:
            y = np.full(N_ROWS, -1)
            y[self.labeled] = random.random(self.n_labels) < self.truth[self.labeled]
            if np.unique(y[self.labeled]).size == 2:
                return y

    def penalised_mle(self, y: NDArray[np.int64]) -> Array:
        """Minimise the logistic loss plus lam / 2 H'QH by Newton's method."""
        H = np.zeros(N_ROWS)
        for _ in range(100):
            p = expit(H)
            gradient, information = self.lam * self.Q @ H, self.lam * self.Q.copy()
            gradient[self.labeled] += p[self.labeled] - y[self.labeled]
            information[self.labeled, self.labeled] += (p * (1 - p))[self.labeled]
            step = np.linalg.solve(information, gradient)
            step *= min(1.0, 4.0 / np.abs(step).max())  # far from the optimum the logistic loss is no parabola
            H -= step
            if np.abs(step).max() < 1e-8:
                return H
        raise RuntimeError("Newton's method did not converge.")

    def boosters(self, obj: Any) -> tuple[Array, Array]:
        """Return the raw scores of LightGBM and XGBoost."""
        light = lgb.train(
            {"objective": obj, "num_leaves": 15, "learning_rate": 0.1, "verbosity": -1, "num_threads": 1},
            lgb.Dataset(self.X),
            N_TREES,
        )
        data = xgb.DMatrix(self.X)
        other = xgb.train({"base_score": 0, "max_depth": 4, "eta": 0.1, "nthread": 1}, data, N_TREES, obj=obj)
        return np.asarray(light.predict(self.X, raw_score=True)), other.predict(data, output_margin=True)

    def trial(self, pair: int) -> dict[str, float]:
        """Draw two sets of labels and return sampled variances and formulas."""
        random = np.random.default_rng([11, self.n_labels, pair])
        scores = []
        for _ in range(2):
            y = self.draw(random)
            # The default rule is not penalised by H'LH: its targets carry the graph.
            lam = self.lam if self.operator == "harmonic" else 0.0
            obj = grbb_objective(None, y, graph=self.graph, lam=lam, **OPERATORS[self.operator])
            scores.append((self.penalised_mle(y), *self.boosters(obj)))
        sampled = [0.5 * float(np.mean((expit(a) - expit(b)) ** 2)) for a, b in zip(*scores, strict=True)]
        at_mle, at_booster = scores[1][:2]  # obj is that of the second draw

        def formula(H: Array, kind: Any, curvature: Any = "logistic") -> float:
            return prediction_variance(obj, H, lam=self.lam, kind=kind, curvature=curvature).mean

        values = [formula(at_mle, "sandwich"), formula(at_mle, "fisher"), formula(at_mle, "fisher", "paper")]
        values += [formula(at_booster, "sandwich"), formula(at_booster, "fisher")]
        return dict(zip(NUMBERS, sampled + values, strict=True))


def write_table(rows: list[dict[str, str]]) -> str:
    """Return the table of all cells."""
    lines = [
        "Mean sampling variance of the predicted probabilities (x 1000, +- one standard error), and the formulas as ",
        "multiples of it: at the penalised MLE compared with it, at LightGBM's scores compared with those.",
        "",
        "| operator, labels, lam | draws | MLE | sandwich / MLE | Fisher / MLE | with the paper's curvature | LightGBM "
        "| XGBoost | sandwich / LightGBM | Fisher / LightGBM |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for operator, n_labels, lam in CELLS:
        chosen = [r for r in rows if (r["operator"], int(r["n_labels"]), float(r["lam"])) == (operator, n_labels, lam)]
        if len(chosen) < 2:
            continue
        values = {name: np.array([float(r[name]) for r in chosen]) for name in NUMBERS}
        mean = {name: float(v.mean()) for name, v in values.items()}
        error = {name: float(v.std(ddof=1) / np.sqrt(v.size)) for name, v in values.items()}

        def sampled(name: str, mean: dict[str, float] = mean, error: dict[str, float] = error) -> str:
            return f"{1e3 * mean[name]:.1f} +- {1e3 * error[name]:.1f}"

        cells = [
            f"{operator}, {n_labels}, {lam:g}",
            f"{2 * len(chosen)}",
            sampled("mle"),
            f"{mean['sandwich'] / mean['mle']:.2f}",
            f"{mean['fisher'] / mean['mle']:.2f}",
            f"{mean['fisher_paper'] / mean['mle']:.2f}",
            sampled("lightgbm"),
            sampled("xgboost"),
            f"{mean['sandwich_lightgbm'] / mean['lightgbm']:.2f}",
            f"{mean['fisher_lightgbm'] / mean['lightgbm']:.2f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


@cache
def cell(operator: str, n_labels: int, lam: float) -> Cell:
    return Cell(operator, n_labels, lam)


def work(task: tuple[str, int, float, int]) -> list[Row]:
    return [dict(zip(FIELDS, task, strict=False)) | cell(*task[:3]).trial(task[3])]


def run(options: Options) -> int:
    """Run the pairs of draws that are missing, write the table, and go on to Figure 5 unless the run is quick."""
    table = ResultTable(options.folder / "variance_simulation.csv", FIELDS, FIELDS[:4])
    pairs = range(options.seeds or (2 if options.quick else 150))
    tasks = [(*key, pair) for pair in pairs for key in CELLS]
    tasks = [task for task in tasks if not table.has(dict(zip(FIELDS, task, strict=False)))]
    failures = 0 if options.report else run_tasks(table, tasks, work, "variance", options.jobs)
    text = write_table(table.read())
    table.path.with_suffix(".md").write_text(text)
    print(text)
    return failures if options.quick else failures + variance_figure5.run(options)
