"""Cross-validation with few labels: test on labelled rows, train with all others, and with one graph for all fits."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import (
    BaseCrossValidator,
    GroupKFold,
    KFold,
    PredefinedSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
)
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from grbb_ext._options import one_of, positive_int
from grbb_ext.graph import SharedGraph
from grbb_ext.labels import check_sample_weight, is_unlabeled, plain_array
from grbb_ext.model_selection._scorer import is_continuous, labeled_rows, take_rows
from grbb_ext.objective import Recipe
from grbb_ext.teacher import Teacher

Indices = NDArray[np.intp]


class SemiSupervisedSplit(BaseCrossValidator):  # type: ignore[misc]  # scikit-learn has no types
    """Split the labelled rows into folds; unlabelled rows are trained on in every fold and tested in none.

    Pass it wherever scikit-learn takes ``cv=``. A plain splitter treats unlabelled rows as one more class: it tests on
    them, which scores how well a model predicts the marker, and removes them from training.

    Parameters
    ----------
    cv : int or splitter, default=5
        A number of folds, or any splitter of scikit-learn or your own, which gets the labelled rows only. A number
        makes folds with the classes spread evenly, and whole groups together where ``groups`` is passed:
        ``StratifiedKFold``, ``KFold``, ``StratifiedGroupKFold`` or ``GroupKFold`` of scikit-learn.
    stratify : bool or "auto", default="auto"
        Whether a number of folds spreads the classes evenly. ``"auto"`` does unless y holds fractions: for regression
        on whole numbers pass False, and ``unlabeled=np.nan``.
    n_repeats : int, default=1
        Number of repetitions, each with the rows in another order.
    shuffle : bool, default=False
        Whether a number of folds is made from rows in random order; repeats always are.
    random_state : int, RandomState or None, default=None
        Seed of the order. An int gives the same folds each time.
    unlabeled : object, default=-1
        The marker in y; NaN and None mark too. Where y holds fractions, only NaN does. Functions that get a model take
        that of the model.
    unlabeled_of_test_groups : {"drop", "keep"}, default="drop"
        What is done with unlabelled rows whose group (patient, query) is tested. ``"drop"`` leaves them out of that
        training fold, so a model is tested on groups that are not in its training rows, as when it is used on new ones.
        ``"keep"`` trains on them, which is right where predictions are wanted for the unlabelled rows of known groups.

    See Also
    --------
    labeled_scorer : A score that leaves out unlabelled rows, for any split.

    Examples
    --------
    Four labelled rows in two folds, two unlabelled rows in each training set:

    >>> y = [0, -1, 1, 0, 1, -1]
    >>> for train, test in SemiSupervisedSplit(2).split(None, y):
    ...     print(train, test)
    [1 3 4 5] [0 2]
    [0 1 2 5] [3 4]

    With any splitter of scikit-learn:

    >>> from sklearn.model_selection import LeaveOneGroupOut
    >>> split = SemiSupervisedSplit(LeaveOneGroupOut())
    >>> for train, test in split.split(None, y, groups=list("aabbcc")):
    ...     print(train, test)
    [2 3 4 5] [0]
    [0 1 4 5] [2 3]
    [0 1 2 3] [4]
    """

    # Groups are asked for where scikit-learn routes metadata.
    __metadata_request__split = {"groups": True}  # noqa: RUF012

    def __init__(
        self,
        cv: Any = 5,
        *,
        stratify: bool | Literal["auto"] = "auto",
        n_repeats: int = 1,
        shuffle: bool = False,
        random_state: Any = None,
        unlabeled: Any = -1,
        unlabeled_of_test_groups: Literal["drop", "keep"] = "drop",
    ) -> None:
        self.cv, self.stratify, self.n_repeats, self.shuffle = cv, stratify, n_repeats, shuffle
        self.random_state, self.unlabeled = random_state, unlabeled
        self.unlabeled_of_test_groups = unlabeled_of_test_groups
        self._counts = isinstance(cv, int | np.integer)
        if stratify not in (True, False, "auto"):
            raise ValueError(f"stratify must be True, False or 'auto', got {stratify!r}.")
        one_of(unlabeled_of_test_groups, ("drop", "keep"), "unlabeled_of_test_groups")
        repeats = positive_int(n_repeats, "n_repeats")
        if self._counts:
            if isinstance(cv, bool) or cv < 2:
                raise ValueError(f"cv must be at least 2 folds, or a splitter, got {cv!r}.")
            if random_state is not None and not (shuffle or repeats > 1):
                raise ValueError("random_state has no effect without shuffle=True. Set it, or leave random_state out.")
            return
        if isinstance(cv, type):
            raise TypeError(f"cv must be a splitter, not its class: pass an instance, e.g. {cv.__name__}().")
        if not (hasattr(cv, "split") and hasattr(cv, "get_n_splits")):
            raise TypeError(f"cv must be a number of folds or a splitter of scikit-learn, got {cv!r}.")
        if shuffle or repeats > 1 or random_state is not None or stratify != "auto":
            raise ValueError(
                "stratify, n_repeats, shuffle and random_state are for a number of folds. Set them on the splitter, "
                "e.g. SemiSupervisedSplit(RepeatedStratifiedKFold(n_splits=5, n_repeats=3, random_state=0))."
            )

    def split(self, X: Any = None, y: Any = None, groups: Any = None) -> Iterator[tuple[Indices, Indices]]:
        """Yield the rows to train on and the rows to test on, fold by fold.

        Parameters
        ----------
        X : array-like of shape (N, d) or None
            The rows; only a splitter of your own may use them.
        y : array-like of shape (N,)
            Labels, with the marker where there is none.
        groups : array-like of shape (N,) or None
            The group of every row, labelled or not; None for an unlabelled row of no group. No group is on both sides.

        Yields
        ------
        train, test : ndarray of int
            Positions of rows. `train` is sorted.
        """
        values, is_labeled = labeled_rows(y, self.unlabeled)
        labeled, free = np.flatnonzero(is_labeled), np.flatnonzero(~is_labeled)
        if labeled.size == 0:
            raise ValueError(
                f"y has no labelled row ({self.unlabeled!r}, NaN or None marks a row without one), so there is nothing "
                "to test on."
            )
        for name, given in (("X", X), ("groups", groups)):
            size = None if given is None else given.shape[0] if hasattr(given, "shape") else len(given)
            if size not in (None, values.size):
                raise ValueError(f"{name} has {size} rows but y has {values.size}: they must match, row by row.")
        group, seen = (None, None) if groups is None else _read_groups(groups, labeled)
        target = plain_array(values[labeled])
        rows = np.zeros((labeled.size, 1)) if X is None else take_rows(X, labeled)

        for splitter in self._splitters(target, seen):
            for train, test in splitter.split(rows, target, seen):
                if len(test) == 0:
                    raise ValueError(f"{self.cv!r} made a fold without a labelled row. Ask for fewer folds.")
                if max(np.max(train, initial=0), np.max(test)) >= labeled.size:
                    raise ValueError(
                        f"{type(self.cv).__name__} names rows beyond the {labeled.size} labelled ones, and a splitter "
                        "gets no others. Make it of these, such as PredefinedSplit(test_fold[y != -1])."
                    )
                kept = free
                if group is not None:
                    tested = group[labeled[test]]
                    both = tested[_among(tested, group[labeled[train]])]
                    if both.size:
                        raise ValueError(
                            f"{self.cv!r} puts the group {both.tolist()[0]!r} on both sides. Use a splitter that keeps "
                            "groups together (GroupKFold, StratifiedGroupKFold, LeaveOneGroupOut, a number of folds), "
                            "or leave groups out."
                        )
                    if self.unlabeled_of_test_groups == "drop":
                        kept = free[~_among(group[free], tested)]
                yield np.sort(np.concatenate([labeled[train], kept])), labeled[test]

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds, all repeats together.

        Parameters
        ----------
        X, y, groups
            As for :meth:`split`. Only splitters such as ``LeaveOneOut``, which make as many folds as there are rows or
            groups, use them.

        Returns
        -------
        int
        """
        if self._counts:
            return int(self.cv) * self.n_repeats
        if y is None:
            return int(self.cv.get_n_splits(X, y, groups))
        values, is_labeled = labeled_rows(y, self.unlabeled)
        rows = np.flatnonzero(is_labeled)
        seen = None if groups is None else _read_groups(groups, rows)[1]
        return int(self.cv.get_n_splits(np.zeros((rows.size, 1)), values[rows], seen))

    def _splitters(self, target: NDArray[Any], groups: NDArray[Any] | None) -> Iterator[Any]:
        """Yield a splitter of the labelled rows for each repeat."""
        # One stream for all repeats, as in scikit-learn's repeated splitters; a single one passes the seed on.
        seed = check_random_state(self.random_state) if self.n_repeats > 1 else self.random_state
        for _ in range(self.n_repeats):
            yield self._folds(target, groups, seed) if self._counts else self.cv

    def _folds(self, target: NDArray[Any], groups: NDArray[Any] | None, seed: Any) -> Any:
        """Return scikit-learn's splitter for a number of folds."""
        n_folds, shuffle = int(self.cv), self.shuffle or self.n_repeats > 1
        units, what = target.size, "labelled rows"
        if groups is not None:
            units, what = np.unique(groups).size, "groups with a label"
        if units < n_folds:
            way_out = f"Use cv={units}" if units > 1 else "Label more rows"
            raise ValueError(f"cv={n_folds} needs at least {n_folds} {what}, but there are {units}. {way_out}.")
        order = {"shuffle": shuffle, "random_state": seed}
        if self.stratify if self.stratify != "auto" else not is_continuous(target):
            code, count = np.unique(target, return_inverse=True, return_counts=True)[1:]
            if count.max() >= n_folds:
                return (StratifiedKFold if groups is None else StratifiedGroupKFold)(n_folds, **order)
            # scikit-learn refuses this case; with few labels it is the usual one.
            warnings.warn(
                f"The largest class has {count.max()} labels, fewer than cv={n_folds} folds: a class is missing from "
                f"the test rows of some folds. Use cv={max(count.max(), 2)} or fewer folds for folds with all classes.",
                UserWarning,
                stacklevel=4,
            )
            if groups is None:  # folds, and classes within folds, differ in size by one row at most
                rows = check_random_state(seed).permutation(code.size) if shuffle else np.arange(code.size)
                fold = np.empty(code.size, dtype=np.intp)
                fold[rows[np.argsort(code[rows], kind="stable")]] = np.arange(code.size) % n_folds
                return PredefinedSplit(fold)
        return (KFold if groups is None else GroupKFold)(n_folds, **(order if shuffle or groups is None else {}))


