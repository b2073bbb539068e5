"""Prices of features: a feature needs sources, a source has a price and is paid once."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import compress
from os import PathLike
from typing import Any, Protocol, TextIO

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext._options import positive_int
from grbb_ext.costs._engine import PriceEngine, exact_sum, needs_matrix, whole_units
from grbb_ext.costs._reading import Name, check_names, check_price, read_costs, read_csv, shorten, unknown_name
from grbb_ext.costs._through import input_names, inputs_of_outputs, output_names

_SETTINGS = ("per_tree", "per_split", "default")


class ForestLike(Protocol):
    """What costs need of a model; :class:`grbb_ext.forest.Forest` has it."""

    @property
    def n_features(self) -> int:
        """Number of columns."""

    @property
    def n_trees(self) -> int:
        """Number of trees."""

    @property
    def n_splits(self) -> int:
        """Number of splits."""

    def features_used(self) -> Any:
        """Columns that some split reads."""

    def features_touched(self, X: Any) -> Any:
        """Columns that each row's own paths read, boolean of shape (rows, n_features)."""


class FeatureCosts(PriceEngine):
    r"""Prices of features, through the sources they need.

    A feature needs sources (its own test, a shared blood draw, a filter bank), and a source is paid once however many
    features need it. The price of a set of features is that of the union of their sources,

    .. math:: c(A) = \sum_{s \in \bigcup_{\alpha \in A} \mathrm{needs}(\alpha)} \mathrm{price}(s),

    which is :math:`\sum_\alpha c_\alpha` of eq. 1 when each feature has one source of its own. Methods that take
    boolean arrays of sources or features are those of :class:`PriceEngine`.

    Parameters
    ----------
    costs : dict, pandas.Series, sequence or ndarray, default=None
        A price for each feature, by name or by column index; a sequence holds one price for each column.
    needs : dict or sequence, default=None
        The sources of each feature, a list or a single name; an empty list is a free feature. Goes with `prices`.
    prices : dict, default=None
        The price of each source of `needs`.
    per_tree, per_split : float, default=0
        Price of evaluating a tree and of evaluating a split; see :meth:`evaluation`. Not a part of :meth:`total`.
    default : float or None, default=None
        Price of a column that is not mentioned, as a source of its own. With None such a column is refused by
        :meth:`bind`: a forgotten price is an error, not a free feature.

    Attributes
    ----------
    features : tuple of str or int
        Names, or indices.
    sources : tuple of str or int
        Names of the sources. A feature with a price of its own has a source of its own name.
    prices : ndarray of shape (n_sources,)
        Prices of the sources, read-only.
    needs : scipy.sparse.csr_array of bool, shape (n_features, n_sources)
        Which feature needs which source; do not change it.
    per_tree, per_split : float
        Evaluation prices.
    default : float or None
        Price of columns that are not mentioned.
    bound : bool
        Whether the features are the columns of a data set in their order. True for a sequence, and after
        :meth:`bind`.

    Examples
    --------
    Two blood tests share a draw. The second one is cheaper.

    >>> costs = FeatureCosts(needs={"chol": ["draw", "chol"], "fbs": ["draw", "fbs"], "age": []},
    ...                      prices={"draw": 2.10, "chol": 5.17, "fbs": 3.10})
    >>> costs.total(["chol"]), costs.total(["fbs"]), costs.total(["chol", "fbs"])
    (7.27, 5.2, 10.37)
    >>> costs.marginal("fbs", paid=["chol"])
    3.1
    >>> FeatureCosts({"chol": 7.27, "fbs": -1})
    Traceback (most recent call last):
    ...
    ValueError: The price of 'fbs' must be a finite number of at least 0, got -1.
    """

    features: tuple[Name, ...]
    sources: tuple[Name, ...]
    per_tree: float
    per_split: float
    default: float | None
    bound: bool
    _index: dict[Name, int]

    def __init__(
        self,
        costs: Any = None,
        *,
        needs: Any = None,
        prices: Mapping[Any, float] | None = None,
        per_tree: float = 0.0,
        per_split: float = 0.0,
        default: float | None = None,
    ) -> None:
        self._fill(
            **read_costs(costs, needs, prices),
            per_tree=check_price(per_tree, "per_tree"),
            per_split=check_price(per_split, "per_split"),
            default=None if default is None else check_price(default, "default"),
        )

    @classmethod
    def from_csv(cls, path_or_buffer: str | PathLike[str] | TextIO, **settings: Any) -> FeatureCosts:
        """Read a table with the columns feature, cost and, where wanted, discount_cost, group, needs.

        The first test of a group pays cost, later ones discount_cost. So a group is a source at price
        cost - discount_cost, which must be the same for all of its tests, and each test has a source of its own at
        discount_cost. A derived feature names what it is computed from in the column needs, as ``TT4+T4U`` (or in the
        column group, as ``derived:TT4+T4U``): it needs all of their sources, and one of its own where its cost is
        above 0. Other columns are ignored.

        Parameters
        ----------
        path_or_buffer : path or text file
            The table.
        **settings
            `per_tree`, `per_split` and `default`, as for :class:`FeatureCosts`.

        Examples
        --------
        >>> import io
        >>> table = '''feature,cost,discount_cost,group,needs
        ... age,1,,,
        ... TT4,14.51,12.41,A,
        ... T4U,11.41,9.31,A,
        ... FTI,0,,,TT4+T4U'''
        >>> costs = FeatureCosts.from_csv(io.StringIO(table))
        >>> costs.sources_of("FTI")
        ('A', 'TT4', 'T4U')
        >>> costs.total(["FTI"]), costs.total(["TT4", "T4U", "FTI"])
        (23.82, 23.82)
        """
        needs, prices = read_csv(path_or_buffer)
        return cls(needs=needs, prices=prices, **settings)

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> FeatureCosts:
        """Make the object from the output of :meth:`to_dict`."""
        settings = {name: state[name] for name in _SETTINGS}
        made = cls(needs=dict(state["needs"]), prices=dict(state["prices"]), **settings)
        return made._with(bound=bool(state["bound"]))

    def to_dict(self) -> dict[str, Any]:
        """Return the costs as plain lists and numbers, for JSON.

        Examples
        --------
        >>> FeatureCosts({"age": 1.0}).to_dict()["needs"]
        [['age', ['age']]]
        """
        needs = [[feature, list(self.sources_of(feature))] for feature in self.features]
        prices = [list(pair) for pair in zip(self.sources, self.prices.tolist(), strict=True)]
        settings = {name: getattr(self, name) for name in _SETTINGS}
        return {"needs": needs, "prices": prices, **settings, "bound": self.bound}

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.features)

    def bind(self, columns: Sequence[str] | int | ForestLike) -> FeatureCosts:
        """Put the features in the order of a data set's columns.

        Parameters
        ----------
        columns : sequence of str, int or Forest
            Column names, or the number of columns where they have no names, or a model. Costs by index go by position.

        Returns
        -------
        FeatureCosts
            With one feature for each column. A column without a price is refused unless there is a `default`; so is a
            price without a column (:meth:`select` keeps the features that you have).

        Examples
        --------
        >>> costs = FeatureCosts({"fbs": 5.2, "chol": 7.27})
        >>> costs.bind(["chol", "fbs"]).marginals().tolist()
        [7.27, 5.2]
        >>> costs.bind(["age", "chol", "fbs"])
        Traceback (most recent call last):
        ...
        ValueError: No price for 'age'. Give one (0 if it is free), or FeatureCosts(default=...) for all such columns.
        """
        by_position = isinstance(self.features[0], int)
        _refuse_models(columns)
        if hasattr(columns, "n_features"):
            named = None if by_position else getattr(columns, "feature_names", None)
            columns = int(columns.n_features) if named is None else list(named)
        if isinstance(columns, (str, bytes)):
            raise TypeError(f"columns must be a list of names or a number of columns, got {columns!r}.")
        if isinstance(columns, Iterable):
            given = check_names(columns, "column")
            # LightGBM writes blanks as "_".
            absent = set(self.features).difference(given)
            blanks = {one.replace(" ", "_"): one for one in self.features if isinstance(one, str) and one in absent}
            names = tuple(name if name in self._index else blanks.get(str(name), name) for name in given)
        elif self.bound and operator.index(columns) == self.n_features:
            names = self.features  # the order of the columns was given before, with their names
        else:
            names = tuple(range(operator.index(columns)))
        if not by_position and names and isinstance(names[0], int):
            raise ValueError(
                f"The costs are by name ({shorten(self.features, 3)}) but the {len(names)} columns have no names. Name "
                "the columns of the data set, or give the costs by index."
            )
        priced = {str(place) for place in self.features}
        if by_position and any(
            str(name) != str(place) and (isinstance(name, int) or name in priced) for place, name in enumerate(names)
        ):
            raise ValueError(
                f"The costs are by index, which is the position of a column, but the columns are {shorten(names)}. "
                "Number the columns from 0, or give names that are no numbers to columns and costs."
            )
        if by_position and self.bound and len(names) != self.n_features:
            raise ValueError(f"The costs have {self.n_features} entries but there are {len(names)} columns.")
        keys: tuple[Name, ...] = tuple(range(len(names))) if by_position else names
        absent = set(self.features).difference(keys)
        extra = [feature for feature in self.features if feature in absent]
        if extra:
            raise ValueError(
                f"The costs name {shorten(extra)}, but there is no such column; the {len(names)} columns are "
                f"{shorten(names)}. Correct the names, or keep part of the costs with costs.select(columns)."
            )
        missing = [i for i, key in enumerate(keys) if key not in self._index]
        self._check_priced([names[i] for i in missing])
        for i in missing:
            if keys[i] in self.sources:
                raise ValueError(f"The column {names[i]!r} has no price, and a source has its name. Say what it needs.")
        own = {i: len(self.sources) + k for k, i in enumerate(missing)}
        needed = [[own[i]] if i in own else self._row(self._index[key]).tolist() for i, key in enumerate(keys)]
        return self._with(
            features=names,
            sources=(*self.sources, *(keys[i] for i in missing)),
            prices=np.concatenate([self.prices, np.full(len(missing), self.default or 0.0)]),
            needs=needs_matrix(needed, len(self.sources) + len(missing)),
            bound=True,
        )

    def select(self, features: Iterable[Name]) -> FeatureCosts:
        """Keep some of the features, in the given order, and the sources that they need.

        Examples
        --------
        >>> FeatureCosts({"age": 1, "chol": 7.27, "fbs": 5.2}).select(["fbs", "age"]).features
        ('fbs', 'age')
        """
        chosen = [self._position(feature) for feature in features]
        names = check_names((self.features[i] for i in chosen), "feature")
        if not names:
            raise ValueError("Select at least one feature.")
        return self._with_needs(names, self.needs[chosen], bound=False)

    def through(self, transformer: Any) -> FeatureCosts:
        """Let the prices follow the columns through a fitted transformer of scikit-learn.

        An output column needs the sources of all input columns that it is computed from. The columns of a one-hot
        encoding need the one column that was encoded, so the first of them pays and the others are free; a principal
        component needs every column of its step. Input columns that the transformer leaves out need no price.

        Parameters
        ----------
        transformer : ColumnTransformer, Pipeline, FeatureUnion or a single transformer
            Fitted. Of a pipeline that ends with a model pass ``pipeline[:-1]``. A step that declares its outputs
            one-to-one (``OneToOneFeatureMixin``, or ``feature_names_out="one-to-one"``) is taken at its word, and a
            step of which the inputs of each output are not known is refused, unless it has a single input.

        Returns
        -------
        FeatureCosts
            With one feature for each output column, named as ``transformer.get_feature_names_out()`` has it.

        Examples
        --------
        >>> from sklearn.compose import make_column_transformer
        >>> from sklearn.preprocessing import OneHotEncoder
        >>> encode = make_column_transformer((OneHotEncoder(), [1]), remainder="passthrough")
        >>> costs = FeatureCosts([2.0, 5.0]).through(encode.fit([[3, 0], [4, 1]]))
        >>> costs.features
        ('onehotencoder__x1_0', 'onehotencoder__x1_1', 'remainder__x0')
        >>> costs.total(["onehotencoder__x1_0"]), costs.total(["onehotencoder__x1_0", "onehotencoder__x1_1"])
        (5.0, 5.0)
        """
        features = check_names(output_names(transformer), "output column")
        names, n_inputs = input_names(transformer), getattr(transformer, "n_features_in_", None)
        if n_inputs is None:
            raise ValueError(
                f"{type(transformer).__name__} does not say how many columns it reads. Put it into a ColumnTransformer."
            )
        needed = inputs_of_outputs(transformer, n_inputs)
        # A column that is left out needs no price: bind leniently, and then ask for the prices of those that are used.
        bound = (self if self.default is not None else self._with(default=0.0)).bind(names or n_inputs)
        keys = range(n_inputs) if isinstance(self.features[0], int) else bound.features
        missing = [bound.features[i] for i in np.unique(needed.indices) if keys[i] not in self._index]
        self._check_priced(missing)
        needs = sp.csr_array(needed @ bound.needs)
        needs.sort_indices()
        return bound._with_needs(features, needs, default=self.default, bound=True)

    def sources_of(self, feature: Name) -> tuple[Name, ...]:
        """Return the sources that a feature needs."""
        return tuple(self.sources[s] for s in self._row(self._position(feature)))

    def paid_sources(self, features: Any) -> tuple[Name, ...]:
        """Return the union of the sources of some features (or of a forest), in the order of ``sources``."""
        bound, mask = self._mask(features)
        return tuple(compress(bound.sources, bound.union(mask)))

    def total(self, features: Any) -> float:
        """Return the price of the union of the sources of some features, or of all features of a forest.

        Parameters
        ----------
        features : iterable of names or indices, boolean mask, a single feature, or a forest
            What is used. A forest is anything with ``features_used()``, such as :class:`grbb_ext.forest.Forest`.

        Returns
        -------
        float
            The cost c_f of a model, without its evaluation. Prices are added as decimal numbers: 0.1 and 0.2 make 0.3.
        """
        bound, mask = self._mask(features)
        return float(bound.exact(bound.union(mask)))

    def marginal(self, feature: Name, paid: Any = ()) -> float:
        """Return what a feature adds to the total when other features have been paid.

        Parameters
        ----------
        feature : str or int
            The feature.
        paid : iterable of names or indices, boolean mask, or a forest, default=()
            The features that are paid; their sources are free now.
        """
        bound, mask = self._mask(paid)
        return float(bound.exact(bound.union(bound._mask(feature)[1]) & ~bound.union(mask)))

    def per_row(self, forest: ForestLike, X: Any) -> NDArray[np.float64]:
        """Return what each row costs when features are fetched on demand: only what its own paths touch.

        Parameters
        ----------
        forest : Forest
            The model.
        X : array-like of shape (N, d)
            The rows.

        Returns
        -------
        ndarray of shape (N,)
            At most :meth:`total` of the forest.
        """
        bound = self.bind(forest)
        return bound.spent(bound.union(forest.features_touched(X)))

    def expected(self, forest: ForestLike, X: Any) -> float:
        """Return the mean of :meth:`per_row`: what a row like those of X costs on demand."""
        spent = self.per_row(forest, X)
        if spent.size == 0:
            raise ValueError("X has no rows: an expected cost needs at least one.")
        return float(spent.mean())

    def evaluation(self, forest: ForestLike) -> float:
        """Return the cost c_e of evaluating a forest: per_tree for each tree and per_split for each split.

        Examples
        --------
        >>> from types import SimpleNamespace
        >>> costs = FeatureCosts([1.0, 2.0], per_tree=0.5, per_split=0.1)
        >>> costs.evaluation(SimpleNamespace(n_trees=4, n_splits=10))
        3.0
        """
        return self.per_tree * forest.n_trees + self.per_split * forest.n_splits

    def budgets(self, n: int) -> tuple[float, ...]:
        """Return budgets to try, ascending: what the 1, 2, ..., d cheapest features cost together.

        Parameters
        ----------
        n : int
            Return at most this many, about evenly spaced in logarithm. The last one pays for all features.

        Examples
        --------
        >>> costs = FeatureCosts({"age": 0.0, "fbs": 5.2, "chol": 7.27, "thal": 102.9, "ca": 100.9})
        >>> costs.budgets(8)
        (0.0, 5.2, 12.47, 113.37, 216.27)
        >>> costs.budgets(4)
        (0.0, 5.2, 12.47, 216.27)
        """
        n = positive_int(n, "The number of budgets", 2)
        paid, total, reached = np.zeros(len(self.sources), dtype=bool), Decimal(0), set()
        for i in np.argsort(self.marginals(), kind="stable"):
            new = self._row(int(i))[~paid[self._row(int(i))]]
            paid[new], total = True, exact_sum([total, *self.prices[new].tolist()])
            reached.add(float(total))
        steps = np.array(sorted(reached))
        priced = steps[steps > 0]
        if not priced.size:
            raise ValueError("Every feature is free, so there are no budgets to choose from.")
        if steps.size > n:
            wanted = np.geomspace(priced[0], priced[-1], n - (steps.size - priced.size))
            nearest = np.abs(np.log(priced[:, None] / wanted)).argmin(axis=0)
            nearest[-1] = priced.size - 1  # also where a single one is wanted
            steps = np.union1d(steps[steps == 0], priced[nearest])
        return tuple(steps.tolist())

    def lightgbm_params(self, mu: float) -> dict[str, Any]:
        """Return the parameters of LightGBM's own CEGB, for plain ``lightgbm.train``.

        Every feature is charged the price of all of its sources when it is first used. Limits of this, which
        :func:`grbb_ext.adapters.lightgbm.train` does not have: a shared source is charged again for each feature, there
        is no budget, training that continues a model pays again for what it has, and LightGBM 4.7.0 grows wrong splits
        in rounds that buy.

        Parameters
        ----------
        mu : float
            Trade-off of eq. 1.

        Returns
        -------
        dict
            ``cegb_tradeoff`` and ``cegb_penalty_feature_coupled``.

        Examples
        --------
        >>> FeatureCosts([7.27, 5.2]).lightgbm_params(mu=0.1)
        {'cegb_tradeoff': 0.1, 'cegb_penalty_feature_coupled': [7.27, 5.2]}
        """
        if not self.bound:
            raise ValueError("LightGBM takes penalties in the order of the columns: use costs.bind(columns) first.")
        penalties = self.marginals().tolist()
        return {"cegb_tradeoff": check_price(mu, "mu"), "cegb_penalty_feature_coupled": penalties}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FeatureCosts):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.features, self.sources, tuple(self.prices.tolist()), self.per_tree, self.per_split))

    def __repr__(self) -> str:
        prices = f", prices {self.prices.min():g} to {self.prices.max():g}" if self.prices.size else ""
        extra = "".join(f", {name}={value:g}" for name in _SETTINGS if (value := getattr(self, name)))
        return f"FeatureCosts({self.n_features} features, {len(self.sources)} sources{prices}{extra})"

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("FeatureCosts cannot be changed: make new ones.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("FeatureCosts cannot be changed: make new ones.")

    # Plain values, which skops keeps as well as pickle does.
    def __getstate__(self) -> dict[str, Any]:
        return self.to_dict()

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(vars(FeatureCosts.from_dict(state)))

    def __copy__(self) -> FeatureCosts:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> FeatureCosts:
        return self

    def _fill(self, **fields: Any) -> None:
        needs = fields["needs"]
        for array in (fields["prices"], needs.data, needs.indices, needs.indptr):
            array.setflags(write=False)
        index = {name: i for i, name in enumerate(fields["features"])}
        made = {"_index": index, "_needed_by": needs.T.tocsr(), "_units": whole_units(fields["prices"].tolist())}
        self.__dict__.update(fields | made)

    def _with(self, **changes: Any) -> FeatureCosts:
        """Make a copy with some attributes changed."""
        made = object.__new__(FeatureCosts)
        made._fill(**(vars(self) | changes))
        return made

    def _with_needs(self, features: tuple[Name, ...], needs: sp.csr_array, **changes: Any) -> FeatureCosts:
        """Make a copy with other features, and only the sources that they need."""
        used = np.unique(needs.indices)
        sources, needs = tuple(self.sources[s] for s in used), sp.csr_array(needs[:, used])
        return self._with(features=features, sources=sources, prices=self.prices[used], needs=needs, **changes)

    def _check_priced(self, missing: list[Name]) -> None:
        if missing and self.default is None:
            raise ValueError(
                f"No price for {shorten(missing)}. Give one (0 if it is free), or FeatureCosts(default=...) for all "
                "such columns."
            )

    def _row(self, i: int) -> NDArray[np.intp]:
        """Return the positions of the sources of feature i."""
        return np.asarray(self.needs.indices[self.needs.indptr[i] : self.needs.indptr[i + 1]], dtype=np.intp)

    def _position(self, feature: Any) -> int:
        (name,) = check_names([feature], "feature")
        if name in self._index:
            return self._index[name]
        if isinstance(name, int) and self.bound and name < self.n_features:
            return name
        if isinstance(name, int) and not self.bound and isinstance(self.features[0], str):
            raise ValueError(
                f"Feature {name} is an index, but the costs are by name. Use names, or costs.bind(columns)."
            )
        raise ValueError(unknown_name(feature, self.features, "feature"))

    def _mask(self, features: Any) -> tuple[FeatureCosts, NDArray[np.bool_]]:
        """Return the costs that `features` refers to (bound to the columns of a forest) and a mask of features."""
        if hasattr(features, "features_used"):
            bound = self.bind(features)
            return bound, bound._mask(list(features.features_used()))[1]
        _refuse_models(features)
        if isinstance(features, (str, int, np.integer)):
            features = [features]
        if isinstance(features, np.ndarray) and features.dtype == np.bool_:
            if features.shape != (self.n_features,):
                raise ValueError(
                    f"A mask needs one entry for each of {self.n_features} features, got {features.shape}."
                )
            return self, features
        mask = np.zeros(self.n_features, dtype=bool)
        for feature in features:
            mask[self._position(feature)] = True
        return self, mask


def _refuse_models(given: Any) -> None:
    """Refuse boosters and estimators where their trees are needed."""
    if hasattr(given, "predict") and not hasattr(given, "features_used"):
        raise TypeError(
            f"Prices are of columns or a Forest, not {type(given).__name__}. Pass Forest.from_booster(model)."
        )
