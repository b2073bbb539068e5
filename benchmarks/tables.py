"""The questions `tables` and `few_shot`: ordinary tables, and what a practitioner would try first on the same labels.

`tables`: 32 tables with categories and missing values and the 16 sets of `rivals`, 10, 20, 50 and 200 random labels.
`few_shot`: the published protocol of ``tables/published_few_shot.csv``, 1 and 5 labels of each class, on 24 tables.
Variants are chosen on the tables at even places of the alphabet, and confirmed on the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from benchmarks import data as sets
from benchmarks import unseen
from benchmarks.options import Options
from benchmarks.results import ResultTable, package_versions
from benchmarks.runner import Row, run_tasks
from benchmarks.study import INSIDE, OUTSIDE
from benchmarks.tables_report import report
from grbb_ext import GRBBClassifier
from grbb_ext.estimators import Task

COLUMNS = (
    *("data", "method", "seed", "labels", "n_labels"),
    *("accuracy", "auc", "average_precision", "log_loss", "brier", "calibration_error"),
    *("seconds", "grbb_ext", "xgboost", "lightgbm", "numpy", "scikit-learn"),
)
TRIAL = ("data", "method", "seed", "labels", "n_labels")
MAX_TRAIN, MAX_TEST = 1_400, 2_000
LABELS = (20, 10, 50, 200)
SHOTS = (5, 1)
N_SEEDS, QUICK_SEEDS = 10, 2
QUICK = ("wine", "breast_cancer")
# A probability below this is not told apart by 2,000 test rows.
_FLOOR = 1e-4
_BINS = 10

Floats = NDArray[np.float64]


class Problem(NamedTuple):
    """A frame of training rows, their classes 0, 1, ... (-1 where unlabelled), and test rows."""

    X: pd.DataFrame
    y: NDArray[np.int64]
    X_test: pd.DataFrame
    truth: NDArray[np.int64]
    seed: int

    @property
    def labeled(self) -> tuple[pd.DataFrame, NDArray[np.int64]]:
        """The labelled rows."""
        return self.X[self.y >= 0], self.y[self.y >= 0]


def boosters(seed: int) -> dict[str, Callable[[], Any]]:
    """Return both boosters as is customary for small data: shallow trees, half of the columns, small steps."""
    from lightgbm import LGBMClassifier
    from xgboost import XGBClassifier

    common: dict[str, Any] = {"n_estimators": 100, "learning_rate": 0.1, "random_state": seed, "n_jobs": 1}
    return {
        "XGBoost": lambda: XGBClassifier(
            **common, max_depth=4, colsample_bytree=0.5, min_child_weight=0, enable_categorical=True
        ),
        "LightGBM": lambda: LGBMClassifier(
            **common, num_leaves=15, colsample_bytree=0.5, min_child_samples=1, verbosity=-1
        ),
    }


def numbers(model: Any) -> Any:
    """Put a model behind imputation, scaling and one-hot columns."""
    filled = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    named = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    columns = make_column_transformer(
        (filled, make_column_selector(dtype_include="number")),
        (named, make_column_selector(dtype_exclude="number")),
        sparse_threshold=0.0,
    )
    return make_pipeline(columns, model)


def supervised(model: Callable[[int], Any]) -> Callable[[Problem], Floats]:
    """Fit a model to the labelled rows."""

    def method(problem: Problem) -> Floats:
        fitted = model(problem.seed).fit(*problem.labeled)
        return np.asarray(fitted.predict_proba(problem.X_test))

    return method


def grbb(library: str) -> Callable[[Problem], Floats]:
    """Fit this package around a booster."""

    def method(problem: Problem) -> Floats:
        model = GRBBClassifier(student(library, problem.seed), random_state=0, n_jobs=1, verbose=False)
        return np.asarray(model.fit(problem.X, problem.y).predict_proba(problem.X_test))

    return method


def student(library: str, seed: int, *, task: Task = "classification", costs: bool = False) -> Any:
    """Return the booster that learns from the teacher: that of an estimator which wraps none, with one thread."""
    from grbb_ext.adapters import lightgbm, xgboost

    adapter = xgboost.ADAPTER if library == "XGBoost" else lightgbm.ADAPTER
    of_library = {"enable_categorical": True} if library == "XGBoost" else {"verbosity": -1}
    return adapter.clone(None, task, costs=costs).set_params(n_jobs=1, random_state=seed, **of_library)


def teacher(problem: Problem) -> Floats:
    """Ask the teacher itself, without a booster."""
    from grbb_ext import grbb_objective

    fitted = grbb_objective(problem.X, problem.y, n_jobs=1, verbose=False).teacher_
    assert fitted is not None
    q = fitted.predict(problem.X_test, n_jobs=1)
    return np.column_stack([1.0 - q, q]) if q.ndim == 1 else q


def self_training(problem: Problem) -> Floats:
    """Let XGBoost label the rows it is sure of, again and again."""
    model = SelfTrainingClassifier(boosters(problem.seed)["XGBoost"](), threshold=0.9, max_iter=5)
    columns = numbers("passthrough").fit(problem.X)
    fitted = model.fit(columns.transform(problem.X), problem.y)
    return np.asarray(fitted.predict_proba(columns.transform(problem.X_test)))


def spread_then_booster(problem: Problem) -> Floats:
    """Spread labels over neighbours, and fit XGBoost to what comes of it."""
    columns = numbers("passthrough").fit(problem.X)
    spread = LabelSpreading(kernel="knn", n_neighbors=9, alpha=0.9).fit(columns.transform(problem.X), problem.y)
    return learned(boosters(problem.seed)["XGBoost"](), problem, spread.transduction_)


def pseudo_labels(problem: Problem) -> Floats:
    """Fit XGBoost, take its predictions for labels of all rows, and fit it again."""
    make = boosters(problem.seed)["XGBoost"]
    guessed = np.where(problem.y >= 0, problem.y, make().fit(*problem.labeled).predict(problem.X))
    return learned(make(), problem, guessed)


def learned(model: Any, problem: Problem, y: NDArray[np.int64]) -> Floats:
    """Fit a model to labels of all rows; a class that nobody has any more has no probability."""
    classes, codes = np.unique(y, return_inverse=True)
    p = np.zeros((problem.truth.size, problem.y.max() + 1))
    # Of a single class XGBoost makes two.
    p[:, classes] = 1.0 if classes.size == 1 else model.fit(problem.X, codes).predict_proba(problem.X_test)
    return p


def catboost(problem: Problem) -> Floats:
    """Fit CatBoost, as it comes, to the labelled rows."""
    from catboost import CatBoostClassifier

    X, y = problem.labeled
    X, X_test, named = catboost_frames(X, problem.X_test)
    model = CatBoostClassifier(
        iterations=200, random_seed=problem.seed, thread_count=1, verbose=False, allow_writing_files=False
    )
    return np.asarray(model.fit(X, y, cat_features=named).predict_proba(X_test))


def catboost_frames(X: pd.DataFrame, X_test: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """Return frames as CatBoost takes them, without constant columns, and the names of categories."""
    named = list(X.select_dtypes(exclude="number"))

    def text(X: pd.DataFrame) -> pd.DataFrame:
        return X.assign(
            **{name: X[name].astype(object).where(X[name].notna(), "missing").astype(str) for name in named}
        )

    X = text(X)
    constant = [name for name in X.columns if X[name].nunique(dropna=False) < 2]
    kept = [name for name in named if name not in constant]
    return X.drop(columns=constant), text(X_test).drop(columns=constant), kept


METHODS: dict[str, Callable[[Problem], Floats]] = {
    "GRBB, XGBoost": grbb("XGBoost"),
    "GRBB, LightGBM": grbb("LightGBM"),
    "teacher alone": teacher,
    "logistic regression": supervised(lambda seed: numbers(LogisticRegression(max_iter=1_000))),
    "ExtraTrees": supervised(lambda seed: numbers(ExtraTreesClassifier(300, random_state=seed, n_jobs=1))),
    "CatBoost": catboost,
    "XGBoost": supervised(lambda seed: boosters(seed)["XGBoost"]()),
    "LightGBM": supervised(lambda seed: boosters(seed)["LightGBM"]()),
    "self-training": self_training,
    "LabelSpreading, then XGBoost": spread_then_booster,
    "pseudo-labels": pseudo_labels,
}


@cache
def load(name: str) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """Return a table, or a set of `rivals`, as a frame, and classes 0, 1, ..."""
    if name in unseen.TABLES:
        return unseen.load(name)
    path = sets.DATA / "tables" / f"{name}.csv.gz"
    if not path.exists():
        data = sets.load(name)
        return pd.DataFrame(data.X, columns=[f"x{j}" for j in range(data.X.shape[1])]), data.y
    frame = pd.read_csv(path)
    X, y = frame.iloc[:, :-1].copy(), frame.iloc[:, -1]
    for column in X.columns:
        if pd.api.types.is_bool_dtype(X[column]):
            X[column] = X[column].astype(np.int64)
        elif not pd.api.types.is_numeric_dtype(X[column]):
            X[column] = X[column].astype("category")
    return X, np.asarray(pd.factorize(y, sort=True)[0], dtype=np.int64)


def tables() -> list[str]:
    """Return the names of the tables that are there."""
    return sorted(path.name.removesuffix(".csv.gz") for path in (sets.DATA / "tables").glob("*.csv.gz"))


def draw(name: str, labels: str, n_labels: int, seed: int) -> Problem:
    """Draw training rows (80 %), test rows and labels.

    Parameters
    ----------
    name : str
        The set.
    labels : {"random", "by class"}
        Whether `n_labels` are drawn from all training rows, or from each class.
    n_labels : int
        Labels, or labels of each class.
    seed : int
        The trial.
    """
    X, y = load(name)
    random = np.random.default_rng([seed, 80])
    order = random.permutation(y.size)
    n_train = int(0.8 * y.size)
    train, test = order[:n_train][:MAX_TRAIN], order[n_train:][:MAX_TEST]
    truth, classes = y[train], np.unique(y[train])
    random = np.random.default_rng([seed, n_labels])
    if labels == "by class":
        rows = [np.flatnonzero(truth == k) for k in classes]
        chosen = np.concatenate([random.choice(part, min(n_labels, part.size), replace=False) for part in rows])
    else:
        chosen = _at_random(truth, n_labels, random)
    # Classes that nobody labelled cannot be learned, by any method: their rows are left out.
    seen = np.unique(truth[chosen])
    known = np.where(np.isin(np.arange(train.size), chosen), np.searchsorted(seen, truth), -1)
    kept, kept_test = np.isin(truth, seen), np.isin(y[test], seen)
    return Problem(
        X.iloc[train[kept]].reset_index(drop=True),
        known[kept],
        X.iloc[test[kept_test]].reset_index(drop=True),
        np.searchsorted(seen, y[test][kept_test]),
        seed,
    )


def _at_random(truth: NDArray[np.int64], n_labels: int, random: np.random.Generator) -> NDArray[np.intp]:
    """Draw labels until two classes have at least two; of two classes, both."""
    n_labels = min(n_labels, truth.size // 2)
    while True:
        chosen = random.choice(truth.size, n_labels, replace=False)
        if (np.unique(truth[chosen], return_counts=True)[1] >= 2).sum() >= 2:
            return np.asarray(chosen)


def measures(p: Floats, truth: NDArray[np.int64]) -> dict[str, float]:
    """Return what is measured of probabilities: the mean over classes where there are more than two.

    Examples
    --------
    >>> found = measures(np.array([[0.8, 0.2], [0.4, 0.6]]), np.array([0, 1]))
    >>> found["accuracy"], found["auc"], round(found["brier"], 2)
    (1.0, 1.0, 0.2)
    """
    p = np.clip(p, _FLOOR, 1.0)
    p = p / p.sum(axis=1, keepdims=True)
    one_hot = np.eye(p.shape[1])[truth]
    some = [k for k in range(1 if p.shape[1] == 2 else 0, p.shape[1]) if 0 < one_hot[:, k].sum() < truth.size]
    sure, right = p.max(axis=1), p.argmax(axis=1) == truth
    bins = np.minimum((sure * _BINS).astype(int), _BINS - 1)
    gaps = [abs(float((sure - right)[bins == b].sum())) for b in range(_BINS)]
    return {
        "accuracy": float(right.mean()),
        "auc": float(np.mean([roc_auc_score(one_hot[:, k], p[:, k]) for k in some])),
        "average_precision": float(np.mean([average_precision_score(one_hot[:, k], p[:, k]) for k in some])),
        "log_loss": float(-np.log(p[np.arange(truth.size), truth]).mean()),
        "brier": float(((p - one_hot) ** 2).sum(axis=1).mean()),
        "calibration_error": float(sum(gaps) / truth.size),
    }


class Draw(NamedTuple):
    """The methods that are missing of one draw."""

    data: str
    labels: str
    n_labels: int
    seed: int
    methods: tuple[str, ...]


def trial(task: Draw) -> list[Row]:
    """Return the rows of a draw."""
    problem = draw(task.data, task.labels, task.n_labels, task.seed)
    rows: list[Row] = []
    for method in task.methods:
        start = time.process_time()
        found = {key: round(value, 5) for key, value in measures(METHODS[method](problem), problem.truth).items()}
        key = dict(zip(TRIAL, (task.data, method, task.seed, task.labels, task.n_labels), strict=True))
        rows.append({**key, **found, "seconds": round(time.process_time() - start, 3), **package_versions()})
    return rows


def missing(options: Options, table: ResultTable, names: list[str], labels: str, numbers: list[int]) -> Iterator[Draw]:
    """Return what is missing, seed by seed, so that a run that is stopped has the same seeds everywhere."""
    for n_labels in options.labels or numbers:
        for seed in range(options.seeds or (QUICK_SEEDS if options.quick else N_SEEDS)):
            for name in options.data or names:
                keys = [(name, method, seed, labels, n_labels) for method in options.choose(METHODS)]
                left = tuple(key[1] for key in keys if not table.has(dict(zip(TRIAL, key, strict=True))))
                if left:
                    yield Draw(name, labels, n_labels, seed, left)


def run(options: Options, question: str = "tables") -> int:
    """Run what is missing of the tables question and write its report."""
    table = ResultTable(options.folder / f"{question}.csv", COLUMNS, TRIAL)
    few_shot = question == "few_shot"
    old = [name for name in (*INSIDE, *OUTSIDE) if sets.is_available(name)]
    names = list(QUICK) if options.quick else tables() + ([] if few_shot else old)
    if few_shot and not options.quick:
        names = [name for name in names if name in published()]
    if question == "unseen" and not options.quick:
        names = list(unseen.TABLES)
    for method in options.forget:
        table.forget(method=method)
    failures = 0
    if not options.report:
        numbers = list(SHOTS if few_shot else LABELS)[: 1 if options.quick or question == "unseen" else None]
        tasks = list(missing(options, table, names, "by class" if few_shot else "random", numbers))
        failures = run_tasks(table, tasks, trial, question, options.jobs)
    report(table.read(), options.folder / f"{question}.md", published() if few_shot else {})
    return failures


def published() -> dict[str, dict[int, dict[str, float]]]:
    """Return published accuracies, by table, labels of each class and method; empty without the file."""
    path = sets.DATA / "tables" / "published_few_shot.csv"
    if not path.exists():
        return {}
    found: dict[str, dict[int, dict[str, float]]] = {}
    for row in pd.read_csv(path).to_dict("records"):
        name = str(row["file"]).removesuffix(".csv.gz")
        values = {
            str(k): float(v) for k, v in row.items() if k not in ("labels_per_class", "openml_id", "name", "file")
        }
        found.setdefault(name, {})[int(row["labels_per_class"])] = values
    return found