def folds_of_model(cv: Any, unlabeled: Any, *, classes: bool, **settings: Any) -> SemiSupervisedSplit:
    """Return the splitter for a model whose task and marker are known: those of `cv` do not count.

    Examples
    --------
    >>> split = folds_of_model(np.int64(3), np.nan, classes=False)
    >>> split.stratify, split.unlabeled, folds_of_model(SemiSupervisedSplit(3), "?", classes=True).unlabeled
    (False, nan, '?')
    """
    known = copy(cv) if isinstance(cv, SemiSupervisedSplit) else SemiSupervisedSplit(cv, **settings)
    known.unlabeled = unlabeled
    if known.stratify == "auto" and not classes:
        known.stratify = False
    return known


def _read_groups(groups: Any, labeled: Indices) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the groups of all rows and of the labelled ones; each of these has to have one."""
    group = np.asarray(groups)
    missing = labeled[is_unlabeled(np.asarray(groups, dtype=object)[labeled], None)]  # NaN beside text becomes text
    if missing.size:
        raise ValueError(
            f"groups has None or NaN for the labelled rows {missing[:5].tolist()}. Give each labelled row a group, "
            "such as one of its own; only unlabelled rows may have none."
        )
    return group, group[labeled]


def _among(values: NDArray[Any], others: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which values are among others; unlike np.isin for names and None side by side, too."""
    known = set(others.tolist())
    return np.array([value in known for value in values.tolist()], dtype=bool)


