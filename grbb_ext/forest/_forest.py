"""A trained model as plain arrays, with predictions bit-equal to those of its library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from os import PathLike
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grbb_ext.forest import _compiled, _walk
from grbb_ext.forest import _tree as _below
from grbb_ext.forest._read import fields_from_booster, fields_from_bytes, fields_from_file
from grbb_ext.forest._tree import Tree, pack
from grbb_ext.forest._walk import as_rows

Library = Literal["xgboost", "lightgbm"]
Floats = NDArray[np.floating[Any]]

# Nodes of a block of rows, one for each row and tree; about 4 MB.
_NODES_PER_BLOCK = 1_000_000
# Splits that a made row looks at.
_SPLITS_PER_ROW = 20_000


class LeafBounds(NamedTuple):
    """What a tree can add to each output, at least and at most: two arrays of shape (n_trees, n_outputs)."""

    lowest: Floats
    highest: Floats


@dataclass(frozen=True, eq=False, repr=False)
class Forest:
    r"""The trees of a booster as arrays, for either library.

    Make one with :meth:`from_booster` or :meth:`from_file`. The raw score of a row is

    .. math:: H_k(x) = b_k + \sum_{t : k(t) = k} v_{\ell_t(x)},

    added in the order of the trees, in float32 for XGBoost and in float64 for LightGBM, as the libraries do. Nodes of
    all trees share one numbering: tree t owns the nodes from ``tree_start[t]`` (its root) to ``tree_start[t + 1]``,
    level by level, and the right child of a node follows the left one. A row goes left where x <= threshold. The object
    cannot be changed, its arrays are read-only, and it pickles.

    Attributes
    ----------
    feature : ndarray of int32 of shape (n_nodes,)
        The column that a node splits, -1 at leaves.
    threshold : ndarray of shape (n_nodes,)
        The largest value that goes left; XGBoost's x < t is kept as x <= nextafter(t, -inf). Infinite at leaves, NaN at
        categorical nodes.
    left : ndarray of int32 of shape (n_nodes,)
        The left child; a leaf is its own.
    default_left : ndarray of bool of shape (n_nodes,)
        Whether a missing value goes left.
    zero_is_missing : ndarray of bool of shape (n_nodes,)
        Whether 0 goes the default way, too.
    category_set : ndarray of int32 of shape (n_nodes,)
        Number of the set of categories that go left at a categorical node, else -1.
    category_start, category_word, category_bits : ndarray
        Set s is a bitset in words of 32 bits, of which only those with a category are kept: the words
        ``category_bits[category_start[s]:category_start[s + 1]]``, whose numbers ``category_word`` has.
    value : ndarray of shape (n_nodes, n_values)
        What a leaf adds: one number, or one for each output (XGBoost's vector leaves). Weights of dart are in it.
    cover : ndarray of shape (n_nodes,)
        Training weight in a node: sum of hessians (XGBoost) or rows (LightGBM).
    leaf_label : ndarray of int32 of shape (n_nodes,)
        The library's number of a leaf, -1 at inner nodes.
    depth : ndarray of int32 of shape (n_nodes,)
        Depth of a node, 0 at a root.
    tree_start : ndarray of int32 of shape (n_trees + 1,)
        First node of each tree.
    tree_output : ndarray of int32 of shape (n_trees,)
        The output (class) that a tree adds to; 0 with vector leaves.
    base : ndarray of shape (n_outputs,)
        The raw score without trees.
    n_features : int
        Columns of X.
    feature_names : tuple of str or None
        Their names, where the booster has them.
    library : {"xgboost", "lightgbm"}
        Whose arithmetic is followed.
    missing : float
        A value that counts as missing, beside NaN (XGBoost's ``missing=``).
    averaged : bool
        Whether the library divides raw scores by the number of rounds before it turns them into predictions (LightGBM's
        ``boosting="rf"``). Raw scores themselves are sums, there and here.
    objective : str
        The loss, as the library's file names it.
    categories : mapping of int to tuple
        Category names by column, in the order of their codes. ``()`` where the names cannot be read: before 3.4 XGBoost
        damages names that are not ASCII when it saves them; such a column has to be passed as codes.
    category_lists : tuple of tuple
        Category names of LightGBM whose columns the model does not tell, in the order of the columns: it lists the
        names of all pandas columns of categories, but not which columns these are. If it has as many columns that can
        be meant, the names are in `categories`.

    Examples
    --------
    >>> import lightgbm as lgb
    >>> import numpy as np
    >>> X = np.column_stack([np.arange(20.0), np.ones(20)])
    >>> booster = lgb.train({"num_leaves": 2, "min_data_in_leaf": 2, "verbosity": -1},
    ...                     lgb.Dataset(X, label=X[:, 0] > 9), num_boost_round=5)
    >>> forest = Forest.from_booster(booster)
    >>> forest
    Forest(lightgbm, 5 trees, 5 splits, 1 of 2 features, 1 output)
    >>> bool((forest.predict(X) == booster.predict(X, raw_score=True)).all())
    True
    >>> forest.features_used().tolist()
    [0]
    """

    feature: NDArray[np.int32]
    threshold: Floats
    left: NDArray[np.int32]
    default_left: NDArray[np.bool_]
    zero_is_missing: NDArray[np.bool_]
    category_set: NDArray[np.int32]
    category_start: NDArray[np.int64]
    category_word: NDArray[np.int32]
    category_bits: NDArray[np.uint32]
    value: Floats
    cover: NDArray[np.float64]
    leaf_label: NDArray[np.int32]
    depth: NDArray[np.int32]
    tree_start: NDArray[np.int32]
    tree_output: NDArray[np.int32]
    base: Floats
    n_features: int
    feature_names: tuple[str, ...] | None
    library: Library
    missing: float = np.nan
    averaged: bool = False
    objective: str = ""
    categories: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)
    category_lists: tuple[tuple[Any, ...], ...] = ()

    def __post_init__(self) -> None:
        for entry in fields(self):
            array = getattr(self, entry.name)
            if isinstance(array, np.ndarray):
                array.setflags(write=False)

    @classmethod
    def from_booster(cls, booster: Any, *, iterations: int | None = None, missing: float | None = None) -> Forest:
        """Read a trained model of either library, without importing it.

        Parameters
        ----------
        booster : xgboost.Booster, lightgbm.Booster, or a fitted scikit-learn wrapper of either
            The model. Boosters without trees (``gblinear``) and LightGBM's ``linear_tree`` are refused.
        iterations : int or None, default=None
            Boosting rounds to keep. None keeps what ``predict`` uses by default: all rounds of an xgboost.Booster, the
            best ones after early stopping of a lightgbm.Booster and of the wrappers of both.
        missing : float or None, default=None
            XGBoost only: the value that marks missing entries of X beside NaN, as in ``DMatrix(X, missing=0)``. None is
            NaN, or what the wrapper was given.

        Returns
        -------
        Forest
            ``forest.predict(X)`` has the bits of ``booster.predict(DMatrix(X), output_margin=True)`` or
            ``booster.predict(X, raw_score=True)``.
        """
        own = getattr(booster, "forest_", None)
        if not isinstance(own, Forest):
            return cls(**fields_from_booster(booster, iterations, missing))
        if iterations is None and missing is None:
            return own
        # An estimator of ours knows the names, the categories and what is missing, its booster does not.
        cut = fields_from_booster(booster.booster_, iterations, own.missing if missing is None else missing)
        named = {"feature_names": own.feature_names, "categories": own.categories, "category_lists": ()}
        return cls(**cut | named)

    @classmethod
    def from_file(
        cls, path: str | PathLike[str], *, iterations: int | None = None, missing: float | None = None
    ) -> Forest:
        """Read a saved model: XGBoost's ``.json`` and ``.ubj``, LightGBM's text. The library need not be installed.

        Parameters
        ----------
        path : path
            What ``Booster.save_model`` wrote.
        iterations, missing
            As for :meth:`from_booster`; None keeps all rounds in the file.
        """
        return cls(**fields_from_file(path, iterations, missing))

    @classmethod
    def from_bytes(cls, data: bytes, *, iterations: int | None = None, missing: float | None = None) -> Forest:
        """Read what a file of a saved model holds.

        Parameters
        ----------
        data : bytes
            As for :meth:`from_file`; line ends are those that the library wrote.
        iterations, missing
            As for :meth:`from_file`.
        """
        return cls(**fields_from_bytes(data, "The model", iterations, missing))

    @classmethod
    def from_trees(
        cls,
        trees: Sequence[Tree],
        *,
        n_features: int,
        base: ArrayLike = 0.0,
        feature_names: Sequence[str] | None = None,
        library: Library = "lightgbm",
    ) -> Forest:
        """Put together trees from elsewhere.

        Parameters
        ----------
        trees : sequence of Tree
            In the order in which their values are added.
        n_features : int
            Columns of X.
        base : float or array-like of shape (n_outputs,), default=0
            The raw score without trees, for each output.
        feature_names : sequence of str or None, default=None
            Names of the columns.
        library : {"lightgbm", "xgboost"}, default="lightgbm"
            Whose arithmetic to follow: float64 or float32.

        Examples
        --------
        A single split, x[0] <= 2:

        >>> import numpy as np
        >>> from grbb_ext.forest import Tree
        >>> stump = Tree(feature=np.array([0, -1, -1]), threshold=np.array([2.0, 0.0, 0.0]),
        ...              left=np.array([1, 0, 0]), right=np.array([2, 0, 0]), default_left=np.array([True, True, True]),
        ...              value=np.array([[0.0], [-1.0], [1.0]]), cover=np.array([4.0, 3.0, 1.0]), label=np.arange(3))
        >>> Forest.from_trees([stump], n_features=1).predict([[1.0], [2.0], [2.5], [np.nan]]).tolist()
        [-1.0, -1.0, 1.0, -1.0]
        """
        dtype = np.float32 if library == "xgboost" else np.float64
        start = np.atleast_1d(np.asarray(base, dtype=dtype))
        return cls(
            **pack(trees, n_features, len(start), dtype),
            base=start,
            n_features=n_features,
            feature_names=None if feature_names is None else tuple(feature_names),
            library=library,
        )

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.tree_output)

    @property
    def n_outputs(self) -> int:
        """Scores per row."""
        return len(self.base)

    @property
    def n_nodes(self) -> int:
        """Number of nodes, leaves among them."""
        return len(self.feature)

    @cached_property
    def n_splits(self) -> int:
        """Number of splits (inner nodes) of all trees."""
        return int(np.count_nonzero(self.feature >= 0))

    @property
    def right(self) -> NDArray[np.int32]:
        """The right child of each node; a leaf is its own."""
        return self.left + (self.feature >= 0)

    @property
    def trees_per_round(self) -> int:
        """Trees that one round of boosting adds for each output together: n_outputs, or 1 with vector leaves."""
        return 1 if self.value.shape[1] > 1 else self.n_outputs

    def features_used(self) -> NDArray[np.intp]:
        """Return the columns that some split reads, sorted; ``feature_names`` has their names."""
        return np.unique(self.feature[self.feature >= 0]).astype(np.intp)

    def predict(self, X: Any, *, start_tree: int = 0, stop_tree: int | None = None) -> Floats:
        """Return raw scores, bit-equal to those of the library.

        Parameters
        ----------
        X : array-like, sparse matrix or pandas.DataFrame of shape (N, d)
            Rows.
        start_tree, stop_tree : int
            Only these trees, added to the base score.

        Returns
        -------
        ndarray of shape (N,), or (N, K) with K outputs
            float32 from XGBoost, float64 from LightGBM.
        """
        start, stop = self._tree_range(start_tree, stop_tree)
        rows = as_rows(self, X)
        scores = np.empty((len(rows), self.n_outputs), dtype=self.base.dtype)
        for block, nodes in self._walk_blocks(rows, start, stop):
            scores[block] = self._sum(nodes, self.value, start)
        return scores[:, 0] if self.n_outputs == 1 else scores

    def apply(self, X: Any, *, start_tree: int = 0, stop_tree: int | None = None) -> NDArray[np.int32]:
        """Return the leaf of each row in each tree, by the library's own number (``pred_leaf=True``).

        Parameters
        ----------
        X : array-like, sparse matrix or pandas.DataFrame of shape (N, d)
            Rows.
        start_tree, stop_tree : int
            Only these trees.

        Returns
        -------
        ndarray of int32 of shape (N, n_trees)
        """
        start, stop = self._tree_range(start_tree, stop_tree)
        rows = as_rows(self, X)
        labels = np.empty((len(rows), stop - start), dtype=np.int32)
        for block, nodes in self._walk_blocks(rows, start, stop):
            labels[block] = self.leaf_label[nodes].T
        return labels

    def features_touched(self, X: Any) -> NDArray[np.bool_]:
        """Return which features the paths of each row read; what a row costs depends on them.

        Parameters
        ----------
        X : array-like, sparse matrix or pandas.DataFrame of shape (N, d)
            Rows.

        Returns
        -------
        ndarray of bool of shape (N, d)
        """
        rows = as_rows(self, X)
        touched = np.zeros((len(rows), self.n_features), dtype=bool)
        used = self.features_used()
        for block, nodes in self._walk_blocks(rows, 0, self.n_trees):
            bits = np.zeros((len(self._path_bits), nodes.shape[1]), dtype="<u8")
            for node in nodes:
                bits |= self._path_bits.take(node, axis=1)
            of_rows = np.ascontiguousarray(bits.T).view(np.uint8)
            touched[block, used] = np.unpackbits(of_rows, axis=1, count=used.size, bitorder="little")
        return touched

    def rows_at_splits(self, n_rows: int, random_state: int = 0) -> NDArray[np.float64]:
        """Make rows that meet the splits of the trees, for comparing two readers of a model.

        An entry is the threshold of a random split of its column, the next number above it, or a category that goes
        left; one in ten is missing, and one in ten is 0.

        Parameters
        ----------
        n_rows : int
            How many.
        random_state : int, default=0
            Seed.

        Returns
        -------
        ndarray of shape (n_rows, d)
        """
        rng = np.random.default_rng(random_state)
        rows = np.zeros((n_rows, self.n_features))
        inner = np.flatnonzero(np.isfinite(self.threshold) & (self.feature >= 0) | (self.category_set >= 0))
        start, end = (self.category_start[self.category_set[inner] + shift] for shift in (0, 1))
        first = np.where((self.category_set[inner] >= 0) & (start < end), start, -1)
        bits, words = np.append(self.category_bits, 1).astype(np.int64), np.append(self.category_word, 0)
        code = 32.0 * words[first] + np.log2(bits[first] & -bits[first])
        above = np.nextafter(self.threshold[inner], np.finfo(self.threshold.dtype).max).astype(np.float64)
        at = self.threshold[inner].astype(np.float64)
        for row in rows:
            chosen = rng.permutation(inner.size)[:_SPLITS_PER_ROW]
            value = np.where(rng.random(chosen.size) < 0.5, at[chosen], above[chosen])
            row[self.feature[inner[chosen]]] = np.where(np.isnan(at[chosen]), code[chosen], value)
        rows[rng.random(rows.shape) < 0.1] = np.nan
        rows[rng.random(rows.shape) < 0.1] = 0.0
        return rows

    @cached_property
    def leaf_bounds(self) -> LeafBounds:
        """The least and the most that each tree can add to each output."""
        lowest, highest = (bounds[self.tree_start[:-1]] for bounds in self.node_bounds)
        if self.value.shape[1] == 1:  # spread over the outputs
            is_own = self.tree_output[:, None] == np.arange(self.n_outputs)
            lowest, highest = (np.where(is_own, values, self.value.dtype.type(0)) for values in (lowest, highest))
        return LeafBounds(lowest, highest)

    node_bounds = cached_property(_below.bounds)
    node_mean = cached_property(_below.mean)
    height = cached_property(_below.height)
    _path_bits = cached_property(_below.path_bits)

    @cached_property
    def _steps(self) -> NDArray[np.intp]:
        """The left children, as the numbers that arrays are indexed by."""
        return self.left.astype(np.intp)

    @cached_property
    def _column(self) -> NDArray[np.int32]:
        """The column that a node reads: that of its split, and any at a leaf, where the value does not matter."""
        return np.maximum(self.feature, 0)

    @cached_property
    def _is_split(self) -> NDArray[np.uint8]:
        """Which nodes are splits, as numbers."""
        return (self.feature >= 0).view(np.uint8)

    @cached_property
    def category_key(self) -> NDArray[np.int64]:
        """Number of the set times 2**32 plus number of the word, for each word of a set; increasing."""
        of_set = np.repeat(np.arange(self.category_start.size - 1), np.diff(self.category_start))
        return np.asarray((of_set << 32) + self.category_word)

    @cached_property
    def tree_is_plain(self) -> NDArray[np.bool_]:
        """Whether no node of a tree is categorical or takes zero as missing."""
        special = self.zero_is_missing | (self.category_set >= 0)
        return ~np.logical_or.reduceat(special, self.tree_start[:-1]) if self.n_trees else special

    def _tree_range(self, start: int, stop: int | None) -> tuple[int, int]:
        stop = self.n_trees if stop is None else stop
        if not 0 <= start <= stop <= self.n_trees:
            raise ValueError(f"start_tree and stop_tree must lie between 0 and {self.n_trees}, got {start} and {stop}.")
        return start, stop

    @property
    def _kernels(self) -> Any:
        """The module that walks and adds: compiled where numba is installed."""
        return _compiled if _compiled.is_available() else _walk

    def _walk_blocks(self, rows: Floats, start: int, stop: int) -> Iterator[tuple[slice, NDArray[np.int32]]]:
        """Yield blocks of rows and their leaves, shape (trees, rows of the block)."""
        step = max(_NODES_PER_BLOCK // max(stop - start, 1), 1)
        for begin in range(0, len(rows), step):
            block = slice(begin, min(begin + step, len(rows)))
            nodes = np.repeat(self.tree_start[start:stop, None], block.stop - begin, axis=1)
            self._kernels.walk(self, rows[block], nodes, start)
            yield block, nodes

    def _sum(self, nodes: NDArray[np.int32], value: Floats, start: int) -> Floats:
        """Add a value of each node, given as (trees, rows), to the base score, tree by tree as the libraries do."""
        scores = np.repeat(self.base[:, None], nodes.shape[1], axis=1)
        self._kernels.add(value, nodes, self.tree_output[start : start + len(nodes)], scores)
        return scores.T

    def __reduce__(self) -> tuple[Any, ...]:
        # Arrays come back writable from a pickle; the constructor closes them again.
        return Forest, tuple(getattr(self, entry.name) for entry in fields(self))

    def __repr__(self) -> str:
        outputs = "1 output" if self.n_outputs == 1 else f"{self.n_outputs} outputs"
        return (
            f"Forest({self.library}, {self.n_trees} trees, {self.n_splits} splits, {self.features_used().size} of "
            f"{self.n_features} features, {outputs})"
        )