def share_graph(estimator: Any, X: Any) -> Any:
    """Return a copy of an estimator whose graph is built now, over all rows, and cut to the rows of each fit.

    A search of 20 settings in 5 folds fits 100 models; each would build the same neighbour graph again. The settings of
    the graph are the estimator's.

    Parameters
    ----------
    estimator : GRBBClassifier or GRBBRegressor
        What to fit; it is not changed. A refined graph is refined in each fit, from its own labels alone.
    X : array-like, sparse matrix or frame of shape (N, d)
        All rows that will be given to fit, in whole or in part.

    Returns
    -------
    estimator
        With ``graph=SharedGraph(...)``.

    Notes
    -----
    In a fold, the shared graph is not the graph that would be built from the fold alone. Its edges are those of the
    graph of all rows, between rows of the fold. So the columns of held-out rows take part in the choice of neighbours,
    and a row loses the neighbours that are held out. Labels take no part in it. With
    :class:`SemiSupervisedSplit` only labelled rows are held out, a few of very many. A fit to all rows is equal with
    and without sharing.

    Examples
    --------
    >>> import numpy as np
    >>> from grbb_ext import GRBBClassifier, KNNGraph
    >>> share_graph(GRBBClassifier(graph=KNNGraph(n_neighbors=2)), np.arange(12.0).reshape(6, 2)).graph
    SharedGraph(6 rows, 14 edges)
    """
    model = copy_model(estimator, "graph", "teacher", "propagation", "rule")
    recipe = Recipe.read(graph=model.graph, teacher=model.teacher, propagation=model.propagation, rule=model.rule)
    if isinstance(recipe.teacher, Teacher):
        recipe.teacher.warn_where_labels_are_held_out()
    if not recipe.needs_graph or isinstance(recipe.graph, SharedGraph):
        return model
    shared = SharedGraph(model.read_rows(X), recipe.graph, n_jobs=model.n_jobs, verbose=bool(model.verbose))
    return model.set_params(graph=shared)


def fit_in_folds(
    model: Any, folds: list[tuple[Indices, Indices]], data: Sequence[Any], classes: Any, work: Any, n_jobs: int
) -> list[Any]:
    """Fit a copy of a model in each fold, and return ``work(fitted, X, y)`` of its test rows.

    Parameters
    ----------
    model : estimator
        Not fitted; it is not changed.
    folds : list of pairs (train, test)
        Rows of each fold.
    data : sequence of X, y and sample_weight
        All rows; weights may be None.
    classes : ndarray or None
        All classes, of which a fold may miss some; None for regression.
    work : callable
        What to do with the fitted copies; it pickles.
    n_jobs : int
        Fits at a time.
    """
    X, y, sample_weight = data
    known = {} if classes is None else {"classes": classes}
    data = X, y, check_sample_weight(sample_weight, len(np.asarray(y)))

    def rows(at: Indices) -> list[Any]:
        return [None if column is None else take_rows(column, at) for column in data]

    fits = (delayed(_one_fold)(clone(model), rows(train), known, rows(test)[:2], work) for train, test in folds)
    return list(Parallel(n_jobs=n_jobs)(fits))


def _one_fold(model: Any, training: list[Any], known: dict[str, Any], test: list[Any], work: Any) -> Any:
    return work(model.fit(*training, **known), *test)


def known_classes(estimator: Any, labels: NDArray[Any]) -> NDArray[Any]:
    """Return all classes, of which a fold may miss some: those of a fitted estimator, if it has these labels.

    Examples
    --------
    >>> from sklearn.base import ClassifierMixin
    >>> fitted = ClassifierMixin()
    >>> fitted.classes_ = np.array([0, 1, 2])
    >>> known_classes(fitted, np.array([2, 0])), known_classes(fitted, np.array([0, 5]))
    (array([0, 1, 2]), array([0, 5]))
    """
    found = np.unique(plain_array(labels))
    fitted = getattr(estimator, "classes_", found)
    return np.asarray(fitted if np.isin(found, fitted).all() else found)


def copy_model(estimator: Any, *parameters: str) -> Any:
    """Return a copy of an estimator; refuse one without some parameters, such as a pipeline."""
    if isinstance(estimator, type) or not all(hasattr(estimator, name) for name in parameters):
        raise TypeError(
            f"estimator must be GRBBClassifier(...) or GRBBRegressor(...), got {estimator!r}. In a pipeline, transform "
            "X before."
        )
    return clone(estimator)
